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

/// Compares two runs, or two CSV files, row by row; names of runs and wall-clock times do not count. Values are
/// compared as they are written: a result is the same to the last digit or it is another one.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "run,seed,round,test_accuracy,cumulative_uplink_bits,wall_seconds\n";

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::TempDir::new().expect("a folder can be made"))
        }

        fn file(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is in the place")).expect("a folder can be made");
            std::fs::write(path, text).expect("a file can be written");
        }

        fn rounds(&self, folder: &str, accuracies: &[&str]) {
            let row = |(i, accuracy): (usize, &&str)| format!("{folder},0,{},{accuracy},{},{folder}1\n", i + 1, 8 * i);
            let rows: String = accuracies.iter().enumerate().map(row).collect();
            self.file(&format!("{folder}/rounds.csv"), &format!("{HEADER}{rows}"));
        }

        fn diff(&self, a: &str, b: &str) -> Diff {
            diff(&self.0.path().join(a), &self.0.path().join(b)).expect("there are two tables")
        }
    }

    fn cell(name: &str, a: &str, b: &str) -> Cell {
        Cell { name: name.to_owned(), values: [a, b].map(|value| Some(value.to_owned())) }
    }

    #[test]
    fn names_of_runs_and_wall_clocks_do_not_count() {
        let place = Place::new();
        place.rounds("1", &["0.5", "", "0.7"]);
        place.rounds("2", &["0.5", "", "0.7"]);
        let equal = place.diff("1", "2/rounds.csv");
        assert!(
            equal.is_equal() && equal.rows == Rows::Equal(3) && equal.text().ends_with("\nAll 3 rows are equal.\n")
        );
    }

    #[test]
    fn the_first_round_and_column_are_named() {
        let place = Place::new();
        place.rounds("1", &["0.5", "", "0.7"]);
        place.rounds("2", &["0.5", "0.6", "0.8"]);
        let found = place.diff("1", "2");
        let first = First { place: "round 2".to_owned(), cells: vec![cell("test_accuracy", "", "0.6")] };
        assert_eq!((&found.rows, found.is_equal()), (&Rows::Differ(first), false));
        let wanted = "\nThe first difference is in round 2:\n  `test_accuracy`: empty in A, 0.6 in B\n";
        assert!(found.text().ends_with(wanted), "{}", found.text());
    }

    #[test]
    fn a_beginning_is_said_to_be_one() {
        let place = Place::new();
        place.rounds("1", &["0.5", "0.6", "0.7"]);
        place.rounds("2", &["0.5", "0.6"]);
        for (a, b, longer, name) in [("1", "2", 0, "A"), ("2", "1", 1, "B")] {
            let found = place.diff(a, b);
            let wanted = Rows::Prefix { common: "round 2".to_owned(), longer, end: "round 3".to_owned() };
            assert!(found.rows == wanted && !found.is_equal());
            assert!(found.text().ends_with(&format!("Equal up to round 2; {name} goes on to round 3.\n")));
        }
    }

    #[test]
    fn clients_settings_and_columns_are_compared_too() {
        let place = Place::new();
        let clients = "round,client,samples,train_loss\n1,4,10,0.5\n1,7,12,0.25\n";
        for (folder, loss, rate) in [("1", "0.25", "0.1"), ("2", "0.26", "0.2")] {
            place.rounds(folder, &["0.5"]);
            place.file(&format!("{folder}/clients.csv"), &clients.replace("0.25", loss));
            let more = if folder == "2" { "\n[uplink]\noperator = \"sign\"" } else { "" };
            place.file(
                &format!("{folder}/scenario.toml"),
                &format!("rounds = 1\n[method]\nlearning_rate = {rate}{more}"),
            );
        }
        let found = place.diff("1", "2");
        let first = First { place: "round 1, client 7".to_owned(), cells: vec![cell("train_loss", "0.25", "0.26")] };
        assert!(found.rows == Rows::Equal(1) && found.clients == Some(first) && !found.is_equal());
        let only = Cell { name: "uplink.operator".to_owned(), values: [None, Some("sign".to_owned())] };
        assert_eq!(found.settings, [cell("method.learning_rate", "0.1", "0.2"), only]);
        let text = found.text();
        for wanted in [
            "The row is equal.\n",
            "difference of `clients.csv` is in round 1, client 7:\n  `train_loss`: 0.25 in A, 0.26 in B\n",
            "that differ:\n  `method.learning_rate`: 0.1 in A, 0.2 in B\n  `uplink.operator`: absent in A, sign in B\n",
        ] {
            assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
        }
        // Tables that are no rounds have rows by number, and a column that only one has is a difference.
        place.file("1.csv", "a,b\n1,2\n3,4\n");
        place.file("2.csv", "b,a,c\n2,1,0\n4,5,0\n");
        let found = place.diff("1.csv", "2.csv");
        let first = First { place: "row 2".to_owned(), cells: vec![cell("a", "3", "5")] };
        assert_eq!((&found.rows, &found.columns[..]), (&Rows::Differ(first), &[("c".to_owned(), 1)][..]));
        assert!(found.text().ends_with("Only B has the column `c`.\n"));
    }

    #[test]
    fn a_path_leads_to_one_run() {
        let place = Place::new();
        place.rounds("all/1", &["0.5"]);
        place.rounds("all/2", &["0.5"]);
        let refused = diff(&place.0.path().join("all"), &place.0.path().join("all/1")).expect_err("there are two");
        assert!(
            refused.to_string().contains("there are 2 runs below") && refused.to_string().ends_with("name one of them")
        );
        assert!(diff(&place.0.path().join("none"), &place.0.path().join("all/1")).is_err());
    }
}
