//! What a bit can buy: caps of the sphere and the lower bounds that follow from them.
//!
//! The bounds are for the worst vector, which is also the typical one of an isotropic source. A fixed vector with
//! structure may go below them.

use std::f64::consts::{LN_2, PI};

/// `ln B(a, 1/2)`.
fn ln_beta_half(a: f64) -> f64 {
    libm::lgamma(a) + 0.5 * libm::log(PI) - libm::lgamma(a + 0.5)
}

/// `ln P(alpha, d)`; see [`log2_cap`].
fn ln_cap(alpha: f64, d: usize) -> f64 {
    if alpha <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if d <= 1 || alpha >= 1.0 {
        return -LN_2;
    }
    let a = (d as f64 - 1.0) / 2.0;
    // `I_alpha(a, 1/2)` is near one or of middling size there, and its complement has the faster series.
    if alpha > (a + 1.0) / (a + 2.5) {
        let x = 1.0 - alpha;
        let series = sum_while_it_grows(|k| (a + 0.5 + k) / (1.5 + k) * x);
        let rest = libm::exp(a * libm::log(alpha) + 0.5 * libm::log(x) + LN_2 - ln_beta_half(a)) * series;
        return libm::log1p(-rest.min(1.0)) - LN_2;
    }
    // 2F1(a, 1/2; a + 1; alpha), all of whose terms are positive.
    let series = sum_while_it_grows(|k| (a + k) / (a + 1.0 + k) * (0.5 + k) / (1.0 + k) * alpha);
    a * libm::log(alpha) - libm::log(2.0 * a) - ln_beta_half(a) + libm::log(series)
}

/// The sum of positive terms that begin with 1, of which the `k`-th over its predecessor is `ratio(k - 1)`.
fn sum_while_it_grows(ratio: impl Fn(f64) -> f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 0.0);
    // The ratios tend to a limit below one; past the largest term what is left is a small multiple of the last.
    loop {
        let factor = ratio(k);
        term *= factor;
        if factor < 1.0 && term < 1e-17 * sum * (1.0 - factor) {
            return sum;
        }
        sum += term;
        k += 1.0;
    }
}

/// `log2 P(alpha, d)`: the share of the unit sphere of `d` dimensions inside a ball of squared radius `alpha` in (0,
/// 1), centred best.
///
/// `P = I_alpha((d-1)/2, 1/2) / 2`. No code of contraction `alpha` for every vector spends fewer than `-log2 P` bits on
/// average.
pub fn log2_cap(alpha: f64, d: usize) -> f64 {
    ln_cap(alpha, d) / LN_2
}

/// `P(alpha, d)`; see [`log2_cap`].
pub fn cap(alpha: f64, d: usize) -> f64 {
    libm::exp(ln_cap(alpha, d))
}

/// The mean cosine between the axis of that cap and a uniform point of it: `alpha^a / (2 a B(1/2, a) P)` with
/// `a = (d-1)/2`.
pub fn mean_cosine(alpha: f64, d: usize) -> f64 {
    if d <= 1 {
        return 1.0;
    }
    let a = (d as f64 - 1.0) / 2.0;
    libm::exp(a * libm::log(alpha) - libm::log(2.0 * a) - ln_beta_half(a) - ln_cap(alpha, d))
}

/// The mean of the largest cosine between a direction and `count` independent ones, uniform on the sphere of `d`
/// dimensions.
pub fn largest_cosine(count: f64, d: usize) -> f64 {
    // The integral of 1 - F^count from -1 to 1, less one, over the angle: F is flat at both ends.
    let steps = 512;
    let width = PI / f64::from(steps);
    let none_above = |angle: f64| {
        let cosine = libm::cos(angle);
        let cap = cap(1.0 - cosine * cosine, d);
        let above = if cosine < 0.0 { 1.0 - cap } else { cap };
        libm::exp(count * libm::log1p(-above))
    };
    let sum: f64 = (0..steps)
        .map(|i| (f64::from(i) + 0.5) * width)
        .map(|angle| (1.0 - none_above(angle)) * libm::sin(angle) * width)
        .sum();
    sum - 1.0
}

/// The least error of a contractive operator at `bits` bits a coordinate: `4^-bits`.
pub fn contractive(bits: f64) -> f64 {
    libm::exp(-2.0 * LN_2 * bits)
}

/// The least error of an unbiased operator at `bits` bits a coordinate: `1 / (4^bits - 1)`.
pub fn unbiased(bits: f64) -> f64 {
    1.0 / libm::expm1(2.0 * LN_2 * bits)
}

/// The fewest bits a coordinate that reach the error `alpha`: `(1/2) log2(1/alpha)`, and none from 1 on.
pub fn least_bits(alpha: f64) -> f64 {
    (-0.5 * libm::log2(alpha)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::integer::Golomb;

    #[test]
    fn caps_are_those_of_the_specification() {
        // spec 1.4: d, then -log2 P at alpha = 0.1, 0.15, 0.2, 0.25, 0.5, 0.9
        let alphas = [0.1, 0.15, 0.2, 0.25, 0.5, 0.9];
        let table = [
            (2, [3.287, 2.982, 2.760, 2.585, 2.000, 1.331], [3.322, 2.737, 2.322, 2.000, 1.000, 0.152]),
            (4, [7.174, 6.273, 5.625, 5.116, 3.460, 1.727], [6.644, 5.474, 4.644, 4.000, 2.000, 0.304]),
            (10, [17.838, 15.172, 13.270, 11.784, 7.063, 2.542], [16.610, 13.685, 11.610, 10.000, 5.000, 0.760]),
            (14, [24.731, 20.893, 18.158, 16.027, 9.289, 2.995], [23.253, 19.159, 16.253, 14.000, 7.000, 1.064]),
            (16, [28.151, 23.728, 20.577, 18.123, 10.379, 3.209], [26.575, 21.896, 18.575, 16.000, 8.000, 1.216]),
            (
                100,
                [169.005, 140.009, 119.422, 103.441, 53.658, 10.615],
                [166.096, 136.848, 116.096, 100.000, 50.000, 7.600],
            ),
            (
                1000,
                [1665.536, 1373.306, 1165.951, 1005.101, 505.310, 80.586],
                [1660.964, 1368.483, 1160.964, 1000.000, 500.000, 76.002],
            ),
        ];
        for (d, caps, bounds) in table {
            for ((alpha, cap), bound) in alphas.into_iter().zip(caps).zip(bounds) {
                let bits = -log2_cap(alpha, d);
                assert!((bits - cap).abs() < 0.001, "d = {d}, alpha = {alpha}: {bits} for {cap}");
                let bits = least_bits(alpha) * d as f64;
                assert!((bits - bound).abs() < 0.001, "d = {d}, alpha = {alpha}: {bits} for {bound}");
            }
        }
    }

    #[test]
    fn caps_are_right_where_a_circle_or_a_ball_tells() {
        for alpha in [1e-9f64, 0.01, 0.3, 0.5, 0.7, 0.999, 1.0 - 1e-9] {
            let circle = alpha.sqrt().asin() / PI;
            assert!((cap(alpha, 2) / circle - 1.0).abs() < 1e-9, "alpha = {alpha}: {} for {circle}", cap(alpha, 2));
            let ball = alpha / (2.0 + 2.0 * (1.0 - alpha).sqrt());
            assert!((cap(alpha, 3) / ball - 1.0).abs() < 1e-9, "alpha = {alpha}: {} for {ball}", cap(alpha, 3));
        }
        assert_eq!((cap(0.3, 1), cap(1.0, 9), cap(0.0, 9)), (0.5, 0.5, 0.0));
    }

    #[test]
    fn caps_of_many_dimensions_are_those_of_an_independent_computation() {
        // The regularised incomplete beta function with 40 digits (mpmath).
        let table = [
            (0.5, 100_000, 50008.630579122),
            (0.99, 100_000, 731.28129630738),
            (0.999, 1000, 2.6549322391421),
            (0.9999, 20_000, 3.6683691065558),
            (0.99999, 20_000, 1.6110232794276),
            (0.9999999, 1_000_000, 1.4115219793526),
        ];
        for (alpha, d, bits) in table {
            let ours = -log2_cap(alpha, d);
            assert!((ours / bits - 1.0).abs() < 1e-9, "d = {d}, alpha = {alpha}: {ours} for {bits}");
        }
    }

    #[test]
    fn the_table_of_spherical_compression_is_that_of_the_specification() {
        // spec 5.3: d, alpha, -log2 P, mean bits of the Golomb code, mean trials, c, mean error, omega
        let table = [
            (4, 0.25, 5.116, 6.568, 34.7, 0.91994, 0.1566, 0.1816),
            (8, 0.25, 9.623, 11.091, 789.0, 0.89655, 0.1971, 0.2441),
            (8, 0.5, 5.915, 7.373, 60.3, 0.77607, 0.4025, 0.6603),
            (10, 0.2, 13.270, 14.745, 9.88e3, 0.91409, 0.1648, 0.1968),
            (14, 0.15, 20.893, 22.363, 1.95e6, 0.93260, 0.1304, 0.1498),
            (14, 0.1, 24.731, 26.199, 2.78e7, 0.95563, 0.0868, 0.0950),
            (16, 0.5, 10.379, 11.854, 1.33e3, 0.74530, 0.4460, 0.8003),
            (24, 0.5, 14.656, 16.124, 2.58e4, 0.73365, 0.4625, 0.8579),
            (32, 0.75, 9.358, 10.832, 656.0, 0.53987, 0.7101, 2.4310),
        ];
        for (d, alpha, bits, golomb, trials, cosine, error, omega) in table {
            let name = format!("d = {d}, alpha = {alpha}");
            let (p, c) = (cap(alpha, d), mean_cosine(alpha, d));
            assert!((-log2_cap(alpha, d) - bits).abs() < 0.001, "{name}");
            assert!((1.0 / p / trials - 1.0).abs() < 0.005, "{name}: {}", 1.0 / p);
            assert!((c - cosine).abs() < 1e-5, "{name}: {c}");
            let s = (1.0f64 - alpha).sqrt();
            assert!((1.0 + s * s - 2.0 * s * c - error).abs() < 1e-4, "{name}");
            assert!((1.0 / (c * c) - 1.0 - omega).abs() < 1e-4, "{name}");
            let mean = mean_golomb_bits(p);
            assert!((mean - golomb).abs() < 0.002, "{name}: {mean} for {golomb}");
        }
    }

    /// Mean length of the Golomb code of a wait less one.
    fn mean_golomb_bits(p: f64) -> f64 {
        let m = Golomb::for_success(p).parameter();
        let width = f64::from(m.next_power_of_two().ilog2());
        let short = (m.next_power_of_two() - m) as f64;
        let reached = |n: f64| libm::exp(n * libm::log1p(-p));
        let again = reached(m as f64);
        again / (1.0 - again) + 1.0 + width - (1.0 - reached(short)) / (1.0 - again)
    }

    #[test]
    fn bounds_are_those_of_the_specification() {
        // spec 1.4
        let table = [(0.1, 6.7250), (0.5, 1.0), (1.0, 0.33333), (2.0, 0.06667), (3.0, 0.01587), (4.0, 0.00392)];
        for (bits, omega) in table {
            assert!((unbiased(bits) / omega - 1.0).abs() < 1e-3, "{bits}");
        }
        // spec 6.1
        for (bits, alpha) in [(0.1, 0.8706), (0.5, 0.5), (1.0, 0.25), (2.0, 0.0625), (4.0, 0.0039)] {
            assert!((contractive(bits) - alpha).abs() < 1e-4, "{bits}");
            assert!((least_bits(contractive(bits)) - bits).abs() < 1e-12);
        }
        assert_eq!(least_bits(2.0), 0.0);
    }

    #[test]
    fn the_largest_of_many_cosines_is_that_of_order_statistics() {
        // One direction has mean zero; the larger of two on a line is 1 in three of four cases.
        assert!(largest_cosine(1.0, 5).abs() < 1e-5);
        assert!((largest_cosine(2.0, 1) - 0.5).abs() < 1e-4);
        // In three dimensions cosines are uniform, so the largest of `n` is 1 - 2/(n + 1).
        assert!((largest_cosine(9.0, 3) - 0.8).abs() < 1e-4);
        // In many dimensions they are Gaussian: the mean maximum of 4,096 is 3.626 standard deviations (NumPy).
        assert!((largest_cosine(4096.0, 10_000) * 100.0 - 3.626).abs() < 0.01, "{}", largest_cosine(4096.0, 10_000));
    }
}
