//! Uniform levels shifted by noise that both ends know.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, read_scale, scale};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64,
    vector::root_mean_square,
};

/// Rounds every value after adding noise that both ends draw alike, which the receiver takes away again.
///
/// # Formula
/// `k_i = floor(x_i / D + v_i + 1/2)`, `C(x)_i = D (k_i - v_i)`, with `D = Delta rms` and `v_i` uniform in [-1/2, 1/2)
/// from the shared stream of the message. `rms` is the root mean square as the 32-bit float that is sent.
///
/// # Bits
/// 32 and the code of unbounded levels: about their entropy with the adaptive coder (the default). A part of zeros is
/// 32 bits.
///
/// # Bound
/// Unbiased, `omega = Delta^2 / 12`, attained by every vector: the error is uniform and independent of `x`. Good from
/// about 2 bits a value up.
///
/// # Source
/// Schuchman, *Dither signals and their effect on quantization noise*, 1964. Differs from the source in: nothing.
///
/// # Example
/// `x = (1, -2, 2, 0)`, `step = 1` has `D = 1.5` and is off by at most 0.75 everywhere.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SubtractiveDither {
    /// Distance `Delta` of levels in units of the root mean square, at least 0.0001; higher is more aggressive.
    #[schemars(range(min = 1e-4))]
    pub step: f64,
}

impl Default for SubtractiveDither {
    fn default() -> Self {
        Self { step: 1.0 }
    }
}

impl Named for SubtractiveDither {
    const NAME: &'static str = "subtractive-dither";
    const EXAMPLE: &'static str = "step = 1.0";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "step", mildest: 0.01, harshest: 100.0, whole: false, instead_of: &[] });
}

/// The noise of this message, in steps.
fn dither(part: &Part<'_>) -> impl FnMut() -> f64 {
    let mut generator = part.streams.shared();
    move || unit_f64(generator.next_u64()) - 0.5
}

impl Operator for SubtractiveDither {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let rms = scale(root_mean_square(x))?;
        payload.push(Section::Floats(vec![rms]));
        if rms == 0.0 {
            return Ok(());
        }
        let (step, mut noise) = (self.step * f64::from(rms), dither(part));
        let values = x.iter().map(|value| (f64::from(*value) / step + noise() + 0.5).floor() as i32).collect();
        payload.push(Section::Levels { values, largest: None, trellis: None });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let rms = read_scale(source)?;
        if rms == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        let (step, mut noise) = (self.step * f64::from(rms), dither(part));
        let levels = source.levels(out.len(), None)?;
        for (value, level) in out.iter_mut().zip(levels) {
            *value = ((step * (f64::from(level) - noise())) as f32).clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, _n: usize) -> Class {
        Class::Unbiased(self.step * self.step / 12.0)
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::UnboundedLevels]
    }

    fn default_coder(&self) -> &'static str {
        "adaptive"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{assert_mean_error, error_at_rate, example},
        vectors,
    };

    fn with(step: f64) -> SubtractiveDither {
        SubtractiveDither { step }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let x = [1.0, -2.0, 2.0, 0.0];
        let (decoded, _) = example(&with(1.0), "adaptive", &x);
        assert!(decoded.iter().zip(x).all(|(out, x)| (out - x).abs() <= 0.75), "{decoded:?}");
    }

    #[test]
    fn the_error_is_that_of_a_uniform_variable_for_every_vector() {
        let mut one_hot = vec![0.0; 1000];
        one_hot[3] = 1.0;
        for x in [vectors::g(1000), vectors::t(1000), one_hot] {
            for step in [0.3, 1.0, 3.0] {
                assert_mean_error(&with(step), &x, step * step / 12.0);
            }
        }
    }

    #[test]
    fn errors_at_equal_bits_are_those_of_the_ranked_table() {
        // spec 6.2, d = 10,000: bits a value, then vNMSE on G, L, T
        let table = [(1.0, [1.04, 0.850, 0.866]), (2.0, [0.109, 0.0978, 0.0958]), (4.0, [0.0058, 0.0050, 0.0049])];
        for (rate, expected) in table {
            for (x, expected) in [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)].iter().zip(expected) {
                let error = error_at_rate(&with, (0.01, 100.0), "adaptive", x, rate, 5);
                assert!((error / expected - 1.0).abs() < 0.03, "{rate}: {error} for {expected}");
            }
        }
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, _) = example(&with(1.0), "adaptive", &[1.0, -1.0, 1.0, -1.0]);
        assert_eq!(decoded, STABLE);
    }

    const STABLE: [f32; 4] = [0.977_746_96, -0.812_221_8, 1.107_361_1, -1.383_714];
}
