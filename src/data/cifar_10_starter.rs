//! The part of CIFAR-10 that comes with the program.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Remote, RemoteFile, Source, absolute, cifar_records, packing, published::Published};
use crate::catalogue::Named;

/// A subset of CIFAR-10 to start with: 5,000 training and 1,000 test images, the first 500 and 100 of each class.
///
/// # Files
/// In `cifar-10-starter/` below the data directory: `train-5000.bin.xz` and `test-1000.bin.xz`. The content decides
/// whether a file is packed. `fedbits data subset cifar-10` makes them from the complete data set.
///
/// # Pixels
/// As `cifar-10`, with the same constants: three channels in the order red, green, blue, each row by row from the top;
/// `unit` gives `byte / 255`, `standard` gives `(byte / 255 - mean) / deviation` with means 0.4914, 0.4822, 0.4465 and
/// deviations 0.2470, 0.2435, 0.2616.
///
/// # Source
/// Krizhevsky, *Learning multiple layers of features from tiny images*, 2009. A subset: accuracies are not comparable
/// with those published for CIFAR-10. No licence is stated; the authors ask to be cited.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cifar10Starter {}

impl Named for Cifar10Starter {
    const NAME: &'static str = "cifar-10-starter";
}

impl Source for Cifar10Starter {
    fn load(&self, directory: &Path, _seed: u64) -> Result<Dataset, DataError> {
        let folder = absolute(&directory.join(Self::NAME));
        let paths = FILES.map(|name| folder.join(name));
        let missing: Vec<&str> =
            FILES.iter().zip(&paths).filter(|(_, path)| !path.is_file()).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            return Err(DataError::Missing {
                name: Self::NAME.to_owned(),
                folder,
                wanted: format!("looked for `{}`", missing.join("`, `")),
                remedy: REMEDY.to_owned(),
            });
        }
        let read = |path: PathBuf| {
            let bytes = packing::read(&path, cifar_records::LIMIT)?;
            Ok((path, bytes))
        };
        let batches = paths.into_iter().map(read).collect::<Result<_, DataError>>()?;
        cifar_records::dataset(Self::NAME, batches, &PUBLISHED)
    }

    fn remote(&self) -> Option<&'static Remote> {
        Some(&REMOTE)
    }
}

/// Names of the two files below the folder of this data set.
pub(super) const FILES: [&str; 2] = ["train-5000.bin.xz", "test-1000.bin.xz"];

/// Training and test images of each class.
pub(super) const PER_CLASS: [usize; 2] = [500, 100];

const REMEDY: &str = "`fedbits data subset cifar-10` makes the files from the complete data set";

const PUBLISHED: [Published; 2] = [
    Published { name: "train-5000.bin", sha256: "bf8e2e6b9e381140badf8be7d1755e1397c2141221aeec58a41af45b5ef906a7" },
    Published { name: "test-1000.bin", sha256: "2874326af7bc2185faa47540a6da15a077e5b66659f8e479abb9ab628170fa86" },
];

static REMOTE: Remote = Remote {
    name: Cifar10Starter::NAME,
    folder: Cifar10Starter::NAME,
    files: &[
        RemoteFile {
            name: FILES[0],
            bytes: 11_414_452,
            sha256: "f9a458812a08383e2700bff13a988916f4526ad64d4416fc2ce9e38e359da3c4",
            addresses: &[],
        },
        RemoteFile {
            name: FILES[1],
            bytes: 2_281_452,
            sha256: "9a2348b8bb2e3e8b4e1256e89fd3e7fb862ce4f77d67df3d83a2f37fc3de80df",
            addresses: &[],
        },
    ],
    terms: "no licence is stated; the authors ask to cite Krizhevsky, Learning multiple layers of features from tiny \
            images, 2009",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Status, cifar_records::tests::records, verify};

    #[test]
    fn the_files_that_come_with_the_program_load_without_a_warning() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        if !data.join("cifar-10-starter").exists() {
            return;
        }
        let dataset = Cifar10Starter {}.load(&data, 0).unwrap();
        assert_eq!(dataset.warnings, [""; 0]);
        let count = |labels: &[u8], class| labels.iter().map(|&label| usize::from(label == class)).sum::<usize>();
        assert!((0..10).all(|class| count(&dataset.train.labels, class) == 500));
        assert!((0..10).all(|class| count(&dataset.test.labels, class) == 100));
        assert!(verify(&REMOTE, &data).iter().all(|(_, status)| *status == Status::Right));
    }

    #[test]
    fn own_files_are_read_with_a_warning_and_a_missing_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("cifar-10-starter");
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join(FILES[0]), records(&[1, 2, 3], 0)).unwrap();
        let message = Cifar10Starter {}.load(directory.path(), 0).unwrap_err().to_string();
        assert!(message.ends_with("looked for `test-1000.bin.xz`"), "{message}");

        fs_err::write(folder.join(FILES[1]), records(&[4], 90)).unwrap();
        let dataset = Cifar10Starter {}.load(directory.path(), 0).unwrap();
        assert_eq!((dataset.train.labels, dataset.test.labels), (vec![1, 2, 3], vec![4]));
        assert_eq!(dataset.warnings.len(), 2);
    }
}
