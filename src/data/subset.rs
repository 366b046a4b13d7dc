//! A class-balanced subset in the binary form of CIFAR, and the files of the starter data set.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use atomic_write_file::AtomicWriteFile;
use lzma_rust2::{CheckType, XzOptions, XzWriter};

use super::{
    DataError, Dataset, Source, Split, absolute,
    cifar_10_starter::{Cifar10Starter, FILES, PER_CLASS},
    cifar_records::SHAPE,
    error::{grouped, not_written},
};

/// The first `train_per_class` and `test_per_class` images of each class, in the order of the data set, as records of a
/// label byte and the bytes of the image.
///
/// # Errors
/// A class that has fewer images.
pub fn balanced_subset(
    dataset: &Dataset,
    train_per_class: usize,
    test_per_class: usize,
) -> Result<(Vec<u8>, Vec<u8>), DataError> {
    let train = records(dataset, &dataset.train, "training", train_per_class)?;
    let test = records(dataset, &dataset.test, "test", test_per_class)?;
    Ok((train, test))
}

/// Writes the two files of the starter data set into its folder below the data `directory` and returns their paths.
///
/// The same data set gives the same bytes.
///
/// # Errors
/// A data set of another shape or with too few images of a class; a file that is there already, in which case nothing
/// is written.
pub fn write_starter(dataset: &Dataset, directory: &Path) -> Result<Vec<PathBuf>, DataError> {
    write(dataset, directory, PER_CLASS)
}

fn write(dataset: &Dataset, directory: &Path, per_class: [usize; 2]) -> Result<Vec<PathBuf>, DataError> {
    if dataset.shape != SHAPE {
        let [channels, height, width] = dataset.shape;
        return Err(DataError::Unsuitable(format!(
            "the starter files hold images of 3 × 32 × 32, those of `{}` are {channels} × {height} × {width}",
            dataset.name
        )));
    }
    let remote = Cifar10Starter {}.remote().expect("the starter data set has files");
    let folder = absolute(&directory.join(remote.folder));
    let paths = FILES.map(|name| folder.join(name));
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(DataError::Exists { path: path.clone() });
    }
    let (train, test) = balanced_subset(dataset, per_class[0], per_class[1])?;
    fs_err::create_dir_all(&folder)?;
    for (path, records) in paths.iter().zip([train, test]) {
        let packed = xz(&records)?;
        let written = AtomicWriteFile::open(path).and_then(|mut file| {
            file.write_all(&packed)?;
            file.commit()
        });
        written.map_err(|error| not_written(path, &error))?;
    }
    Ok(paths.to_vec())
}

fn records(dataset: &Dataset, split: &Split, what: &str, per_class: usize) -> Result<Vec<u8>, DataError> {
    let size = dataset.pixels();
    let mut counts = vec![0; dataset.classes];
    let mut records = Vec::new();
    for (image, &label) in split.images.chunks_exact(size).zip(&split.labels) {
        let Some(count) = counts.get_mut(usize::from(label)).filter(|count| **count < per_class) else { continue };
        *count += 1;
        records.push(label);
        records.extend_from_slice(image);
    }
    match counts.iter().position(|&count| count < per_class) {
        None => Ok(records),
        Some(class) => Err(DataError::Unsuitable(format!(
            "`{}` has {} {what} images of class {class}, but {} are wanted",
            dataset.name,
            grouped(counts[class] as u64),
            grouped(per_class as u64)
        ))),
    }
}

fn xz(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut options = XzOptions::with_preset(9);
    options.lzma_options.dict_size = 1 << 24;
    // Literals of pictures gain from context of the byte before, not of the position.
    options.lzma_options.lc = 4;
    options.lzma_options.pb = 0;
    options.set_check_sum_type(CheckType::Crc64);
    let mut writer = XzWriter::new(Vec::new(), options)?;
    writer.write_all(bytes)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Synthetic, packing};

    #[test]
    fn the_first_images_of_each_class_are_kept_in_order() {
        let dataset = Dataset {
            name: "tiny".to_owned(),
            shape: [1, 1, 1],
            classes: 2,
            train: Split { images: vec![10, 11, 12, 13, 14], labels: vec![1, 1, 0, 1, 0] },
            test: Split { images: vec![20, 21], labels: vec![0, 1] },
            table: None,
            mean: vec![0.0],
            deviation: vec![1.0],
            digest: String::new(),
            warnings: Vec::new(),
        };
        let (train, test) = balanced_subset(&dataset, 2, 1).unwrap();
        assert_eq!((train, test), (vec![1, 10, 1, 11, 0, 12, 0, 14], vec![0, 20, 1, 21]));
        let message = balanced_subset(&dataset, 3, 1).unwrap_err().to_string();
        assert_eq!(message, "`tiny` has 2 training images of class 0, but 3 are wanted");
    }

    #[test]
    fn starter_files_are_written_once_alike_each_time_and_read_back() {
        let settings = Synthetic { channels: 3, height: 32, width: 32, train: 60, test: 30, ..Synthetic::default() };
        let dataset = settings.load(Path::new(""), 1).unwrap();
        let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let paths = write(&dataset, first.path(), [5, 2]).unwrap();
        let again = write(&dataset, second.path(), [5, 2]).unwrap();
        for (a, b) in paths.iter().zip(&again) {
            assert_eq!(fs_err::read(a).unwrap(), fs_err::read(b).unwrap());
        }
        let (train, test) = balanced_subset(&dataset, 5, 2).unwrap();
        assert_eq!(packing::read(&paths[0], train.len()).unwrap(), train);
        assert_eq!(packing::read(&paths[1], test.len()).unwrap(), test);
        let starter = Cifar10Starter {}.load(first.path(), 0).unwrap();
        assert_eq!((starter.train.len(), starter.test.len()), (50, 20));

        fs_err::remove_file(&paths[0]).unwrap();
        let message = write_starter(&dataset, first.path()).unwrap_err().to_string();
        assert!(message.ends_with("test-1000.bin.xz` exists and is not overwritten"), "{message}");
        assert!(!paths[0].exists());
    }

    #[test]
    fn other_shapes_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let dataset = Synthetic::default().load(directory.path(), 0).unwrap();
        assert!(write_starter(&dataset, directory.path()).unwrap_err().to_string().contains("are 1 × 8 × 8"));
    }
}
