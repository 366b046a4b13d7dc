//! Elias gamma codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, EVERYTHING, MessageReader, MessageWriter,
    elias::Elias,
    integer::Gamma,
    sparse::{SparseReader, SparseWriter},
};
use crate::{catalogue::Named, payload::Kind};

/// Gaps, counts and magnitudes in the Elias gamma code.
///
/// # Bits
/// Positions: the code of every gap, the first one counted from -1. Levels: the code of (number of nonzero ones + 1), then for
/// each of them gap, sign bit and magnitude. Symbols: the code of (symbol + 1). `n` takes `2 floor(log2 n) + 1`.
///
/// # Writes
/// Everything.
///
/// # Source
/// Elias, *Universal codeword sets and representations of the integers*, 1975.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EliasGamma {}

impl Named for EliasGamma {
    const NAME: &'static str = "elias-gamma";
}

impl Coder for EliasGamma {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SparseWriter::new(Elias::<Gamma>::CODE))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SparseReader::new(Elias::<Gamma>::CODE, bytes))
    }
}
