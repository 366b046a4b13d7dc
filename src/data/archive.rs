//! Files taken out of a tar archive that is plain or packed with gzip or xz.

use std::{
    io::{ErrorKind, Read},
    path::Path,
};

use super::{
    DataError,
    packing::{Content, damaged, describe, open, too_large},
};

/// Reads those files of the archive whose names, without folders, are `wanted`; `None` where one is not there.
///
/// Anything else in the archive is passed over, also the `._NAME` files that macOS adds.
///
/// # Errors
/// Not a tar archive; damaged or cut short; a wanted file that is larger than `limit` or there twice; an archive that
/// unpacks to more than twice the room of all wanted files.
pub(super) fn members(path: &Path, wanted: &[&str], limit: usize) -> Result<Vec<Option<Vec<u8>>>, DataError> {
    let total = limit.saturating_mul(wanted.len()).saturating_mul(2);
    if fs_err::metadata(path)?.len() > total as u64 {
        return Err(too_large(path, total));
    }
    let packed = fs_err::read(path)?;
    check_kind(path, &packed)?;
    let fail = |error: std::io::Error| damaged(path, &error);

    let mut archive = tar::Archive::new(open(&packed).take(total as u64 + 1));
    let mut found = vec![None; wanted.len()];
    for entry in archive.entries().map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.path().map_err(fail)?.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(index) = wanted.iter().position(|wanted| Some(*wanted) == name.as_deref()) else { continue };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let size = entry.size();
        if size > limit as u64 {
            return Err(too_large(path, limit));
        }
        let mut bytes = Vec::new();
        entry.take(size).read_to_end(&mut bytes).map_err(fail)?;
        if bytes.len() as u64 != size {
            return Err(fail(ErrorKind::UnexpectedEof.into()));
        }
        if found[index].replace(bytes).is_some() {
            let problem = format!("it holds `{}` twice", wanted[index]);
            return Err(DataError::Damaged { path: path.to_owned(), problem });
        }
    }
    // The end of the packed stream carries its checksum, so it is read as well.
    let mut rest = archive.into_inner();
    std::io::copy(&mut rest, &mut std::io::sink()).map_err(fail)?;
    if rest.limit() == 0 { Err(too_large(path, total)) } else { Ok(found) }
}

fn check_kind(path: &Path, packed: &[u8]) -> Result<(), DataError> {
    let mut head = Vec::new();
    open(packed).take(Content::HEAD as u64).read_to_end(&mut head).map_err(|error| damaged(path, &error))?;
    if Content::of(&head) == Content::Tar {
        return Ok(());
    }
    let found = match Content::of(packed) {
        Content::Gzip | Content::Xz => format!("{}, packed", Content::of(&head)),
        _ => describe(packed, packed.len() as u64),
    };
    Err(DataError::Content { path: path.to_owned(), expected: "a tar archive, packed or not".to_owned(), found })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::packing::tests::{gzip, xz};

    /// A tar archive of files with names and contents.
    pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn members_of(bytes: &[u8], wanted: &[&str], limit: usize) -> Result<Vec<Option<Vec<u8>>>, DataError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive.tar.gz");
        fs_err::write(&path, bytes).unwrap();
        members(&path, wanted, limit)
    }

    #[test]
    fn wanted_files_are_found_in_any_packing_and_others_passed_over() {
        let archive = tar(&[("x/._a.bin", b"rubbish"), ("x/a.bin", b"first"), ("x/b.bin", b"second"), ("x/c", b"?")]);
        for bytes in [archive.clone(), gzip(&archive), xz(&archive)] {
            let found = members_of(&bytes, &["b.bin", "a.bin", "d.bin"], 4096).unwrap();
            assert_eq!(found, [Some(b"second".to_vec()), Some(b"first".to_vec()), None]);
        }
    }

    #[test]
    fn other_content_is_named() {
        let message = members_of(b"<html>gone</html>", &["a"], 100).unwrap_err().to_string();
        assert!(
            message.ends_with("holds an HTML page of 17 bytes, expected a tar archive, packed or not"),
            "{message}"
        );
        let message = members_of(&gzip(b"words"), &["a"], 100).unwrap_err().to_string();
        assert!(message.contains("holds a text, packed"), "{message}");
    }

    #[test]
    fn cut_archives_oversized_members_and_duplicates_are_refused() {
        let content = vec![7; 3000];
        let archive = tar(&[("a", &content), ("b", &content)]);
        for length in [512, 600, 3000, 3584, 4096, 5000] {
            let outcome = members_of(&archive[..length], &["a", "b"], 4096);
            assert!(outcome.is_err() || outcome.unwrap().contains(&None), "cut to {length}");
        }
        let packed = gzip(&archive);
        assert!(members_of(&packed[..packed.len() - 3], &["a", "b"], 4096).is_err());
        assert!(matches!(members_of(&archive, &["a"], 2999), Err(DataError::TooLarge { .. })));
        let twice = tar(&[("x/a", b"1"), ("y/a", b"2")]);
        assert!(members_of(&twice, &["a"], 4096).unwrap_err().to_string().ends_with("it holds `a` twice"));
    }
}
