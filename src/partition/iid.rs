//! Partitioner `iid`: equal random shares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, cut};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle},
};

/// Gives every client an equally large random share.
///
/// # Rule
/// The `N` samples are shuffled and cut into `n` consecutive parts.
///
/// # Sizes
/// `⌊N/n⌋` or one more; the first `N mod n` clients have the one more. No sample is unused.
///
/// # Source
/// McMahan, Moore, Ramage, Hampson, Agüera y Arcas, *Communication-Efficient Learning of Deep Networks from
/// Decentralized Data*, 2017, section 3.
/// Differs from the source in: nothing.
///
/// # Example
/// 10 samples for 3 clients: sizes 4, 3, 3.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Iid {}

impl Named for Iid {
    const NAME: &'static str = "iid";
}

impl Partitioner for Iid {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        Ok(Partition::of(equal_shares(samples.labels.len(), samples.n_clients()?, address)))
    }
}

/// The samples `0..total` shuffled and cut into `parts` lists whose lengths differ by at most one.
pub fn equal_shares(total: usize, parts: usize, address: Address) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..total as u32).collect();
    shuffle(&mut order, &mut address.generator());
    cut::deal(&order, cut::even(total, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::laws::{lists, sizes, split};

    #[test]
    fn shares_are_equal_and_keep_their_values_across_versions() {
        let partition = split(&Iid {}, &[0; 10], 3, 0).unwrap();
        assert_eq!(sizes(&partition), [4, 3, 3]);
        assert_eq!(lists(&partition), [vec![2, 7, 8, 9], vec![3, 4, 6], vec![0, 1, 5]]);
    }
}
