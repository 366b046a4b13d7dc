//! Walks over a vector with a random number for every value: what operators that round at random share.

use crate::{
    rng::{Lanes, Streams},
    vector::vectorised,
};

/// Maps every value of `x` with 32 random bits of its own, from the private stream of the message.
#[inline(always)]
pub fn map_with_noise<T: Copy + Default>(x: &[f32], streams: &Streams, map: impl Fn(f32, u32) -> T) -> Vec<T> {
    let mut out = vec![T::default(); x.len()];
    let mut lanes = streams.private_lanes();
    fill_with_noise(x, &mut out, &mut lanes, map);
    out
}

/// The same into `out`, going on where `lanes` stand.
#[inline(always)]
pub fn fill_with_noise<T>(x: &[f32], out: &mut [T], lanes: &mut Lanes, map: impl Fn(f32, u32) -> T) {
    vectorised(
        #[inline(always)]
        || {
            let mut noise = [0; 16 * Lanes::WIDTH];
            for (x, out) in x.chunks(noise.len()).zip(out.chunks_mut(noise.len())) {
                for noise in noise.chunks_exact_mut(Lanes::WIDTH) {
                    noise.copy_from_slice(&lanes.draw());
                }
                for ((&x, out), &noise) in x.iter().zip(out).zip(&noise) {
                    *out = map(x, noise);
                }
            }
        },
    );
}

/// A whole number from 0 to 2^31 - 1 as an integer, without the checks of a cast, which vectors have no instruction for.
#[inline(always)]
pub fn small_integer(whole: f64) -> i32 {
    /// Adding it leaves the number in the lowest bits.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    (whole + SHIFT).to_bits() as i32
}
