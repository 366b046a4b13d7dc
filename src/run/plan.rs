//! From a scenario to live objects: everything that a run needs, checked before any work.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Participation, Round, RoundRecord, Sampling, Star, Status, Weights, record::mean};
use crate::{
    catalogue::{self, Entry, schema_of},
    compress::{self, Class, Granularity, Misfit, Operator},
    data::{self, Dataset, Options, Pixels, Source},
    digest::{sha256, sha256_floats},
    layout::Layout,
    link::{self, Codec, Link},
    method::{self, Method, Population, Setup},
    model::{self, Architecture, Engine, Evaluation, start_vector},
    network::Totals,
    partition::{self, Partition, Partitioner},
    payload::Kind,
    rng::{Address, Purpose},
    scenario::{self, Checked, Document, General, Mistake, Refusal, Section, Slot},
    train::{
        Objective,
        network::{NetworkObjective, Shards},
    },
    wire::{self, Coder},
};

/// Changes whenever the same scenario and seed give other results; part of a run's identity.
pub const RESULTS_VERSION: u32 = 1;

/// Keys of `[uplink]` and `[downlink]` beside those of the operator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct LinkSettings {
    /// Memory rule of the link.
    link: String,
    /// Coder of the messages; `default` is the one that the operator names.
    coder: String,
    /// What is compressed as one part: the whole model, every layer, or groups of layers.
    granularity: Granularity,
    /// Number of groups for `granularity = "groups"`, at least 1.
    #[schemars(range(min = 1))]
    groups: u32,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self { link: "plain".into(), coder: "default".into(), granularity: Granularity::Model, groups: 2 }
    }
}

/// Keys of `[partition]` beside those of the partitioner.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct PartitionSettings {
    /// Number of clients. Absent: what the partitioner implies, else 100.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<u32>,
}

/// Keys of `[model]` beside those of the architecture.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ModelSettings {
    /// What computes gradients: `auto` takes the fastest engine that can, `burn` the framework.
    engine: Engine,
}

fn parts<P: ?Sized>(entries: &'static [Entry<P>]) -> Vec<(&'static str, serde_json::Value)> {
    entries.iter().map(|entry| (entry.name, (entry.schema)())).collect()
}

fn link_schema() -> serde_json::Value {
    let mut schema = schema_of::<LinkSettings>();
    let words = |words: Vec<&str>, description: &serde_json::Value| serde_json::json!({ "enum": words, "description": description });
    let rules = link::CATALOGUE.iter().map(|entry| entry.name).collect();
    let coders = std::iter::once("default").chain(wire::CATALOGUE.iter().map(|entry| entry.name)).collect();
    schema["properties"]["link"] = words(rules, &schema["properties"]["link"]["description"]);
    schema["properties"]["coder"] = words(coders, &schema["properties"]["coder"]["description"]);
    schema
}

/// Sections and the keys that name their parts, in the order of the slots.
const SECTIONS: [(&str, &str); 6] = [
    ("data", "name"),
    ("partition", "name"),
    ("model", "name"),
    ("method", "name"),
    ("uplink", "operator"),
    ("downlink", "operator"),
];
const DATA: usize = 0;
const PARTITION: usize = 1;
const MODEL: usize = 2;
const METHOD: usize = 3;
const UPLINK: usize = 4;
const DOWNLINK: usize = 5;

/// The sections of a scenario, from the catalogues.
pub fn slots() -> Vec<Slot> {
    let slot = |at: usize, listing, default, common, parts| {
        let (section, selector) = SECTIONS[at];
        Slot { section, selector, listing, default, common, parts }
    };
    vec![
        slot(DATA, "data", None, schema_of::<Options>(), parts(data::CATALOGUE)),
        slot(PARTITION, "partitioners", Some("iid"), schema_of::<PartitionSettings>(), parts(partition::CATALOGUE)),
        slot(MODEL, "models", None, schema_of::<ModelSettings>(), parts(model::CATALOGUE)),
        slot(METHOD, "methods", Some("fedavg"), schema_of::<Participation>(), parts(method::CATALOGUE)),
        slot(UPLINK, "operators", Some("identity"), link_schema(), parts(compress::CATALOGUE)),
        slot(DOWNLINK, "operators", Some("identity"), link_schema(), parts(compress::CATALOGUE)),
    ]
}

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
    /// The scenario with every default filled in.
    pub resolved: toml::Table,
    /// Keys outside the sections.
    pub general: General,
    /// Who takes part.
    pub participation: Participation,
    /// Data and shares.
    pub shards: Arc<Shards>,
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
        let (shape, classes) = (self.shards.pixels.shape(), self.shards.dataset.classes);
        let network = model::network(&*self.architecture, shape, classes, self.engine);
        Box::new(NetworkObjective::new(network.expect("the plan has built it once"), self.shards.clone()))
    }

    /// What computes gradients, in words.
    pub fn engine(&self) -> &'static str {
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

    /// Samples that a client holds.
    pub fn samples(&self, client: u32) -> u64 {
        self.shards.partition.shares[client as usize].samples.len() as u64
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
            let packet = link.codec.encode(&x, streams, &mut Vec::new()).expect("Gaussian vectors can be sent");
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
            test_accuracy: evaluation.accuracy(),
            test_loss: evaluation.loss(),
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

    /// Whether an evaluation reaches the accuracy of the scenario.
    pub(super) fn is_reached(&self, accuracy: Option<f64>) -> bool {
        self.general.stop.accuracy.is_some_and(|wanted| accuracy.is_some_and(|accuracy| accuracy >= wanted))
    }
}

/// A plan in the making: goes on after a mistake, so that all are found.
struct Builder<'a> {
    document: &'a Document,
    mistakes: &'a mut Vec<Mistake>,
}

impl Builder<'_> {
    fn build(&mut self, cache: &mut DataCache) -> Option<Plan> {
        let slots = slots();
        let Checked { general, sections } = scenario::check(self.document, &slots, self.mistakes);
        let section = |slot: usize| sections[slot].as_ref();
        let mut resolved = Resolved::new(&general);

        let data = section(DATA).and_then(|section| self.data(section, general.seed, cache, &mut resolved));
        let partition = self.partition(section(PARTITION), data.as_ref(), general.seed, &mut resolved);
        let architecture: Option<Box<dyn Architecture>> =
            section(MODEL).and_then(|section| self.part(model::CATALOGUE, section, MODEL, &mut resolved));
        let engine = section(MODEL).map(|section| {
            let settings: ModelSettings = section.common.clone().try_into().expect("the check knows these keys");
            resolved.add("model", catalogue::write(&settings));
            settings.engine
        });
        let network = match (&architecture, &data) {
            (Some(architecture), Some((dataset, pixels, _))) => architecture
                .network(pixels.shape(), dataset.classes)
                .map_err(|reason| self.fail("model.name", reason))
                .ok(),
            _ => None,
        };
        let layout = network.map(|network| Arc::new(network.layout().clone()));
        let method: Option<Box<dyn Method>> =
            section(METHOD).and_then(|section| self.part(method::CATALOGUE, section, METHOD, &mut resolved));
        if let (Some(method), Some(section)) = (&method, section(METHOD)) {
            for (key, reason) in method.idle() {
                if section.settings.contains_key(key) {
                    self.fail(format!("method.{key}"), format!("`{key}` {reason}"));
                }
                // What has no effect is no part of a run's identity either.
                resolved.remove("method", key);
            }
        }
        let participation = section(METHOD).and_then(|section| self.participation(section, &mut resolved));
        let mut link = |slot: usize| {
            let section = section(slot)?;
            let operator = self.part(compress::CATALOGUE, section, slot, &mut resolved)?;
            self.link(section, operator, slots[slot].section, layout.clone(), &mut resolved)
        };
        let (uplink, downlink) = (link(UPLINK), link(DOWNLINK));
        let (method, uplink, downlink) = (method?, uplink?, downlink?);
        if let Err((section, misfit)) = method.check(&uplink, &downlink) {
            self.misfit(section, misfit);
        }
        let (dataset, pixels, mut notes) = data?;
        let (partition, layout, participation) = (partition?, layout?, participation?);
        notes.extend(partition.notes.iter().cloned());
        let holders: Vec<u32> =
            (0..).zip(&partition.shares).filter(|(_, share)| !share.samples.is_empty()).map(|(i, _)| i).collect();
        if !uplink.rule.remembers() && matches!(uplink.codec.class(), Class::Contractive(_) | Class::Unproven) {
            notes.push(
                "[uplink] the operator is biased and a plain link remembers nothing: what is left out of a message is lost; \
                 `link = \"error-feedback\"` adds it to the next one"
                    .to_owned(),
            );
        }
        for (name, link) in [("uplink", &uplink), ("downlink", &downlink)] {
            if link.codec.is_damped() {
                let class = link.codec.class();
                notes.push(format!(
                    "[{name}] the operator is unbiased, so error feedback scales it by 1/(1 + omega): {class}"
                ));
            }
        }
        let weight = |share: &partition::Share| match participation.weights {
            Weights::Samples => share.samples.len() as f64,
            Weights::Equal => f64::from(u8::from(!share.samples.is_empty())),
        };
        let population = Population {
            weights: partition.shares.iter().map(weight).collect(),
            expected_share: (participation.sampling == Sampling::Bernoulli).then_some(participation.participation),
        };
        let start = start_vector(&layout, general.seed);
        let name = |slot: usize| sections[slot].as_ref().map(|section| section.name.clone());
        let names = [name(METHOD)?, name(UPLINK)?, name(DOWNLINK)?];
        let stem = self.document.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let digest = partition::Passport::new(&partition, &dataset.train.labels, dataset.classes).digest;
        let (resolved, hash) = resolved.finish(&[&dataset.digest, &digest]);
        Some(Plan {
            scenario: stem.unwrap_or_else(|| "scenario".into()),
            run: format!("{}-{}-seed{}-{hash}", names[0], names[1], general.seed),
            resolved,
            participation,
            shards: Arc::new(Shards { dataset, pixels, partition, seed: general.seed }),
            holders,
            notes,
            names,
            architecture: architecture?,
            engine: engine?,
            method,
            population,
            partition_digest: digest,
            start_digest: sha256_floats(&start),
            setup: Setup { layout, start: Arc::new(start), uplink, downlink, rounds: general.rounds },
            general,
        })
    }

    fn fail(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(path, message));
    }

    fn misfit(&mut self, section: &str, misfit: Misfit) {
        self.fail(format!("{section}.{}", misfit.key), misfit.message);
    }

    /// Builds the part that a section names and notes its settings.
    fn part<P: ?Sized>(
        &mut self,
        catalogue: &'static [Entry<P>],
        section: &Section,
        slot: usize,
        resolved: &mut Resolved,
    ) -> Option<Box<P>> {
        let (path, selector) = SECTIONS[slot];
        let entry = catalogue::find(catalogue, &section.name).expect("the check knows this name");
        match (entry.build)(section.settings.clone()) {
            Ok(built) => {
                resolved.add(path, [(selector.to_owned(), section.name.clone().into())].into_iter().collect());
                resolved.add(path, built.settings);
                Some(built.part)
            }
            Err(reason) => {
                self.fail(path, reason);
                None
            }
        }
    }

    fn data(
        &mut self,
        section: &Section,
        seed: u64,
        cache: &mut DataCache,
        resolved: &mut Resolved,
    ) -> Option<(Arc<Dataset>, Pixels, Vec<String>)> {
        let source: Box<dyn Source> = self.part(data::CATALOGUE, section, DATA, resolved)?;
        let options: Options = section.common.clone().try_into().expect("the check knows these keys");
        resolved.add("data", catalogue::write(&options));
        let directory = options.directory.as_ref().map(|path| self.document.resolve_path("data.directory", path));
        if let Some(directory) = &directory {
            resolved.absolute("data", "directory", directory);
        }
        let directory: PathBuf = data::directory(directory.as_deref());
        // Only synthetic data depend on the seed; what has files is the same for all seeds.
        let seed = if source.remote().is_some() { 0 } else { seed };
        let key = format!("{} {:?} {options:?} {seed} {}", section.name, section.settings, directory.display());
        let loaded = match cache.loaded.get(&key) {
            Some(dataset) => Ok(dataset.clone()),
            None => source.load(&directory, seed).and_then(|dataset| data::limit(dataset, &options)).map(Arc::new),
        };
        let checked = loaded.and_then(|dataset| Pixels::new(&dataset, &options).map(|pixels| (dataset, pixels)));
        match checked {
            Ok((dataset, pixels)) => {
                // Data that depend on the seed serve one run only.
                if source.remote().is_none() {
                    cache.loaded.clear();
                }
                cache.loaded.insert(key, dataset.clone());
                let notes = dataset.warnings.clone();
                Some((dataset, pixels, notes))
            }
            Err(error) => {
                let key = if options.directory.is_some() { "data.directory" } else { "data.name" };
                let mistake = Mistake::new(key, error.to_string());
                let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
                self.mistakes.push(Mistake { help, ..mistake });
                None
            }
        }
    }

    fn partition(
        &mut self,
        section: Option<&Section>,
        data: Option<&(Arc<Dataset>, Pixels, Vec<String>)>,
        seed: u64,
        resolved: &mut Resolved,
    ) -> Option<Partition> {
        let section = section?;
        let partitioner: Box<dyn Partitioner> = self.part(partition::CATALOGUE, section, PARTITION, resolved)?;
        let settings: PartitionSettings = section.common.clone().try_into().expect("the check knows these keys");
        let (dataset, ..) = data?;
        let writers = match (section.name.as_str(), dataset.name.as_str()) {
            ("writer", "mnist") => Some(self.writers(dataset)?),
            _ => None,
        };
        let document = self.document;
        if let Some(path) = section.settings.get("path").and_then(toml::Value::as_str) {
            resolved.absolute("partition", "path", &document.resolve_path("partition.path", path));
        }
        let read = |path: &str| -> Result<String, String> {
            let path = document.resolve_path("partition.path", path);
            let shown = std::path::absolute(&path).unwrap_or(path);
            fs_err::read_to_string(&shown).map_err(|error| error.to_string())
        };
        let samples = partition::Samples {
            labels: &dataset.train.labels,
            classes: dataset.classes,
            clients: settings.clients,
            square: dataset.shape[1] == dataset.shape[2],
            writers: writers.as_deref(),
            read: &read,
        };
        match partition::split(&*partitioner, &samples, Address::new(seed, Purpose::Partition)) {
            Ok(partition) => {
                let clients = PartitionSettings { clients: Some(partition.shares.len() as u32) };
                resolved.add("partition", catalogue::write(&clients));
                Some(partition)
            }
            Err(error) => {
                let mistake = Mistake::new(format!("partition.{}", error.key), error.message);
                self.mistakes.push(Mistake { help: error.help, ..mistake });
                None
            }
        }
    }

    /// The writer of every training sample of MNIST; `None` after a mistake.
    fn writers(&mut self, dataset: &Dataset) -> Option<Vec<u32>> {
        let directory = self.document.get("data.directory").and_then(|node| node.as_str());
        let directory = directory.map(|path| self.document.resolve_path("data.directory", path));
        let directory = data::directory(directory.as_deref());
        let writers = data::mnist_writers(&directory)
            .and_then(|writers| writers.check(&dataset.train.labels).map(|()| writers.train));
        match writers {
            Ok(mut writers) => {
                writers.truncate(dataset.train.len());
                Some(writers)
            }
            Err(error) => {
                let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
                self.mistakes.push(Mistake { help, ..Mistake::new("partition.name", error.to_string()) });
                None
            }
        }
    }

    fn participation(&mut self, section: &Section, resolved: &mut Resolved) -> Option<Participation> {
        let participation: Participation = section.common.clone().try_into().expect("the check knows these keys");
        if participation.sampling == Sampling::All && participation.participation < 1.0 {
            let message = format!(
                "`sampling = \"all\"` takes every client, but `participation` is {}",
                participation.participation
            );
            self.fail("method.participation", message);
            return None;
        }
        resolved.add("method", catalogue::write(&participation));
        Some(participation)
    }

    fn link(
        &mut self,
        section: &Section,
        operator: Box<dyn Operator>,
        path: &'static str,
        layout: Option<Arc<Layout>>,
        resolved: &mut Resolved,
    ) -> Option<Link> {
        let mut settings: LinkSettings = section.common.clone().try_into().expect("the check knows these keys");
        if settings.granularity != Granularity::Groups && section.common.contains_key("groups") {
            self.fail(format!("{path}.groups"), "`groups` counts only with `granularity = \"groups\"`");
        }
        if settings.coder == "default" {
            operator.default_coder().clone_into(&mut settings.coder);
        }
        let coder = catalogue::find(wire::CATALOGUE, &settings.coder).expect("the check knows these coders");
        let coder: Box<dyn Coder> = coder.build_example().expect("coders have no settings").part;
        let rule = catalogue::find(link::CATALOGUE, &settings.link).expect("the check knows these rules");
        let rule = rule.build_example().expect("rules have no settings").part;
        let mut table = catalogue::write(&settings);
        if settings.granularity != Granularity::Groups {
            table.remove("groups");
        }
        resolved.add(path, table);
        let groups = settings.groups as usize;
        // Without a layout the settings can still be checked against the coder.
        let layout = layout.unwrap_or_else(|| Arc::new(Layout::flat(u32::MAX as usize)));
        match Codec::new(operator, coder, layout, settings.granularity, groups) {
            Ok(codec) => Some(Link::new(codec, rule)),
            Err(misfit) => {
                self.misfit(path, misfit);
                None
            }
        }
    }
}

/// The scenario with every default filled in, section by section.
struct Resolved {
    table: toml::Table,
}

impl Resolved {
    fn new(general: &General) -> Self {
        Self { table: catalogue::write(general) }
    }

    fn add(&mut self, section: &str, settings: toml::Table) {
        let table = self.table.entry(section).or_insert_with(|| toml::Table::new().into());
        table.as_table_mut().expect("sections are tables").extend(settings);
    }

    fn remove(&mut self, section: &str, key: &str) {
        if let Some(section) = self.table.get_mut(section).and_then(toml::Value::as_table_mut) {
            section.remove(key);
        }
    }

    /// The table, and eight hexadecimal digits of its hash together with the digests of what it names: where files lie does not
    /// count, only what is in them.
    fn finish(self, digests: &[&str]) -> (toml::Table, String) {
        let mut counted = Self { table: self.table.clone() };
        counted.remove("data", "directory");
        counted.remove("partition", "path");
        let text = toml::to_string(&counted.table).expect("tables of plain values are TOML");
        let text = format!("{RESULTS_VERSION}\n{}\n{text}", digests.join("\n"));
        (self.table, sha256(text.as_bytes())[..8].to_owned())
    }

    /// Replaces a path by where it leads from the root, so that the stored scenario works from any folder.
    fn absolute(&mut self, section: &str, key: &str, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Some(value) = self.table.get_mut(section).and_then(|section| section.get_mut(key)) {
            *value = path.to_string_lossy().into_owned().into();
        }
    }
}

/// The path of a run's folder below a results directory.
pub fn run_folder(results: &Path, plan: &Plan) -> PathBuf {
    results.join(&plan.scenario).join(&plan.run)
}
