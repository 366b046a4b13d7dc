//! Server optimisers: how the server moves along the average update.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the server uses the average update `D` of the clients.
///
/// With `eta` for `server_learning_rate`, `beta1` for `server_momentum`, `beta2` and `epsilon`; all vectors start at zero but
/// `v = epsilon^2`:
///
/// - `none`: `x += eta D`.
/// - `momentum`: `m = beta1 m + D`, `x += eta m`; with `server_nesterov` `x += eta (D + beta1 m)`. (FedAvgM, 1909.06335)
/// - `adagrad`: `m = beta1 m + (1 - beta1) D`, `v += D^2`, `x += eta m / (sqrt(v) + epsilon)`.
/// - `adam`: `m` as above, `v = beta2 v + (1 - beta2) D^2`, `x` as above.
/// - `yogi`: `m` as above, `v -= (1 - beta2) D^2 sign(v - D^2)`, `x` as above. (FedOpt, 2003.00295)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Plain averaging.
    #[default]
    None,
    /// Heavy-ball or Nesterov momentum.
    Momentum,
    /// FedAdagrad.
    Adagrad,
    /// FedAdam.
    Adam,
    /// FedYogi.
    Yogi,
}

impl Kind {
    /// The learning rate that is taken where none is given.
    pub fn default_rate(self) -> f64 {
        match self {
            Self::None | Self::Momentum => 1.0,
            Self::Adagrad | Self::Adam | Self::Yogi => 0.01,
        }
    }

    /// The momentum that is taken where none is given; the paper uses none for Adagrad.
    pub fn default_momentum(self) -> f64 {
        if self == Self::Adagrad { 0.0 } else { 0.9 }
    }

    /// Whether every coordinate has a step size of its own.
    pub fn is_adaptive(self) -> bool {
        matches!(self, Self::Adagrad | Self::Adam | Self::Yogi)
    }
}

/// A server optimiser with its settings and its vectors.
#[derive(Clone, Debug)]
pub struct ServerOptimiser {
    /// The update rule.
    pub kind: Kind,
    /// Step size `eta`.
    pub rate: f64,
    /// `beta1`, in [0, 1).
    pub momentum: f64,
    /// Whether momentum looks ahead.
    pub nesterov: bool,
    /// `beta2`, in [0, 1).
    pub beta2: f64,
    /// `epsilon`, positive.
    pub epsilon: f64,
    /// Whether `m` and `v` are divided by `1 - beta^t`, and `v` starts at zero.
    pub bias_correction: bool,
    /// First moment; empty until the first step.
    pub first: Vec<f32>,
    /// Second moment; empty until the first step.
    pub second: Vec<f32>,
    /// Steps taken, as a vector of one value so that it is saved with the others.
    pub steps: Vec<f32>,
}

impl ServerOptimiser {
    /// Moves `x` along the average update `delta` (new minus old).
    pub fn step(&mut self, x: &mut [f32], delta: &[f32]) {
        let (beta1, beta2, epsilon) = (self.momentum as f32, self.beta2 as f32, self.epsilon as f32);
        let eta = self.rate as f32;
        if self.kind == Kind::None {
            x.iter_mut().zip(delta).for_each(|(x, d)| *x += eta * d);
            return;
        }
        self.first.resize(x.len(), 0.0);
        if self.kind == Kind::Momentum {
            for ((x, &d), m) in x.iter_mut().zip(delta).zip(&mut self.first) {
                *m = beta1 * *m + d;
                *x += eta * if self.nesterov { d + beta1 * *m } else { *m };
            }
            return;
        }
        debug_assert!(self.kind.is_adaptive());
        let start = if self.bias_correction { 0.0 } else { epsilon * epsilon };
        self.second.resize(x.len(), start);
        self.steps.resize(1, 0.0);
        self.steps[0] += 1.0;
        let correction = |beta: f64| match self.bias_correction {
            true if beta > 0.0 => (1.0 / (1.0 - beta.powf(f64::from(self.steps[0])))) as f32,
            _ => 1.0,
        };
        let second_beta = if self.kind == Kind::Adagrad { 0.0 } else { self.beta2 };
        let (correct1, correct2) = (correction(self.momentum), correction(second_beta));
        for (((x, &d), m), v) in x.iter_mut().zip(delta).zip(&mut self.first).zip(&mut self.second) {
            *m = beta1 * *m + (1.0 - beta1) * d;
            let squared = d * d;
            match self.kind {
                Kind::Adagrad => *v += squared,
                Kind::Adam => *v = beta2 * *v + (1.0 - beta2) * squared,
                _ => *v -= (1.0 - beta2) * squared * sign(*v - squared),
            }
            *x += eta * (*m * correct1) / ((*v * correct2).sqrt() + epsilon);
        }
    }

    /// Visits the vectors that must survive between rounds.
    pub fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        visit("server.first", &mut self.first);
        visit("server.second", &mut self.second);
        visit("server.steps", &mut self.steps);
    }
}

/// The sign of a value; zero for zero.
fn sign(value: f32) -> f32 {
    if value == 0.0 { 0.0 } else { value.signum() }
}
