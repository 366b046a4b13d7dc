//! One bit a position.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    bits::{BitReader, BitWriter},
    integer::{get_unary, put_unary},
    sparse::{ALL_BUT_SYMBOLS, SparseCode, SparseReader, SparseWriter, get_signs},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind},
};

/// One bit a position, set where the position is in the set.
///
/// # Bits
/// Positions: `n`, whatever the number of set ones (none for the full set).
/// Levels: their number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits, magnitudes in unary (nothing where
/// only 1 is possible). Waits in unary.
///
/// # Writes
/// Everything but symbols.
///
/// # Source
/// Folklore.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bitmap {}

impl Named for Bitmap {
    const NAME: &'static str = "bitmap";
}

impl Coder for Bitmap {
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

impl SparseCode for Bitmap {
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32) {
        if at.len() == n as usize {
            return;
        }
        let mut next = 0;
        for &position in at {
            (next..position).for_each(|_| writer.put(0, 1));
            writer.put(1, 1);
            next = position + 1;
        }
        (next..n).for_each(|_| writer.put(0, 1));
    }

    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k == n as usize {
            return Ok((0..n).collect());
        }
        let set = get_signs(reader, n as usize)?;
        let at: Vec<u32> = (0..n).filter(|&i| set[i as usize]).collect();
        if at.len() == k { Ok(at) } else { Err(Corrupt("a set has another size than it should")) }
    }

    fn put_wait(self, writer: &mut BitWriter, wait: u64, _success: f64) {
        put_unary(writer, wait);
    }

    fn get_wait(self, reader: &mut BitReader<'_>, _success: f64, most: u64) -> Result<u64, Corrupt> {
        get_unary(reader, most)
    }
}
