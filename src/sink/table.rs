//! One CSV file of a run: whole rows only, none twice, and after an interruption none otherwise than it was.

use std::{
    collections::VecDeque,
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use fs_err::{File, OpenOptions};
use serde::Serialize;

/// Rows that are to come again, in their order.
#[derive(Default)]
pub(super) struct Replay {
    header: StringRecord,
    rows: VecDeque<StringRecord>,
}

impl Replay {
    pub fn new(rows: Rows) -> Self {
        Self { header: rows.header, rows: rows.rows.into() }
    }

    /// Rows that have not come yet.
    pub fn left(&self) -> usize {
        self.rows.len()
    }

    /// Compares the next row with one that comes, times apart.
    pub fn next(&mut self, row: &impl Serialize) -> Result<(), String> {
        let (header, record) = parsed(row);
        self.check(&header)?;
        let there = self.rows.pop_front().ok_or("more rows come than stand there")?;
        difference(&header, &there, &record).map_or(Ok(()), Err)
    }

    fn check(&self, header: &StringRecord) -> Result<(), String> {
        if *header == self.header {
            return Ok(());
        }
        Err("the table has other columns than this program writes".to_owned())
    }
}

/// A table that grows by whole rows.
pub(super) struct Table {
    file: File,
    /// Names of the columns, none until they are written, and rows that stand in the file already and are to come again.
    replay: Replay,
    /// Whether the header was compared with that of a row.
    is_checked: bool,
}

/// Rows and the names of their columns.
pub(super) struct Rows {
    pub header: StringRecord,
    pub rows: Vec<StringRecord>,
}

impl Rows {
    /// The number of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    /// The round of a row; 0 if it has none.
    pub fn round(&self, row: &StringRecord) -> u32 {
        self.column("round").and_then(|at| row.get(at)?.parse().ok()).unwrap_or(0)
    }
}

impl Rows {
    /// Makes the rows those of a run that goes on after `round`: under its name, without later rounds, and without evaluations that
    /// only the end of a shorter run asks for.
    pub fn prolong(&mut self, run: &str, round: u32, evaluate_every: u32) {
        let rounds: Vec<u32> = self.rows.iter().map(|row| self.round(row)).collect();
        let of_run = self.column("run");
        let evaluated = ["test_accuracy", "test_loss"].map(|name| self.column(name));
        let mut rows = Vec::new();
        for (row, of_row) in self.rows.iter().zip(rounds).filter(|(_, of_row)| *of_row <= round) {
            let cell = |(at, cell)| {
                if of_run == Some(at) {
                    run
                } else if of_row % evaluate_every != 0 && evaluated.contains(&Some(at)) {
                    ""
                } else {
                    cell
                }
            };
            rows.push(row.iter().enumerate().map(cell).collect());
        }
        self.rows = rows;
    }
}

/// Reads the whole rows of a file.
pub(super) fn read(path: &Path) -> std::io::Result<Rows> {
    let rows = whole_rows(&fs_err::read(path)?);
    Ok(rows.map_err(|reason| std::io::Error::other(format!("`{}`: {reason}", path.display())))?.0)
}

impl Table {
    /// Makes a file that must not exist, and keeps others from writing to it.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        lock(&file)?;
        Ok(Self { file, replay: Replay::default(), is_checked: true })
    }

    /// Opens a file that stops somewhere. All of its rows are to come again until [`Table::settle`] says otherwise, which has to be
    /// called before a row is added.
    pub fn reopen(path: &Path) -> std::io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        lock(&file)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (rows, whole) = whole_rows(&bytes).map_err(|reason| {
            std::io::Error::new(std::io::ErrorKind::InvalidData, format!("`{}`: {reason}", path.display()))
        })?;
        file.seek(SeekFrom::Start(whole as u64))?;
        let is_checked = rows.header.is_empty();
        Ok(Self { file, replay: Replay::new(rows), is_checked })
    }

    /// The rows that are to come again.
    pub fn rows(&self) -> Rows {
        Rows { header: self.replay.header.clone(), rows: self.replay.rows.iter().cloned().collect() }
    }

    /// The rows up to a round do not come again; a row that was torn is cut off.
    pub fn settle(&mut self, round: u32) -> std::io::Result<()> {
        let rows = Rows { header: self.replay.header.clone(), rows: Vec::new() };
        self.replay.rows.retain(|row| rows.round(row) > round);
        let whole = self.file.stream_position()?;
        self.file.set_len(whole)
    }

    /// Adds a row and hands it to the system, so that a kill costs at most the row being written; or, where it stands in the file
    /// already, compares it with what stands there, times apart.
    pub fn append(&mut self, row: &impl Serialize) -> Result<(), String> {
        let shown = format!("`{}`", self.file.path().display());
        if self.replay.left() > 0 {
            self.is_checked = true;
            return self.replay.next(row).map_err(|text| format!("{shown} cannot be gone on with: {text}"));
        }
        if !self.is_checked {
            self.replay.check(&parsed(row).0).map_err(|text| format!("{shown}: {text}"))?;
            self.is_checked = true;
        }
        let mut writer = WriterBuilder::new().has_headers(self.replay.header.is_empty()).from_writer(Vec::new());
        writer.serialize(row).map_err(|error| format!("cannot write {shown}: {error}"))?;
        let bytes = writer.into_inner().expect("memory takes every byte");
        if self.replay.header.is_empty() {
            self.replay.header = parsed(row).0;
        }
        self.file.write_all(&bytes).map_err(|error| error.to_string())
    }

    /// Adds rows as they are.
    pub fn copy(&mut self, rows: &Rows) -> std::io::Result<()> {
        if rows.header.is_empty() {
            return Ok(());
        }
        let mut writer = WriterBuilder::new().from_writer(Vec::new());
        for row in std::iter::once(&rows.header).chain(&rows.rows) {
            writer.write_record(row)?;
        }
        self.replay.header = rows.header.clone();
        self.is_checked = false;
        self.file.write_all(&writer.into_inner().expect("memory takes every byte"))
    }

    /// Waits until the rows are on the disk.
    pub fn sync(&self) -> Result<(), String> {
        self.file.sync_data().map_err(|error| error.to_string())
    }
}

/// Whether somebody writes to a file.
pub(super) fn is_locked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
}

/// Keeps a file to this process for as long as it is open. Where the file system knows no locks there is none.
fn lock(file: &File) -> std::io::Result<()> {
    // Somebody who only looks holds it for a moment.
    for _ in 0..20 {
        match file.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(std::time::Duration::from_millis(10)),
            _ => return Ok(()),
        }
    }
    Err(std::io::Error::other(format!("another process writes to `{}`", file.path().display())))
}

/// The whole rows of a CSV text, and how many bytes they take: a last row that does not end, or ends early, is left out.
pub(super) fn whole_rows(bytes: &[u8]) -> Result<(Rows, usize), String> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let (mut records, mut record) = (Vec::new(), StringRecord::new());
    // Where every record begins, and where the last one ends.
    let mut starts = vec![0];
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        records.push(record.clone());
        starts.push(reader.position().byte() as usize);
    }
    if !bytes.is_empty() && bytes.last() != Some(&b'\n') {
        records.pop();
        starts.truncate(records.len() + 1);
    }
    let mut records = records.into_iter();
    let header = records.next().unwrap_or_default();
    let mut rows: Vec<StringRecord> = records.collect();
    if rows.last().is_some_and(|row| row.len() != header.len()) {
        rows.pop();
        starts.truncate(rows.len() + 2);
    }
    if let Some(at) = rows.iter().position(|row| row.len() != header.len()) {
        return Err(format!("row {} has {} cells, not {}", at + 1, rows[at].len(), header.len()));
    }
    let whole = if header.is_empty() { 0 } else { starts[rows.len() + 1] };
    Ok((Rows { header, rows }, whole))
}

/// Names of columns and cells of a row.
fn parsed(row: &impl Serialize) -> (StringRecord, StringRecord) {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    writer.serialize(row).expect("a row can be written to memory");
    let bytes = writer.into_inner().expect("memory takes every byte");
    let mut records = ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice()).into_records();
    let mut next = || records.next().expect("a header and a row").expect("what was written can be read");
    (next(), next())
}

/// The first cell in which two rows differ, times apart.
fn difference(header: &StringRecord, there: &StringRecord, record: &StringRecord) -> Option<String> {
    let cells = header.iter().zip(there.iter().zip(record));
    let mut others = cells.filter(|(column, (there, here))| there != here && *column != "wall_seconds");
    let (column, (there, here)) = others.next()?;
    let round = header.iter().position(|column| column == "round").and_then(|at| record.get(at)).unwrap_or("?");
    Some(format!("in round {round} `{column}` is `{there}` there, and comes out as `{here}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        run: &'static str,
        round: u32,
        wall_seconds: f64,
        value: Option<f64>,
    }

    fn row(round: u32, wall_seconds: f64, value: f64) -> Row {
        Row { run: "a, \"b\"\nc", round, wall_seconds, value: Some(value) }
    }

    fn table(rows: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("rounds.csv");
        let mut table = Table::create(&path).expect("the file is new");
        (1..=rows).for_each(|round| table.append(&row(round, 0.5, f64::from(round) / 3.0)).expect("there is room"));
        (folder, path)
    }

    #[test]
    fn a_table_cut_at_any_byte_is_repaired_and_comes_out_the_same() {
        let (_folder, path) = table(4);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut table = Table::reopen(&path).expect("a torn row is cut off");
            let rows = table.rows().rows.len() as u32;
            assert!(rows <= 4 && whole.starts_with(&std::fs::read(&path).unwrap()), "nothing was touched");
            table.settle(rows / 2).expect("it can be cut");
            for round in rows / 2 + 1..=4 {
                // The second time takes longer, but what stands in the file stays.
                let seconds = if round <= rows { 9.5 } else { 0.5 };
                table.append(&row(round, seconds, f64::from(round) / 3.0)).expect("it is the same row");
            }
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {length}");
        }
    }

    #[test]
    fn a_row_that_comes_out_otherwise_is_refused_and_named() {
        let (_folder, path) = table(3);
        let mut table = Table::reopen(&path).expect("it is whole");
        table.settle(1).expect("it can be cut");
        let message = table.append(&row(2, 0.1, 0.6)).expect_err("the value is another");
        assert!(
            message.contains("in round 2 `value` is `0.6666666666666666` there, and comes out as `0.6`"),
            "{message}"
        );
    }

    #[test]
    fn numbers_survive_writing_and_reading_also_those_that_are_not_finite() {
        let (_folder, path) = table(0);
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, f64::MAX, 0.1, 1.0 / 3.0];
        let mut table = Table::reopen(&path).expect("it is empty");
        values.iter().for_each(|value| table.append(&row(1, 0.0, *value)).expect("there is room"));
        let (rows, _) = whole_rows(&std::fs::read(&path).unwrap()).expect("the file is whole");
        let column = rows.column("value").expect("it is there");
        let read: Vec<u64> =
            rows.rows.iter().map(|row| row[column].parse::<f64>().expect("a number").to_bits()).collect();
        assert_eq!(read, values.map(f64::to_bits));
        assert_eq!(["NaN", "inf", "-inf"], [0, 1, 2].map(|i| rows.rows[i][column].to_owned()));
    }

    #[test]
    fn only_one_writes_to_a_file_and_others_can_tell() {
        let (_folder, path) = table(1);
        assert!(!is_locked(&path), "nobody writes any more");
        let table = Table::reopen(&path).expect("it is whole");
        assert!(is_locked(&path));
        let second = Table::reopen(&path).err().expect("somebody else writes to it");
        assert!(second.to_string().contains("another process writes to"), "{second}");
        drop(table);
        assert!(Table::reopen(&path).is_ok());
    }

    #[test]
    fn names_with_commas_quotes_and_line_breaks_stay_in_their_cell() {
        let (_folder, path) = table(2);
        let (rows, _) = whole_rows(&std::fs::read(&path).unwrap()).expect("the file is whole");
        assert!(rows.rows.iter().all(|row| &row[0] == "a, \"b\"\nc" && row.len() == 4));
        assert_eq!(rows.header.iter().collect::<Vec<_>>(), ["run", "round", "wall_seconds", "value"]);
    }

    #[test]
    fn rows_of_another_length_in_the_middle_are_refused() {
        let reason = whole_rows(b"round,a\n1,2\n2\n3,4\n").err().expect("row 2 is short");
        assert_eq!(reason, "row 2 has 1 cells, not 2");
    }
}
