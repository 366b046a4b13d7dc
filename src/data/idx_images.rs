//! Data sets in the form of MNIST: four IDX files, images and labels for training and test.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{
    DataError, Dataset, Split, absolute,
    idx::{self, Idx, Values},
    packing,
    published::{Published, compare},
};

/// Most bytes that one file may unpack to, about five times the largest published one.
const LIMIT: usize = 1 << 28;

/// Height and width.
const SIDE: usize = 28;

/// Number of classes.
const CLASSES: usize = 10;

/// What the four files are for, in the order of [`IdxImages::files`].
const ROLES: [&str; 4] = ["training images", "training labels", "test images", "test labels"];

/// What tells one such data set from another.
pub(super) struct IdxImages {
    /// Name in the catalogue, also of the folder below the data directory.
    pub(super) name: &'static str,
    /// The unpacked files, such as `train-images-idx3-ubyte`: training images and labels, test images and labels.
    pub(super) files: [Published; 4],
    /// Digest of the data set that they make, if it is known: it tells that all files are the published ones with one pass over them.
    pub(super) digest: Option<&'static str>,
    /// Published mean of `pixel / 255`.
    pub(super) mean: f32,
    /// Published standard deviation of `pixel / 255`.
    pub(super) deviation: f32,
}

impl IdxImages {
    /// Reads and checks the four files below the data `directory`.
    pub(super) fn load(&self, directory: &Path) -> Result<Dataset, DataError> {
        let folder = absolute(&directory.join(self.name));
        let paths = self.find(&folder)?;
        let dataset = self.assemble(&paths);
        if dataset.as_ref().is_ok_and(|dataset| self.digest == Some(&*dataset.digest)) {
            return dataset;
        }
        // What is wrong with a file says more than what comes of it.
        let mut warnings = self.compare(&paths)?;
        let mut dataset = dataset?;
        warnings.append(&mut dataset.warnings);
        Ok(Dataset { warnings, ..dataset })
    }

    /// The data set that the files make.
    fn assemble(&self, paths: &[PathBuf]) -> Result<Dataset, DataError> {
        let read =
            |role: usize| values(&paths[role], role, idx::parse(&paths[role], packing::read(&paths[role], LIMIT)?)?);
        let contents: Vec<Vec<u8>> = (0..ROLES.len()).into_par_iter().map(read).collect::<Result<_, DataError>>()?;
        let [train_images, train_labels, test_images, test_labels] =
            contents.try_into().expect("there is one file for every role");
        let train = split([&paths[0], &paths[1]], train_images, train_labels)?;
        let test = split([&paths[2], &paths[3]], test_images, test_labels)?;
        let dataset = Dataset {
            name: self.name.to_owned(),
            shape: [1, SIDE, SIDE],
            classes: CLASSES,
            train,
            test,
            table: None,
            mean: vec![self.mean],
            deviation: vec![self.deviation],
            digest: String::new(),
            warnings: Vec::new(),
        };
        Ok(dataset.sealed())
    }

    /// The path of each file, the first of its [`names`] that is there.
    fn find(&self, folder: &Path) -> Result<Vec<PathBuf>, DataError> {
        let (mut paths, mut missing) = (Vec::new(), Vec::new());
        for (role, file) in ROLES.iter().zip(&self.files) {
            let names = names(file.name);
            match names.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
                Some(path) => paths.push(path),
                None => missing.push(format!("no {role} (looked for `{}`)", names.join("`, `"))),
            }
        }
        if missing.is_empty() {
            return Ok(paths);
        }
        Err(DataError::Missing {
            name: self.name.to_owned(),
            folder: folder.to_owned(),
            wanted: missing.join("; "),
            remedy: format!(
                "`fedbits data fetch {}` downloads the files; without a network, copy them into this folder",
                self.name
            ),
        })
    }

    /// Warnings of files that are not the published ones.
    fn compare(&self, paths: &[PathBuf]) -> Result<Vec<String>, DataError> {
        let one = |role: usize| compare(&paths[role], &packing::read(&paths[role], LIMIT)?, role, &self.files);
        let warnings: Vec<Option<String>> =
            (0..ROLES.len()).into_par_iter().map(one).collect::<Result<_, DataError>>()?;
        Ok(warnings.into_iter().flatten().collect())
    }
}

/// Names under which a file may lie: as published, with the dot that unpacked copies often have, each packed or not.
fn names(name: &str) -> [String; 4] {
    let dotted = name.replacen("-idx", ".idx", 1);
    [format!("{name}.gz"), name.to_owned(), format!("{dotted}.gz"), dotted]
}

/// The bytes of a file that is used in a role.
fn values(path: &Path, role: usize, file: Idx) -> Result<Vec<u8>, DataError> {
    let is_images = role.is_multiple_of(2);
    match (&file.dimensions[..], file.values) {
        ([count, SIDE, SIDE], Values::Bytes(bytes)) if is_images && *count > 0 => Ok(bytes),
        ([count], Values::Bytes(bytes)) if !is_images && *count > 0 => check_labels(path, bytes),
        (dimensions, values) => {
            let sizes: Vec<String> = dimensions.iter().map(usize::to_string).collect();
            let unit = if matches!(values, Values::Bytes(_)) { "bytes" } else { "32-bit integers" };
            let form = if is_images { format!("N × {SIDE} × {SIDE} bytes") } else { "N bytes".to_owned() };
            Err(DataError::Content {
                path: path.to_owned(),
                expected: format!("{} ({form}, N at least 1)", ROLES[role]),
                found: format!("{} {unit}", sizes.join(" × ")),
            })
        }
    }
}

fn check_labels(path: &Path, labels: Vec<u8>) -> Result<Vec<u8>, DataError> {
    match labels.iter().position(|&label| usize::from(label) >= CLASSES) {
        None => Ok(labels),
        Some(position) => {
            let value = i64::from(labels[position]);
            Err(DataError::Label { path: path.to_owned(), position, value, classes: CLASSES })
        }
    }
}

fn split(paths: [&PathBuf; 2], images: Vec<u8>, labels: Vec<u8>) -> Result<Split, DataError> {
    let count = images.len() / (SIDE * SIDE);
    if count == labels.len() {
        return Ok(Split { images, labels });
    }
    Err(DataError::Counts {
        what: "images",
        first: paths[0].clone(),
        first_count: count as u64,
        second: paths[1].clone(),
        second_count: labels.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{
        idx::tests::{idx_bytes, idx_integers},
        packing::tests::{gzip, xz},
    };

    const SET: IdxImages = IdxImages {
        name: "mnist",
        files: [
            Published { name: "train-images-idx3-ubyte", sha256: "" },
            Published { name: "train-labels-idx1-ubyte", sha256: "" },
            Published { name: "t10k-images-idx3-ubyte", sha256: "" },
            Published { name: "t10k-labels-idx1-ubyte", sha256: "" },
        ],
        digest: None,
        mean: 0.5,
        deviation: 0.25,
    };

    /// Three training and two test images in which byte `i` of image `n` is `(31 · i + n + split) mod 256`.
    fn contents() -> [Vec<u8>; 4] {
        let images = |count: u32, shift: u32| {
            let pixels = (0..count).flat_map(|n| (0..784).map(move |i| (31 * i + n + shift) as u8));
            idx_bytes(&[count, 28, 28], &pixels.collect::<Vec<_>>())
        };
        [images(3, 0), idx_bytes(&[3], &[1, 0, 9]), images(2, 100), idx_bytes(&[2], &[4, 9])]
    }

    fn load(files: &[(&str, Vec<u8>)]) -> Result<Dataset, String> {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("mnist");
        fs_err::create_dir(&folder).unwrap();
        for (name, content) in files {
            fs_err::write(folder.join(name), content).unwrap();
        }
        SET.load(directory.path()).map_err(|error| {
            let text = error.to_string();
            assert!(text.contains(&*folder.to_string_lossy()), "no absolute path in: {text}");
            text.replace(&*folder.to_string_lossy(), "")
        })
    }

    /// The four files with one of them replaced.
    fn load_with(role: usize, content: Vec<u8>) -> Result<Dataset, String> {
        let mut files = contents();
        files[role] = content;
        load(&SET.files.each_ref().map(|file| file.name).into_iter().zip(files).collect::<Vec<_>>())
    }

    #[test]
    fn every_planted_byte_of_both_splits_arrives_at_its_place() {
        let dataset = load_with(1, contents()[1].clone()).unwrap();
        assert_eq!((dataset.shape, dataset.classes), ([1, 28, 28], 10));
        assert_eq!((dataset.train.labels, dataset.test.labels), (vec![1, 0, 9], vec![4, 9]));
        for (images, shift) in [(dataset.train.images, 0), (dataset.test.images, 100)] {
            for (at, &byte) in images.iter().enumerate() {
                assert_eq!(byte, (31 * (at % 784) + at / 784 + shift) as u8);
            }
        }
        assert_eq!(dataset.warnings.len(), 4, "own data are used, but each file is said not to be the published one");
    }

    #[test]
    fn names_do_not_decide_and_every_form_gives_the_same_data() {
        let [a, b, c, d] = contents();
        let digest = load_with(0, a.clone()).unwrap().digest;
        let forms = [
            [("train-images-idx3-ubyte.gz", gzip(&a)), ("train-labels-idx1-ubyte.gz", gzip(&b))],
            [("train-images-idx3-ubyte.gz", a.clone()), ("train-labels-idx1-ubyte", gzip(&b))],
            [("train-images.idx3-ubyte", a.clone()), ("train-labels.idx1-ubyte.gz", xz(&b))],
        ];
        for [images, labels] in forms {
            let rest = [("t10k-images.idx3-ubyte.gz", gzip(&c)), ("t10k-labels-idx1-ubyte", d.clone())];
            let dataset = load(&[vec![images, labels], rest.to_vec()].concat()).unwrap();
            assert_eq!(dataset.digest, digest);
        }
    }

    #[test]
    fn any_legal_path_will_do() {
        let directory = tempfile::tempdir().unwrap();
        let mut names = vec![std::ffi::OsString::from("größe und 🜁")];
        #[cfg(unix)]
        names.push(std::os::unix::ffi::OsStringExt::from_vec(vec![b'a', 0xff, b' ']));
        for name in names {
            let inner = directory.path().join(name);
            if fs_err::create_dir_all(inner.join("mnist")).is_err() {
                continue;
            }
            assert!(matches!(SET.load(&inner), Err(DataError::Missing { .. })));
            for (file, content) in SET.files.iter().zip(contents()) {
                fs_err::write(inner.join("mnist").join(file.name), content).unwrap();
            }
            assert_eq!(SET.load(&inner).unwrap().train.len(), 3);
        }
    }

    #[test]
    fn missing_files_are_listed_with_all_names_looked_for() {
        let message = load(&[("train-images-idx3-ubyte", contents()[0].clone())]).unwrap_err();
        assert!(message.starts_with("`mnist` is not complete in ``: no training labels (looked for "), "{message}");
        assert!(message.contains("`t10k-images-idx3-ubyte.gz`, `t10k-images-idx3-ubyte`, `t10k-images.idx3-ubyte.gz`"));
        assert!(message.contains("no test labels") && !message.contains("no training images"), "{message}");
    }

    #[test]
    fn counts_that_differ_name_both_files_and_both_counts() {
        assert_eq!(
            load_with(1, idx_bytes(&[2], &[1, 2])).unwrap_err(),
            "`/train-images-idx3-ubyte` holds 3 images, but `/train-labels-idx1-ubyte` holds 2 labels"
        );
        assert!(load_with(2, contents()[0].clone()).unwrap_err().contains("/t10k-labels-idx1-ubyte` holds 2 labels"));
    }

    #[test]
    fn a_file_in_the_role_of_another_is_refused() {
        assert_eq!(
            load_with(0, contents()[1].clone()).unwrap_err(),
            "`/train-images-idx3-ubyte` holds 3 bytes, expected training images (N × 28 × 28 bytes, N at least 1)"
        );
        assert!(
            load_with(3, contents()[2].clone()).unwrap_err().contains("holds 2 × 28 × 28 bytes, expected test labels")
        );
        assert!(load_with(1, idx_integers(&[3], &[1, 0, 9])).unwrap_err().contains("holds 3 32-bit integers"));
        assert!(load_with(0, idx_bytes(&[3, 14, 56], &[0; 3 * 784])).unwrap_err().contains("holds 3 × 14 × 56 bytes"));
        assert!(load_with(1, idx_bytes(&[0], &[])).unwrap_err().contains("N at least 1"));
    }

    #[test]
    fn a_label_out_of_range_is_reported_with_its_position() {
        assert_eq!(
            load_with(3, idx_bytes(&[2], &[4, 10])).unwrap_err(),
            "`/t10k-labels-idx1-ubyte`: label 10 at position 1 is not in 0..=9"
        );
    }

    #[test]
    fn damaged_files_are_never_used() {
        let images = contents()[0].clone();
        assert_eq!(
            load_with(0, images[..2000].to_vec()).unwrap_err(),
            "`/train-images-idx3-ubyte` should hold 2,368 bytes, but holds 2,000"
        );
        let packed = gzip(&images);
        assert!(load_with(0, packed[..packed.len() / 2].to_vec()).unwrap_err().contains("is damaged"));
        assert!(
            load_with(0, b"<html>Not found</html>".to_vec()).unwrap_err().contains("holds an HTML page of 22 bytes")
        );
        assert!(load_with(0, Vec::new()).unwrap_err().contains("holds nothing"));
    }

    #[test]
    fn a_test_set_equal_to_the_training_set_is_reported() {
        let [a, b, ..] = contents();
        let files = [
            ("train-images-idx3-ubyte", a.clone()),
            ("train-labels-idx1-ubyte", b.clone()),
            ("t10k-images-idx3-ubyte", a),
            ("t10k-labels-idx1-ubyte", b),
        ];
        let warnings = load(&files).unwrap().warnings;
        assert!(warnings.iter().any(|warning| warning.contains("3 of the 3 test images")), "{warnings:?}");
    }
}
