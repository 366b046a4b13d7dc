//! Sparse sections whose gaps are Golomb codes.

use super::{
    bits::{BitReader, BitWriter},
    integer::Golomb,
    sparse::{SparseCode, get_gaps, put_gaps},
};
use crate::payload::Corrupt;

/// The sparse code whose parameter follows from the density `k/n` by a given rule.
#[derive(Clone, Copy)]
pub struct GolombGaps(pub fn(u64, u64) -> Golomb);

impl SparseCode for GolombGaps {
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32) {
        if at.len() < n as usize {
            let code = (self.0)(at.len() as u64, n.into());
            put_gaps(at, |gap| code.put(writer, gap - 1));
        }
    }

    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k == n as usize {
            return Ok((0..n).collect());
        }
        let code = (self.0)(k as u64, n.into());
        get_gaps(k, n, |most| Ok(code.get(reader, most)? + 1))
    }
}
