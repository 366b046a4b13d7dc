//! Fetches the published files of a data set: nothing is used unverified, nothing half written gets the final name.

use std::path::{Path, PathBuf};

use ureq::Agent;

use super::{
    AddressFailure, DataError, Remote, RemoteFile, Status, absolute,
    packing::describe,
    published::sha256_of,
    remote::{other_digest, status},
    transfer::{self, Part, Stop},
};

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Name of the file.
    pub name: &'a str,
    /// The address in use.
    pub address: &'a str,
    /// Bytes that are there, those of an earlier attempt included.
    pub done: u64,
    /// Bytes of the whole file.
    pub total: u64,
}

/// A file that is now there and right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Name of the file.
    pub name: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Where it came from.
    pub origin: Origin,
    /// Where a file of this name that was not the published one has been moved.
    pub set_aside: Option<PathBuf>,
}

/// Where a file came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was there already.
    Present,
    /// It was downloaded.
    Address(String),
    /// It was copied from this file.
    Folder(PathBuf),
}

/// Most transfers from one address for one file; only a transfer that brought something is followed by another.
const MAX_TRANSFERS: usize = 20;

/// Makes sure that all files of a data set are below the data `directory`.
///
/// Files that are there and right cause no network access. The addresses of a file are tried in order. Bytes gather in
/// `NAME.part-…`, from which a later call goes on; the file gets its name only when size and SHA-256 are right. A wrong
/// file of that name is moved aside then.
///
/// # Errors
/// A file for which every address fails, with each reason; errors of the disc.
pub fn fetch(
    remote: &Remote,
    directory: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Fetched>, DataError> {
    fetch_with(&transfer::agent(), remote, directory, progress)
}

fn fetch_with(
    agent: &Agent,
    remote: &Remote,
    directory: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Fetched>, DataError> {
    let folder = absolute(&directory.join(remote.folder));
    let mut fetched = Vec::new();
    for file in remote.files {
        let path = folder.join(file.name);
        let (origin, set_aside) = if status(&path, file)? == Status::Right {
            (Origin::Present, None)
        } else {
            fs_err::create_dir_all(&folder)?;
            download(agent, remote, file, &path, progress)?
        };
        fetched.push(Fetched { name: file.name, path, origin, set_aside });
    }
    Ok(fetched)
}

fn download(
    agent: &Agent,
    remote: &Remote,
    file: &RemoteFile,
    path: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Origin, Option<PathBuf>), DataError> {
    let mut part = Part::open(path, file)?;
    // Another process may have finished while this one waited for the disc.
    if status(path, file)? == Status::Right {
        part.remove()?;
        return Ok((Origin::Present, None));
    }
    let mut failures = Vec::new();
    for &address in file.addresses {
        let mut report = |done| progress(Progress { name: file.name, address, done, total: file.bytes });
        match from_address(agent, address, file, &mut part, &mut report) {
            Ok(()) => {
                let set_aside = set_aside(path)?;
                part.finish(path)?;
                return Ok((Origin::Address(address.to_owned()), set_aside));
            }
            Err(Stop::Disc(error)) => return Err(error.into()),
            Err(Stop::Address { reason, .. }) => failures.push(AddressFailure { address: address.to_owned(), reason }),
        }
    }
    if part.length()? == 0 {
        part.remove()?;
    }
    let remedy = match file.addresses {
        [] => {
            format!("`{}` comes with the program or is made by it: see the README of the data directory", remote.name)
        }
        _ => format!(
            "get the file in another way and run `fedbits data import {} FOLDER`, or copy it to `{}`",
            remote.name,
            path.display()
        ),
    };
    Err(DataError::Download { path: path.to_owned(), failures, remedy })
}

/// Fills the part from one address until it is the published file.
fn from_address(
    agent: &Agent,
    address: &str,
    file: &RemoteFile,
    part: &mut Part,
    report: &mut dyn FnMut(u64),
) -> Result<(), Stop> {
    let mut furthest = 0;
    for _ in 0..MAX_TRANSFERS {
        let before = part.length()?;
        // An earlier attempt may have got everything.
        if before < file.bytes
            && let Err(stop) = transfer::run(agent, address, file, part, report)
        {
            let length = part.length()?;
            match stop {
                Stop::Address { can_go_on: true, .. } if length > before.max(furthest) => {}
                stop => return Err(stop),
            }
            furthest = length;
            continue;
        }
        let (length, digest) = (part.length()?, sha256_of(part.rewound()?)?);
        if length == file.bytes && digest == file.sha256 {
            return Ok(());
        }
        let found = if length == file.bytes { other_digest(&digest) } else { describe(&part.head()?, length) };
        part.clear()?;
        // Bytes of two sources, or of an interrupted error page, do not blame this address.
        if before == 0 {
            let reason = format!("delivered {found}, expected {}", super::remote::expected(file));
            return Err(Stop::Address { reason, can_go_on: false });
        }
    }
    Err(Stop::Address { reason: format!("broke off {MAX_TRANSFERS} times"), can_go_on: false })
}

/// Moves a file away that has the name of a published one; nothing of a user's is ever deleted.
fn set_aside(path: &Path) -> Result<Option<PathBuf>, DataError> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let name = path.file_name().unwrap_or_default();
    for number in 1u32.. {
        let mut other = name.to_owned();
        other.push(format!(".set-aside-{number}"));
        let other = path.with_file_name(other);
        if other.symlink_metadata().is_err() {
            fs_err::rename(path, &other)?;
            return Ok(Some(other));
        }
    }
    Err(DataError::Exists { path: path.to_owned() })
}

#[cfg(test)]
mod tests;
