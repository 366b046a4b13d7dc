//! From a checked document to a plan: builds every part and goes on after a mistake, so that all are found.

use std::{path::PathBuf, sync::Arc};

use super::{
    DataCache, Plan,
    resolved::Resolved,
    sections::{
        DATA, DOWNLINK, LinkSettings, METHOD, MODEL, ModelSettings, PARTITION, PartitionSettings, SECTIONS, UPLINK,
        slots,
    },
};
use crate::{
    catalogue::{self, Entry, Strength},
    compress::{self, Class, Misfit, Operator},
    data::{self, Dataset, Options, Pixels, Source},
    digest::sha256_floats,
    layout::Layout,
    link::{self, Aim, Codec, Link},
    method::{self, Method, Population, Setup},
    model::{self, Architecture, start_vector},
    partition::{self, Partition, Partitioner},
    rng::{Address, Purpose},
    run::{MOST_CAPTURES, Participation, Sampling, Weights},
    scenario::{self, Checked, Document, General, Mistake, Section},
    train::{
        network::Shards,
        regression::{self, Problem},
    },
    wire::{self, Coder},
};

/// The operator of a link, at every strength if it has an aim.
type Operators = (Vec<Box<dyn Operator>>, Option<Aim>);

/// A plan in the making: goes on after a mistake, so that all are found.
pub(super) struct Builder<'a> {
    pub(super) document: &'a Document,
    pub(super) mistakes: &'a mut Vec<Mistake>,
}

impl Builder<'_> {
    pub(super) fn build(&mut self, cache: &mut DataCache) -> Option<Plan> {
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
        let layout = match (&architecture, &data) {
            (Some(architecture), Some((dataset, pixels, _))) => {
                layout(&**architecture, dataset, pixels).map_err(|reason| self.fail("model.name", reason)).ok()
            }
            _ => None,
        };
        if let Some(architecture) = &architecture {
            self.check_regression(&**architecture, &general, section(MODEL));
        }
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
        let mut link = |slot: usize| self.link(section(slot)?, slot, layout.clone(), &mut resolved);
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
        if let Some(share) = general.record.capture {
            let messages = f64::from(general.rounds) * participation.count(holders.len()) as f64;
            if share * messages > MOST_CAPTURES as f64 {
                notes.push(format!(
                    "[record] about {:.0} messages would be captured, but no more than the first {MOST_CAPTURES} are; \
                     `capture = {:.1e}` would spread them over the whole run",
                    share * messages,
                    MOST_CAPTURES as f64 / messages
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
        let shards = Arc::new(Shards { dataset, pixels, partition, seed: general.seed });
        let architecture = architecture?;
        let (problem, start) = match architecture.regression() {
            Some(regression) => {
                let problem = Problem::new(regression, shards.clone(), &population.weights)
                    .map_err(|reason| self.fail("model.regularisation", reason));
                (Some(Arc::new(problem.ok()?)), vec![0.0; layout.len()])
            }
            None => (None, start_vector(&layout, general.seed)),
        };
        let name = |slot: usize| sections[slot].as_ref().map(|section| section.name.clone());
        let names = [name(METHOD)?, name(UPLINK)?, name(DOWNLINK)?];
        let stem = self.document.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let dataset = &shards.dataset;
        let digest = partition::Passport::new(&shards.partition, &dataset.train.labels, dataset.classes).digest;
        let (resolved, hash) = resolved.finish(&[&dataset.digest, &digest]);
        Some(Plan {
            scenario: stem.unwrap_or_else(|| "scenario".into()),
            question: self.document.question(),
            run: format!("{}-{}-seed{}-{hash}", names[0], names[1], general.seed),
            resolved,
            participation,
            shards,
            problem,
            holders,
            notes,
            names,
            architecture,
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

    /// Keys that mean nothing with or without a known optimum.
    fn check_regression(&mut self, architecture: &dyn Architecture, general: &General, section: Option<&Section>) {
        let Some(regression) = architecture.regression() else {
            if general.stop.distance.is_some() {
                let message = "`distance` counts only with a model whose optimum is known, such as `ridge-regression`";
                self.fail("stop.distance", message);
            }
            return;
        };
        if general.stop.accuracy.is_some() && !regression.loss.classifies() {
            self.fail("stop.accuracy", "`accuracy` counts only with a model that classifies; `distance` may be meant");
        }
        if section.is_some_and(|section| section.common.contains_key("engine")) {
            self.fail("model.engine", "`engine` does not count for regression on a table");
        }
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
        let checked = loaded.and_then(|dataset| {
            // A table has no pixels to crop.
            let plain = dataset.table.as_ref().map(|_| Options::default());
            Pixels::new(&dataset, plain.as_ref().unwrap_or(&options)).map(|pixels| (dataset, pixels))
        });
        match checked {
            Ok((dataset, pixels)) => {
                // Data that depend on the seed serve one run only.
                if source.remote().is_none() {
                    cache.loaded.clear();
                }
                cache.loaded.insert(key, dataset.clone());
                if dataset.table.is_some() {
                    for key in ["normalisation", "augmentation", "crop", "padding"] {
                        if section.common.contains_key(key) {
                            self.fail(format!("data.{key}"), format!("`{key}` counts for images only"));
                        }
                        resolved.remove("data", key);
                    }
                }
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
                let changes = |share: &partition::Share| share.quarter_turns != 0 || share.noise_deviation != 0.0;
                if dataset.table.is_some() && partition.shares.iter().any(changes) {
                    let message = format!("`{}` changes images, but `{}` is a table", section.name, dataset.name);
                    self.fail("partition.name", message);
                    return None;
                }
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

    /// The operator of a link; at every strength if the link has an aim.
    fn operators(&mut self, section: &Section, slot: usize, resolved: &mut Resolved) -> Option<Operators> {
        let settings: LinkSettings = section.common.clone().try_into().expect("the check knows these keys");
        let (path, _) = SECTIONS[slot];
        let (key, aim) = match (settings.bits_per_coordinate, settings.target_error) {
            (None, None) => return Some((vec![self.part(compress::CATALOGUE, section, slot, resolved)?], None)),
            (Some(bits), None) => ("bits_per_coordinate", Aim::Bits(bits)),
            (None, Some(error)) => ("target_error", Aim::Error(error)),
            (Some(_), Some(_)) => {
                let message = "a message has either `bits_per_coordinate` or `target_error` to keep to";
                self.fail(format!("{path}.target_error"), message);
                return None;
            }
        };
        let entry = catalogue::find(compress::CATALOGUE, &section.name).expect("the check knows this name");
        let Some(strength) = entry.strength else {
            let able: Vec<&str> =
                compress::CATALOGUE.iter().filter(|entry| entry.strength.is_some()).map(|entry| entry.name).collect();
            let message =
                format!("`{}` has no setting that trades bits for error; there are {}", entry.name, able.join(", "));
            self.fail(format!("{path}.{key}"), message);
            return None;
        };
        let taken: Vec<&str> = std::iter::once(&strength.key)
            .chain(strength.instead_of)
            .copied()
            .filter(|key| section.settings.contains_key(*key))
            .collect();
        if !taken.is_empty() {
            for given in taken {
                self.fail(
                    format!("{path}.{given}"),
                    format!("`{given}` is what `{key}` is solved with: give one of them"),
                );
            }
            return None;
        }
        let at = |value: toml::Value| {
            let mut settings = section.settings.clone();
            settings.insert(strength.key.to_owned(), value);
            settings
        };
        // The settings as they are stored come from one strength; the strength itself is none of them.
        let middle = Section { settings: at(strength.value(Strength::STEPS / 2)), ..section.clone() };
        self.part(compress::CATALOGUE, &middle, slot, resolved)?;
        resolved.remove(path, strength.key);
        let mut values: Vec<toml::Value> = (0..Strength::STEPS).map(|step| strength.value(step)).collect();
        values.dedup();
        let operators = values.into_iter().map(|value| (entry.build)(at(value)).map(|built| built.part)).collect();
        match operators {
            Ok(operators) => Some((operators, Some(aim))),
            Err(reason) => {
                self.fail(path, reason);
                None
            }
        }
    }

    pub(super) fn link(
        &mut self,
        section: &Section,
        slot: usize,
        layout: Option<Arc<Layout>>,
        resolved: &mut Resolved,
    ) -> Option<Link> {
        let (mut operators, aim) = self.operators(section, slot, resolved)?;
        let (path, _) = SECTIONS[slot];
        let mut settings: LinkSettings = section.common.clone().try_into().expect("the check knows these keys");
        let granularity = match settings.granularity() {
            Ok(granularity) => granularity,
            Err(idle) => {
                idle.into_iter().for_each(|(key, message)| self.fail(format!("{path}.{key}"), message));
                return None;
            }
        };
        if settings.coder == "default" {
            operators[0].default_coder().clone_into(&mut settings.coder);
        }
        let coder = catalogue::find(wire::CATALOGUE, &settings.coder).expect("the check knows these coders");
        let coder: Box<dyn Coder> = coder.build_example().expect("coders have no settings").part;
        let rule = catalogue::find(link::CATALOGUE, &settings.link).expect("the check knows these rules");
        let rule = rule.build_example().expect("rules have no settings").part;
        resolved.add(path, catalogue::write(&settings));
        // Without a layout the settings can still be checked against the coder.
        let layout = layout.unwrap_or_else(|| Arc::new(Layout::flat(u32::MAX as usize)));
        let codec = match aim {
            None => Codec::new(operators.remove(0), coder, layout, granularity),
            Some(aim) => Codec::aimed(operators, aim, coder, layout, granularity),
        };
        match codec {
            Ok(codec) => Some(Link::new(codec, rule)),
            Err(misfit) => {
                self.misfit(path, misfit);
                None
            }
        }
    }
}

/// The parameters of a model for a data set.
fn layout(architecture: &dyn Architecture, dataset: &Dataset, pixels: &Pixels) -> Result<Arc<Layout>, String> {
    match (architecture.regression(), &dataset.table) {
        (Some(model), Some(_)) if model.loss.classifies() && dataset.classes != 2 => {
            Err("the model needs two classes; `data.target = \"class\"` makes them of two labels".to_owned())
        }
        (Some(_), Some(table)) => Ok(Arc::new(regression::layout(table))),
        (None, Some(_)) => Err(format!(
            "the model fits images, but `{}` is a table; `ridge-regression` and `logistic-regression` fit tables",
            dataset.name
        )),
        (_, None) => {
            let network = architecture.network(pixels.shape(), dataset.classes)?;
            Ok(Arc::new(network.layout().clone()))
        }
    }
}
