//! What a file holds, told from its first bytes and never from its name, and how it is unpacked within a bound.

use std::{fmt, io::Read, path::Path};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::{DataError, error::grouped};

/// Memory that an xz decoder may ask for, in KiB: a dictionary of 64 MiB and some room. The published files need half.
const XZ_MEMORY_KIB: u32 = 70 * 1024;

/// Deflate never unpacks to more than 1,032 times its input.
const DEFLATE_RATIO: usize = 1032;

/// Kinds of content that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Empty,
    Gzip,
    Xz,
    Tar,
    Zip,
    Bzip2,
    Image,
    Idx,
    Html,
    Text,
    Other,
}

impl Content {
    /// Number of leading bytes that decide.
    pub(super) const HEAD: usize = 512;

    /// Decides from the first bytes of a file, [`Content::HEAD`] of them if it has so many.
    pub(super) fn of(head: &[u8]) -> Self {
        let head = &head[..head.len().min(Self::HEAD)];
        match head {
            [] => Self::Empty,
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Self::Zip,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..] => Self::Image,
            _ if head.get(257..262) == Some(b"ustar") => Self::Tar,
            [0, 0, 8 | 9 | 0x0b..=0x0e, 1..=4, ..] => Self::Idx,
            _ => Self::of_text(head),
        }
    }

    fn of_text(head: &[u8]) -> Self {
        let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
        if !head.iter().all(is_text) || std::str::from_utf8(head).is_err_and(|error| error.error_len().is_some()) {
            return Self::Other;
        }
        let start =
            String::from_utf8_lossy(head).trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).to_lowercase();
        let markup = ["<!doctype html", "<html", "<head", "<body", "<?xml"];
        if markup.iter().any(|tag| start.starts_with(tag)) { Self::Html } else { Self::Text }
    }

    /// Whether this is an answer meant for people, such as the error page of a server.
    pub(super) fn is_message(self) -> bool {
        matches!(self, Self::Html | Self::Text)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "nothing",
            Self::Gzip => "a gzip file",
            Self::Xz => "an xz file",
            Self::Tar => "a tar archive",
            Self::Zip => "a zip archive",
            Self::Bzip2 => "a bzip2 file",
            Self::Image => "a picture",
            Self::Idx => "an IDX file",
            Self::Html => "an HTML page",
            Self::Text => "a text",
            Self::Other => "binary data of no known kind",
        })
    }
}

/// Names content for a message: "an HTML page of 1,234 bytes".
pub(super) fn describe(head: &[u8], length: u64) -> String {
    match Content::of(head) {
        Content::Empty => "nothing (0 bytes)".to_owned(),
        content => format!("{content} of {} bytes", grouped(length)),
    }
}

/// Reads a file and unpacks it if its content is gzip or xz.
///
/// # Errors
/// Unreadable, damaged or incomplete content; more than `limit` bytes, packed or unpacked.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, DataError> {
    if fs_err::metadata(path)?.len() > limit as u64 {
        return Err(too_large(path, limit));
    }
    unpack(path, fs_err::read(path)?, limit)
}

/// Unpacks one layer of gzip or xz; anything else is returned as it is. `path` is for messages.
///
/// # Errors
/// As [`read`].
pub(super) fn unpack(path: &Path, bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, DataError> {
    if !matches!(Content::of(&bytes), Content::Gzip | Content::Xz) {
        return if bytes.len() > limit { Err(too_large(path, limit)) } else { Ok(bytes) };
    }
    let mut unpacked = Vec::with_capacity(expected_length(&bytes).min(limit));
    let taken = open(&bytes).take(limit as u64 + 1).read_to_end(&mut unpacked);
    taken.map_err(|error| damaged(path, &error))?;
    if unpacked.len() > limit { Err(too_large(path, limit)) } else { Ok(unpacked) }
}

/// A reader of the unpacked content; bytes that are not packed are read as they are.
pub(super) fn open(bytes: &[u8]) -> Box<dyn Read + '_> {
    match Content::of(bytes) {
        Content::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Content::Xz => Box::new(XzReader::new_mem_limit(bytes, true, XZ_MEMORY_KIB)),
        _ => Box::new(bytes),
    }
}

/// The error for a decoder's complaint about `path`.
pub(super) fn damaged(path: &Path, error: &std::io::Error) -> DataError {
    let problem = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => error.to_string(),
    };
    DataError::Damaged { path: path.to_owned(), problem }
}

/// The error for content beyond the bound.
pub(super) fn too_large(path: &Path, limit: usize) -> DataError {
    DataError::TooLarge { path: path.to_owned(), limit: limit as u64 }
}

/// How much memory to reserve: what gzip claims at its end if that is possible at all; nothing for xz, which grows.
fn expected_length(bytes: &[u8]) -> usize {
    match (Content::of(bytes), bytes.last_chunk::<4>()) {
        (Content::Gzip, Some(claim)) => {
            (u32::from_le_bytes(*claim) as usize).min(bytes.len().saturating_mul(DEFLATE_RATIO))
        }
        _ => 0,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    /// Packs with gzip.
    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Packs with xz.
    pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack_all(bytes: &[u8], limit: usize) -> Result<Vec<u8>, DataError> {
        unpack(Path::new("/data/file"), bytes.to_vec(), limit)
    }

    #[test]
    fn content_is_told_from_leading_bytes() {
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let cases: [(&[u8], Content); 12] = [
            (b"", Content::Empty),
            (&gzip(b"x"), Content::Gzip),
            (&xz(b"x"), Content::Xz),
            (&tar, Content::Tar),
            (b"PK\x03\x04....", Content::Zip),
            (b"BZh91AY", Content::Bzip2),
            (b"\x89PNG\r\n", Content::Image),
            (&[0, 0, 8, 3, 0, 0], Content::Idx),
            (b"\n <!DOCTYPE html><title>404</title>", Content::Html),
            (b"version https://git-lfs.github.com/spec/v1\n", Content::Text),
            ("größe".as_bytes(), Content::Text),
            (&[6, 255, 0, 3], Content::Other),
        ];
        for (bytes, content) in cases {
            assert_eq!(Content::of(bytes), content, "{bytes:?}");
        }
        assert_eq!(describe(b"<html>", 1234), "an HTML page of 1,234 bytes");
    }

    #[test]
    fn every_packing_unpacks_to_the_same_and_several_gzip_members_join() {
        let content: Vec<u8> = (0..5000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for packed in [content.clone(), gzip(&content), xz(&content)] {
            assert_eq!(unpack_all(&packed, 5000).unwrap(), content);
        }
        let members = [gzip(&content[..100]), gzip(&content[100..])].concat();
        assert_eq!(unpack_all(&members, 5000).unwrap(), content);
    }

    #[test]
    fn files_that_end_early_or_go_on_are_refused() {
        let content: Vec<u8> = (0..3000u32).map(|i| ((i * 7919) >> 5) as u8).collect();
        for packed in [gzip(&content), xz(&content)] {
            for length in (6..packed.len()).step_by(7).chain([packed.len() - 1]) {
                assert!(unpack_all(&packed[..length], 5000).is_err(), "cut to {length}");
            }
            assert!(unpack_all(&[packed.as_slice(), b"rest"].concat(), 5000).is_err());
        }
        let message = unpack_all(&gzip(&content)[..500], 5000).unwrap_err().to_string();
        assert_eq!(message, "`/data/file` is damaged: it ends too early");
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        let zeros = vec![0; 1 << 20];
        for packed in [gzip(&zeros), xz(&zeros), zeros.clone()] {
            assert!(matches!(unpack_all(&packed, 1000), Err(DataError::TooLarge { limit: 1000, .. })));
            assert_eq!(unpack_all(&packed, 1 << 20).unwrap().len(), 1 << 20);
        }
    }

    #[test]
    fn a_claimed_length_reserves_no_more_than_is_possible() {
        let mut packed = gzip(b"abc");
        let end = packed.len() - 4;
        packed[end..].fill(0xff);
        assert!(expected_length(&packed) <= packed.len() * DEFLATE_RATIO);
        assert!(unpack_all(&packed, usize::MAX - 1).is_err());
    }

    proptest! {
        #[test]
        fn damaged_bytes_never_panic(position in 0usize..400, value: u8, which in 0usize..2) {
            let content: Vec<u8> = (0..900u32).map(|i| ((i * 31) >> 2) as u8).collect();
            let mut packed = [gzip(&content), xz(&content)][which].clone();
            let position = position % packed.len();
            packed[position] = value;
            if let Ok(unpacked) = unpack_all(&packed, 2000) {
                // The name or the time in a gzip header may change without harm, and so may the magic bytes.
                prop_assert!(unpacked == content || unpacked == packed);
            }
        }
    }
}
