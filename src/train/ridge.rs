//! The test problem R(n): heterogeneous ridge regression with a known minimiser (spec of the algorithms, section 2).

use super::{Objective, Samples};
use crate::layout::Layout;

/// Rows of a client.
const ROWS: usize = 30;
/// Number of parameters.
const DIMENSION: usize = 20;
/// Regularisation.
const LAMBDA: f64 = 0.05;

/// `f_i(x) = |A_i x - y_i|^2 / (2 m) + lambda/2 |x|^2` for each client `i`, `m = 30` rows, 20 parameters, `lambda = 0.05`.
///
/// Data from SplitMix64 with seed 42; arithmetic in 64 bits, parameters and gradients in 32.
#[derive(Clone, Debug)]
pub struct Ridge {
    layout: Layout,
    clients: Vec<Rows>,
}

#[derive(Clone, Debug)]
struct Rows {
    matrix: Vec<[f64; DIMENSION]>,
    target: Vec<f64>,
}

/// The generator of the specification.
struct SplitMix64(u64);

impl SplitMix64 {
    /// Uniform in [-1, 1).
    fn symmetric(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut r = self.0;
        r = (r ^ r >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        r = (r ^ r >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        r ^= r >> 31;
        2.0 * ((r >> 11) as f64 * (-53f64).exp2()) - 1.0
    }
}

impl Ridge {
    /// R(n): every client has its own data around its own solution.
    pub fn heterogeneous(n: u32) -> Self {
        let mut draw = SplitMix64(42);
        let base: [f64; DIMENSION] = std::array::from_fn(|_| draw.symmetric());
        let clients = (0..n).map(|i| {
            let spread = if n == 1 { 1.0 } else { 1.0 + f64::from(i) / f64::from(n - 1) };
            let matrix: Vec<[f64; DIMENSION]> =
                (0..ROWS).map(|_| std::array::from_fn(|c| spread * falling(c) * draw.symmetric())).collect();
            let solution = base.map(|b| b + draw.symmetric());
            let target = matrix.iter().map(|row| dot(row, &solution) + 0.1 * draw.symmetric()).collect();
            Rows { matrix, target }
        });
        Self { layout: Layout::flat(DIMENSION), clients: clients.collect() }
    }

    /// R-hom: every client has the data of client 0, around the common solution.
    pub fn homogeneous(n: u32) -> Self {
        let mut draw = SplitMix64(42);
        let base: [f64; DIMENSION] = std::array::from_fn(|_| draw.symmetric());
        let matrix: Vec<[f64; DIMENSION]> =
            (0..ROWS).map(|_| std::array::from_fn(|c| falling(c) * draw.symmetric())).collect();
        // The client's own offset is drawn and not added.
        for _ in 0..DIMENSION {
            draw.symmetric();
        }
        let target = matrix.iter().map(|row| dot(row, &base) + 0.1 * draw.symmetric()).collect();
        Self { layout: Layout::flat(DIMENSION), clients: vec![Rows { matrix, target }; n as usize] }
    }

    /// The minimiser of the mean of all `f_i`, by Gauss elimination of the normal equations.
    pub fn minimiser(&self) -> [f64; DIMENSION] {
        let mut system = [[0.0f64; DIMENSION + 1]; DIMENSION];
        let scale = 1.0 / (ROWS * self.clients.len()) as f64;
        for client in &self.clients {
            for (row, target) in client.matrix.iter().zip(&client.target) {
                for i in 0..DIMENSION {
                    for j in 0..DIMENSION {
                        system[i][j] += scale * row[i] * row[j];
                    }
                    system[i][DIMENSION] += scale * row[i] * target;
                }
            }
        }
        for (i, row) in system.iter_mut().enumerate() {
            row[i] += LAMBDA;
        }
        // Positive definite: no pivot search is needed.
        for i in 0..DIMENSION {
            let pivot = system[i].map(|v| v / system[i][i]);
            system[i] = pivot;
            for (j, row) in system.iter_mut().enumerate() {
                if j != i {
                    let factor = row[i];
                    row.iter_mut().zip(pivot).for_each(|(v, p)| *v -= factor * p);
                }
            }
        }
        std::array::from_fn(|i| system[i][DIMENSION])
    }

    /// `|x - x*|^2 / |x*|^2`.
    pub fn error(&self, x: &[f32]) -> f64 {
        let minimiser = self.minimiser();
        let distance: f64 = x.iter().zip(&minimiser).map(|(&x, m)| (f64::from(x) - m).powi(2)).sum();
        distance / dot(&minimiser, &minimiser)
    }
}

/// Spread of the entries of column `c`.
fn falling(c: usize) -> f64 {
    1.0 - 0.8 * c as f64 / (DIMENSION - 1) as f64
}

fn dot(a: &[f64; DIMENSION], b: &[f64; DIMENSION]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Objective for Ridge {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn samples(&self, _client: u32) -> usize {
        ROWS
    }

    fn gradient(&mut self, x: &[f32], samples: &Samples<'_>, out: &mut [f32]) -> f64 {
        let rows = &self.clients[samples.client as usize];
        let x: [f64; DIMENSION] = std::array::from_fn(|i| f64::from(x[i]));
        let mut gradient = x.map(|v| LAMBDA * v);
        let mut loss = 0.5 * LAMBDA * dot(&x, &x);
        let scale = 1.0 / samples.at.len() as f64;
        for &i in samples.at {
            let row = &rows.matrix[i as usize];
            let residual = dot(row, &x) - rows.target[i as usize];
            loss += 0.5 * scale * residual * residual;
            gradient.iter_mut().zip(row).for_each(|(g, a)| *g += scale * residual * a);
        }
        out.iter_mut().zip(gradient).for_each(|(out, g)| *out = g as f32);
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Address, Purpose};

    #[test]
    fn the_generator_and_the_constants_are_those_of_the_specification() {
        let mut draw = SplitMix64(42);
        let first: Vec<f64> = (0..3).map(|_| f64::midpoint(draw.symmetric(), 1.0)).collect();
        assert_eq!(first, [0.7415648787718233, 0.1599103928769201, 0.27860113025513866]);
        let mut ridge = Ridge::heterogeneous(10);
        assert!((ridge.clients[0].matrix[0][0] - 0.914650475323).abs() < 1e-12);
        let minimiser = ridge.minimiser();
        for (i, expected) in [0.70585597, -0.77335833, -0.163359].into_iter().enumerate() {
            assert!((minimiser[i] - expected).abs() < 1e-6, "{i}: {}", minimiser[i]);
        }
        assert!((dot(&minimiser, &minimiser) - 4.263177936).abs() < 1e-8);
        let homogeneous = Ridge::homogeneous(10).minimiser();
        assert!((dot(&homogeneous, &homogeneous) - 2.139767749).abs() < 1e-8);
        let all: Vec<u32> = (0..30).collect();
        let mut mean_loss = |x: &[f32]| {
            let augmentation = Address::new(0, Purpose::Augmentation);
            let loss = |client| ridge.gradient(x, &Samples { client, at: &all, augmentation }, &mut [0.0; 20]);
            (0..10).map(loss).sum::<f64>() / 10.0
        };
        assert!((mean_loss(&[0.0; 20]) - 1.964165366).abs() < 1e-8);
        let at_minimiser: Vec<f32> = minimiser.iter().map(|&v| v as f32).collect();
        assert!((mean_loss(&at_minimiser) - 0.756168870).abs() < 1e-8);
    }
}
