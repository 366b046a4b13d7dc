//! Partitioner `dirichlet-client`: every client has its own label distribution from a Dirichlet draw, and equal size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, by_label, cut, draw, positive};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle, unit_f64},
};

/// Draws a label distribution for every client from a Dirichlet distribution, then its samples from that; sizes are
/// equal.
///
/// # Rule
/// Client `i` draws `q` from `Dir(α p)`, with `p` the shares of the labels in the data set. It draws its samples one by
/// one without replacement: a label from `q`, then a random sample of that label which nobody holds. A label that is
/// used up leaves `q`, which is renormalised over the rest. Clients draw in ascending order.
///
/// # Sizes
/// `⌊N/n⌋` or one more; the first `N mod n` clients have the one more. No sample is unused. As everything is dealt, the
/// last clients take what is left, and are closer to each other than `q` says.
///
/// # Source
/// Hsu, Qi, Brown, *Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification*,
/// 2019, section 3.
/// Differs from the source in: sizes need not divide evenly.
///
/// # Example
/// 10 labels of 600 samples, 100 clients, `alpha` near 0: every client holds 60 samples of one label.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DirichletClient {
    /// Concentration `α`, greater than 0, summed over all labels; lower is more uneven.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    alpha: f64,
}

impl Default for DirichletClient {
    fn default() -> Self {
        Self { alpha: 0.5 }
    }
}

impl Named for DirichletClient {
    const NAME: &'static str = "dirichlet-client";
    const EXAMPLE: &'static str = "alpha = 0.5";
}

impl Partitioner for DirichletClient {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let (total, clients) = (samples.labels.len(), samples.n_clients()?);
        positive("alpha", self.alpha)?;
        let mut pools = by_label(samples.labels);
        for (label, pool) in &mut pools {
            shuffle(pool, &mut address.part(1 + u64::from(*label)).generator());
        }
        let alpha = draw::concentration(self.alpha);
        let shapes: Vec<f64> = pools.iter().map(|(_, pool)| alpha * pool.len() as f64 / total as f64).collect();
        let mut pools: Vec<Vec<u32>> = pools.into_iter().map(|(_, pool)| pool).collect();
        let draw_share = |(client, size): (usize, usize)| {
            let mut generator = address.node(client as u32).generator();
            let logs = draw::log_gammas(shapes.iter().copied(), &mut generator);
            draw_samples(size, logs, &mut pools, &mut generator)
        };
        Ok(Partition::of(cut::even(total, clients).enumerate().map(draw_share).collect()))
    }
}

/// Takes `size` samples from the pools, each pool with a probability in proportion to the exponential of its logarithm.
fn draw_samples(size: usize, mut logs: Vec<f64>, pools: &mut [Vec<u32>], generator: &mut impl rand::Rng) -> Vec<u32> {
    let mut weights = Vec::new();
    let mut samples = Vec::with_capacity(size);
    while samples.len() < size {
        if weights.is_empty() {
            // At the start and whenever a pool ran dry. The weights are rescaled so that the largest is 1: however
            // small the rest was before, the sum cannot vanish.
            for (log, _) in logs.iter_mut().zip(pools.iter()).filter(|(_, pool)| pool.is_empty()) {
                *log = f64::NEG_INFINITY;
            }
            weights = draw::from_logs(&logs);
        }
        let Some(pool) = choose(&weights, unit_f64(generator.next_u64())) else { break };
        samples.extend(pools[pool].pop());
        if pools[pool].is_empty() {
            weights.clear();
        }
    }
    samples
}

/// The place at which the cumulative sum of the weights passes `uniform` of their total; never one of weight 0.
fn choose(weights: &[f64], uniform: f64) -> Option<usize> {
    let mut left = uniform * weights.iter().sum::<f64>();
    let mut last = None;
    for (place, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = Some(place);
        if left < weight {
            break;
        }
        left -= weight;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{
        Passport,
        laws::{balanced, lists, sizes, split},
    };

    #[test]
    fn sizes_are_equal_for_every_concentration() {
        let labels = balanced(7, 100);
        for alpha in [1e-300, 1e-5, 0.01, 0.5, 100.0, 1e300] {
            let partition = split(&DirichletClient { alpha }, &labels, 9, 3).unwrap();
            assert_eq!(sizes(&partition), [78, 78, 78, 78, 78, 78, 78, 77, 77]);
        }
    }

    #[test]
    fn early_clients_have_the_known_skew() {
        // Dir(10 a p) over 10 equal labels is Dir(a, .., a). The early clients draw before any label runs out.
        let labels = balanced(10, 20_000);
        for (a, largest, distance) in [(0.1, 0.665, 0.711), (0.5, 0.380, 0.458), (1.0, 0.293, 0.349)] {
            let partition = split(&DirichletClient { alpha: 10.0 * a }, &labels, 1000, 0).unwrap();
            let clients = &Passport::new(&partition, &labels, 10).clients[..300];
            let mean_of = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            let got_largest = mean_of(clients.iter().filter_map(|client| client.largest_share).collect());
            let got_distance = mean_of(clients.iter().filter_map(|client| client.total_variation).collect());
            // Standard errors are below 0.012; 200 samples of each client add at most 0.01 of their own.
            assert!((got_largest - largest).abs() < 0.03, "{a}: {got_largest}");
            assert!((got_distance - distance).abs() < 0.03, "{a}: {got_distance}");
        }
    }

    #[test]
    fn a_tiny_concentration_gives_one_label_and_a_huge_one_looks_iid() {
        let labels = balanced(10, 600);
        for alpha in [1e-6, 1e-300] {
            let partition = split(&DirichletClient { alpha }, &labels, 100, 0).unwrap();
            assert_eq!(Passport::new(&partition, &labels, 10).label_shares[1], 1.0);
        }
        let distance = |partition| Passport::new(&partition, &labels, 10).total_variation.unwrap().mean;
        let huge = distance(split(&DirichletClient { alpha: 1e300 }, &labels, 20, 0).unwrap());
        let iid = distance(split(&crate::partition::iid::Iid {}, &labels, 20, 0).unwrap());
        assert!((huge - iid).abs() < 0.02, "{huge} {iid}");
    }

    #[test]
    fn rare_labels_keep_their_share_at_a_huge_concentration() {
        let labels: Vec<u8> = (0..10_000).map(|i| u8::from(i % 10 == 0)).collect();
        let partition = split(&DirichletClient { alpha: f64::MAX }, &labels, 5, 0).unwrap();
        // The last of the five takes what the others left.
        for client in &Passport::new(&partition, &labels, 2).clients[..4] {
            assert!((150..250).contains(&client.labels[1]), "{:?}", client.labels);
        }
    }

    #[test]
    fn shares_keep_their_values_across_versions() {
        let partition = split(&DirichletClient::default(), &[0, 1, 2].repeat(4), 3, 0).unwrap();
        assert_eq!(lists(&partition), [vec![2, 4, 5, 8], vec![1, 7, 10, 11], vec![0, 3, 6, 9]]);
    }
}
