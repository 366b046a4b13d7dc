//! Signs and one scale.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, read_scale, scale};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::l1,
};

/// Sends the signs and the mean magnitude: scaled sign.
///
/// # Formula
/// `C(x)_i = (|x|_1 / n) sign(x_i)` with `sign(0) = +1`.
///
/// # Bits
/// `n + 32` with every coder that writes signs. A part of zeros is 32 bits.
///
/// # Bound
/// Contractive, `a = |x|_1^2 / (n |x|_2^2)`, which is at least `1/n`; for Gaussian vectors `2/pi`.
///
/// # Source
/// Karimireddy et al., *Error Feedback Fixes SignSGD*, 2019. Differs from the source in: exact zeros are sent as plus.
///
/// # Example
/// `x = (3, -1, 2, 0)` gives `(1.5, -1.5, 1.5, 1.5)` in 36 bits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sign {}

impl Named for Sign {
    const NAME: &'static str = "sign";
}

impl Operator for Sign {
    fn compress(&self, x: &[f32], _: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let mean = scale(l1(x) / x.len() as f64)?;
        payload.push(Section::Floats(vec![mean]));
        if mean > 0.0 {
            payload.push(Section::Signs(x.iter().map(|&value| value < 0.0).collect()));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let mean = read_scale(source)?;
        if mean == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        let signs = source.signs(out.len())?;
        for (value, negative) in out.iter_mut().zip(signs) {
            *value = if negative { -mean } else { mean };
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        if n == 1 { Class::Exact } else { Class::Contractive(1.0 / n as f64) }
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Signs]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{error, example, wire_bits},
        vectors,
    };

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&Sign {}, "fixed", &[3.0, -1.0, 2.0, 0.0]), (vec![1.5, -1.5, 1.5, 1.5], 36));
    }

    #[test]
    fn errors_are_those_of_the_specification() {
        // spec 5.12, d = 1000
        for (x, expected) in [(vectors::g(1000), 0.362833), (vectors::l(1000), 0.497769), (vectors::t(1000), 0.485244)]
        {
            assert!((error(&Sign {}, &x) - expected).abs() < 1e-6);
            assert_eq!(wire_bits(&Sign {}, "fixed", &x), 1032);
        }
    }
}
