//! Local work: epochs of mini-batch SGD from a received model.

use super::{Objective, Samples};
use crate::{
    rng::{Address, Purpose, shuffle},
    vector::{add_scaled, norm_squared},
};

/// How much a client does before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Passes over the client's samples.
    Epochs(u32),
    /// Steps, starting a new pass whenever the samples run out.
    Steps(u32),
}

/// Settings of the local work.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// How much.
    pub amount: Amount,
    /// Samples a step; `None` takes all that the client has. The last batch of a pass may be smaller and its gradient is the
    /// mean over its own size.
    pub batch_size: Option<u32>,
    /// Momentum factor in [0, 1); 0 is none.
    pub momentum: f64,
    /// Whether momentum looks ahead (Nesterov).
    pub nesterov: bool,
    /// Factor of the parameters that is added to the gradient.
    pub weight_decay: f64,
    /// Largest Euclidean norm of a stochastic gradient; longer ones are scaled down to it.
    pub clip_norm: Option<f64>,
    /// Weight `mu` of the proximal term `mu/2 |y - x|^2`; 0 is none.
    pub proximal: f64,
}

/// What came out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The local model.
    pub model: Vec<f32>,
    /// Steps that were taken.
    pub steps: u64,
    /// Samples that were used, repetitions counted.
    pub samples: u64,
    /// Sum over those samples of the loss just before their step.
    pub loss_sum: f64,
}

impl Work {
    /// Runs the work of `client` from `start` with one learning rate.
    ///
    /// The order of samples and the augmentation depend on the seed, the client and the round alone. `velocity` is the momentum
    /// vector: empty for zero, kept by the caller if it is to survive. A client without samples takes no step.
    pub fn run(
        &self,
        objective: &mut dyn Objective,
        client: u32,
        start: &[f32],
        rate: f64,
        velocity: &mut Vec<f32>,
        stream: Address,
    ) -> Outcome {
        let mut outcome = Outcome { model: start.to_vec(), steps: 0, samples: 0, loss_sum: 0.0 };
        let n = objective.samples(client);
        let limit = match self.amount {
            Amount::Epochs(epochs) => u64::from(epochs) * n.div_ceil(self.batch(n)) as u64,
            Amount::Steps(steps) => u64::from(steps),
        };
        if n == 0 {
            return outcome;
        }
        let mut gradient = vec![0.0; start.len()];
        let mut order: Vec<u32> = (0..n as u32).collect();
        for epoch in 0.. {
            // A full batch needs no order; each pass has its own otherwise, and a step count may end in mid-pass.
            if self.batch(n) < n {
                shuffle(&mut order, &mut stream.node(client).part(epoch).generator());
            }
            for at in order.chunks(self.batch(n)) {
                if outcome.steps == limit {
                    return outcome;
                }
                let augmentation = stream.purpose(Purpose::Augmentation).node(client).part(outcome.steps);
                let loss = objective.gradient(&outcome.model, &Samples { client, at, augmentation }, &mut gradient);
                self.update(&mut outcome.model, start, &mut gradient, rate, velocity);
                outcome.steps += 1;
                outcome.samples += at.len() as u64;
                outcome.loss_sum += loss * at.len() as f64;
            }
        }
        outcome
    }

    fn batch(&self, n: usize) -> usize {
        self.batch_size.map_or(n, |size| size as usize).clamp(1, n.max(1))
    }

    /// One step of SGD at `y`.
    fn update(&self, y: &mut [f32], start: &[f32], gradient: &mut [f32], rate: f64, velocity: &mut Vec<f32>) {
        if let Some(longest) = self.clip_norm {
            let norm = norm_squared(gradient).sqrt();
            // `inf` must not touch a bit.
            if norm > longest {
                let factor = (longest / (norm + 1e-6)) as f32;
                gradient.iter_mut().for_each(|g| *g *= factor);
            }
        }
        if self.proximal != 0.0 {
            let mu = self.proximal as f32;
            gradient.iter_mut().zip(y.iter().zip(start)).for_each(|(g, (y, x))| *g += mu * (y - x));
        }
        if self.weight_decay != 0.0 {
            add_scaled(gradient, self.weight_decay as f32, y);
        }
        if self.momentum != 0.0 {
            let beta = self.momentum as f32;
            velocity.resize(gradient.len(), 0.0);
            for (v, g) in velocity.iter_mut().zip(gradient.iter_mut()) {
                *v = beta * *v + *g;
                *g = if self.nesterov { *g + beta * *v } else { *v };
            }
        }
        add_scaled(y, -(rate as f32), gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{train::ridge::Ridge, vector::distance_squared};

    const PLAIN: Work = Work {
        amount: Amount::Epochs(3),
        batch_size: Some(7),
        momentum: 0.0,
        nesterov: false,
        weight_decay: 0.0,
        clip_norm: None,
        proximal: 0.0,
    };

    fn run(work: &Work, rate: f64, round: u64) -> Outcome {
        let stream = Address::new(5, Purpose::Batches).round(round);
        work.run(&mut Ridge::heterogeneous(3), 1, &[0.1; 20], rate, &mut Vec::new(), stream)
    }

    #[test]
    fn steps_count_every_batch_also_the_short_last_one() {
        // 30 rows in batches of 7: five steps a pass
        let outcome = run(&PLAIN, 0.1, 0);
        assert_eq!((outcome.steps, outcome.samples), (15, 90));
        let outcome = run(&Work { amount: Amount::Steps(7), ..PLAIN }, 0.1, 0);
        assert_eq!((outcome.steps, outcome.samples), (7, 30 + 14));
        let outcome = run(&Work { batch_size: None, ..PLAIN }, 0.1, 0);
        assert_eq!((outcome.steps, outcome.samples), (3, 90));
        let outcome = run(&Work { batch_size: Some(1000), ..PLAIN }, 0.1, 0);
        assert_eq!((outcome.steps, outcome.samples), (3, 90));
    }

    #[test]
    fn the_order_of_samples_changes_with_the_round_and_only_with_it() {
        assert_eq!(run(&PLAIN, 0.1, 1), run(&PLAIN, 0.1, 1));
        assert_ne!(run(&PLAIN, 0.1, 1).model, run(&PLAIN, 0.1, 2).model);
    }

    #[test]
    fn switched_off_options_do_not_change_a_bit() {
        let plain = run(&PLAIN, 0.1, 0);
        for work in [
            Work { clip_norm: Some(f64::INFINITY), ..PLAIN },
            Work { proximal: 0.0, ..PLAIN },
            Work { nesterov: true, ..PLAIN },
        ] {
            assert_eq!(run(&work, 0.1, 0), plain);
        }
        assert_eq!(run(&PLAIN, 0.0, 0).model, [0.1; 20]);
    }

    #[test]
    fn one_step_of_each_option_follows_its_formula() {
        let full = Work { amount: Amount::Steps(2), batch_size: None, ..PLAIN };
        let mut ridge = Ridge::heterogeneous(3);
        let all: Vec<u32> = (0..30).collect();
        let stream = Address::new(0, Purpose::Batches);
        let mut gradient = |x: &[f32]| {
            let mut out = vec![0.0; 20];
            ridge.gradient(x, &Samples { client: 1, at: &all, augmentation: stream }, &mut out);
            out
        };
        let step =
            |x: &[f32], direction: &[f32]| -> Vec<f32> { x.iter().zip(direction).map(|(x, d)| x - 0.1 * d).collect() };
        let x0 = vec![0.1f32; 20];
        let g0 = gradient(&x0);
        let x1 = step(&x0, &g0);
        let g1 = gradient(&x1);
        let near = |a: &[f32], b: &[f32]| assert!(distance_squared(a, b) < 1e-12, "{a:?} {b:?}");
        near(&run(&full, 0.1, 0).model, &step(&x1, &g1));
        let heavy: Vec<f32> = g0.iter().zip(&g1).map(|(a, b)| 0.9 * a + b).collect();
        near(&run(&Work { momentum: 0.9, ..full.clone() }, 0.1, 0).model, &step(&x1, &heavy));
        let one = Work { amount: Amount::Steps(1), ..full.clone() };
        let ahead: Vec<f32> = g0.iter().map(|g| 1.9 * g).collect();
        near(&run(&Work { momentum: 0.9, nesterov: true, ..one.clone() }, 0.1, 0).model, &step(&x0, &ahead));
        let decayed: Vec<f32> = g0.iter().zip(&x0).map(|(g, x)| g + 0.5 * x).collect();
        near(&run(&Work { weight_decay: 0.5, ..one.clone() }, 0.1, 0).model, &step(&x0, &decayed));
        let norm = norm_squared(&g0).sqrt() as f32;
        let clipped: Vec<f32> = g0.iter().map(|g| g * 0.01 / norm).collect();
        near(&run(&Work { clip_norm: Some(0.01), ..one }, 0.1, 0).model, &step(&x0, &clipped));
        let pulled: Vec<f32> = g1.iter().zip(x1.iter().zip(&x0)).map(|(g, (y, x))| g + 2.0 * (y - x)).collect();
        near(&run(&Work { proximal: 2.0, ..full }, 0.1, 0).model, &step(&x1, &pulled));
    }
}
