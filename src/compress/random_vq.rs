//! The nearest of random codewords.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit, bounds::largest_cosine, gaussian::Stream, rotation::Rotation, scale,
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::{norm_squared, vectorised},
};

/// Rotates the part, cuts it into blocks and sends for each the nearest of `2^bits` random codewords.
///
/// # Formula
/// `C(x) = S R^-1 q`, where every block of `q` is the codeword nearest to that block of `y = sqrt(n) R x / |x|`.
/// Codewords are Gaussian with the variance `1 - 4^(-bits/block)`, the same for all messages.
/// `S = |x| <q, y> / (sqrt(n) |q|^2)`, which has the least error, or `S = sqrt(n) |x| / <q, y>` for `unbiased`. Shorter
/// blocks at the end use the first coordinates of the codewords.
///
/// # Bits
/// `32 + bits ceil(n / block)` with the fixed coder. A part of zeros is 32 bits.
///
/// # Bound
/// Contractive, `a = 0.95 k^2 (E chi)^2 / block`, with the mean largest cosine `k` of `2^bits` directions and the mean norm
/// `E chi` of a Gaussian block; `unbiased` has `omega = 1/a - 1`. That is what unit codewords would do for Gaussian blocks,
/// and so for every vector under a uniformly random rotation, to which two rounds of signs and Hadamard transforms come
/// close: the margin of 0.95 is measured, not proven. Blocks of 12 values with 12 bits: error 0.329 at one bit a value,
/// where no code can be below 0.25.
///
/// # Source
/// The random code of Shannon, *Coding theorems for a discrete source with a fidelity criterion*, 1959; scales of
/// Vargaftik et al., *EDEN*, 2022. Differs from the source in: blocks are short, and one scale takes up what they miss.
///
/// # Example
/// `x = (-2.5)`, `block = 8`, `bits = 8` gives `(-2.5)` in 40 bits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandomVq {
    /// Values that share a codeword, at least 1; more is more aggressive.
    #[schemars(range(min = 1, max = 4096))]
    pub block: u32,
    /// Base-2 logarithm of the number of codewords, from 1 to 16; fewer is more aggressive. The time grows with their
    /// number.
    #[schemars(range(min = 1, max = 16))]
    pub bits: u32,
    /// Whether the scale removes the bias, at the price of a larger error.
    pub unbiased: bool,
    /// The codewords, made when first needed.
    #[serde(skip)]
    #[schemars(skip)]
    codebook: OnceLock<Codebook>,
}

impl Default for RandomVq {
    fn default() -> Self {
        Self { block: 12, bits: 12, unbiased: false, codebook: OnceLock::new() }
    }
}

impl Named for RandomVq {
    const NAME: &'static str = "random-vq";
    const EXAMPLE: &'static str = "block = 8\nbits = 8";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "block", mildest: 3.0, harshest: 240.0, whole: true, instead_of: &[] });
}

/// Codewords that are compared at once.
const LANES: usize = 16;
/// Values of the largest codebook, 64 MiB.
const MOST_VALUES: u64 = 1 << 24;
/// Key of all codebooks.
const KEY: u64 = 0x7271_5f65_6e69_6f6b;
/// The least cosine between the vector and its description that an unbiased scale makes up for.
const LEAST_COSINE: f64 = 1e-3;

/// What is left of the promise for Gaussian values, because rotated ones are only nearly so.
const NEARLY_GAUSSIAN: f64 = 0.95;

/// Gaussian codewords, sixteen side by side.
#[derive(Clone, Debug)]
struct Codebook {
    /// For each group of codewords and each coordinate the values of the group.
    groups: Vec<Vec<[f32; LANES]>>,
    count: usize,
}

impl Codebook {
    fn new(block: usize, bits: u32) -> Self {
        let count = 1 << bits;
        let deviation = (1.0 - libm::exp2(-2.0 * f64::from(bits) / block as f64)).sqrt() as f32;
        let mut codeword = vec![0.0; block];
        let mut groups = vec![vec![[0.0; LANES]; block]; usize::div_ceil(count, LANES)];
        for number in 0..count {
            // Every codeword has its negative: without this symmetry the code would be biased on sparse vectors.
            if number % 2 == 0 {
                Stream::new(KEY, number as u64 / 2).fill(&mut codeword);
            } else {
                codeword.iter_mut().for_each(|value| *value = -*value);
            }
            for (values, &value) in groups[number / LANES].iter_mut().zip(&codeword) {
                values[number % LANES] = value * deviation;
            }
        }
        Self { groups, count }
    }

    /// Half the squared norm of the first `n` values of every codeword; infinite where there is no codeword.
    fn half_squares(&self, n: usize) -> Vec<[f32; LANES]> {
        let half = |(group, values): (usize, &Vec<[f32; LANES]>)| {
            let mut sum = [0.0f32; LANES];
            for values in &values[..n] {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += 0.5 * value * value);
            }
            for (lane, sum) in sum.iter_mut().enumerate() {
                *sum = if group * LANES + lane < self.count { *sum } else { f32::INFINITY };
            }
            sum
        };
        self.groups.iter().enumerate().map(half).collect()
    }

    /// The codeword nearest to `y` on its values; the first among equals.
    fn nearest(&self, y: &[f32], half_squares: &[[f32; LANES]]) -> u16 {
        // |y - c|^2 is least where <y, c> - |c|^2 / 2 is largest.
        // A closure of this size is compiled for wide vectors only if it is inlined.
        let (best, group) = vectorised(
            #[inline(always)]
            || {
                let (mut best, mut at) = ([f32::NEG_INFINITY; LANES], [0u32; LANES]);
                for (group, (values, half_squares)) in (0..).zip(self.groups.iter().zip(half_squares)) {
                    let mut score = [0.0f32; LANES];
                    for (values, &y) in values.iter().zip(y) {
                        for lane in 0..LANES {
                            score[lane] += values[lane] * y;
                        }
                    }
                    for lane in 0..LANES {
                        let score = score[lane] - half_squares[lane];
                        let better = score > best[lane];
                        best[lane] = if better { score } else { best[lane] };
                        at[lane] = if better { group } else { at[lane] };
                    }
                }
                (best, at)
            },
        );
        let number = |lane: usize| group[lane] as usize * LANES + lane;
        let lanes = 0..LANES.min(self.count);
        lanes.max_by(|&a, &b| best[a].total_cmp(&best[b]).then(number(b).cmp(&number(a)))).map_or(0, number) as u16
    }

    /// Writes the first values of a codeword.
    fn write(&self, number: u16, out: &mut [f32]) {
        let (group, lane) = (usize::from(number) / LANES, usize::from(number) % LANES);
        out.iter_mut().zip(&self.groups[group]).for_each(|(out, values)| *out = values[lane]);
    }
}

impl RandomVq {
    fn codebook(&self) -> &Codebook {
        self.codebook.get_or_init(|| Codebook::new(self.block as usize, self.bits))
    }

    /// The length of blocks of a part of `n` values.
    fn block(&self, n: usize) -> usize {
        (self.block as usize).min(n)
    }

    /// `a`, the share of a Gaussian vector's energy that unit codewords would find.
    fn gain(&self, n: usize) -> f64 {
        let length = self.block(n);
        let d = length as f64;
        // (E chi)^2 / d is 2/pi for one value and tends to 1.
        let even = 2.0 / d * libm::exp(2.0 * (libm::lgamma(d / 2.0 + 0.5) - libm::lgamma(d / 2.0)));
        largest_cosine(f64::from(1 << self.bits), length).powi(2) * even
    }

    /// Writes the codewords of `symbols` one after the other.
    fn write(&self, symbols: &[u16], out: &mut [f32]) {
        let length = self.block(out.len());
        out.chunks_mut(length).zip(symbols).for_each(|(block, &symbol)| self.codebook().write(symbol, block));
    }
}

impl Operator for RandomVq {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let n = x.len();
        let norm = norm_squared(x).sqrt();
        if scale(norm)? == 0.0 {
            payload.push(Section::Floats(vec![0.0]));
            return Ok(());
        }
        let root = (n as f64).sqrt();
        let mut y: Vec<f32> = x.iter().map(|&value| (f64::from(value) / norm * root) as f32).collect();
        Rotation::new(&part.streams, n).forward(&mut y);
        let length = self.block(n);
        let codebook = self.codebook();
        let whole = codebook.half_squares(length);
        let tail = codebook.half_squares(n % length);
        let nearest = |block: &[f32]| codebook.nearest(block, if block.len() == length { &whole } else { &tail });
        let values: Vec<u16> = y.chunks(length).map(nearest).collect();
        let mut q = vec![0.0; n];
        self.write(&values, &mut q);
        let along: f64 = q.iter().zip(&y).map(|(&q, &y)| f64::from(q) * f64::from(y)).sum();
        let squares = norm_squared(&q);
        let factor = if self.unbiased {
            along.signum() * root * norm / along.abs().max(LEAST_COSINE * squares.sqrt() * root)
        } else {
            norm / root * along / squares
        };
        let factor = (factor as f32).clamp(f32::MIN, f32::MAX);
        payload.push(Section::Floats(vec![factor]));
        if factor != 0.0 {
            payload.push(Section::Symbols { values, alphabet: 1 << self.bits });
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        // Negative if no codeword is on the vector's side.
        let factor = source.float()?;
        if !factor.is_finite() {
            return Err(Corrupt("a scale is not finite"));
        }
        out.fill(0.0);
        if factor == 0.0 {
            return Ok(());
        }
        let symbols = source.symbols(out.len().div_ceil(self.block(out.len())), 1 << self.bits)?;
        self.write(&symbols, out);
        Rotation::new(&part.streams, out.len()).inverse(out);
        for value in out {
            *value = ((f64::from(*value) * f64::from(factor)) as f32).clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let a = self.gain(n) * NEARLY_GAUSSIAN;
        if self.unbiased { Class::Unbiased(1.0 / a - 1.0) } else { Class::Contractive(a) }
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Symbols]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }

    fn check(&self, _: usize) -> Result<(), Misfit> {
        let values = u64::from(self.block) << self.bits;
        if values <= MOST_VALUES {
            return Ok(());
        }
        let message = format!(
            "2^{} codewords of {} values are {values} values, and at most {MOST_VALUES} are allowed: \
             give `block` = {} or less",
            self.bits,
            self.block,
            MOST_VALUES >> self.bits
        );
        Err(Misfit { key: "block", message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{error, example, mean_error, wire_bits},
        vectors,
    };

    fn code(block: u32, bits: u32) -> RandomVq {
        RandomVq { block, bits, ..RandomVq::default() }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&code(8, 8), "fixed", &[-2.5]), (vec![-2.5], 40));
    }

    #[test]
    fn errors_and_bits_are_those_of_the_specification() {
        // spec 5.3 and 6.2: block with 12 bits, error, unbiased error, bits a value
        let x = vectors::g(10_000);
        for (block, biased, unbiased, bits) in
            [(120, 0.900, 9.07, 0.1), (24, 0.580, 1.39, 0.5), (12, 0.329, 0.490, 1.0), (6, 0.105, 0.118, 2.0)]
        {
            let operator = code(block, 12);
            let measured = error(&operator, &x);
            assert!((measured / biased - 1.0).abs() < 0.03, "block = {block}: {measured} for {biased}");
            assert_eq!(wire_bits(&operator, "fixed", &x), 32 + 12 * u64::from(10_000u32.div_ceil(block)));
            assert!((12.0 / f64::from(block) - bits).abs() < 1e-9);
            let measured = error(&RandomVq { unbiased: true, ..operator }, &x);
            assert!((measured / unbiased - 1.0).abs() < 0.1, "block = {block}: {measured} for {unbiased}");
        }
    }

    #[test]
    fn unit_codewords_bound_the_error() {
        let x = vectors::t(5000);
        for (block, bits) in [(3, 6), (8, 8), (24, 6), (40, 1), (5, 1), (1, 3)] {
            let operator = code(block, bits);
            let a = operator.gain(5000);
            let error = error(&operator, &x);
            assert!(error <= (1.0 - a) * 1.03, "block = {block}: {error} for {}", 1.0 - a);
        }
    }

    #[test]
    fn sparse_vectors_of_any_length_keep_the_promise() {
        for n in [100, 127, 160, 200, 255, 256, 400, 500, 511] {
            for at in [0, n / 2, n - 1] {
                let mut x = vec![0.0; n];
                x[at] = 1.0;
                let (operator, unbiased) = (code(8, 8), RandomVq { unbiased: true, ..code(8, 8) });
                let Class::Contractive(a) = operator.class(n) else { panic!("it has the least error") };
                let Class::Unbiased(omega) = unbiased.class(n) else { panic!("it has no bias") };
                let (mean, standard_error) = mean_error(&operator, &x, 20);
                assert!(mean <= 1.0 - a + 3.0 * standard_error, "{at} of {n}: {mean} for {}", 1.0 - a);
                let (mean, standard_error) = mean_error(&unbiased, &x, 20);
                assert!(mean <= omega + 3.0 * standard_error, "{at} of {n}: {mean} for {omega}");
            }
        }
    }

    #[test]
    fn the_search_finds_the_nearest() {
        for (block, bits) in [(7, 2), (7, 5), (3, 9)] {
            let codebook = Codebook::new(block, bits);
            for (i, y) in vectors::t(60 * block).chunks(block).enumerate() {
                let y = &y[..if i % 2 == 0 { block } else { block - 1 }];
                let mut c = vec![0.0; y.len()];
                let mut distance = |number| {
                    codebook.write(number, &mut c);
                    crate::vector::distance_squared(y, &c)
                };
                let found = codebook.nearest(y, &codebook.half_squares(y.len()));
                let least = (0..1 << bits).map(&mut distance).fold(f64::INFINITY, f64::min);
                assert!(distance(found) <= least * (1.0 + 1e-5) + 1e-5, "block = {block}, bits = {bits}");
            }
        }
    }

    #[test]
    fn codebooks_that_fill_the_memory_are_refused() {
        assert_eq!(code(240, 16).check(10), Ok(()));
        assert_eq!(
            code(300, 16).check(10).unwrap_err().message,
            "2^16 codewords of 300 values are 19660800 values, and at most 16777216 are allowed: \
             give `block` = 256 or less"
        );
    }

    #[test]
    fn values_are_stable_across_versions() {
        let mut codeword = [0.0; 3];
        Codebook::new(3, 6).write(41, &mut codeword);
        assert_eq!(codeword.map(f32::to_bits), [1052464336, 1067042548, 1059297133]);
        let (decoded, _) = example(&code(3, 6), "fixed", &[1.0, -2.0, 2.0, 0.5, 0.0, 4.0]);
        assert_eq!(
            decoded.iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
            [1048697451, 3222727816, 1076093017, 1059234432, 1050974685, 1079242525]
        );
    }
}
