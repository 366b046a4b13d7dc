//! Elias delta codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, EVERYTHING, MessageReader, MessageWriter,
    elias::Elias,
    integer::Delta,
    sparse::{SparseReader, SparseWriter},
};
use crate::{catalogue::Named, payload::Kind};

/// Gaps, counts and magnitudes in the Elias delta code.
///
/// # Bits
/// Positions: the code of every gap, the first one counted from -1. Levels: the code of (number of nonzero ones + 1), then for
/// each of them gap, sign bit and magnitude. Symbols: the code of (symbol + 1). `n` takes
/// `floor(log2 n)` and the gamma code of `floor(log2 n) + 1`.
///
/// # Writes
/// Everything.
///
/// # Source
/// Elias, *Universal codeword sets and representations of the integers*, 1975.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EliasDelta {}

impl Named for EliasDelta {
    const NAME: &'static str = "elias-delta";
}

impl Coder for EliasDelta {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SparseWriter::new(Elias::<Delta>::CODE))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SparseReader::new(Elias::<Delta>::CODE, bytes))
    }
}
