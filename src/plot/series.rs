//! Lines of a chart: rows are told apart by their group, and the seeds of a group become one line with a band.

use std::collections::BTreeMap;

use csv::StringRecord;

use super::{
    Axis, Chart, Kind, Line, Panel, PlotError, Point, Question, Spread, Table, Unit, front,
    group::{self, differences, families, natural},
    palette::LINES,
    table::{Column, resolve},
};

/// Where a point stands in its run, and what it shows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    /// Round, or place to the right: what the same moment of two seeds has in common.
    key: f64,
    x: f64,
    /// Not a number where there is a gap.
    y: f64,
    deviation: f64,
    gap: Option<Gap>,
}

/// Why a row that has values shows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    NotFinite,
    NotAboveZero,
}

/// The readings of one seed.
struct Trace {
    seed: String,
    table: usize,
    /// Values of the settings that tell points of one line apart, where only the ends of runs count.
    point: Vec<String>,
    readings: Vec<Reading>,
}

/// Values of the columns that tell panels apart, and of those that tell lines apart.
type Place = (Vec<String>, Vec<String>);

/// Lines, or pieces of them, by the values that tell them apart.
type Pieces<'a> = Vec<(&'a [String], Vec<Point>)>;

/// Answers a question from tables of one kind.
///
/// # Errors
/// If a column is missing or holds no numbers, if no row has both values, or if more lines than can be told apart were
/// needed.
pub fn chart(tables: &[Table], question: &Question) -> Result<Chart, PlotError> {
    let (x, y) = (Sum::new(tables, &question.x)?, Sum::new(tables, &question.y)?);
    let all = |names: &[String]| names.iter().map(|name| resolve(tables, name)).collect::<Result<Vec<_>, _>>();
    let facet = all(&question.facet)?;
    let group = match &question.group {
        Some(names) => all(names)?,
        None => differences(tables, &[&x.parts[..], &facet[..]].concat()),
    };
    let mut notes = Vec::new();
    let mut traces = traces(tables, question, &x, &y, &facet, &group)?;
    drop_repetitions(tables, &mut traces, &mut notes);
    tell_gaps(&traces, question, &mut notes);
    let mut seeds = Vec::new();
    let panels = pieces(&traces, question, &group, &mut seeds, &mut notes);
    let mut rows: Vec<&[String]> = panels.iter().flat_map(|(_, lines)| lines.iter().map(|(place, _)| *place)).collect();
    rows.sort_by(|a, b| natural(a, b));
    rows.dedup();
    check_lines(rows.len(), question)?;
    let panels = panels.into_iter().map(|(facets, lines)| {
        let title = group::names(&facet, &[facets]).remove(0);
        let place = |row: &[String]| rows.iter().position(|other| *other == row).expect("every line has a name");
        let mut lines: Vec<Line> = lines.into_iter().map(|(row, points)| Line { name: place(row), points }).collect();
        lines.sort_by_key(|line| line.name);
        let reference = match question.reference {
            Some(column) => bound(tables, &x, column, &facet, facets, question.log.y),
            None => Vec::new(),
        };
        Panel { title: if facet.is_empty() { String::new() } else { title }, lines, reference }
    });
    let mut panels: Vec<Panel> = panels.collect();
    let mut reference = question.reference.map(|column| column.replace('_', " "));
    let mut members = Vec::new();
    if question.front {
        panels.iter_mut().for_each(|panel| members.extend(front::mark(panel)));
        reference = Some("Pareto front".to_owned());
    }
    members.sort_unstable();
    members.dedup();
    let (x, y) = (x.axis(question.log.x), y.axis(question.log.y));
    Ok(Chart {
        title: question.title.clone().unwrap_or_else(|| title(tables, &x, &y, question.last)),
        subtitle: subtitle(&seeds, question),
        x,
        y,
        names: group::names(&group, &rows),
        families: families(&rows),
        front: members,
        reference: reference.filter(|_| panels.iter().any(|panel| panel.reference.len() > 1)),
        panels,
        sources: tables.iter().map(|table| table.source.clone()).collect(),
        notes,
    })
}

/// The lines of every panel, those that are broken as several pieces; how many seeds a line has is added to `seeds`.
fn pieces<'a>(
    traces: &'a BTreeMap<Place, Vec<Trace>>,
    question: &Question,
    group: &[String],
    seeds: &mut Vec<usize>,
    notes: &mut Vec<String>,
) -> Vec<(&'a [String], Pieces<'a>)> {
    let mut panels: BTreeMap<&[String], Pieces<'_>> = BTreeMap::new();
    for ((facets, place), of_seeds) in traces {
        let points = if question.last {
            ends(of_seeds, seeds)
        } else {
            seeds.push(of_seeds.len());
            let name = group::names(group, &[place.as_slice()]).remove(0);
            combine(of_seeds, &name, notes)
        };
        let is_gap = |point: &Point| !(point.x.is_finite() && point.y.is_finite());
        let pieces = points.split(is_gap).filter(|piece| !piece.is_empty());
        panels.entry(facets).or_default().extend(pieces.map(|piece| (place.as_slice(), piece.to_vec())));
    }
    let mut panels: Vec<_> = panels.into_iter().filter(|(_, pieces)| !pieces.is_empty()).collect();
    panels.sort_by(|a, b| natural(a.0, b.0));
    panels
}

/// Refuses a figure whose lines could not be told apart, or that compares nothing.
fn check_lines(lines: usize, question: &Question) -> Result<(), PlotError> {
    if lines > LINES {
        return Err(PlotError::TooManyLines(format!(
            "the figure would have {lines} lines, but no more than {LINES} can be told apart: choose fewer columns \
             with --group, or spread them over panels with --facet"
        )));
    }
    if question.front && lines < 2 {
        return Err(PlotError::NoValues("a Pareto front compares groups of runs, but there is only one".to_owned()));
    }
    Ok(())
}

/// A sum of columns; mostly one.
struct Sum {
    parts: Vec<String>,
}

impl Sum {
    fn new(tables: &[Table], text: &str) -> Result<Self, PlotError> {
        let parts = text.split('+').map(|name| resolve(tables, name.trim())).collect::<Result<Vec<_>, _>>()?;
        for name in &parts {
            let mut cells =
                tables.iter().filter_map(|table| Some((table, table.column(name)?))).flat_map(|(table, column)| {
                    table.rows.iter().map(move |row| column.cell(row)).filter(|cell| !cell.is_empty())
                });
            let first = cells.next();
            if let Some(cell) =
                first.filter(|cell| cell.parse::<f64>().is_err() && cells.all(|cell| cell.parse::<f64>().is_err()))
            {
                return Err(PlotError::input(format!("column `{name}` holds no numbers, but for example `{cell}`")));
            }
        }
        Ok(Self { parts })
    }

    fn columns<'a>(&self, table: &'a Table) -> Option<Vec<Column<'a>>> {
        self.parts.iter().map(|name| table.column(name)).collect()
    }

    fn axis(&self, log: bool) -> Axis {
        let known = match self.parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["cumulative_uplink_bits"] => Some("uplink traffic"),
            ["cumulative_downlink_bits"] => Some("downlink traffic"),
            ["cumulative_uplink_bits", "cumulative_downlink_bits", "cumulative_peer_bits"] => Some("total traffic"),
            ["simulated_seconds"] => Some("simulated time"),
            ["nmse"] => Some("normalised squared error"),
            _ => None,
        };
        let plain = |name: &String| {
            let name =
                ["_bits", "_seconds"].iter().fold(name.as_str(), |name, unit| name.strip_suffix(unit).unwrap_or(name));
            name.replace(['_', '.'], " ")
        };
        let label = known.map_or_else(|| self.parts.iter().map(plain).collect::<Vec<_>>().join(" + "), str::to_owned);
        let all_end = |ending: &str| self.parts.iter().all(|name| name.ends_with(ending));
        let unit = if all_end("_bits") {
            Unit::Bits
        } else if all_end("accuracy") {
            Unit::Percent
        } else if all_end("_seconds") {
            Unit::Seconds
        } else {
            Unit::Plain
        };
        Axis { label, unit, log }
    }
}

/// The sum of the cells of a row, if all of them are numbers; not finite if one of them is not.
fn value(columns: &[Column<'_>], row: &StringRecord) -> Option<f64> {
    columns.iter().try_fold(0.0, |sum, column| Some(sum + column.cell(row).parse::<f64>().ok()?))
}

fn finite(columns: &[Column<'_>], row: &StringRecord) -> Option<f64> {
    value(columns, row).filter(|value| value.is_finite())
}

fn traces(
    tables: &[Table],
    question: &Question,
    x: &Sum,
    y: &Sum,
    facet: &[String],
    group: &[String],
) -> Result<BTreeMap<Place, Vec<Trace>>, PlotError> {
    let mut traces: BTreeMap<Place, Vec<Trace>> = BTreeMap::new();
    let apart = if question.last { differences(tables, &[facet, group].concat()) } else { Vec::new() };
    let gap = |x: f64, y: f64| match (x.is_finite() && y.is_finite(), question.log.x && x <= 0.0, question.log.y) {
        (false, ..) => Some(Gap::NotFinite),
        (_, true, _) => Some(Gap::NotAboveZero),
        (.., true) if y <= 0.0 => Some(Gap::NotAboveZero),
        _ => None,
    };
    for (number, table) in tables.iter().enumerate() {
        let (Some(xs), Some(ys)) = (x.columns(table), y.columns(table)) else { continue };
        let rounds = table.column("round").filter(|_| table.kind == Kind::Rounds);
        let deviation = question.deviation.and_then(|name| table.column(name));
        let seed = table.column("seed");
        let cells = |names: &[String], row: &StringRecord| -> Vec<String> {
            names.iter().map(|name| table.column(name).map_or("", |column| column.cell(row)).to_owned()).collect()
        };
        for row in &table.rows {
            // A cell without a number is none: not every round is evaluated.
            let (Some(x), Some(y)) = (value(&xs, row), value(&ys, row)) else { continue };
            let gap = gap(x, y);
            let key = rounds.and_then(|column| finite(&[column], row)).unwrap_or(x);
            let deviation = deviation.and_then(|column| finite(&[column], row)).unwrap_or(0.0);
            let seed = seed.map_or("", |column| column.cell(row));
            let of_seeds = traces.entry((cells(facet, row), cells(group, row))).or_default();
            let same = |trace: &&mut Trace| trace.seed == seed && (table.kind != Kind::Rounds || trace.table == number);
            let reading = Reading { key, x, y: if gap.is_some() { f64::NAN } else { y }, deviation, gap };
            match of_seeds.iter_mut().rev().find(same) {
                Some(trace) => trace.readings.push(reading),
                None => of_seeds.push(Trace {
                    seed: seed.to_owned(),
                    table: number,
                    point: cells(&apart, row),
                    readings: vec![reading],
                }),
            }
        }
    }
    for trace in traces.values_mut().flatten() {
        trace.readings.sort_by(|a, b| a.key.total_cmp(&b.key));
        if question.last {
            trace.readings.drain(..trace.readings.len() - 1);
        }
    }
    if traces.values().flatten().flat_map(|trace| &trace.readings).all(|reading| reading.gap.is_some()) {
        let positive =
            if question.log.x || question.log.y { ", both above zero where the axis is logarithmic" } else { "" };
        return Err(PlotError::NoValues(format!(
            "no row has numbers in both `{}` and `{}`{positive}",
            x.parts.join("+"),
            y.parts.join("+")
        )));
    }
    Ok(traces)
}

/// Says how many rows show nothing although they have values.
fn tell_gaps(traces: &BTreeMap<Place, Vec<Trace>>, question: &Question, notes: &mut Vec<String>) {
    let readings = || traces.values().flatten().flat_map(|trace| &trace.readings);
    for (gap, why) in [
        (Gap::NotFinite, "not finite, and lines are broken there"),
        (Gap::NotAboveZero, "not above zero, and have no place on a logarithmic axis"),
    ] {
        let n = readings().filter(|reading| reading.gap == Some(gap)).count();
        if n > 0 {
            let rows = if n == 1 { "1 row is".to_owned() } else { format!("{n} rows are") };
            notes.push(format!("`{}` against `{}`: {rows} left out, whose values are {why}", question.y, question.x));
        }
    }
}

/// The same seed of the same settings counts once: it would make the band too narrow.
fn drop_repetitions(tables: &[Table], traces: &mut BTreeMap<Place, Vec<Trace>>, notes: &mut Vec<String>) {
    for of_seeds in traces.values_mut() {
        let mut kept: Vec<Trace> = Vec::new();
        for trace in of_seeds.drain(..) {
            match kept.iter().find(|other| (&other.seed, &other.point) == (&trace.seed, &trace.point)) {
                Some(other) => notes.push(format!(
                    "`{}` has the seed and the group of `{}`: only the latter is shown; --group can tell them apart",
                    shown(&tables[trace.table]),
                    shown(&tables[other.table])
                )),
                None => kept.push(trace),
            }
        }
        *of_seeds = kept;
    }
}

/// A run by its file, or in a file of several by its name.
fn shown(table: &Table) -> String {
    if table.axes().is_empty() { table.path.display().to_string() } else { table.source.clone() }
}

/// A value with its band; that of one seed has the band of its deviation.
fn point(values: &[&Reading]) -> Option<Point> {
    if let [only] = values {
        let half = 1.96 * only.deviation.abs();
        return Some(Point { x: only.x, y: only.y, low: only.y - half, high: only.y + half });
    }
    let x = values.iter().map(|reading| reading.x).sum::<f64>() / values.len() as f64;
    let spread = Spread::of(&values.iter().map(|reading| reading.y).collect::<Vec<_>>())?;
    Some(Point { x, y: spread.mean, low: spread.low, high: spread.high })
}

/// The ends of runs, those that differ in the seed alone as one point; how many those are is added to `seeds`.
///
/// Where one of them has no value there is no mean: that of the others would flatter.
fn ends(traces: &[Trace], seeds: &mut Vec<usize>) -> Vec<Point> {
    let mut by_point: BTreeMap<&[String], Vec<&Reading>> = BTreeMap::new();
    for trace in traces {
        by_point.entry(&trace.point).or_default().extend(trace.readings.last());
    }
    seeds.extend(by_point.values().map(Vec::len));
    let mut points: Vec<Point> = by_point.values().filter_map(|readings| point(readings)).collect();
    points.retain(|point| point.x.is_finite());
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// The line of a group: its only seed, or the mean of several where all of them have values.
fn combine(traces: &[Trace], name: &str, notes: &mut Vec<String>) -> Vec<Point> {
    if let [only] = traces {
        return only.readings.iter().filter_map(|reading| point(&[reading])).collect();
    }
    let mut keys: Vec<f64> = traces.iter().flat_map(|trace| trace.readings.iter().map(|reading| reading.key)).collect();
    keys.retain(|key| key.is_finite());
    keys.sort_by(f64::total_cmp);
    keys.dedup();
    let end = |trace: &Trace| trace.readings.last().map_or(f64::NEG_INFINITY, |reading| reading.key);
    let shortest = traces.iter().map(end).fold(f64::INFINITY, f64::min);
    if keys.last().is_some_and(|longest| *longest > shortest) {
        let name = if name.is_empty() { String::new() } else { format!(" of `{name}`") };
        notes.push(format!(
            "the seeds{name} end at different places: their mean is shown as far as the shortest goes, {shortest}"
        ));
    }
    let at = |key: f64| -> Option<Point> {
        let values: Vec<Reading> = traces.iter().filter_map(|trace| interpolate(&trace.readings, key)).collect();
        if values.len() < traces.len() { None } else { point(&values.iter().collect::<Vec<_>>()) }
    };
    keys.into_iter().filter_map(at).collect()
}

/// The reading at a key between the first and the last; a gap beside it makes it one.
fn interpolate(readings: &[Reading], key: f64) -> Option<Reading> {
    let after = readings.partition_point(|reading| reading.key < key);
    let right = readings.get(after)?;
    if right.key == key {
        return Some(*right);
    }
    let left = readings.get(after.checked_sub(1)?)?;
    let share = (key - left.key) / (right.key - left.key);
    let between = |a: f64, b: f64| a + share * (b - a);
    Some(Reading { key, x: between(left.x, right.x), y: between(left.y, right.y), ..*left })
}

/// The smallest bound at every place to the right.
fn bound(tables: &[Table], x: &Sum, column: &str, facet: &[String], panel: &[String], log: bool) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for table in tables {
        let (Some(xs), Some(bound)) = (x.columns(table), table.column(column)) else { continue };
        let here = |row: &StringRecord| {
            facet
                .iter()
                .zip(panel)
                .all(|(name, value)| table.column(name).map_or("", |column| column.cell(row)) == value)
        };
        let rows = table.rows.iter().filter(|row| here(row));
        points.extend(rows.filter_map(|row| Some((finite(&xs, row)?, finite(&[bound], row)?))));
    }
    points.retain(|(_, y)| !log || *y > 0.0);
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup_by(|later, first| later.0 == first.0);
    points
}

fn title(tables: &[Table], x: &Axis, y: &Axis, last: bool) -> String {
    let scenario = |table: &Table| Some(table.column("scenario")?.cell(table.rows.first()?).to_owned());
    let mut scenarios: Vec<String> = tables.iter().filter_map(scenario).collect();
    scenarios.dedup();
    let end = if last { " at the end" } else { "" };
    let mut title = format!("{}{end} against {}", y.label, x.label);
    if let [one] = scenarios.as_slice() {
        title = format!("{one}: {title}");
    } else if let Some(first) = title.get(..1) {
        title = first.to_uppercase() + &title[1..];
    }
    title
}

/// What bands mean, and the front.
fn subtitle(seeds: &[usize], question: &Question) -> String {
    let (least, most) = (seeds.iter().min().copied().unwrap_or(1), seeds.iter().max().copied().unwrap_or(1));
    // The band of a point alone is a bar.
    let bands = if question.front { "bars" } else { "bands" };
    let text = match (least, most) {
        (_, ..=1) if question.deviation.is_some() => "Bands: 95 % confidence".to_owned(),
        (_, ..=1) => String::new(),
        (2, 2) => format!("Means of 2 seeds; {bands} from one to the other"),
        (least, most) if least == most => format!("Means of {most} seeds; {bands}: 95 % confidence of the mean"),
        (least, 2) => format!("Means of {least} to 2 seeds; {bands} from one to the other"),
        (3.., _) => format!("Means of {least} to {most} seeds; {bands}: 95 % confidence of the mean"),
        _ => format!(
            "Means of {least} to {most} seeds; {bands}: 95 % confidence of the mean, for 2 seeds from one to the other"
        ),
    };
    let front = if question.front { "Bold: no other is better with fewer bits" } else { "" };
    [text.as_str(), front].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Log, Shape, draw};

    fn trace(seed: &str, readings: &[(f64, f64, f64)]) -> Trace {
        let readings = readings.iter().map(|&(key, x, y)| Reading { key, x, y, deviation: 0.0, gap: None }).collect();
        Trace { seed: seed.to_owned(), table: 0, point: Vec::new(), readings }
    }

    #[test]
    fn seeds_meet_in_the_same_round() {
        let traces = [
            trace("0", &[(1.0, 100.0, 0.2), (3.0, 300.0, 0.6)]),
            trace("1", &[(1.0, 120.0, 0.4), (2.0, 240.0, 0.6), (3.0, 360.0, 0.8), (4.0, 480.0, 0.9)]),
        ];
        let mut notes = Vec::new();
        let points = combine(&traces, "top-k", &mut notes);
        let means: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(means, [(110.0, 0.30000000000000004), (220.0, 0.5), (330.0, 0.7)]);
        assert_eq!((points[1].low, points[1].high), (0.4, 0.6));
        assert!(notes[0].contains("`top-k`") && notes[0].ends_with("goes, 3"), "{notes:?}");
    }
    fn tables(text: &str) -> Vec<Table> {
        Table::parse(std::path::Path::new("sweep.csv"), text.as_bytes(), &mut Vec::new()).expect("a table")
    }

    /// A table of rounds: run, seed, round, accuracy, loss, bits.
    fn rounds(rows: &[&str]) -> Vec<Table> {
        let head = "uplink.operator,run,seed,round,test_accuracy,test_loss,cumulative_uplink_bits\n";
        tables(&rows.iter().fold(head.to_owned(), |text, row| text + row + "\n"))
    }

    fn ask(x: &str, y: &str, log_y: bool) -> Question {
        Question { x: x.to_owned(), y: y.to_owned(), log: Log { x: false, y: log_y }, ..Question::default() }
    }

    fn pieces(chart: &Chart) -> Vec<Vec<f64>> {
        let lines = chart.panels.iter().flat_map(|panel| &panel.lines);
        lines.map(|line| line.points.iter().map(|point| point.x).collect()).collect()
    }

    #[test]
    fn what_a_logarithmic_axis_cannot_show_is_left_out_and_counted() {
        let rows = ["top-k,a,0,1,,0,1", "top-k,a,0,2,,-3,2", "top-k,a,0,3,,0.5,3", "top-k,a,0,4,,0.25,4"];
        let chart = chart(&rounds(&rows), &ask("round", "test_loss", true)).unwrap();
        assert_eq!(pieces(&chart), [[3.0, 4.0]]);
        assert!(chart.notes[0].contains("2 rows are left out") && chart.notes[0].contains("logarithmic"), "{chart:?}");
        let error = super::chart(&rounds(&rows[..2]), &ask("round", "test_loss", true)).unwrap_err();
        assert!(matches!(&error, PlotError::NoValues(text) if text.contains("above zero")), "{error}");
        // The same values have their place on a linear axis.
        assert!(super::chart(&rounds(&rows[..2]), &ask("round", "test_loss", false)).unwrap().notes.is_empty());
    }

    #[test]
    fn values_that_are_not_finite_break_the_line_and_empty_cells_do_not() {
        let values = ["0.5", "0.4", "NaN", "0.3", "", "0.2", "inf", "-inf", "0.1"];
        let rows: Vec<String> = values.iter().zip(1..).map(|(y, i)| format!("top-k,a,0,{i},,{y},{i}")).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let chart = chart(&rounds(&rows), &ask("round", "test_loss", false)).unwrap();
        assert_eq!(pieces(&chart), [vec![1.0, 2.0], vec![4.0, 6.0], vec![9.0]]);
        assert!(chart.notes[0].contains("3 rows are left out") && chart.notes[0].contains("not finite"), "{chart:?}");
        let scene = draw(&chart, None);
        let all = scene.shapes.iter().flat_map(|shape| match shape {
            Shape::Line { points, .. } | Shape::Area { points, .. } => points.clone(),
            Shape::Text { at, .. } => vec![*at],
        });
        assert!(all.into_iter().all(|(x, y)| x.is_finite() && y.is_finite()));
        // One name, however many pieces.
        assert_eq!((chart.names.len(), chart.families.len()), (1, 1));
    }

    #[test]
    fn a_gap_of_one_seed_is_a_gap_of_the_mean() {
        let rows = [
            "x,a,0,1,,0.5,1",
            "x,a,0,2,,NaN,2",
            "x,a,0,3,,0.3,3",
            "x,b,1,1,,0.7,1",
            "x,b,1,2,,0.6,2",
            "x,b,1,3,,0.5,3",
        ];
        let of_rounds = chart(&rounds(&rows), &ask("round", "test_loss", false)).unwrap();
        assert_eq!(pieces(&of_rounds), [[1.0], [3.0]]);
        // A run that ends without a value has no end, and the mean of the others would flatter.
        let last = Question { last: true, ..ask("round", "test_loss", false) };
        let rows = ["x,a,0,1,,0.5,1", "x,a,0,2,,NaN,2", "x,b,1,1,,0.7,1", "x,b,1,2,,0.6,2", "y,c,0,2,,0.6,2"];
        let ends = chart(&rounds(&rows), &last).unwrap();
        assert_eq!((ends.names, ends.notes.len()), (vec!["y".to_owned()], 1));
    }

    #[test]
    fn one_row_is_a_figure() {
        let tables = rounds(&["top-k,a,0,1,0.5,1.0,8000"]);
        for (x, log) in [("round", false), ("cumulative_uplink_bits", true)] {
            let chart =
                chart(&tables, &Question { log: Log { x: log, y: log }, ..ask(x, "test_accuracy", log) }).unwrap();
            let scene = draw(&chart, None);
            assert_eq!(scene.hints.len(), 1);
            let labels = scene.shapes.iter().filter(|shape| matches!(shape, Shape::Text { .. })).count();
            assert!(labels >= 5, "{scene:?}");
        }
    }

    #[test]
    fn more_lines_than_can_be_told_apart_are_refused_with_a_way_out() {
        let rows = |n: usize| (0..n).map(|i| format!("operator-{i},run-{i},0,1,0.5,1,8000")).collect::<Vec<_>>();
        let tables = |n: usize| rounds(&rows(n).iter().map(String::as_str).collect::<Vec<_>>());
        let question = ask("round", "test_accuracy", false);
        assert_eq!(chart(&tables(LINES), &question).unwrap().names.len(), LINES);
        let error = chart(&tables(LINES + 1), &question).unwrap_err();
        let told = ["101 lines", "100", "--group", "--facet"];
        assert!(told.iter().all(|wanted| error.to_string().contains(wanted)), "{error}");
        assert!(matches!(error, PlotError::TooManyLines(_)));
    }
}
