//! Lines of a chart: rows are told apart by their group, and the seeds of a group become one line with a band.

use std::{cmp::Ordering, collections::BTreeMap};

use csv::StringRecord;

use super::{
    Axis, Chart, Kind, Line, Panel, PlotError, Point, Question, Spread, Table, Unit,
    table::{Column, last_part, resolve},
};

/// Where a point stands in its run, and what it shows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    /// Round, or place to the right: what the same moment of two seeds has in common.
    key: f64,
    x: f64,
    y: f64,
    deviation: f64,
}

/// The readings of one seed.
struct Trace {
    seed: String,
    table: usize,
    readings: Vec<Reading>,
}

/// Values of the columns that tell panels apart, and of those that tell lines apart.
type Place = (Vec<String>, Vec<String>);

/// Answers a question from tables of one kind.
///
/// # Errors
/// If a column is missing or holds no numbers, or if no row has both values.
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
    if question.last {
        keep_last(&mut traces);
    } else {
        drop_repetitions(tables, &mut traces, &mut notes);
    }
    let mut rows: Vec<&[String]> = traces.keys().map(|(_, group)| group.as_slice()).collect();
    rows.sort_by(|a, b| natural(a, b));
    rows.dedup();
    let names = names(&group, &rows);
    let mut panels: Vec<(Vec<String>, Panel)> = Vec::new();
    let mut seeds = Vec::new();
    for ((facets, place), of_seeds) in &traces {
        let name = rows.iter().position(|row| row == place).expect("every group has a name");
        seeds.push(of_seeds.len());
        let points = combine(of_seeds, &names[name], question.last, &mut notes);
        if points.is_empty() {
            continue;
        }
        if panels.iter().all(|(key, _)| key != facets) {
            let title = self::names(&facet, &[facets.as_slice()]).remove(0);
            panels.push((facets.clone(), Panel { title, ..Panel::default() }));
        }
        let panel = panels.iter_mut().find(|(key, _)| key == facets).expect("it has just been made");
        panel.1.lines.push(Line { name, points });
    }
    panels.sort_by(|a, b| natural(&a.0, &b.0));
    for (_, panel) in &mut panels {
        panel.lines.sort_by_key(|line| line.name);
    }
    let mut reference = None;
    if let Some(column) = question.reference {
        for (key, panel) in &mut panels {
            panel.reference = bound(tables, &x, column, &facet, key, question.log.y);
        }
        let drawn = panels.iter().any(|(_, panel)| panel.reference.len() > 1);
        reference = drawn.then(|| column.replace('_', " "));
    }
    if facet.is_empty() {
        panels.iter_mut().for_each(|(_, panel)| panel.title.clear());
    }
    let (x, y) = (x.axis(question.log.x), y.axis(question.log.y));
    Ok(Chart {
        title: question.title.clone().unwrap_or_else(|| title(tables, &x, &y)),
        subtitle: subtitle(&seeds, question.deviation.is_some()),
        x,
        y,
        names,
        reference,
        panels: panels.into_iter().map(|(_, panel)| panel).collect(),
        sources: tables.iter().map(|table| table.source.clone()).collect(),
        notes,
    })
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

/// The sum of the cells of a row, if all of them are finite numbers.
fn value(columns: &[Column<'_>], row: &StringRecord) -> Option<f64> {
    let mut sum = 0.0;
    for column in columns {
        sum += column.cell(row).parse::<f64>().ok().filter(|value| value.is_finite())?;
    }
    Some(sum)
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
    let shows = |axis: bool, value: f64| !axis || value > 0.0;
    for (number, table) in tables.iter().enumerate() {
        let (Some(xs), Some(ys)) = (x.columns(table), y.columns(table)) else { continue };
        let rounds = table.column("round").filter(|_| table.kind == Kind::Rounds);
        let deviation = question.deviation.and_then(|name| table.column(name));
        let seed = table.column("seed");
        let cells = |names: &[String], row: &StringRecord| -> Vec<String> {
            names.iter().map(|name| table.column(name).map_or("", |column| column.cell(row)).to_owned()).collect()
        };
        for row in &table.rows {
            let (Some(x), Some(y)) = (value(&xs, row), value(&ys, row)) else { continue };
            if !shows(question.log.x, x) || !shows(question.log.y, y) {
                continue;
            }
            let key = rounds.map_or(Some(x), |column| value(&[column], row)).unwrap_or(x);
            let deviation = deviation.and_then(|column| value(&[column], row)).unwrap_or(0.0);
            let seed = seed.map_or("", |column| column.cell(row));
            let of_seeds = traces.entry((cells(facet, row), cells(group, row))).or_default();
            let same = |trace: &&mut Trace| trace.seed == seed && (table.kind != Kind::Rounds || trace.table == number);
            let reading = Reading { key, x, y, deviation };
            match of_seeds.iter_mut().rev().find(same) {
                Some(trace) => trace.readings.push(reading),
                None => of_seeds.push(Trace { seed: seed.to_owned(), table: number, readings: vec![reading] }),
            }
        }
    }
    if traces.is_empty() {
        let positive =
            if question.log.x || question.log.y { ", both above zero where the axis is logarithmic" } else { "" };
        return Err(PlotError::NoValues(format!(
            "no row has numbers in both `{}` and `{}`{positive}",
            x.parts.join("+"),
            y.parts.join("+")
        )));
    }
    for trace in traces.values_mut().flatten() {
        trace.readings.sort_by(|a, b| a.key.total_cmp(&b.key));
    }
    Ok(traces)
}

/// Settings, or else columns, in which tables of rounds differ and which are needed to tell them apart.
pub(super) fn differences(tables: &[Table], shown: &[String]) -> Vec<String> {
    if tables.iter().all(|table| table.kind == Kind::Other) {
        return Vec::new();
    }
    let has_settings = tables.iter().all(|table| !table.settings.is_empty());
    let mut candidates: Vec<&str> = Vec::new();
    if has_settings {
        candidates = tables.iter().flat_map(|table| table.settings.keys().map(String::as_str)).collect();
        candidates
            .sort_by_key(|key| (last_part(key) != "operator", last_part(key) != "name", !key.contains('.'), *key));
        candidates.dedup();
    } else {
        candidates.extend(["operator", "method", "scenario"]);
    }
    candidates.retain(|name| *name != "seed" && shown.iter().all(|other| other != name));
    let cell = |table: &Table, name: &str| -> String {
        let first = table.column(name).zip(table.rows.first()).map(|(column, row)| column.cell(row).to_owned());
        first.unwrap_or_default()
    };
    // Which tables are told apart so far; a column that does not tell more of them apart would only make names longer.
    let mut classes: Vec<Vec<String>> = vec![Vec::new(); tables.len()];
    let count = |classes: &[Vec<String>]| classes.iter().collect::<std::collections::BTreeSet<_>>().len();
    let mut chosen = Vec::new();
    let mut try_column = |name: &str, classes: &mut Vec<Vec<String>>| {
        let mut finer = classes.clone();
        for (class, table) in finer.iter_mut().zip(tables) {
            class.push(cell(table, name));
        }
        if count(&finer) > count(classes) {
            *classes = finer;
            chosen.push(name.to_owned());
        }
    };
    for name in candidates {
        try_column(name, &mut classes);
    }
    if !has_settings {
        // Two runs of one seed that nothing else tells apart are no repetitions that could be averaged.
        let seeds: Vec<_> =
            tables.iter().zip(&classes).map(|(table, class)| (class.clone(), cell(table, "seed"))).collect();
        let repeated = seeds.iter().enumerate().any(|(i, seed)| seeds[..i].contains(seed));
        if repeated {
            try_column("run", &mut classes);
        }
    }
    chosen
}

/// Only the end of every run counts: runs of one seed become one trace.
fn keep_last(traces: &mut BTreeMap<Place, Vec<Trace>>) {
    for of_seeds in traces.values_mut() {
        let mut merged: Vec<Trace> = Vec::new();
        for trace in of_seeds.drain(..) {
            let Some(last) = trace.readings.last() else { continue };
            let reading = Reading { key: last.x, ..*last };
            match merged.iter_mut().find(|other| other.seed == trace.seed) {
                Some(other) if other.readings.iter().any(|reading| reading.x == last.x) => {}
                Some(other) => other.readings.push(reading),
                None => merged.push(Trace { readings: vec![reading], ..trace }),
            }
        }
        for trace in &mut merged {
            trace.readings.sort_by(|a, b| a.key.total_cmp(&b.key));
        }
        *of_seeds = merged;
    }
}

/// The same seed of the same settings counts once: it would make the band too narrow.
fn drop_repetitions(tables: &[Table], traces: &mut BTreeMap<Place, Vec<Trace>>, notes: &mut Vec<String>) {
    for of_seeds in traces.values_mut() {
        let mut kept: Vec<Trace> = Vec::new();
        for trace in of_seeds.drain(..) {
            match kept.iter().find(|other| other.seed == trace.seed) {
                Some(other) => notes.push(format!(
                    "`{}` has the seed and the group of `{}`: only the latter is shown; --group can tell them apart",
                    tables[trace.table].path.display(),
                    tables[other.table].path.display()
                )),
                None => kept.push(trace),
            }
        }
        *of_seeds = kept;
    }
}

/// The line of a group: its only seed, or the mean of several where all of them have values.
fn combine(traces: &[Trace], name: &str, last: bool, notes: &mut Vec<String>) -> Vec<Point> {
    if let [only] = traces {
        let point = |r: &Reading| {
            let half = 1.96 * r.deviation.abs();
            Point { x: r.x, y: r.y, low: r.y - half, high: r.y + half }
        };
        return only.readings.iter().map(point).collect();
    }
    let mut keys: Vec<f64> = traces.iter().flat_map(|trace| trace.readings.iter().map(|reading| reading.key)).collect();
    keys.sort_by(f64::total_cmp);
    keys.dedup();
    let end = |trace: &Trace| trace.readings.last().map_or(f64::NEG_INFINITY, |reading| reading.key);
    let shortest = traces.iter().map(end).fold(f64::INFINITY, f64::min);
    if !last && keys.last().is_some_and(|longest| *longest > shortest) {
        let name = if name.is_empty() { String::new() } else { format!(" of `{name}`") };
        notes.push(format!(
            "the seeds{name} end at different places: their mean is shown as far as the shortest goes, {shortest}"
        ));
    }
    let at = |key: f64| -> Option<Point> {
        let here = |trace: &Trace| if last { exact(&trace.readings, key) } else { interpolate(&trace.readings, key) };
        let values: Vec<(f64, f64)> = traces.iter().filter_map(here).collect();
        if values.is_empty() || (!last && values.len() < traces.len()) {
            return None;
        }
        let x = values.iter().map(|(x, _)| x).sum::<f64>() / values.len() as f64;
        let spread = Spread::of(&values.iter().map(|(_, y)| *y).collect::<Vec<_>>())?;
        Some(Point { x, y: spread.mean, low: spread.low, high: spread.high })
    };
    keys.into_iter().filter_map(at).collect()
}

fn exact(readings: &[Reading], key: f64) -> Option<(f64, f64)> {
    readings.iter().find(|reading| reading.key == key).map(|reading| (reading.x, reading.y))
}

/// Both values at a key between the first and the last.
fn interpolate(readings: &[Reading], key: f64) -> Option<(f64, f64)> {
    let after = readings.partition_point(|reading| reading.key < key);
    let right = readings.get(after)?;
    if right.key == key {
        return Some((right.x, right.y));
    }
    let left = readings.get(after.checked_sub(1)?)?;
    let share = (key - left.key) / (right.key - left.key);
    Some((left.x + share * (right.x - left.x), left.y + share * (right.y - left.y)))
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
        points.extend(rows.filter_map(|row| Some((value(&xs, row)?, value(&[bound], row)?))));
    }
    points.retain(|(_, y)| !log || *y > 0.0);
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup_by(|later, first| later.0 == first.0);
    points
}

/// Names of groups from the values of their columns.
pub(super) fn names(columns: &[String], rows: &[&[String]]) -> Vec<String> {
    let name = |row: &&[String]| {
        let part = |(column, value): (&String, &String)| {
            let clash = columns.iter().filter(|other| last_part(other) == last_part(column)).count() > 1;
            // The uplink is what one speaks of unless said otherwise.
            let label = match clash && !column.starts_with("uplink.") {
                true => column.replace(['.', '_'], " "),
                false => last_part(column).replace('_', " "),
            };
            let speaks = value.parse::<f64>().is_err() && value.parse::<bool>().is_err();
            match (value.is_empty(), speaks && (!clash || column.starts_with("uplink."))) {
                (true, _) => None,
                (_, true) => Some(value.clone()),
                _ => Some(format!("{label} {value}")),
            }
        };
        columns.iter().zip(row.iter()).filter_map(part).collect::<Vec<_>>().join(", ")
    };
    rows.iter().map(name).collect()
}

/// Numbers by size, other text by its letters.
pub(super) fn natural(a: &[String], b: &[String]) -> Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y),
        _ => a.cmp(b),
    });
    pairs.fold(Ordering::Equal, Ordering::then)
}

fn title(tables: &[Table], x: &Axis, y: &Axis) -> String {
    let scenario = |table: &Table| Some(table.column("scenario")?.cell(table.rows.first()?).to_owned());
    let mut scenarios: Vec<String> = tables.iter().filter_map(scenario).collect();
    scenarios.dedup();
    let mut title = format!("{} against {}", y.label, x.label);
    if let [one] = scenarios.as_slice() {
        title = format!("{one}: {title}");
    } else if let Some(first) = title.get(..1) {
        title = first.to_uppercase() + &title[1..];
    }
    title
}

/// What bands mean.
fn subtitle(seeds: &[usize], deviation: bool) -> String {
    let (least, most) = (seeds.iter().min().copied().unwrap_or(1), seeds.iter().max().copied().unwrap_or(1));
    match (least, most) {
        (_, ..=1) if deviation => "Bands: 95 % confidence".to_owned(),
        (_, ..=1) => String::new(),
        (2, 2) => "Means of 2 seeds; bands from one to the other".to_owned(),
        (least, most) if least == most => format!("Means of {most} seeds; bands: 95 % confidence of the mean"),
        (least, 2) => format!("Means of {least} to 2 seeds; bands from one to the other"),
        (3.., _) => format!("Means of {least} to {most} seeds; bands: 95 % confidence of the mean"),
        _ => format!(
            "Means of {least} to {most} seeds; bands: 95 % confidence of the mean, for 2 seeds from one to the other"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(seed: &str, readings: &[(f64, f64, f64)]) -> Trace {
        let readings = readings.iter().map(|&(key, x, y)| Reading { key, x, y, deviation: 0.0 }).collect();
        Trace { seed: seed.to_owned(), table: 0, readings }
    }

    #[test]
    fn seeds_meet_in_the_same_round() {
        let traces = [
            trace("0", &[(1.0, 100.0, 0.2), (3.0, 300.0, 0.6)]),
            trace("1", &[(1.0, 120.0, 0.4), (2.0, 240.0, 0.6), (3.0, 360.0, 0.8), (4.0, 480.0, 0.9)]),
        ];
        let mut notes = Vec::new();
        let points = combine(&traces, "top-k", false, &mut notes);
        let means: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(means, [(110.0, 0.30000000000000004), (220.0, 0.5), (330.0, 0.7)]);
        assert_eq!((points[1].low, points[1].high), (0.4, 0.6));
        assert!(notes[0].contains("`top-k`") && notes[0].ends_with("goes, 3"), "{notes:?}");
    }

    #[test]
    fn groups_are_named_by_what_tells_them_apart() {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let named = |columns: &[&str], row: &[&str]| names(&text(columns), &[&text(row)]).remove(0);
        assert_eq!(named(&["uplink.operator", "uplink.ratio"], &["top-k", "0.01"]), "top-k, ratio 0.01");
        assert_eq!(named(&["uplink.operator", "uplink.ratio"], &["sign", ""]), "sign");
        assert_eq!(named(&["uplink.operator", "downlink.operator"], &["sign", "qsgd"]), "sign, downlink operator qsgd");
        assert_eq!(named(&["method.local_epochs"], &["5"]), "local epochs 5");
        assert_eq!(natural(&text(&["0.5"]), &text(&["10"])), Ordering::Less);
    }
}
