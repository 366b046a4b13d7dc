//! Which clients take part in a round.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::{Address, Purpose, shuffle, unit_f64};

/// Keys of the `[method]` section that say who takes part and how much each counts; the same for all methods.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Participation {
    /// Share of the clients in a round, in (0, 1].
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub participation: f64,
    /// How clients are drawn.
    pub sampling: Sampling,
    /// Weight of a client in an average.
    pub weights: Weights,
}

impl Default for Participation {
    fn default() -> Self {
        Self { participation: 1.0, sampling: Sampling::Uniform, weights: Weights::Samples }
    }
}

/// How the clients of a round are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// `max(1, round(participation n))` different clients, every set of them equally likely.
    Uniform,
    /// Every client by itself with probability `participation`; a round may have none. Averages divide by the expected weight
    /// of a round, not by that of the clients that came.
    Bernoulli,
    /// All clients in every round.
    All,
}

/// Weight of a client in an average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// Its number of samples.
    Samples,
    /// One.
    Equal,
}

impl Participation {
    /// Number of clients in a round among `n`, where it is fixed.
    pub fn count(&self, n: usize) -> usize {
        match self.sampling {
            Sampling::All => n,
            _ => ((self.participation * n as f64).round() as usize).clamp(1.min(n), n),
        }
    }

    /// The clients of a round, increasing. Clients without samples are never drawn and do not count.
    pub fn draw(&self, holders: &[u32], seed: u64, round: u32) -> Vec<u32> {
        let address = Address::new(seed, Purpose::Sampling).round(u64::from(round));
        match self.sampling {
            Sampling::All => holders.to_vec(),
            Sampling::Uniform => {
                let mut drawn = holders.to_vec();
                shuffle(&mut drawn, &mut address.generator());
                drawn.truncate(self.count(holders.len()));
                drawn.sort_unstable();
                drawn
            }
            Sampling::Bernoulli => {
                let takes_part =
                    |&client: &u32| unit_f64(address.node(client).generator().next_u64()) < self.participation;
                holders.iter().copied().filter(takes_part).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(participation: f64, sampling: Sampling) -> Participation {
        Participation { participation, sampling, weights: Weights::Samples }
    }

    #[test]
    fn the_number_of_clients_is_rounded_and_at_least_one() {
        let count = |share, n| with(share, Sampling::Uniform).count(n);
        assert_eq!(
            [count(0.1, 100), count(0.001, 100), count(0.25, 10), count(1.0, 7), count(0.5, 0)],
            [10, 1, 3, 7, 0]
        );
    }

    #[test]
    fn uniform_sampling_covers_everyone_at_the_stated_probability_and_nobody_twice() {
        let holders: Vec<u32> = (0..30).filter(|i| i % 3 != 0).collect();
        let sampling = with(0.25, Sampling::Uniform);
        let mut counts = [0u32; 30];
        for round in 1..=2000 {
            let drawn = sampling.draw(&holders, 1, round);
            assert_eq!(drawn.len(), 5);
            assert!(drawn.is_sorted_by(|a, b| a < b));
            drawn.iter().for_each(|&client| counts[client as usize] += 1);
        }
        for (client, &count) in counts.iter().enumerate() {
            // 500 expected, standard deviation 19; the seed is fixed.
            let range = if client % 3 == 0 { 0..1 } else { 400..600 };
            assert!(range.contains(&count), "client {client}: {count}");
        }
    }

    #[test]
    fn bernoulli_sampling_decides_for_each_client_alone() {
        let all: Vec<u32> = (0..50).collect();
        let few: Vec<u32> = (0..50).filter(|i| i % 2 == 0).collect();
        let sampling = with(0.3, Sampling::Bernoulli);
        let drawn = sampling.draw(&all, 4, 9);
        let even: Vec<u32> = drawn.iter().copied().filter(|i| i % 2 == 0).collect();
        assert_eq!(sampling.draw(&few, 4, 9), even);
        assert_ne!(drawn, sampling.draw(&all, 4, 10));
        assert_ne!(drawn, sampling.draw(&all, 5, 9));
        let empty = (1..200).filter(|&round| with(0.01, Sampling::Bernoulli).draw(&all, 0, round).is_empty()).count();
        assert!((90..150).contains(&empty), "{empty} of 199 rounds are empty");
        assert_eq!(with(0.1, Sampling::All).draw(&few, 0, 1), few);
    }
}
