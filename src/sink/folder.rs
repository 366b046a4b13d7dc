//! The folder of a run: `scenario.toml`, `run.json`, `rounds.csv` and, on request, `clients.csv`, `layers.csv` and `captures/`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use atomic_write_file::AtomicWriteFile;
use fs_err::{self as fs, File};
use ndarray::ArrayView1;
use ndarray_npy::WriteNpyExt;
use serde::Serialize;
use serde_json::{Value, json};

use crate::run::{Capture, ClientRecord, End, LayerRecord, Observer, Plan, RESULTS_VERSION, RoundRecord, Summary};

/// Files of one run. Made exclusively: an existing folder is never written to.
pub struct Folder {
    path: PathBuf,
    rounds: csv::Writer<File>,
    clients: Option<csv::Writer<File>>,
    layers: Option<csv::Writer<File>>,
    manifest: Value,
}

/// What a folder that exists holds.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Nothing: there is no such folder.
    Absent,
    /// A run that came to its end, also by diverging; its `run.json`.
    Ended(Value),
    /// A run that did not: what its `run.json` says of it.
    Unfinished(String),
}

/// A folder that cannot be made or written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StateError(String);

impl From<std::io::Error> for StateError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl State {
    /// Looks at a folder.
    pub fn of(path: &Path) -> Self {
        if !path.exists() {
            return Self::Absent;
        }
        let manifest = fs::read_to_string(path.join("run.json")).ok();
        let manifest = manifest.and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or(Value::Null);
        match manifest["state"].as_str() {
            Some("finished" | "diverged") => Self::Ended(manifest),
            state => Self::Unfinished(state.unwrap_or("without `run.json`").to_owned()),
        }
    }
}

impl Folder {
    /// Makes the folder of a run and its files.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn create(path: &Path, plan: &Plan, threads: usize) -> Result<Self, StateError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::create_dir(path)?;
        let scenario = toml::to_string(&plan.resolved).expect("tables of plain values are TOML");
        write_atomically(&path.join("scenario.toml"), scenario.as_bytes())?;
        let table = |name: &str| Ok(csv::Writer::from_writer(File::create_new(path.join(name))?));
        let wanted = |is_wanted: bool, name| if is_wanted { table(name).map(Some) } else { Ok::<_, StateError>(None) };
        let record = &plan.general.record;
        let folder = Self {
            path: path.to_owned(),
            rounds: table("rounds.csv")?,
            clients: wanted(record.clients, "clients.csv")?,
            layers: wanted(record.layers, "layers.csv")?,
            manifest: manifest(plan, threads),
        };
        folder.write_manifest()?;
        Ok(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the run could not go on, as far as that can still be written.
    pub fn fail(&mut self, reason: &str) {
        self.manifest["state"] = "failed".into();
        self.manifest["reason"] = reason.into();
        // What made the run fail, such as a full disk, may prevent this as well.
        let _ = self.write_manifest();
    }

    fn write_manifest(&self) -> Result<(), StateError> {
        let text = serde_json::to_string_pretty(&self.manifest).expect("a JSON value is JSON");
        write_atomically(&self.path.join("run.json"), format!("{text}\n").as_bytes())
    }
}

fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let written = AtomicWriteFile::open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.commit()
    });
    written.map_err(|error| StateError(format!("cannot write `{}`: {error}", path.display())))
}

/// Appends one row and hands it to the system, so that a kill costs at most the row being written.
fn append(writer: &mut csv::Writer<File>, row: &impl Serialize) -> Result<(), String> {
    let written = writer.serialize(row).and_then(|()| Ok(writer.flush()?));
    written.map_err(|error| format!("cannot write `{}`: {error}", writer.get_ref().path().display()))
}

/// Facts that repeat a run: what was resolved, from which bytes, by which program.
fn manifest(plan: &Plan, threads: usize) -> Value {
    let sizes: Vec<usize> = plan.shards.partition.shares.iter().map(|share| share.samples.len()).collect();
    json!({
        "state": "running",
        "fedbits_version": env!("CARGO_PKG_VERSION"),
        "results_version": RESULTS_VERSION,
        "scenario": plan.scenario,
        "run": plan.run,
        "threads": threads,
        "device": format!("cpu, {}", std::env::consts::ARCH),
        "engine": plan.engine(),
        "data_digest": plan.shards.dataset.digest,
        "partition_digest": plan.partition_digest,
        "start_digest": plan.start_digest,
        "parameters": plan.setup.layout.len(),
        "clients": sizes.len(),
        "clients_with_samples": plan.holders.len(),
        "training_samples": sizes.iter().sum::<usize>(),
        "unused_samples": plan.shards.partition.unused,
        "test_samples": plan.shards.dataset.test.len(),
        "operator_class": {
            "uplink": plan.setup.uplink.codec.class().to_string(),
            "downlink": plan.setup.downlink.codec.class().to_string(),
        },
        "notes": plan.notes,
        "started_unix_seconds": unix_seconds(),
    })
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Observer for Folder {
    fn client(&mut self, record: &ClientRecord) -> Result<(), String> {
        self.clients.as_mut().map_or(Ok(()), |clients| append(clients, record))
    }

    fn layer(&mut self, record: &LayerRecord) -> Result<(), String> {
        self.layers.as_mut().map_or(Ok(()), |layers| append(layers, record))
    }

    fn capture(&mut self, capture: &Capture) -> Result<(), String> {
        let folder = self.path.join("captures");
        let whose = capture.client.map_or("displacement".to_owned(), |client| format!("client-{client:04}"));
        let path = folder.join(format!("round-{:05}-{whose}.npy", capture.round));
        let mut bytes = Vec::new();
        ArrayView1::from(&capture.vector).write_npy(&mut bytes).expect("a vector can be written to memory");
        let written = fs::create_dir_all(&folder)
            .and_then(|()| File::create_new(&path))
            .and_then(|mut file| file.write_all(&bytes));
        written.map_err(|error| error.to_string())
    }

    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        append(&mut self.rounds, record)
    }

    fn end(&mut self, _plan: &Plan, summary: &Summary) -> Result<(), String> {
        let state = match summary.end {
            End::Rounds | End::Accuracy | End::Distance | End::Bits => "finished",
            End::Diverged => "diverged",
            End::Interrupted => "interrupted",
        };
        self.manifest["state"] = state.into();
        self.manifest["summary"] = serde_json::to_value(summary).expect("a summary is JSON");
        self.manifest["ended_unix_seconds"] = unix_seconds().into();
        self.write_manifest().map_err(|error| error.to_string())
    }
}
