//! The binary records of CIFAR-10: one label byte, then 1,024 red, 1,024 green and 1,024 blue bytes, row by row.

use std::path::{Path, PathBuf};

use super::{
    DataError, Dataset, Split,
    error::grouped,
    packing::{Content, describe},
    published::{Published, compare},
};

/// Most bytes that one batch may unpack to, about four times a published one.
pub(super) const LIMIT: usize = 1 << 27;

/// Number of classes.
const CLASSES: usize = 10;

/// Channels, height, width.
pub(super) const SHAPE: [usize; 3] = [3, 32, 32];

/// Bytes of one image.
const PIXELS: usize = 3072;

/// Bytes of one record.
const RECORD: usize = 1 + PIXELS;

/// Makes a data set of unpacked batches with the paths they came from, in the order of `published`; the last is the
/// test split.
///
/// # Errors
/// A batch that is no whole number of records, holds a label out of range, or is another of the published ones.
pub(super) fn dataset(
    name: &str,
    batches: Vec<(PathBuf, Vec<u8>)>,
    published: &[Published],
) -> Result<Dataset, DataError> {
    let last = batches.len().saturating_sub(1);
    let (mut train, mut test, mut warnings) = (Split::default(), Split::default(), Vec::new());
    for (index, (path, bytes)) in batches.into_iter().enumerate() {
        warnings.extend(compare(&path, &bytes, index, published)?);
        append(&path, &bytes, if index == last { &mut test } else { &mut train })?;
    }
    let dataset = Dataset {
        name: name.to_owned(),
        shape: SHAPE,
        classes: CLASSES,
        train,
        test,
        table: None,
        mean: vec![0.4914, 0.4822, 0.4465],
        deviation: vec![0.2470, 0.2435, 0.2616],
        digest: String::new(),
        warnings,
    };
    Ok(dataset.sealed())
}

fn append(path: &Path, bytes: &[u8], split: &mut Split) -> Result<(), DataError> {
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if records.is_empty() || !rest.is_empty() {
        let found = match Content::of(bytes) {
            Content::Empty | Content::Other | Content::Idx => format!("{} bytes", grouped(bytes.len() as u64)),
            _ => describe(bytes, bytes.len() as u64),
        };
        let expected = format!("one or more whole records of {} bytes", grouped(RECORD as u64));
        return Err(DataError::Content { path: path.to_owned(), expected, found });
    }
    split.images.reserve(records.len() * PIXELS);
    split.labels.reserve(records.len());
    for (position, [label, image @ ..]) in records.iter().enumerate() {
        if usize::from(*label) >= CLASSES {
            let value = i64::from(*label);
            return Err(DataError::Label { path: path.to_owned(), position, value, classes: CLASSES });
        }
        split.labels.push(*label);
        split.images.extend_from_slice(image);
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Records of the given labels in which byte `i` of the image of record `n` is `(7 · i + n + shift) mod 256`.
    pub(crate) fn records(labels: &[u8], shift: usize) -> Vec<u8> {
        let record = |(n, label): (usize, &u8)| {
            let pixels = (0..PIXELS).map(move |i| (7 * i + n + shift) as u8);
            std::iter::once(*label).chain(pixels).collect::<Vec<u8>>()
        };
        labels.iter().enumerate().flat_map(record).collect()
    }

    const ANY: [Published; 2] = [Published { name: "train", sha256: "" }, Published { name: "test", sha256: "" }];

    fn load(train: Vec<u8>, test: Vec<u8>) -> Result<Dataset, String> {
        dataset("tiny", vec![("/d/train".into(), train), ("/d/test".into(), test)], &ANY).map_err(|e| e.to_string())
    }

    #[test]
    fn every_planted_byte_of_both_splits_arrives_at_its_place() {
        let dataset = load(records(&[3, 9], 0), records(&[0], 50)).unwrap();
        assert_eq!((&dataset.train.labels[..], &dataset.test.labels[..]), (&[3, 9][..], &[0][..]));
        assert_eq!(dataset.train.images.len(), 2 * PIXELS);
        for (at, &byte) in dataset.train.images.iter().enumerate() {
            assert_eq!(byte, (7 * (at % PIXELS) + at / PIXELS) as u8);
        }
        for (at, &byte) in dataset.test.images.iter().enumerate() {
            assert_eq!(byte, (7 * at + 50) as u8);
        }
    }

    #[test]
    fn parts_of_records_and_other_content_are_refused() {
        let whole = records(&[3, 9], 0);
        assert_eq!(
            load(whole[..5000].to_vec(), whole.clone()).unwrap_err(),
            "`/d/train` holds 5,000 bytes, expected one or more whole records of 3,073 bytes"
        );
        assert!(load(whole.clone(), Vec::new()).unwrap_err().contains("`/d/test` holds 0 bytes"));
        let page = b"<html>503</html>".to_vec();
        assert!(load(page, whole).unwrap_err().contains("`/d/train` holds an HTML page of 16 bytes"));
    }

    #[test]
    fn a_label_out_of_range_is_reported_with_its_position() {
        assert_eq!(
            load(records(&[1, 2, 10], 0), records(&[0], 0)).unwrap_err(),
            "`/d/train`: label 10 at position 2 is not in 0..=9"
        );
    }
}
