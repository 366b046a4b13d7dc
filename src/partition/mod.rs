//! Who holds which training sample: one partitioner a file, all reached through [`split`].
//!
//! A split is a function of the labels, the settings and the seed, and of nothing else. [`split`] refuses impossible
//! demands with the numbers, and checks every result: no sample is held twice, none is lost without being reported. The
//! samples of a client stand in ascending order; the order in which a client visits them is drawn anew for every epoch,
//! elsewhere.

mod check;
mod cut;
mod draw;
mod passport;

mod dirichlet_class;
mod dirichlet_client;
mod file;
mod iid;
mod label_k;
mod noise;
mod quantity;
mod rotation;
mod shards;
mod writer;

#[cfg(test)]
mod laws;

pub use check::check_cover;
pub use passport::{Holding, Passport, Spread, indices_csv};

use crate::{catalogue::Entry, entry, rng::Address};

/// Every partitioner, in the order of the documentation.
pub const CATALOGUE: &[Entry<dyn Partitioner>] = &[
    entry!(iid::Iid),
    entry!(shards::Shards),
    entry!(label_k::LabelK),
    entry!(dirichlet_class::DirichletClass),
    entry!(dirichlet_client::DirichletClient),
    entry!(quantity::Quantity),
    entry!(rotation::Rotation),
    entry!(noise::Noise),
    entry!(writer::Writer),
    entry!(file::File),
];

/// Clients where the scenario names no number and the partitioner does not imply one.
pub const DEFAULT_CLIENTS: u32 = 100;

/// What a partitioner sees of the training set. The test set is never shown to it.
pub struct Samples<'a> {
    /// Label of each training sample.
    pub labels: &'a [u8],
    /// Number of classes; every label is below it.
    pub classes: usize,
    /// Number of clients as asked; `None` is the partitioner's default: [`DEFAULT_CLIENTS`], one per writer, or what
    /// the file lists.
    pub clients: Option<u32>,
    /// Whether the samples are square images, which may be turned by a quarter.
    pub square: bool,
    /// Writer of each sample, if the data set has them.
    pub writers: Option<&'a [u32]>,
    /// Reads a text file for the partitioner `file`.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}

/// What one client holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// Indices of its training samples, ascending.
    pub samples: Vec<u32>,
    /// Quarter turns, 0 to 3, by which it rotates its images.
    pub quarter_turns: u8,
    /// Standard deviation of the noise that it adds to its samples.
    pub noise_deviation: f32,
}

/// A split of the training set.
#[derive(Clone, Debug)]
pub struct Partition {
    /// What each client holds.
    pub shares: Vec<Share>,
    /// Number of samples that no client holds; the notes say why.
    pub unused: usize,
    /// Remarks for the log: unused samples, repairs.
    pub notes: Vec<String>,
}

impl Partition {
    /// A split in which client `i` holds `lists[i]`, put in ascending order, and nothing is unused.
    fn of(lists: Vec<Vec<u32>>) -> Self {
        let share = |mut samples: Vec<u32>| {
            samples.sort_unstable();
            Share { samples, ..Share::default() }
        };
        Self { shares: lists.into_iter().map(share).collect(), unused: 0, notes: Vec::new() }
    }
}

/// A way to split a training set among clients.
pub trait Partitioner: Send + Sync {
    /// The split under `address`, from which all randomness is drawn.
    ///
    /// Call [`split`] instead, which checks what goes in and what comes out.
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError>;

    /// Whether a sample may be held by several clients, once for each rotation.
    fn replicates(&self) -> bool {
        false
    }
}

/// A demand that cannot be met, and the setting to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PartitionError {
    /// Setting of the section, such as `clients` or `min_size`; `name` if the data set does not suit the partitioner at
    /// all.
    pub key: String,
    /// What is wrong, with the numbers.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl PartitionError {
    fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// Splits `samples` with `partitioner`, refusing what is impossible and checking that the result covers the set
/// exactly.
pub fn split(
    partitioner: &dyn Partitioner,
    samples: &Samples<'_>,
    address: Address,
) -> Result<Partition, PartitionError> {
    samples.check()?;
    let partition = partitioner.split(samples, address)?;
    let broken = |reason: String| PartitionError::new("name", format!("the partitioner broke its promise: {reason}"));
    check_cover(&partition, samples.labels.len(), partitioner.replicates()).map_err(broken)?;
    match samples.clients {
        Some(asked) if asked as usize != partition.shares.len() => {
            Err(broken(format!("{asked} clients were asked for, {} came out", partition.shares.len())))
        }
        _ => Ok(partition),
    }
}

impl Samples<'_> {
    fn check(&self) -> Result<(), PartitionError> {
        let n = self.labels.len();
        let fault = |message: String| Err(PartitionError::new("name", message));
        if n == 0 {
            return fault("the training set is empty".to_owned());
        }
        if u32::try_from(n).is_err() {
            return fault(format!("the training set has {n} samples, at most {} can be split", u32::MAX));
        }
        if let Some(at) = self.labels.iter().position(|&label| usize::from(label) >= self.classes) {
            return fault(format!("sample {at} has label {} in a set of {} classes", self.labels[at], self.classes));
        }
        match self.writers {
            Some(writers) if writers.len() != n => {
                return fault(format!("{n} samples have {}", counted(writers.len(), "writer", "writers")));
            }
            _ => {}
        }
        if self.clients.is_some() { self.n_clients().map(|_| ()) } else { Ok(()) }
    }

    /// The number of clients, as asked or by default: at least one, and no more than there are samples.
    fn n_clients(&self) -> Result<usize, PartitionError> {
        let (clients, samples) = (self.clients.unwrap_or(DEFAULT_CLIENTS) as usize, self.labels.len());
        if clients == 0 {
            return Err(
                PartitionError::new("clients", "0 clients cannot hold a training set").help("ask for at least 1")
            );
        }
        demand("clients", clients, 1, samples)?;
        Ok(clients)
    }
}

/// Refuses, in the name of `key`, to give each of `clients` at least `each` of too few `samples`.
fn demand(key: &str, clients: usize, each: u32, samples: usize) -> Result<(), PartitionError> {
    let needed = clients as u64 * u64::from(each);
    if needed <= samples as u64 {
        return Ok(());
    }
    let message = format!(
        "{clients} clients with at least {} need {}, the data set has {samples}",
        counted(each as usize, "sample each", "samples each"),
        counted(needed as usize, "sample", "samples"),
    );
    let help = if key == "clients" { "ask for fewer clients".into() } else { format!("lower `{key}` or `clients`") };
    Err(PartitionError::new(key, message).help(help))
}

/// Refuses a setting that must be a finite number greater than zero.
fn positive(key: &str, value: f64) -> Result<(), PartitionError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(PartitionError::new(key, format!("`{key}` is {value}, but must be greater than 0 and finite")))
}

/// The samples of each label that occurs, ascending by label and by index.
fn by_label(labels: &[u8]) -> Vec<(u8, Vec<u32>)> {
    let mut lists: Vec<(u8, Vec<u32>)> = (0..=u8::MAX).map(|label| (label, Vec::new())).collect();
    for (sample, &label) in labels.iter().enumerate() {
        lists[usize::from(label)].1.push(sample as u32);
    }
    lists.retain(|(_, samples)| !samples.is_empty());
    lists
}

/// A number with the right form of its noun: `1 sample`, `2 samples`.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
