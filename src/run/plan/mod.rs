//! From a scenario to live objects: everything that a run needs, checked before any work.

mod builder;
mod resolved;
mod sections;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use resolved::differences_of;
pub use sections::slots;

use builder::Builder;
use resolved::Resolved;

use super::{Participation, Round, RoundRecord, Star, Status, record::mean};
use crate::{
    data::Dataset,
    digest::sha256_floats,
    layout::Layout,
    link::Link,
    method::{Method, Population, Setup},
    model::{self, Architecture, Engine, Evaluation},
    network::Totals,
    payload::Kind,
    rng::{Address, Purpose},
    scenario::{Document, General, Mistake, Refusal, Section},
    train::{
        Objective,
        network::{NetworkObjective, Shards},
        regression::{Problem, RegressionObjective},
    },
};

/// Changes whenever the same scenario and seed give other results; part of a run's identity.
pub const RESULTS_VERSION: u32 = 2;

/// Data sets that were loaded before, for several runs of one invocation.
#[derive(Default)]
pub struct DataCache {
    loaded: BTreeMap<String, Arc<Dataset>>,
}

/// Everything a run needs.
pub struct Plan {
    /// Name of the scenario: its file without ending.
    pub scenario: String,
    /// Readable prefix and hash of the resolved scenario: the name of the run's folder.
    pub run: String,
    /// The question that the scenario answers, if it says one.
    pub question: Option<String>,
    /// The scenario with every default filled in.
    pub resolved: toml::Table,
    /// Keys outside the sections.
    pub general: General,
    /// Who takes part.
    pub participation: Participation,
    /// Data and shares.
    pub shards: Arc<Shards>,
    /// The problem with its optimum, for regression on a table.
    pub problem: Option<Arc<Problem>>,
    /// What nodes are made from.
    pub setup: Setup,
    /// Clients that hold samples, increasing.
    pub holders: Vec<u32>,
    /// What a user should know: warnings of the data, remarks of the partition, operators that are scaled.
    pub notes: Vec<String>,
    /// Name of the method, the uplink's and the downlink's operator.
    names: [String; 3],
    architecture: Box<dyn Architecture>,
    engine: Engine,
    method: Box<dyn Method>,
    population: Population,
    /// Digest of the client lists.
    pub partition_digest: String,
    /// SHA-256 of the start vector.
    pub start_digest: String,
}

impl Plan {
    /// Checks a document completely and builds everything that its run needs; loads the data, but trains and writes nothing.
    ///
    /// # Errors
    /// Every mistake that was found.
    pub fn new(document: &Document, cache: &mut DataCache) -> Result<Self, Refusal> {
        let mut mistakes = Vec::new();
        let plan = Builder { document, mistakes: &mut mistakes }.build(cache);
        match plan {
            Some(plan) if mistakes.is_empty() => Ok(plan),
            _ => Err(document.refuse(mistakes)),
        }
    }

    /// A new objective for one thread.
    pub fn objective(&self) -> Box<dyn Objective> {
        if let Some(problem) = &self.problem {
            return Box::new(RegressionObjective::new(problem.clone()));
        }
        let (shape, classes) = (self.shards.pixels.shape(), self.shards.dataset.classes);
        let network = model::network(&*self.architecture, shape, classes, self.engine);
        Box::new(NetworkObjective::new(network.expect("the plan has built it once"), self.shards.clone()))
    }

    /// What computes gradients, in words.
    pub fn engine(&self) -> &'static str {
        if self.problem.is_some() {
            return "table";
        }
        let (shape, classes) = (self.shards.pixels.shape(), self.shards.dataset.classes);
        match (self.engine, self.architecture.steps(shape, classes)) {
            (Engine::Auto, Some(_)) => "stack",
            _ => "burn flex",
        }
    }

    /// The server before its first round.
    pub fn star(&self) -> Star<'_> {
        let population = self.population.clone();
        Star::new(&*self.method, self.setup.clone(), population, self.general.seed, self.general.stop.non_finite)
    }

    /// Whether the number of rounds matters before the last one: such a run cannot be prolonged.
    pub fn depends_on_rounds(&self) -> bool {
        self.method.depends_on_rounds()
    }

    /// Samples that a client holds.
    pub fn samples(&self, client: u32) -> u64 {
        self.shards.partition.shares[client as usize].samples.len() as u64
    }

    /// Samples of an evaluation: the test set, or the rows of the table that is fitted.
    pub fn evaluated_samples(&self) -> usize {
        self.problem.as_ref().map_or(self.shards.dataset.test.len(), |problem| problem.table().len())
    }

    /// Whether the model's answers can be right or wrong.
    pub fn classifies(&self) -> bool {
        self.problem.as_ref().is_none_or(|problem| problem.regression.loss.classifies())
    }

    /// Wire bits of one message up and one down, encoded from a vector like the ones to come: Gaussian with the spread of the
    /// start vector. Exact for operators whose length does not depend on the values.
    pub fn message_bits(&self) -> [u64; 2] {
        let mut generator = Address::new(self.general.seed, Purpose::Data).part(u64::MAX).generator();
        let normal = rand_distr::StandardNormal;
        let x: Vec<f32> = (0..self.setup.layout.len())
            .map(|_| 0.01 * rand_distr::Distribution::<f32>::sample(&normal, &mut generator))
            .collect();
        let streams = crate::rng::Streams::message(self.general.seed, 0, 0, 0, 0);
        [&self.setup.uplink, &self.setup.downlink].map(|link| {
            let packet = link.codec.encode(&x, None, streams, &mut Vec::new()).expect("Gaussian vectors can be sent");
            packet.wire_bits()
        })
    }

    /// Whether the length of a message depends on its values, for the uplink and the downlink.
    pub fn bits_vary(&self) -> [bool; 2] {
        [&self.setup.uplink, &self.setup.downlink].map(|link| {
            let fixed = link.codec.kinds().iter().all(|kind| matches!(kind, Kind::Floats | Kind::Signs));
            !fixed
        })
    }

    pub(super) fn record(&self, round: u32, outcome: &Round, evaluation: &Evaluation, star: &Star<'_>) -> RoundRecord {
        let reports: Vec<_> = outcome.clients.iter().filter_map(|client| client.report).collect();
        let (samples, loss_sum) =
            reports.iter().fold((0, 0.0), |(n, sum), report| (n + report.samples, sum + report.loss_sum));
        let errors: f64 = reports.iter().map(|report| report.compression_error).sum();
        let (totals, all) = (&outcome.totals, star.network().ledger.totals());
        let [method, operator, _] = self.names.clone();
        RoundRecord {
            run: self.run.clone(),
            scenario: self.scenario.clone(),
            method,
            operator,
            seed: self.general.seed,
            round,
            test_accuracy: evaluation.accuracy().filter(|_| self.classifies()),
            test_loss: evaluation.loss(),
            distance_to_optimum: self.distance(star.model()),
            train_loss: mean(loss_sum, samples),
            learning_rate: reports.first().map(|report| report.learning_rate),
            clients_selected: outcome.clients.len() as u64,
            clients_reported: reports.len() as u64,
            uplink_bits: totals.uplink_bits,
            downlink_bits: totals.downlink_bits,
            peer_bits: totals.peer_bits,
            cumulative_uplink_bits: all.uplink_bits,
            cumulative_downlink_bits: all.downlink_bits,
            cumulative_peer_bits: all.peer_bits,
            payload_bits: totals.payload_bits,
            information_bits: totals.information_bits,
            compression_error: mean(errors, reports.len() as u64),
            wall_seconds: 0.0,
            simulated_seconds: None,
            model_digest: sha256_floats(star.model())[..16].to_owned(),
            status: if reports.is_empty() { Status::NoClients } else { Status::Ok },
        }
    }

    /// Whether the bits of the scenario are spent.
    pub(super) fn has_spent(&self, totals: &Totals) -> bool {
        let reached = |wanted: Option<u64>, spent: u64| wanted.is_some_and(|wanted| spent >= wanted);
        reached(self.general.stop.total_bits, totals.bits())
            || reached(self.general.stop.uplink_bits, totals.uplink_bits)
    }

    /// Squared distance of a model from the optimum, relative to that of the start, where the optimum is known.
    pub(super) fn distance(&self, model: &[f32]) -> Option<f64> {
        self.problem.as_ref()?.distance(model, &self.setup.start)
    }

    /// Whether a model is as near to the optimum as the scenario wants.
    pub(super) fn is_near(&self, model: &[f32]) -> bool {
        let wanted = self.general.stop.distance;
        wanted.is_some_and(|wanted| self.distance(model).is_some_and(|distance| distance <= wanted))
    }

    /// Whether an evaluation reaches the accuracy of the scenario.
    pub(super) fn is_reached(&self, accuracy: Option<f64>) -> bool {
        self.general.stop.accuracy.is_some_and(|wanted| accuracy.is_some_and(|accuracy| accuracy >= wanted))
    }
}

/// The link that a section like `[uplink]` describes, for vectors of a layout, and its settings with every default filled in.
///
/// # Errors
/// Every mistake that was found, by the keys of `[uplink]`.
pub fn link(section: &Section, layout: Arc<Layout>) -> Result<(Link, toml::Table), Vec<Mistake>> {
    let document = Document::empty(Path::new(""));
    let (mut mistakes, mut resolved) = (Vec::new(), Resolved::new(&General::default()));
    let mut builder = Builder { document: &document, mistakes: &mut mistakes };
    match builder.link(section, sections::UPLINK, Some(layout), &mut resolved) {
        Some(link) if mistakes.is_empty() => Ok((link, resolved.section("uplink"))),
        _ => Err(mistakes),
    }
}

/// The path of a run's folder below a results directory.
pub fn run_folder(results: &Path, plan: &Plan) -> PathBuf {
    results.join(&plan.scenario).join(&plan.run)
}
