//! Lines of a chart: rows are told apart by their group, and the seeds of a group become one line with a band.

use std::collections::BTreeMap;

use csv::StringRecord;

use super::{
    Axis, Chart, Line, Panel, PlotError, Point, Question, Table,
    column::{Sum, finite},
    front,
    group::{self, differences, families, natural},
    palette::LINES,
    table::resolve,
    trace::{Place, Trace, combine, drop_repetitions, ends, tell_gaps, traces},
};

/// Lines, or pieces of them, by the values that tell them apart.
type Pieces<'a> = Vec<(&'a [String], Vec<Point>)>;

/// Answers a question from tables of one kind.
///
/// # Errors
/// If a column is missing or holds no numbers, if no row has both values, or if more lines than can be told apart were
/// needed.
pub fn chart(tables: &[Table], question: &Question) -> Result<Chart, PlotError> {
    let (x, y) = (Sum::new(tables, &question.x)?, Sum::new(tables, &question.y)?);
    // A setting is the same in all rounds of a run: against it only the end of the run says anything.
    let question = &Question { last: question.last || x.is_setting(tables), ..question.clone() };
    let all = |names: &[String]| names.iter().map(|name| resolve(tables, name)).collect::<Result<Vec<_>, _>>();
    let facet = all(&question.facet)?;
    let group = match &question.group {
        Some(names) => all(names)?,
        None => differences(tables, &[&x.parts[..], &facet[..]].concat()),
    };
    let mut notes = Vec::new();
    let mut traces = traces(tables, question, &x, &y, &facet, &group)?;
    drop_repetitions(tables, &mut traces, &mut notes)?;
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
