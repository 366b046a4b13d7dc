//! Who wrote each digit of MNIST, from the tables of QMNIST.

use std::path::{Path, PathBuf};

use super::{
    DataError, Remote, RemoteFile, absolute,
    error::grouped,
    idx::{self, Values},
    packing,
};

/// The two tables, for `fetch`, `verify` and `import`. They lie in `qmnist/` below the data directory.
pub static QMNIST: Remote = Remote {
    name: "qmnist",
    folder: "qmnist",
    files: &[
        RemoteFile {
            name: "qmnist-train-labels-idx2-int.gz",
            bytes: 463_024,
            sha256: "2c05dc77f6b916b38e455e97ab129a42a444f3dbef09b278a366f82904e0dd9f",
            addresses: &[
                "https://raw.githubusercontent.com/facebookresearch/qmnist/master/qmnist-train-labels-idx2-int.gz",
            ],
        },
        RemoteFile {
            name: "qmnist-test-labels-idx2-int.gz",
            bytes: 526_800,
            sha256: "9fbcbe594c3766fdf4f0b15c5165dc0d1e57ac604e01422608bb72c906030d06",
            addresses: &[
                "https://raw.githubusercontent.com/facebookresearch/qmnist/master/qmnist-test-labels-idx2-int.gz",
            ],
        },
    ],
    terms: "BSD licence, Facebook, Inc.; cite Yadav and Bottou, Cold case: the lost MNIST digits, NeurIPS 2019",
};

/// The writer of every MNIST digit.
///
/// Each table has a row of eight integers for a digit: class, series, writer, and five others. Row `i` of the training
/// table describes training image `i`; the first 10,000 rows of the test table describe the test images, the rest other
/// images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writers {
    /// Writer of each training image.
    pub train: Vec<u32>,
    /// Writer of each test image.
    pub test: Vec<u32>,
    train_labels: Vec<u8>,
    train_path: PathBuf,
}

/// Columns of a table.
const COLUMNS: usize = 8;

/// Column of the class.
const CLASS: usize = 0;

/// Column of the writer.
const WRITER: usize = 2;

/// Classes of the digits.
const CLASSES: usize = 10;

/// Rows of the test table that describe test images of MNIST.
const TEST_ROWS: usize = 10_000;

/// Most bytes that a table may unpack to, about thirty times a published one.
const LIMIT: usize = 1 << 26;

/// Reads the tables in `qmnist/` below the data `directory`, each with or without the ending `.gz`.
///
/// # Errors
/// Missing or damaged files, other tables, classes or writers out of range.
pub fn mnist_writers(directory: &Path) -> Result<Writers, DataError> {
    let folder = absolute(&directory.join(QMNIST.folder));
    let find = |file: &RemoteFile| {
        let paths = [folder.join(file.name), folder.join(file.name.trim_end_matches(".gz"))];
        paths.into_iter().find(|path| path.is_file())
    };
    let (Some(train_path), Some(test_path)) = (find(&QMNIST.files[0]), find(&QMNIST.files[1])) else {
        let absent = QMNIST.files.iter().filter(|file| find(file).is_none()).map(|file| format!("`{}`", file.name));
        return Err(DataError::Missing {
            name: "writers of mnist".to_owned(),
            folder: folder.clone(),
            wanted: format!("looked for {} (also without `.gz`)", absent.collect::<Vec<_>>().join(", ")),
            remedy: "`fedbits data fetch qmnist` downloads the tables; without a network, copy them into this folder"
                .to_owned(),
        });
    };
    let (train_labels, train) = table(&train_path)?;
    let (_, mut test) = table(&test_path)?;
    test.truncate(TEST_ROWS);
    Ok(Writers { train, test, train_labels, train_path })
}

impl Writers {
    /// Checks that the table belongs to these training labels: all of MNIST, or the first of them.
    ///
    /// # Errors
    /// More labels than rows, or a row whose class is another.
    pub fn check(&self, train_labels: &[u8]) -> Result<(), DataError> {
        let describe = |problem: String| DataError::Unsuitable(format!("`{}` {problem}", self.train_path.display()));
        if train_labels.len() > self.train_labels.len() {
            return Err(describe(format!(
                "knows the writers of {} training images, but there are {}",
                grouped(self.train_labels.len() as u64),
                grouped(train_labels.len() as u64)
            )));
        }
        match self.train_labels.iter().zip(train_labels).position(|(row, label)| row != label) {
            None => Ok(()),
            Some(position) => Err(describe(format!(
                "is not the table of these images: row {position} is of class {}, the image has label {}",
                self.train_labels[position], train_labels[position]
            ))),
        }
    }
}

/// Classes and writers of a table.
fn table(path: &Path) -> Result<(Vec<u8>, Vec<u32>), DataError> {
    let file = idx::parse(path, packing::read(path, LIMIT)?)?;
    let (&[_, COLUMNS], Values::Integers(values)) = (&file.dimensions[..], file.values) else {
        let sizes: Vec<String> = file.dimensions.iter().map(usize::to_string).collect();
        return Err(DataError::Content {
            path: path.to_owned(),
            expected: format!("a QMNIST table of N × {COLUMNS} 32-bit integers"),
            found: format!("an IDX file of {}", sizes.join(" × ")),
        });
    };
    let (mut classes, mut writers) = (Vec::new(), Vec::new());
    for (position, row) in values.as_chunks::<COLUMNS>().0.iter().enumerate() {
        let class = u8::try_from(row[CLASS]).ok().filter(|&class| usize::from(class) < CLASSES);
        classes.push(class.ok_or_else(|| {
            let value = i64::from(row[CLASS]);
            DataError::Label { path: path.to_owned(), position, value, classes: CLASSES }
        })?);
        writers.push(u32::try_from(row[WRITER]).map_err(|_| DataError::Damaged {
            path: path.to_owned(),
            problem: format!("row {position} has writer {}", row[WRITER]),
        })?);
    }
    Ok((classes, writers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{
        idx::tests::{idx_bytes, idx_integers},
        packing::tests::gzip,
    };

    /// A table of rows given by class and writer.
    fn rows(entries: &[(i32, i32)]) -> Vec<u8> {
        let values: Vec<i32> = entries.iter().flat_map(|&(class, writer)| [class, 4, writer, 9, 9, 9, 9, 9]).collect();
        idx_integers(&[entries.len() as u32, 8], &values)
    }

    fn load(train: &[u8], test: &[u8]) -> Result<Writers, String> {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("qmnist");
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join("qmnist-train-labels-idx2-int.gz"), train).unwrap();
        fs_err::write(folder.join("qmnist-test-labels-idx2-int"), test).unwrap();
        mnist_writers(directory.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn writers_come_from_the_third_column_and_the_labels_are_compared() {
        let writers = load(&gzip(&rows(&[(5, 70), (0, 2589), (4, 70)])), &rows(&[(7, 3)])).unwrap();
        assert_eq!((&writers.train[..], &writers.test[..]), (&[70, 2589, 70][..], &[3][..]));
        assert!(writers.check(&[5, 0, 4]).is_ok() && writers.check(&[5, 0]).is_ok());
        let message = writers.check(&[5, 1, 4]).unwrap_err().to_string();
        assert!(message.ends_with("row 1 is of class 0, the image has label 1"), "{message}");
        assert!(writers.check(&[5, 0, 4, 1]).unwrap_err().to_string().contains("3 training images, but there are 4"));
    }

    #[test]
    fn only_the_first_ten_thousand_test_rows_are_images_of_mnist() {
        let test = rows(&vec![(1, 8); 10_001]);
        assert_eq!(load(&rows(&[(0, 0)]), &test).unwrap().test, vec![8; 10_000]);
    }

    #[test]
    fn other_tables_and_values_out_of_range_are_refused() {
        let right = rows(&[(1, 1)]);
        assert!(load(&rows(&[(1, 1), (10, 1)]), &right).unwrap_err().contains("label 10 at position 1"));
        assert!(load(&rows(&[(1, -1)]), &right).unwrap_err().contains("row 0 has writer -1"));
        assert!(load(&right, &idx_bytes(&[3], &[1, 2, 3])).unwrap_err().contains("expected a QMNIST table"));
        assert!(load(&right, &right[..20]).unwrap_err().contains("should hold 44 bytes"));
    }

    #[test]
    fn missing_tables_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let message = mnist_writers(directory.path()).unwrap_err().to_string();
        assert!(message.contains("qmnist-train-labels-idx2-int.gz`, `qmnist-test-labels"), "{message}");
    }

    #[test]
    fn the_published_tables_belong_to_the_published_labels() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        if !data.join("qmnist").exists() {
            return;
        }
        let writers = mnist_writers(&data).unwrap();
        let count = |ids: &[u32]| ids.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!((writers.train.len(), writers.test.len()), (60_000, 10_000));
        assert_eq!((count(&writers.train), count(&writers.test)), (539, 297));
        let labels = packing::read(&data.join("mnist/train-labels-idx1-ubyte.gz"), LIMIT).unwrap();
        writers.check(&labels[8..]).unwrap();
    }
}
