//! Rice codes of gaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    bits::{BitReader, BitWriter},
    integer,
    sparse::{ALL_BUT_SYMBOLS, SparseCode, SparseReader, SparseWriter, get_gaps, put_gaps},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind},
};

/// Gaps in the Golomb code whose parameter is the power of two nearest to `ln 2 / p` for the density `p = k/n`.
///
/// # Bits
/// Positions: for every gap less one, the quotient in unary and the remainder in `log2` of the parameter.
/// Levels: their number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits, magnitudes in unary (nothing where
/// only 1 is possible).
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
        Box::new(SparseWriter::new(*self))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SparseReader::new(*self, bytes))
    }
}

impl SparseCode for Rice {
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32) {
        if at.len() < n as usize {
            let code = integer::Golomb::rice_for_density(at.len() as u64, n.into());
            put_gaps(at, |gap| code.put(writer, gap - 1));
        }
    }

    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k == n as usize {
            return Ok((0..n).collect());
        }
        let code = integer::Golomb::rice_for_density(k as u64, n.into());
        get_gaps(k, n, |most| Ok(code.get(reader, most)? + 1))
    }
}
