//! Joining result folders: runs of several machines in one place, each once, with what they say of themselves checked.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use csv::{Reader, StringRecord};
use fs_err as fs;
use serde_json::Value;

use super::table::{TABLE, gather, read, union};
use crate::sink::{MANIFEST, ROUNDS, State};

/// What was joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Runs that were copied.
    pub copied: usize,
    /// Runs that were there, with the same rows.
    pub equal: usize,
    /// Runs that were left where they are because they have not ended.
    pub unfinished: Vec<PathBuf>,
    /// Folders of scenarios that now hold a table of their runs, with the number of runs in it.
    pub tables: Vec<(PathBuf, usize)>,
}

/// Why nothing more was joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to join.
    #[error("{0}")]
    Input(String),
    /// Two folders that should hold the same run differ, or a run is not what its `run.json` says.
    #[error("{0}")]
    Mismatch(String),
    /// A file cannot be read or written.
    #[error("{0}")]
    World(String),
}

impl From<std::io::Error> for MergeError {
    fn from(error: std::io::Error) -> Self {
        Self::World(error.to_string())
    }
}

/// Copies every run that has ended below `sources` to `into/<scenario>/<run>`, unless it is there. Where a source has a table of a
/// sweep, the table of that scenario is written anew. All runs are checked before the first is copied.
///
/// # Errors
/// If there is no run, a run is not whole, or two folders of the same run differ.
pub fn merge(sources: &[PathBuf], into: &Path) -> Result<Merged, MergeError> {
    let mut merged = Merged::default();
    // By the place that it gets.
    let mut wanted: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    let mut tables: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for source in sources {
        let (mut runs, mut found) = (Vec::new(), Vec::new());
        find(source, &mut runs, &mut found)?;
        if runs.is_empty() {
            return Err(MergeError::Input(format!(
                "there is no run, that is no `run.json`, below `{}`",
                source.display()
            )));
        }
        let mut scenarios: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for run in runs {
            let State::Ended(manifest) = State::of(&run) else {
                merged.unfinished.push(run);
                continue;
            };
            check(&run, &manifest)?;
            let scenario = manifest["scenario"].as_str().unwrap_or("scenario");
            let folder = into.join(scenario);
            if let Some(parent) = run.parent() {
                scenarios.insert(parent.to_owned(), folder.clone());
            }
            let Some(name) = manifest["run"].as_str() else {
                let message = format!("`{}`: its `{MANIFEST}` does not say which run it is", run.display());
                return Err(MergeError::Mismatch(message));
            };
            let place = folder.join(name);
            let other = if place.exists() { Some(place.clone()) } else { wanted.get(&place).cloned() };
            match other {
                Some(other) if matches!(State::of(&other), State::Ended(_)) => {
                    same(&other, &run)?;
                    merged.equal += 1;
                }
                Some(other) => {
                    return Err(MergeError::Input(format!(
                        "`{}` has not ended, but `{}` has: finish or move the former first",
                        other.display(),
                        run.display()
                    )));
                }
                None => drop(wanted.insert(place, run)),
            }
        }
        for table in found {
            if let Some(folder) = table.parent().and_then(|parent| scenarios.get(parent)) {
                tables.entry(folder.clone()).or_default().push(table);
            }
        }
    }
    for (place, run) in &wanted {
        copy(run, place)?;
        merged.copied += 1;
    }
    for (folder, mut found) in tables {
        found.insert(0, folder.join(TABLE));
        let (axes, mut runs) = union(found.iter().filter_map(|table| read(table)));
        let copied = wanted.keys().filter(|place| place.parent() == Some(&folder));
        let names = copied.filter_map(|place| Some(place.file_name()?.to_string_lossy().into_owned()));
        let more: Vec<String> = names.filter(|name| !runs.contains(name)).collect();
        runs.extend(more);
        let count = gather(&folder, &axes, &runs).map_err(MergeError::World)?;
        merged.tables.push((folder.join(TABLE), count));
    }
    Ok(merged)
}

/// Every run and every table of a sweep below a folder, in the order of their paths.
fn find(folder: &Path, runs: &mut Vec<PathBuf>, tables: &mut Vec<PathBuf>) -> Result<(), MergeError> {
    if !folder.is_dir() {
        return Err(MergeError::Input(format!("there is no folder `{}`", folder.display())));
    }
    if folder.join(MANIFEST).exists() {
        runs.push(folder.to_owned());
        return Ok(());
    }
    let mut entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            // What a killed merge has left.
            continue;
        }
        if name == TABLE {
            tables.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            find(&path, runs, tables)?;
        }
    }
    Ok(())
}

/// Names of columns, and rows.
fn rows(run: &Path) -> Result<(StringRecord, Vec<StringRecord>), MergeError> {
    let path = run.join(ROUNDS);
    let bytes = fs::read(&path)?;
    let wrong = |error: csv::Error| MergeError::Mismatch(format!("`{}` is damaged: {error}", path.display()));
    let mut reader = Reader::from_reader(bytes.as_slice());
    let header = reader.headers().map_err(wrong)?.clone();
    Ok((header, reader.records().collect::<Result<_, _>>().map_err(wrong)?))
}

/// Whether the rows of a run are those that its `run.json` speaks of.
fn check(run: &Path, manifest: &Value) -> Result<(), MergeError> {
    let (header, rows) = rows(run)?;
    let column = |name: &str| header.iter().position(|column| column == name);
    let last = |name: &str| rows.last().zip(column(name)).and_then(|(row, at)| row.get(at)).unwrap_or("").to_owned();
    let summary = &manifest["summary"];
    let digest = summary["model_digest"].as_str().unwrap_or("");
    let totals = &summary["totals"];
    for (what, there, here) in [
        ("rounds", summary["rounds"].to_string(), rows.len().to_string()),
        ("the digest of the model", digest.chars().take(16).collect(), last("model_digest")),
        ("the uplink bits", totals["uplink_bits"].to_string(), last("cumulative_uplink_bits")),
        ("the downlink bits", totals["downlink_bits"].to_string(), last("cumulative_downlink_bits")),
    ] {
        if there != here {
            let shown = run.display();
            let message = format!("`{shown}` is damaged: {what} are {there} in `run.json` and {here} in `rounds.csv`");
            return Err(MergeError::Mismatch(message));
        }
    }
    Ok(())
}

/// Whether two folders of the same run hold the same rows, times apart.
fn same(there: &Path, here: &Path) -> Result<(), MergeError> {
    let ((header, left), (other, right)) = (rows(there)?, rows(here)?);
    let kept = |row: &StringRecord| -> Vec<String> {
        header
            .iter()
            .zip(row)
            .filter(|(column, _)| *column != "wall_seconds")
            .map(|(_, cell)| cell.to_owned())
            .collect()
    };
    let differs = left.iter().zip(&right).position(|(a, b)| kept(a) != kept(b));
    if header == other && differs.is_none() && left.len() == right.len() {
        return Ok(());
    }
    let from = differs.map_or("their lengths or columns".to_owned(), |at| format!("row {}", at + 1));
    Err(MergeError::Mismatch(format!(
        "`{}` and `{}` are the same run, but differ from {from} on; `fedbits diff` tells more",
        there.display(),
        here.display()
    )))
}

/// Copies a folder; it has its name only once it is whole.
fn copy(from: &Path, to: &Path) -> Result<(), MergeError> {
    let parent = to.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(parent)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let partial = parent.join(format!(".{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    copy_all(from, &partial)?;
    fs::rename(&partial, to)?;
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}
