//! Partitioner `noise`: IID shares, noisier from client to client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, iid};
use crate::{catalogue::Named, rng::Address};

/// Gives every client an equally large random share, to which it adds noise that grows with its number.
///
/// # Rule
/// The samples are dealt as by `iid`. Client `i` of `n` adds normal noise of mean 0 and standard deviation `σ i/n`.
///
/// # Sizes
/// `⌊N/n⌋` or one more; the first `N mod n` clients have the one more. No sample is unused.
///
/// # Source
/// Li, Diao, Chen, He, *Federated Learning on Non-IID Data Silos: An Experimental Study*, 2022, noise-based feature
/// skew.
/// Differs from the source in: `σ i/n` is the standard deviation, in the paper's text the variance; clients count from
/// 0, so that client 0 has no noise.
///
/// # Example
/// 4 clients, `deviation = 0.2`: deviations 0, 0.05, 0.1, 0.15.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Noise {
    /// Standard deviation `σ` that the noise approaches at the last client, in units of the samples as trained on; at
    /// least 0.
    #[schemars(range(min = 0.0))]
    deviation: f64,
}

impl Default for Noise {
    fn default() -> Self {
        Self { deviation: 0.1 }
    }
}

impl Named for Noise {
    const NAME: &'static str = "noise";
    const EXAMPLE: &'static str = "deviation = 0.1";
}

impl Partitioner for Noise {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let clients = samples.n_clients()?;
        if !(0.0..=f64::from(f32::MAX)).contains(&self.deviation) {
            let message = format!("`deviation` is {}, but must be at least 0 and finite", self.deviation);
            return Err(PartitionError::new("deviation", message));
        }
        let mut partition = Partition::of(iid::equal_shares(samples.labels.len(), clients, address));
        for (client, share) in partition.shares.iter_mut().enumerate() {
            share.noise_deviation = (self.deviation * (client as f64 / clients as f64)) as f32;
        }
        Ok(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::laws::{lists, split};

    #[test]
    fn noise_grows_from_zero_and_shares_keep_their_values_across_versions() {
        let partition = split(&Noise { deviation: 0.2 }, &[0; 8], 4, 1).unwrap();
        let deviations: Vec<f32> = partition.shares.iter().map(|share| share.noise_deviation).collect();
        assert_eq!(deviations, [0.0, 0.05, 0.1, 0.15]);
        assert_eq!(lists(&partition), [vec![4, 5], vec![2, 7], vec![0, 6], vec![1, 3]]);
    }

    #[test]
    fn without_deviation_it_is_iid() {
        let shares = |part: &dyn Partitioner| split(part, &[0; 90], 7, 3).unwrap().shares;
        assert_eq!(shares(&Noise { deviation: 0.0 }), shares(&iid::Iid {}));
    }

    #[test]
    fn negative_and_infinite_noise_is_refused() {
        for deviation in [-0.1, f64::NAN, f64::INFINITY, 1e39] {
            assert_eq!(split(&Noise { deviation }, &[0; 8], 4, 1).unwrap_err().key, "deviation");
        }
    }
}
