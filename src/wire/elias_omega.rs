//! Elias omega codes of the nonzero levels: the sparse code of QSGD.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, EVERYTHING, MessageReader, MessageWriter,
    elias::Elias,
    integer::Omega,
    sparse::{SparseReader, SparseWriter},
};
use crate::{catalogue::Named, payload::Kind};

/// Gaps, counts and magnitudes in the Elias omega code: the sparse code of QSGD.
///
/// # Bits
/// Positions: the code of every gap, the first one counted from -1. Levels: the code of (number of nonzero ones + 1), then for
/// each of them gap, sign bit and magnitude. Symbols: the code of (symbol + 1). `n` takes 1, 3, 3, 6, 6, 6, 6, 7
/// bits for 1 to 8.
///
/// # Writes
/// Everything.
///
/// # Source
/// Elias, *Universal codeword sets and representations of the integers*, 1975; Alistarh et al.,
/// *QSGD*, 2017, section 3. Differs from the source in: the number of nonzero levels is sent first, where the paper leaves
/// the end of the list implicit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EliasOmega {}

impl Named for EliasOmega {
    const NAME: &'static str = "elias-omega";
}

impl Coder for EliasOmega {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SparseWriter::new(Elias::<Omega>::CODE))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SparseReader::new(Elias::<Omega>::CODE, bytes))
    }
}
