//! The seed-free test vectors of the specification, section 4: quantiles, shuffled.

use statrs::distribution::{ContinuousCDF, Normal};

fn quantiles(d: usize, quantile: impl Fn(f64) -> f64) -> Vec<f32> {
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
    order.into_iter().map(|i| quantile((i as f64 + 0.5) / d as f64) as f32).collect()
}

/// Standard normal.
pub fn g(d: usize) -> Vec<f32> {
    let normal = Normal::standard();
    quantiles(d, |u| normal.inverse_cdf(u))
}

/// Laplace.
pub fn l(d: usize) -> Vec<f32> {
    quantiles(d, |u| if u < 0.5 { (2.0 * u).ln() } else { -(2.0 * (1.0 - u)).ln() })
}

/// Student's t with four degrees of freedom.
pub fn t(d: usize) -> Vec<f32> {
    quantiles(d, |u| {
        let root = (4.0 * u * (1.0 - u)).sqrt();
        (u - 0.5).signum() * 2.0 * ((root.acos() / 3.0).cos() / root - 1.0).sqrt()
    })
}

#[test]
fn the_vectors_are_those_of_the_specification() {
    use crate::vector::{l1, linf, norm_squared};
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
}
