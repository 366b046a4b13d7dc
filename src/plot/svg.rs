//! A scene as SVG.

use std::fmt::Write;

use super::{Anchor, Hint, Scene, Shape, scene::text_width};

/// The text of an SVG file; `about` goes into its metadata.
pub(super) fn svg(scene: &Scene, title: &str, about: &str) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let size = format!(" width=\"{width}\" height=\"{height}\"");
    let about = format!("<title>{}</title>\n<metadata>{}</metadata>\n", escape(title), escape(about));
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\"{size}{}>\n{about}{}</svg>\n", frame(scene), body(scene))
}

/// An SVG to stand in a page: as wide as its box, named for those who cannot see it, with hints.
pub(super) fn inline(scene: &Scene, title: &str) -> String {
    let hints: String = scene.hints.iter().map(|hint| tip(scene, hint)).collect();
    let label = format!(" aria-label=\"{}\"", escape(title));
    format!("<svg{}{label}>\n{}<g class=\"hints\">\n{hints}</g>\n</svg>\n", frame(scene), body(scene))
}

fn frame(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    format!(" viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"'Noto Sans', Arial, Helvetica, sans-serif\"")
}

fn body(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let shapes: String = scene.shapes.iter().map(element).collect();
    format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{shapes}")
}

/// A place with a box of text that is seen only while one points at the place. The style of the page sees to that.
fn tip(scene: &Scene, hint: &Hint) -> String {
    const SIZE: f64 = 11.5;
    const STEP: f64 = 15.0;
    let wide = |(i, line): (usize, &String)| text_width(line, SIZE, i == 0);
    // Other fonts than ours may be a little wider.
    let width = (1.06 * hint.lines.iter().enumerate().map(wide).fold(0.0, f64::max) + 16.0).min(scene.width - 4.0);
    let height = STEP * hint.lines.len() as f64 + 10.0;
    let (x, y) = hint.at;
    let left = if x + 12.0 + width <= scene.width - 2.0 { x + 12.0 } else { x - 12.0 - width };
    let left = left.clamp(2.0, (scene.width - 2.0 - width).max(2.0));
    let above = y - 12.0 - height;
    let top = if above >= 2.0 { above } else { y + 12.0 }.clamp(2.0, (scene.height - 2.0 - height).max(2.0));
    let mut text = String::new();
    for (i, line) in hint.lines.iter().enumerate() {
        let (x, y) = (number(left + 8.0), number(top + 5.0 + STEP * (i as f64 + 0.8)));
        let bold = if i == 0 { " font-weight=\"bold\"" } else { "" };
        let _ = write!(text, "<tspan x=\"{x}\" y=\"{y}\"{bold}>{}</tspan>", escape(line));
    }
    format!(
        "<g tabindex=\"-1\"><circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/><g>\
         <circle cx=\"{x}\" cy=\"{y}\" r=\"4.5\" stroke=\"{}\"/>\
         <rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/><text>{text}</text></g></g>\n",
        hint.colour,
        number(left),
        number(top),
        number(width),
        number(height),
        x = number(x),
        y = number(y),
        radius = number(hint.radius),
    )
}

fn element(shape: &Shape) -> String {
    match shape {
        Shape::Line { points, colour, width, dash } => {
            let dash: Vec<String> = dash.iter().map(|length| number(*length)).collect();
            let dash = match dash.is_empty() {
                true => String::new(),
                false => format!(" stroke-dasharray=\"{}\"", dash.join(" ")),
            };
            format!(
                "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dash}/>\n",
                path(points),
                number(*width)
            )
        }
        Shape::Area { points, colour, opacity, edge } => {
            let edge = if *edge { " stroke=\"#ffffff\" stroke-width=\"0.8\"" } else { "" };
            let opacity =
                if *opacity < 1.0 { format!(" fill-opacity=\"{}\"", number(*opacity)) } else { String::new() };
            format!("<path d=\"{}Z\" fill=\"{colour}\"{opacity}{edge}/>\n", path(points))
        }
        Shape::Text { at: (x, y), text, size, bold, colour, anchor, upwards } => {
            let (x, y) = (number(*x), number(*y));
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let bold = if *bold { " font-weight=\"bold\"" } else { "" };
            let turn = if *upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let size = number(*size);
            format!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{colour}\"{bold}{anchor}{turn}>{}</text>\n",
                escape(text)
            )
        }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(text, "{}{} {}", if i == 0 { "M" } else { "L" }, number(*x), number(*y));
    }
    text
}

/// Two decimals at most: a hundredth of a pixel is enough.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text fit for XML; signs that XML cannot hold become a question mark.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Colour;

    #[test]
    fn numbers_are_short_and_text_is_escaped() {
        let numbers = [0.0, -0.001, 1.0, 12.345, 100.0, 0.5].map(number);
        assert_eq!(numbers, ["0", "0", "1", "12.35", "100", "0.5"].map(str::to_owned));
        assert_eq!(escape("a<b & \"c\"\n"), "a&lt;b &amp; &quot;c&quot;?");
    }

    #[test]
    fn boxes_of_text_stay_inside_the_drawing() {
        let corners = [(0.0, 0.0), (400.0, 0.0), (0.0, 300.0), (400.0, 300.0), (200.0, 150.0)];
        let hint =
            |at| Hint { at, radius: 9.0, colour: Colour(0), lines: vec!["uplink traffic: 798,560 bits".to_owned(); 4] };
        let scene = Scene { width: 400.0, height: 300.0, shapes: Vec::new(), hints: corners.map(hint).to_vec() };
        let text = inline(&scene, "a");
        let boxes: Vec<&str> = text.split("<rect x=").skip(1).collect();
        assert_eq!(boxes.len(), corners.len());
        for one in boxes {
            let [x, y, width, height] = [1, 3, 5, 7]
                .map(|i| one.split('"').nth(i).and_then(|text| text.parse::<f64>().ok()).expect("a number"));
            assert!(x >= 0.0 && y >= 0.0 && x + width <= 400.0 && y + height <= 300.0, "{one}");
        }
    }
}
