//! Flat `f32` arithmetic in fixed order, with 64-bit sums.
//!
//! Loops are compiled for several instruction sets and the best one is taken at run time. That changes their speed and not a
//! bit of their results: no operation is fused or reordered.

/// Runs a loop with the widest vectors that the processor has.
#[inline(always)]
pub fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// `y += a * x`.
pub fn add_scaled(y: &mut [f32], a: f32, x: &[f32]) {
    assert_eq!(y.len(), x.len(), "vectors of one model have one length");
    vectorised(
        #[inline(always)]
        || {
            for (y, &x) in y.iter_mut().zip(x) {
                *y += a * x;
            }
        },
    );
}

/// `sum += w * x` in 64 bits.
pub fn add_weighted(sum: &mut [f64], w: f64, x: &[f32]) {
    assert_eq!(sum.len(), x.len(), "vectors of one model have one length");
    vectorised(
        #[inline(always)]
        || {
            for (sum, &x) in sum.iter_mut().zip(x) {
                *sum += w * f64::from(x);
            }
        },
    );
}

/// `out = a - b`.
pub fn difference(a: &[f32], b: &[f32], out: &mut [f32]) {
    assert!(a.len() == b.len() && a.len() == out.len(), "vectors of one model have one length");
    vectorised(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a - b;
            }
        },
    );
}

/// Sums `f(x)` over `x` in 64 bits, in 16 interleaved partial sums: a fixed order that the compiler can vectorise.
fn sum_by(x: &[f32], f: impl Fn(f64) -> f64) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let mut lanes = [0.0f64; 16];
            let mut chunks = x.chunks_exact(16);
            for chunk in &mut chunks {
                for (lane, &value) in lanes.iter_mut().zip(chunk) {
                    *lane += f(f64::from(value));
                }
            }
            let tail: f64 = chunks.remainder().iter().map(|&value| f(f64::from(value))).sum();
            lanes.iter().sum::<f64>() + tail
        },
    )
}

/// Squared Euclidean norm in 64 bits: no overflow for any finite input.
pub fn norm_squared(x: &[f32]) -> f64 {
    sum_by(x, |v| v * v)
}

/// Root mean square of `x`, which is not empty, in 64 bits.
pub fn root_mean_square(x: &[f32]) -> f64 {
    (norm_squared(x) / x.len() as f64).sqrt()
}

/// Sum of magnitudes in 64 bits.
pub fn l1(x: &[f32]) -> f64 {
    sum_by(x, f64::abs)
}

/// Sum in 64 bits.
pub fn sum(x: &[f32]) -> f64 {
    sum_by(x, |v| v)
}

/// Largest magnitude; 0 for the empty vector.
pub fn linf(x: &[f32]) -> f32 {
    vectorised(
        #[inline(always)]
        || x.iter().fold(0.0f32, |largest, v| if v.abs() > largest { v.abs() } else { largest }),
    )
}

/// Population standard deviation about the mean, in 64 bits and two passes: exactly zero for equal values.
pub fn standard_deviation(x: &[f32]) -> f64 {
    let Some(&first) = x.first() else { return 0.0 };
    // Shifting by the first value makes the sums of a constant vector exactly zero.
    let shift = f64::from(first);
    let mean = sum_by(x, |v| v - shift) / x.len() as f64;
    (sum_by(x, |v| (v - shift - mean).powi(2)) / x.len() as f64).sqrt()
}

/// Squared distance between two vectors in 64 bits.
pub fn distance_squared(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one model have one length");
    vectorised(
        #[inline(always)]
        || {
            let mut lanes = [0.0f64; 16];
            let (mut a, mut b) = (a.chunks_exact(16), b.chunks_exact(16));
            let squared = |a: f32, b: f32| (f64::from(a) - f64::from(b)).powi(2);
            for (a, b) in (&mut a).zip(&mut b) {
                for (lane, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                    *lane += squared(a, b);
                }
            }
            let tail: f64 = a.remainder().iter().zip(b.remainder()).map(|(&a, &b)| squared(a, b)).sum();
            lanes.iter().sum::<f64>() + tail
        },
    )
}

/// Index of the first value that is NaN or infinite.
pub fn first_non_finite(x: &[f32]) -> Option<usize> {
    // Finite magnitudes have smaller bits than infinity; the index is searched only when there is one that is not.
    let all_finite = vectorised(
        #[inline(always)]
        || x.iter().fold(0u32, |seen, v| seen.max(v.to_bits() & 0x7fff_ffff)) < 0x7f80_0000,
    );
    if all_finite { None } else { x.iter().position(|v| !v.is_finite()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_are_64_bit_and_exact_where_they_can_be() {
        let huge = [1e30f32; 5];
        assert!((norm_squared(&huge) / 5e60 - 1.0).abs() < 1e-6);
        assert_eq!(l1(&[1.0, -2.0, 3.0, -4.0, 5.0]), 15.0);
        assert_eq!(sum(&[1.0, -2.0, 3.0, -4.0, 5.0]), 3.0);
        assert_eq!(linf(&[1.0, -7.0, 3.0]), 7.0);
        assert_eq!(linf(&[]), 0.0);
        assert_eq!(standard_deviation(&[0.1; 1001]), 0.0);
        assert!((standard_deviation(&[1.0, 2.0, 3.0, 4.0]) - 1.25f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_million_small_terms_do_not_stall_the_sum() {
        let x = vec![1.0f32; 20_000_000];
        assert_eq!(sum(&x), 2e7);
    }

    #[test]
    fn the_first_non_finite_value_is_found() {
        let mut x = vec![1.0f32; 10_000];
        assert_eq!(first_non_finite(&x), None);
        x[9_999] = f32::INFINITY;
        assert_eq!(first_non_finite(&x), Some(9_999));
        x[17] = f32::NAN;
        assert_eq!(first_non_finite(&x), Some(17));
        assert_eq!(first_non_finite(&[f32::MAX, f32::MIN, 1e-45]), None);
    }
}
