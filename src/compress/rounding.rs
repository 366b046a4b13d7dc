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
            let (mut x, mut out) = (x.chunks_exact(Lanes::WIDTH), out.chunks_exact_mut(Lanes::WIDTH));
            for (x, out) in (&mut x).zip(&mut out) {
                let noise = lanes.draw();
                for i in 0..Lanes::WIDTH {
                    out[i] = map(x[i], noise[i]);
                }
            }
            let noise = lanes.draw();
            for ((&x, out), noise) in x.remainder().iter().zip(out.into_remainder()).zip(noise) {
                *out = map(x, noise);
            }
        },
    );
}
