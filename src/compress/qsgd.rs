//! Random rounding to levels of the norm.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Operator, Part, Unfit, read_scale,
    rounding::{fill_with_noise, small_integer},
    scale,
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64_of_32,
    vector::{linf, norm_squared},
};

/// Rounds every magnitude at random to one of `s` equal steps of the norm, without bias.
///
/// # Formula
/// For every bucket of the part, `C(x)_i = sign(x_i) |x| k_i / s`, where `k_i` is `s |x_i| / |x|` rounded down or up at random with
/// mean `s |x_i| / |x|`. `|x|` is the Euclidean or the largest-magnitude norm of the bucket, as the 32-bit float that is sent.
///
/// # Bits
/// 32 a bucket and the code of its levels, which run from `-s` to `s`: with `elias-omega` (the default) the omega codes of the
/// number of nonzero levels plus one and, for each of them, of its gap and its magnitude, and a sign bit; with `elias-dense` omega
/// of `k_i + 1` and a sign bit for the nonzero ones; with `fixed` `ceil(log2(2 s + 1))` a level. A bucket of zeros is 32 bits.
///
/// # Bound
/// Unbiased, `omega = min(m / s^2, sqrt(m) / s)` for buckets of `m` values.
///
/// # Source
/// Alistarh et al., *QSGD*, 2017, sections 3 and 4. Differs from the source in: the number of nonzero levels is sent before them,
/// because the paper leaves the end of its list implicit.
///
/// # Example
/// `x = (0, 4, -3, 0)`, `levels = 5` has the norm 5 and falls on whole levels: `(0, 4, -3, 0)` in 32 + 16 bits with the fixed coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Qsgd {
    /// Number of levels `s` above zero, at least 1; fewer is more aggressive. 1, 7 and 127 fill 2, 4 and 8 bits.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub levels: u32,
    /// The norm that levels are steps of: `l2` as in the theory, `linf` as in practice.
    pub norm: Norm,
    /// Values that share a norm, at least 1; the whole part if absent.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<u32>,
}

/// The norm of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// The Euclidean norm.
    #[default]
    L2,
    /// The largest magnitude.
    Linf,
}

impl Default for Qsgd {
    fn default() -> Self {
        Self { levels: 7, norm: Norm::L2, bucket: None }
    }
}

impl Named for Qsgd {
    const NAME: &'static str = "qsgd";
    const EXAMPLE: &'static str = "levels = 5";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "levels", mildest: 65_536.0, harshest: 1.0, whole: true, instead_of: &[] });
}

impl Qsgd {
    fn bucket(&self, n: usize) -> usize {
        self.bucket.map_or(n, |bucket| bucket as usize).min(n)
    }
}

impl Operator for Qsgd {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let mut lanes = part.streams.private_lanes();
        for bucket in x.chunks(self.bucket(x.len())) {
            let norm = scale(match self.norm {
                Norm::L2 => norm_squared(bucket).sqrt(),
                Norm::Linf => f64::from(linf(bucket)),
            })?;
            payload.push(Section::Floats(vec![norm]));
            if norm == 0.0 {
                continue;
            }
            let step = f64::from(self.levels) / f64::from(norm);
            let largest = self.levels as i32;
            let mut values = vec![0; bucket.len()];
            fill_with_noise(
                bucket,
                &mut values,
                &mut lanes,
                #[inline(always)]
                move |value, noise| {
                    // Cutting off the sum rounds up with probability equal to the fraction; both terms are exact to 52 bits.
                    // The norm may have been rounded down below the largest value.
                    let level = small_integer((f64::from(value.abs()) * step + unit_f64_of_32(noise)).floor());
                    let level = level.min(largest);
                    if value < 0.0 { -level } else { level }
                },
            );
            payload.push(Section::Levels { values, largest: Some(self.levels), trellis: None });
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let length = self.bucket(out.len());
        for bucket in out.chunks_mut(length) {
            let norm = read_scale(source)?;
            if norm == 0.0 {
                bucket.fill(0.0);
                continue;
            }
            let step = f64::from(norm) / f64::from(self.levels);
            let levels = source.levels(bucket.len(), Some(self.levels))?;
            for (value, level) in bucket.iter_mut().zip(levels) {
                *value = (step * f64::from(level)) as f32;
            }
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let (m, s) = (self.bucket(n) as f64, f64::from(self.levels));
        Class::Unbiased((m / (s * s)).min(m.sqrt() / s))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Levels]
    }

    fn default_coder(&self) -> &'static str {
        "elias-omega"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{assert_mean_error, example, mean_bits, rounding_error, wire_bits},
        vectors,
    };

    fn l2(levels: u32) -> Qsgd {
        Qsgd { levels, ..Qsgd::default() }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        assert_eq!(example(&l2(5), "fixed", &[0.0, 4.0, -3.0, 0.0]), (vec![0.0, 4.0, -3.0, 0.0], 48));
    }

    /// The exact mean error of rounding the magnitudes of each bucket to `levels` steps of its norm.
    fn exact(operator: &Qsgd, x: &[f32]) -> f64 {
        let total: f64 = x
            .chunks(operator.bucket(x.len()))
            .map(|bucket| {
                let norm = match operator.norm {
                    Norm::L2 => norm_squared(bucket).sqrt(),
                    Norm::Linf => f64::from(linf(bucket)),
                };
                let step = norm / f64::from(operator.levels);
                rounding_error(bucket, |v| (v / step).floor() * step, |v| ((v / step).floor() + 1.0) * step)
            })
            .sum();
        total / norm_squared(x)
    }

    #[test]
    fn errors_are_those_of_the_specification() {
        // spec 5.7, d = 1000, one bucket, l2: s, vNMSE on G and T, bound
        let table = [
            (1, 24.24216, 21.68824, 31.6228),
            (2, 11.62108, 10.34412, 15.8114),
            (4, 5.31054, 4.67206, 7.9057),
            (8, 2.15527, 1.88324, 3.9528),
            (16, 0.64872, 0.61419, 1.9764),
            (31, 0.17349, 0.17290, 1.0201),
            (64, 0.04067, 0.04076, 0.2441),
        ];
        for (s, g, t, bound) in table {
            for (x, expected) in [(vectors::g(1000), g), (vectors::t(1000), t)] {
                let exact = exact(&l2(s), &x);
                assert!((exact / expected - 1.0).abs() < 1e-4, "s = {s}: {exact} for {expected}");
                assert_mean_error(&l2(s), &x, exact);
            }
            let Class::Unbiased(omega) = l2(s).class(1000) else { panic!("QSGD is unbiased") };
            assert!((omega / bound - 1.0).abs() < 2e-3, "s = {s}: {omega} for {bound}");
        }
        // linf, bucket 512, fixed width: s, vNMSE on G and T, bits
        for (s, g, t, bits) in [
            (1, 1.49997, 2.89057, 2064),
            (3, 0.18204, 0.52217, 3064),
            (7, 0.03317, 0.10090, 4064),
            (15, 0.00723, 0.02216, 5064),
        ] {
            let operator = Qsgd { levels: s, norm: Norm::Linf, bucket: Some(512) };
            for (x, expected) in [(vectors::g(1000), g), (vectors::t(1000), t)] {
                let exact = exact(&operator, &x);
                assert!((exact / expected - 1.0).abs() < 1e-3, "s = {s}: {exact} for {expected}");
                assert_mean_error(&operator, &x, exact);
                assert_eq!(wire_bits(&operator, "fixed", &x), bits);
            }
        }
    }

    #[test]
    fn bits_are_those_of_the_specification() {
        // s, omega sparse bits on G and T, dense bits on G and T: means of 4,000 to 20,000 draws of an independent NumPy computation.
        // The figures of spec 5.7 are within 1 % of them but for sparse G at s = 2 (569) and 4 (861) and sparse T at s = 1 (325)
        // and 2 (512): those are means of too few draws, whose standard deviation is 50 bits.
        let table = [
            (1, 344.1, 317.9, 1107.9, 1099.9),
            (2, 558.9, 519.8, 1183.4, 1168.2),
            (4, 881.3, 823.2, 1334.9, 1304.1),
            (8, 1350.8, 1261.6, 1637.5, 1571.5),
            (16, 2007.8, 1876.9, 2216.8, 2064.1),
            (31, 2779.8, 2603.3, 2950.7, 2763.1),
            (64, 3988.1, 3690.0, 4119.3, 3802.3),
        ];
        for (s, sparse_g, sparse_t, dense_g, dense_t) in table {
            for (x, sparse, dense) in [(vectors::g(1000), sparse_g, dense_g), (vectors::t(1000), sparse_t, dense_t)] {
                for (coder, expected) in [("elias-omega", sparse), ("elias-dense", dense)] {
                    let (bits, standard_error) = mean_bits(&l2(s), coder, &x, 1000);
                    let tolerance = 0.002 * expected + 3.0 * standard_error;
                    assert!((bits - expected).abs() < tolerance, "s = {s}, {coder}: {bits} for {expected}");
                }
            }
        }
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, _) = example(&l2(2), "fixed", &[1.0, -2.0, 2.0, 0.5, 0.0, 4.0]);
        let levels: Vec<f32> = decoded.iter().map(|v| (v / (25.25f32.sqrt() / 2.0)).round()).collect();
        assert_eq!(levels, [0.0, -1.0, 1.0, 1.0, 0.0, 1.0]);
    }
}
