//! Data sets as arrays in memory: where their files lie, how they are read, checked and fetched, and what a pixel
//! means.

use std::path::{Path, PathBuf};

use crate::{catalogue::Entry, digest::Hash, entry};

mod error;

mod packing;

mod archive;
mod idx;
mod leak;
mod published;

mod cifar_records;
mod idx_images;

mod cifar_10;
mod cifar_10_starter;
mod fashion_mnist;
mod libsvm;
mod mnist;
mod synthetic;

mod options;
mod pixels;
mod subset;
mod table;
mod writers;

mod download;
mod remote;
mod transfer;

pub use cifar_10::Cifar10;
pub use cifar_10_starter::Cifar10Starter;
pub use download::{Fetched, Origin, Progress, fetch};
pub use error::{AddressFailure, DataError};
pub use fashion_mnist::FashionMnist;
pub use libsvm::Libsvm;
pub use mnist::Mnist;
pub use options::{Augmentation, Normalisation, Options, Transform, limit};
pub use pixels::Pixels;
pub use remote::{Remote, RemoteFile, Status, import, verify};
pub use subset::{balanced_subset, write_starter};
pub use synthetic::Synthetic;
pub use table::{Scaling, Table};
pub use writers::{QMNIST, Writers, mnist_writers};

/// Every data set, in the order in which they are listed.
pub const CATALOGUE: &[Entry<dyn Source>] = &[
    entry!(mnist::Mnist),
    entry!(fashion_mnist::FashionMnist),
    entry!(cifar_10::Cifar10),
    entry!(cifar_10_starter::Cifar10Starter),
    entry!(synthetic::Synthetic),
    entry!(libsvm::Libsvm),
];

/// A data set that can be loaded.
pub trait Source: Send + Sync {
    /// Reads and checks the whole data set below the data `directory`; only synthetic data depend on the `seed`.
    ///
    /// # Errors
    /// Missing files, damaged files, files that do not fit together, labels out of range, settings out of range.
    fn load(&self, directory: &Path, seed: u64) -> Result<Dataset, DataError>;

    /// What can be fetched and verified; nothing for synthetic data.
    fn remote(&self) -> Option<&'static Remote>;
}

/// One split: images as bytes, one after the other, each channel by channel, row by row; and their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// `len() · channels · height · width` bytes.
    pub images: Vec<u8>,
    /// One label an image.
    pub labels: Vec<u8>,
}

impl Split {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// A data set in memory.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Name in the catalogue.
    pub name: String,
    /// Channels, height, width.
    pub shape: [usize; 3],
    /// Number of classes; every label is below it.
    pub classes: usize,
    /// Training samples.
    pub train: Split,
    /// Test samples.
    pub test: Split,
    /// The training samples as rows of numbers, for data that are no images; the splits hold no images then.
    pub table: Option<Table>,
    /// Published mean of `pixel / 255`, one value a channel.
    pub mean: Vec<f32>,
    /// Published standard deviation of `pixel / 255`, one value a channel.
    pub deviation: Vec<f32>,
    /// SHA-256 in hexadecimal over the shape and the bytes of both splits.
    pub digest: String,
    /// What a user should know before trusting results on these data.
    pub warnings: Vec<String>,
}

impl Dataset {
    /// Number of bytes of one image.
    pub fn pixels(&self) -> usize {
        self.shape.iter().product()
    }

    /// Computes the digest and looks for test images among the training images; every source ends with it.
    pub fn sealed(mut self) -> Self {
        self.digest = self.content_digest();
        self.warnings.extend(leak::warning(&self));
        self
    }

    /// SHA-256 over the shape, then images and labels of both splits, each preceded by its length, then the table.
    pub(crate) fn content_digest(&self) -> String {
        let mut hash = Hash::default();
        for &side in &self.shape {
            hash.update(&(side as u64).to_le_bytes());
        }
        for bytes in [&self.train.images, &self.train.labels, &self.test.images, &self.test.labels] {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        if let Some(table) = &self.table {
            hash.update(&(table.width as u64).to_le_bytes());
            table.features.iter().chain(&table.targets).for_each(|value| hash.update(&value.to_le_bytes()));
        }
        hash.hex()
    }
}

/// The data directory: the option if given, else the environment variable `FEDBITS_DATA`, else `data` in the current
/// folder.
pub fn directory(option: Option<&Path>) -> PathBuf {
    choose_directory(option, std::env::var_os("FEDBITS_DATA").map(PathBuf::from))
}

fn choose_directory(option: Option<&Path>, environment: Option<PathBuf>) -> PathBuf {
    let environment = environment.filter(|path| !path.as_os_str().is_empty());
    option.map(Path::to_path_buf).or(environment).unwrap_or_else(|| PathBuf::from("data"))
}

/// The path from the root of the file system, so that messages do not depend on where the program was started.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_over_the_environment_and_both_over_the_default() {
        let (option, environment) = (Path::new("a b/größe"), PathBuf::from("elsewhere"));
        assert_eq!(choose_directory(Some(option), Some(environment.clone())), option);
        assert_eq!(choose_directory(None, Some(environment.clone())), environment);
        assert_eq!(choose_directory(None, Some(PathBuf::new())), Path::new("data"));
        assert_eq!(choose_directory(None, None), Path::new("data"));
    }

    #[test]
    fn the_digest_tells_apart_shape_splits_and_bytes() {
        let split = |images: &[u8], labels: &[u8]| Split { images: images.to_vec(), labels: labels.to_vec() };
        let dataset = |shape, train, test| Dataset {
            name: "tiny".to_owned(),
            shape,
            classes: 2,
            train,
            test,
            table: None,
            mean: vec![0.0],
            deviation: vec![1.0],
            digest: String::new(),
            warnings: Vec::new(),
        };
        let base = dataset([1, 1, 2], split(&[1, 2], &[0]), split(&[3, 4], &[1])).sealed();
        assert_eq!(base.digest, "f8617e6af7863fafb487025068765a0847778fa45bb3bb0624fe56da354302e2");
        assert_eq!(base.pixels(), 2);
        assert!(base.warnings.is_empty());
        let others = [
            dataset([1, 2, 1], base.train.clone(), base.test.clone()),
            dataset([1, 1, 2], base.test.clone(), base.train.clone()),
            dataset([1, 1, 2], split(&[1, 2], &[1]), base.test.clone()),
            dataset([1, 1, 2], split(&[1, 2, 0], &[]), split(&[3, 4], &[1])),
        ];
        for other in others {
            assert_ne!(other.content_digest(), base.digest);
        }
    }

    #[test]
    fn every_source_has_the_headings_and_builds_its_example() {
        for entry in CATALOGUE {
            let doc = entry.doc();
            for heading in ["# Files", "# Pixels", "# Source"] {
                assert!(doc.contains(heading), "{} lacks {heading}", entry.name);
            }
            assert!(entry.build_example().is_ok(), "{}", entry.name);
            assert!((entry.build)(toml::toml! { unknown = 1 }).is_err(), "{}", entry.name);
            assert_eq!(entry.name.replace('-', "_"), entry.module);
        }
    }

    #[test]
    fn an_empty_directory_is_refused_with_its_absolute_path_and_the_files_looked_for() {
        let directory = tempfile::tempdir().unwrap();
        for entry in CATALOGUE {
            let part = entry.build_example().unwrap().part;
            if part.remote().is_none() {
                continue;
            }
            let relative = Path::new("no such folder");
            let started_in = std::env::current_dir().unwrap();
            for (given, shown) in [(directory.path(), directory.path()), (relative, &started_in.join(relative))] {
                let message = part.load(given, 0).unwrap_err().to_string();
                assert!(message.contains(&*shown.to_string_lossy()), "{message}");
                assert!(
                    ["train", "data_batch_1.bin", "bodyfat.gz"].iter().any(|file| message.contains(file)),
                    "{message}"
                );
            }
        }
    }
}
