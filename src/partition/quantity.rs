//! Partitioner `quantity`: IID content, uneven sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, cut, demand, dirichlet_class::repaired, draw, positive};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle},
};

/// Gives clients random shares of sizes drawn from a Dirichlet distribution; labels are as in the whole set.
///
/// # Rule
/// Proportions are drawn from `Dir(β)` over the clients, and the shuffled set is cut at the cumulative sums. They are
/// redrawn until the smallest client has `min_size` samples.
///
/// # Sizes
/// At least `min_size`, otherwise random; no sample is unused. After 1000 draws (fewer where `n > 20 000`, so that the
/// work is limited) the draw with the largest smallest client is repaired: random samples move, each from the client
/// that is largest at the time, to the clients below `min_size`; a note says how many. A demand of more than `N`
/// samples is refused. With `min_size = 0` there is one draw, and clients may be empty.
///
/// # Source
/// Li, Diao, Chen, He, *Federated Learning on Non-IID Data Silos: An Experimental Study*, 2022, quantity skew.
/// Differs from the source in: the draws are limited.
///
/// # Example
/// With a very large `beta`, 600 samples for 6 clients: 100 each, up to one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quantity {
    /// Concentration `β`, greater than 0; lower is more uneven.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    beta: f64,
    /// Samples that every client must have; 0 allows empty clients.
    min_size: u32,
}

impl Default for Quantity {
    fn default() -> Self {
        Self { beta: 0.5, min_size: 10 }
    }
}

impl Named for Quantity {
    const NAME: &'static str = "quantity";
    const EXAMPLE: &'static str = "beta = 0.5";
}

impl Partitioner for Quantity {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let (total, clients, least) = (samples.labels.len(), samples.n_clients()?, self.min_size as usize);
        positive("beta", self.beta)?;
        demand("min_size", clients, self.min_size, total)?;
        let weights = |number: u64| draw::dirichlet(self.beta, clients, &mut address.part(1 + number).generator());
        let drawn = draw::redraw(clients, least, |number| cut::weighted(total, &weights(number)).min().unwrap_or(0));

        let mut generator = address.generator();
        let mut order: Vec<u32> = (0..total as u32).collect();
        shuffle(&mut order, &mut generator);
        let mut lists = cut::deal(&order, cut::weighted(total, &weights(drawn.number)));
        let mut notes = Vec::new();
        if !drawn.enough {
            let (moved, served) = cut::top_up(&mut lists, least, &mut generator);
            notes.push(repaired(&drawn, least, moved, served));
        }
        Ok(Partition { notes, ..Partition::of(lists) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::laws::{lists, sizes, split};

    fn with(beta: f64, min_size: u32) -> Quantity {
        Quantity { beta, min_size }
    }

    #[test]
    fn a_huge_concentration_gives_equal_sizes_and_a_tiny_one_a_single_owner() {
        let partition = split(&with(1e300, 10), &[0; 600], 6, 0).unwrap();
        assert!(sizes(&partition).iter().all(|size| (99..=101).contains(size)), "{:?}", sizes(&partition));
        let partition = split(&with(1e-300, 0), &[0; 600], 6, 0).unwrap();
        assert_eq!(sizes(&partition).into_iter().filter(|&size| size == 600).count(), 1);
    }

    #[test]
    fn an_unlikely_demand_is_repaired_and_an_impossible_one_refused() {
        let partition = split(&with(0.01, 10), &[0; 1000], 50, 0).unwrap();
        assert_eq!(sizes(&partition).into_iter().min(), Some(10));
        assert!(
            partition.notes[0].starts_with("no draw of 1000 gave every client 10 samples: "),
            "{:?}",
            partition.notes
        );
        let error = split(&with(0.5, 21), &[0; 1000], 50, 0).unwrap_err();
        assert_eq!(error.message, "50 clients with at least 21 samples each need 1050 samples, the data set has 1000");
        assert_eq!(error.key, "min_size");
    }

    #[test]
    fn shares_keep_their_values_across_versions() {
        let partition = split(&with(0.5, 1), &[0; 12], 3, 0).unwrap();
        assert_eq!(lists(&partition), [vec![2, 3, 4, 11], vec![0, 5, 6, 7, 8, 9, 10], vec![1]]);
    }
}
