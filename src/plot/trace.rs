//! From rows to the readings of each seed, and from the seeds of a group to one line with a band.

use std::collections::BTreeMap;

use csv::StringRecord;

use super::{
    Kind, PlotError, Point, Question, Spread, Table,
    column::{Sum, finite, value},
    group::{differences, repetition},
};

/// Where a point stands in its run, and what it shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
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
pub(super) enum Gap {
    NotFinite,
    NotAboveZero,
}

/// The readings of one seed.
pub(super) struct Trace {
    seed: String,
    table: usize,
    /// Values of the settings that tell points of one line apart, where only the ends of runs count.
    point: Vec<String>,
    readings: Vec<Reading>,
}

/// Values of the columns that tell panels apart, and of those that tell lines apart.
pub(super) type Place = (Vec<String>, Vec<String>);

/// The readings of every seed, by panel and line.
///
/// # Errors
/// If no row has both values.
pub(super) fn traces(
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
pub(super) fn tell_gaps(traces: &BTreeMap<Place, Vec<Trace>>, question: &Question, notes: &mut Vec<String>) {
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
///
/// # Errors
/// If runs of other settings were taken for repetitions.
pub(super) fn drop_repetitions(
    tables: &[Table],
    traces: &mut BTreeMap<Place, Vec<Trace>>,
    notes: &mut Vec<String>,
) -> Result<(), PlotError> {
    for of_seeds in traces.values_mut() {
        let mut kept: Vec<Trace> = Vec::new();
        for trace in of_seeds.drain(..) {
            match kept.iter().find(|other| (&other.seed, &other.point) == (&trace.seed, &trace.point)) {
                Some(other) => notes.push(repetition(&tables[other.table], &tables[trace.table])?),
                None => kept.push(trace),
            }
        }
        *of_seeds = kept;
    }
    Ok(())
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
pub(super) fn ends(traces: &[Trace], seeds: &mut Vec<usize>) -> Vec<Point> {
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
pub(super) fn combine(traces: &[Trace], name: &str, notes: &mut Vec<String>) -> Vec<Point> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
