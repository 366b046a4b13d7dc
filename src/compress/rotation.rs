//! The randomised Hadamard rotation in two rounds, without padding.

use rand::Rng;

use crate::{rng::Streams, vector::vectorised};

/// An orthonormal map of vectors of one length that makes every vector look Gaussian: signs and fast Walsh-Hadamard transforms.
///
/// `y = H D_2 H D_1 x` with random signs from the shared stream of a message. One round would leave sparse vectors biased, so
/// there are always two. A length that is no power of two is not padded, which would send more values than there are: every
/// round transforms the first and then the last `2^m` coordinates, the largest power of two that fits.
pub struct Rotation {
    /// Signs of the four transforms (two where the length is a power of two), each for `window` values.
    signs: Vec<Vec<u64>>,
    n: usize,
    window: usize,
}

impl Rotation {
    /// The rotation of vectors of `n >= 1` values, from the shared stream of `streams`.
    pub fn new(streams: &Streams, n: usize) -> Self {
        let window = 1 << n.ilog2();
        let transforms = if window == n { 2 } else { 4 };
        let mut generator = streams.shared();
        let words = window.div_ceil(64);
        let signs = (0..transforms).map(|_| (0..words).map(|_| generator.next_u64()).collect()).collect();
        Self { signs, n, window }
    }

    /// Where the `i`-th transform works.
    fn range(&self, i: usize) -> std::ops::Range<usize> {
        if i.is_multiple_of(2) { 0..self.window } else { self.n - self.window..self.n }
    }

    /// Rotates `x` in place.
    pub fn forward(&self, x: &mut [f32]) {
        assert_eq!(x.len(), self.n, "a rotation is made for one length");
        for (i, signs) in self.signs.iter().enumerate() {
            let part = &mut x[if self.window == self.n { 0..self.n } else { self.range(i) }];
            flip(part, signs);
            hadamard(part);
        }
    }

    /// Undoes [`Rotation::forward`].
    pub fn inverse(&self, x: &mut [f32]) {
        assert_eq!(x.len(), self.n, "a rotation is made for one length");
        for (i, signs) in self.signs.iter().enumerate().rev() {
            let part = &mut x[if self.window == self.n { 0..self.n } else { self.range(i) }];
            hadamard(part);
            flip(part, signs);
        }
    }
}

/// Negates where the bit is set.
fn flip(x: &mut [f32], signs: &[u64]) {
    vectorised(|| {
        for (chunk, word) in x.chunks_mut(64).zip(signs) {
            for (i, value) in chunk.iter_mut().enumerate() {
                *value = f32::from_bits(value.to_bits() ^ (((word >> i) as u32) << 31));
            }
        }
    });
}

/// The orthonormal fast Walsh-Hadamard transform of a power of two of values.
pub fn hadamard(x: &mut [f32]) {
    vectorised(|| {
        let n = x.len();
        let mut half = 1;
        while half < n {
            for block in x.chunks_exact_mut(2 * half) {
                let (a, b) = block.split_at_mut(half);
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
        let scale = (1.0 / (n as f64).sqrt()) as f32;
        x.iter_mut().for_each(|value| *value *= scale);
    });
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
    fn a_one_hot_vector_becomes_dense() {
        let mut x = vec![0.0; 1000];
        x[17] = 1.0;
        Rotation::new(&Streams::message(1, 2, 3, 4, 0), 1000).forward(&mut x);
        assert!(x.iter().filter(|value| value.abs() > 1e-3).count() > 800);
        assert!(x.iter().all(|value| value.abs() < 0.3));
    }
}
