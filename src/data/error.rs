//! What can go wrong with data, said so that a user can mend it.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use miette::Diagnostic;
use thiserror::Error;

/// A data set that cannot be used, and why. All paths are absolute.
#[derive(Debug, Error, Diagnostic)]
pub enum DataError {
    /// Files that are not there.
    #[error("`{name}` is not complete in `{}`: {wanted}", .folder.display())]
    #[diagnostic(help("{remedy}"))]
    Missing {
        /// Name of the data set.
        name: String,
        /// Folder in which the files were expected.
        folder: PathBuf,
        /// Which files were looked for and not found.
        wanted: String,
        /// What to do about it.
        remedy: String,
    },

    /// A file that holds something else than its use demands.
    #[error("`{}` holds {found}, expected {expected}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What the file should hold.
        expected: String,
        /// What it holds.
        found: String,
    },

    /// A file whose length is not the one that its header announces.
    #[error("`{}` should hold {} bytes, but holds {}", .path.display(), grouped(*.expected), grouped(*.found))]
    #[diagnostic(help("the file is damaged or was not copied completely: remove it and get it again"))]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes that the header announces, header included, after unpacking.
        expected: u64,
        /// Bytes that are there, after unpacking.
        found: u64,
    },

    /// A file that cannot be unpacked.
    #[error("`{}` is damaged: {problem}", .path.display())]
    #[diagnostic(help("remove the file and get it again"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the decoder met.
        problem: String,
    },

    /// A file that would need more memory than any file of its kind does.
    #[error("`{}` unpacks to more than {} bytes, the most that is accepted", .path.display(), grouped(*.limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },

    /// Two files that belong together and do not fit.
    #[error(
        "`{}` holds {} {what}, but `{}` holds {} labels",
        .first.display(), grouped(*.first_count), .second.display(), grouped(*.second_count)
    )]
    Counts {
        /// What the first file holds.
        what: &'static str,
        /// The first file.
        first: PathBuf,
        /// Items in the first file.
        first_count: u64,
        /// The file of labels.
        second: PathBuf,
        /// Labels in it.
        second_count: u64,
    },

    /// A label that is not a class.
    #[error("`{}`: label {value} at position {position} is not in 0..={}", .path.display(), .classes - 1)]
    Label {
        /// The file.
        path: PathBuf,
        /// Index of the sample in the file, from 0.
        position: usize,
        /// The label found.
        value: i64,
        /// Number of classes.
        classes: usize,
    },

    /// A line of a text that cannot be read.
    #[error("`{}`, line {line}: {problem}", .path.display())]
    #[diagnostic(help("a line is `label index:value ..`; indices start at 1 and increase"))]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },

    /// Settings that do not suit the data.
    #[error("{0}")]
    Unsuitable(String),

    /// A file that would be overwritten.
    #[error("`{}` exists and is not overwritten", .path.display())]
    #[diagnostic(help("move the file away first"))]
    Exists {
        /// The file.
        path: PathBuf,
    },

    /// Another process that downloads the same file.
    #[error("`{}` is being downloaded by another process", .path.display())]
    Busy {
        /// The partial file.
        path: PathBuf,
    },

    /// A download for which every address failed.
    #[error("`{}` could not be downloaded{}", .path.display(), listed(.failures))]
    #[diagnostic(help("{remedy}"))]
    Download {
        /// The file that was wanted.
        path: PathBuf,
        /// Every address with its reason, in the order tried.
        failures: Vec<AddressFailure>,
        /// How to get the file otherwise.
        remedy: String,
    },

    /// The disc; the message names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// An address that did not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressFailure {
    /// The address.
    pub address: String,
    /// Why.
    pub reason: String,
}

fn listed(failures: &[AddressFailure]) -> String {
    if failures.is_empty() {
        return ": it has no address".to_owned();
    }
    failures.iter().fold(":".to_owned(), |mut text, failure| {
        write!(text, "\n  {}: {}", failure.address, failure.reason).expect("writing to a string cannot fail");
        text
    })
}

/// An error of a library that does not name the file it could not write.
pub(super) fn not_written(path: &Path, error: &std::io::Error) -> DataError {
    std::io::Error::new(error.kind(), format!("failed to write `{}`: {error}", path.display())).into()
}

/// A count with commas between thousands.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(count), text);
        }
    }

    #[test]
    fn a_failed_download_lists_every_address() {
        let failure = |address: &str, reason: &str| AddressFailure { address: address.into(), reason: reason.into() };
        let failures = vec![failure("http://a", "refused"), failure("http://b", "not found")];
        let error = DataError::Download { path: "/d/f.gz".into(), failures, remedy: String::new() };
        assert_eq!(error.to_string(), "`/d/f.gz` could not be downloaded:\n  http://a: refused\n  http://b: not found");
    }
}
