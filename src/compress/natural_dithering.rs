//! Random rounding to powers of two below the norm.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, read_scale, scale};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64,
    vector::{l1, linf, norm_squared},
};

/// Rounds every magnitude at random to one of the two neighbouring ones of `s` halvings of the norm and zero, without
/// bias.
///
/// # Formula
/// `C(x)_i = sign(x_i) |x| q_i` with `q_i` in `{0, 2^(1-s), .., 1/2, 1}`: one of the two neighbours of `|x_i| / |x|`,
/// at random with that mean. `|x|` is the 32-bit float that is sent.
///
/// # Bits
/// 32 and the code of `n` levels from `-s` to `s`: `ceil(log2(2 s + 1))` a level with the fixed coder, about the
/// entropy with the adaptive one (the default). A part of zeros is 32 bits.
///
/// # Bound
/// Unbiased, `omega = 1/8 + q min(1, q)` with `q = 2^(1-s) n^(1/r)`, `r = 1` for the norm `l1` and 2 for the others.
///
/// # Source
/// Horvath et al., *Natural Compression for Distributed Deep Learning*, 2019, section 3. Differs from the source in:
/// nothing.
///
/// # Example
/// `x = (4, -2, 0, 1)`, `levels = 3`, `norm = "linf"` falls on levels: `(4, -2, 0, 1)` in 32 + 12 bits with the fixed
/// coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NaturalDithering {
    /// Number of levels `s` above zero, at least 1; fewer is more aggressive.
    #[schemars(range(min = 1, max = 128))]
    pub levels: u32,
    /// The norm that levels are halvings of: `l2` (the theory), `linf` or `l1`.
    pub norm: Norm,
}

/// The norm of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// The sum of magnitudes.
    L1,
    /// The Euclidean norm.
    #[default]
    L2,
    /// The largest magnitude.
    Linf,
}

impl Default for NaturalDithering {
    fn default() -> Self {
        Self { levels: 8, norm: Norm::L2 }
    }
}

impl Named for NaturalDithering {
    const NAME: &'static str = "natural-dithering";
    const EXAMPLE: &'static str = "levels = 8";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "levels", mildest: 24.0, harshest: 1.0, whole: true, instead_of: &[] });
}

/// The power of two.
fn power(exponent: i32) -> f64 {
    libm::ldexp(1.0, exponent)
}

/// The level of a magnitude `u` in [0, 1] for a uniform `draw`: 0, or `l` for `2^(l-s)`.
fn level(u: f64, s: i32, draw: f64) -> i32 {
    let exponent = (u.to_bits() >> 52) as i32 - 1023;
    if exponent < 1 - s {
        i32::from(draw < u / power(1 - s))
    } else {
        s + exponent + i32::from(draw < u / power(exponent) - 1.0)
    }
}

impl Operator for NaturalDithering {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let norm = scale(match self.norm {
            Norm::L1 => l1(x),
            Norm::L2 => norm_squared(x).sqrt(),
            Norm::Linf => f64::from(linf(x)),
        })?;
        payload.push(Section::Floats(vec![norm]));
        if norm == 0.0 {
            return Ok(());
        }
        let mut generator = part.streams.private();
        let round = |&value: &f32| {
            // The norm may have been rounded down below the largest value.
            let u = (f64::from(value.abs()) / f64::from(norm)).min(1.0);
            let level = level(u, self.levels as i32, unit_f64(generator.next_u64()));
            if value < 0.0 { -level } else { level }
        };
        let values = x.iter().map(round).collect();
        payload.push(Section::Levels { values, largest: Some(self.levels), trellis: None });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let norm = read_scale(source)?;
        if norm == 0.0 {
            out.fill(0.0);
            return Ok(());
        }
        let levels = source.levels(out.len(), Some(self.levels))?;
        for (value, level) in out.iter_mut().zip(levels) {
            let magnitude = f64::from(norm) * power(level.abs() - self.levels as i32);
            *value = (magnitude * f64::from(level.signum())) as f32;
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let n = n as f64;
        let q = power(1 - self.levels as i32) * if self.norm == Norm::L1 { n } else { n.sqrt() };
        Class::Unbiased(0.125 + q * q.min(1.0))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Levels]
    }

    fn default_coder(&self) -> &'static str {
        "adaptive"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{assert_mean_error, example, mean_bits, mean_error, rounding_error, wire_bits},
        vectors,
    };

    fn l2(levels: u32) -> NaturalDithering {
        NaturalDithering { levels, norm: Norm::L2 }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let operator = NaturalDithering { levels: 3, norm: Norm::Linf };
        assert_eq!(example(&operator, "fixed", &[4.0, -2.0, 0.0, 1.0]), (vec![4.0, -2.0, 0.0, 1.0], 44));
    }

    #[test]
    fn errors_are_those_of_the_specification() {
        // spec 5.9, d = 1000, l2: s, vNMSE on G, L, T, bound
        let table = [
            (3, [5.31054, 4.60263, 4.67206], 8.0307),
            (4, [2.15527, 1.81891, 1.88324], 4.0778),
            (7, [0.09534, 0.10030, 0.09941], 0.3691),
            (8, [0.08373, 0.08514, 0.08493], 0.1860),
        ];
        for (s, errors, bound) in table {
            for (x, expected) in [vectors::g(1000), vectors::l(1000), vectors::t(1000)].iter().zip(errors) {
                let energy = norm_squared(x);
                let norm = energy.sqrt();
                let smallest = norm * 2f64.powi(1 - s as i32);
                let low = |v: f64| if v < smallest { 0.0 } else { norm * (v / norm).log2().floor().exp2() };
                let exact = rounding_error(x, low, |v| if v < smallest { smallest } else { 2.0 * low(v) }) / energy;
                assert!((exact / expected - 1.0).abs() < 1e-4, "s = {s}: {exact} for {expected}");
                assert_mean_error(&l2(s), x, exact);
                let width = (2.0 * f64::from(s) + 1.0).log2().ceil() as u64;
                assert_eq!(wire_bits(&l2(s), "fixed", x), 32 + 1000 * width);
            }
            let Class::Unbiased(omega) = l2(s).class(1000) else { panic!("natural dithering is unbiased") };
            assert!((omega / bound - 1.0).abs() < 5e-4, "s = {s}: {omega} for {bound}");
        }
    }

    #[test]
    fn errors_at_equal_bits_are_those_of_the_ranked_table() {
        // spec 6.2, d = 10,000, adaptive code: bits a value, then vNMSE on G, L, T, between two numbers of levels
        let table = [(0.5, 4, [7.08, 5.42, 5.51]), (1.0, 5, [1.87, 1.31, 1.41]), (2.0, 7, [0.243, 0.219, 0.220])];
        for (rate, fewer, expected) in table {
            for (x, expected) in [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)].iter().zip(expected) {
                let [(low, many), (high, few)] = [fewer, fewer + 1].map(|s| {
                    let bits = mean_bits(&l2(s), "adaptive", x, 20).0 / 1e4;
                    (bits, mean_error(&l2(s), x, 20).0.ln())
                });
                let between = (many + (few - many) * (rate - low) / (high - low)).exp();
                assert!((between / expected - 1.0).abs() < 0.06, "{rate}: {between} for {expected}");
            }
        }
    }

    #[test]
    fn whole_levels_stay_and_others_go_to_a_neighbour() {
        for l in 1..=5 {
            assert_eq!(level(power(l - 5), 5, 0.0), l);
        }
        assert_eq!(level(0.0, 5, 0.0), 0);
        assert_eq!([level(0.75, 5, 0.49), level(0.75, 5, 0.51)], [5, 4]);
        assert_eq!([level(0.03125, 5, 0.49), level(0.03125, 5, 0.51)], [1, 0]);
    }

    #[test]
    fn values_are_stable_across_versions() {
        let operator = NaturalDithering { levels: 4, norm: Norm::Linf };
        let (decoded, _) = example(&operator, "adaptive", &[1.5, -3.0, 3.0, 0.4, 0.0, 8.0]);
        assert_eq!(decoded, STABLE);
    }

    const STABLE: [f32; 6] = [2.0, -2.0, 4.0, 1.0, 0.0, 8.0];
}
