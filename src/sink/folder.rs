//! The folder of a run: `scenario.toml`, `run.json`, `rounds.csv`, `checkpoint.safetensors` and, on request, `clients.csv`,
//! `layers.csv` and `captures/`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use atomic_write_file::AtomicWriteFile;
use fs_err as fs;
use ndarray::ArrayView1;
use ndarray_npy::WriteNpyExt;
use serde_json::{Value, json};

use super::table::{Table, is_locked};
use crate::run::{
    Capture, Checkpoint, ClientRecord, End, LayerRecord, Observer, Plan, RESULTS_VERSION, RoundRecord, Summary,
};

/// The resolved scenario in the folder of a run.
pub const SCENARIO: &str = "scenario.toml";
/// What the folder of a run says of itself.
pub const MANIFEST: &str = "run.json";
/// The table of the rounds of a run.
pub const ROUNDS: &str = "rounds.csv";
pub(super) const CLIENTS: &str = "clients.csv";
pub(super) const LAYERS: &str = "layers.csv";
pub(super) const CAPTURES: &str = "captures";
/// The last checkpoint and the one before, the newer first.
pub(super) const CHECKPOINTS: [&str; 2] = ["checkpoint.safetensors", "checkpoint.previous.safetensors"];

/// Checkpoints larger than this are kept at the end of a run only if the scenario asks for checkpoints.
const KEPT_BYTES: u64 = 16_000_000;

/// Files of one run. An existing folder is written to only to go on with its run.
pub struct Folder {
    pub(super) path: PathBuf,
    pub(super) rounds: Table,
    pub(super) clients: Option<Table>,
    pub(super) layers: Option<Table>,
    pub(super) manifest: Value,
    /// Whether a checkpoint is kept at the end however large it is.
    keeps: bool,
    last_round: u32,
    /// Round of the last checkpoint that was written here.
    checkpointed: Option<u32>,
}

/// What a folder that exists holds.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Nothing: there is no such folder.
    Absent,
    /// A run that came to its end, also by diverging; its `run.json`.
    Ended(Value),
    /// A run that another process is at work on.
    Running,
    /// A run that was stopped before its end: what its `run.json` says of it.
    Stopped(String),
}

/// A folder that cannot be made, written or gone on with.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system does not allow it.
    #[error("{0}")]
    World(String),
    /// What is in it belongs to another run.
    #[error("{0}")]
    Foreign(String),
}

impl From<std::io::Error> for StateError {
    fn from(error: std::io::Error) -> Self {
        Self::World(error.to_string())
    }
}

impl State {
    /// Looks at a folder.
    pub fn of(path: &Path) -> Self {
        if !path.exists() {
            return Self::Absent;
        }
        // In this order: a process that ends says so before it lets go.
        let is_running = is_locked(&path.join(ROUNDS));
        let manifest = manifest_of(path);
        match manifest["state"].as_str() {
            Some("finished" | "diverged") => Self::Ended(manifest),
            _ if is_running => Self::Running,
            Some("running") => Self::Stopped("it was killed".to_owned()),
            Some(state) => Self::Stopped(match manifest["reason"].as_str() {
                Some(reason) => format!("{state}: {reason}"),
                None => state.to_owned(),
            }),
            None => Self::Stopped("without `run.json`".to_owned()),
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
        let _guard = guard(path);
        fs::create_dir(path)?;
        write_atomically(&path.join(SCENARIO), scenario_text(plan).as_bytes())?;
        let folder = Self::open(path, plan, manifest(plan, threads), Table::create)?;
        folder.write_manifest()?;
        Ok(folder)
    }

    pub(super) fn open(
        path: &Path,
        plan: &Plan,
        manifest: Value,
        table: impl Fn(&Path) -> std::io::Result<Table>,
    ) -> Result<Self, StateError> {
        let wanted = |is_wanted: bool, name| is_wanted.then(|| table(&path.join(name))).transpose();
        let record = &plan.general.record;
        Ok(Self {
            path: path.to_owned(),
            rounds: table(&path.join(ROUNDS))?,
            clients: wanted(record.clients, CLIENTS)?,
            layers: wanted(record.layers, LAYERS)?,
            manifest,
            keeps: plan.general.run.checkpoint_every.is_some(),
            last_round: plan.general.rounds,
            checkpointed: None,
        })
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

    pub(super) fn write_manifest(&self) -> Result<(), StateError> {
        let text = serde_json::to_string_pretty(&self.manifest).expect("a JSON value is JSON");
        write_atomically(&self.path.join(MANIFEST), format!("{text}\n").as_bytes())
    }
}

/// Keeps other processes from making or opening a folder beside this one until it is dropped: in between, a folder is there whose tables
/// nobody has locked yet. Where the system cannot lock a folder there is no guard.
pub(super) fn guard(path: &Path) -> Option<fs::File> {
    let beside = fs::File::open(path.parent()?).ok()?;
    beside.lock().ok()?;
    Some(beside)
}

/// Writes a file as a whole: there is never half of it under its name.
///
/// # Errors
/// If the system does not allow it; the message has the path.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let written = AtomicWriteFile::open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.commit()
    });
    written.map_err(|error| StateError::World(format!("cannot write `{}`: {error}", path.display())))
}

/// What stands in the `run.json` of a folder; null if nothing can be read.
pub(super) fn manifest_of(path: &Path) -> Value {
    let text = fs::read_to_string(path.join(MANIFEST)).ok();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null)
}

pub(super) fn scenario_text(plan: &Plan) -> String {
    let question = plan.question.as_ref().map_or(String::new(), |question| format!("# Question: {question}\n\n"));
    question + &toml::to_string(&plan.resolved).expect("tables of plain values are TOML")
}

/// The resolved scenario that stands in a folder.
pub(super) fn scenario_of(path: &Path) -> Result<toml::Table, String> {
    let text = fs::read_to_string(path.join(SCENARIO)).map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| format!("`{SCENARIO}` is not TOML: {}", error.message()))
}

/// Facts that repeat a run: what was resolved, from which bytes, by which program.
pub(super) fn manifest(plan: &Plan, threads: usize) -> Value {
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

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Observer for Folder {
    fn client(&mut self, record: &ClientRecord) -> Result<(), String> {
        self.clients.as_mut().map_or(Ok(()), |clients| clients.append(record))
    }

    fn layer(&mut self, record: &LayerRecord) -> Result<(), String> {
        self.layers.as_mut().map_or(Ok(()), |layers| layers.append(record))
    }

    fn capture(&mut self, capture: &Capture) -> Result<(), String> {
        let folder = self.path.join(CAPTURES);
        let whose = capture.client.map_or("displacement".to_owned(), |client| format!("client-{client:04}"));
        let path = folder.join(format!("round-{:05}-{whose}.npy", capture.round));
        let mut bytes = Vec::new();
        ArrayView1::from(&capture.vector).write_npy(&mut bytes).expect("a vector can be written to memory");
        // After an interruption the same vector may come again.
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        write_atomically(&path, &bytes).map_err(|error| error.to_string())
    }

    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        self.rounds.append(record)
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        // Rows first: a checkpoint never knows more than the tables.
        for table in [Some(&self.rounds), self.clients.as_ref(), self.layers.as_ref()].into_iter().flatten() {
            table.sync()?;
        }
        let is_last = checkpoint.round() == self.last_round;
        if is_last && !self.keeps && checkpoint.bytes() > KEPT_BYTES {
            return Ok(());
        }
        let [current, previous] = CHECKPOINTS.map(|name| self.path.join(name));
        if current.exists() {
            fs::rename(&current, &previous).map_err(|error| error.to_string())?;
        }
        write_atomically(&current, &checkpoint.to_bytes()).map_err(|error| error.to_string())?;
        self.checkpointed = Some(checkpoint.round());
        Ok(())
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
        self.write_manifest().map_err(|error| error.to_string())?;
        // A run that is over keeps its last checkpoint, from which a longer one may go on, and nothing older.
        let keeps_last = summary.end == End::Rounds && self.checkpointed == Some(summary.rounds);
        let outdated = match summary.end {
            End::Interrupted => &[][..],
            _ if keeps_last => &CHECKPOINTS[1..],
            _ => &CHECKPOINTS[..],
        };
        for path in outdated.iter().map(|name| self.path.join(name)).filter(|path| path.exists()) {
            fs::remove_file(path).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
