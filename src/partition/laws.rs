//! What every partitioner must do, tested over the whole catalogue, and the shorthand that the tests of this room
//! share.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::{
    catalogue::Built,
    rng::{Purpose, shuffle},
};

/// The address of a split under `seed`.
pub fn address(seed: u64) -> Address {
    Address::new(seed, Purpose::Partition)
}

/// Square images without writers and without files.
pub fn samples(labels: &[u8], clients: Option<u32>) -> Samples<'_> {
    let classes = labels.iter().max().map_or(0, |&label| usize::from(label) + 1);
    Samples { labels, classes, clients, square: true, writers: None, read: &|path| Err(format!("no file `{path}`")) }
}

/// A split of samples with these labels.
pub fn split(
    partitioner: &dyn Partitioner,
    labels: &[u8],
    clients: u32,
    seed: u64,
) -> Result<Partition, PartitionError> {
    super::split(partitioner, &samples(labels, Some(clients)), address(seed))
}

/// The samples of each client.
pub fn lists(partition: &Partition) -> Vec<Vec<u32>> {
    partition.shares.iter().map(|share| share.samples.clone()).collect()
}

/// The number of samples of each client.
pub fn sizes(partition: &Partition) -> Vec<usize> {
    partition.shares.iter().map(|share| share.samples.len()).collect()
}

/// `each` samples of each of `classes` labels, in turn.
pub fn balanced(classes: u8, each: usize) -> Vec<u8> {
    (0..classes).cycle().take(usize::from(classes) * each).collect()
}

/// Labels as often as MNIST has them, in random order.
pub fn mnist_labels() -> Vec<u8> {
    let counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    let mut labels: Vec<u8> = (0..).zip(counts).flat_map(|(label, count)| std::iter::repeat_n(label, count)).collect();
    shuffle(&mut labels, &mut address(0).generator());
    labels
}

/// Settings to try beside the example.
const LEGAL: &[(&str, &[&str])] = &[
    ("shards", &["shards_per_client = 1", "shards_per_client = 7"]),
    ("label-k", &["labels_per_client = 1", "labels_per_client = 4"]),
    ("dirichlet-class", &["min_size = 0", "alpha = 0.001\nmin_size = 1", "alpha = 1e-300", "alpha = 1e300"]),
    ("dirichlet-client", &["alpha = 0.001", "alpha = 1e-300", "alpha = 1e300"]),
    ("quantity", &["min_size = 0", "beta = 0.001\nmin_size = 1", "beta = 1e-300", "beta = 1e300"]),
    ("rotation", &["rotations = 2", "replicate = true", "rotations = 2\nreplicate = true"]),
    ("noise", &["deviation = 0.0", "deviation = 1e30"]),
    ("writer", &["subsample = 0.3", "min_samples = 3\nsubsample = 0.9"]),
];

/// Settings that the schema refuses, or that no data set can satisfy.
const WILD: &[(&str, &[&str])] = &[
    ("shards", &["shards_per_client = 0", "shards_per_client = 4294967295"]),
    ("label-k", &["labels_per_client = 0", "labels_per_client = 4294967295"]),
    ("dirichlet-class", &["alpha = 0.0", "alpha = -1.0", "alpha = nan", "alpha = inf", "min_size = 4294967295"]),
    ("dirichlet-client", &["alpha = 0.0", "alpha = -1.0", "alpha = nan", "alpha = inf"]),
    ("quantity", &["beta = 0.0", "beta = -1.0", "beta = nan", "beta = inf", "min_size = 4294967295"]),
    ("rotation", &["rotations = 0", "rotations = 3", "rotations = 255"]),
    ("noise", &["deviation = -1.0", "deviation = nan", "deviation = inf", "deviation = 1e300"]),
    ("writer", &["subsample = 0.0", "subsample = 2.0", "subsample = nan", "min_samples = 4294967295"]),
];

/// Every partitioner of the catalogue with its example, with its defaults, and with the settings that `more` names for
/// it.
fn parts(more: &[(&str, &[&str])]) -> Vec<(String, Box<dyn Partitioner>)> {
    let mut parts = Vec::new();
    for entry in CATALOGUE {
        let named =
            more.iter().filter(|(name, _)| *name == entry.name).flat_map(|(_, settings)| settings.iter().copied());
        for settings in std::iter::once(entry.example).chain(named) {
            let Built { part, .. } = (entry.build)(toml::from_str(settings).unwrap()).unwrap();
            parts.push((format!("{} with `{settings}`", entry.name), part));
        }
    }
    parts
}

/// A training set of up to 300 samples, as the partitioners see it.
#[derive(Clone, Debug)]
struct Set {
    labels: Vec<u8>,
    writers: Vec<u32>,
    clients: Option<u32>,
    square: bool,
}

fn set() -> impl Strategy<Value = Set> {
    let samples = prop::collection::vec((0u8..6, 0u32..30), 1..300);
    (samples, prop::option::of(1u32..40), any::<bool>()).prop_map(|(samples, clients, square)| {
        let (labels, writers) = samples.into_iter().unzip();
        Set { labels, writers, clients, square }
    })
}

impl Set {
    fn split(&self, part: &dyn Partitioner, seed: u64) -> Result<Partition, PartitionError> {
        // The file is the dump of another split of the same set.
        let read = |_: &str| {
            let clients = self.clients.unwrap_or(1);
            let partition = split(&quantity_of_zero(), &self.labels, clients, 99).map_err(|error| error.to_string())?;
            Ok(indices_csv(&partition))
        };
        let samples = Samples {
            square: self.square,
            writers: Some(&self.writers),
            read: &read,
            ..samples(&self.labels, self.clients)
        };
        super::split(part, &samples, address(seed))
    }
}

/// Uneven sizes, some clients empty.
fn quantity_of_zero() -> quantity::Quantity {
    toml::from_str("beta = 0.1\nmin_size = 0").unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_split_covers_the_set_exactly_and_depends_on_the_seed_alone(set in set(), seed: u64) {
        for (name, part) in parts(LEGAL) {
            match set.split(part.as_ref(), seed) {
                Err(error) => prop_assert!(!error.key.is_empty() && !error.message.is_empty(), "{name}"),
                Ok(partition) => {
                    // Once more than `split` does, from the lists themselves.
                    let mut held = lists(&partition).concat();
                    let total = held.len();
                    held.sort_unstable();
                    held.dedup();
                    prop_assert!(part.replicates() || held.len() == total, "{name}");
                    prop_assert_eq!(held.len() + partition.unused, set.labels.len(), "{}", name);
                    prop_assert_eq!(partition.unused > 0, unused_noted(&partition), "{}", name);
                    prop_assert!(set.clients.is_none_or(|asked| asked as usize == partition.shares.len()), "{name}");
                    let again = set.split(part.as_ref(), seed).unwrap();
                    prop_assert_eq!(&again.shares, &partition.shares, "{}", name);
                }
            }
        }
    }
}

fn unused_noted(partition: &Partition) -> bool {
    partition.notes.iter().any(|note| note.contains("unused"))
}

#[test]
fn another_seed_gives_another_split() {
    let labels = balanced(6, 50);
    let set = Set { writers: (0..300).map(|i| i / 10 * 7).collect(), labels, clients: Some(9), square: true };
    for (name, part) in parts(LEGAL) {
        // A file says everything itself; very small concentrations may give all to the same client by chance.
        if name.starts_with("file") || name.contains("e-300") {
            continue;
        }
        let [a, b] =
            [1, 2].map(|seed| set.split(part.as_ref(), seed).unwrap_or_else(|error| panic!("{name}: {error}")));
        assert_ne!(a.shares, b.shares, "{name}");
    }
}

#[test]
fn settings_that_cannot_be_met_are_refused_with_their_key() {
    let set = Set { writers: (0..60).collect(), labels: balanced(6, 10), clients: Some(4), square: true };
    for (name, settings) in WILD {
        let entry = crate::catalogue::find(CATALOGUE, name).unwrap();
        for settings in *settings {
            let Built { part, .. } = (entry.build)(toml::from_str(settings).unwrap()).unwrap();
            let error = set.split(part.as_ref(), 0).map(|_| ()).expect_err(settings);
            assert!(settings.starts_with(&error.key) && error.message.len() > 10, "{name} {settings}: {error:?}");
        }
    }
}

#[test]
fn numbers_of_clients_that_cannot_be_met_are_refused() {
    for (name, part) in parts(LEGAL) {
        let set =
            |clients| Set { labels: vec![0, 1, 2, 0], writers: vec![0, 1, 2, 3], clients: Some(clients), square: true };
        let error = set(0).split(part.as_ref(), 0).unwrap_err();
        assert_eq!(
            (error.key.as_str(), error.message.as_str()),
            ("clients", "0 clients cannot hold a training set"),
            "{name}"
        );
        for clients in [5, u32::MAX] {
            let error = set(clients).split(part.as_ref(), 0).unwrap_err();
            let wanted =
                format!("{clients} clients with at least 1 sample each need {clients} samples, the data set has 4");
            assert_eq!((error.key.as_str(), error.message.as_str()), ("clients", wanted.as_str()), "{name}");
        }
    }
    // The default number counts as well.
    let error = super::split(&iid::Iid {}, &samples(&[0; 60], None), address(0)).unwrap_err();
    assert_eq!(error.message, "100 clients with at least 1 sample each need 100 samples, the data set has 60");
    assert_eq!(super::split(&iid::Iid {}, &samples(&[0; 160], None), address(0)).unwrap().shares.len(), 100);
}

#[test]
fn data_sets_that_contradict_themselves_are_refused() {
    let message = |samples: &Samples<'_>| super::split(&iid::Iid {}, samples, address(0)).unwrap_err().message;
    assert_eq!(message(&samples(&[], Some(1))), "the training set is empty");
    let labels = [0, 3, 1];
    let set = samples(&labels, Some(1));
    assert_eq!(message(&Samples { classes: 3, ..set }), "sample 1 has label 3 in a set of 3 classes");
    let set = samples(&labels, Some(1));
    assert_eq!(message(&Samples { writers: Some(&[1]), ..set }), "3 samples have 1 writer");
}

#[test]
fn a_partitioner_that_breaks_its_promise_is_found_out() {
    struct Broken(Vec<Vec<u32>>);
    impl Partitioner for Broken {
        fn split(&self, _: &Samples<'_>, _: Address) -> Result<Partition, PartitionError> {
            Ok(Partition::of(self.0.clone()))
        }
    }
    // Shared, lost, from beyond the training set (a test index), and another number of clients than asked.
    for lists in [vec![vec![0, 1], vec![1, 2]], vec![vec![0], vec![1]], vec![vec![0, 1], vec![3]], vec![vec![0, 1, 2]]]
    {
        let error = split(&Broken(lists), &[0; 3], 2, 0).unwrap_err();
        assert!(error.message.starts_with("the partitioner broke its promise: "), "{error}");
    }
    assert!(split(&Broken(vec![vec![0, 1], vec![2]]), &[0; 3], 2, 0).is_ok());
}

#[test]
fn ten_thousand_clients_take_seconds_at_most() {
    let labels = mnist_labels();
    let writers: Vec<u32> = (0..60_000).map(|i| i % 15_000).collect();
    let set = Set { labels, writers, clients: Some(10_000), square: true };
    for (name, part) in parts(LEGAL) {
        let start = Instant::now();
        let outcome = set.split(part.as_ref(), 0).map(|partition| partition.shares.len());
        // Generous, for slow machines and builds without optimisation.
        assert!(start.elapsed() < Duration::from_secs(20), "{name}: {:?}", start.elapsed());
        assert!(outcome.is_err() || outcome == Ok(10_000), "{name}");
    }
}

#[test]
fn every_partitioner_is_documented_and_named_after_its_file() {
    for entry in CATALOGUE {
        let doc = entry.doc();
        let places: Vec<Option<usize>> =
            ["# Rule\n", "# Sizes\n", "# Source\n", "Differs from the source in: ", "# Example\n"]
                .map(|part| doc.find(part))
                .to_vec();
        assert!(places.is_sorted() && !places.contains(&None), "{}: {places:?}", entry.name);
        assert_eq!(entry.name.replace('-', "_"), entry.module);
        assert_eq!(entry.type_name.to_lowercase(), entry.name.replace('-', ""));
        assert!(entry.build_example().is_ok(), "{}", entry.name);
        assert!((entry.build)(toml::from_str("nonsense = 1").unwrap()).is_err(), "{}", entry.name);
    }
}

#[test]
fn a_dump_of_every_split_reads_back_identically() {
    let set =
        Set { writers: (0..300).map(|i| i / 10).collect(), labels: balanced(6, 50), clients: Some(10), square: true };
    for (name, part) in parts(LEGAL) {
        let Ok(partition) = set.split(part.as_ref(), 5) else { continue };
        let csv = indices_csv(&partition);
        let file: file::File = toml::from_str(&format!("path = 'dump'\nreplicate = {}", part.replicates())).unwrap();
        let read = |_: &str| Ok(csv.clone());
        let again =
            super::split(&file, &Samples { read: &read, ..samples(&set.labels, Some(10)) }, address(6)).unwrap();
        assert_eq!((&again.shares, again.unused), (&partition.shares, partition.unused), "{name}");
        let digest = |partition: &Partition| Passport::new(partition, &set.labels, 6).digest;
        assert_eq!(digest(&again), digest(&partition), "{name}");
    }
}
