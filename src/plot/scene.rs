//! What a figure is drawn with: paths and texts in pixels, from the upper left corner.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId};

/// A finished drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Shapes, the lowest first.
    pub shapes: Vec<Shape>,
    /// Places that say more when one points at them, where the medium can.
    pub hints: Vec<Hint>,
}

/// A colour as `0xRRGGBB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u32);

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:06X}", self.0)
    }
}

impl Colour {
    /// Red, green and blue.
    pub fn parts(self) -> [u8; 3] {
        let [_, red, green, blue] = self.0.to_be_bytes();
        [red, green, blue]
    }

    /// This colour with a share of another in it.
    pub fn mixed(self, share: f64, other: Self) -> Self {
        let pairs = self.parts().into_iter().zip(other.parts());
        let mix = |(a, b): (u8, u8)| (f64::from(a) + share * (f64::from(b) - f64::from(a))).round() as u32;
        Self(pairs.map(mix).fold(0, |all, part| all << 8 | part))
    }
}

/// What a place says when one points at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The place.
    pub at: (f64, f64),
    /// How near one must point, in pixels.
    pub radius: f64,
    /// Colour of the place.
    pub colour: Colour,
    /// Lines of text, the first of them the name.
    pub lines: Vec<String>,
}

/// A path or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Straight lines through points, as an open line.
    Line {
        /// Points.
        points: Vec<(f64, f64)>,
        /// Colour.
        colour: Colour,
        /// Width in pixels.
        width: f64,
        /// Dashes; empty for a solid line.
        dash: &'static [f64],
    },
    /// A filled polygon.
    Area {
        /// Corners.
        points: Vec<(f64, f64)>,
        /// Colour of the inside.
        colour: Colour,
        /// From 0, invisible, to 1.
        opacity: f64,
        /// Whether a thin white edge sets it off.
        edge: bool,
    },
    /// A line of text.
    Text {
        /// Where: the base line, at the anchor.
        at: (f64, f64),
        /// The text.
        text: String,
        /// Size in pixels.
        size: f64,
        /// Whether it is bold.
        bold: bool,
        /// Colour.
        colour: Colour,
        /// Which end of the text is at its place.
        anchor: Anchor,
        /// Whether it runs upwards.
        upwards: bool,
    },
}

/// The end of a text that is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The beginning.
    Start,
    /// The middle.
    Middle,
    /// The end.
    End,
}

static REGULAR: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).expect("the font is whole"));
static BOLD: LazyLock<Face<'static>> = LazyLock::new(|| Face::parse(notosans::BOLD_TTF, 0).expect("the font is whole"));

/// The font of all figures.
pub(super) fn face(bold: bool) -> &'static Face<'static> {
    if bold { &BOLD } else { &REGULAR }
}

/// A sign of a text, in units of the font.
pub(super) struct Glyph {
    pub id: GlyphId,
    /// Its size relative to that of the text.
    pub size: f32,
    /// How far it is above the base line.
    pub rise: f32,
    /// From its place to that of the next sign.
    pub advance: f32,
}

pub(super) fn glyph(face: &Face<'_>, sign: char) -> Glyph {
    // The font has raised digits, but no raised minus.
    let (sign, size, rise) = match sign {
        '⁻' => ('−', 0.6, 0.33 * f32::from(face.units_per_em())),
        other => (other, 1.0, 0.0),
    };
    let id = face.glyph_index(sign).unwrap_or_default();
    Glyph { id, size, rise, advance: size * f32::from(face.glyph_hor_advance(id).unwrap_or(0)) }
}

/// Width of a text in pixels.
pub(super) fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let face = face(bold);
    let units: f64 = text.chars().map(|sign| f64::from(glyph(face, sign).advance)).sum();
    units * size / f64::from(face.units_per_em())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_every_sign_that_figures_use() {
        let signs = "abcXYZ0189 .,:;%±×·–−|/()=+-_⁰¹²³⁴⁵⁶⁷⁸⁹µωδαβ√‖≤…";
        let missing: String = signs.chars().filter(|c| face(false).glyph_index(*c).is_none()).collect();
        assert_eq!(missing, "");
        assert!(text_width("mm", 10.0, false) > text_width("ii", 10.0, false));
        assert_eq!(text_width("", 10.0, true), 0.0);
    }
}
