//! Random signs with a common magnitude.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, read_scale, rounding::map_with_noise};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64_of_32,
    vector::{linf, standard_deviation},
};

/// Rounds every value at random to zero or to plus or minus the largest magnitude, after clipping.
///
/// # Formula
/// `y = clip(x, -c sigma, c sigma)` with the standard deviation `sigma` of the part about its mean; `s = max |y_i|`;
/// `C(x)_i = s sign(y_i) b_i` where `b_i` is 1 with probability `|y_i| / s`. `clip = 0` leaves the clipping out.
///
/// # Bits
/// 32 for `s` and the code of `n` ternary levels: `2 n` with the fixed coder, about the entropy with the adaptive one. A part of
/// zeros is 32 bits.
///
/// # Bound
/// With `clip = 0` unbiased, `omega = (sqrt(n) - 1) / 2`. Otherwise unbiased for the clipped vector only, and there is no bound for
/// every vector; error feedback scales by `1 / (1 + omega)` all the same.
///
/// # Source
/// Wen et al., *TernGrad*, 2017. Differs from the source in: every sender has its own `s`.
///
/// # Example
/// `x = (2, -2, 0, 2)`, `clip = 0` gives `(2, -2, 0, 2)` in 40 bits with the fixed coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TernGrad {
    /// Clipping threshold `c` in standard deviations, at least 0; lower clips more, 0 does not clip.
    #[schemars(range(min = 0.0))]
    pub clip: f64,
}

impl Default for TernGrad {
    fn default() -> Self {
        Self { clip: 2.5 }
    }
}

impl Named for TernGrad {
    const NAME: &'static str = "terngrad";
    const EXAMPLE: &'static str = "clip = 0.0";
}

impl TernGrad {
    /// The largest magnitude that is left alone.
    fn threshold(&self, x: &[f32]) -> f32 {
        let threshold = if self.clip == 0.0 { f64::INFINITY } else { self.clip * standard_deviation(x) };
        // A constant part has no spread; clipping it would erase it.
        if threshold > 0.0 { threshold as f32 } else { f32::INFINITY }
    }
}

/// The largest ratio of `s |y|_1` to `|y|_2^2` over all vectors of `n` values is `(1 + sqrt n) / 2`.
fn omega(n: usize) -> f64 {
    ((n as f64).sqrt() - 1.0) / 2.0
}

impl Operator for TernGrad {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let largest = linf(x).min(self.threshold(x));
        payload.push(Section::Floats(vec![largest]));
        if largest == 0.0 {
            return Ok(());
        }
        let inverse = 1.0 / f64::from(largest);
        let values = map_with_noise(
            x,
            &part.streams,
            #[inline(always)]
            move |value, noise| {
                // The largest magnitude is always kept: its probability may not be rounded below one.
                let magnitude = value.abs();
                let kept = (magnitude >= largest) | (unit_f64_of_32(noise) < f64::from(magnitude) * inverse);
                if value < 0.0 { -i32::from(kept) } else { i32::from(kept) }
            },
        );
        payload.push(Section::Levels { values, largest: Some(1), trellis: None });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let largest = read_scale(source)?;
        if largest == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        let levels = source.levels(out.len(), Some(1))?;
        for (value, level) in out.iter_mut().zip(levels) {
            *value = largest * level as f32;
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        // Clipping is a bias, and one without a bound for every vector.
        if self.clip == 0.0 { Class::Unbiased(omega(n)) } else { Class::Unproven }
    }

    fn damping(&self, n: usize) -> Option<f64> {
        Some(1.0 / (1.0 + omega(n)))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Levels]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::{
            laws::{assert_mean_error, example, wire_bits},
            vectors,
        },
        vector::norm_squared,
    };

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let operator = TernGrad { clip: 0.0 };
        assert_eq!(example(&operator, "fixed", &[2.0, -2.0, 0.0, 2.0]), (vec![2.0, -2.0, 0.0, 2.0], 40));
    }

    #[test]
    fn errors_and_densities_are_those_of_the_specification() {
        // spec 5.10, d = 1000: error without clipping, with c = 2.5, density of the latter in %
        let table = [
            (vectors::g(1000), 1.62830, 1.00920, 31.8),
            (vectors::l(1000), 2.47170, 0.87512, 27.5),
            (vectors::t(1000), 3.44243, 0.94911, 27.7),
        ];
        for (x, unclipped, clipped, density) in table {
            for (clip, expected) in [(0.0, unclipped), (2.5, clipped)] {
                let operator = TernGrad { clip };
                let s = f64::from(linf(&x).min(operator.threshold(&x)));
                let magnitudes = x.iter().map(|v| f64::from(v.abs()));
                let variance: f64 = magnitudes.clone().map(|v| v.min(s) * (s - v.min(s))).sum();
                let bias: f64 = magnitudes.clone().map(|v| (v - v.min(s)).powi(2)).sum();
                let exact = (variance + bias) / norm_squared(&x);
                assert!((exact / expected - 1.0).abs() < 1e-4, "clip = {clip}: {exact} for {expected}");
                assert_mean_error(&operator, &x, exact);
                assert_eq!(wire_bits(&operator, "fixed", &x), 32 + 2000);
                let nonzero = magnitudes.map(|v| v.min(s) / s).sum::<f64>() / 10.0;
                if clip > 0.0 {
                    assert!((nonzero - density).abs() < 5e-2, "{nonzero}");
                }
            }
        }
    }

    #[test]
    fn a_constant_part_is_not_clipped_away() {
        let (decoded, _) = example(&TernGrad::default(), "fixed", &[0.5; 8]);
        assert_eq!(decoded, [0.5; 8]);
    }
}
