//! Powers of two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, rounding::map_with_noise};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source},
};

/// Rounds every magnitude at random to one of the two neighbouring powers of two, without bias.
///
/// # Formula
/// `C(t) = sign(t) 2^e` with `2^e <= |t| <= 2^(e+1)`, or `sign(t) 2^(e+1)` with probability `(|t| - 2^e) / 2^e`. Zero stays zero. On
/// 32-bit floats: sign and exponent stay, and the exponent grows by one with probability mantissa / 2^23.
///
/// # Bits
/// 9 a value with the fixed coder: a sign and one of 256 exponents; there is no norm. The adaptive coder learns the exponents.
///
/// # Bound
/// Unbiased, `omega = 1/8`, attained at `|t| = (4/3) 2^e`.
///
/// # Source
/// Horvath et al., *Natural Compression for Distributed Deep Learning*, 2019, section 2. Differs from the source in: values from
/// `2^127` up keep their exponent instead of becoming infinite, and magnitudes below `2^-126` round to zero or to `2^-126`.
///
/// # Example
/// `x = (4, -1, 0.5, 0)` gives `(4, -1, 0.5, 0)` in 36 bits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Natural {}

impl Named for Natural {
    const NAME: &'static str = "natural";
}

/// The largest exponent of a finite float.
const LARGEST: u16 = 254;

/// Sends the signs and the rounded exponents of `x`.
pub(super) fn put(x: &[f32], part: &Part<'_>, payload: &mut Payload) {
    let values = map_with_noise(
        x,
        &part.streams,
        #[inline(always)]
        move |value, noise| {
            let bits = value.to_bits();
            let (exponent, mantissa) = ((bits >> 23 & 0xff) as u16, bits & 0x7f_ffff);
            // For subnormals the mantissa counts steps of 2^-149 towards 2^-126, which the same rule rounds.
            (exponent + u16::from(noise >> 9 < mantissa)).min(LARGEST)
        },
    );
    payload.push(Section::Signs(x.iter().map(|value| *value < 0.0).collect()));
    payload.push(Section::Symbols { values, alphabet: 256 });
}

/// Restores what [`put`] sent to all of `out`.
pub(super) fn get(source: &mut dyn Source, out: &mut [f32]) -> Result<(), Corrupt> {
    let signs = source.signs(out.len())?;
    let exponents = source.symbols(out.len(), 256)?;
    for ((value, negative), exponent) in out.iter_mut().zip(signs).zip(exponents) {
        if exponent > LARGEST {
            return Err(Corrupt("an exponent stands for no finite number"));
        }
        // Exponent 0 with an empty mantissa is zero.
        *value = f32::from_bits(u32::from(negative && exponent > 0) << 31 | u32::from(exponent) << 23);
    }
    Ok(())
}

impl Operator for Natural {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        put(x, part, payload);
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        get(source, out)
    }

    fn class(&self, _n: usize) -> Class {
        Class::Unbiased(0.125)
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Signs, Kind::Symbols]
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
            laws::{assert_mean_error, example, mean_bits, rounding_error, wire_bits},
            vectors,
        },
        vector::norm_squared,
    };

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&Natural {}, "fixed", &[4.0, -1.0, 0.5, 0.0]), (vec![4.0, -1.0, 0.5, 0.0], 36));
    }

    #[test]
    fn errors_and_entropies_are_those_of_the_specification() {
        // spec 5.8, d = 1000: vNMSE, and entropy of sign and exponent in bits a value
        let table = [
            (vectors::g(1000), 0.081982, 3.54),
            (vectors::l(1000), 0.082175, 3.83),
            (vectors::t(1000), 0.081642, 3.70),
        ];
        for (x, expected, entropy) in table {
            let exact =
                rounding_error(&x, |v| v.log2().floor().exp2(), |v| 2.0 * v.log2().floor().exp2()) / norm_squared(&x);
            assert!((exact - expected).abs() < 2e-6, "{exact} for {expected}");
            assert_mean_error(&Natural {}, &x, exact);
            assert_eq!(wire_bits(&Natural {}, "fixed", &x), 9000);
            // The adaptive coder pays for learning 255 contexts over 1000 values on top of the entropy.
            let (bits, _) = mean_bits(&Natural {}, "adaptive", &x, 50);
            assert!(bits / 1000.0 > entropy - 0.05 && bits / 1000.0 < entropy + 0.25, "{bits} for {entropy}");
        }
    }

    #[test]
    fn the_ends_of_the_range_stay_finite() {
        let x = [f32::MAX, f32::MIN, 1.5 * 2f32.powi(-127), f32::from_bits(1), -f32::from_bits(1)];
        let (decoded, _) = example(&Natural {}, "fixed", &x);
        assert_eq!(decoded[..2], [2f32.powi(127), -(2f32.powi(127))]);
        for value in &decoded[2..] {
            assert!([0.0, f32::MIN_POSITIVE].contains(&value.abs()), "{value:e}");
        }
        assert!(decoded.iter().all(|value| *value != 0.0 || value.is_sign_positive()));
    }
}
