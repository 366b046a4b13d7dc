//! Sparse sections under one of the Elias codes: gaps, counts, magnitudes and symbols all by the same integer code.

use std::marker::PhantomData;

use super::{
    bits::{BitReader, BitWriter},
    integer::IntegerCode,
    sparse::{SparseCode, bounded_wait, get_gaps, put_gaps},
};
use crate::payload::Corrupt;

/// The sparse code that writes every integer with `C`.
#[derive(Debug)]
pub struct Elias<C>(PhantomData<fn() -> C>);

impl<C> Elias<C> {
    /// The code.
    pub const CODE: Self = Self(PhantomData);
}

impl<C> Clone for Elias<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Elias<C> {}

impl<C: IntegerCode + 'static> SparseCode for Elias<C> {
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32) {
        if at.len() < n as usize {
            put_gaps(at, |gap| C::put(writer, gap));
        }
    }

    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k == n as usize { Ok((0..n).collect()) } else { get_gaps(k, n, |_| C::get(reader)) }
    }

    fn put_count(self, writer: &mut BitWriter, k: usize, _n: usize) {
        C::put(writer, k as u64 + 1);
    }

    fn get_count(self, reader: &mut BitReader<'_>, _n: usize) -> Result<usize, Corrupt> {
        Ok(C::get(reader)? as usize - 1)
    }

    fn put_magnitude(self, writer: &mut BitWriter, magnitude: u32, _largest: Option<u32>) {
        C::put(writer, u64::from(magnitude));
    }

    fn get_magnitude(self, reader: &mut BitReader<'_>, _largest: Option<u32>) -> Result<u64, Corrupt> {
        C::get(reader)
    }

    fn put_wait(self, writer: &mut BitWriter, wait: u64, _success: f64) {
        C::put(writer, wait);
    }

    fn get_wait(self, reader: &mut BitReader<'_>, _success: f64, most: u64) -> Result<u64, Corrupt> {
        bounded_wait(C::get(reader)?, most)
    }

    fn put_symbol(self, writer: &mut BitWriter, symbol: u16, _alphabet: u32) {
        C::put(writer, u64::from(symbol) + 1);
    }

    fn get_symbol(self, reader: &mut BitReader<'_>, _alphabet: u32) -> Result<u64, Corrupt> {
        Ok(C::get(reader)? - 1)
    }
}
