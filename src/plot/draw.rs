//! From a chart to a scene: panels, axes, lines, and names that fit.

use super::{
    Anchor, Axis, Chart, Colour, Line, Panel, Point, Scale, Scene, Shape, hint,
    names::{Names, SMALLEST, draw_legend, place_names},
    palette::{Style, styles},
    scene::text_width,
};

pub(super) const INK: Colour = Colour(0x22_22_22);
pub(super) const FAINT: Colour = Colour(0x66_66_66);
const GRID: Colour = Colour(0xE4_E4_E4);

/// Sizes of text in pixels.
const TITLE: f64 = 16.0;
const LABEL: f64 = 13.0;
pub(super) const TICK: f64 = 11.5;
/// Free space around everything.
pub(super) const MARGIN: f64 = 14.0;
/// Between two panels.
pub(super) const GAP: f64 = 18.0;
/// Radius of a marker, and the distance between those of one line.
pub(super) const MARKER: f64 = 3.2;
const MARKER_DISTANCE: f64 = 38.0;

/// A rectangle in pixels.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn right(self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(self) -> f64 {
        self.top + self.height
    }

    /// The place of a value, at the edge if it is beyond.
    pub fn at(self, (x, y): (&Scale, &Scale), value: (f64, f64)) -> (f64, f64) {
        self.inside((x.place(value.0).clamp(0.0, 1.0), y.place(value.1).clamp(0.0, 1.0)))
    }

    fn inside(self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.left + x * self.width, self.bottom() - y * self.height)
    }
}

/// A point that has a marker.
pub(super) struct Mark {
    pub at: (f64, f64),
    /// Number of its line's name.
    pub name: usize,
    pub point: Point,
}

/// Draws a chart in so many pixels; a size that fits it if none is given.
pub fn draw(chart: &Chart, size: Option<(u32, u32)>) -> Scene {
    let across = grid(chart.panels.len());
    let down = chart.panels.len().div_ceil(across);
    let (width, height) = match size {
        Some((width, height)) => (f64::from(width), f64::from(height)),
        None if chart.panels.len() == 1 && chart.names.len() <= 16 => (760.0, 460.0),
        // Two columns of names in the smallest letters find room.
        None if chart.panels.len() == 1 => (900.0, (130.0 + 0.725 * SMALLEST * chart.names.len() as f64).max(600.0)),
        None => (180.0 + 300.0 * across as f64, 110.0 + 240.0 * down as f64),
    };
    let mut scene = Scene { width, height, shapes: Vec::new(), hints: Vec::new() };
    let styles = styles(&chart.families);
    let mut marks = Vec::new();
    let header = header(&mut scene, chart);
    let body = Frame { left: MARGIN, top: header, width: width - 2.0 * MARGIN, height: height - header - MARGIN };
    let rough = (body.width / across as f64, body.height / down as f64);
    let scales = scales(chart, rough);
    let ticks = scales.1.ticks.iter().map(|(_, label)| text_width(label, TICK, false)).fold(0.0, f64::max);
    let below = 6.0 + TICK + 1.75 * LABEL;
    let mut inner = Frame {
        left: body.left + 1.7 * LABEL + ticks + 8.0,
        top: body.top,
        width: body.right() - (body.left + 1.7 * LABEL + ticks + 8.0),
        height: body.height - below,
    };
    let names = place_names(chart, (&scales.0, &scales.1), inner, body);
    inner.width -= match &names {
        // The last tick label needs some room of its own.
        Names::None => 0.5 * TICK * 2.0,
        Names::Ends(places) => {
            places.iter().map(|(_, name)| text_width(&chart.names[*name], TICK, false)).fold(0.0, f64::max) + 16.0
        }
        Names::Legend { columns, width, .. } => *columns as f64 * width + GAP,
    };
    inner.width = inner.width.max(40.0);
    let panel_width = (inner.width - GAP * (across - 1) as f64) / across as f64;
    let heading = if chart.panels.iter().any(|panel| !panel.title.is_empty()) { 1.7 * TICK } else { 0.0 };
    let panel_height = ((inner.height - GAP * (down - 1) as f64) / down as f64 - heading).max(20.0);
    let scales = self::scales(chart, (panel_width, panel_height));
    for (i, panel) in chart.panels.iter().enumerate() {
        let (column, row) = (i % across, i / across);
        let frame = Frame {
            left: inner.left + column as f64 * (panel_width + GAP),
            top: inner.top + row as f64 * (panel_height + heading + GAP) + heading,
            width: panel_width,
            height: panel_height,
        };
        // The lowest panel of a column carries the labels below it.
        let has_labels = (column == 0, i + across >= chart.panels.len());
        draw_axes(&mut scene, frame, (&scales.0, &scales.1), has_labels);
        draw_panel(&mut scene, frame, (&scales.0, &scales.1), panel, &styles, &mut marks);
    }
    draw_labels(&mut scene, chart, inner, (&scales.0, &scales.1), body.left);
    match names {
        Names::None => {}
        Names::Ends(places) => {
            for (height, name) in places {
                let text = chart.names[name].clone();
                scene.text((inner.right() + 8.0, height + 0.35 * TICK), text, TICK, styles[name].ink, Anchor::Start);
            }
        }
        Names::Legend { size, columns, width } => {
            let frame = Frame { left: inner.right() + GAP, top: inner.top + heading, width, height: inner.height };
            draw_legend(&mut scene, chart, &styles, frame, size, columns);
        }
    }
    scene.hints = hint::hints(chart, &styles, &marks);
    scene
}

/// Panels beside each other.
fn grid(panels: usize) -> usize {
    (1..=4).find(|across| across * across >= panels).unwrap_or(4).min(panels.max(1))
}

fn header(scene: &mut Scene, chart: &Chart) -> f64 {
    let mut top = MARGIN + 0.9 * TITLE;
    let room = scene.width - 2.0 * MARGIN;
    let size = TITLE * (room / text_width(&chart.title, TITLE, true).max(1.0)).min(1.0);
    let at = (MARGIN, top);
    let text = chart.title.clone();
    scene.shapes.push(Shape::Text { at, text, size, bold: true, colour: INK, anchor: Anchor::Start, upwards: false });
    if !chart.subtitle.is_empty() {
        top += 1.5 * TICK;
        scene.text((MARGIN, top), chart.subtitle.clone(), TICK, FAINT, Anchor::Start);
    }
    top + 16.0
}

/// How many ticks find room.
fn ticks_along(length: f64, each: f64) -> usize {
    (length / each).round().max(3.0) as usize
}

fn scales(chart: &Chart, (width, height): (f64, f64)) -> (Scale, Scale) {
    let points = || chart.panels.iter().flat_map(|panel| panel.lines.iter().flat_map(|line| &line.points));
    let x = Scale::new(chart.x.unit, chart.x.log, points().map(|point| point.x), ticks_along(width, 54.0));
    // The lower end of a band may come close to zero, which would take all the room of a logarithmic axis.
    let lowest = points().map(|point| if chart.y.log { point.y } else { point.low });
    let all = lowest.chain(points().map(|point| point.high));
    let shares = points().all(|point| (0.0..=1.0).contains(&point.y));
    // A band around shares may leave their range; the axis need not.
    let all =
        all.map(|value| if shares && chart.y.unit == super::Unit::Percent { value.clamp(0.0, 1.0) } else { value });
    (x, Scale::new(chart.y.unit, chart.y.log, all, ticks_along(height, 33.0)))
}

fn draw_axes(scene: &mut Scene, frame: Frame, (x, y): (&Scale, &Scale), (has_y, has_x): (bool, bool)) {
    for (value, label) in &x.ticks {
        let at = frame.left + x.place(*value) * frame.width;
        scene.line(&[(at, frame.top), (at, frame.bottom())], GRID, 0.8);
        scene.line(&[(at, frame.bottom()), (at, frame.bottom() + 4.0)], INK, 0.8);
        if has_x {
            scene.text((at, frame.bottom() + 6.0 + TICK), label.clone(), TICK, INK, Anchor::Middle);
        }
    }
    for (value, label) in &y.ticks {
        let at = frame.bottom() - y.place(*value) * frame.height;
        scene.line(&[(frame.left, at), (frame.right(), at)], GRID, 0.8);
        scene.line(&[(frame.left - 4.0, at), (frame.left, at)], INK, 0.8);
        if has_y {
            scene.text((frame.left - 7.0, at + 0.36 * TICK), label.clone(), TICK, INK, Anchor::End);
        }
    }
    for value in &x.minor {
        let at = frame.left + x.place(*value) * frame.width;
        scene.line(&[(at, frame.bottom()), (at, frame.bottom() + 2.2)], INK, 0.6);
    }
    for value in &y.minor {
        let at = frame.bottom() - y.place(*value) * frame.height;
        scene.line(&[(frame.left - 2.2, at), (frame.left, at)], INK, 0.6);
    }
    let corner = [(frame.left, frame.top), (frame.left, frame.bottom()), (frame.right(), frame.bottom())];
    scene.line(&corner, INK, 0.9);
}

fn draw_panel(
    scene: &mut Scene,
    frame: Frame,
    scales: (&Scale, &Scale),
    panel: &Panel,
    styles: &[Style],
    marks: &mut Vec<Mark>,
) {
    if !panel.title.is_empty() {
        scene.text((frame.left, frame.top - 0.5 * TICK), panel.title.clone(), TICK, INK, Anchor::Start);
    }
    for Line { name, points } in &panel.lines {
        let edge = |pick: fn(&Point) -> f64| points.iter().map(move |point| frame.at(scales, (point.x, pick(point))));
        if let [only] = points.as_slice() {
            draw_bar(scene, frame.at(scales, (only.x, only.low)), frame.at(scales, (only.x, only.high)), styles[*name]);
        } else if points.iter().any(|point| point.low < point.high) {
            let points: Vec<(f64, f64)> = edge(|point| point.high).chain(edge(|point| point.low).rev()).collect();
            scene.shapes.push(Shape::Area { points, colour: styles[*name].colour, opacity: 0.15, edge: false });
        }
    }
    let reference: Vec<(f64, f64)> =
        panel.reference.iter().map(|(x, y)| (scales.0.place(*x), scales.1.place(*y))).collect();
    let reference: Vec<(f64, f64)> = leave(&reference).into_iter().map(|place| frame.inside(place)).collect();
    if reference.len() > 1 {
        scene.shapes.push(reference_line(reference));
    }
    for Line { name, points } in &panel.lines {
        let places: Vec<(f64, f64)> = points.iter().map(|point| frame.at(scales, (point.x, point.y))).collect();
        for i in draw_line(scene, &places, styles[*name]) {
            marks.push(Mark { at: places[i], name: *name, point: points[i] });
        }
    }
}

/// The band of a point alone.
fn draw_bar(scene: &mut Scene, low: (f64, f64), high: (f64, f64), style: Style) {
    if low.1 - high.1 > 0.5 {
        scene.line(&[low, high], style.colour, 1.2);
        for (x, y) in [low, high] {
            scene.line(&[(x - MARKER, y), (x + MARKER, y)], style.colour, 1.2);
        }
    }
}

/// The first piece of a line that is inside the unit square, up to where the line leaves it.
fn leave(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let inside = -1e-9..=1.0 + 1e-9;
    let is_inside = |(x, y): (f64, f64)| inside.contains(&x) && inside.contains(&y);
    let mut piece: Vec<(f64, f64)> = Vec::new();
    for place in places {
        if is_inside(*place) {
            piece.push(*place);
        } else if let Some(&(x, y)) = piece.last() {
            let step = (place.0 - x, place.1 - y);
            // The share of the step at which one coordinate comes to its edge.
            let share = |from: f64, step: f64| if step > 0.0 { (1.0 - from) / step } else { from / -step };
            let both = [(x, step.0), (y, step.1)].into_iter().filter(|(_, step)| *step != 0.0);
            let share = both.map(|(from, step)| share(from, step)).fold(1.0, f64::min);
            piece.push(((x + share * step.0).clamp(0.0, 1.0), (y + share * step.1).clamp(0.0, 1.0)));
            break;
        }
    }
    piece
}

pub(super) fn reference_line(points: Vec<(f64, f64)>) -> Shape {
    Shape::Line { points, colour: Colour(0), width: 1.2, dash: &[4.0, 3.0] }
}

/// Draws a line and says which of its places are marked, the last first.
fn draw_line(scene: &mut Scene, places: &[(f64, f64)], style: Style) -> Vec<usize> {
    if places.len() > 1 {
        scene.shapes.push(Shape::Line { points: places.to_vec(), colour: style.colour, width: 1.8, dash: style.dash });
    }
    // Markers at even distances along the line, the last point always among them.
    let mut travelled = MARKER_DISTANCE;
    let mut marked = Vec::new();
    for (i, place) in places.iter().enumerate().rev() {
        if let Some(next) = places.get(i + 1) {
            travelled += libm::hypot(next.0 - place.0, next.1 - place.1);
        }
        if travelled >= MARKER_DISTANCE || i + 1 == places.len() {
            travelled = 0.0;
            marked.push(i);
        }
    }
    for i in marked.iter().rev() {
        let points = style.marker(places[*i], MARKER);
        scene.shapes.push(Shape::Area { points, colour: style.colour, opacity: 1.0, edge: true });
    }
    marked
}

fn draw_labels(scene: &mut Scene, chart: &Chart, inner: Frame, (x, y): (&Scale, &Scale), left: f64) {
    let label = |axis: &Axis, scale: &Scale| match scale.unit {
        "" => axis.label.clone(),
        unit => format!("{} ({unit})", axis.label),
    };
    let at = (inner.left + 0.5 * inner.width, scene.height - MARGIN);
    scene.text(at, label(&chart.x, x), LABEL, INK, Anchor::Middle);
    let text = label(&chart.y, y);
    // A name longer than its axis is written smaller.
    let size = LABEL * ((inner.height + 40.0) / text_width(&text, LABEL, false).max(1.0)).min(1.0);
    let at = (left + 0.8 * LABEL, inner.top + 0.5 * inner.height);
    scene.shapes.push(Shape::Text { at, text, size, bold: false, colour: INK, anchor: Anchor::Middle, upwards: true });
}

impl Scene {
    fn line(&mut self, points: &[(f64, f64)], colour: Colour, width: f64) {
        self.shapes.push(Shape::Line { points: points.to_vec(), colour, width, dash: &[] });
    }

    fn text(&mut self, at: (f64, f64), text: String, size: f64, colour: Colour, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text, size, bold: false, colour, anchor, upwards: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Unit;

    fn chart(lines: usize, panels: usize) -> Chart {
        let axis = |label: &str| Axis { label: label.to_owned(), unit: Unit::Plain, log: false };
        let line = |name: usize| Line {
            name,
            points: (0..20)
                .map(|i| (i as f64, i as f64 * name as f64))
                .map(|(x, y)| Point { x, y, low: y - 1.0, high: y + 1.0 })
                .collect(),
        };
        let panel = Panel { title: "panel".to_owned(), lines: (0..lines).map(line).collect(), reference: Vec::new() };
        Chart {
            title: "a title that is rather long and yet has to find its room above the panels of the figure".to_owned(),
            subtitle: String::new(),
            x: axis("x"),
            y: axis("y"),
            names: (0..lines).map(|name| format!("operator number {name}, ratio 0.01")).collect(),
            families: (0..lines).map(|line| line / 5).collect(),
            front: Vec::new(),
            reference: None,
            panels: vec![panel; panels],
            sources: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_reference_line_ends_where_it_leaves_the_panel() {
        assert_eq!(leave(&[(0.5, 0.5), (0.6, -0.5), (0.7, -2.0)]), [(0.5, 0.5), (0.55, 0.0)]);
        assert_eq!(leave(&[(-1.0, 2.0), (0.5, 0.5), (1.0, 0.5)]), [(0.5, 0.5), (1.0, 0.5)]);
    }

    #[test]
    fn everything_stays_inside_and_no_two_names_overlap() {
        for (lines, panels) in [(1, 1), (3, 1), (12, 1), (30, 1), (60, 1), (100, 1), (8, 2), (30, 6)] {
            let scene = draw(&chart(lines, panels), None);
            let mut texts: Vec<(f64, f64, f64, f64)> = Vec::new();
            let is_named = |name: &String| {
                scene.shapes.iter().any(|shape| matches!(shape, Shape::Text { text, .. } if text == name))
            };
            assert!(lines == 1 || chart(lines, panels).names.iter().all(is_named), "{lines}, {panels}");
            for shape in &scene.shapes {
                match shape {
                    Shape::Line { points, .. } | Shape::Area { points, .. } => {
                        for (x, y) in points {
                            assert!((0.0..=scene.width).contains(x) && (0.0..=scene.height).contains(y), "{shape:?}");
                        }
                    }
                    Shape::Text { upwards: true, .. } => {}
                    Shape::Text { at: (x, y), text, size, bold, anchor, .. } => {
                        let width = text_width(text, *size, *bold);
                        let left = x - width * [0.0, 0.5, 1.0][*anchor as usize];
                        assert!(left >= 0.0 && left + width <= scene.width + 0.01, "{lines}, {panels}: {shape:?}");
                        assert!(y - size >= -1.0 && *y <= scene.height, "{lines}, {panels}: {shape:?}");
                        let overlaps = |other: &&(f64, f64, f64, f64)| {
                            left < other.0 + other.2
                                && other.0 < left + width
                                && (y - other.1).abs() < 0.9 * size.min(other.3)
                        };
                        assert!(texts.iter().find(overlaps).is_none(), "{lines}, {panels}: {shape:?}");
                        texts.push((left, *y, width, *size));
                    }
                }
            }
        }
    }

    #[test]
    fn names_that_find_no_room_are_cut_short_inside_a_small_drawing() {
        let scene = draw(&chart(100, 1), Some((260, 200)));
        for shape in &scene.shapes {
            if let Shape::Text { at, text, size, bold, anchor: Anchor::Start, upwards: false, .. } = shape {
                assert!(at.0 + text_width(text, *size, *bold) <= scene.width && at.1 <= scene.height, "{shape:?}");
            }
        }
    }
}
