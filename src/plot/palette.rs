//! Colours, dashes and markers that stay apart for colour-blind readers and in print.

/// Okabe and Ito's colours, without their yellow, which is too light for lines on white.
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333"];

/// Dashes, in pixels, one for each turn through the colours.
const DASHES: [&[f64]; 5] = [&[], &[6.0, 3.0], &[1.5, 2.5], &[8.0, 3.0, 1.5, 3.0], &[3.0, 2.0]];

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Colour.
    pub colour: &'static str,
    /// Dashes; empty for a solid line.
    pub dash: &'static [f64],
    /// Corners of its marker around the origin, for a radius of 1.
    marker: usize,
}

/// The style of the `i`-th line. The first 280 differ from each other.
pub fn style(i: usize) -> Style {
    let turn = i / COLOURS.len();
    Style { colour: COLOURS[i % COLOURS.len()], dash: DASHES[turn % DASHES.len()], marker: (i + 2 * turn) % MARKERS }
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
    fn forty_lines_look_different() {
        let styles: Vec<Style> = (0..40).map(style).collect();
        for (i, a) in styles.iter().enumerate() {
            assert!(styles[i + 1..].iter().all(|b| a != b), "line {i} looks like a later one");
        }
        assert!(styles.iter().all(|style| style.marker((1.0, 1.0), 3.0).len() >= 3));
    }
}
