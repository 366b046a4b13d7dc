//! Two runs that should be equal: the first place where they are not.

use std::path::{Path, PathBuf};

use super::{Kind, PlotError, Table, read};

/// Columns that may differ between two runs of the same scenario and seed.
const IGNORED: [&str; 2] = ["run", "wall_seconds"];

/// What tells two runs apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// Their files.
    pub files: [PathBuf; 2],
    /// Columns that only one of them has, with the place of its file.
    pub columns: Vec<(String, usize)>,
    /// Their rows.
    pub rows: Rows,
    /// The first difference of their clients; `None` if there is none, or if not both have a `clients.csv`.
    pub clients: Option<First>,
    /// Settings of `scenario.toml` that differ.
    pub settings: Vec<Cell>,
}

/// How the rows of two tables compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All are equal; so many.
    Equal(usize),
    /// One table is the beginning of the other.
    Prefix {
        /// Last place that both have, such as `round 10`.
        common: String,
        /// Place of the longer file.
        longer: usize,
        /// Its last place.
        end: String,
    },
    /// They differ.
    Differ(First),
}

/// The first difference of two tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// Where it is, such as `round 3, client 7`.
    pub place: String,
    /// Columns of that row that differ, in their order; at least one.
    pub cells: Vec<Cell>,
}

/// A column, or a setting, with its two values; `None` where it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// The values.
    pub values: [Option<String>; 2],
}

impl Diff {
    /// Whether the results are equal; settings may differ even so.
    pub fn is_equal(&self) -> bool {
        matches!(self.rows, Rows::Equal(_)) && self.columns.is_empty() && self.clients.is_none()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> =
            ["A", "B"].iter().zip(&self.files).map(|(name, file)| format!("{name}: {}", file.display())).collect();
        lines.push(match &self.rows {
            Rows::Equal(1) => "The row is equal.".to_owned(),
            Rows::Equal(n) => format!("All {n} rows are equal."),
            Rows::Prefix { common, longer, end } => {
                format!("Equal up to {common}; {} goes on to {end}.", name(*longer))
            }
            Rows::Differ(first) => format!("The first difference is in {}:", first.place),
        });
        if let Rows::Differ(first) = &self.rows {
            lines.extend(first.cells.iter().map(Cell::text));
        }
        if let Some(first) = &self.clients {
            lines.push(format!("The first difference of `clients.csv` is in {}:", first.place));
            lines.extend(first.cells.iter().map(Cell::text));
        }
        for (column, file) in &self.columns {
            lines.push(format!("Only {} has the column `{column}`.", name(*file)));
        }
        if !self.settings.is_empty() {
            lines.push("Settings of `scenario.toml` that differ:".to_owned());
            lines.extend(self.settings.iter().map(Cell::text));
        }
        lines.join("\n") + "\n"
    }
}

impl Cell {
    fn text(&self) -> String {
        let show = |value: &Option<String>| match value.as_deref() {
            None => "absent".to_owned(),
            Some("") => "empty".to_owned(),
            Some(value) => value.to_owned(),
        };
        format!("  `{}`: {} in A, {} in B", self.name, show(&self.values[0]), show(&self.values[1]))
    }
}

fn name(file: usize) -> &'static str {
    ["A", "B"][file]
}

/// Compares two runs, or two CSV files, row by row; names of runs and wall-clock times do not count. Values are compared as they
/// are written: a result is the same to the last digit or it is another one.
///
/// # Errors
/// If a path does not lead to one table.
pub fn diff(a: &Path, b: &Path) -> Result<Diff, PlotError> {
    let tables = [one(a)?, one(b)?];
    let rows = compare(&tables, &["round"]);
    let clients = tables.each_ref().map(|table| table.path.with_file_name("clients.csv"));
    let are_rounds = tables.iter().all(|table| table.kind == Kind::Rounds);
    let clients = match are_rounds && clients.iter().all(|path| path.exists()) {
        true => match compare(&[one(&clients[0])?, one(&clients[1])?], &["round", "client"]) {
            Rows::Differ(first) => Some(first),
            _ => None,
        },
        false => None,
    };
    let mut columns = Vec::new();
    for (file, other) in [(0, 1), (1, 0)] {
        let alone = |column: &&String| !tables[other].columns.contains(column) && !is_ignored(column);
        columns.extend(tables[file].columns.iter().filter(alone).map(|column| (column.clone(), file)));
    }
    let mut settings: Vec<Cell> = tables[0]
        .settings
        .keys()
        .chain(tables[1].settings.keys())
        .cloned()
        .map(|name| {
            let values = tables.each_ref().map(|table| table.settings.get(&name).cloned());
            Cell { name, values }
        })
        .collect();
    settings.retain(|cell| cell.values[0] != cell.values[1]);
    settings.sort_by(|a, b| a.name.cmp(&b.name));
    settings.dedup();
    Ok(Diff { files: tables.each_ref().map(|table| table.path.clone()), columns, rows, clients, settings })
}

/// The one table below a path.
fn one(path: &Path) -> Result<Table, PlotError> {
    let (mut tables, _) = read(&[path.to_owned()])?;
    if tables.len() > 1 {
        return Err(PlotError::input(format!(
            "there are {} runs below `{}`, such as `{}`: name one of them",
            tables.len(),
            path.display(),
            tables[0].path.display()
        )));
    }
    Ok(tables.remove(0))
}

fn is_ignored(column: &str) -> bool {
    IGNORED.contains(&column)
}

/// Compares row by row in the columns that both have.
fn compare(tables: &[Table; 2], keys: &[&str]) -> Rows {
    let [a, b] = tables;
    let shared: Vec<(&String, usize, usize)> = a
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| !is_ignored(column))
        .filter_map(|(i, column)| Some((column, i, b.columns.iter().position(|other| other == column)?)))
        .collect();
    let place = |table: &Table, row: usize| {
        let cell = |key: &&str| Some(format!("{key} {}", table.column(key)?.cell(table.rows.get(row)?)));
        let cells: Option<Vec<String>> = keys.iter().map(cell).collect();
        cells.map_or_else(|| format!("row {}", row + 1), |cells| cells.join(", "))
    };
    for (number, (left, right)) in a.rows.iter().zip(&b.rows).enumerate() {
        let cell = |&(column, i, j): &(&String, usize, usize)| {
            let values = [left.get(i), right.get(j)].map(|cell| Some(cell.unwrap_or("").trim().to_owned()));
            (values[0] != values[1]).then(|| Cell { name: column.clone(), values })
        };
        let cells: Vec<Cell> = shared.iter().filter_map(cell).collect();
        if !cells.is_empty() {
            return Rows::Differ(First { place: place(a, number), cells });
        }
    }
    let lengths = [a.rows.len(), b.rows.len()];
    if lengths[0] == lengths[1] {
        return Rows::Equal(lengths[0]);
    }
    let longer = usize::from(lengths[1] > lengths[0]);
    let end = place(&tables[longer], lengths[longer] - 1);
    Rows::Prefix { common: place(a, lengths[0].min(lengths[1]) - 1), longer, end }
}
