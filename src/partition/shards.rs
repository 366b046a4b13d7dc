//! Partitioner `shards`: a few consecutive pieces of the set sorted by label.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, by_label, counted};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle},
};

/// Gives every client a few shards of the set sorted by label, so that most clients know few labels.
///
/// # Rule
/// The `N` samples are sorted by label, then by index, and cut into `n p` shards of `⌊N/(n p)⌋`. The shards are
/// shuffled and every client gets `p` of them.
///
/// # Sizes
/// Exactly `p ⌊N/(n p)⌋` each. The `N mod n p` samples at the end of the order, which have the highest labels, are
/// unused and reported. Fewer samples than shards are refused.
///
/// # Source
/// McMahan, Moore, Ramage, Hampson, Agüera y Arcas, *Communication-Efficient Learning of Deep Networks from
/// Decentralized Data*, 2017, section 3 (100 clients, 2 shards of 300).
/// Differs from the source in: a remainder, which cannot occur there, is left out.
///
/// # Example
/// 11 samples for 2 clients with 2 shards each: 4 shards of 2, so sizes 4, 4, and 3 samples are unused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shards {
    /// Shards of a client, at least 1; fewer is more uneven.
    #[schemars(range(min = 1))]
    shards_per_client: u32,
}

impl Default for Shards {
    fn default() -> Self {
        Self { shards_per_client: 2 }
    }
}

impl Named for Shards {
    const NAME: &'static str = "shards";
    const EXAMPLE: &'static str = "shards_per_client = 2";
}

impl Partitioner for Shards {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let (total, clients, each) = (samples.labels.len(), samples.n_clients()?, u64::from(self.shards_per_client));
        let shards = clients as u64 * each;
        if shards == 0 || shards > total as u64 {
            let message = format!(
                "{clients} clients with {each} shards each make {shards} shards, the data set has {total} samples"
            );
            let error = PartitionError::new("shards_per_client", message);
            return Err(error.help("there must be at least 1 shard for each client and 1 sample for each shard"));
        }
        let sorted: Vec<u32> = by_label(samples.labels).into_iter().flat_map(|(_, samples)| samples).collect();
        let size = total / shards as usize;
        let mut order: Vec<u32> = (0..shards as u32).collect();
        shuffle(&mut order, &mut address.generator());
        let shard = |&number: &u32| &sorted[number as usize * size..][..size];
        let lists = order.chunks(each as usize).map(|mine| mine.iter().flat_map(shard).copied().collect()).collect();
        let unused = total % shards as usize;
        let note = || {
            let left = counted(unused, "sample is", "samples are");
            format!("{left} unused: {total} samples are no multiple of {shards} shards")
        };
        Ok(Partition { unused, notes: (unused > 0).then(note).into_iter().collect(), ..Partition::of(lists) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{
        Passport,
        iid::Iid,
        laws::{balanced, lists, mnist_labels, sizes, split},
    };

    #[test]
    fn sizes_are_equal_the_remainder_is_reported_and_values_stay() {
        let labels = [2, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0];
        let partition = split(&Shards::default(), &labels, 2, 0).unwrap();
        assert_eq!(sizes(&partition), [4, 4]);
        assert_eq!(partition.unused, 3);
        assert_eq!(partition.notes, ["3 samples are unused: 11 samples are no multiple of 4 shards"]);
        assert_eq!(lists(&partition), [vec![5, 6, 7, 10], vec![0, 1, 8, 9]]);
    }

    #[test]
    fn mnist_clients_have_one_to_four_labels_in_the_known_shares() {
        let labels = mnist_labels();
        let mut shares = [0.0; 11];
        for seed in 0..200 {
            let partition = split(&Shards::default(), &labels, 100, seed).unwrap();
            assert_eq!(partition.unused, 0);
            for (sum, share) in shares.iter_mut().zip(Passport::new(&partition, &labels, 10).label_shares) {
                *sum += share / 200.0;
            }
        }
        for (labels, wanted) in [(1, 0.084), (2, 0.845), (3, 0.070), (4, 0.001)] {
            assert!((shares[labels] - wanted).abs() < 0.005, "{labels} labels: {}", shares[labels]);
        }
        assert_eq!(shares[5..].iter().sum::<f64>() + shares[0], 0.0);
    }

    #[test]
    fn shards_of_one_sample_are_iid() {
        let labels = balanced(10, 600);
        let distance = |part: &dyn Partitioner| {
            let partition = split(part, &labels, 20, 0).unwrap();
            Passport::new(&partition, &labels, 10).total_variation.unwrap().mean
        };
        let (shards, iid) = (distance(&Shards { shards_per_client: 300 }), distance(&Iid {}));
        assert!((shards - iid).abs() < 0.01, "{shards} {iid}");
    }

    #[test]
    fn more_shards_than_samples_and_no_shards_are_refused() {
        let refused = |shards_per_client| split(&Shards { shards_per_client }, &[0; 15], 10, 0).unwrap_err();
        assert_eq!(refused(2).message, "10 clients with 2 shards each make 20 shards, the data set has 15 samples");
        assert_eq!(refused(0).key, "shards_per_client");
        assert_eq!(refused(u32::MAX).key, "shards_per_client");
    }
}
