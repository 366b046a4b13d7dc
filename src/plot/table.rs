//! Tables: the CSV files below some paths, with the settings that stand beside them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use csv::StringRecord;
use fs_err as fs;

use super::PlotError;
use crate::{
    catalogue::nearest,
    digest::sha256,
    scenario::{cell, flat},
};

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

/// One CSV file, or one run of a file of several.
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
    /// Settings of the run, by dotted key, from the file beside it or the columns left of `run`; empty if there are
    /// none.
    pub settings: BTreeMap<String, String>,
    /// The name of the run, else name and digest of the file.
    pub source: String,
}

/// Reads CSV files, and every `rounds.csv` below folders, in the order of their paths. A file of several runs, such as
/// `sweep.csv`, becomes one table a run; a run that its own folder tells of counts once.
///
/// What cannot be read, has no rows or is torn is left out with a note, as long as anything else remains.
///
/// # Errors
/// If nothing is found, no file can be read or has rows, or the tables are of several kinds.
pub fn read(paths: &[PathBuf]) -> Result<(Vec<Table>, Vec<String>), PlotError> {
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        let before = files.len();
        find(path, &mut files, &mut notes)?;
        if files.len() == before {
            return Err(PlotError::input(format!(
                "there is no run, that is no `rounds.csv`, in `{}` or below it; other CSV files are given by name",
                path.display()
            )));
        }
    }
    files.sort();
    files.dedup();
    let (mut tables, mut empty, mut mistakes) = (Vec::new(), Vec::new(), Vec::new());
    for file in &files {
        match Table::read(file, &mut notes) {
            Ok(of_file) if of_file.is_empty() => empty.push(format!("`{}`", file.display())),
            Ok(of_file) => tables.extend(of_file),
            Err(mistake) => mistakes.push(mistake.to_string()),
        }
    }
    let tables = each_run_once(tables);
    let Some(first) = tables.first() else {
        if !empty.is_empty() {
            mistakes.push(format!("there are no rows in {}", empty.join(", ")));
        }
        return Err(PlotError::input([mistakes, notes].concat().join("; ")));
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
    notes.extend(mistakes.iter().map(|mistake| format!("{mistake}; the file is left out")));
    notes.extend(empty.iter().map(|file| format!("{file} has no rows and is left out")));
    Ok((tables, notes))
}

/// Adds the file, or every `rounds.csv` below the folder.
fn find(path: &Path, files: &mut Vec<PathBuf>, notes: &mut Vec<String>) -> Result<(), PlotError> {
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
            if let Err(mistake) = find(&entry.path(), files, notes) {
                notes.push(format!("{mistake}; the folder is left out"));
            }
        } else if entry.file_name() == "rounds.csv" {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Leaves out the runs of a sweep's table that have a table of their own, or stand in an earlier one.
///
/// Where runs of both kinds remain, the axes of the sweep are the settings of all: only these are known of every run.
fn each_run_once(mut tables: Vec<Table>) -> Vec<Table> {
    let mut seen: BTreeSet<String> =
        tables.iter().filter(|table| table.axes().is_empty()).map(|table| table.source.clone()).collect();
    tables.retain(|table| table.axes().is_empty() || seen.insert(table.source.clone()));
    let axes: BTreeSet<String> = tables.iter().flat_map(Table::axes).cloned().collect();
    if !axes.is_empty() {
        tables.iter_mut().for_each(|table| table.settings.retain(|key, _| axes.contains(key)));
    }
    tables
}

/// What stands before the end of the last whole line. A line break within quotes is part of a cell.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let (mut quoted, mut end) = (false, 0);
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => end = i + 1,
            _ => {}
        }
    }
    &bytes[..end]
}

impl Table {
    /// The tables of a file, one a run.
    fn read(path: &Path, notes: &mut Vec<String>) -> Result<Vec<Self>, PlotError> {
        let bytes = fs::read(path).map_err(|error| PlotError::input(error.to_string()))?;
        Self::parse(path, &bytes, notes)
    }

    /// The tables of the bytes of a file.
    pub(super) fn parse(path: &Path, bytes: &[u8], notes: &mut Vec<String>) -> Result<Vec<Self>, PlotError> {
        let whole = whole_lines(bytes);
        if !bytes[whole.len()..].trim_ascii().is_empty() {
            notes.push(format!(
                "the last line of `{}` does not end in a line break and may be torn: it is not used",
                path.display()
            ));
        }
        let wrong = |error: csv::Error| PlotError::input(format!("`{}` is not CSV: {error}", path.display()));
        let mut reader = csv::Reader::from_reader(whole);
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
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let source = format!("{name} sha256:{}", &sha256(bytes)[..16]);
        let all = Self { path: path.to_owned(), kind, columns, rows, settings: BTreeMap::new(), source };
        match kind {
            _ if all.rows.is_empty() => Ok(Vec::new()),
            Kind::Rounds => all.runs(),
            _ => Ok(vec![all]),
        }
    }

    /// One table a run, in the order of their first rows.
    fn runs(mut self) -> Result<Vec<Self>, PlotError> {
        let run = self.column("run").expect("tables of rounds have this column");
        let mut runs: Vec<(String, Vec<StringRecord>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for row in &self.rows {
            let name = run.cell(row);
            let place = *places.entry(name.to_owned()).or_insert(runs.len());
            if place == runs.len() {
                runs.push((name.to_owned(), Vec::new()));
            }
            runs[place].1.push(row.clone());
        }
        if self.axes().is_empty() && runs.len() == 1 {
            self.settings = settings(&self.path.with_file_name("scenario.toml"))?;
        }
        self.rows.clear();
        let table = |(source, rows): (String, Vec<StringRecord>)| {
            let mut table = Self { rows, source, ..self.clone() };
            let cells = table.axes().iter().zip(table.rows[0].iter()).filter(|(_, cell)| !cell.trim().is_empty());
            let axes: Vec<(String, String)> = cells.map(|(key, cell)| (key.clone(), cell.trim().to_owned())).collect();
            table.settings.extend(axes);
            table
        };
        Ok(runs.into_iter().map(table).collect())
    }

    /// The axes of a sweep: the columns of its table that stand left of the run.
    pub(super) fn axes(&self) -> &[String] {
        let run = self.columns.iter().position(|column| column == "run").filter(|_| self.kind == Kind::Rounds);
        &self.columns[..run.unwrap_or(0)]
    }

    /// The folder of the run that it tells of, where `scenario.toml` and `run.json` stand; `None` if it is not of a run.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let beside = self.path.parent()?;
        match self.axes() {
            _ if self.kind != Kind::Rounds => None,
            [] => Some(beside.to_owned()),
            _ => Some(beside.join(&self.source)),
        }
    }

    /// The first cell of a column, or a setting.
    pub(super) fn first(&self, name: &str) -> Option<String> {
        let (column, row) = self.column(name).zip(self.rows.first())?;
        Some(column.cell(row).to_owned())
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
    let near = near.map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"));
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
        // How a run is carried out tells no results apart.
        let counted = flat(&table).into_iter().filter(|(key, _)| !key.starts_with("run."));
        settings.extend(counted.map(|(key, value)| (key, cell(&value))));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "run,seed,round,test_accuracy,test_loss,cumulative_uplink_bits\n";

    fn place(files: &[(&str, &str)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a folder can be made");
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        }
        place
    }

    fn read_all(place: &tempfile::TempDir, names: &[&str]) -> Result<(Vec<Table>, Vec<String>), PlotError> {
        read(&names.iter().map(|name| place.path().join(name)).collect::<Vec<_>>())
    }

    fn sweep(rows: &str) -> String {
        format!("uplink.operator,uplink.ratio,uplink.levels,{HEAD}{rows}")
    }

    #[test]
    fn a_torn_last_line_is_skipped_and_its_numbers_are_never_used() {
        // `8000` may have been about to become `800000`.
        let place = place(&[("rounds.csv", &format!("{HEAD}a,0,1,0.5,1.0,4000\na,0,2,0.6,0.9,8000"))]);
        let (tables, notes) = read_all(&place, &["rounds.csv"]).unwrap();
        assert_eq!(tables[0].rows.len(), 1);
        assert!(notes.len() == 1 && notes[0].contains("rounds.csv") && notes[0].contains("torn"), "{notes:?}");
    }

    #[test]
    fn a_line_break_within_quotes_is_no_end_of_a_line() {
        assert_eq!(whole_lines(b"a,b\n1,\"two\nlines\"\n3,\"to"), b"a,b\n1,\"two\nlines\"\n");
        assert_eq!(whole_lines(b"a,b\n1,\"two\nlin"), b"a,b\n");
        assert_eq!(whole_lines(b"a,b"), b"");
        assert_eq!(whole_lines(b"a\r\n1\r"), b"a\r\n1\r");
    }

    #[test]
    fn one_bad_file_does_not_spoil_the_others() {
        let good = format!("{HEAD}a,0,1,0.5,1.0,4000\n");
        let files = [
            ("runs/a/rounds.csv", good.as_str()),
            ("runs/b/rounds.csv", "run,seed\nb\n"),
            ("runs/c/rounds.csv", ""),
            ("runs/d/rounds.csv", &good.replace("a,0", "d,0")),
            ("runs/d/scenario.toml", "seed = \n"),
        ];
        let place = place(&files);
        let (tables, notes) = read_all(&place, &["runs"]).unwrap();
        assert_eq!(tables.iter().map(|table| table.source.as_str()).collect::<Vec<_>>(), ["a"]);
        for (name, wanted) in [("b", "is not CSV"), ("c", "has no rows"), ("d", "is not TOML")] {
            let is_told =
                |note: &String| note.contains(&format!("{name}{}", std::path::MAIN_SEPARATOR)) && note.contains(wanted);
            assert!(notes.iter().any(is_told), "{name}: {notes:?}");
        }
        let error = read_all(&place, &["runs/b", "runs/c", "runs/d"]).unwrap_err().to_string();
        assert!(["is not CSV", "no rows in", "is not TOML"].iter().all(|wanted| error.contains(wanted)), "{error}");
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_are_fine() {
        let text = format!("\u{feff}{HEAD}a,0,1,0.5,1.0,4000\na,0,2,0.6,0.9,8000\n").replace('\n', "\r\n");
        let place = place(&[("rounds.csv", &text)]);
        let (tables, notes) = read_all(&place, &["rounds.csv"]).unwrap();
        assert_eq!((tables[0].kind, tables[0].rows.len(), notes.len()), (Kind::Rounds, 2, 0));
        assert_eq!(&tables[0].rows[1][5], "8000");
    }

    #[test]
    fn the_table_of_a_sweep_becomes_one_table_a_run_with_the_axes_as_settings() {
        let text = sweep(
            "top-k,0.1,,a,0,1,0.5,1,10\nqsgd,,3,b,0,1,0.5,1,20\ntop-k,0.1,,a,0,2,0.6,1,20\ntop-k,0.1,,c,1,1,0.5,1,9\n",
        );
        let place = place(&[("sweep.csv", &text)]);
        let (tables, notes) = read_all(&place, &["sweep.csv"]).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        let told: Vec<(&str, usize)> = tables.iter().map(|table| (table.source.as_str(), table.rows.len())).collect();
        assert_eq!(told, [("a", 2), ("b", 1), ("c", 1)]);
        let settings: Vec<(&str, &str)> = tables[1].settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(settings, [("uplink.levels", "3"), ("uplink.operator", "qsgd")]);
        assert_eq!(resolve(&tables, "ratio").unwrap(), "uplink.ratio");
    }

    #[test]
    fn a_run_in_its_folder_and_in_the_table_of_its_sweep_counts_once() {
        let text = sweep("top-k,0.1,,a,0,1,0.5,1,10\nqsgd,,3,b,0,1,0.5,1,20\n");
        let own = format!("{HEAD}a,0,1,0.5,1,10\na,0,2,0.5,1,20\n");
        let scenario = "seed = 0\n[uplink]\noperator = \"top-k\"\nratio = 0.1\ncoder = \"fixed\"\n";
        let files = [("sweep.csv", text.as_str()), ("a/rounds.csv", &own), ("a/scenario.toml", scenario)];
        let place = place(&files);
        let (tables, _) = read_all(&place, &["", "sweep.csv"]).unwrap();
        let told: Vec<(&str, usize)> = tables.iter().map(|table| (table.source.as_str(), table.rows.len())).collect();
        assert_eq!(told, [("a", 2), ("b", 1)]);
        // What is known of one kind of table alone tells nothing apart.
        assert_eq!(tables[0].settings.keys().collect::<Vec<_>>(), ["uplink.operator", "uplink.ratio"]);
        let (alone, _) = read_all(&place, &["a"]).unwrap();
        assert_eq!(alone[0].settings.len(), 4);
    }
}
