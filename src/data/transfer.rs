//! One transfer of a file from an address into a partial file, going on where an earlier one ended.

use std::{
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use fs_err::{File, OpenOptions};
use ureq::{Agent, http::header};

use super::{
    DataError, RemoteFile,
    error::grouped,
    packing::{Content, describe},
};

/// Why a transfer ended without the whole file.
#[derive(Debug)]
pub(super) enum Stop {
    /// The address does not deliver.
    Address {
        /// Why.
        reason: String,
        /// Whether the bytes so far are good and asking again may bring more.
        can_go_on: bool,
    },
    /// The disc does not accept.
    Disc(std::io::Error),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Disc(error)
    }
}

fn refused(reason: impl Into<String>) -> Stop {
    Stop::Address { reason: reason.into(), can_go_on: false }
}

/// A client that waits a minute for an answer and for each piece of it, and takes files as they are.
pub(super) fn agent() -> Agent {
    configured(Agent::config_builder())
}

pub(super) fn configured(builder: ureq::config::ConfigBuilder<ureq::typestate::AgentScope>) -> Agent {
    let builder = builder
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_mins(1)))
        .timeout_per_read(Some(Duration::from_mins(1)))
        .accept_encoding("identity")
        .user_agent(concat!("fedbits/", env!("CARGO_PKG_VERSION")));
    builder.build().new_agent()
}

/// A partial file, locked while it is open.
pub(super) struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// Opens or creates the partial file of a published one; the name tells versions apart.
    pub(super) fn open(target: &Path, file: &RemoteFile) -> Result<Self, DataError> {
        let version = file.sha256.get(..12).unwrap_or(file.sha256);
        let path = target.with_file_name(format!("{}.part-{version}", file.name));
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match opened.try_lock() {
            Ok(()) => Ok(Self { path, file: opened }),
            Err(std::fs::TryLockError::WouldBlock) => Err(DataError::Busy { path }),
            Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Bytes so far.
    pub(super) fn length(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Throws the bytes away.
    pub(super) fn clear(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)
    }

    /// A reader from the beginning.
    pub(super) fn rewound(&mut self) -> std::io::Result<&mut File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(&mut self.file)
    }

    /// The first bytes, enough to tell what they are.
    pub(super) fn head(&mut self) -> std::io::Result<Vec<u8>> {
        let mut head = Vec::new();
        self.rewound()?.take(Content::HEAD as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    /// Gives the file its final name.
    pub(super) fn finish(self, target: &Path) -> std::io::Result<()> {
        self.file.sync_all()?;
        fs_err::rename(&self.path, target)
    }

    /// Deletes the file.
    pub(super) fn remove(self) -> std::io::Result<()> {
        fs_err::remove_file(&self.path)
    }
}

/// Adds to the part what the address delivers; success means that the answer came to its end.
pub(super) fn run(
    agent: &Agent,
    address: &str,
    file: &RemoteFile,
    part: &mut Part,
    report: &mut dyn FnMut(u64),
) -> Result<(), Stop> {
    let mut have = part.length()?;
    let mut request = agent.get(address);
    if have > 0 {
        request = request.header(header::RANGE, format!("bytes={have}-"));
    }
    let mut response = request.call().map_err(|error| refused(error.to_string()))?;
    match response.status().as_u16() {
        200 => {
            have = 0;
            part.clear()?;
        }
        206 if have > 0 && starts_at(response.headers().get(header::CONTENT_RANGE), have) => {}
        416 if have > 0 => {
            part.clear()?;
            return run(agent, address, file, part, report);
        }
        _ => return Err(refused(format!("answered {}", response.status()))),
    }
    let announced = response.body().content_length();
    let mut body = response.body_mut().as_reader();
    part.file.seek(SeekFrom::Start(have))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let broke_off = |have: u64, reason: &str| Stop::Address {
            reason: format!("broke off after {} of {} bytes{reason}", grouped(have), grouped(file.bytes)),
            can_go_on: true,
        };
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => return Err(broke_off(have, &format!(": {error}"))),
        };
        part.file.write_all(&buffer[..count])?;
        have += count as u64;
        if have > file.bytes {
            let length = announced.unwrap_or(have).max(have);
            let found = describe(&part.head()?, length);
            let more = if announced.is_some() { "" } else { " or more" };
            part.clear()?;
            return Err(refused(format!("delivered {found}{more}, expected {} bytes", grouped(file.bytes))));
        }
        report(have);
    }
    if have < file.bytes && announced.is_none() && !Content::of(&part.head()?).is_message() {
        let reason = format!("ended after {} of {} bytes", grouped(have), grouped(file.bytes));
        return Err(Stop::Address { reason, can_go_on: true });
    }
    Ok(())
}

/// Whether a `Content-Range` such as `bytes 100-199/200` begins at `have`.
fn starts_at(range: Option<&ureq::http::HeaderValue>, have: u64) -> bool {
    let start = range.and_then(|range| range.to_str().ok()?.strip_prefix("bytes ")?.split('-').next()?.parse().ok());
    start == Some(have)
}
