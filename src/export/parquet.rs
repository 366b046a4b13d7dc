//! One Parquet file with the rows of all runs: the columns of `rounds.csv`, then the settings in which runs differ.

use std::{io::Write, path::Path, sync::Arc};

use ::parquet::{
    basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};
use atomic_write_file::AtomicWriteFile;
use fs_err as fs;

use super::{
    ExportError, MAKER,
    run::{NAMES, Run, cells, differing},
};

/// The cells of a column, by what all of them can be read as; `None` is an empty cell.
#[derive(Debug, PartialEq)]
enum Cells {
    Integers(Vec<Option<i64>>),
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<ByteArray>>),
}

/// Writes the file.
pub(super) fn save(runs: &[Run], out: &Path, force: bool) -> Result<(), ExportError> {
    let shown = out.display();
    if out.is_dir() {
        return Err(ExportError::input(format!("`{shown}` is a folder: Parquet is one file; choose another name")));
    }
    if out.exists() && !force && !is_ours(out) {
        return Err(ExportError::input(format!(
            "`{shown}` is there and was not made by `{MAKER}`: it is not overwritten; choose another name, or --force"
        )));
    }
    let bytes = file(&columns(runs)).map_err(|error| ExportError::write(out, &error))?;
    let fail = |error: std::io::Error| ExportError::write(out, &error);
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    let mut file = AtomicWriteFile::open(out).map_err(fail)?;
    file.write_all(&bytes).and_then(|()| file.commit()).map_err(fail)
}

/// What the footer says of the maker; another program that writes the table again puts its own name there.
fn maker() -> String {
    format!("{MAKER} version ")
}

fn is_ours(path: &Path) -> bool {
    let maker = maker();
    fs::read(path).is_ok_and(|bytes| {
        bytes.starts_with(b"PAR1") && bytes.windows(maker.len()).any(|window| window == maker.as_bytes())
    })
}

/// Every column by name.
fn columns<'a>(runs: &[Run<'a>]) -> Vec<(&'a str, Cells)> {
    let mut names: Vec<&str> = Vec::new();
    for name in runs.iter().flat_map(|run| &run.table.columns) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let settings: Vec<&str> = differing(runs).into_iter().filter(|key| !names.contains(key)).collect();
    let of_column = |name: &'a str| {
        let of_run = |run: &Run<'a>| cells(run.table, name).unwrap_or_else(|| vec![""; run.table.rows.len()]);
        let cells: Vec<&str> = runs.iter().flat_map(of_run).collect();
        (name, typed(&cells, NAMES.contains(&name)))
    };
    let of_setting = |key: &'a str| {
        let of_run = |run: &Run<'a>| vec![run.table.settings.get(key).map_or("", |value| value); run.table.rows.len()];
        let cells: Vec<&str> = runs.iter().flat_map(of_run).collect();
        (key, typed(&cells, false))
    };
    names.iter().copied().map(of_column).chain(settings.iter().copied().map(of_setting)).collect()
}

/// Whole numbers if all cells are such, else numbers if all are, else texts. Whole numbers that are too large for an int64 stay
/// texts: as numbers they would lose digits. Without any cell it is a column of numbers.
fn typed(cells: &[&str], is_text: bool) -> Cells {
    let full = || cells.iter().filter(|cell| !cell.is_empty());
    let is_whole = |cell: &&&str| cell.strip_prefix('-').unwrap_or(cell).bytes().all(|byte| byte.is_ascii_digit());
    let is_integer = |cell: &&str| cell.parse::<i64>().is_ok();
    let is_number = |cell: &&str| cell.parse::<f64>().is_ok() && (!is_whole(&cell) || is_integer(cell));
    if is_text || !full().all(is_number) {
        let text = |cell: &&str| (!cell.is_empty()).then(|| ByteArray::from(*cell));
        return Cells::Texts(cells.iter().map(text).collect());
    }
    if full().next().is_some() && full().all(is_integer) {
        return Cells::Integers(cells.iter().map(|cell| cell.parse().ok()).collect());
    }
    Cells::Numbers(cells.iter().map(|cell| cell.parse().ok()).collect())
}

/// The bytes of a file.
fn file(columns: &[(&str, Cells)]) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, cells): &(&str, Cells)| {
        let (kind, logical) = match cells {
            Cells::Integers(_) => (PhysicalType::INT64, None),
            Cells::Numbers(_) => (PhysicalType::DOUBLE, None),
            Cells::Texts(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(name, kind).with_repetition(Repetition::OPTIONAL);
        builder.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("rounds").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_created_by(maker() + env!("CARGO_PKG_VERSION"))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, cells) in columns {
        match cells {
            Cells::Integers(cells) => write::<Int64Type>(&mut group, cells)?,
            Cells::Numbers(cells) => write::<DoubleType>(&mut group, cells)?,
            Cells::Texts(cells) => write::<ByteArrayType>(&mut group, cells)?,
        }
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

/// Writes the next column: which cells are there, and their values.
fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<&mut Vec<u8>>,
    cells: &[Option<T::T>],
) -> Result<(), ParquetError> {
    let is_there: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.iter().flatten().cloned().collect();
    let mut column = group.next_column()?.expect("the schema has as many columns");
    column.typed::<T>().write_batch(&values, Some(&is_there), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use ::parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::Field,
    };

    use super::{
        super::run::tests::{TWO_ROUNDS, table},
        *,
    };

    #[test]
    fn types_fit_all_cells() {
        assert_eq!(typed(&["1", "", "-2"], false), Cells::Integers(vec![Some(1), None, Some(-2)]));
        assert_eq!(typed(&["1", "0.5", ""], false), Cells::Numbers(vec![Some(1.0), Some(0.5), None]));
        assert_eq!(typed(&["inf", "-inf"], false), Cells::Numbers(vec![Some(f64::INFINITY), Some(f64::NEG_INFINITY)]));
        assert_eq!(typed(&["", ""], false), Cells::Numbers(vec![None, None]));
        let text = |text: &str| Some(ByteArray::from(text));
        assert_eq!(typed(&["1", "a"], false), Cells::Texts(vec![text("1"), text("a")]));
        assert_eq!(typed(&["12", ""], true), Cells::Texts(vec![text("12"), None]));
        let large = "18446744073709551615";
        assert_eq!(typed(&[large, "1"], false), Cells::Texts(vec![text(large), text("1")]));
    }

    #[test]
    fn a_file_is_read_back() {
        let place = tempfile::tempdir().unwrap();
        let short = "run,round,cumulative_uplink_bits,more\nb,1,8,true\n";
        let tables = [
            table(
                place.path(),
                "a",
                TWO_ROUNDS,
                &[("seed", "3"), ("uplink.ratio", "0.1"), ("uplink.operator", "top-k")],
            ),
            table(place.path(), "b", short, &[("seed", "4"), ("uplink.operator", "sign")]),
        ];
        let (runs, _) = Run::of(&tables).unwrap();
        let out = place.path().join("deep/all.parquet");
        save(&runs, &out, false).unwrap();
        let before = fs::read(&out).unwrap();
        save(&runs, &out, false).unwrap();
        assert_eq!(fs::read(&out).unwrap(), before);
        let reader = SerializedFileReader::new(std::fs::File::open(&out).unwrap()).unwrap();
        let rows: Vec<Vec<(String, Field)>> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect();
        let cell = |row: usize, name: &str| rows[row].iter().find(|(key, _)| key == name).unwrap().1.clone();
        assert_eq!((rows.len(), rows[0].len()), (3, 14));
        assert_eq!(cell(0, "test_accuracy"), Field::Null);
        assert_eq!(cell(1, "test_accuracy"), Field::Double(0.75));
        assert_eq!(cell(1, "uplink_bits"), Field::Long(63_747_201));
        assert_eq!(cell(0, "model_digest"), Field::Str("1234".to_owned()));
        assert_eq!(cell(2, "model_digest"), Field::Null);
        assert_eq!(cell(0, "seed"), Field::Long(3));
        assert_eq!(cell(0, "uplink.ratio"), Field::Double(0.1));
        assert_eq!(cell(2, "uplink.ratio"), Field::Null);
        assert_eq!(cell(2, "uplink.operator"), Field::Str("sign".to_owned()));
        assert_eq!(cell(2, "more"), Field::Str("true".to_owned()));
        assert!(matches!(cell(1, "learning_rate"), Field::Double(value) if value.is_nan()));
    }

    #[test]
    fn a_file_that_is_not_ours_stays() {
        let place = tempfile::tempdir().unwrap();
        let tables = [table(place.path(), "a", TWO_ROUNDS, &[])];
        let (runs, _) = Run::of(&tables).unwrap();
        let out = place.path().join("mine.parquet");
        fs::write(&out, "fedbits export version 1").unwrap();
        let error = save(&runs, &out, false).expect_err("it is refused").to_string();
        assert!(error.contains("was not made by `fedbits export`"), "{error}");
        save(&runs, &out, true).unwrap();
        save(&runs, &out, false).unwrap();
        assert!(save(&runs, place.path(), true).is_err());
    }
}
