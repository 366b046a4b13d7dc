//! Learning rates over rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the learning rate changes from round to round; all steps and all clients of a round use the same rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The same in every round.
    #[default]
    Constant,
    /// Times `decay` after every `decay_rounds` rounds.
    RoundStep,
    /// Times `decay` after every round.
    RoundExponential,
    /// Half a cosine from the full rate in the first round to zero after the last.
    RoundCosine,
}

/// A learning rate as a function of the round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The rate before any change.
    pub rate: f64,
    /// How it changes.
    pub shape: Shape,
    /// Factor of `round-step` and `round-exponential`.
    pub decay: f64,
    /// Rounds between two steps of `round-step`.
    pub decay_rounds: u32,
    /// Rounds over which the rate grows linearly to its full size.
    pub warmup_rounds: u32,
    /// Rounds of the whole run.
    pub rounds: u32,
}

impl Schedule {
    /// The rate in round `round`, counted from 1.
    pub fn at(&self, round: u32) -> f64 {
        let passed = round.saturating_sub(1);
        let warmup = match self.warmup_rounds {
            0 => 1.0,
            n => (f64::from(round) / f64::from(n)).min(1.0),
        };
        let factor = match self.shape {
            Shape::Constant => 1.0,
            Shape::RoundStep => self.decay.powi((passed / self.decay_rounds.max(1)) as i32),
            Shape::RoundExponential => self.decay.powi(passed as i32),
            Shape::RoundCosine => {
                0.5 * (1.0 + libm::cos(std::f64::consts::PI * f64::from(passed) / f64::from(self.rounds.max(1))))
            }
        };
        self.rate * warmup * factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_their_formulas() {
        let base =
            Schedule { rate: 0.1, shape: Shape::Constant, decay: 0.5, decay_rounds: 10, warmup_rounds: 0, rounds: 100 };
        assert_eq!(base.at(1), 0.1);
        assert_eq!(base.at(100), 0.1);
        let step = Schedule { shape: Shape::RoundStep, ..base };
        assert_eq!([step.at(10), step.at(11), step.at(21)], [0.1, 0.05, 0.025]);
        let exponential = Schedule { shape: Shape::RoundExponential, ..base };
        assert_eq!([exponential.at(1), exponential.at(3)], [0.1, 0.025]);
        let cosine = Schedule { shape: Shape::RoundCosine, ..base };
        assert!((cosine.at(51) - 0.05).abs() < 1e-12 && cosine.at(1) == 0.1);
        let warm = Schedule { warmup_rounds: 4, ..base };
        assert_eq!([warm.at(1), warm.at(2), warm.at(4), warm.at(9)], [0.025, 0.05, 0.1, 0.1]);
    }
}
