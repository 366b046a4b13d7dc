//! Unary codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, EVERYTHING, MessageReader, MessageWriter,
    bits::{BitReader, BitWriter},
    integer::{get_unary, put_unary},
    sparse::{SparseCode, SparseReader, SparseWriter, get_gaps, put_gaps},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind},
};

/// Gaps, magnitudes, symbols and waits in unary: `n` is `n - 1` ones and a zero.
///
/// # Bits
/// Positions: the last one and 1 (nothing for the full set). Levels: their number of nonzero ones in
/// `ceil(log2(n + 1))`, where they are, sign bits, the sum of their magnitudes (nothing where only 1 is possible). A symbol `s` takes
/// `s + 1`, a wait itself.
///
/// # Writes
/// Everything.
///
/// # Source
/// Folklore; the code of the levels of Albasyoni et al., *Optimal gradient compression*, 2020.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unary {}

impl Named for Unary {
    const NAME: &'static str = "unary";
}

impl Coder for Unary {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SparseWriter::new(*self))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SparseReader::new(*self, bytes))
    }
}

impl SparseCode for Unary {
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32) {
        if at.len() < n as usize {
            put_gaps(at, |gap| put_unary(writer, gap));
        }
    }

    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k == n as usize { Ok((0..n).collect()) } else { get_gaps(k, n, |most| get_unary(reader, most)) }
    }

    fn put_symbol(self, writer: &mut BitWriter, symbol: u16, _alphabet: u32) {
        put_unary(writer, u64::from(symbol) + 1);
    }

    fn get_symbol(self, reader: &mut BitReader<'_>, alphabet: u32) -> Result<u64, Corrupt> {
        Ok(get_unary(reader, alphabet.into())? - 1)
    }

    fn put_wait(self, writer: &mut BitWriter, wait: u64, _success: f64) {
        put_unary(writer, wait);
    }

    fn get_wait(self, reader: &mut BitReader<'_>, _success: f64, most: u64) -> Result<u64, Corrupt> {
        get_unary(reader, most)
    }
}
