//! Looks for test images among the training images.

use std::collections::HashSet;

use super::{Dataset, error::grouped};

/// Test images looked up first; only if most of them are training images are all test images looked up.
const PROBES: usize = 8;

/// A warning if at least half of the test images are, byte for byte, training images too.
pub(super) fn warning(dataset: &Dataset) -> Option<String> {
    let size = dataset.pixels().max(1);
    let total = dataset.test.images.len() / size;
    if total == 0 {
        return None;
    }
    let test = |i: usize| &dataset.test.images[i * size..(i + 1) * size];
    let train = || dataset.train.images.chunks_exact(size);

    let probes = PROBES.min(total);
    let hits = (0..probes).filter(|i| train().any(|image| image == test(i * total / probes))).count();
    if hits * 2 < probes {
        return None;
    }
    let known: HashSet<&[u8]> = train().collect();
    let shared = (0..total).filter(|&i| known.contains(test(i))).count();
    (shared * 2 >= total).then(|| {
        format!(
            "{} of the {} test images of `{}` are training images as well: accuracy on them says little",
            grouped(shared as u64),
            grouped(total as u64),
            dataset.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Split;

    fn dataset(train: Vec<u8>, test: Vec<u8>) -> Dataset {
        let split = |images: Vec<u8>| Split { labels: vec![0; images.len() / 2], images };
        Dataset {
            name: "tiny".to_owned(),
            shape: [1, 1, 2],
            classes: 1,
            train: split(train),
            test: split(test),
            table: None,
            mean: vec![0.0],
            deviation: vec![1.0],
            digest: String::new(),
            warnings: Vec::new(),
        }
        .sealed()
    }

    #[test]
    fn equal_splits_and_copies_in_another_order_are_reported() {
        let images: Vec<u8> = (0..200).collect();
        let warnings = dataset(images.clone(), images.clone()).warnings;
        assert_eq!(
            warnings,
            ["100 of the 100 test images of `tiny` are training images as well: accuracy on them says little"]
        );
        let reversed = images.chunks(2).rev().flatten().copied().collect();
        assert_eq!(dataset(images, reversed).warnings, warnings);
    }

    #[test]
    fn different_splits_and_single_coincidences_are_not() {
        let images: Vec<u8> = (0..100).collect();
        assert!(dataset(images.clone(), (100..200).collect()).warnings.is_empty());
        let mut test: Vec<u8> = (100..200).collect();
        test[..20].copy_from_slice(&images[..20]);
        assert!(dataset(images.clone(), test).warnings.is_empty());
        assert!(dataset(images, Vec::new()).warnings.is_empty());
    }
}
