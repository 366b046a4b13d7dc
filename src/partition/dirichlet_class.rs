//! Partitioner `dirichlet-class`: every class is spread over the clients by a Dirichlet draw.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, by_label, counted, cut, demand, draw, positive};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle},
};

/// Spreads every class over the clients in proportions drawn from a Dirichlet distribution; sizes and labels are
/// uneven.
///
/// # Rule
/// For each class in turn, proportions are drawn from `Dir(α)` over the clients that hold fewer than `N/n` samples so
/// far, and the shuffled samples of the class are cut at the cumulative sums. The whole is redrawn until the smallest
/// client has `min_size` samples.
///
/// # Sizes
/// At least `min_size`, otherwise random; no sample is unused. After 1000 draws (fewer where `n K > 20 000`, so that
/// the work is limited) the draw with the largest smallest client is repaired: random samples move, each from the
/// client that is largest at the time, to the clients below `min_size`; a note says how many. A demand of more than `N`
/// samples is refused. With `min_size = 0` there is one draw, and clients may be empty.
///
/// # Source
/// Yurochkin et al., *Bayesian Nonparametric Federated Learning of Neural Networks*, 2019; with the cap at `N/n` and
/// the redraws as in Li, Diao, Chen, He, *Federated Learning on Non-IID Data Silos: An Experimental Study*, 2022.
/// Differs from the source in: full clients are left out of the draw rather than set to zero after it, which is the
/// same law but cannot end in 0/0; the draws are limited.
///
/// # Example
/// 10 classes of 5000 samples, 100 clients, `alpha = 0.5`: the labels of a client are 0.51 from uniform in total
/// variation, on average.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DirichletClass {
    /// Concentration `α`, greater than 0; lower is more uneven.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    alpha: f64,
    /// Samples that every client must have; 0 allows empty clients.
    min_size: u32,
}

impl Default for DirichletClass {
    fn default() -> Self {
        Self { alpha: 0.5, min_size: 10 }
    }
}

impl Named for DirichletClass {
    const NAME: &'static str = "dirichlet-class";
    const EXAMPLE: &'static str = "alpha = 0.5";
}

impl Partitioner for DirichletClass {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let (clients, least) = (samples.n_clients()?, self.min_size as usize);
        positive("alpha", self.alpha)?;
        demand("min_size", clients, self.min_size, samples.labels.len())?;
        let mut classes = by_label(samples.labels);
        for (label, samples) in &mut classes {
            shuffle(samples, &mut address.node(1 + u32::from(*label)).generator());
        }
        let classes: Vec<Vec<u32>> = classes.into_iter().map(|(_, samples)| samples).collect();

        // A draw is named by its number and made again when it is used, so that none has to be stored.
        let stream = |number: u64| address.part(1 + number);
        let drawn = draw::redraw(clients * classes.len(), least, |number| {
            let mut sizes = vec![0; clients];
            self.spread(&classes, stream(number), &mut sizes, |_, _| {});
            sizes.into_iter().min().unwrap_or(0)
        });
        let mut lists = vec![Vec::new(); clients];
        self.spread(&classes, stream(drawn.number), &mut vec![0; clients], |client, samples: &[u32]| {
            lists[client].extend_from_slice(samples);
        });
        let mut notes = Vec::new();
        if !drawn.enough {
            let (moved, served) = cut::top_up(&mut lists, least, &mut address.generator());
            notes.push(repaired(&drawn, least, moved, served));
        }
        Ok(Partition { notes, ..Partition::of(lists) })
    }
}

impl DirichletClass {
    /// One draw: calls `give` with every client and the samples that it gets of a class, and counts them in `sizes`.
    fn spread(&self, classes: &[Vec<u32>], address: Address, sizes: &mut [usize], mut give: impl FnMut(usize, &[u32])) {
        let total: usize = classes.iter().map(Vec::len).sum();
        let mut generator = address.generator();
        for class in classes {
            // Samples are left, so not every client can have its N/n: at least one is open.
            let is_open = |&client: &usize| (sizes[client] as u64) * (sizes.len() as u64) < total as u64;
            let open: Vec<usize> = (0..sizes.len()).filter(is_open).collect();
            let weights = draw::dirichlet(self.alpha, open.len(), &mut generator);
            let mut rest = class.as_slice();
            for (&client, size) in open.iter().zip(cut::weighted(class.len(), &weights)) {
                let (mine, after) = rest.split_at(size);
                rest = after;
                sizes[client] += size;
                give(client, mine);
            }
        }
    }
}

/// The note on a repair.
pub fn repaired(drawn: &draw::Drawn, least: usize, moved: usize, served: usize) -> String {
    format!(
        "no draw of {} gave every client {}: {} moved from the largest clients to {}",
        drawn.tried,
        counted(least, "sample", "samples"),
        counted(moved, "sample was", "samples were"),
        counted(served, "smaller one", "smaller ones"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{
        Passport,
        laws::{balanced, lists, sizes, split},
    };

    fn with(alpha: f64, min_size: u32) -> DirichletClass {
        DirichletClass { alpha, min_size }
    }

    #[test]
    fn skew_and_sizes_agree_with_the_rule_of_the_source() {
        // Means of 40 draws by a separate implementation of the source's rule, which sets full clients to zero after
        // the draw; a single draw scatters by 0.01 at most.
        let labels = balanced(10, 5000);
        for (alpha, distance, most) in [
            (0.1, 0.743, 2099.0),
            (0.5, 0.508, 1032.0),
            (1.0, 0.392, 832.0),
            (10.0, 0.129, 586.0),
            (100.0, 0.038, 537.0),
        ] {
            let (mut got_distance, mut got_most) = (0.0, 0.0);
            for seed in 0..20 {
                let partition = split(&with(alpha, 10), &labels, 100, seed).unwrap();
                assert!(partition.notes.is_empty(), "{:?}", partition.notes);
                let passport = Passport::new(&partition, &labels, 10);
                let sizes = passport.sizes.unwrap();
                assert!(sizes.min >= 10.0);
                got_distance += passport.total_variation.unwrap().mean / 20.0;
                got_most += sizes.max / 20.0;
            }
            assert!((got_distance - distance).abs() < 0.008, "alpha {alpha}: distance {got_distance}");
            assert!((got_most / most - 1.0).abs() < 0.1, "alpha {alpha}: largest {got_most}");
        }
    }

    #[test]
    fn a_huge_concentration_looks_iid_and_a_tiny_one_gives_each_class_to_one_client() {
        let labels = balanced(10, 600);
        let partition = split(&with(1e300, 10), &labels, 10, 0).unwrap();
        for client in Passport::new(&partition, &labels, 10).clients {
            assert!(client.labels.iter().all(|count| (58..=62).contains(count)), "{:?}", client.labels);
        }
        let partition = split(&with(1e-300, 0), &labels, 100, 0).unwrap();
        let passport = Passport::new(&partition, &labels, 10);
        assert_eq!((passport.label_shares[0], passport.label_shares[1]), (0.9, 0.1));
    }

    #[test]
    fn an_unlikely_demand_is_repaired_and_an_impossible_one_refused() {
        let labels = balanced(10, 600);
        let partition = split(&with(1e-3, 10), &labels, 100, 0).unwrap();
        let sizes = sizes(&partition);
        assert_eq!(sizes.iter().copied().min(), Some(10));
        assert_eq!(sizes.iter().sum::<usize>(), 6000);
        assert_eq!(partition.notes.len(), 1, "{:?}", partition.notes);
        assert!(
            partition.notes[0].starts_with("no draw of 1000 gave every client 10 samples: "),
            "{:?}",
            partition.notes
        );
        // Nothing is left over: every client has exactly the least.
        let exact = split(&with(1e-3, 60), &labels, 100, 0).unwrap();
        assert!(exact.shares.iter().all(|share| share.samples.len() == 60));

        let error = split(&DirichletClass::default(), &labels[..600], 100, 0).unwrap_err();
        assert_eq!(error.key, "min_size");
        assert_eq!(error.message, "100 clients with at least 10 samples each need 1000 samples, the data set has 600");
    }

    #[test]
    fn shares_keep_their_values_across_versions() {
        let partition = split(&with(0.5, 1), &[0, 1, 2].repeat(4), 3, 0).unwrap();
        assert_eq!(lists(&partition), [vec![2, 3, 8, 11], vec![0, 1, 5, 9], vec![4, 6, 7, 10]]);
    }
}
