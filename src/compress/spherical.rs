//! The first random direction that is near enough.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    bounds::{cap, log2_cap, mean_cosine},
    directions::Directions,
    read_scale,
    rotation::Rotation,
    scale,
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64,
    vector::norm_squared,
};

/// Sends how many random directions, the same at both ends, it takes until one is near the vector's.
///
/// # Formula
/// `C(x) = |x| r v_T`, where `v_1, v_2, ..` are uniform on the sphere and `T` is the first `t` with
/// `<v_t, x> >= sqrt(1 - alpha) |x|`. `r = sqrt(1 - alpha)` for `sure`, `1/c` for `unbiased`, `c` for `least-error`,
/// with `c = E <v_T, x> / |x|`. With `block`, parts that are longer are rotated and cut: `C(x) = R^-1 y`, and each
/// block of `y` is `g r v_T`, where `g` is the block's norm in steps of `e^0.35`, the nearest, or for `unbiased` a
/// neighbour at random. One value alone is its norm and its sign, whatever `alpha`.
///
/// # Bits
/// 32 for the norm and `T`, which has the geometric distribution with the success `P(alpha, n)`: on average fewer than
/// `3 - log2 P` bits in the Golomb code. With blocks, `3 - log2 P` for each and 1 to 2 for its norm under the
/// adaptive coder. After `20.7 / P` trials, which happens once in 10^9 searches, the block follows as floats. A part of
/// zeros is 32 bits.
///
/// # Bound
/// `sure`: contractive for every draw, `a = 1 - alpha`. `unbiased`: `omega = 1/c^2 - 1`. `least-error`: contractive,
/// `a = c^2`, exact on average. With blocks, `E |C(x) - x|^2 <= max (1 - 2 s r c + s^2 r^2) |x|^2` over `s = e^0.175`
/// and `e^-0.175`, and for every draw of `sure` at most `(sqrt(alpha) + sqrt(1 - alpha) (e^0.175 - 1))^2`; `unbiased`
/// has `omega = 1.031/c^2 - 1`.
///
/// # Source
/// Albasyoni, Safaryan, Condat, Richtarik, *Optimal Gradient Compression for Distributed and Federated Learning*, 2020
/// (spherical compression). Differs from the source in: blocks with norms on a logarithmic grid, the other two radii,
/// and the end of the search.
///
/// # Example
/// `x = (-2.5)` gives `(-2.5)` in 33 bits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Spherical {
    /// Squared distance to the unit vector at which a direction is near enough, in (0, 1); higher is more aggressive.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub alpha: f64,
    /// Values that share a direction, at least 1; the whole part if absent. The time to search grows exponentially with
    /// it.
    #[schemars(range(min = 1, max = 65_536))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// How long the direction is made: `sure` bounds every error by `alpha`, `unbiased` has no bias, `least-error` has
    /// the least mean error.
    pub radius: Radius,
}

/// The length of a restored direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Radius {
    /// The error is below `alpha` in every draw.
    #[default]
    Sure,
    /// The mean is the vector.
    Unbiased,
    /// The mean error is least.
    LeastError,
}

impl Default for Spherical {
    fn default() -> Self {
        Self { alpha: 0.5, block: None, radius: Radius::Sure }
    }
}

impl Named for Spherical {
    const NAME: &'static str = "spherical";
    const EXAMPLE: &'static str = "alpha = 0.5\nblock = 8";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "alpha", mildest: 0.05, harshest: 0.98, whole: false, instead_of: &[] });
}

/// Step of the logarithm of a block's norm.
const STEP: f64 = 0.35;
/// The level that stands for a block of zeros: a relative norm below `e^-22`.
const ZERO: i32 = -64;
/// No sender writes a higher level: blocks of a part of `2^32` values are at most `e^11` times their share.
const HIGHEST: i32 = 64;
/// Trials as multiples of their mean after which a search ends: `e^-20.7` is one in 10^9.
const PATIENCE: f64 = 20.7;
/// `-log2 P` of the longest search that is allowed.
const MOST_BITS: f64 = 21.0;

/// What blocks of one length have in common.
#[derive(Clone, Copy)]
struct Shape {
    /// The least squared cosine.
    cosine_squared: f64,
    /// The length of a restored direction.
    radius: f64,
    /// The probability that a direction is near enough.
    success: f64,
    /// The last trial.
    last: u64,
}

impl Spherical {
    fn block(&self, n: usize) -> usize {
        self.block.map_or(n, |block| block as usize).min(n)
    }

    /// The shape of blocks of `n` values; one value is a sign.
    fn shape(&self, n: usize) -> Shape {
        let success = cap(self.alpha, n);
        let last = (PATIENCE / success).ceil() as u64;
        Shape { cosine_squared: 1.0 - self.alpha, radius: self.radius(n), success, last }
    }

    fn radius(&self, n: usize) -> f64 {
        match self.radius {
            _ if n == 1 => 1.0,
            Radius::Sure => (1.0 - self.alpha).sqrt(),
            Radius::Unbiased => 1.0 / mean_cosine(self.alpha, n),
            Radius::LeastError => mean_cosine(self.alpha, n),
        }
    }

    /// What is promised for blocks of `n` values whose norms are sent (`s = 1`) or rounded to the grid.
    fn promise(&self, n: usize, rounded: bool) -> Class {
        let (r, c) = (self.radius(n), if n == 1 { 1.0 } else { mean_cosine(self.alpha, n) });
        let half = if rounded { libm::exp(STEP / 2.0) } else { 1.0 };
        match self.radius {
            _ if n == 1 && !rounded => Class::Exact,
            Radius::Unbiased => {
                // The variance of rounding between neighbours is at most (half - 1/half)^2 / 4 of the squared norm.
                let spread = 1.0 + (half - 1.0 / half).powi(2) / 4.0;
                Class::Unbiased(spread / (c * c) - 1.0)
            }
            Radius::Sure if !rounded => Class::Contractive(1.0 - self.alpha),
            _ => {
                let gain = |s: f64| 2.0 * s * r * c - s * s * r * r;
                Class::Contractive(gain(half).min(gain(1.0 / half)))
            }
        }
    }

    /// Describes the part; the search for a block ends with trial `last(shape)`.
    fn describe(
        &self,
        x: &[f32],
        part: &Part<'_>,
        payload: &mut Payload,
        last: impl Fn(Shape) -> u64,
    ) -> Result<(), Unfit> {
        let norm = scale(norm_squared(x).sqrt())?;
        payload.push(Section::Floats(vec![norm]));
        if norm == 0.0 {
            return Ok(());
        }
        let mut unit: Vec<f32> = x.iter().map(|&value| (f64::from(value) / f64::from(norm)) as f32).collect();
        let length = self.block(x.len());
        let mut gains = vec![0; x.len().div_ceil(length)];
        if gains.len() > 1 {
            Rotation::new(&part.streams, x.len()).forward(&mut unit);
            let mut generator = part.streams.private();
            for (gain, block) in gains.iter_mut().zip(unit.chunks(length)) {
                let relative = norm_squared(block).sqrt() / share(block.len(), x.len());
                *gain = self.level(relative, unit_f64(generator.next_u64()));
            }
            payload.push(Section::Levels { values: gains.clone(), largest: None, trellis: None });
        }
        let directions = Directions::new(&part.streams);
        let (mut first, mut missed) = (0, Vec::new());
        for blocks in runs(x.len(), length) {
            let shape = self.shape(blocks.length);
            let last = last(shape);
            let (mut waits, mut signs) = (Vec::new(), Vec::new());
            for (number, block) in (first..).zip(unit[blocks.range].chunks(blocks.length)) {
                if gains[number] == ZERO {
                    continue;
                }
                if let &[value] = block {
                    signs.push(value < 0.0);
                    continue;
                }
                let wait = directions.search(number, block, shape.cosine_squared as f32, last);
                waits.push(wait.unwrap_or(shape.last + 1));
                if wait.is_none() {
                    missed.extend_from_slice(block);
                }
            }
            first += blocks.count;
            if !signs.is_empty() {
                payload.push(Section::Signs(signs));
            }
            if !waits.is_empty() {
                payload.push(Section::Waits { values: waits, success: shape.success });
            }
        }
        if !missed.is_empty() {
            payload.push(Section::Floats(missed));
        }
        Ok(())
    }

    /// The level of a block's relative norm; `uniform` is a random number in [0, 1).
    fn level(&self, relative: f64, uniform: f64) -> i32 {
        let exact = libm::log(relative.max(1e-30)) / STEP;
        if self.radius != Radius::Unbiased {
            return exact.round().clamp(f64::from(ZERO), f64::from(HIGHEST)) as i32;
        }
        let below = exact.floor().clamp(f64::from(ZERO), f64::from(HIGHEST - 1)) as i32;
        let (low, high) = (gain(below), gain(below + 1));
        below + i32::from(uniform * (high - low) < relative - low)
    }
}

/// The root mean square norm of `length` of `n` values of a unit vector.
fn share(length: usize, n: usize) -> f64 {
    (length as f64 / n as f64).sqrt()
}

/// The relative norm that a level stands for.
fn gain(level: i32) -> f64 {
    if level == ZERO { 0.0 } else { libm::exp(STEP * f64::from(level)) }
}

/// Blocks of one length that follow each other.
struct Run {
    range: std::ops::Range<usize>,
    length: usize,
    count: usize,
}

/// The whole blocks among `n` values and the shorter one at the end, if there is one.
fn runs(n: usize, length: usize) -> impl Iterator<Item = Run> {
    let whole = n / length * length;
    let runs =
        [Run { range: 0..whole, length, count: n / length }, Run { range: whole..n, length: n - whole, count: 1 }];
    runs.into_iter().filter(|run| run.length > 0)
}

impl Operator for Spherical {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        self.describe(x, part, payload, |shape| shape.last)
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let norm = read_scale(source)?;
        out.fill(0.0);
        if norm == 0.0 {
            return Ok(());
        }
        let (n, length) = (out.len(), self.block(out.len()));
        let blocks = n.div_ceil(length);
        let gains = if blocks > 1 { source.levels(blocks, None)? } else { vec![0] };
        if gains.iter().any(|gain| !(ZERO..=HIGHEST).contains(gain)) {
            return Err(Corrupt("the norm of a block is out of range"));
        }
        let directions = Directions::new(&part.streams);
        let (mut first, mut missed) = (0, Vec::new());
        for run in runs(n, length) {
            let shape = self.shape(run.length);
            let sent: Vec<usize> = (first..first + run.count).filter(|&number| gains[number] != ZERO).collect();
            first += run.count;
            if sent.is_empty() {
                continue;
            }
            let full = |number: usize| gain(gains[number]) * if blocks > 1 { share(run.length, n) } else { 1.0 };
            if run.length == 1 {
                for (number, negative) in sent.iter().zip(source.signs(sent.len())?) {
                    let value = full(*number) as f32;
                    out[number * length] = if negative { -value } else { value };
                }
                continue;
            }
            for (number, wait) in sent.iter().zip(source.waits(sent.len(), shape.success, shape.last + 1)?) {
                let range = number * length..number * length + run.length;
                if wait > shape.last {
                    missed.push(range);
                    continue;
                }
                let block = &mut out[range];
                directions.write(*number, wait, block);
                let squares = norm_squared(block);
                let factor = if squares > 0.0 { full(*number) * shape.radius / squares.sqrt() } else { 0.0 };
                block.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
            }
        }
        if !missed.is_empty() {
            let mut raw = vec![0.0; missed.iter().map(ExactSizeIterator::len).sum()];
            source.floats(&mut raw)?;
            if raw.iter().any(|value| value.is_nan() || value.abs() > 2.0) {
                return Err(Corrupt("a block is larger than its part"));
            }
            let mut raw = &raw[..];
            for range in missed {
                let (block, rest) = raw.split_at(range.len());
                out[range].copy_from_slice(block);
                raw = rest;
            }
        }
        if blocks > 1 {
            Rotation::new(&part.streams, n).inverse(out);
        }
        for value in out {
            *value = ((f64::from(*value) * f64::from(norm)) as f32).clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let length = self.block(n);
        let rounded = length < n;
        runs(n, length).map(|run| self.promise(run.length, rounded)).fold(Class::Exact, |all, run| match (all, run) {
            (Class::Unbiased(a), Class::Unbiased(b)) => Class::Unbiased(a.max(b)),
            (Class::Contractive(a), Class::Contractive(b)) => Class::Contractive(a.min(b)),
            (Class::Exact, other) | (other, _) => other,
        })
    }

    fn kinds(&self) -> &'static [Kind] {
        match self.block {
            None => &[Kind::Floats, Kind::Signs, Kind::Waits],
            Some(_) => &[Kind::Floats, Kind::Signs, Kind::Waits, Kind::UnboundedLevels],
        }
    }

    fn default_coder(&self) -> &'static str {
        // One wait gives an adaptive coder nothing to learn, and its end would cost a byte or two.
        if self.block.is_none() { "golomb" } else { "adaptive" }
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        let length = self.block(longest.max(1));
        let fits = |n: usize| -log2_cap(self.alpha, n) <= MOST_BITS;
        if fits(length) {
            return Ok(());
        }
        // One value needs no search, and caps shrink with every dimension.
        let (mut fitting, mut beyond) = (1, length);
        while beyond - fitting > 1 {
            let middle = usize::midpoint(fitting, beyond);
            if fits(middle) {
                fitting = middle;
            } else {
                beyond = middle;
            }
        }
        let bits = -log2_cap(self.alpha, length);
        let message = format!(
            "the search for a direction of {length} values within `alpha` = {} would take 2^{bits:.0} trials on \
             average, and at most 2^{MOST_BITS:.0} are allowed: give `block` = {fitting} or less",
            self.alpha
        );
        Err(Misfit { key: "block", message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::{
            laws::{error, example, mean_bits, mean_error},
            vectors,
        },
        layout::Layer,
        rng::Streams,
        vector::distance_squared,
    };

    fn whole(alpha: f64, radius: Radius) -> Spherical {
        Spherical { alpha, block: None, radius }
    }

    fn blocks(alpha: f64, block: u32, radius: Radius) -> Spherical {
        Spherical { alpha, block: Some(block), radius }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&whole(0.5, Radius::Sure), "golomb", &[-2.5]), (vec![-2.5], 33));
    }

    #[test]
    fn errors_of_a_whole_vector_are_those_of_the_specification() {
        // spec 5.3, d = 4, alpha = 0.3: never above alpha, unbiased .2278. The mean is .1899 by the formula there and
        // in NumPy; the .1836 that is printed beside it is of too few draws.
        let x = vectors::t(4);
        let (mean, standard_error) = mean_error(&whole(0.3, Radius::Sure), &x, 4000);
        assert!((mean - 0.1899).abs() < 4.0 * standard_error, "{mean}");
        let (mean, standard_error) = mean_error(&whole(0.3, Radius::Unbiased), &x, 4000);
        assert!((mean - 0.2278).abs() < 4.0 * standard_error, "{mean}");
        let c = mean_cosine(0.3, 4);
        let (mean, standard_error) = mean_error(&whole(0.3, Radius::LeastError), &x, 4000);
        assert!((mean - (1.0 - c * c)).abs() < 4.0 * standard_error, "{mean}");
        for d in 2..14 {
            let x = vectors::t(d);
            for alpha in [0.3, 0.6, 0.9] {
                let operator = whole(alpha, Radius::Sure);
                if operator.check(d).is_ok() {
                    let error = error(&operator, &x);
                    assert!(error <= alpha + 1e-5, "d = {d}: {error}");
                }
            }
        }
        // spec 5.3, d = 8, alpha = 0.5: 7.373 bits
        let (bits, standard_error) = mean_bits(&whole(0.5, Radius::Sure), "golomb", &vectors::g(8), 4000);
        assert!((bits - 32.0 - 7.373).abs() < 4.0 * standard_error, "{bits}");
    }

    #[test]
    fn errors_and_bits_of_blocks_are_those_of_the_specification() {
        // spec 5.3, all fields: block, alpha, error, bits a value; then values used, and three standard errors of the
        // error in NumPy.
        let x = vectors::g(10_000);
        for (block, alpha, expected, bits, n, tolerance) in [
            (24, 0.65, 0.609, 0.54, 4800, 0.02),
            (16, 0.35, 0.316, 1.08, 320, 0.08),
            (8, 0.16, 0.134, 1.90, 2000, 0.05),
        ] {
            let operator = blocks(alpha, block, Radius::Sure);
            let (decoded, spent) = example(&operator, operator.default_coder(), &x[..n]);
            let error = distance_squared(&x[..n], &decoded) / norm_squared(&x[..n]);
            // The norm is 32 bits for 10,000 values.
            let spent = (spent as f64 - 32.0) / n as f64 + 32.0 / 10_000.0;
            assert!((error / expected - 1.0).abs() < tolerance, "block = {block}: {error} for {expected}");
            assert!((spent - bits).abs() < 0.05, "block = {block}: {spent} for {bits}");
        }
    }

    #[test]
    fn mean_errors_of_blocks_are_those_of_the_formulas() {
        let x = vectors::t(1000);
        for (block, alpha) in [(8, 0.6), (4, 0.3)] {
            let c = mean_cosine(alpha, block as usize);
            for radius in [Radius::Sure, Radius::Unbiased, Radius::LeastError] {
                let operator = blocks(alpha, block, radius);
                let r = operator.radius(block as usize);
                // A uniform error of the logarithm of the norm, or rounding at random.
                let grid = match radius {
                    Radius::Unbiased => 0.0206,
                    _ => STEP * STEP / 12.0,
                };
                let expected = match radius {
                    Radius::Unbiased => (1.0 + grid) / (c * c) - 1.0,
                    _ => 1.0 - 2.0 * r * c + r * r + grid * r * r,
                };
                let (mean, standard_error) = mean_error(&operator, &x, 20);
                assert!((mean - expected).abs() < 5.0 * standard_error + 0.005, "{radius:?}: {mean} for {expected}");
                match operator.class(1000) {
                    Class::Unbiased(omega) => assert!(mean < omega && omega < 1.1 * expected, "{omega}"),
                    Class::Contractive(a) => assert!(mean < 1.0 - a && 1.0 - a < expected + 0.06, "{a}"),
                    other => panic!("{other}"),
                }
            }
        }
    }

    #[test]
    fn an_adaptive_coder_is_the_better_one_for_the_norms_of_blocks() {
        let (operator, x) = (blocks(0.5, 8, Radius::Sure), vectors::g(8000));
        let [adaptive, golomb] = ["adaptive", "golomb"].map(|coder| example(&operator, coder, &x).1);
        assert!(adaptive + 200 < golomb, "{adaptive} and {golomb}");
    }

    #[test]
    fn a_search_that_finds_nothing_sends_the_block() {
        let layers = [Layer { name: "x".into(), shape: vec![20], range: 0..20 }];
        let part = Part { layers: &layers, streams: Streams::message(11, 0, 1, 2, 0) };
        let x = vectors::t(20);
        for block in [None, Some(8), Some(19)] {
            let operator = Spherical { alpha: 0.5, block, radius: Radius::Unbiased };
            let mut payload = Payload::default();
            operator.describe(&x, &part, &mut payload, |_| 0).expect("it can be sent");
            let mut out = vec![0.0; 20];
            operator.restore(&mut payload.source(), &part, &mut out).expect("it can be read");
            let last = if block == Some(19) { 19 } else { 20 };
            // A block of one value needs no search; the rotation spreads its rounded norm.
            let tolerance = if last == 20 { 1e-10 } else { 0.02 };
            assert!(distance_squared(&x, &out) <= tolerance * norm_squared(&x), "{block:?}");
        }
    }

    #[test]
    fn searches_that_would_take_too_long_are_refused_and_a_block_is_named() {
        let misfit = blocks(0.1, 14, Radius::Sure).check(100).unwrap_err();
        assert_eq!(
            misfit.message,
            "the search for a direction of 14 values within `alpha` = 0.1 would take 2^25 trials on average, and at \
             most 2^21 are allowed: give `block` = 11 or less"
        );
        assert_eq!(blocks(0.1, 11, Radius::Sure).check(100), Ok(()));
        assert_eq!(blocks(0.15, 14, Radius::Sure).check(10), Ok(()));
        assert!(whole(0.5, Radius::Sure).check(1_000_000).is_err());
        assert!(whole(1e-9, Radius::Sure).check(1).is_ok());
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, bits) = example(&whole(0.5, Radius::Sure), "golomb", &[1.0, -2.0, 2.0, 0.5]);
        assert_eq!(
            (decoded.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), bits),
            (vec![1053477020, 3219375582, 1066519287, 1032175685], 40)
        );
    }
}
