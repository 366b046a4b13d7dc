//! Colours, dashes and markers that stay apart for colour-blind readers and in print.

use super::Colour;

/// Lines of one figure that a reader can tell apart and find in its legend.
pub(super) const LINES: usize = 100;

/// Okabe and Ito's colours, without their yellow, which is too light for lines on white.
const COLOURS: [Colour; 7] = [
    Colour(0x00_72_B2),
    Colour(0xD5_5E_00),
    Colour(0x00_9E_73),
    Colour(0xCC_79_A7),
    Colour(0xE6_9F_00),
    Colour(0x56_B4_E9),
    Colour(0x33_33_33),
];

/// Dashes, in pixels, one for each turn through the colours.
const DASHES: [&[f64]; 5] = [&[], &[6.0, 3.0], &[1.5, 2.5], &[8.0, 3.0, 1.5, 3.0], &[3.0, 2.0]];

/// Shades of one colour that can be told apart, with dashes in turn.
const SHADES: usize = 15;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Colour.
    pub colour: Colour,
    /// Colour of its name: that of the family, whose light shades would be hard to read.
    pub ink: Colour,
    /// Dashes; empty for a solid line.
    pub dash: &'static [f64],
    /// Corners of its marker around the origin, for a radius of 1.
    marker: usize,
}

/// The styles of lines, of which those of one family are shades of one colour, from light to dark.
///
/// One family alone, or families of one line each, or of more lines than there are shades, are as many colours.
pub fn styles(families: &[usize]) -> Vec<Style> {
    let size = |family: usize| families.iter().filter(|other| **other == family).count();
    let largest = families.iter().map(|family| size(*family)).max().unwrap_or(0);
    if largest == families.len() || !(2..=SHADES).contains(&largest) {
        return (0..families.len()).map(style).collect();
    }
    let place = |i: usize| families[..i].iter().filter(|other| **other == families[i]).count();
    (0..families.len()).map(|i| shade(families[i], place(i), size(families[i]))).collect()
}

/// The style of the `i`-th line. The first 280 differ from each other.
fn style(i: usize) -> Style {
    let (turn, colour) = (i / COLOURS.len(), COLOURS[i % COLOURS.len()]);
    Style { colour, ink: colour, dash: DASHES[turn % DASHES.len()], marker: (i + 2 * turn) % MARKERS }
}

/// The style of the `i`-th of `n` lines of a family. The families share no marker where they share a colour.
fn shade(family: usize, i: usize, n: usize) -> Style {
    let ink = COLOURS[family % COLOURS.len()];
    // From light, below zero, to dark; few shades need no extremes.
    let largest = (0.2 + 0.2 * n as f64).min(1.0);
    let depth = if n > 1 { largest * (2.0 * i as f64 / (n - 1) as f64 - 1.0) } else { 0.0 };
    let colour = match depth < 0.0 {
        true => ink.mixed(-0.55 * depth, Colour(0xFF_FF_FF)),
        false => ink.mixed(0.5 * depth, Colour(0)),
    };
    let dash = if n > 3 { DASHES[i % 3] } else { DASHES[0] };
    Style { colour, ink, dash, marker: family % MARKERS }
}

/// Kinds of markers.
const MARKERS: usize = 8;

impl Style {
    /// The corners of the marker around a place.
    pub fn marker(self, (x, y): (f64, f64), radius: f64) -> Vec<(f64, f64)> {
        // Corners on a circle: how many, turn of the first in degrees, inner radius of a star, size.
        let (corners, turn, inner, size) = [
            (24, 0.0, 1.0, 1.0),
            (4, 45.0, 1.0, 1.25),
            (3, -90.0, 1.0, 1.35),
            (4, 0.0, 1.0, 1.3),
            (3, 90.0, 1.0, 1.35),
            (10, -90.0, 0.45, 1.45),
            (6, 0.0, 1.0, 1.1),
            (8, 45.0, 0.4, 1.45),
        ][self.marker];
        let corner = |i: usize| {
            let angle = (turn + 360.0 * i as f64 / corners as f64).to_radians();
            let r = radius * size * if i % 2 == 1 { inner } else { 1.0 };
            (x + r * libm::cos(angle), y + r * libm::sin(angle))
        };
        (0..corners).map(corner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_as_a_figure_may_have_look_different() {
        let alone = vec![0; LINES];
        let each: Vec<usize> = (0..LINES).collect();
        let operators: Vec<usize> = (0..LINES).map(|i| i / 5).collect();
        let two: Vec<usize> = (0..LINES).map(|i| i / 50).collect();
        for families in [alone, each, operators, two] {
            let styles = styles(&families);
            assert!(styles.iter().all(|style| style.marker((1.0, 1.0), 3.0).len() >= 3));
            for (i, a) in styles.iter().enumerate() {
                assert!(styles[i + 1..].iter().all(|b| a != b), "line {i} of {families:?} looks like a later one");
            }
        }
    }

    #[test]
    fn strengths_of_an_operator_are_shades_of_its_colour() {
        let styles = styles(&[0, 0, 0, 1, 2, 2]);
        assert!(styles[..3].iter().all(|style| style.ink == COLOURS[0] && style.marker == styles[0].marker));
        let brightness = |style: &Style| style.colour.parts().into_iter().map(u32::from).sum::<u32>();
        assert!(styles[..3].windows(2).all(|pair| brightness(&pair[0]) > brightness(&pair[1])));
        // The middle of a family, and a family of one, have the colour itself.
        assert_eq!((styles[1].colour, styles[3].colour), (COLOURS[0], COLOURS[1]));
    }
}
