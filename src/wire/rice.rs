//! Rice codes of gaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    golomb_gaps::GolombGaps,
    integer,
    sparse::{ALL_BUT_SYMBOLS, SparseReader, SparseWriter},
};
use crate::{catalogue::Named, payload::Kind};

/// Gaps in the Golomb code whose parameter is the power of two nearest to `ln 2 / p` for the density `p = k/n`.
///
/// # Bits
/// Positions: for every gap less one, the quotient in unary and the remainder in `log2` of the parameter.
/// Levels: their number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits, magnitudes in unary (nothing where
/// only 1 is possible). Waits: as gaps, by the probability of success.
///
/// # Writes
/// Everything but symbols.
///
/// # Source
/// Rice, *Some practical universal noiseless coding techniques*, 1979.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rice {}

impl Named for Rice {
    const NAME: &'static str = "rice";
}

impl Coder for Rice {
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
    GolombGaps { for_density: integer::Golomb::rice_for_density, for_success: integer::Golomb::rice_for_success };
