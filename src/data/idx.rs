//! The IDX format of the MNIST family: a header of dimensions, then the values.

use std::path::Path;

use super::{
    DataError,
    packing::{Content, describe},
};

/// A parsed IDX file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Idx {
    /// Sizes, slowest first; the product is the number of values.
    pub(super) dimensions: Vec<usize>,
    /// The values.
    pub(super) values: Values,
}

/// Values of the two element types in use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Type 8: unsigned bytes.
    Bytes(Vec<u8>),
    /// Type 12: signed 32-bit integers, most significant byte first.
    Integers(Vec<i32>),
}

/// Parses unpacked content; `path` is for messages.
///
/// The header is two zero bytes, the element type, the number of dimensions, then each dimension as an unsigned 32-bit
/// integer with the most significant byte first.
///
/// # Errors
/// Other content, an element type not in use, or a length that is not exactly the one announced.
pub(super) fn parse(path: &Path, mut bytes: Vec<u8>) -> Result<Idx, DataError> {
    let other = |found: String| DataError::Content {
        path: path.to_owned(),
        expected: "an IDX file of bytes or 32-bit integers".to_owned(),
        found,
    };
    let &[0, 0, kind, rank, ..] = bytes.as_slice() else {
        return Err(other(describe(&bytes, bytes.len() as u64)));
    };
    let width = match kind {
        0x08 => 1,
        0x0c => 4,
        _ if Content::of(&bytes) == Content::Idx => return Err(other(format!("an IDX file of type {kind:#04x}"))),
        _ => return Err(other(describe(&bytes, bytes.len() as u64))),
    };
    if rank == 0 {
        return Err(other("an IDX file without dimensions".to_owned()));
    }
    let length = |expected: u64| DataError::Length { path: path.to_owned(), expected, found: bytes.len() as u64 };
    let start = 4 + 4 * usize::from(rank);
    let header = bytes.get(4..start).ok_or_else(|| length(start as u64))?;
    let sizes: Vec<u32> = header.as_chunks().0.iter().map(|size| u32::from_be_bytes(*size)).collect();
    // A product beyond 64 bits is certainly not the length of the file.
    let announced = sizes
        .iter()
        .try_fold(width, |product: u64, &size| product.checked_mul(u64::from(size)))
        .and_then(|values| values.checked_add(start as u64))
        .unwrap_or(u64::MAX);
    if announced != bytes.len() as u64 {
        return Err(length(announced));
    }
    let dimensions = sizes.iter().map(|&size| size as usize).collect();
    let values = if width == 1 {
        bytes.drain(..start);
        Values::Bytes(bytes)
    } else {
        Values::Integers(bytes[start..].as_chunks().0.iter().map(|value| i32::from_be_bytes(*value)).collect())
    };
    Ok(Idx { dimensions, values })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An IDX file of bytes.
    pub(crate) fn idx_bytes(dimensions: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, dimensions.len() as u8];
        bytes.extend(dimensions.iter().flat_map(|size| size.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    /// An IDX file of 32-bit integers.
    pub(crate) fn idx_integers(dimensions: &[u32], values: &[i32]) -> Vec<u8> {
        let mut bytes = idx_bytes(dimensions, &[]);
        bytes[2] = 12;
        bytes.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        bytes
    }

    fn refusal(bytes: &[u8]) -> String {
        parse(Path::new("/d/f"), bytes.to_vec()).unwrap_err().to_string()
    }

    #[test]
    fn bytes_and_integers_come_out_as_written() {
        let parsed = parse(Path::new("f"), idx_bytes(&[2, 3], &[1, 2, 3, 4, 5, 255])).unwrap();
        assert_eq!(parsed, Idx { dimensions: vec![2, 3], values: Values::Bytes(vec![1, 2, 3, 4, 5, 255]) });
        let parsed = parse(Path::new("f"), idx_integers(&[1, 2], &[-2, 70_000])).unwrap();
        assert_eq!(parsed, Idx { dimensions: vec![1, 2], values: Values::Integers(vec![-2, 70_000]) });
    }

    #[test]
    fn every_other_length_is_refused_with_both_numbers() {
        let whole = idx_bytes(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        for length in 4..whole.len() {
            assert!(refusal(&whole[..length]).starts_with("`/d/f` should hold"), "{length}");
        }
        assert_eq!(refusal(&whole[..15]), "`/d/f` should hold 18 bytes, but holds 15");
        assert_eq!(refusal(&[whole, vec![0]].concat()), "`/d/f` should hold 18 bytes, but holds 19");
    }

    #[test]
    fn absurd_claims_neither_overflow_nor_allocate() {
        let absurd = idx_bytes(&[u32::MAX; 4], &[1]);
        assert!(refusal(&absurd).contains("18,446,744,073,709,551,615 bytes, but holds 21"));
        assert!(refusal(&idx_bytes(&[u32::MAX], &[1])).contains("4,294,967,303 bytes"));
    }

    #[test]
    fn other_content_is_named() {
        assert!(refusal(b"<html></html>").contains("holds an HTML page of 13 bytes, expected an IDX file"));
        assert!(refusal(b"").contains("holds nothing"));
        assert!(refusal(&[0, 0, 0x0d, 1, 0, 0, 0, 0]).contains("an IDX file of type 0x0d"));
        assert!(refusal(&[0, 0, 8, 0]).contains("without dimensions"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64), rank in 0u8..5) {
            let _ = parse(Path::new("f"), bytes.clone());
            let _ = parse(Path::new("f"), [vec![0, 0, 8, rank], bytes].concat());
        }
    }
}
