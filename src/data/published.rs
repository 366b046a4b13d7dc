//! The comparison of files with the published ones.

use std::{io::Read, path::Path};

use super::DataError;
use crate::digest::{Hash, sha256};

/// SHA-256 of everything that is still to be read.
pub(super) fn sha256_of(reader: &mut impl Read) -> std::io::Result<String> {
    let mut hash = Hash::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hash.hex()),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// A published file after unpacking.
pub(super) struct Published {
    /// Its usual name, without an ending for its packing.
    pub(super) name: &'static str,
    /// SHA-256 of its unpacked content.
    pub(super) sha256: &'static str,
}

/// Compares unpacked `bytes` with the file that they should be, the one at `index` of a data set's `published` files.
///
/// Other content may be a user's own data and gives a warning; another file of the same data set is a mix-up.
///
/// # Errors
/// The content is that of another of the published files.
pub(super) fn compare(
    path: &Path,
    bytes: &[u8],
    index: usize,
    published: &[Published],
) -> Result<Option<String>, DataError> {
    let (found, wanted) = (sha256(bytes), &published[index]);
    if found == wanted.sha256 {
        return Ok(None);
    }
    if let Some(other) = published.iter().find(|other| other.sha256 == found) {
        return Err(DataError::Content {
            path: path.to_owned(),
            expected: format!("`{}`", wanted.name),
            found: format!("the content of `{}`", other.name),
        });
    }
    Ok(Some(format!(
        "`{}` is not the published `{}`: its SHA-256 is {found} after unpacking, that of the published file {}",
        path.display(),
        wanted.name,
        wanted.sha256
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_reader_has_the_digest_of_its_bytes() {
        assert_eq!(sha256_of(&mut &b"abc"[..]).unwrap(), ABC);
    }

    #[test]
    fn the_right_file_passes_another_is_reported_and_a_mix_up_is_refused() {
        let published = [Published { name: "first", sha256: ABC }, Published { name: "second", sha256: "00" }];
        let path = Path::new("/data/file");
        assert_eq!(compare(path, b"abc", 0, &published).unwrap(), None);
        assert!(compare(path, b"abd", 0, &published).unwrap().unwrap().contains("`/data/file` is not the published"));
        let message = compare(path, b"abc", 1, &published).unwrap_err().to_string();
        assert_eq!(message, "`/data/file` holds the content of `first`, expected `second`");
    }
}
