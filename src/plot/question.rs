//! What a figure asks: which columns, and how they are shown.

use super::{Kind, Table, table::last_part};

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
    /// Accuracy at the end against the ratio.
    Final,
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
    /// Whether only the last value of every run counts.
    pub last: bool,
    /// Column with the standard error of `y`.
    pub deviation: Option<&'static str>,
    /// Column with a bound for `y`.
    pub reference: Option<&'static str>,
}

impl Figure {
    /// All of them, the most telling first.
    pub const ALL: [Self; 6] =
        [Self::AccuracyBits, Self::AccuracyRounds, Self::Loss, Self::Distance, Self::Final, Self::Laboratory];

    /// Its name, also that of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccuracyBits => "accuracy-bits",
            Self::AccuracyRounds => "accuracy-rounds",
            Self::Loss => "loss",
            Self::Distance => "distance",
            Self::Final => "final",
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
            Self::Final => "Test accuracy at the end against the ratio, or another setting in which runs differ",
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
                let (x, log) = strength(tables).unwrap_or_else(|| ("uplink.ratio".to_owned(), true));
                Question { last: true, ..of(&x, "test_accuracy", log, false) }
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

/// The numeric setting in which runs differ, a ratio before others, and whether its range asks for logarithms.
fn strength(tables: &[Table]) -> Option<(String, bool)> {
    let range = |key: &String| {
        let values: Vec<f64> = tables.iter().filter_map(|table| table.settings.get(key)?.parse().ok()).collect();
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
        (high > low).then_some((low, high))
    };
    let keys = tables.iter().flat_map(|table| table.settings.keys());
    let mut keys: Vec<&String> = keys.filter(|key| key.as_str() != "seed" && range(key).is_some()).collect();
    keys.sort_by_key(|key| (last_part(key) != "ratio", !key.starts_with("uplink."), key.as_str()));
    let key = keys.first()?;
    let (low, high) = range(key)?;
    Some(((*key).clone(), low > 0.0 && high > 20.0 * low))
}
