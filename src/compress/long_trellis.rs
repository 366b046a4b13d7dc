//! A long trellis with Gaussian codewords: one bit a step chooses the path, every step stands for one or many values.
//!
//! A shift register of the last `L` bits is the state of a machine with `2^L` states, and every state has a codeword of its own.
//! So each bit has a say in `L` successive codewords, which is what lets a code of such a simple decoder come near the
//! rate-distortion bound of a Gaussian source: a tree of pseudo-random codewords, searched with the Viterbi algorithm.

use std::sync::OnceLock;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::{rng::shuffle, vector::vectorised};

/// Codewords of `2^(L - 1)` states; the other half are their negatives: the two ways out of a state lead to opposite codewords.
#[derive(Debug)]
pub struct LongTrellis {
    register: u32,
    /// Mean values of the normal distribution on equally likely intervals.
    quantiles: OnceLock<Vec<f32>>,
}

/// Steps whose turns are remembered at once; a walk goes on from the best end of the stretch before it.
const STRETCH: usize = 1 << 16;

impl LongTrellis {
    /// The trellis of a register of `register` bits, from 2 to 16.
    pub fn new(register: u32) -> Self {
        Self { register, quantiles: OnceLock::new() }
    }

    fn half(&self) -> usize {
        1 << (self.register - 1)
    }

    fn quantiles(&self) -> &[f32] {
        self.quantiles.get_or_init(|| normal_means(self.half()))
    }

    /// The `i`-th value of every codeword: the same numbers in another order for every `i`, times `deviation`.
    fn column(&self, i: usize, deviation: f32) -> Vec<f32> {
        let mut column: Vec<f32> = self.quantiles().iter().map(|value| value * deviation).collect();
        let mut generator = ChaCha8Rng::seed_from_u64(u64::from(self.register) << 32 | i as u64);
        shuffle(&mut column, &mut generator);
        column
    }

    /// The codewords for steps of up to `length` values, column after column.
    fn book(&self, length: usize, deviation: f32) -> Vec<f32> {
        (0..length).flat_map(|i| self.column(i, deviation)).collect()
    }

    /// The bits whose codewords, end to end, are nearest to `y`, which should have unit variance; `true` takes the negative.
    ///
    /// `steps` is from 1 to the length of `y`.
    pub fn search(&self, y: &[f32], steps: usize) -> Vec<bool> {
        let half = self.half();
        let length = y.len().div_ceil(steps);
        let book = self.book(length, deviation(y.len(), steps));
        // |c|^2 / 2 of codewords of the shorter and of the full length.
        let norms = |length: usize| {
            let mut norms = vec![0.0f32; half];
            for column in book.chunks_exact(half).take(length) {
                norms.iter_mut().zip(column).for_each(|(norm, c)| *norm += 0.5 * c * c);
            }
            norms
        };
        let (short, full) = (norms(length - 1), norms(length));
        let mut price = vec![f32::MAX / 4.0; 2 * half];
        price[0] = 0.0;
        let mut next = vec![0.0; 2 * half];
        let mut product = vec![0.0; half];
        let mut bits = vec![false; steps];
        let words = half.div_ceil(64);
        let mut turns = vec![0u64; words * steps.min(STRETCH)];
        for from in (0..steps).step_by(STRETCH) {
            let stretch = from..(from + STRETCH).min(steps);
            for step in stretch.clone() {
                let values = &y[cut(y.len(), steps, step)];
                let norms = if values.len() == length { &full } else { &short };
                let turns = &mut turns[(step - from) * words..][..words];
                vectorised(
                    #[inline(always)]
                    || advance(values, &book, norms, &mut product, &price, &mut next, turns),
                );
                std::mem::swap(&mut price, &mut next);
                // Only differences count; kept small, they do not lose their digits.
                if step % 16 == 15 {
                    let least = price.iter().copied().fold(f32::MAX, f32::min);
                    price.iter_mut().for_each(|price| *price -= least);
                }
            }
            let best = (0..2 * half).min_by(|&a, &b| price[a].total_cmp(&price[b])).expect("there are states");
            let mut state = best;
            for step in stretch.rev() {
                bits[step] = state & 1 == 1;
                let from_state = state >> 1;
                let word = turns[(step - from) * words + from_state / 64];
                state = from_state + if word >> (from_state % 64) & 1 == 1 { half } else { 0 };
            }
            price.fill(f32::MAX / 4.0);
            price[best] = 0.0;
        }
        bits
    }

    /// The codewords that `bits` stand for, end to end, in `out`.
    pub fn follow(&self, bits: &[bool], out: &mut [f32]) {
        let (half, steps) = (self.half(), bits.len());
        let book = self.book(out.len().div_ceil(steps), deviation(out.len(), steps));
        let mut state = 0;
        for (step, &bit) in bits.iter().enumerate() {
            let word = state & (half - 1);
            state = 2 * word + usize::from(bit);
            let range = cut(out.len(), steps, step);
            for (value, column) in out[range].iter_mut().zip(book.chunks_exact(half)) {
                *value = if bit { -column[word] } else { column[word] };
            }
        }
    }
}

/// The values of a step, when `steps` steps share `n` values evenly.
fn cut(n: usize, steps: usize, step: usize) -> std::ops::Range<usize> {
    let at = |step: usize| (step as u64 * n as u64 / steps as u64) as usize;
    at(step)..at(step + 1)
}

/// Standard deviation of the best codewords at `steps / n` bits a value.
fn deviation(n: usize, steps: usize) -> f32 {
    libm::sqrt(1.0 - libm::pow(4.0, -(steps as f64) / n as f64)) as f32
}

/// One step of the search: from the prices of all states to those after it. State `2 u + b` is reached from `u` and `u + half`.
#[inline(always)]
fn advance(
    values: &[f32],
    book: &[f32],
    norms: &[f32],
    product: &mut [f32],
    price: &[f32],
    next: &mut [f32],
    turns: &mut [u64],
) {
    let half = norms.len();
    product.fill(0.0);
    for (&value, column) in values.iter().zip(book.chunks_exact(half)) {
        for (product, &c) in product.iter_mut().zip(column) {
            *product += value * c;
        }
    }
    let (low, high) = price.split_at(half);
    for (block, turns) in turns.iter_mut().enumerate() {
        let range = 64 * block..(64 * (block + 1)).min(half);
        let mut word = 0;
        for (i, (&low, &high)) in low[range.clone()].iter().zip(&high[range]).enumerate() {
            word |= u64::from(high < low) << i;
        }
        *turns = word;
    }
    for ((((next, &low), &high), &norm), &product) in
        next.chunks_exact_mut(2).zip(low).zip(high).zip(norms).zip(product.iter())
    {
        let base = if high < low { high } else { low } + norm;
        next[0] = base - product;
        next[1] = base + product;
    }
}

/// Mean values of the standard normal distribution on `count` equally likely intervals, ascending; exactly symmetric.
fn normal_means(count: usize) -> Vec<f32> {
    let density = |x: f64| libm::exp(-0.5 * x * x) / (2.0 * std::f64::consts::PI).sqrt();
    // The probability above x.
    let above = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    let edge = |p: f64| {
        let (mut low, mut high) = (0.0, 10.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if above(middle) > p { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    };
    let pairs = count / 2;
    let mut upper = Vec::with_capacity(pairs);
    let mut density_above = 0.0;
    for i in 0..pairs {
        let below = if i + 1 == count - pairs { density(0.0) } else { density(edge((i + 1) as f64 / count as f64)) };
        upper.push(((below - density_above) * count as f64) as f32);
        density_above = below;
    }
    let middle = (count % 2 == 1).then_some(0.0);
    upper.iter().map(|value| -value).chain(middle).chain(upper.iter().rev().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compress::vectors, vector::norm_squared};

    #[test]
    fn means_have_the_moments_of_a_normal_distribution() {
        for count in [2, 32, 128, 2048] {
            let means = normal_means(count);
            assert_eq!(means.len(), count);
            assert!(means.is_sorted());
            let variance = norm_squared(&means) / count as f64;
            assert!(variance < 1.0 && variance > 1.0 - 1.2 / count as f64, "{count}: {variance}");
        }
        assert!((normal_means(2)[1] - (2.0 / std::f32::consts::PI).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn the_search_finds_its_own_walks() {
        let trellis = LongTrellis::new(6);
        for (n, steps) in [(300, 100), (100, 100), (1000, 7), (5, 1)] {
            let bits: Vec<bool> = vectors::g(steps).iter().map(|value| *value > 0.0).collect();
            let mut y = vec![0.0; n];
            trellis.follow(&bits, &mut y);
            let mut found = vec![0.0; n];
            trellis.follow(&trellis.search(&y, steps), &mut found);
            let miss: f32 = y.iter().zip(&found).map(|(a, b)| (a - b).powi(2)).sum();
            assert!(miss < 1e-6, "{n} values in {steps} steps: {miss}");
        }
    }
}
