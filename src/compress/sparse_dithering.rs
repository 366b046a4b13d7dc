//! Levels in steps of the norm over the root of the length.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Misfit, Operator, Part, Unfit, read_scale, scale};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64,
    vector::norm_squared,
};

/// Rounds every magnitude to a multiple of one step that follows from the error allowed: sparse dithering.
///
/// # Formula
/// `C(x)_i = gamma sign(x_i) k_i`. Deterministic: `gamma = 2 |x| sqrt(nu / n)` and `k_i` is the whole number nearest to
/// `|x_i| / gamma`. Randomised: `gamma = 2 |x| sqrt(omega / n)` and `k_i` is `|x_i| / gamma` rounded down or up at
/// random with that mean. `gamma` is the 32-bit float that is sent.
///
/// # Bits
/// With `m` nonzero levels of sum `K`: `32 + ceil(log2(n + 1)) + log2 C(n, m) + m + K` with `enumerative`, which is the
/// code of the paper; with `adaptive` (the default) 32 and about the entropy of the levels, fewer bits for most
/// vectors. A part of zeros is 32 bits.
///
/// # Bound
/// Deterministic: contractive for every message, `a = 1 - nu`; on dense vectors the error is about `nu / 3`.
/// Randomised: unbiased, `omega`. With `c = 1 / (2 sqrt nu)`, the information in a message stays below
/// `31 + log2 n + n (3/2 + c + log2(1 + 2^-(3/2 + c/2)))` bits; that of the randomised kind, on average, below
/// `31 + log2 n + n (log2 3 + 1 / (2 sqrt omega))`.
///
/// # Source
/// Albasyoni, Safaryan, Condat, Richtarik, *Optimal Gradient Compression for Distributed and Federated Learning*, 2020,
/// sparse dithering. Differs from the source in: `gamma` takes 32 bits instead of 31 and the count `ceil(log2(n + 1))`
/// instead of `log2 n`.
///
/// # Example
/// `x = (3, -1, 0, 1)`, `nu = 0.25` has `gamma = 1.658` and the levels `(2, -1, 0, 1)`: `(3.317, -1.658, 0, 1.658)` in
/// 46 bits with the bitmap coder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SparseDithering {
    /// How magnitudes are rounded: `deterministic`, with the smaller error, or `randomised`, without bias.
    pub kind: Rounding,
    /// Largest relative squared error of the deterministic kind, in [1e-9, 1); 0.1 if absent; higher is more
    /// aggressive.
    #[schemars(extend("exclusiveMaximum" = 1.0), range(min = 1e-9))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nu: Option<f64>,
    /// Largest relative variance of the randomised kind, at least 1e-9; 0.25 if absent; higher is more aggressive.
    #[schemars(range(min = 1e-9))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omega: Option<f64>,
}

/// How magnitudes are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// To the nearest level; halves to the smaller one.
    #[default]
    Deterministic,
    /// Down or up at random, without bias.
    Randomised,
}

impl Named for SparseDithering {
    const NAME: &'static str = "sparse-dithering";
    const EXAMPLE: &'static str = "nu = 0.25";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "nu", mildest: 1e-4, harshest: 0.999, whole: false, instead_of: &["omega"] });
}

/// The smallest error that may be asked for: with it levels fit 31 bits for every length.
const SMALLEST_ERROR: f64 = 1e-9;

/// The step whose half, in every value, makes a relative squared error of `error`.
pub(super) fn step(x: &[f32], error: f64) -> Result<f32, Unfit> {
    scale(2.0 * (error / x.len() as f64).sqrt() * norm_squared(x).sqrt())
}

/// The levels nearest to `x` in steps of `gamma > 0`.
pub(super) fn nearest(x: &[f32], gamma: f32) -> Vec<i32> {
    let round = |&value: &f32| {
        let level = (f64::from(value.abs()) / f64::from(gamma) - 0.5).ceil() as i32;
        if value < 0.0 { -level } else { level }
    };
    x.iter().map(round).collect()
}

/// Writes the multiples of `gamma` to `out`.
pub(super) fn multiples(levels: &[i32], gamma: f32, out: &mut [f32]) {
    for (value, &level) in out.iter_mut().zip(levels) {
        *value = ((f64::from(gamma) * f64::from(level)) as f32).clamp(f32::MIN, f32::MAX);
    }
}

/// Checks an error that is asked for to be below 1.
pub(super) fn check_nu(nu: f64) -> Result<(), Misfit> {
    if (SMALLEST_ERROR..1.0).contains(&nu) {
        return Ok(());
    }
    let message = format!("`nu` is {nu}, but the share of the energy that may be lost lies in [{SMALLEST_ERROR:e}, 1)");
    Err(Misfit { key: "nu", message })
}

impl SparseDithering {
    /// The error that the step follows from.
    fn error(&self) -> f64 {
        match self.kind {
            Rounding::Deterministic => self.nu.unwrap_or(0.1),
            Rounding::Randomised => self.omega.unwrap_or(0.25),
        }
    }
}

impl Operator for SparseDithering {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let gamma = step(x, self.error())?;
        payload.push(Section::Floats(vec![gamma]));
        if gamma == 0.0 {
            return Ok(());
        }
        let values = match self.kind {
            Rounding::Deterministic => nearest(x, gamma),
            Rounding::Randomised => {
                let mut generator = part.streams.private();
                let round = |&value: &f32| {
                    let target = f64::from(value.abs()) / f64::from(gamma);
                    let down = target.floor();
                    let level = down as i32 + i32::from(unit_f64(generator.next_u64()) < target - down);
                    if value < 0.0 { -level } else { level }
                };
                x.iter().map(round).collect()
            }
        };
        payload.push(Section::Levels { values, largest: None, trellis: None });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let gamma = read_scale(source)?;
        if gamma == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        multiples(&source.levels(out.len(), None)?, gamma, out);
        Ok(())
    }

    fn class(&self, _n: usize) -> Class {
        match self.kind {
            Rounding::Deterministic => Class::Contractive(1.0 - self.error()),
            Rounding::Randomised => Class::Unbiased(self.error()),
        }
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::UnboundedLevels]
    }

    fn default_coder(&self) -> &'static str {
        "adaptive"
    }

    fn check(&self, _longest: usize) -> Result<(), Misfit> {
        match (self.kind, self.nu, self.omega) {
            (Rounding::Deterministic, _, Some(_)) => {
                let message = "`omega` belongs to `kind = \"randomised\"`; the deterministic kind takes `nu`".into();
                Err(Misfit { key: "omega", message })
            }
            (Rounding::Randomised, Some(_), _) => {
                let message = "`nu` belongs to `kind = \"deterministic\"`; the randomised kind takes `omega`".into();
                Err(Misfit { key: "nu", message })
            }
            (_, Some(nu), _) => check_nu(nu),
            (_, _, Some(omega)) if omega.is_nan() || omega < SMALLEST_ERROR => Err(Misfit {
                key: "omega",
                message: format!("`omega` is {omega}, but at least {SMALLEST_ERROR:e} is needed"),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::{
            laws::{assert_mean_error, error, error_at_rate, example, mean_bits, payload, rounding_error, wire_bits},
            vectors,
        },
        payload::log2_binomial,
        wire::bits::fixed_width,
    };

    fn deterministic(nu: f64) -> SparseDithering {
        SparseDithering { nu: Some(nu), ..SparseDithering::default() }
    }

    fn randomised(omega: f64) -> SparseDithering {
        SparseDithering { kind: Rounding::Randomised, nu: None, omega: Some(omega) }
    }

    /// Nonzero levels and the sum of magnitudes of one message.
    fn counts(operator: &SparseDithering, x: &[f32]) -> (u64, u64) {
        let payload = payload(operator, x);
        let Some(Section::Levels { values, .. }) = payload.sections.get(1) else {
            panic!("levels are the second section")
        };
        let nonzero = values.iter().filter(|level| **level != 0).count();
        (nonzero as u64, values.iter().map(|level| u64::from(level.unsigned_abs())).sum())
    }

    /// Bits of the code of the paper as whole fields.
    fn paper_bits(n: u64, nonzero: u64, magnitudes: u64) -> u64 {
        let positions = log2_binomial(n, nonzero).ceil() as u64;
        32 + u64::from(fixed_width(n + 1)) + positions + nonzero + magnitudes
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let (decoded, bits) = example(&deterministic(0.25), "bitmap", &[3.0, -1.0, 0.0, 1.0]);
        let gamma = 2.0 * (0.25f32 / 4.0).sqrt() * 11f32.sqrt();
        assert_eq!((decoded, bits), (vec![2.0 * gamma, -gamma, 0.0, gamma], 32 + 3 + 4 + 3 + 4));
        assert!((gamma - 1.658).abs() < 5e-4);
    }

    #[test]
    fn the_deterministic_kind_is_that_of_the_specification() {
        // spec 5.1, d = 1000: vector, nu, NMSE, m, K, information, bits of the paper's code, bits of the adaptive code
        let (g, l, t) = (vectors::g(1000), vectors::l(1000), vectors::t(1000));
        let table = [
            (&g, 0.05, 0.01668, 824, 1770, 3301.3, 3303, 3296.0),
            (&g, 0.1, 0.03332, 752, 1240, 2836.0, 2837, 2799.0),
            (&g, 0.25, 0.08333, 618, 764, 2377.1, 2379, 2167.0),
            (&g, 0.5, 0.16664, 480, 514, 2028.5, 2030, 1717.0),
            (&g, 0.9, 0.29852, 344, 348, 1656.3, 1658, 1364.0),
            (&l, 0.1, 0.03265, 640, 1086, 2704.4, 2706, 2718.0),
            (&l, 0.5, 0.14970, 368, 424, 1776.8, 1778, 1618.0),
            (&t, 0.1, 0.03335, 682, 1102, 2722.0, 2723, 2711.0),
            (&t, 0.5, 0.16230, 382, 434, 1811.1, 1813, 1633.0),
        ];
        for (x, nu, nmse, nonzero, magnitudes, information, paper, adaptive) in table {
            let operator = deterministic(nu);
            let measured = error(&operator, x);
            assert!((measured - nmse).abs() < 1e-5, "nu = {nu}: {measured} for {nmse}");
            assert_eq!(counts(&operator, x), (nonzero, magnitudes), "nu = {nu}");
            let carried: f64 = payload(&operator, x).sections.iter().map(Section::information_bits).sum();
            assert!((carried - 1.0 - information).abs() < 0.1, "nu = {nu}: {carried} for {information}");
            assert_eq!(paper_bits(1000, nonzero, magnitudes), paper, "nu = {nu}");
            let written = wire_bits(&operator, "enumerative", x);
            assert!((paper - 1..=paper + 16).contains(&written), "nu = {nu}: {written} for {paper}");
            let learnt = wire_bits(&operator, "adaptive", x) as f64;
            // The specification counts 16 bits for the end of a message; we take fewer.
            assert!((adaptive - 17.0..1.001 * adaptive).contains(&learnt), "nu = {nu}: {learnt} for {adaptive}");
        }
    }

    #[test]
    fn the_edges_are_those_of_the_specification() {
        // spec 5.1: one-hot of 1000, and one value
        let mut one_hot = vec![0.0; 1000];
        one_hot[17] = -2.5;
        assert!(error(&deterministic(0.1), &one_hot) < 1e-12);
        assert_eq!(counts(&deterministic(0.1), &one_hot), (1, 50));
        assert_eq!(paper_bits(1000, 1, 50), 103);
        let (decoded, _) = example(&deterministic(0.1), "enumerative", &[3.7]);
        assert!((decoded[0] - 4.68017).abs() < 1e-5, "{decoded:?}");
    }

    #[test]
    fn the_randomised_kind_is_that_of_the_specification() {
        // spec 5.2, d = 1000: vector, omega, vNMSE, mean m and K, bits of the paper's code, bits of the adaptive code
        let (g, l, t) = (vectors::g(1000), vectors::l(1000), vectors::t(1000));
        let table = [
            (&g, 0.05, 0.03337, 824.6, 1784.9, 3314.0, 3307.0),
            (&g, 0.25, 0.16669, 631.5, 798.2, 2415.0, 2223.0),
            (&g, 0.5, 0.33335, 514.2, 564.4, 2113.0, 1815.0),
            (&g, 1.0, 0.66396, 390.7, 399.1, 1790.0, 1473.0),
            (&g, 4.0, 2.19291, 199.6, 199.6, 1154.0, 977.0),
            (&l, 0.25, 0.16122, 536.1, 708.7, 2277.0, 2168.0),
            (&t, 0.25, 0.16638, 557.8, 717.5, 2302.0, 2161.0),
        ];
        for (x, omega, vnmse, nonzero, magnitudes, paper, adaptive) in table {
            let operator = randomised(omega);
            let energy = norm_squared(x);
            let gamma = 2.0 * (omega / 1000.0).sqrt() * energy.sqrt();
            let down = |v: f64| (v / gamma).floor() * gamma;
            let exact = rounding_error(x, down, |v| down(v) + gamma) / energy;
            assert!((exact - vnmse).abs() < 2e-5, "omega = {omega}: {exact} for {vnmse}");
            assert_mean_error(&operator, x, exact);
            let targets = x.iter().map(|v| f64::from(v.abs()) / gamma);
            assert!((targets.clone().sum::<f64>() / magnitudes - 1.0).abs() < 1e-3, "omega = {omega}");
            assert!((targets.map(|t| t.min(1.0)).sum::<f64>() / nonzero - 1.0).abs() < 1e-3, "omega = {omega}");
            // The end of a message takes 1 to 16 bits, which the specification counts as none and as 16.
            for (coder, expected, end) in [("enumerative", paper, 9.0), ("adaptive", adaptive, -8.0)] {
                let (bits, _) = mean_bits(&operator, coder, x, 200);
                assert!(
                    ((bits - end) / expected - 1.0).abs() < 0.01,
                    "omega = {omega}, {coder}: {bits} for {expected}"
                );
            }
        }
    }

    #[test]
    fn errors_at_equal_bits_are_those_of_the_ranked_tables() {
        // spec 6.1 and 6.2, d = 10,000: bits a value, then NMSE on G, L, T for the adaptive code and for that of the
        // paper
        let table = [
            (0.1, [0.965, 0.904, 0.836], [0.969, 0.913, 0.846]),
            (0.5, [0.764, 0.588, 0.556], [0.803, 0.632, 0.587]),
            (1.0, [0.468, 0.320, 0.331], [0.571, 0.382, 0.380]),
            (2.0, [0.0988, 0.0809, 0.0853], [0.165, 0.101, 0.113]),
            (4.0, [0.0057, 0.0049, 0.0049], [0.0079, 0.0066, 0.0065]),
        ];
        // Below 1.4 bits a value the step is larger than any that keeps the promise: here only for the comparison.
        let vectors = [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)];
        for (rate, adaptive, paper) in table {
            for (coder, expected) in [("adaptive", adaptive), ("enumerative", paper)] {
                for (x, expected) in vectors.iter().zip(expected) {
                    let error = error_at_rate(&deterministic, (1e-4, 1e4), coder, x, rate, 1);
                    assert!(
                        (error - expected).abs() < 0.02 * expected + 5e-5,
                        "{rate}, {coder}: {error} for {expected}"
                    );
                }
            }
        }
        // Here the bits of single draws vary by a percent, in the specification as well.
        let unbiased = [(0.5, [6.88, 5.04, 5.10]), (1.0, [1.84, 1.30, 1.40]), (2.0, [0.218, 0.193, 0.193])];
        for (rate, expected) in unbiased {
            for (x, expected) in vectors.iter().zip(expected) {
                let error = error_at_rate(&randomised, (1e-4, 1e3), "adaptive", x, rate, 10);
                assert!((error / expected - 1.0).abs() < 0.06, "{rate}: {error} for {expected}");
            }
        }
    }

    #[test]
    fn information_stays_below_the_bound() {
        // spec 5.1: nu, most bits a value
        let table = [(0.01, 6.5875), (0.05, 3.9538), (0.1, 3.3494), (0.25, 2.8219), (0.5, 2.5595), (0.9, 2.3995)];
        for (nu, expected) in table {
            let c = 0.5 / f64::sqrt(nu);
            let most = 1.5 + c + (1.0 + (-(1.5 + 0.5 * c)).exp2()).log2();
            assert!((most - expected).abs() < 5e-5, "nu = {nu}: {most} for {expected}");
            for x in [vectors::g(1000), vectors::l(1000), vectors::t(1000), vec![0.3; 1000]] {
                let carried: f64 = payload(&deterministic(nu), &x).sections.iter().map(Section::information_bits).sum();
                assert!(carried - 1.0 < 31.0 + 1000f64.log2() + 1000.0 * most, "nu = {nu}: {carried}");
            }
        }
    }

    #[test]
    fn settings_of_the_other_kind_and_errors_beyond_the_norm_are_refused() {
        let key = |operator: &SparseDithering| operator.check(10).unwrap_err().key;
        assert_eq!(key(&SparseDithering { omega: Some(0.1), ..SparseDithering::default() }), "omega");
        assert_eq!(key(&SparseDithering { nu: Some(0.1), ..randomised(0.1) }), "nu");
        assert_eq!(key(&deterministic(1.0)), "nu");
        assert_eq!(key(&deterministic(f64::NAN)), "nu");
        assert_eq!(key(&randomised(0.0)), "omega");
        for good in [SparseDithering::default(), deterministic(0.999), randomised(40.0)] {
            assert_eq!(good.check(10), Ok(()));
        }
    }

    #[test]
    fn values_are_stable_across_versions() {
        let x = [1.0, -2.0, 2.0, 0.5, 0.0, 4.0];
        let levels = |operator: &SparseDithering| {
            let (decoded, _) = example(operator, "enumerative", &x);
            let gamma = 2.0 * (operator.error() / 6.0).sqrt() * 25.25f64.sqrt();
            decoded.iter().map(|value| (f64::from(*value) / gamma).round() as i32).collect::<Vec<_>>()
        };
        assert_eq!(levels(&deterministic(0.1)), [1, -2, 2, 0, 0, 3]);
        assert_eq!(levels(&randomised(0.1)), STABLE);
    }

    const STABLE: [i32; 6] = [1, -1, 2, 1, 0, 3];
}
