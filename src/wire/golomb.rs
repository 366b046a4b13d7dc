//! Golomb codes of gaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    golomb_gaps::GolombGaps,
    integer,
    sparse::{ALL_BUT_SYMBOLS, SparseReader, SparseWriter},
};
use crate::{catalogue::Named, payload::Kind};

/// Gaps in the Golomb code whose parameter is best for the density `k/n`, which both ends know.
///
/// # Bits
/// Positions: for every gap less one, the quotient in unary and the remainder in truncated binary.
/// Levels: their number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits, magnitudes in unary (nothing where
/// only 1 is possible). Waits: as gaps, by the probability of success.
///
/// # Writes
/// Everything but symbols.
///
/// # Source
/// Golomb, *Run-length encodings*, 1966; parameter by Gallager and van Voorhis, 1975.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Golomb {}

impl Named for Golomb {
    const NAME: &'static str = "golomb";
}

impl Coder for Golomb {
    fn kinds(&self) -> &'static [Kind] {
        ALL_BUT_SYMBOLS
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SparseWriter::new(CODE))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SparseReader::new(CODE, bytes))
    }
}

const CODE: GolombGaps =
    GolombGaps { for_density: integer::Golomb::for_density, for_success: integer::Golomb::for_success };
