//! `sweep.csv`: every cell that has ended, every evaluated round, with the axes as columns before those of `rounds.csv`.

use std::{collections::BTreeSet, path::Path};

use csv::{Reader, StringRecord, Writer};
use fs_err as fs;

use crate::{
    scenario::{cell, flat},
    sink::{ROUNDS, SCENARIO, State, write_atomically},
};

/// Name of the table, beside the folders of the cells.
pub const TABLE: &str = "sweep.csv";

/// Writes the table of some runs of a folder, in their order; runs that have not ended are left out. Returns the number of runs in it.
///
/// `axes` are dotted keys of the scenario. A key that is a column of `rounds.csv` anyway, such as the seed, stands there alone.
///
/// # Errors
/// If a file cannot be read or written, or if something else than such a table is there.
pub fn gather(folder: &Path, axes: &[String], runs: &[String]) -> Result<usize, String> {
    let path = folder.join(TABLE);
    let mut out = Writer::from_writer(Vec::new());
    let (mut columns, mut count) = (StringRecord::new(), 0);
    for run in runs {
        let run = folder.join(run);
        if !matches!(State::of(&run), State::Ended(_)) {
            continue;
        }
        let shown = |error: &dyn std::fmt::Display| format!("`{}`: {error}", run.display());
        let text = fs::read_to_string(run.join(SCENARIO)).map_err(|error| error.to_string())?;
        let settings = flat(&toml::from_str(&text).map_err(|error| shown(&error.message()))?);
        let bytes = fs::read(run.join(ROUNDS)).map_err(|error| error.to_string())?;
        let mut reader = Reader::from_reader(bytes.as_slice());
        let header = reader.headers().map_err(|error| shown(&error))?.clone();
        let own: Vec<&String> = axes.iter().filter(|key| !header.iter().any(|column| column == key.as_str())).collect();
        if columns.is_empty() {
            out.write_record(own.iter().map(|key| key.as_str()).chain(&header)).expect("memory takes every byte");
            columns = header;
        } else if columns != header {
            return Err(shown(&"`rounds.csv` has other columns than the runs beside it"));
        }
        let value = |key: &&String| settings.get(key.as_str()).map_or(String::new(), cell);
        let values: Vec<String> = own.iter().map(value).collect();
        let loss = columns.iter().position(|column| column == "test_loss");
        for row in reader.records() {
            let row = row.map_err(|error| shown(&error))?;
            if loss.and_then(|at| row.get(at)).is_some_and(|loss| !loss.is_empty()) {
                out.write_record(values.iter().map(String::as_str).chain(&row)).expect("memory takes every byte");
            }
        }
        count += 1;
    }
    if count > 0 {
        if path.exists() && read(&path).is_none() {
            return Err(format!("`{}` is there and is no table of a sweep: it is not overwritten", path.display()));
        }
        let bytes = out.into_inner().expect("memory takes every byte");
        write_atomically(&path, &bytes).map_err(|error| error.to_string())?;
    }
    Ok(count)
}

/// The axes of a table and the runs in it, each once and in their order; `None` if it is no such table.
pub(super) fn read(path: &Path) -> Option<(Vec<String>, Vec<String>)> {
    let bytes = fs::read(path).ok()?;
    let mut reader = Reader::from_reader(bytes.as_slice());
    let header = reader.headers().ok()?.clone();
    let at = header.iter().position(|column| column == "run")?;
    header.iter().find(|column| *column == "cumulative_uplink_bits")?;
    let mut runs = Vec::new();
    for row in reader.records() {
        let run = row.ok()?.get(at)?.to_owned();
        if runs.last() != Some(&run) {
            runs.push(run);
        }
    }
    Some((header.iter().take(at).map(str::to_owned).collect(), runs))
}

/// The union of tables: axes and runs, each once, in the order in which they first come.
pub(super) fn union(tables: impl IntoIterator<Item = (Vec<String>, Vec<String>)>) -> (Vec<String>, Vec<String>) {
    let (mut axes, mut runs) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for (own_axes, own_runs) in tables {
        axes.extend(own_axes.into_iter().filter(|key| seen.insert(format!("axis {key}"))));
        runs.extend(own_runs.into_iter().filter(|run| seen.insert(format!("run {run}"))));
    }
    (axes, runs)
}
