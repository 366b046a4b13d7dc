//! A scene as SVG.

use std::fmt::Write;

use super::{Anchor, Scene, Shape};

/// The text of an SVG file; `about` goes into its metadata.
pub(super) fn svg(scene: &Scene, title: &str, about: &str) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"'Noto Sans', Arial, Helvetica, sans-serif\">\n<title>{}</title>\n\
         <metadata>{}</metadata>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(title),
        escape(about)
    );
    for shape in &scene.shapes {
        text += &element(shape);
    }
    text += "</svg>\n";
    text
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
fn escape(text: &str) -> String {
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

    #[test]
    fn numbers_are_short_and_text_is_escaped() {
        let numbers = [0.0, -0.001, 1.0, 12.345, 100.0, 0.5].map(number);
        assert_eq!(numbers, ["0", "0", "1", "12.35", "100", "0.5"].map(str::to_owned));
        assert_eq!(escape("a<b & \"c\"\n"), "a&lt;b &amp; &quot;c&quot;?");
    }
}
