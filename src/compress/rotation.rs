//! The randomised Hadamard rotation in two rounds, without padding.

use rand::Rng;

use crate::{rng::Streams, vector::vectorised};

/// An orthonormal map of vectors of one length that makes every vector look Gaussian: signs and fast Walsh-Hadamard transforms.
///
/// `y = H D_2 H D_1 x` with random signs from the shared stream of a message. One round would leave sparse vectors biased, so
/// there are always two. A length that is no power of two is not padded, which would send more values than there are: every
/// round transforms the first and then the last `2^m` coordinates, the largest power of two that fits. After every round the
/// coordinates change places, in strides of about 0.618 of the length: energy must not stay in one of two windows that hardly
/// overlap, and neighbours, which of a sparse vector are correlated, must not meet in a code that takes them together.
pub struct Rotation {
    /// Signs of the four transforms (two where the length is a power of two), each for `window` values.
    signs: Vec<Vec<u64>>,
    n: usize,
    window: usize,
    /// Where the next coordinate comes from; has no divisor in common with `n`.
    stride: usize,
}

impl Rotation {
    /// The rotation of vectors of `n >= 1` values, from the shared stream of `streams`.
    pub fn new(streams: &Streams, n: usize) -> Self {
        let window = 1 << n.ilog2();
        let transforms = if window == n { 2 } else { 4 };
        let mut generator = streams.shared();
        let words = window.div_ceil(64);
        let signs = (0..transforms).map(|_| (0..words).map(|_| generator.next_u64()).collect()).collect();
        let golden = (n as u64 * 618 / 1000) as usize;
        let stride = (golden..=n + 1).find(|&stride| greatest_common_divisor(stride, n) == 1).expect("n + 1 is one");
        Self { signs, n, window, stride }
    }

    /// The window of the `i`-th transform.
    fn range(&self, i: usize) -> std::ops::Range<usize> {
        if self.window == self.n || i.is_multiple_of(2) { 0..self.window } else { self.n - self.window..self.n }
    }

    /// Whether a round ends with the `i`-th transform.
    fn ends_round(&self, i: usize) -> bool {
        self.n > 2 && (i + 1).is_multiple_of(self.signs.len() / 2)
    }

    /// Rotates `x` in place.
    pub fn forward(&self, x: &mut [f32]) {
        assert_eq!(x.len(), self.n, "a rotation is made for one length");
        for (i, signs) in self.signs.iter().enumerate() {
            let part = &mut x[self.range(i)];
            flip(part, signs);
            hadamard(part);
            if self.ends_round(i) {
                let places = x.to_vec();
                self.strides().zip(x.iter_mut()).for_each(|(from, value)| *value = places[from]);
            }
        }
    }

    /// Undoes [`Rotation::forward`].
    pub fn inverse(&self, x: &mut [f32]) {
        assert_eq!(x.len(), self.n, "a rotation is made for one length");
        for (i, signs) in self.signs.iter().enumerate().rev() {
            if self.ends_round(i) {
                let places = x.to_vec();
                self.strides().zip(&places).for_each(|(from, &value)| x[from] = value);
            }
            let part = &mut x[self.range(i)];
            hadamard(part);
            flip(part, signs);
        }
    }

    fn strides(&self) -> impl Iterator<Item = usize> {
        let (n, stride) = (self.n, self.stride);
        let mut at = 0;
        std::iter::repeat_with(move || {
            let here = at;
            at += stride;
            if at >= n {
                at -= n;
            }
            here
        })
        .take(n)
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Negates where the bit is set.
fn flip(x: &mut [f32], signs: &[u64]) {
    vectorised(
        #[inline(always)]
        || {
            for (chunk, word) in x.chunks_mut(64).zip(signs) {
                for (i, value) in chunk.iter_mut().enumerate() {
                    *value = f32::from_bits(value.to_bits() ^ (((word >> i) as u32) << 31));
                }
            }
        },
    );
}

/// Values that stay in the first-level cache while they are transformed.
const TILE: usize = 1 << 12;

/// The orthonormal fast Walsh-Hadamard transform of a power of two of values.
pub fn hadamard(x: &mut [f32]) {
    let scale = (1.0 / (x.len() as f64).sqrt()) as f32;
    vectorised(
        #[inline(always)]
        || {
            for tile in x.chunks_mut(TILE) {
                let n = tile.len();
                butterflies(tile, 1, n);
                tile.iter_mut().for_each(|value| *value *= scale);
            }
            let n = x.len();
            butterflies(x, TILE.min(n), n);
        },
    );
}

/// The levels of the transform from distance `half` up to a block of `n`, two at a time: every pass over memory counts.
#[inline(always)]
fn butterflies(x: &mut [f32], mut half: usize, n: usize) {
    while 4 * half <= n {
        for block in x.chunks_exact_mut(4 * half) {
            let (a, rest) = block.split_at_mut(half);
            let (b, rest) = rest.split_at_mut(half);
            let (c, d) = rest.split_at_mut(half);
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (ab, ba, cd, dc) = (*a + *b, *a - *b, *c + *d, *c - *d);
                (*a, *b, *c, *d) = (ab + cd, ba + dc, ab - cd, ba - dc);
            }
        }
        half *= 4;
    }
    if 2 * half <= n {
        for block in x.chunks_exact_mut(2 * half) {
            let (a, b) = block.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::vectors,
        vector::{distance_squared, norm_squared},
    };

    #[test]
    fn the_transform_is_the_matrix() {
        let mut columns: Vec<Vec<f32>> = (0..8).map(|i| (0..8).map(|j| f32::from(i == j)).collect()).collect();
        columns.iter_mut().for_each(|column| hadamard(column));
        for (i, column) in columns.iter().enumerate() {
            for (j, &value) in column.iter().enumerate() {
                let sign = if (i & j).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                assert!((value - sign / 8f32.sqrt()).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn it_is_orthonormal_and_undone_for_every_length() {
        for n in [1, 2, 3, 7, 8, 100, 1000, 4096, 4097, 1 << 20] {
            let x = vectors::t(n);
            let rotation = Rotation::new(&Streams::message(1, 2, 3, 4, 0), n);
            let mut y = x.clone();
            rotation.forward(&mut y);
            assert!((norm_squared(&y) - norm_squared(&x)).abs() <= 1e-5 * norm_squared(&x), "n = {n}");
            rotation.inverse(&mut y);
            assert!(distance_squared(&x, &y).sqrt() <= 1e-5 * norm_squared(&x).sqrt(), "n = {n}");
        }
    }

    #[test]
    fn windows_that_hardly_overlap_share_what_they_hold() {
        // Without changing places, the mean absolute value is 0.57 in place of the 0.798 of a Gaussian.
        for (n, at) in [(1023, 0), (1023, 511), (1000, 999), (1900, 0), (257, 128)] {
            let mean = (0..50).map(|draw| {
                let mut x = vec![0.0; n];
                x[at] = (n as f32).sqrt();
                Rotation::new(&Streams::message(1, draw, 3, 4, 0), n).forward(&mut x);
                x.iter().map(|value| f64::from(value.abs())).sum::<f64>() / n as f64
            });
            let mean = mean.sum::<f64>() / 50.0;
            assert!((mean - 0.798).abs() < 0.01, "{n} values, {at}: {mean}");
        }
    }

    #[test]
    fn a_one_hot_vector_becomes_dense() {
        let mut x = vec![0.0; 1000];
        x[17] = 1.0;
        Rotation::new(&Streams::message(1, 2, 3, 4, 0), 1000).forward(&mut x);
        assert!(x.iter().filter(|value| value.abs() > 1e-3).count() > 800);
        assert!(x.iter().all(|value| value.abs() < 0.3));
    }
}
