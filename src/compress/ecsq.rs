//! Uniform levels with a dead zone, restored at their means.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, read_scale, scale};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::root_mean_square,
};

/// Rounds magnitudes to steps of the root mean square and restores levels at the mean of what fell on them.
///
/// # Formula
/// `k_i = floor(|x_i| / (Delta rms) + theta)`, and 1 for the largest value if that leaves nothing. Levels 1 and 2 are
/// restored at their mean magnitudes, larger ones at `k Delta rms` and a common shift, all in units of `rms`, the
/// 32-bit float that is sent.
///
/// # Bits
/// 32 for `rms`, 48 for two means and the shift as 16-bit floats, and the code of unbounded levels: about their entropy
/// with the adaptive coder (the default). A part of zeros is 32 bits.
///
/// # Bound
/// Contractive for every message, `a = (1 - 2^-20) / n`: one value alone on its level is restored to 11 bits, and a
/// level of several keeps at least 3/4 of their energy. At 1 bit a value the error of a Gaussian vector is 0.35.
///
/// # Source
/// Sullivan, *Efficient scalar quantization of exponential and Laplacian random variables*, 1996 (uniform threshold
/// quantiser with a dead zone). Differs from the source in: the means are those of the message and are sent with it;
/// the largest value is never lost.
///
/// # Example
/// `x = (2, -2, 0, 0)`, `step = 1` has `rms` 1.414 and the levels `(1, -1, 0, 0)`, restored at the mean 1.414 rms:
/// `(2, -2, 0, 0)` to 11 bits, in 91 bits with the bitmap coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ecsq {
    /// Distance `Delta` of levels in units of the root mean square, at least 0.0001; higher is more aggressive.
    #[schemars(range(min = 1e-4))]
    pub step: f64,
    /// Rounding offset `theta`, in (0, 0.5]; 0.5 rounds to the nearest level, lower widens the zone that becomes zero.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 0.5))]
    pub dead_zone: f64,
}

impl Default for Ecsq {
    fn default() -> Self {
        Self { step: 2.0, dead_zone: 0.5 }
    }
}

impl Named for Ecsq {
    const NAME: &'static str = "ecsq";
    const EXAMPLE: &'static str = "step = 1.0";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "step", mildest: 0.01, harshest: 1000.0, whole: false, instead_of: &[] });
}

/// A 16-bit float that is finite; by way of 32 bits, where every machine rounds alike.
fn half(value: f64) -> f16 {
    f16::from_f32(value as f32).clamp(f16::MIN, f16::MAX)
}

impl Ecsq {
    /// The levels of magnitudes in units of the root mean square.
    fn levels(&self, magnitudes: &[f64]) -> Vec<i32> {
        // Halves go to the smaller level.
        let level = |magnitude: &f64| (magnitude / self.step + self.dead_zone - 1.0).ceil().max(0.0) as i32;
        let mut levels: Vec<i32> = magnitudes.iter().map(level).collect();
        if levels.iter().all(|&level| level == 0) {
            let largest = (0..levels.len()).reduce(|a, b| if magnitudes[b] > magnitudes[a] { b } else { a });
            levels[largest.expect("parts are not empty")] = 1;
        }
        levels
    }
}

impl Operator for Ecsq {
    fn compress(&self, x: &[f32], _: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let rms = scale(root_mean_square(x))?;
        payload.push(Section::Floats(vec![rms]));
        if rms == 0.0 {
            return Ok(());
        }
        let magnitudes: Vec<f64> = x.iter().map(|value| f64::from(value.abs()) / f64::from(rms)).collect();
        let mut values = self.levels(&magnitudes);
        // Sum and number of the magnitudes on levels 1 and 2, and of the distances from larger levels.
        let mut groups = [(0.0, 0.0); 3];
        for (magnitude, &level) in magnitudes.iter().zip(&values).filter(|(_, level)| **level > 0) {
            let group = &mut groups[(level as usize).min(3) - 1];
            group.0 += if level > 2 { magnitude - self.step * f64::from(level) } else { *magnitude };
            group.1 += 1.0;
        }
        payload.push(Section::Halves(groups.map(|(sum, count): (f64, f64)| half(sum / count.max(1.0))).to_vec()));
        values.iter_mut().zip(x).filter(|(_, x)| **x < 0.0).for_each(|(level, _)| *level = -*level);
        payload.push(Section::Levels { values, largest: None, trellis: None });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let rms = f64::from(read_scale(source)?);
        if rms == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        let mut halves = [f16::ZERO; 3];
        source.halves(&mut halves)?;
        let [first, second, shift] = halves.map(f64::from);
        if !(first >= 0.0 && second >= 0.0 && first.is_finite() && second.is_finite() && shift.is_finite()) {
            return Err(Corrupt("the means of levels are negative or not finite"));
        }
        let levels = source.levels(out.len(), None)?;
        for (value, level) in out.iter_mut().zip(levels) {
            let magnitude = match level.unsigned_abs() {
                0 => 0.0,
                1 => first,
                2 => second,
                level => self.step * f64::from(level) + shift,
            };
            *value = ((rms * magnitude * f64::from(level.signum())) as f32).clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        // With m >= 2 nonzero levels, all of them at least as large as the rest, 3/4 of m/n of the energy is kept: more
        // than 1/n.
        Class::Contractive((1.0 - 1.0 / 1_048_576.0) / n as f64)
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Halves, Kind::UnboundedLevels]
    }

    fn default_coder(&self) -> &'static str {
        "adaptive"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{error, error_at_rate, example, payload, wire_bits},
        vectors,
    };

    fn nearest(step: f64) -> Ecsq {
        Ecsq { step, dead_zone: 0.5 }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let (decoded, bits) = example(&nearest(1.0), "bitmap", &[2.0, -2.0, 0.0, 0.0]);
        assert_eq!(bits, 32 + 48 + 3 + 4 + 2 + 2);
        assert!((decoded[0] - 2.0).abs() < 1e-3 && decoded[1] == -decoded[0] && decoded[2..] == [0.0, 0.0]);
    }

    #[test]
    fn bits_and_errors_are_those_of_the_specification() {
        // spec 5.16, d = 1000: step, then bits a value and NMSE on G, L, T
        let table = [
            (0.5, [(3.187, 0.02042), (3.094, 0.01995), (3.096, 0.02029)]),
            (1.0, [(2.215, 0.07711), (2.134, 0.07190), (2.143, 0.07438)]),
            (2.0, [(1.345, 0.25471), (1.231, 0.22952), (1.219, 0.24339)]),
            (3.0, [(0.808, 0.49705), (0.771, 0.39987), (0.725, 0.42503)]),
        ];
        for (step, expected) in table {
            for (x, (bits, nmse)) in [vectors::g(1000), vectors::l(1000), vectors::t(1000)].iter().zip(expected) {
                let error = error(&nearest(step), x);
                assert!((error / nmse - 1.0).abs() < 1e-3, "step = {step}: {error} for {nmse}");
                let sent = wire_bits(&nearest(step), "adaptive", x) as f64 / 1000.0;
                // The specification counts 16 bits for the end of a message; we take fewer.
                assert!((bits - 0.017..1.001 * bits).contains(&sent), "step = {step}: {sent} for {bits}");
            }
        }
    }

    #[test]
    fn errors_at_equal_bits_are_those_of_the_ranked_table() {
        // spec 6.1, d = 10,000: bits a value, then NMSE on G, L, T; at 2 bits on T the specification's sweep is too
        // coarse (0.0796), and the figure is that of an independent NumPy computation.
        let table = [
            (0.1, [0.918, 0.845, 0.794]),
            (0.5, [0.624, 0.494, 0.480]),
            (1.0, [0.353, 0.268, 0.273]),
            (2.0, [0.0906, 0.0753, 0.0771]),
            (4.0, [0.0058, 0.0049, 0.0049]),
        ];
        for (rate, expected) in table {
            for (x, expected) in [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)].iter().zip(expected) {
                let error = error_at_rate(&nearest, (0.01, 100.0), "adaptive", x, rate, 1);
                assert!((error - expected).abs() < 0.02 * expected + 5e-5, "{rate}: {error} for {expected}");
            }
        }
    }

    #[test]
    fn the_largest_value_is_never_lost_and_halves_go_down() {
        let (decoded, _) = example(&nearest(50.0), "adaptive", &[1.0, -3.0, 2.0, -3.0]);
        assert_eq!(decoded[0], 0.0);
        assert!((decoded[1] + 3.0).abs() < 2e-3 && decoded[2..] == [0.0, 0.0]);
        let levels = |theta, magnitudes: &[f64]| Ecsq { step: 1.0, dead_zone: theta }.levels(magnitudes);
        assert_eq!(levels(0.5, &[0.0, 0.5, 0.6, 1.5, 1.6]), [0, 0, 1, 1, 2]);
        assert_eq!(levels(0.25, &[0.0, 0.6, 0.8, 1.6, 1.8]), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn values_are_stable_across_versions() {
        let payload = payload(&nearest(0.5), &[1.0, -2.0, 2.0, 0.25, 0.0, 4.0]);
        let levels = Section::Levels { values: vec![1, -2, 2, 0, 0, 4], largest: None, trellis: None };
        assert_eq!(payload.sections[2], levels);
        let halves = [0.489_257_8, 0.978_515_6, -0.042_846_68].map(half).to_vec();
        assert_eq!(payload.sections[1], Section::Halves(halves));
    }
}
