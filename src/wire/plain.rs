//! What range coders write without learning: floats, numbers below a limit, integers, waits.

use half::f16;

use super::{
    bits::{below_limit, fixed_width},
    integer::Golomb,
    range::{RangeDecoder, RangeEncoder},
    sparse::bounded_wait,
};
use crate::payload::Corrupt;

/// Encodes floats by their bits.
pub fn put_floats(encoder: &mut RangeEncoder, values: &[f32]) {
    values.iter().for_each(|value| encoder.raw(u64::from(value.to_bits()), 32));
}

/// Decodes floats.
pub fn get_floats(decoder: &mut RangeDecoder<'_>, out: &mut [f32]) {
    out.iter_mut().for_each(|value| *value = f32::from_bits(decoder.raw(32) as u32));
}

/// Encodes 16-bit floats by their bits.
pub fn put_halves(encoder: &mut RangeEncoder, values: &[f16]) {
    values.iter().for_each(|value| encoder.raw(u64::from(value.to_bits()), 16));
}

/// Decodes 16-bit floats.
pub fn get_halves(decoder: &mut RangeDecoder<'_>, out: &mut [f16]) {
    out.iter_mut().for_each(|value| *value = f16::from_bits(decoder.raw(16) as u16));
}

/// Encodes a number below `below` in whole bits.
pub fn put_number(encoder: &mut RangeEncoder, value: u32, below: u32) {
    encoder.raw(u64::from(value), fixed_width(u64::from(below)));
}

/// Decodes a number below `below`.
pub fn get_number(decoder: &mut RangeDecoder<'_>, below: u32) -> Result<u32, Corrupt> {
    below_limit(decoder.raw(fixed_width(u64::from(below))), below)
}

/// Encodes `n` from 1 to `2^33 - 1` in the Elias gamma code.
pub fn put_gamma(encoder: &mut RangeEncoder, n: u64) {
    let below = n.ilog2();
    (0..below).for_each(|_| encoder.raw(1, 1));
    encoder.raw(0, 1);
    encoder.raw(n ^ 1 << below, below);
}

/// Decodes an Elias gamma code.
pub fn get_gamma(decoder: &mut RangeDecoder<'_>) -> Result<u64, Corrupt> {
    let mut below = 0;
    while decoder.raw(1) == 1 {
        below += 1;
        if below > 32 {
            return Err(TOO_LARGE);
        }
    }
    Ok(1 << below | decoder.raw(below))
}

/// Encodes `n` from 1 to `2^33 - 1` in the Elias delta code.
pub fn put_delta(encoder: &mut RangeEncoder, n: u64) {
    let below = n.ilog2();
    put_gamma(encoder, u64::from(below) + 1);
    encoder.raw(n ^ 1 << below, below);
}

/// Decodes an Elias delta code.
pub fn get_delta(decoder: &mut RangeDecoder<'_>) -> Result<u64, Corrupt> {
    match get_gamma(decoder)? - 1 {
        below @ 0..=32 => Ok(1 << below | decoder.raw(below as u32)),
        _ => Err(TOO_LARGE),
    }
}

const TOO_LARGE: Corrupt = Corrupt("an integer is too large");

/// Encodes waits in the Golomb code for their probability of success.
pub fn put_waits(encoder: &mut RangeEncoder, values: &[u64], success: f64) {
    let code = Golomb::for_success(success);
    for &wait in values {
        let (quotient, rest, width) = code.split(wait - 1);
        (0..quotient).for_each(|_| encoder.raw(1, 1));
        encoder.raw(0, 1);
        // Bit by bit, because the decoder learns only on the way how many there are.
        (0..width).rev().for_each(|i| encoder.raw(rest >> i & 1, 1));
    }
}

/// Decodes `n` waits of at most `most`.
pub fn get_waits(decoder: &mut RangeDecoder<'_>, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
    let code = Golomb::for_success(success);
    let wait = |_| {
        let mut quotient = 0;
        while decoder.raw(1) == 1 {
            quotient += 1;
            if quotient > most / code.parameter() {
                return Err(Corrupt("a wait is out of range"));
            }
        }
        let bits = |width| Ok((0..width).fold(0, |word, _| word << 1 | decoder.raw(1)));
        bounded_wait(code.join(quotient, most, bits)? + 1, most)
    };
    (0..n).map(wait).collect()
}
