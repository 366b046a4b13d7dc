//! A run as every format sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use csv::StringRecord;
use fs_err as fs;
use serde_json::Value;

use super::ExportError;
use crate::plot::{Kind, Table};

/// Columns that hold names, whatever they look like: a digest may consist of digits.
pub(super) const NAMES: [&str; 6] = ["run", "scenario", "method", "operator", "model_digest", "status"];
/// Columns of numbers that say which row it is, rather than what was measured.
const PLACES: [&str; 2] = ["seed", "round"];

/// One run.
pub(super) struct Run<'a> {
    /// Its name; good as the name of a folder.
    pub name: &'a str,
    /// The scenario that it belongs to.
    pub scenario: &'a str,
    /// Its rows and settings.
    pub table: &'a Table,
    /// The round of each row.
    pub rounds: Vec<i64>,
    /// When the run began, in Unix seconds; 0 if that is not known.
    pub start: u64,
    /// When each row was written, in Unix seconds: the start and all wall-clock time of rounds since.
    pub times: Vec<f64>,
    /// What stands in its `run.json`; null without one.
    pub about: Value,
}

/// The values of one column.
pub(super) struct Series<'a> {
    /// The column.
    pub column: &'a str,
    /// Row, cell and value of every cell that is not empty.
    pub points: Vec<(usize, &'a str, f64)>,
}

impl<'a> Run<'a> {
    /// The runs of tables, by name, and what was left out: a run that is there twice counts once.
    pub fn of(tables: &'a [Table]) -> Result<(Vec<Self>, Vec<String>), ExportError> {
        let (mut runs, mut notes) = (BTreeMap::<&str, Self>::new(), Vec::new());
        for table in tables {
            let run = Self::new(table)?;
            if let Some(other) = runs.get(run.name) {
                notes.push(format!(
                    "`{}` holds the run `{}` of `{}` again and is left out",
                    table.path.display(),
                    run.name,
                    other.table.path.display()
                ));
            } else {
                runs.insert(run.name, run);
            }
        }
        Ok((runs.into_values().collect(), notes))
    }

    fn new(table: &'a Table) -> Result<Self, ExportError> {
        let (name, shown) = (table.source.as_str(), table.path.display());
        if table.kind != Kind::Rounds {
            return Err(ExportError::input(format!(
                "`{shown}` holds {}: only the rounds of runs can be exported",
                table.kind
            )));
        }
        let mut parts = Path::new(name).components();
        let is_plain = matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None));
        if !is_plain || name.contains(['/', '\\', '\n']) {
            return Err(ExportError::input(format!("the run `{name}` in `{shown}` cannot be the name of a folder")));
        }
        let cells = |column: &str| cells(table, column).unwrap_or_default();
        let round = |(i, cell): (usize, &&str)| {
            let round = cell.parse::<u32>().map(i64::from);
            round.map_err(|_| ExportError::input(format!("row {} of `{shown}` has no round, but `{cell}`", i + 1)))
        };
        let rounds = cells("round").iter().enumerate().map(round).collect::<Result<_, _>>()?;
        let about = about(table, name)?;
        let start = about["started_unix_seconds"].as_u64().unwrap_or(0);
        let mut time = start as f64;
        let mut later = |cell: &&str| {
            time += cell.parse::<f64>().ok().filter(|seconds| seconds.is_finite()).unwrap_or(0.0);
            time
        };
        let seconds = cells("wall_seconds");
        let times = (0..table.rows.len()).map(|i| later(seconds.get(i).unwrap_or(&""))).collect();
        let scenario = cells("scenario").first().copied().filter(|name| !name.is_empty()).unwrap_or("fedbits");
        Ok(Self { name, scenario, table, rounds, start, times, about })
    }

    /// When its last row was written, in Unix seconds.
    pub fn last(&self) -> f64 {
        self.times.last().copied().unwrap_or(self.start as f64)
    }

    /// What `run.json` says of how it ended; empty without one.
    pub fn state(&self) -> &str {
        self.about["state"].as_str().unwrap_or("")
    }

    /// Every column of measured numbers that has any.
    pub fn series(&self) -> impl Iterator<Item = Series<'a>> {
        let table = self.table;
        let is_measured = |column: &&String| {
            let column = column.as_str();
            !NAMES.contains(&column) && !PLACES.contains(&column) && !table.settings.contains_key(column)
        };
        table.columns.iter().filter(is_measured).filter_map(|column| {
            let cells = cells(table, column)?;
            let full = cells.into_iter().enumerate().filter(|(_, cell)| !cell.is_empty());
            let point = |(row, cell): (usize, &'a str)| Some((row, cell, cell.parse().ok()?));
            let points = full.map(point).collect::<Option<Vec<_>>>()?;
            (!points.is_empty()).then_some(Series { column, points })
        })
    }
}

/// The cells of a column, if there is one of that name; empty beyond the end of a row.
pub(super) fn cells<'a>(table: &'a Table, column: &str) -> Option<Vec<&'a str>> {
    let at = table.columns.iter().position(|name| name == column)?;
    let cell = |row: &'a StringRecord| row.get(at).unwrap_or("").trim();
    Some(table.rows.iter().map(cell).collect())
}

/// The settings in which runs differ, also by having them at all.
pub(super) fn differing<'a>(runs: &[Run<'a>]) -> Vec<&'a str> {
    let keys: BTreeSet<&str> = runs.iter().flat_map(|run| run.table.settings.keys().map(String::as_str)).collect();
    let value = |run: &Run<'a>, key: &str| run.table.settings.get(key);
    let differs = |key: &&str| runs.windows(2).any(|pair| value(&pair[0], key) != value(&pair[1], key));
    keys.into_iter().filter(differs).collect()
}

/// The `run.json` of a run: beside its table, or in a folder of its name there.
fn about(table: &Table, name: &str) -> Result<Value, ExportError> {
    for path in [table.path.with_file_name("run.json"), table.path.with_file_name(name).join("run.json")] {
        if !path.exists() {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| ExportError::input(error.to_string()))?;
        let about: Value = serde_json::from_str(&text)
            .map_err(|error| ExportError::input(format!("`{}` is not JSON: {error}", path.display())))?;
        if about["run"] == name {
            return Ok(about);
        }
    }
    Ok(Value::Null)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A table of rounds as `rounds.csv` holds it; its file is in a folder.
    pub fn table(folder: &Path, name: &str, text: &str, settings: &[(&str, &str)]) -> Table {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().unwrap().iter().map(str::to_owned).collect();
        Table {
            path: folder.join("rounds.csv"),
            kind: Kind::Rounds,
            columns,
            rows: reader.records().collect::<Result<_, _>>().unwrap(),
            settings: settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
            source: name.to_owned(),
        }
    }

    /// Two rounds of a small run.
    pub const TWO_ROUNDS: &str =
        "run,scenario,seed,round,test_accuracy,uplink_bits,learning_rate,distance_to_optimum,wall_seconds,model_digest
a,tiny,3,1,,63747200,0.1,,0.5,1234
a,tiny,3,2,0.75,63747201,NaN,,0.25,5678
";

    #[test]
    fn times_are_those_of_run_json_and_of_the_rounds() {
        let folder = tempfile::tempdir().unwrap();
        let tables = [table(folder.path(), "a", TWO_ROUNDS, &[])];
        let times = || Run::of(&tables).unwrap().0[0].times.clone();
        assert_eq!(times(), [0.5, 0.75]);
        fs::write(folder.path().join("run.json"), r#"{"run": "a", "started_unix_seconds": 1000}"#).unwrap();
        assert_eq!(times(), [1000.5, 1000.75]);
        fs::write(folder.path().join("run.json"), r#"{"run": "b", "started_unix_seconds": 1000}"#).unwrap();
        assert_eq!(times(), [0.5, 0.75]);
    }

    #[test]
    fn series_are_columns_of_measured_numbers() {
        let tables = [table(Path::new(""), "a", TWO_ROUNDS, &[])];
        let (runs, notes) = Run::of(&tables).unwrap();
        assert!(notes.is_empty());
        assert_eq!((runs[0].scenario, &runs[0].rounds[..]), ("tiny", &[1, 2][..]));
        let series: Vec<Series> = runs[0].series().collect();
        let columns: Vec<&str> = series.iter().map(|series| series.column).collect();
        assert_eq!(columns, ["test_accuracy", "uplink_bits", "learning_rate", "wall_seconds"]);
        assert_eq!(series[0].points, [(1, "0.75", 0.75)]);
        assert!(series[2].points[1].2.is_nan());
    }

    #[test]
    fn settings_differ_also_by_being_there() {
        let one = table(Path::new(""), "a", TWO_ROUNDS, &[("seed", "1"), ("uplink.ratio", "0.1"), ("rounds", "2")]);
        let other = table(Path::new(""), "b", TWO_ROUNDS, &[("seed", "2"), ("rounds", "2")]);
        let tables = [one, other];
        let (runs, _) = Run::of(&tables).unwrap();
        assert_eq!(differing(&runs), ["seed", "uplink.ratio"]);
        assert!(differing(&runs[..1]).is_empty());
    }

    #[test]
    fn names_that_lead_elsewhere_and_rows_without_a_round_are_refused() {
        for name in ["../a", "a/b", "..", "", "/", "a\\b"] {
            let tables = [table(Path::new(""), name, TWO_ROUNDS, &[])];
            assert!(matches!(Run::of(&tables), Err(ExportError::Input(_))), "{name}");
        }
        let tables = [table(Path::new(""), "a", "run,round\na,1\na,first\n", &[])];
        let error = Run::of(&tables).err().unwrap().to_string();
        assert_eq!(error, "row 2 of `rounds.csv` has no round, but `first`");
    }

    #[test]
    fn a_run_that_is_there_twice_counts_once() {
        let tables = ["x", "y"].map(|folder| table(Path::new(folder), "a", TWO_ROUNDS, &[]));
        let (runs, notes) = Run::of(&tables).unwrap();
        assert_eq!((runs.len(), notes.len()), (1, 1));
        assert!(runs[0].table.path.starts_with("x"), "{notes:?}");
    }
}
