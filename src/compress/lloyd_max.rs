//! The best scalar quantisers of the standard normal distribution, and what they are made of.

use std::{
    f64::consts::{FRAC_1_SQRT_2, PI},
    sync::OnceLock,
};

/// The density of the standard normal distribution.
pub fn density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt()
}

/// The probability of values above `z`.
pub fn tail(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// The mean of the values between `low` and `high`, `0 <= low < high`; `high` may be infinite.
pub fn centroid(low: f64, high: f64) -> f64 {
    // Beyond, the probabilities underflow; the tail is nearly exponential with rate `low`.
    if low > 30.0 {
        return (low + 1.0 / low).min(0.5 * (low + high));
    }
    ((density(low) - density(high)) / (tail(low) - tail(high))).clamp(low, high)
}

/// The magnitude that is exceeded with probability `p`, on both sides together; `0 < p < 1`.
pub fn two_sided_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    // Every step halves the bracket, which ends as two neighbouring floats.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if 2.0 * tail(middle) > p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A quantiser of the standard normal distribution with `2^bits` values that is symmetric and has the least mean
/// squared error.
#[derive(Debug)]
pub struct Codebook {
    /// The positive values, increasing.
    centroids: Vec<f64>,
    /// The magnitudes between them: midpoints.
    boundaries: Vec<f32>,
    /// Mean squared error.
    pub distortion: f64,
}

/// Newton steps; eight are enough for every codebook, the rest change nothing.
const STEPS: usize = 40;

impl Codebook {
    /// The codebook of 1 to 8 bits, computed on first use.
    pub fn of(bits: u32) -> &'static Self {
        static BOOKS: [OnceLock<Codebook>; 8] = [const { OnceLock::new() }; 8];
        BOOKS[bits as usize - 1].get_or_init(|| Self::solve(1 << (bits - 1)))
    }

    /// Solves "every value is the mean of its cell, every boundary the midpoint of two values" by Newton's method. The
    /// density is log-concave, so the solution is unique and the tridiagonal matrix of every step is diagonally
    /// dominant.
    fn solve(m: usize) -> Self {
        // The point density of good quantisers is the cube root of the density: a normal distribution of variance 3.
        let start = |i: usize| 3f64.sqrt() * two_sided_quantile(1.0 - (i as f64 + 0.5) / m as f64);
        let mut c: Vec<f64> = (0..m).map(start).collect();
        for _ in 0..STEPS {
            let (mut diagonal, mut upper, mut right) = (vec![0.0; m], vec![0.0; m], vec![0.0; m]);
            let mut before = 0.0;
            for i in 0..m {
                let (low, high) = cell(&c, i);
                let mean = centroid(low, high);
                let mass = tail(low) - tail(high);
                let by_low = if i == 0 { 0.0 } else { 0.5 * density(low) * (mean - low) / mass };
                let by_high = if i + 1 == m { 0.0 } else { 0.5 * density(high) * (high - mean) / mass };
                diagonal[i] = 1.0 - by_low - by_high;
                upper[i] = -by_high;
                right[i] = c[i] - mean;
                if i > 0 {
                    let factor = -by_low / before;
                    diagonal[i] -= factor * upper[i - 1];
                    right[i] -= factor * right[i - 1];
                }
                before = diagonal[i];
            }
            let mut step = 0.0;
            for i in (0..m).rev() {
                step = (right[i] - upper[i] * step) / diagonal[i];
                c[i] -= step;
            }
        }
        let kept: f64 = (0..m).map(|i| 2.0 * mass_of(&c, i) * c[i] * c[i]).sum();
        let boundaries = c.windows(2).map(|pair| (0.5 * (pair[0] + pair[1])) as f32).collect();
        Self { centroids: c, boundaries, distortion: 1.0 - kept }
    }

    /// The symbol of `z`: the values in increasing order count from 0; zero counts as positive.
    pub fn symbol(&self, z: f32) -> u16 {
        // Halves are rounded towards zero.
        let cell = self.boundaries.partition_point(|&boundary| boundary < z.abs());
        let m = self.centroids.len();
        (if z < 0.0 { m - 1 - cell } else { m + cell }) as u16
    }

    /// The value of a symbol.
    pub fn value(&self, symbol: u16) -> f32 {
        let (m, symbol) = (self.centroids.len(), usize::from(symbol));
        (if symbol < m { -self.centroids[m - 1 - symbol] } else { self.centroids[symbol - m] }) as f32
    }
}

/// The magnitudes of the `i`-th positive cell.
fn cell(c: &[f64], i: usize) -> (f64, f64) {
    let low = if i == 0 { 0.0 } else { 0.5 * (c[i - 1] + c[i]) };
    let high = c.get(i + 1).map_or(f64::INFINITY, |next| 0.5 * (c[i] + next));
    (low, high)
}

fn mass_of(c: &[f64], i: usize) -> f64 {
    let (low, high) = cell(c, i);
    tail(low) - tail(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centroids_errors_and_entropies_are_those_of_the_specification() {
        // spec 5.15: bits, half-normal centroids, error, entropy of the index
        let table: [(u32, &[f64], f64, f64); 4] = [
            (1, &[0.797885], 0.363380, 1.0),
            (2, &[0.452780, 1.510418], 0.117482, 1.9111),
            (3, &[0.245094, 0.756005, 1.343909, 2.151946], 0.034548, 2.8249),
            (4, &[0.128395, 0.388048, 0.656759, 0.942340, 1.256231, 1.618046, 2.069017, 2.732589], 0.009501, 3.7653),
        ];
        for (bits, centroids, distortion, entropy) in table {
            let book = Codebook::of(bits);
            for (c, expected) in book.centroids.iter().zip(centroids) {
                assert!((c - expected).abs() < 1e-6, "{bits} bits: {c} for {expected}");
            }
            assert!((book.distortion - distortion).abs() < 1e-6, "{bits} bits: {}", book.distortion);
            let found: f64 =
                (0..centroids.len()).map(|i| mass_of(&book.centroids, i)).map(|p| -2.0 * p * p.log2()).sum();
            assert!((found - entropy).abs() < 1e-4, "{bits} bits: {found} for {entropy}");
        }
    }

    #[test]
    fn larger_codebooks_are_fixed_points_too() {
        for bits in 1..=8 {
            let book = Codebook::of(bits);
            for i in 0..book.centroids.len() {
                let (low, high) = cell(&book.centroids, i);
                assert!((book.centroids[i] - centroid(low, high)).abs() < 1e-12, "{bits} bits, value {i}");
            }
            for symbol in 0..1u16 << bits {
                assert_eq!(book.symbol(book.value(symbol)), symbol);
            }
            assert_eq!((book.symbol(0.0), book.symbol(-0.0)), (1 << (bits - 1), 1 << (bits - 1)));
            // The error of good fine quantisers is pi sqrt(3) / 2 4^-bits.
            let limit = PI * 3f64.sqrt() / 2.0 / f64::from(4u32.pow(bits));
            assert!(book.distortion < limit && (bits < 6 || book.distortion > 0.95 * limit), "{}", book.distortion);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        assert!((two_sided_quantile(1.0 / 512.0) - 3.09727).abs() < 1e-5);
        assert!((two_sided_quantile(1.0 / 32.0) - 2.1539).abs() < 1e-4);
        assert!((centroid(40.0, 41.0) - 40.025).abs() < 1e-3);
    }
}
