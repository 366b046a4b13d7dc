//! Gaussian quantisers after a rotation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    isotropic::{Isotropic, LONG, Scale, hear, omega_of_short, turn_back},
    lloyd_max::{Codebook, centroid, tail},
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::below,
};

/// Rotates the vector at random and quantises what comes out as the Gaussian values that it nearly is.
///
/// # Formula
/// `C(x) = S R^-1 q(z)`, `z = sqrt(n) R x / |x|`, with the randomised Hadamard rotation `R` in two rounds from the
/// shared stream, and `S = |x|^2 / <q, R x>` if the scale is `unbiased`, `<q, R x> / |q|^2` if it is `biased`, `|x| /
/// |q|` if it is `matched`. With `bits = b`, `q` is the Lloyd-Max quantiser of the normal distribution with `2^b`
/// values. Between whole numbers a random subset of `round((b - floor(b)) n)` values, from the shared stream, has one
/// bit more than the others; below 1, the others have none and are zero. With `step` in place of `bits`, every `z_i`
/// is rounded to a whole number `k_i` of steps, and `q_i` is the mean of the normal distribution between `(k_i - 1/2)
/// step` and `(k_i + 1/2) step`. If `q` is zero, or no scale makes it unbiased, `biased` and `matched` send zero, and
/// `unbiased` sends one value of `x`, drawn with probability `|x_i| / |x|_1`, as `|x|_1` under its sign.
///
/// # Bits
/// `b n + 32` with the fixed coder, rounded to whole bits. With `step`: 32 and the adaptive code of unbounded levels,
/// close to `n` times the entropy of a rounded Gaussian. The one value of the last resort takes `33 + ceil(log2 n)`.
///
/// # Bound
/// With the mean squared error `D` of the quantiser on a Gaussian: unbiased under uniformly random rotations, which
/// the two Hadamard rounds come near to, `omega = D / (1 - D)`; `biased`: contractive, `a = 1 - D`; `matched`:
/// contractive, `a = 2 sqrt(1 - D) - 1`. `D` is 0.3634, 0.1175, 0.0345, 0.0095 for 1 to 4 bits. This holds to terms of
/// `1/n` for parts of 256 values and more. Shorter parts, and those of which fewer than 32 values are expected to be
/// sent at all, have wider bounds.
///
/// # Source
/// Vargaftik et al., *EDEN: Communication-Efficient and Robust Distributed Mean Estimation*, 2022, sections 3 and 4.3.
/// Differs from the source in: two Hadamard rounds without padding; the subset of fractional `bits` has an exact size;
/// the last resort for `q = 0`.
///
/// # Example
/// `x = (-3)`, `bits = 2` gives `(-3)` in 34 bits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Eden {
    /// Bits a value, in (0, 8], also between whole numbers; fewer is more aggressive. Either this or `step`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 8.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<f64>,
    /// Step of the grid that is entropy-coded, in root mean squares, from 0.01 to 8; larger is more aggressive. Either
    /// this or `bits`.
    #[schemars(range(min = 0.01, max = 8.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// `unbiased`, `biased` for the least squared error, as error feedback wants it, or `matched` for the norm of the
    /// vector.
    pub scale: Scale,
}

impl Named for Eden {
    const NAME: &'static str = "eden";
    const EXAMPLE: &'static str = "bits = 2";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "bits", mildest: 8.0, harshest: 0.05, whole: false, instead_of: &["step"] });
}

/// Which codebook every value is quantised by.
struct Plan {
    /// Bits of the values outside the subset.
    few: u32,
    /// The subset that has one bit more; empty for whole numbers of bits.
    more: Vec<bool>,
    /// Its size.
    count: usize,
}

impl Plan {
    /// Size of the subset with one bit more, among `n` values.
    fn count(bits: f64, n: usize) -> usize {
        let count = (bits.fract() * n as f64).round() as usize;
        if bits < 1.0 { count.clamp(1, n) } else { count }
    }

    fn new(bits: f64, n: usize, part: &Part<'_>) -> Self {
        let count = Self::count(bits, n);
        let mut more = vec![false; if count == 0 { 0 } else { n }];
        // Floyd's sampling: every subset of this size is equally likely.
        let mut generator = part.streams.inner(0).shared();
        for last in (n - count)..n {
            let drawn = below(&mut generator, last as u32 + 1) as usize;
            let chosen = if more[drawn] { last } else { drawn };
            more[chosen] = true;
        }
        Self { few: bits as u32, more, count }
    }

    /// The two groups of values: bits, whether they are the subset, and how many there are.
    fn groups(&self, n: usize) -> impl Iterator<Item = (u32, bool, usize)> {
        let groups = [(self.few, false, n - self.count), (self.few + 1, true, self.count)];
        groups.into_iter().filter(|&(bits, _, count)| bits > 0 && count > 0)
    }

    fn is_more(&self, i: usize) -> bool {
        self.count > 0 && self.more[i]
    }
}

/// The mean of `z` where `z` rounds to `level` steps.
fn reconstruct(level: i32, step: f64) -> f32 {
    let k = f64::from(level.unsigned_abs());
    if k == 0.0 {
        return 0.0;
    }
    let value = centroid((k - 0.5) * step, (k + 0.5) * step) as f32;
    if level < 0 { -value } else { value }
}

/// The means of the levels from 0 up that nearly all values have.
fn table(step: f64) -> Vec<f32> {
    (0..=(8.0 / step) as i32).map(|level| reconstruct(level, step)).collect()
}

fn look_up(table: &[f32], level: i32, step: f64) -> f32 {
    match table.get(level.unsigned_abs() as usize) {
        Some(&value) if level < 0 => -value,
        Some(&value) => value,
        None => reconstruct(level, step),
    }
}

/// The nearest whole number of steps, halves towards zero.
fn level(z: f32, step: f64) -> i32 {
    let magnitude = (f64::from(z.abs()) / step - 0.5).ceil() as i32;
    if z < 0.0 { -magnitude } else { magnitude }
}

/// Mean squared error of the grid with centroids on a Gaussian.
fn grid_distortion(step: f64) -> f64 {
    let mut kept = 0.0;
    for k in 1..=(12.0 / step) as u32 + 1 {
        let (low, high) = ((f64::from(k) - 0.5) * step, (f64::from(k) + 0.5) * step);
        let mean = if low < 30.0 { centroid(low, high) } else { low };
        kept += 2.0 * (tail(low) - tail(high)) * mean * mean;
    }
    1.0 - kept
}

impl Eden {
    /// The error on a Gaussian, and the number of values of `n` that are expected not to be zero.
    fn distortion(&self, n: usize) -> (f64, f64) {
        match (self.step, self.bits) {
            (Some(step), _) => (grid_distortion(step), 2.0 * tail(0.5 * step) * n as f64),
            (None, Some(bits)) => {
                let share = Plan::count(bits, n) as f64 / n as f64;
                let few = bits as u32;
                let error = |bits| if bits == 0 { 1.0 } else { Codebook::of(bits).distortion };
                let more = if share > 0.0 { share * error(few + 1) } else { 0.0 };
                ((1.0 - share) * error(few) + more, if few == 0 { share * n as f64 } else { n as f64 })
            }
            (None, None) => (1.0, 0.0),
        }
    }

    /// The bound of the unbiased scale for parts that are too short for Gaussian values, for every vector.
    fn omega_of_short(&self, n: usize) -> f64 {
        let length = n as f64;
        match (self.step, self.bits) {
            // The angle between `z` and `q` is that of an error below one step a value.
            (Some(step), _) if step < 0.7 => step * step / (1.0 - step * step),
            // One value for all has `n - 1`; else `q_i z_i >= q_i^2 / 2`, and one `q_i` is at least half a step.
            (Some(step), _) => (16.0 * length / (step * step)).max(length - 1.0),
            (None, Some(bits)) if bits >= 1.0 => omega_of_short(n),
            (None, _) => length * length,
        }
    }
}

impl Operator for Eden {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let Some(isotropic) = Isotropic::of(x, part)? else {
            payload.push(Section::Floats(vec![0.0]));
            return Ok(());
        };
        let z = &isotropic.z;
        let mut q = vec![0.0; x.len()];
        let mut sections = Vec::new();
        if let Some(step) = self.step {
            let table = table(step);
            let values: Vec<i32> = z.iter().map(|&z| level(z, step)).collect();
            q.iter_mut().zip(&values).for_each(|(q, &level)| *q = look_up(&table, level, step));
            sections.push(Section::Levels { values, largest: None, trellis: None });
        } else {
            let plan = Plan::new(self.bits.unwrap_or(1.0), x.len(), part);
            for (bits, more, count) in plan.groups(x.len()) {
                let book = Codebook::of(bits);
                let mut values = Vec::with_capacity(count);
                for (_, (q, &z)) in q.iter_mut().zip(z).enumerate().filter(|(i, _)| plan.is_more(*i) == more) {
                    let symbol = book.symbol(z);
                    *q = book.value(symbol);
                    values.push(symbol);
                }
                sections.push(Section::Symbols { values, alphabet: 1 << bits });
            }
        }
        if isotropic.announce(&q, self.scale, x, part, payload)? {
            sections.into_iter().for_each(|section| payload.push(section));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let Some(scale) = hear(source, out)? else { return Ok(()) };
        if let Some(step) = self.step {
            let table = table(step);
            let levels = source.levels(out.len(), None)?;
            out.iter_mut().zip(levels).for_each(|(value, level)| *value = look_up(&table, level, step));
        } else {
            let plan = Plan::new(self.bits.unwrap_or(1.0), out.len(), part);
            out.fill(0.0);
            for (bits, more, count) in plan.groups(out.len()) {
                let book = Codebook::of(bits);
                let mut symbols = source.symbols(count, 1 << bits)?.into_iter();
                for (_, value) in out.iter_mut().enumerate().filter(|(i, _)| plan.is_more(*i) == more) {
                    *value = symbols.next().map_or(0.0, |symbol| book.value(symbol));
                }
            }
        }
        turn_back(out, f64::from(scale), part);
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let (distortion, sent) = self.distortion(n);
        let is_gaussian = n >= LONG && sent >= 32.0;
        // The scale follows the number of values that are sent, which varies.
        let omega = if is_gaussian { (1.0 + 1.0 / sent) / (1.0 - distortion) - 1.0 } else { self.omega_of_short(n) };
        match self.scale {
            Scale::Unbiased => Class::Unbiased(omega),
            Scale::Biased if is_gaussian => Class::Contractive(1.0 - distortion),
            // Levels are not all zero with such a step, for no value of `z` is below 1 in all places; nor with a bit a
            // value.
            Scale::Biased if self.step.is_some_and(|step| step < 2.0) || self.bits.is_some_and(|bits| bits >= 1.0) => {
                Class::Contractive(1.0 / (1.0 + omega))
            }
            Scale::Matched if is_gaussian && distortion < 0.7 => {
                Class::Contractive(2.0 * (1.0 - distortion).sqrt() - 1.0)
            }
            _ => Class::Unproven,
        }
    }

    fn kinds(&self) -> &'static [Kind] {
        if self.step.is_some() {
            &[Kind::Floats, Kind::Number, Kind::Signs, Kind::UnboundedLevels]
        } else {
            &[Kind::Floats, Kind::Number, Kind::Signs, Kind::Symbols]
        }
    }

    fn default_coder(&self) -> &'static str {
        if self.step.is_some() { "adaptive" } else { "fixed" }
    }

    fn check(&self, _longest: usize) -> Result<(), Misfit> {
        match (self.bits, self.step) {
            (Some(_), Some(_)) => Err(Misfit { key: "step", message: "give either `bits` or `step`, not both".into() }),
            (None, None) => Err(Misfit { key: "bits", message: "one of `bits` and `step` must be given".into() }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{error, example, mean_bits, mean_error, wire_bits},
        vectors,
    };

    fn bits(bits: f64, scale: Scale) -> Eden {
        Eden { bits: Some(bits), step: None, scale }
    }

    fn step(step: f64, scale: Scale) -> Eden {
        Eden { bits: None, step: Some(step), scale }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&bits(2.0, Scale::Unbiased), "fixed", &[-3.0]), (vec![-3.0], 34));
    }

    #[test]
    fn errors_of_whole_bits_are_those_of_the_specification() {
        // spec 5.15: bits, biased, unbiased; d = 1000, 100 rotations, 1 %
        let table = [
            (1.0, 0.363380, 0.570796),
            (2.0, 0.117482, 0.133121),
            (3.0, 0.034548, 0.035784),
            (4.0, 0.009501, 0.009592),
        ];
        for x in [vectors::t(4096), vectors::g(1000), vectors::t(1000)] {
            for (b, biased, unbiased) in table {
                let matched = 2.0 - 2.0 * (1.0f64 - biased).sqrt();
                for (scale, expected) in
                    [(Scale::Biased, biased), (Scale::Unbiased, unbiased), (Scale::Matched, matched)]
                {
                    let (mean, standard_error) = mean_error(&bits(b, scale), &x, 100);
                    // 1000 rotated values have slightly lighter tails than a Gaussian: the mean is 0.5 % lower at 4
                    // bits, where the standard error of 100 rotations is 0.9 %.
                    let tolerance = 0.01 * expected + if x.len() > 1000 { 0.0 } else { standard_error };
                    assert!((mean - expected).abs() < tolerance, "{b} bits, {scale:?}: {mean} for {expected}");
                }
                assert_eq!(wire_bits(&bits(b, Scale::Biased), "fixed", &x), x.len() as u64 * b as u64 + 32);
            }
        }
    }

    #[test]
    fn fractional_bits_lie_between_whole_ones() {
        // Below 1 the formula is pi / (2 b) - 1: 14.7 and 2.14; 15.6 and 2.2 of spec 5.15 are read off with the 32
        // bits of the scale.
        for b in [0.1, 0.5] {
            let (mean, standard_error) = mean_error(&bits(b, Scale::Unbiased), &vectors::g(10_000), 20);
            let expected = std::f64::consts::FRAC_PI_2 / b - 1.0;
            assert!((mean - expected).abs() < 0.01 * expected + 4.0 * standard_error, "{b} bits: {mean}");
        }
        for b in [0.05, 0.1, 0.5, 1.5, 2.25, 7.999] {
            let operator = bits(b, Scale::Biased);
            assert_eq!(wire_bits(&operator, "fixed", &vectors::g(1000)), (1000.0 * b).round() as u64 + 32);
            let (mean, standard_error) = mean_error(&operator, &vectors::g(1000), 50);
            let (expected, _) = operator.distortion(1000);
            assert!((mean - expected).abs() < 0.01 * expected + 4.0 * standard_error, "{b} bits: {mean} {expected}");
        }
    }

    #[test]
    fn the_entropy_coded_grid_has_the_errors_and_bits_of_the_specification() {
        // spec 5.15: bits a value, step, biased, unbiased
        let table = [
            (0.1, 5.07151, 0.90852, 9.93129),
            (0.25, 4.23232, 0.78945, 3.74937),
            (0.5, 3.45618, 0.61734, 1.61326),
            (0.75, 2.89937, 0.47094, 0.89016),
            (1.0, 2.42162, 0.34834, 0.53454),
            (1.5, 1.61010, 0.17770, 0.21611),
            (2.0, 1.08245, 0.08894, 0.09762),
            (3.0, 0.52243, 0.02224, 0.02274),
            (4.0, 0.25902, 0.00556, 0.00559),
        ];
        let x = vectors::t(50_000);
        for (rate, delta, biased, unbiased) in table {
            let distortion = grid_distortion(delta);
            assert!((distortion - biased).abs() < 1e-5, "step {delta}: {distortion} for {biased}");
            assert!((distortion / (1.0 - distortion) / unbiased - 1.0).abs() < 1e-3, "step {delta}");
            let half = (0..200).map(|k| (f64::from(k) - 0.5) * delta);
            let entropy: f64 = half
                .map(|low| if low < 0.0 { (1.0 - 2.0 * tail(-low), 1.0) } else { (tail(low) - tail(low + delta), 2.0) })
                .filter(|(p, _)| *p > 0.0)
                .map(|(p, times)| -times * p * p.log2())
                .sum();
            assert!((entropy - rate).abs() < 1e-4, "step {delta}: {entropy} for {rate}");
            // Measured from bytes, with the scale and what the coder has to learn.
            let (sent, _) = mean_bits(&step(delta, Scale::Biased), "adaptive", &x, 2);
            assert!((sent / 50_000.0 / rate - 1.0).abs() < 0.03, "step {delta}: {} for {rate}", sent / 50_000.0);
            for (scale, expected) in [(Scale::Biased, biased), (Scale::Unbiased, unbiased)] {
                let (mean, standard_error) = mean_error(&step(delta, scale), &x, 4);
                assert!(
                    (mean / expected - 1.0).abs() < 0.02,
                    "step {delta}: {mean} +- {standard_error} for {expected}"
                );
            }
        }
    }

    #[test]
    fn levels_that_are_all_zero_leave_no_bias() {
        // Trap 19: with a step of 8 nearly every message of 20 values is the last resort.
        let x = vectors::g(20);
        let mut sum = [0.0f64; 20];
        let draws = 4000;
        for draw in 0..draws {
            let part = Part { layers: &[], streams: crate::rng::Streams::message(11, draw, 1, 2, 0) };
            let mut payload = Payload::default();
            step(8.0, Scale::Unbiased).compress(&x, &part, &mut Vec::new(), &mut payload).expect("finite");
            let mut out = vec![0.0; 20];
            step(8.0, Scale::Unbiased).restore(&mut payload.source(), &part, &mut out).expect("it can be restored");
            sum.iter_mut().zip(out).for_each(|(sum, value)| *sum += f64::from(value) / draws as f64);
        }
        let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
        let bias = sum.iter().zip(&x).map(|(mean, &x)| (mean - f64::from(x)).powi(2)).sum::<f64>() / squares;
        assert!(bias < 4.0 * 20.0 / draws as f64, "{bias}");
        assert_eq!(error(&step(8.0, Scale::Biased), &x), 1.0);
        assert_eq!(wire_bits(&step(8.0, Scale::Biased), "adaptive", &x), 32);
    }

    #[test]
    fn both_or_none_of_bits_and_step_are_refused() {
        assert_eq!(Eden::default().check(10).unwrap_err().key, "bits");
        assert_eq!(Eden { bits: Some(1.0), step: Some(1.0), ..Eden::default() }.check(10).unwrap_err().key, "step");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let x = [1.0, -2.0, 2.0, 0.5, 0.0, 4.0, -1.0, 3.0];
        for (operator, expected) in [
            (bits(1.5, Scale::Unbiased), [2818, -2818, 2818, -1078, 870, 3923, -870, 1712]),
            (step(1.0, Scale::Unbiased), [0, -2345, 2345, 0, 1181, 3527, -1181, 3527]),
        ] {
            let (decoded, _) = example(&operator, operator.default_coder(), &x);
            let shown: Vec<i32> = decoded.iter().map(|value| (value * 1000.0).round() as i32).collect();
            assert_eq!(shown, expected, "{operator:?}");
        }
    }
}
