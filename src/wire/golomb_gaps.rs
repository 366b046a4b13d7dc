//! Sparse sections whose gaps are Golomb codes.

use super::{
    bits::{BitReader, BitWriter},
    integer::Golomb,
    sparse::{SparseCode, bounded_wait, get_gaps, put_gaps},
};
use crate::payload::Corrupt;

/// The sparse code whose parameter follows by given rules.
#[derive(Clone, Copy)]
pub struct GolombGaps {
    /// From the density `k/n` of a set.
    pub for_density: fn(u64, u64) -> Golomb,
    /// From the probability that a trial succeeds.
    pub for_success: fn(f64) -> Golomb,
}

impl SparseCode for GolombGaps {
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32) {
        if at.len() < n as usize {
            let code = (self.for_density)(at.len() as u64, n.into());
            put_gaps(at, |gap| code.put(writer, gap - 1));
        }
    }

    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k == n as usize {
            return Ok((0..n).collect());
        }
        let code = (self.for_density)(k as u64, n.into());
        get_gaps(k, n, |most| Ok(code.get(reader, most)? + 1))
    }

    fn put_wait(self, writer: &mut BitWriter, wait: u64, success: f64) {
        (self.for_success)(success).put(writer, wait - 1);
    }

    fn get_wait(self, reader: &mut BitReader<'_>, success: f64, most: u64) -> Result<u64, Corrupt> {
        bounded_wait((self.for_success)(success).get(reader, most)? + 1, most)
    }
}
