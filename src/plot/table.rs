//! Tables: the CSV files below some paths, with the settings that stand beside them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use csv::StringRecord;
use fs_err as fs;

use super::PlotError;
use crate::{catalogue::nearest, digest::sha256};

/// What a table tells of, by its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The rounds of one run.
    Rounds,
    /// Measurements of operators without training.
    Laboratory,
    /// Anything else.
    Other,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rounds => "the rounds of a run",
            Self::Laboratory => "measurements of operators",
            Self::Other => "another table",
        })
    }
}

/// One CSV file.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its file.
    pub path: PathBuf,
    /// What it tells of.
    pub kind: Kind,
    /// Names of columns.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<StringRecord>,
    /// Settings of the run, by dotted key; empty if none stand beside the file.
    pub settings: BTreeMap<String, String>,
    /// The name of the run, else name and digest of the file.
    pub source: String,
}

/// Reads CSV files, and every `rounds.csv` below folders, in the order of their paths. Tables without rows are left out
/// with a note, unless there are no others.
///
/// # Errors
/// If nothing is found, a file cannot be read, has no rows, or the tables are of several kinds.
pub fn read(paths: &[PathBuf]) -> Result<(Vec<Table>, Vec<String>), PlotError> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        find(path, &mut files)?;
        if files.len() == before {
            return Err(PlotError::input(format!(
                "there is no run, that is no `rounds.csv`, in `{}` or below it; other CSV files are given by name",
                path.display()
            )));
        }
    }
    files.sort();
    files.dedup();
    let tables: Vec<Table> = files.iter().map(|file| Table::read(file)).collect::<Result<_, _>>()?;
    let (tables, empty): (Vec<Table>, Vec<Table>) = tables.into_iter().partition(|table| !table.rows.is_empty());
    let Some(first) = tables.first() else {
        let shown: Vec<String> = files.iter().map(|file| format!("`{}`", file.display())).collect();
        return Err(PlotError::input(format!("there are no rows in {}", shown.join(", "))));
    };
    if let Some(other) = tables.iter().find(|table| table.kind != first.kind) {
        return Err(PlotError::input(format!(
            "`{}` holds {}, but `{}` holds {}: plot them one after the other",
            first.path.display(),
            first.kind,
            other.path.display(),
            other.kind
        )));
    }
    let notes = empty.iter().map(|table| format!("`{}` has no rows and is left out", table.path.display())).collect();
    Ok((tables, notes))
}

/// Adds the file, or every `rounds.csv` below the folder.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), PlotError> {
    if !path.exists() {
        return Err(PlotError::input(format!("there is no file or folder `{}`", path.display())));
    }
    let unreadable = |error: std::io::Error| PlotError::input(error.to_string());
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Links are not followed: they may lead back.
        let is_folder = entry.file_type().map_err(unreadable)?.is_dir();
        if is_folder {
            find(&entry.path(), files)?;
        } else if entry.file_name() == "rounds.csv" {
            files.push(entry.path());
        }
    }
    Ok(())
}

impl Table {
    fn read(path: &Path) -> Result<Self, PlotError> {
        let bytes = fs::read(path).map_err(|error| PlotError::input(error.to_string()))?;
        let wrong = |error: csv::Error| PlotError::input(format!("`{}` is not CSV: {error}", path.display()));
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let columns: Vec<String> = reader.headers().map_err(wrong)?.iter().map(|name| name.trim().to_owned()).collect();
        let rows: Vec<StringRecord> = reader.records().collect::<Result<_, _>>().map_err(wrong)?;
        let has = |wanted: &[&str]| wanted.iter().all(|name| columns.iter().any(|column| column == name));
        let kind = if has(&["run", "round", "cumulative_uplink_bits"]) {
            Kind::Rounds
        } else if has(&["operator", "wire_bits_per_coordinate", "nmse"]) {
            Kind::Laboratory
        } else {
            Kind::Other
        };
        let settings = match kind {
            Kind::Rounds => settings(&path.with_file_name("scenario.toml"))?,
            _ => BTreeMap::new(),
        };
        let mut table = Self { path: path.to_owned(), kind, columns, rows, settings, source: String::new() };
        table.source = match table.column("run").and_then(|column| table.rows.first().map(|row| column.cell(row))) {
            Some(run) if kind == Kind::Rounds => run.to_owned(),
            _ => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{name} sha256:{}", &sha256(&bytes)[..16])
            }
        };
        Ok(table)
    }

    /// A column or a setting.
    pub(super) fn column(&self, name: &str) -> Option<Column<'_>> {
        let at = self.columns.iter().position(|column| column == name);
        at.map(Column::At).or_else(|| self.settings.get(name).map(|value| Column::Constant(value)))
    }
}

/// Where the cells of a column are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column<'a> {
    /// In the rows.
    At(usize),
    /// It is a setting of the whole table.
    Constant(&'a str),
}

impl<'a> Column<'a> {
    /// The cell of a row; empty beyond its end.
    pub fn cell(self, row: &'a StringRecord) -> &'a str {
        match self {
            Self::At(i) => row.get(i).unwrap_or("").trim(),
            Self::Constant(value) => value,
        }
    }
}

/// The full name of a column or a setting; of a setting the last part of its key is enough where that is clear.
pub(super) fn resolve(tables: &[Table], name: &str) -> Result<String, PlotError> {
    let mut columns: Vec<&str> = Vec::new();
    let mut settings: Vec<&str> = Vec::new();
    for table in tables {
        let new =
            table.columns.iter().map(String::as_str).filter(|column| !columns.contains(column)).collect::<Vec<_>>();
        columns.extend(new);
        let new = table.settings.keys().map(String::as_str).filter(|key| !settings.contains(key)).collect::<Vec<_>>();
        settings.extend(new);
    }
    if columns.contains(&name) || settings.contains(&name) {
        return Ok(name.to_owned());
    }
    let ending = format!(".{name}");
    let ends: Vec<&str> = settings.iter().copied().filter(|key| key.ends_with(&ending)).collect();
    match ends.as_slice() {
        [one] => return Ok((*one).to_owned()),
        [] => {}
        several => {
            let shown: Vec<String> = several.iter().map(|key| format!("`{key}`")).collect();
            return Err(PlotError::input(format!("`{name}` may be {}", shown.join(" or "))));
        }
    }
    let last = settings.iter().map(|key| last_part(key));
    let near = nearest(name, columns.iter().copied().chain(settings.iter().copied()).chain(last));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let shown: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
    let beside =
        if settings.is_empty() { "" } else { ", and the settings of `scenario.toml`, such as `uplink.operator`" };
    Err(PlotError::input(format!("no column is called `{name}`{near} There are {}{beside}", shown.join(", "))))
}

/// A key without the section that it is in.
pub(super) fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The settings of a resolved scenario, by dotted key; none if there is no such file.
fn settings(path: &Path) -> Result<BTreeMap<String, String>, PlotError> {
    let mut settings = BTreeMap::new();
    if path.exists() {
        let text = fs::read_to_string(path).map_err(|error| PlotError::input(error.to_string()))?;
        let table: toml::Table = toml::from_str(&text)
            .map_err(|error| PlotError::input(format!("`{}` is not TOML: {}", path.display(), error.message())))?;
        flatten("", &table, &mut settings);
    }
    Ok(settings)
}

fn flatten(prefix: &str, table: &toml::Table, settings: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let full = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&full, inner, settings),
            toml::Value::String(text) => {
                settings.insert(full, text.clone());
            }
            other => {
                settings.insert(full, other.to_string());
            }
        }
    }
}
