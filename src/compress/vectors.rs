//! The seed-free test vectors of operators: quantiles of a distribution, shuffled.
//!
//! Shuffled, because sorted values make codes of gaps look unrealistically good; the same to the bit on every machine.

use std::f64::consts::{PI, SQRT_2};

/// The order in which quantiles stand: a shuffle of `0..d` by SplitMix64, seed 42.
pub fn order(d: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..d).collect();
    let mut state = 42u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut r = state;
        r = (r ^ r >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        r = (r ^ r >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        r ^ r >> 31
    };
    for i in (1..d).rev() {
        order.swap(i, (next() % (i as u64 + 1)) as usize);
    }
    order
}

fn quantiles(d: usize, quantile: impl Fn(f64) -> f64) -> Vec<f32> {
    order(d).into_iter().map(|i| quantile((i as f64 + 0.5) / d as f64) as f32).collect()
}

/// Standard normal.
pub fn g(d: usize) -> Vec<f32> {
    quantiles(d, normal_quantile)
}

/// Laplace.
pub fn l(d: usize) -> Vec<f32> {
    quantiles(d, |u| if u < 0.5 { libm::log(2.0 * u) } else { -libm::log(2.0 * (1.0 - u)) })
}

/// Student's t with four degrees of freedom.
pub fn t(d: usize) -> Vec<f32> {
    quantiles(d, |u| {
        let root = (4.0 * u * (1.0 - u)).sqrt();
        (u - 0.5).signum() * 2.0 * (libm::cos(libm::acos(root) / 3.0) / root - 1.0).max(0.0).sqrt()
    })
}

/// The number below which a standard normal variable lies with probability `u` in (0, 1).
fn normal_quantile(u: f64) -> f64 {
    if u >= 0.5 {
        return if u > 0.5 { -normal_quantile(1.0 - u) } else { 0.0 };
    }
    // Abramowitz and Stegun, 26.2.23, to 4.5e-4; two of Halley's steps take that to the last bit.
    let t = (-2.0 * libm::log(u)).sqrt();
    let top = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let bottom = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut x = top / bottom - t;
    for _ in 0..2 {
        let excess = 0.5 * libm::erfc(-x / SQRT_2) - u;
        let step = excess * (2.0 * PI).sqrt() * libm::exp(0.5 * x * x);
        x -= step / (1.0 + 0.5 * x * step);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{l1, linf, norm_squared};

    #[test]
    fn the_vectors_are_those_of_the_specification() {
        let table = [
            (g(1000), [0.386671f32, -1.025_77, -1.415234, 0.441294], 998.699259, 797.707925, 3.290527f32),
            (l(1000), [0.358105, -1.187444, -1.851509, 0.417032], 1988.356432, 999.307019, 6.907755),
            (t(1000), [0.415645, -1.175461, -1.739117, 0.475857], 1933.738560, 997.699346, 8.610302),
            (g(10000), [-1.029808, 0.291198, 1.676195, -0.867442], 9998.680908, 7978.689706, 3.890592),
            (l(10000), [-1.193692, 0.260197, 2.367657, -0.952695], 19985.164371, 9999.306869, 9.210_34),
            (t(10000), [-1.180795, 0.311614, 2.189924, -0.972886], 19790.457552, 9995.936764, 15.544101),
        ];
        for (x, first, squares, sum, largest) in table {
            for (x, expected) in x.iter().zip(first) {
                assert!((x - expected).abs() < 1e-6, "{x} for {expected}");
            }
            assert!((norm_squared(&x) / squares - 1.0).abs() < 1e-6);
            assert!((l1(&x) / sum - 1.0).abs() < 1e-6);
            assert!((linf(&x) / largest - 1.0).abs() < 1e-6);
        }
        assert_eq!(order(10), [0, 9, 5, 8, 6, 4, 7, 2, 1, 3]);
        // An odd length has a middle, where nothing may go wrong.
        for d in [1, 3, 1001] {
            let middle = order(d).iter().position(|&i| i == d / 2).expect("the middle is somewhere");
            for x in [g(d), l(d), t(d)] {
                assert_eq!(x[middle], 0.0);
                assert!(x.iter().all(|x| x.is_finite()));
            }
        }
    }

    #[test]
    fn normal_quantiles_are_those_of_another_library() {
        use statrs::distribution::{ContinuousCDF, Normal};
        for i in 1..100_000 {
            let u = f64::from(i) / 1e5;
            let (own, other) = (normal_quantile(u), Normal::standard().inverse_cdf(u));
            assert!((own - other).abs() < 1e-14 + 2e-15 * other.abs(), "{u}: {own} for {other}");
        }
    }
}
