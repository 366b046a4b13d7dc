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
    fn columns(self) -> &'static str {
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

    /// What it shows, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::AccuracyBits => "Test accuracy against cumulative bits",
            Self::AccuracyRounds => "Test accuracy against rounds",
            Self::Loss => "Test loss against cumulative bits",
            Self::Distance => "Distance to the optimum against cumulative bits",
            Self::Time => "Test accuracy against simulated time",
            Self::Final => "Test accuracy at the end against the ratio, or what else runs differ in, or bits",
            Self::Pareto => "Test accuracy at the end against all bits, and the settings that no other beats in both",
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
            Self::Pareto => {
                Question { last: true, front: true, ..of(Bits::Total.columns(), "test_accuracy", true, false) }
            }
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

/// The numeric setting in which runs differ, a ratio before others. Those in which runs of one operator differ come first,
/// as long as they are the same for all operators that have any.
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
