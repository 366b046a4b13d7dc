//! Where the names of lines stand: beside their ends where they find room there, else in a legend that fits.

use super::{
    Anchor, Chart, Scale, Scene, Shape,
    draw::{FAINT, Frame, GAP, INK, MARGIN, MARKER, TICK, reference_line},
    palette::Style,
    scene::text_width,
};

/// Names of lines get smaller, but not beyond this, where there are many.
pub(super) const SMALLEST: f64 = 8.0;

/// Where the names of lines stand.
pub(super) enum Names {
    /// Nowhere: there is one line.
    None,
    /// Beside the ends of the lines, from the top: height of the text's middle, number of the name.
    Ends(Vec<(f64, usize)>),
    /// In columns beside the panels.
    Legend { size: f64, columns: usize, width: f64 },
}

/// Decides where the names go.
pub(super) fn place_names(chart: &Chart, scales: (&Scale, &Scale), inner: Frame, body: Frame) -> Names {
    let entries = chart.names.len() + usize::from(chart.reference.is_some());
    if entries < 2 {
        return Names::None;
    }
    let longest = |size: f64| {
        let names = chart.names.iter().chain(&chart.reference);
        names.map(|name| text_width(name, size, !chart.front.is_empty())).fold(0.0, f64::max)
    };
    let beside = longest(TICK) + 16.0;
    if chart.panels.len() == 1
        && chart.panels[0].title.is_empty()
        && chart.reference.is_none()
        && beside < 0.4 * inner.width
    {
        let frame = Frame { width: inner.width - beside, ..inner };
        if let Some(places) = ends(chart, scales, frame) {
            return Names::Ends(places);
        }
    }
    let mut size = TICK;
    loop {
        let rows = (body.height / (1.45 * size)).floor().max(1.0) as usize;
        let columns = entries.div_ceil(rows);
        let width = longest(size) + 34.0 + 8.0;
        if columns as f64 * width <= 0.5 * body.width {
            return Names::Legend { size, columns, width };
        }
        if size <= SMALLEST {
            // Names that are still too long are cut short rather than drawn beyond the edge, or stand closer together.
            let room = (0.6 * body.width).min(inner.width - 40.0 - GAP);
            let columns = columns.min((room / 60.0) as usize).max(1);
            let width = width.min(room / columns as f64);
            return Names::Legend { size, columns, width };
        }
        size = (size - 0.5).max(SMALLEST);
    }
}

/// Heights at which the names stand beside the ends of their lines, if all lines end near the right side and all names
/// find room near their line.
fn ends(chart: &Chart, scales: (&Scale, &Scale), frame: Frame) -> Option<Vec<(f64, usize)>> {
    let line_height = 1.25 * TICK;
    let mut wanted = Vec::new();
    let lines = &chart.panels.first()?.lines;
    for (i, line) in lines.iter().enumerate() {
        // A broken line ends where its last piece does.
        if lines.get(i + 1).is_some_and(|next| next.name == line.name) {
            continue;
        }
        let last = line.points.last()?;
        let (x, y) = frame.at(scales, (last.x, last.y));
        if frame.right() - x > 0.08 * frame.width {
            return None;
        }
        wanted.push((y, line.name));
    }
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut places = wanted.clone();
    // Neighbours that overlap are pushed apart, as little as possible, until none do.
    for _ in 0..200 {
        let mut moved = false;
        for i in 1..places.len() {
            let overlap = places[i - 1].0 + line_height - places[i].0;
            if overlap > 0.01 {
                places[i - 1].0 -= 0.5 * overlap;
                places[i].0 += 0.5 * overlap;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let near = wanted.iter().zip(&places).all(|(wanted, place)| (wanted.0 - place.0).abs() <= 1.3 * line_height);
    let inside = places.iter().all(|(y, _)| *y > frame.top - line_height && *y < frame.bottom());
    (near && inside).then_some(places)
}

/// Draws names in columns, each with a sample of its line.
pub(super) fn draw_legend(scene: &mut Scene, chart: &Chart, styles: &[Style], frame: Frame, size: f64, columns: usize) {
    let entries = chart.names.len() + usize::from(chart.reference.is_some());
    let rows = entries.div_ceil(columns);
    // A drawing that is too low for its names has them closer together.
    let step = (1.45 * size).min((scene.height - MARGIN - frame.top) / rows as f64);
    for (i, name) in chart.names.iter().chain(&chart.reference).enumerate() {
        let left = frame.left + (i / rows) as f64 * frame.width;
        let middle = frame.top + (i % rows) as f64 * step + 0.5 * size;
        let sample = [(left, middle), (left + 26.0, middle)];
        match styles.get(i) {
            Some(style) => {
                let Style { colour, dash, .. } = *style;
                // Points alone have no line.
                if chart.front.is_empty() {
                    scene.shapes.push(Shape::Line { points: sample.to_vec(), colour, width: 1.8, dash });
                }
                let points = style.marker((left + 13.0, middle), MARKER);
                scene.shapes.push(Shape::Area { points, colour, opacity: 1.0, edge: true });
            }
            None => scene.shapes.push(reference_line(sample.to_vec())),
        }
        let bold = chart.front.contains(&i);
        let colour = if chart.front.is_empty() || bold || i >= styles.len() { INK } else { FAINT };
        let text = fitting(name, size, bold, frame.width - 33.0 - 4.0);
        let at = (left + 33.0, middle + 0.36 * size);
        scene.shapes.push(Shape::Text { at, text, size, bold, colour, anchor: Anchor::Start, upwards: false });
    }
}

/// A text, cut short where it is too long.
fn fitting(text: &str, size: f64, bold: bool, room: f64) -> String {
    if text_width(text, size, bold) <= room {
        return text.to_owned();
    }
    let signs: Vec<char> = text.chars().collect();
    let short = |n: usize| signs[..n].iter().collect::<String>() + "…";
    (1..signs.len()).rev().map(short).find(|text| text_width(text, size, bold) <= room).unwrap_or_default()
}
