//! Published files: where they lie, whether they are right, and how they are taken over from a folder.

use std::{
    io::{Read, Write},
    path::Path,
};

use atomic_write_file::AtomicWriteFile;

use super::{
    DataError, Fetched, Origin, absolute,
    error::{grouped, not_written},
    packing::{Content, describe},
    published::sha256_of,
};
use crate::digest::Hash;

/// A published file.
#[derive(Clone, Debug)]
pub struct RemoteFile {
    /// Name below the folder of the data set.
    pub name: &'static str,
    /// Size.
    pub bytes: u64,
    /// SHA-256 in lowercase hexadecimal.
    pub sha256: &'static str,
    /// Where it can be downloaded, in the order to try.
    pub addresses: &'static [&'static str],
}

/// The published files of a data set.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Name of the data set.
    pub name: &'static str,
    /// Folder below the data directory.
    pub folder: &'static str,
    /// The files.
    pub files: &'static [RemoteFile],
    /// Under which terms the data may be used.
    pub terms: &'static str,
}

/// Whether a file is the published one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is, byte for byte.
    Right,
    /// There is no such file.
    Missing,
    /// It is not, and why.
    Wrong(String),
}

/// Compares the files below the data `directory` with the published ones, without any network access.
pub fn verify(remote: &Remote, directory: &Path) -> Vec<(&'static str, Status)> {
    let folder = absolute(&directory.join(remote.folder));
    let status = |file: &RemoteFile| {
        status(&folder.join(file.name), file).unwrap_or_else(|error| Status::Wrong(error.to_string()))
    };
    remote.files.iter().map(|file| (file.name, status(file))).collect()
}

/// Copies the files of a data set into the data `directory` from the folder `from`, or from the folder of the data set
/// in it.
///
/// Files that are there and right are left alone. All are verified before the first is copied, and each copy again.
///
/// # Errors
/// A file that is missing in `from` or not the published one; another file of that name in the data directory.
pub fn import(remote: &Remote, from: &Path, directory: &Path) -> Result<Vec<Fetched>, DataError> {
    let (from, folder) = (absolute(from), absolute(&directory.join(remote.folder)));
    let mut plan = Vec::new();
    let mut missing = Vec::new();
    for file in remote.files {
        let path = folder.join(file.name);
        match status(&path, file)? {
            Status::Right => {
                plan.push((file, path, None));
                continue;
            }
            Status::Wrong(_) => return Err(DataError::Exists { path }),
            Status::Missing => {}
        }
        let sources = [from.join(file.name), from.join(remote.folder).join(file.name)];
        let Some(source) = sources.into_iter().find(|source| source.is_file()) else {
            missing.push(file.name);
            continue;
        };
        if let Status::Wrong(found) = status(&source, file)? {
            return Err(DataError::Content { path: source, expected: expected(file), found });
        }
        plan.push((file, path, Some(source)));
    }
    if !missing.is_empty() {
        return Err(DataError::Missing {
            name: remote.name.to_owned(),
            folder: from,
            wanted: format!("looked for `{}`, here and in `{}`", missing.join("`, `"), remote.folder),
            remedy: "name a folder that holds the published files under their own names".to_owned(),
        });
    }
    let mut fetched = Vec::new();
    for (file, path, source) in plan {
        let origin = match source {
            None => Origin::Present,
            Some(source) => {
                copy(file, &source, &path)?;
                Origin::Folder(source)
            }
        };
        fetched.push(Fetched { name: file.name, path, origin, set_aside: None });
    }
    Ok(fetched)
}

/// Compares one file with the published one.
pub(super) fn status(path: &Path, file: &RemoteFile) -> Result<Status, DataError> {
    if !path.is_file() {
        return match path.symlink_metadata() {
            Ok(_) => Ok(Status::Wrong("something that is not a file".to_owned())),
            Err(_) => Ok(Status::Missing),
        };
    }
    let (length, mut reader) = (fs_err::metadata(path)?.len(), fs_err::File::open(path)?);
    if length == file.bytes {
        let digest = sha256_of(&mut reader)?;
        return Ok(if digest == file.sha256 { Status::Right } else { Status::Wrong(other_digest(&digest)) });
    }
    let mut head = Vec::new();
    reader.take(Content::HEAD as u64).read_to_end(&mut head)?;
    Ok(Status::Wrong(describe(&head, length)))
}

/// The published file in words.
pub(super) fn expected(file: &RemoteFile) -> String {
    format!("{} bytes with SHA-256 {}", grouped(file.bytes), file.sha256)
}

/// Content of the right length in words.
pub(super) fn other_digest(digest: &str) -> String {
    format!("as many bytes as the published file, but with SHA-256 {digest}")
}

fn copy(file: &RemoteFile, source: &Path, path: &Path) -> Result<(), DataError> {
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    let mut reader = fs_err::File::open(source)?;
    let fail = |error: std::io::Error| not_written(path, &error);
    let mut copy = AtomicWriteFile::open(path).map_err(fail)?;
    let mut hash = Hash::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        copy.write_all(&buffer[..count]).map_err(fail)?;
    }
    let digest = hash.hex();
    if digest != file.sha256 {
        copy.discard().map_err(fail)?;
        let found = format!("bytes with SHA-256 {digest}");
        return Err(DataError::Content { path: source.to_owned(), expected: expected(file), found });
    }
    copy.commit().map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two files, `abc` and nothing.
    const REMOTE: Remote = Remote {
        name: "tiny",
        folder: "tiny",
        files: &[
            RemoteFile {
                name: "abc",
                bytes: 3,
                sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                addresses: &[],
            },
            RemoteFile {
                name: "none",
                bytes: 0,
                sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                addresses: &[],
            },
        ],
        terms: "",
    };

    #[test]
    fn files_are_right_missing_or_wrong_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("tiny");
        fs_err::create_dir(&folder).unwrap();
        let check = |content: &[u8]| {
            fs_err::write(folder.join("abc"), content).unwrap();
            verify(&REMOTE, directory.path())[0].1.clone()
        };
        assert_eq!(check(b"abc"), Status::Right);
        assert_eq!(check(b"<html>"), Status::Wrong("an HTML page of 6 bytes".to_owned()));
        assert!(matches!(check(b"abd"), Status::Wrong(problem) if problem.contains("but with SHA-256 a52d159f")));
        assert_eq!(verify(&REMOTE, directory.path())[1], ("none", Status::Missing));
    }

    #[test]
    fn import_copies_verified_files_and_never_overwrites() {
        let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let message = import(&REMOTE, from.path(), to.path()).unwrap_err().to_string();
        assert!(message.contains("looked for `abc`, `none`"), "{message}");

        fs_err::create_dir(from.path().join("tiny")).unwrap();
        fs_err::write(from.path().join("abc"), "abc").unwrap();
        fs_err::write(from.path().join("tiny/none"), "damaged").unwrap();
        let message = import(&REMOTE, from.path(), to.path()).unwrap_err().to_string();
        assert!(message.contains("none` holds a text of 7 bytes, expected 0 bytes with SHA-256 e3b0"), "{message}");
        assert!(!to.path().join("tiny").exists());

        fs_err::write(from.path().join("tiny/none"), "").unwrap();
        let imported = import(&REMOTE, from.path(), to.path()).unwrap();
        assert_eq!(imported[0].origin, Origin::Folder(from.path().join("abc")));
        assert!(verify(&REMOTE, to.path()).iter().all(|(_, status)| *status == Status::Right));
        let again = import(&REMOTE, from.path(), to.path()).unwrap();
        assert!(again.iter().all(|file| file.origin == Origin::Present));

        fs_err::write(to.path().join("tiny/abc"), "mine").unwrap();
        assert!(matches!(import(&REMOTE, from.path(), to.path()), Err(DataError::Exists { .. })));
        assert_eq!(fs_err::read(to.path().join("tiny/abc")).unwrap(), b"mine");
    }
}
