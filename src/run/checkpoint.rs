//! Checkpoints: everything that a run needs to go on after a round as if it had never stopped.
//!
//! Nothing random is in it: every stream follows from its address. The bytes are a safetensors file, so that other programs can read
//! the vectors; its metadata hold the state as TOML under a SHA-256 of the whole.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::{Plan, RESULTS_VERSION, Star, differences_of};
use crate::{digest::Hash, network::Ledger};

/// Changes whenever older checkpoints can no longer be read.
const FORMAT: u32 = 1;

/// Key of the metadata that holds the state.
const STATE: &str = "fedbits";

/// Name of the ledger's numbers among the vectors.
const LEDGER: &str = "ledger";

/// What the last evaluation of a run came to, and the best one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Accuracy of the last evaluation.
    pub accuracy: Option<f64>,
    /// Loss of the last evaluation.
    pub loss: Option<f64>,
    /// Best accuracy of any evaluation.
    pub best_accuracy: Option<f64>,
    /// Accuracy of the last evaluation under each rotation of the test set, by degrees.
    pub accuracy_by_rotation: Vec<(u32, f64)>,
}

/// What a checkpoint holds beside vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    format: u32,
    results_version: u32,
    /// The last round that is in it.
    pub round: u32,
    /// Wall-clock time of the run up to there.
    pub wall_seconds: f64,
    /// Messages that may still be captured.
    pub captures_left: usize,
    data_digest: String,
    partition_digest: String,
    start_digest: String,
    pub evaluated: Evaluated,
    /// The resolved scenario.
    scenario: toml::Table,
}

impl State {
    pub(super) fn new(plan: &Plan, round: u32, wall_seconds: f64, captures_left: usize, evaluated: Evaluated) -> Self {
        Self {
            format: FORMAT,
            results_version: RESULTS_VERSION,
            round,
            wall_seconds,
            captures_left,
            data_digest: plan.shards.dataset.digest.clone(),
            partition_digest: plan.partition_digest.clone(),
            start_digest: plan.start_digest.clone(),
            evaluated,
            scenario: plan.resolved.clone(),
        }
    }
}

/// Bytes from which no run can go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// They are not those of a checkpoint, or not all of them.
    #[error("{0}")]
    Damaged(String),
    /// They are those of a checkpoint of another version.
    #[error("{0}")]
    Foreign(String),
}

/// A run after one of its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub(super) state: State,
    /// What nodes remember, by the name of the node and of the vector.
    vectors: BTreeMap<String, Vec<f32>>,
    ledger: Vec<u64>,
}

impl Checkpoint {
    pub(super) fn take(state: State, star: &mut Star<'_>) -> Self {
        let mut vectors = BTreeMap::new();
        star.memory(&mut |name, vector| {
            if !vector.is_empty() {
                vectors.insert(name.to_owned(), vector.clone());
            }
        });
        Self { state, vectors, ledger: star.network().ledger.save() }
    }

    /// The last round that is in it.
    pub fn round(&self) -> u32 {
        self.state.round
    }

    /// Bytes of its vectors, which are nearly all of it.
    pub fn bytes(&self) -> u64 {
        self.vectors.values().map(|vector| 4 * vector.len() as u64).sum()
    }

    /// The same as a checkpoint of `plan`, which may have more rounds.
    pub fn of(mut self, plan: &Plan) -> Self {
        self.state.scenario = plan.resolved.clone();
        self
    }

    /// Whether a run of `plan` can go on from here.
    ///
    /// # Errors
    /// What differs: the version of the program's results, the data, or keys of the scenario. Another number of rounds counts only if the
    /// method looks ahead to the last one, or if that lies behind.
    pub fn check(&self, plan: &Plan) -> Result<(), String> {
        let state = &self.state;
        let mut differences = Vec::new();
        if state.results_version != RESULTS_VERSION {
            differences.push(format!(
                "results are of version {}, and this program's of version {RESULTS_VERSION}",
                state.results_version
            ));
        }
        let all = differences_of(&state.scenario, &plan.resolved);
        let may_differ = |key: &str| key == "rounds" && !plan.depends_on_rounds();
        if state.round >= plan.general.rounds {
            differences.push(format!("it is of round {}, and the run has {}", state.round, plan.general.rounds));
        }
        differences.extend(all.into_iter().filter(|(key, _)| !may_differ(key)).map(|(_, difference)| difference));
        for (what, there, here) in [
            ("the data", &state.data_digest, &plan.shards.dataset.digest),
            ("the clients' samples", &state.partition_digest, &plan.partition_digest),
            ("the start vector", &state.start_digest, &plan.start_digest),
        ] {
            if there != here {
                let short = |digest: &String| digest.chars().take(16).collect::<String>();
                differences.push(format!("{what}: digest {} there, {} here", short(there), short(here)));
            }
        }
        if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
    }

    /// Makes a server and its clients those of the checkpoint.
    pub(super) fn restore(mut self, star: &mut Star<'_>) -> Result<State, String> {
        let ledger = Ledger::restore(&self.ledger).ok_or("the checkpoint holds no ledger")?;
        let parameters = star.model().len();
        star.restore(&mut self.vectors, ledger);
        match self.vectors.keys().next() {
            Some(name) => Err(format!("the checkpoint holds `{name}`, which this method does not remember")),
            None if star.model().len() != parameters => Err("the checkpoint holds no model of this size".to_owned()),
            None => Ok(self.state),
        }
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let state = toml::to_string(&self.state).expect("plain values are TOML");
        let text = format!("{}\n{state}", self.digest(&state));
        let floats = |(name, vector): (&String, &Vec<f32>)| {
            (name.clone(), Tensor::new(Dtype::F32, vector.len(), vector.iter().flat_map(|value| value.to_le_bytes())))
        };
        let numbers = self.ledger.iter().flat_map(|number| number.to_le_bytes());
        let ledger = (LEDGER.to_owned(), Tensor::new(Dtype::U64, self.ledger.len(), numbers));
        let tensors = self.vectors.iter().map(floats).chain([ledger]);
        let metadata = HashMap::from([(STATE.to_owned(), text)]);
        safetensors::serialize(tensors, Some(metadata)).expect("the tensors are as long as they say")
    }

    /// Reads what [`Checkpoint::to_bytes`] has written.
    ///
    /// # Errors
    /// If these are other bytes, or not all of them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |what: &str| CheckpointError::Damaged(format!("it is damaged: {what}"));
        let none = || CheckpointError::Damaged("it is no checkpoint".to_owned());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error.to_string()))?;
        let text = header.metadata().as_ref().and_then(|metadata| metadata.get(STATE)).ok_or_else(none)?;
        let (digest, state) = text.split_once('\n').ok_or_else(none)?;
        let (mut vectors, mut ledger) = (BTreeMap::new(), Vec::new());
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| damaged(&error.to_string()))?;
        for (name, tensor) in tensors.tensors() {
            match tensor.dtype() {
                Dtype::F32 => {
                    let (values, _) = tensor.data().as_chunks::<4>();
                    vectors.insert(name, values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
                }
                Dtype::U64 => {
                    let (numbers, _) = tensor.data().as_chunks::<8>();
                    ledger = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
                }
                other => return Err(damaged(&format!("`{name}` holds {other:?}"))),
            }
        }
        let table: toml::Table = toml::from_str(state).map_err(|error| damaged(error.message()))?;
        let format = table.get("format").and_then(toml::Value::as_integer).ok_or_else(none)?;
        if format != i64::from(FORMAT) {
            let message = format!("it has format {format}, and this program reads format {FORMAT}");
            return Err(CheckpointError::Foreign(message));
        }
        let parsed = table.try_into().map_err(|error: toml::de::Error| damaged(error.message()))?;
        let checkpoint = Self { state: parsed, vectors, ledger };
        if checkpoint.digest(state) != digest {
            return Err(damaged("its digest is another"));
        }
        Ok(checkpoint)
    }

    /// SHA-256 of everything in it; `state` is its state as text.
    fn digest(&self, state: &str) -> String {
        let mut hash = Hash::default();
        hash.update(state.as_bytes());
        for (name, vector) in &self.vectors {
            hash.update(format!("\n{name} {}\n", vector.len()).as_bytes());
            hash.update_floats(vector);
        }
        self.ledger.iter().for_each(|number| hash.update(&number.to_le_bytes()));
        hash.hex()
    }
}

/// When the next checkpoint is due.
pub(super) struct Pace {
    every: Option<u32>,
    last: Instant,
    cost: Duration,
}

impl Pace {
    /// Least time between two checkpoints where their number of rounds is not given.
    const LEAST: Duration = Duration::from_secs(1);

    pub(super) fn new(every: Option<u32>) -> Self {
        Self { every, last: Instant::now(), cost: Duration::ZERO }
    }

    /// Whether one is due after `round`: every so many rounds, or once the last one has cost less than 2 % of the time since.
    pub(super) fn is_due(&self, round: u32) -> bool {
        match self.every {
            Some(every) => round.is_multiple_of(every),
            None => self.last.elapsed() >= Self::LEAST.max(50 * self.cost),
        }
    }

    /// Does the work of one and notes what it costs.
    pub(super) fn spend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        (self.cost, self.last) = (started.elapsed(), Instant::now());
        result
    }
}

/// A vector on its way into a file.
struct Tensor {
    dtype: Dtype,
    shape: [usize; 1],
    bytes: Vec<u8>,
}

impl Tensor {
    fn new(dtype: Dtype, length: usize, bytes: impl Iterator<Item = u8>) -> Self {
        Self { dtype, shape: [length], bytes: bytes.collect() }
    }
}

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{
        run::{DataCache, End, Observer, RoundRecord, run},
        scenario::Document,
    };

    const SCENARIO: &str = "rounds = 7\nevaluate_every = 2\n[run]\ncheckpoint_every = 1\n[data]\nname = \"synthetic\"\ntrain = 60\n\
                            test = 20\n[partition]\nclients = 6\n[model]\nname = \"softmax\"\n[method]\nparticipation = 0.5\n\
                            server_optimiser = \"adam\"\n[uplink]\noperator = \"top-k\"\nk = 20\nlink = \"error-feedback\"\n";

    fn plan(overrides: &[&str]) -> Plan {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let document = Document::parse("small.toml", SCENARIO, &overrides).expect("the syntax is right");
        Plan::new(&document, &mut DataCache::default()).expect("the scenario can run")
    }

    /// Keeps rows and checkpoints, and interrupts after a round.
    #[derive(Default)]
    struct Keeper<'a> {
        rows: Vec<RoundRecord>,
        checkpoints: Vec<Checkpoint>,
        stop: Option<(u32, &'a AtomicBool)>,
    }

    impl Observer for Keeper<'_> {
        fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
            self.rows.push(RoundRecord { wall_seconds: 0.0, run: String::new(), ..record.clone() });
            if let Some((_, flag)) = self.stop.filter(|(round, _)| *round == record.round) {
                flag.store(true, Ordering::Relaxed);
            }
            Ok(())
        }

        fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
            self.checkpoints.push(checkpoint.clone());
            Ok(())
        }
    }

    fn rows(plan: &Plan, threads: usize, from: Option<Checkpoint>) -> (Vec<RoundRecord>, Vec<Checkpoint>, String) {
        let mut keeper = Keeper::default();
        let summary = run(plan, threads, from, &mut [&mut keeper], &AtomicBool::new(false)).expect("it runs");
        (keeper.rows, keeper.checkpoints, summary.model_digest)
    }

    #[test]
    fn a_run_goes_on_from_every_round_on_any_number_of_threads() {
        let plan = plan(&[]);
        let (all, checkpoints, digest) = rows(&plan, 2, None);
        assert_eq!(checkpoints.iter().map(Checkpoint::round).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        for checkpoint in &checkpoints[..6] {
            let round = checkpoint.round();
            let read = Checkpoint::from_bytes(&checkpoint.to_bytes()).expect("it was just written");
            assert_eq!(&read, checkpoint);
            let (rest, later, end) = rows(&plan, 1 + round as usize % 3, Some(read));
            assert_eq!((&rest[..], &end), (&all[round as usize..], &digest), "after round {round}");
            assert_eq!(later.last().map(|last| (last.round(), &last.vectors)), Some((7, &checkpoints[6].vectors)));
        }
        assert!(checkpoints[6].check(&plan).expect_err("it has ended").contains("of round 7"));
    }

    #[test]
    fn a_longer_run_goes_on_as_if_the_shorter_one_had_not_ended() {
        let (longer, _, digest) = rows(&plan(&["rounds=11"]), 1, None);
        let (shorter, checkpoints, _) = rows(&plan(&[]), 1, None);
        assert!(shorter[6].test_loss.is_some() && longer[6].test_loss.is_none(), "only an end is evaluated in round 7");
        let (rest, _, end) = rows(&plan(&["rounds=11"]), 2, Some(checkpoints[6].clone()));
        assert_eq!((&rest[..], end), (&longer[7..], digest));
    }

    #[test]
    fn an_interrupted_run_stops_after_its_round_with_a_checkpoint_and_no_evaluation_of_its_own() {
        let (plan, flag) = (plan(&["run={}"]), AtomicBool::new(false));
        let mut keeper = Keeper { stop: Some((3, &flag)), ..Keeper::default() };
        // The flag is seen at the end of the next round.
        let summary = run(&plan, 1, None, &mut [&mut keeper], &flag).expect("it runs");
        assert_eq!((summary.end, summary.rounds), (End::Interrupted, 4));
        assert_eq!(keeper.checkpoints.iter().map(Checkpoint::round).collect::<Vec<_>>(), [4]);
        let (all, ..) = rows(&plan, 1, None);
        assert_eq!(keeper.rows, all[..4]);
        let (rest, ..) = rows(&plan, 1, keeper.checkpoints.pop());
        assert_eq!(rest, all[4..]);
    }

    #[test]
    fn a_checkpoint_of_another_run_is_refused_and_the_difference_named() {
        let (_, checkpoints, _) = rows(&plan(&[]), 1, None);
        let refusal = |overrides: &[&str]| checkpoints[2].check(&plan(overrides)).expect_err("it is another run");
        assert!(refusal(&["uplink.k=21"]).contains("`uplink.k` is `20` there, `21` here"));
        let seed = refusal(&["seed=1"]);
        assert!(seed.contains("`seed` is `0` there, `1` here") && seed.contains("the start vector: digest"), "{seed}");
        assert!(refusal(&["data.train=50"]).contains("the data: digest"));
        assert!(refusal(&["rounds=2"]).contains("of round 3, and the run has 2"));
        let cosine = ["method.learning_rate_schedule=round-cosine"];
        let (_, of_cosine, _) = rows(&plan(&cosine), 1, None);
        let longer = of_cosine[2].check(&plan(&[cosine[0], "rounds=9"])).expect_err("the schedule looks ahead");
        assert!(longer.contains("`rounds` is `7` there, `9` here"), "{longer}");
        assert_eq!(checkpoints[2].check(&plan(&["rounds=9", "run={}"])), Ok(()));
    }

    #[test]
    fn damaged_bytes_are_never_a_checkpoint() {
        let (_, checkpoints, _) = rows(&plan(&[]), 1, None);
        let bytes = checkpoints[1].to_bytes();
        for length in (0..bytes.len()).step_by(97) {
            assert!(matches!(Checkpoint::from_bytes(&bytes[..length]), Err(CheckpointError::Damaged(_))), "{length}");
        }
        for at in (0..bytes.len()).step_by(41) {
            let mut other = bytes.clone();
            other[at] ^= 4;
            let read = Checkpoint::from_bytes(&other);
            assert!(read.is_err(), "byte {at} of {} was changed and nobody saw it", bytes.len());
        }
        let text = format!("format = {}\n", FORMAT + 1);
        let metadata = HashMap::from([(STATE.to_owned(), format!("0\n{text}"))]);
        let none: [(String, Tensor); 0] = [];
        let later = safetensors::serialize(none, Some(metadata)).expect("there is nothing in it");
        let refusal = CheckpointError::Foreign("it has format 2, and this program reads format 1".to_owned());
        assert_eq!(Checkpoint::from_bytes(&later), Err(refusal));
    }
}
