//! A scene as PNG, two pixels of the image for one of the scene in each direction.

use std::io::Write;

use flate2::{Compression, Crc, write::ZlibEncoder};
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::OutlineBuilder;

use super::{
    Anchor, Colour, Scene, Shape,
    scene::{face, glyph, text_width},
};

/// Pixels of the image for one of the scene.
const DENSITY: f32 = 2.0;

/// The bytes of a PNG file; `about` goes into its comment.
///
/// # Errors
/// If the image is too large for memory.
pub(super) fn png(scene: &Scene, title: &str, about: &str) -> Result<Vec<u8>, String> {
    let side = |length: f64| (length as f32 * DENSITY).round() as u32;
    let (width, height) = (side(scene.width), side(scene.height));
    let mut pixmap = Pixmap::new(width, height).ok_or("the image is too large")?;
    pixmap.fill(Color::WHITE);
    for shape in &scene.shapes {
        paint(&mut pixmap, shape);
    }
    // The ground is opaque: the image needs no transparency.
    let pixels: Vec<u8> = pixmap.data().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    // Eight bits a channel, RGB, no interlacing.
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    chunk(&mut bytes, *b"IHDR", &header);
    for (keyword, text) in [("Software", super::file::MAKER), ("Title", title), ("Comment", about)] {
        // Plain chunks hold Latin letters only; the others are UTF-8, not compressed, of no named language.
        match text.is_ascii() {
            true => chunk(&mut bytes, *b"tEXt", format!("{keyword}\0{text}").as_bytes()),
            false => chunk(&mut bytes, *b"iTXt", format!("{keyword}\0\0\0\0\0{text}").as_bytes()),
        }
    }
    chunk(&mut bytes, *b"IDAT", &compress(&pixels, 3 * width as usize).map_err(|error| error.to_string())?);
    chunk(&mut bytes, *b"IEND", &[]);
    Ok(bytes)
}

fn chunk(bytes: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let mut check = Crc::new();
    check.update(&kind);
    check.update(data);
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(kind);
    bytes.extend(data);
    bytes.extend(check.sum().to_be_bytes());
}

/// Rows as differences to the row above, which are mostly zero in a figure.
fn compress(pixels: &[u8], row_bytes: usize) -> std::io::Result<Vec<u8>> {
    const UP: u8 = 2;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    let mut above = vec![0; row_bytes];
    for row in pixels.chunks_exact(row_bytes) {
        let differences: Vec<u8> = row.iter().zip(&above).map(|(here, above)| here.wrapping_sub(*above)).collect();
        encoder.write_all(&[UP])?;
        encoder.write_all(&differences)?;
        above.copy_from_slice(row);
    }
    encoder.finish()
}

fn paint(pixmap: &mut Pixmap, shape: &Shape) {
    let scaled = Transform::from_scale(DENSITY, DENSITY);
    match shape {
        Shape::Line { points, colour, width, dash } => {
            let Some(path) = path(points, false) else { return };
            let dash: Vec<f32> = dash.iter().map(|length| *length as f32).collect();
            let stroke = Stroke {
                width: *width as f32,
                line_cap: LineCap::Butt,
                line_join: LineJoin::Round,
                dash: if dash.is_empty() { None } else { StrokeDash::new(dash, 0.0) },
                ..Stroke::default()
            };
            pixmap.stroke_path(&path, &ink(*colour, 1.0), &stroke, scaled, None);
        }
        Shape::Area { points, colour, opacity, edge } => {
            let Some(path) = path(points, true) else { return };
            pixmap.fill_path(&path, &ink(*colour, *opacity), FillRule::Winding, scaled, None);
            if *edge {
                let stroke = Stroke { width: 0.8, ..Stroke::default() };
                pixmap.stroke_path(&path, &ink(Colour(0xFF_FF_FF), 1.0), &stroke, scaled, None);
            }
        }
        Shape::Text { at, text, size, bold, colour, anchor, upwards } => {
            let Some(path) = outline(text, *bold) else { return };
            let shift = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -0.5,
                Anchor::End => -1.0,
            } * text_width(text, *size, *bold) as f32;
            let scale = *size as f32 / f32::from(face(*bold).units_per_em());
            let turn = if *upwards { -90.0 } else { 0.0 };
            let transform = Transform::from_row(scale, 0.0, 0.0, -scale, shift, 0.0)
                .post_concat(Transform::from_rotate(turn))
                .post_translate(at.0 as f32, at.1 as f32)
                .post_concat(scaled);
            pixmap.fill_path(&path, &ink(*colour, 1.0), FillRule::Winding, transform, None);
        }
    }
}

fn ink(colour: Colour, opacity: f64) -> Paint<'static> {
    let [red, green, blue] = colour.parts();
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, (255.0 * opacity).round() as u8);
    paint
}

fn path(points: &[(f64, f64)], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if i == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

/// A text as a path in units of the font, upwards.
fn outline(text: &str, bold: bool) -> Option<Path> {
    let face = face(bold);
    let mut pen = Pen { builder: PathBuilder::new(), x: 0.0, y: 0.0, size: 1.0 };
    for sign in text.chars() {
        let glyph = glyph(face, sign);
        (pen.y, pen.size) = (glyph.rise, glyph.size);
        face.outline_glyph(glyph.id, &mut pen);
        pen.x += glyph.advance;
    }
    pen.builder.finish()
}

/// Draws signs beside each other.
struct Pen {
    builder: PathBuilder,
    x: f32,
    y: f32,
    size: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + self.size * x, self.y + self.size * y)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.builder.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.builder.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}
