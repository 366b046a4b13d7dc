//! No compression.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source},
};

/// Sends every value as a 32-bit float.
///
/// # Formula
/// `C(x) = x`.
///
/// # Bits
/// `32 n` with any coder.
///
/// # Bound
/// Exact.
///
/// # Source
/// The baseline of every paper. Differs from the source in: nothing.
///
/// # Example
/// `x = (3, -1, 2, 0)` gives `(3, -1, 2, 0)` in 128 bits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {}

impl Named for Identity {
    const NAME: &'static str = "identity";
}

impl Operator for Identity {
    fn compress(&self, x: &[f32], _: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        payload.push(Section::Floats(x.to_vec()));
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        source.floats(out)
    }

    fn class(&self, _n: usize) -> Class {
        Class::Exact
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::laws::example;

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&Identity {}, "fixed", &[3.0, -1.0, 2.0, 0.0]), (vec![3.0, -1.0, 2.0, 0.0], 128));
    }
}
