//! Regression on a table: the objective of clients that hold its rows, with the minimiser of all of them.

use std::{ops::Range, sync::Arc};

use super::{Objective, Samples, dense::Square, network::Shards};
use crate::{
    data::Table,
    layout::Layout,
    model::{Evaluation, Regression},
};

/// Newton steps at most; a handful is taken.
const STEPS: usize = 100;

/// The problem of all clients together and its solution.
pub struct Problem {
    /// Loss and regularisation.
    pub regression: Regression,
    shards: Arc<Shards>,
    /// Weight of each row in the mean over all clients; they sum to 1.
    weights: Vec<f64>,
    minimiser: Vec<f64>,
}

impl Problem {
    /// The problem of clients with `weights` that hold the rows of `shards`, solved.
    ///
    /// # Errors
    /// If no minimiser is found.
    ///
    /// # Panics
    /// If the data are no table.
    pub fn new(regression: Regression, shards: Arc<Shards>, weights: &[f64]) -> Result<Self, String> {
        let total: f64 = weights.iter().sum();
        let mut of_rows = vec![0.0; shards.dataset.train.len()];
        for (share, weight) in shards.partition.shares.iter().zip(weights) {
            for &row in &share.samples {
                of_rows[row as usize] += weight / (total * share.samples.len() as f64);
            }
        }
        let mut problem = Self { regression, shards, weights: of_rows, minimiser: Vec::new() };
        problem.minimiser = problem.solve()?;
        Ok(problem)
    }

    /// The rows.
    pub fn table(&self) -> &Table {
        self.shards.dataset.table.as_ref().expect("the plan has checked that the data are a table")
    }

    /// The point with the least objective.
    pub fn minimiser(&self) -> &[f64] {
        &self.minimiser
    }

    /// `|x - x*|^2 / |x0 - x*|^2`; `None` if the start is the minimiser.
    pub fn distance(&self, x: &[f32], start: &[f32]) -> Option<f64> {
        let from = |x: &[f32]| -> f64 { x.iter().zip(&self.minimiser).map(|(&x, m)| (f64::from(x) - m).powi(2)).sum() };
        let whole = from(start);
        (whole > 0.0).then(|| from(x) / whole)
    }

    /// Strong convexity and smoothness: bounds of the second derivative in every direction, everywhere. The first is
    /// attained only by least squares; a logistic loss is as flat as its penalty far away.
    pub fn convexity_and_smoothness(&self) -> (f64, f64) {
        let curvature = self.regression.loss.largest_curvature();
        let (low, high) = self.hessian(|_, _| curvature, 0.0).extreme_eigenvalues();
        let lambda = self.regression.regularisation;
        (if self.regression.loss.classifies() { lambda } else { low.max(0.0) + lambda }, high + lambda)
    }

    /// Rows with their weights and targets, without those that nobody holds.
    fn rows(&self) -> impl Iterator<Item = (f64, &[f64], f64)> {
        let table = self.table();
        let rows = self.weights.iter().zip(&table.targets).enumerate();
        rows.filter(|(_, (weight, _))| **weight > 0.0).map(|(i, (&weight, &target))| (weight, table.row(i), target))
    }

    fn value(&self, x: &[f64]) -> f64 {
        let loss = self.regression.loss;
        let losses: f64 = self.rows().map(|(w, row, target)| w * loss.value(dot(row, x), target)).sum();
        losses + 0.5 * self.regression.regularisation * dot(x, x)
    }

    fn gradient(&self, x: &[f64]) -> Vec<f64> {
        let mut gradient: Vec<f64> = x.iter().map(|v| self.regression.regularisation * v).collect();
        for (w, row, target) in self.rows() {
            let factor = w * self.regression.loss.slope(dot(row, x), target);
            gradient.iter_mut().zip(row).for_each(|(g, a)| *g += factor * a);
        }
        gradient
    }

    /// `sum_i w_i c(a_i, b_i) a_i a_i' + diagonal I`.
    fn hessian(&self, curvature: impl Fn(&[f64], f64) -> f64, diagonal: f64) -> Square {
        let mut hessian = Square::scaled_identity(self.table().width, diagonal);
        self.rows().for_each(|(w, row, target)| hessian.add_outer(w * curvature(row, target), row));
        hessian
    }

    /// Newton's method from 0, until rounding stops it; for least squares that is one step and its refinement.
    fn solve(&self) -> Result<Vec<f64>, String> {
        let Regression { loss, regularisation } = self.regression;
        let mut x = vec![0.0; self.table().width];
        let mut gradient = self.gradient(&x);
        let first = dot(&gradient, &gradient);
        let mut size = first;
        for _ in 0..STEPS {
            let hessian = self.hessian(|row, target| loss.curvature(dot(row, &x), target), regularisation);
            let Some(step) = hessian.solve(&gradient) else { break };
            let value = self.value(&x);
            let better = (0..40).find_map(|halvings| {
                let t = 0.5f64.powi(halvings);
                let next: Vec<f64> = x.iter().zip(&step).map(|(x, s)| x - t * s).collect();
                let gradient = self.gradient(&next);
                let size_there = dot(&gradient, &gradient);
                // Far away the value decides; near the end it is flat to the last bit and the gradient decides.
                (size_there < size || self.value(&next) < value - 1e-12 * value.abs())
                    .then_some((next, gradient, size_there))
            });
            match better {
                Some((next, next_gradient, next_size)) => (x, gradient, size) = (next, next_gradient, next_size),
                None => break,
            }
        }
        // An infinity or a NaN fails this as well.
        if size <= 1e-20 * first.max(f64::MIN_POSITIVE) || size == 0.0 {
            return Ok(x);
        }
        Err(format!("no minimiser was found: after {STEPS} Newton steps the gradient is still {:.1e}", size.sqrt()))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The problem on one thread.
pub struct RegressionObjective {
    problem: Arc<Problem>,
    layout: Layout,
    /// The point and the gradient in 64 bits.
    x: Vec<f64>,
    sum: Vec<f64>,
}

impl RegressionObjective {
    /// The objective of a problem.
    pub fn new(problem: Arc<Problem>) -> Self {
        let layout = layout(problem.table());
        Self { problem, layout, x: Vec::new(), sum: Vec::new() }
    }

    fn take(&mut self, x: &[f32]) {
        self.x.clear();
        self.x.extend(x.iter().map(|&v| f64::from(v)));
    }
}

/// The parameters for a table: one weight a feature.
pub fn layout(table: &Table) -> Layout {
    Layout::new([("weight".to_owned(), vec![table.width])])
}

impl Objective for RegressionObjective {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn samples(&self, client: u32) -> usize {
        self.problem.shards.partition.shares[client as usize].samples.len()
    }

    fn gradient(&mut self, x: &[f32], samples: &Samples<'_>, out: &mut [f32]) -> f64 {
        self.take(x);
        let Regression { loss, regularisation } = self.problem.regression;
        let (table, held) =
            (self.problem.table(), &self.problem.shards.partition.shares[samples.client as usize].samples);
        let scale = 1.0 / samples.at.len() as f64;
        let mut value = 0.5 * regularisation * dot(&self.x, &self.x);
        self.sum.clear();
        self.sum.extend(self.x.iter().map(|v| regularisation * v));
        for &at in samples.at {
            let row = held[at as usize] as usize;
            let (features, target) = (table.row(row), table.targets[row]);
            let prediction = dot(features, &self.x);
            value += scale * loss.value(prediction, target);
            let factor = scale * loss.slope(prediction, target);
            self.sum.iter_mut().zip(features).for_each(|(g, a)| *g += factor * a);
        }
        out.iter_mut().zip(&self.sum).for_each(|(out, &g)| *out = g as f32);
        value
    }

    /// Rows of the table in place of test samples; the mean loss over all of them is the objective of all clients.
    fn evaluate(&mut self, x: &[f32], rows: Range<u32>, _quarter_turns: u8) -> Evaluation {
        self.take(x);
        let Regression { loss, regularisation } = self.problem.regression;
        let table = self.problem.table();
        let n = table.len() as f64;
        let penalty = 0.5 * regularisation * dot(&self.x, &self.x);
        let mut evaluation = Evaluation { samples: rows.len() as u64, ..Evaluation::default() };
        for row in rows {
            let row = row as usize;
            let (prediction, target) = (dot(table.row(row), &self.x), table.targets[row]);
            let is_right = loss.classifies() && (prediction > 0.0) == (target > 0.0);
            evaluation.correct += u64::from(is_right);
            evaluation.loss_sum += n * self.problem.weights[row] * loss.value(prediction, target) + penalty;
        }
        evaluation
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        data::{Libsvm, Options, Pixels, Source},
        model::Loss,
        partition::{Partition, Share},
        rng::{Address, Purpose},
    };

    /// A bundled table, dealt to clients that hold every `n`-th row, the last one only a few of them.
    fn shards(settings: &str, n: u32) -> Arc<Shards> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let dataset = Arc::new(toml::from_str::<Libsvm>(settings).unwrap().load(&data, 0).unwrap());
        let pixels = Pixels::new(&dataset, &Options::default()).unwrap();
        let share = |client| Share {
            samples: (0..dataset.train.len() as u32).filter(|i| i % n == client).collect(),
            ..Share::default()
        };
        let partition = Partition { shares: (0..n).map(share).collect(), unused: 0, notes: Vec::new() };
        Arc::new(Shards { dataset, pixels, partition, seed: 0 })
    }

    fn ridge(n: u32) -> Problem {
        let regression = Regression { loss: Loss::Squares, regularisation: 0.0054 };
        let shards = shards("file = 'bodyfat'", n);
        let weights: Vec<f64> = shards.partition.shares.iter().map(|share| share.samples.len() as f64).collect();
        Problem::new(regression, shards, &weights).unwrap()
    }

    fn logistic() -> Problem {
        let regression = Regression { loss: Loss::Logistic, regularisation: 0.009 };
        Problem::new(regression, shards("file = 'breast-cancer'\ntarget = 'class'", 1), &[1.0]).unwrap()
    }

    #[test]
    fn minimisers_are_found_to_machine_precision() {
        for problem in [ridge(1), ridge(3), logistic()] {
            let gradient = problem.gradient(problem.minimiser());
            assert!(dot(&gradient, &gradient).sqrt() < 1e-14, "{gradient:?}");
        }
        // Where the rows lie does not matter as long as all count alike.
        for (a, b) in ridge(1).minimiser().iter().zip(ridge(3).minimiser()) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn constants_are_those_of_an_independent_computation() {
        // NumPy: eigenvalues of A'A/n and Newton's method on the same scaled tables.
        let (mu, smoothness) = ridge(1).convexity_and_smoothness();
        assert!((smoothness - 2.367_081_707_147_304).abs() < 1e-12, "{smoothness}");
        assert!((smoothness / mu - 326.756_460_874_866).abs() < 1e-8, "{}", smoothness / mu);
        let logistic = logistic();
        let (mu, smoothness) = logistic.convexity_and_smoothness();
        assert!((smoothness - 1.312_149_245_781_536_2).abs() < 1e-12, "{smoothness}");
        assert_eq!(mu, 0.009);
        assert!((logistic.value(logistic.minimiser()) - 0.138_185_638_073_843_15).abs() < 1e-13);
        assert!((dot(logistic.minimiser(), logistic.minimiser()).sqrt() - 2.798_423_509_399_831_8).abs() < 1e-11);
    }

    #[test]
    fn the_objective_of_a_client_and_of_all_fit_together() {
        let problem = Arc::new(ridge(3));
        let x: Vec<f32> = (0..14).map(|i| 0.1 * (i as f32 - 5.0)).collect();
        let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
        let mut objective = RegressionObjective::new(problem.clone());
        let mut mean = [0.0; 14];
        let mut value = 0.0;
        for client in 0..3 {
            let n = objective.samples(client);
            let at: Vec<u32> = (0..n as u32).collect();
            let augmentation = Address::new(0, Purpose::Augmentation);
            let mut out = [0.0f32; 14];
            let loss = objective.gradient(&x, &Samples { client, at: &at, augmentation }, &mut out);
            value += loss * n as f64 / 252.0;
            mean.iter_mut().zip(out).for_each(|(m, g)| *m += f64::from(g) * n as f64 / 252.0);
        }
        for (a, b) in mean.iter().zip(problem.gradient(&wide)) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        assert!((value - problem.value(&wide)).abs() < 1e-12);
        let mut whole = objective.evaluate(&x, 0..100, 0);
        whole.add(objective.evaluate(&x, 100..252, 0));
        assert!((whole.loss().unwrap() - value).abs() < 1e-12);
    }

    #[test]
    fn distances_are_relative_to_the_start() {
        let problem = ridge(1);
        let near: Vec<f32> = problem.minimiser().iter().map(|&v| v as f32).collect();
        assert!(problem.distance(&near, &[0.0; 14]).unwrap() < 1e-13);
        assert_eq!(problem.distance(&[0.0; 14], &[0.0; 14]), Some(1.0));
    }
}
