//! What a figure asks: which columns, and how they are shown.

use std::collections::BTreeSet;

use super::{Kind, Table, group::differences, table::last_part};

/// Which way bits went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bits {
    /// From clients to the server.
    #[default]
    Up,
    /// From the server to clients.
    Down,
    /// Both ways and between peers.
    Total,
}

impl Bits {
    /// The sum of columns that counts them.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Up => "cumulative_uplink_bits",
            Self::Down => "cumulative_downlink_bits",
            Self::Total => "cumulative_uplink_bits+cumulative_downlink_bits+cumulative_peer_bits",
        }
    }
}

/// Which axes are logarithmic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The axis to the right.
    pub x: bool,
    /// The axis upwards.
    pub y: bool,
}

/// The figures that need no question of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Accuracy against cumulative bits.
    AccuracyBits,
    /// Accuracy against rounds.
    AccuracyRounds,
    /// Loss against cumulative bits.
    Loss,
    /// Distance to the optimum against cumulative bits.
    Distance,
    /// Accuracy against simulated time.
    Time,
    /// Accuracy at the end against the ratio, or against bits.
    Final,
    /// Accuracy at the end against all bits, and what no other setting beats.
    Pareto,
    /// Error of operators against their bits, and what no operator can beat.
    Laboratory,
}

/// What a figure asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Column to the right, or a sum of columns joined by `+`.
    pub x: String,
    /// Column upwards, or a sum.
    pub y: String,
    /// Columns that tell lines apart. Default: the settings in which runs differ, the seed apart.
    pub group: Option<Vec<String>>,
    /// Columns that tell panels apart.
    pub facet: Vec<String>,
    /// Logarithmic axes.
    pub log: Log,
    /// Heading; made from the axes if absent.
    pub title: Option<String>,
    /// Whether only the last value of every run counts; runs that differ in the seed alone are one point.
    pub last: bool,
    /// Column with the standard error of `y`.
    pub deviation: Option<&'static str>,
    /// Column with a bound for `y`.
    pub reference: Option<&'static str>,
    /// Whether the points that no other beats in both directions are joined.
    pub front: bool,
}

impl Figure {
    /// All of them, the most telling first.
    pub const ALL: [Self; 8] = [
        Self::AccuracyBits,
        Self::AccuracyRounds,
        Self::Loss,
        Self::Distance,
        Self::Time,
        Self::Final,
        Self::Pareto,
        Self::Laboratory,
    ];

    /// Its name, also that of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccuracyBits => "accuracy-bits",
            Self::AccuracyRounds => "accuracy-rounds",
            Self::Loss => "loss",
            Self::Distance => "distance",
            Self::Time => "time",
            Self::Final => "final",
            Self::Pareto => "pareto",
            Self::Laboratory => "laboratory",
        }
    }

    /// Its heading on a page.
    pub fn heading(self) -> &'static str {
        match self {
            Self::AccuracyBits => "Accuracy against bits",
            Self::AccuracyRounds => "Accuracy against rounds",
            Self::Loss => "Loss",
            Self::Distance => "Distance to the optimum",
            Self::Time => "Accuracy against time",
            Self::Final => "Accuracy at the end",
            Self::Pareto => "What is worth its bits",
            Self::Laboratory => "Error against bits",
        }
    }

    /// What it shows, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::AccuracyBits => "Test accuracy against cumulative bits",
            Self::AccuracyRounds => "Test accuracy against rounds",
            Self::Loss => "Test loss against cumulative bits",
            Self::Distance => "Distance to the optimum against cumulative bits",
            Self::Time => "Test accuracy against simulated time",
            Self::Final => "Test accuracy at the end against the ratio, or what else runs differ in, or bits",
            Self::Pareto => "Test accuracy at the end against bits, and the settings that no other beats in both",
            Self::Laboratory => "Error of operators against their bits, with the lower bound",
        }
    }

    /// Whether tables of a kind can answer it.
    pub fn suits(self, kind: Kind) -> bool {
        match self {
            Self::Laboratory => kind == Kind::Laboratory,
            _ => kind == Kind::Rounds,
        }
    }

    /// Its question, put to some tables.
    pub fn question(self, bits: Bits, tables: &[Table]) -> Question {
        let of = |x: &str, y: &str, log_x: bool, log_y: bool| Question {
            x: x.to_owned(),
            y: y.to_owned(),
            log: Log { x: log_x, y: log_y },
            ..Question::default()
        };
        match self {
            Self::AccuracyBits => of(bits.columns(), "test_accuracy", true, false),
            Self::AccuracyRounds => of("round", "test_accuracy", false, false),
            Self::Loss => of(bits.columns(), "test_loss", true, false),
            Self::Distance => of(bits.columns(), "distance_to_optimum", false, true),
            Self::Final => {
                let bits = of(bits.columns(), "test_accuracy", true, false);
                let question = match strength(tables) {
                    Strength::One(x, log) => of(&x, "test_accuracy", log, false),
                    Strength::Several => Question { group: Some(words(tables)), ..bits },
                    Strength::None => of("uplink.ratio", "test_accuracy", true, false),
                };
                Question { last: true, ..question }
            }
            Self::Time => of("simulated_seconds", "test_accuracy", true, false),
            Self::Pareto => Question { last: true, front: true, ..of(bits.columns(), "test_accuracy", true, false) },
            Self::Laboratory => {
                let varies = |name: &&str| {
                    let mut cells = tables
                        .iter()
                        .filter_map(|table| Some((table, table.column(name)?)))
                        .flat_map(|(table, column)| table.rows.iter().map(move |row| column.cell(row)));
                    let first = cells.next();
                    cells.any(|cell| Some(cell) != first)
                };
                Question {
                    group: Some(vec!["operator".to_owned()]),
                    facet: ["vector", "dimension"].into_iter().filter(varies).map(str::to_owned).collect(),
                    deviation: Some("nmse_standard_error"),
                    reference: Some("lower_bound"),
                    ..of("wire_bits_per_coordinate", "nmse", false, true)
                }
            }
        }
    }
}

/// What tells how strongly runs compress.
enum Strength {
    None,
    /// One numeric setting, and whether its range asks for logarithms.
    One(String, bool),
    /// A setting of its own for some operators: only bits compare them.
    Several,
}

/// The numeric setting in which runs differ, a ratio before others. Those in which runs of one operator differ come
/// first, as long as they are the same for all operators that have any.
fn strength(tables: &[Table]) -> Strength {
    let all: Vec<&Table> = tables.iter().collect();
    let operator = |table: &Table| table.settings.get("uplink.operator").cloned();
    let operators: BTreeSet<Option<String>> = tables.iter().map(operator).collect();
    let of_operators = operators.iter().map(|wanted| {
        let tables: Vec<&Table> = tables.iter().filter(|table| operator(table) == *wanted).collect();
        varying(&tables)
    });
    let of_operators: Vec<BTreeSet<&String>> = of_operators.filter(|keys| !keys.is_empty()).collect();
    let keys = match of_operators.split_first() {
        None => varying(&all),
        Some((first, others)) => {
            first.iter().copied().filter(|key| others.iter().all(|keys| keys.contains(key))).collect()
        }
    };
    let best = keys.iter().min_by_key(|key| (last_part(key) != "ratio", !key.starts_with("uplink."), key.as_str()));
    match (best, of_operators.is_empty()) {
        (Some(key), _) => {
            let (low, high) = range(&all, key);
            Strength::One((*key).clone(), low > 0.0 && high > 20.0 * low)
        }
        (None, true) => Strength::None,
        (None, false) => Strength::Several,
    }
}

/// The numeric settings in which tables differ, the seed apart.
fn varying<'a>(tables: &[&'a Table]) -> BTreeSet<&'a String> {
    let keys = tables.iter().flat_map(|table| table.settings.keys()).filter(|key| key.as_str() != "seed");
    let varies = |key: &&String| {
        let (low, high) = range(tables, key);
        high > low
    };
    keys.collect::<BTreeSet<_>>().into_iter().filter(varies).collect()
}

/// The smallest and the largest number of a setting; the wrong way around if there is none.
fn range(tables: &[&Table], key: &str) -> (f64, f64) {
    let values = tables.iter().filter_map(|table| table.settings.get(key)?.parse::<f64>().ok());
    let values = values.filter(|value| value.is_finite());
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The settings in which runs differ that are no numbers, such as the operator.
fn words(tables: &[Table]) -> Vec<String> {
    let is_number = |name: &String| {
        tables.iter().filter_map(|table| table.settings.get(name)).all(|cell| cell.parse::<f64>().is_ok())
    };
    differences(tables, &[]).into_iter().filter(|name| !is_number(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Chart, PlotError, chart};

    /// The end of one run each: its axes, run, seed, accuracy, bits.
    fn sweep(axes: &str, runs: &[(&str, f64, u64)]) -> Vec<Table> {
        let mut text = format!(
            "{axes},run,seed,round,test_accuracy,test_loss,cumulative_uplink_bits,cumulative_downlink_bits,\
             cumulative_peer_bits,simulated_seconds\n"
        );
        for (i, (cells, accuracy, bits)) in runs.iter().enumerate() {
            for seed in 0u32..2 {
                let (accuracy, bits) = (accuracy + 0.01 * f64::from(seed), bits + u64::from(8 * seed));
                text += &format!("{cells},run-{i}-{seed},{seed},1,{accuracy},0.5,{bits},800,0,\n");
            }
        }
        Table::parse(std::path::Path::new("sweep.csv"), text.as_bytes(), &mut Vec::new()).expect("a table")
    }

    fn operators() -> Vec<Table> {
        sweep(
            "uplink.operator,uplink.ratio,uplink.levels",
            &[
                ("top-k,0.01,", 0.5, 1_000),
                ("top-k,0.1,", 0.8, 10_000),
                ("qsgd,,1", 0.6, 20_000),
                ("qsgd,,7", 0.9, 40_000),
                ("identity,,", 0.89, 320_000),
            ],
        )
    }

    fn answer(figure: Figure, tables: &[Table]) -> Result<Chart, PlotError> {
        chart(tables, &figure.question(Bits::Up, tables))
    }

    #[test]
    fn a_sweep_has_these_figures_by_default() {
        let tables = operators();
        let suits = |figure: &Figure| figure.suits(Kind::Rounds) && answer(*figure, &tables).is_ok();
        let names: Vec<&str> = Figure::ALL.into_iter().filter(suits).map(Figure::name).collect();
        assert_eq!(names, ["accuracy-bits", "accuracy-rounds", "loss", "final", "pareto"]);
        let error = answer(Figure::Time, &tables).unwrap_err();
        assert!(matches!(&error, PlotError::NoValues(text) if text.contains("simulated_seconds")), "{error}");
    }

    #[test]
    fn operators_with_parameters_of_their_own_are_compared_by_bits_at_the_end() {
        let chart = answer(Figure::Final, &operators()).unwrap();
        assert_eq!((chart.x.label.as_str(), chart.x.log), ("uplink traffic", true));
        assert_eq!(chart.names, ["identity", "qsgd", "top-k"]);
        let lines = &chart.panels[0].lines;
        // The seeds of a strength are one point, at their mean bits.
        assert_eq!(lines[2].points.iter().map(|point| point.x).collect::<Vec<_>>(), [1_004.0, 10_004.0]);
        assert!((lines[2].points[0].low - 0.5).abs() < 1e-9 && (lines[2].points[0].high - 0.51).abs() < 1e-9);
    }

    #[test]
    fn a_parameter_that_all_operators_have_is_the_axis_at_the_end() {
        let axes = "uplink.operator,uplink.ratio";
        let runs = [("top-k,0.01", 0.5, 1), ("top-k,0.1", 0.6, 2), ("rand-k,0.01", 0.3, 3), ("rand-k,0.1", 0.4, 4)];
        let chart = answer(Figure::Final, &sweep(axes, &runs)).unwrap();
        assert_eq!((chart.x.label.as_str(), chart.names.join(" ").as_str()), ("uplink ratio", "rand-k top-k"));
        assert!(chart.panels[0].lines.iter().all(|line| line.points.len() == 2));
    }

    #[test]
    fn against_a_setting_only_the_ends_of_runs_count_and_unlike_runs_are_never_averaged() {
        let axes = "uplink.operator,uplink.ratio";
        let mut tables = sweep(axes, &[("top-k,0.01", 0.5, 1), ("top-k,0.1", 0.6, 2)]);
        let ask = |group: &str| Question {
            x: "ratio".to_owned(),
            y: "test_accuracy".to_owned(),
            group: Some(vec![group.to_owned()]),
            ..Question::default()
        };
        let figure = chart(&tables, &ask("operator")).unwrap();
        let places: Vec<f64> = figure.panels[0].lines[0].points.iter().map(|point| point.x).collect();
        assert_eq!(places, [0.01, 0.1]);
        // Against rounds the two ratios would be taken for repetitions of each other.
        tables.rotate_left(1);
        let coarse = Question { x: "round".to_owned(), ..ask("operator") };
        let error = chart(&tables, &coarse).unwrap_err();
        assert!(matches!(&error, PlotError::Input(text) if text.contains("differ in `uplink.ratio`")), "{error}");
    }

    #[test]
    fn the_pareto_figure_marks_the_settings_that_no_other_beats() {
        let chart = answer(Figure::Pareto, &operators()).unwrap();
        assert_eq!(
            chart.names,
            ["identity", "qsgd, levels 1", "qsgd, levels 7", "top-k, ratio 0.01", "top-k, ratio 0.1"]
        );
        assert_eq!((chart.front, chart.families), (vec![2, 3, 4], vec![0, 1, 1, 2, 2]));
        assert_eq!((chart.reference.as_deref(), chart.panels[0].reference.len()), (Some("Pareto front"), 5));
        assert_eq!(chart.panels[0].lines[3].points[0].x, 1_004.0);
    }

    #[test]
    fn one_group_has_no_pareto_front() {
        let tables = sweep("uplink.operator", &[("sign", 0.5, 100)]);
        let error = answer(Figure::Pareto, &tables).unwrap_err();
        assert!(matches!(&error, PlotError::NoValues(text) if text.contains("only one")), "{error}");
    }
}
