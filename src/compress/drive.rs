//! Signs of the rotated vector.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Operator, Part, Unfit,
    isotropic::{Isotropic, LONG, Scale, dot, hear_plain, multiply, omega_of_short, saturated, turn_back},
    scale,
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::{l1, linf, norm_squared},
};

/// Rotates the vector at random and sends the signs of what comes out, with one scale or two values.
///
/// # Formula
/// `C(x) = S R^-1 sign(R x)` with the randomised Hadamard rotation `R` in two rounds, from the shared stream. `S =
/// |x|^2 / |R x|_1` if the scale is `unbiased`, `S = |R x|_1 / n` if it is `biased`. With `centroids = 2` (DRIVE+) the
/// values of `R x` are split in two by the threshold with the least squared error, and the mean of either side takes
/// the place of `-S` and `S`; times `|x|^2 / |q|^2` for the vector `q` of these means if the scale is `unbiased`.
/// `sign(0) = 1`.
///
/// # Bits
/// `n + 32` with any coder; `n + 64` with two centroids. A vector of zeros is its scales alone.
///
/// # Bound
/// `unbiased`: unbiased under uniformly random rotations, which the two Hadamard rounds come near to, `omega = pi/2 -
/// 1`. `biased`: contractive, `a = 2/pi`. Both are those of Gaussian values and hold to terms of `1/n` for parts of
/// 256 values and more; shorter parts have `omega = 3 n/m - 1` and `a = m/(3 n)`, `m` the largest power of two up to
/// `n`, for every vector.
///
/// # Source
/// Vargaftik et al., *DRIVE: One-bit Distributed Mean Estimation*, 2021. Differs from the source in: two Hadamard
/// rounds in place of one, which would leave sparse vectors biased; lengths are not padded to a power of two.
///
/// # Example
/// `x = (-3)` gives `(-3)` in 33 bits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drive {
    /// `unbiased`, or `biased` for the least squared error, as error feedback wants it.
    pub scale: Scaling,
    /// Number of values that rotated values are replaced by up to the scale: 1 for plus and minus one value, 2 for two.
    #[schemars(range(min = 1, max = 2))]
    pub centroids: u32,
}

/// How the signs are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// The least squared error.
    Biased,
    /// The mean over rotations is the vector itself.
    #[default]
    Unbiased,
}

impl From<Scaling> for Scale {
    fn from(scaling: Scaling) -> Self {
        match scaling {
            Scaling::Biased => Self::Biased,
            Scaling::Unbiased => Self::Unbiased,
        }
    }
}

impl Default for Drive {
    fn default() -> Self {
        Self { scale: Scaling::Unbiased, centroids: 1 }
    }
}

impl Named for Drive {
    const NAME: &'static str = "drive";
}

/// The means of the two sides of the threshold with the least squared error, the upper one first, and the threshold:
/// values below it are on the lower side.
fn two_means(z: &[f32]) -> ([f64; 2], f32) {
    let mut sorted = z.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let (n, total) = (sorted.len() as f64, sorted.iter().map(|&value| f64::from(value)).sum::<f64>());
    // The squared error is a constant less the energy of the two means.
    let (mut best, mut found) = (total * total / n, ([total / n; 2], sorted[0]));
    let (mut below, mut sum) = (0.0, 0.0);
    for pair in sorted.windows(2) {
        (below, sum) = (below + 1.0, sum + f64::from(pair[0]));
        let rest = total - sum;
        let energy = sum * sum / below + rest * rest / (n - below);
        if pair[0] < pair[1] && energy > best {
            (best, found) = (energy, ([rest / (n - below), sum / below], pair[1]));
        }
    }
    found
}

impl Operator for Drive {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let Some(isotropic) = Isotropic::of(x, part)? else {
            payload.push(Section::Floats(vec![0.0; self.centroids as usize]));
            return Ok(());
        };
        let (n, unit, z) = (x.len() as f64, isotropic.unit(), &isotropic.z);
        let (values, threshold) = if self.centroids == 1 {
            let l1 = l1(z);
            (vec![scale(unit * Scale::from(self.scale).factor(n, l1, n))?], 0.0)
        } else {
            let (means, threshold) = two_means(z);
            let q: Vec<f32> = z.iter().map(|&z| means[usize::from(z < threshold)] as f32).collect();
            let factor = match self.scale {
                Scaling::Biased => 1.0,
                Scaling::Unbiased => Scale::Unbiased.factor(n, dot(&q, z), norm_squared(&q)),
            };
            (means.map(|mean| saturated(mean * factor * unit)).to_vec(), threshold)
        };
        let is_zero = values.iter().all(|value| *value == 0.0);
        payload.push(Section::Floats(values));
        if !is_zero {
            payload.push(Section::Signs(z.iter().map(|&z| z < threshold).collect()));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        if self.centroids == 1 {
            let Some(scale) = hear_plain(source, out)? else { return Ok(()) };
            let signs = source.signs(out.len())?;
            out.iter_mut().zip(signs).for_each(|(value, negative)| *value = if negative { -1.0 } else { 1.0 });
            turn_back(out, f64::from(scale), part);
            return Ok(());
        }
        let mut values = [0.0; 2];
        source.floats(&mut values)?;
        let largest = linf(&values);
        if values.iter().any(|value| !value.is_finite()) {
            return Err(Corrupt("a centroid is not finite"));
        }
        out.fill(0.0);
        if largest == 0.0 {
            return Ok(());
        }
        let signs = source.signs(out.len())?;
        // Rotated at a size that no sum overflows.
        multiply(&mut values, 1.0 / f64::from(largest));
        out.iter_mut().zip(signs).for_each(|(value, lower)| *value = values[usize::from(lower)]);
        turn_back(out, f64::from(largest), part);
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let omega = if n < LONG { omega_of_short(n) } else { std::f64::consts::FRAC_PI_2 - 1.0 };
        match self.scale {
            Scaling::Unbiased => Class::Unbiased(omega),
            Scaling::Biased => Class::Contractive(1.0 / (1.0 + omega)),
        }
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Signs]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{example, mean_error, wire_bits},
        vectors,
    };

    const ALL: [Drive; 4] = [
        Drive { scale: Scaling::Unbiased, centroids: 1 },
        Drive { scale: Scaling::Biased, centroids: 1 },
        Drive { scale: Scaling::Unbiased, centroids: 2 },
        Drive { scale: Scaling::Biased, centroids: 2 },
    ];

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        for operator in &ALL {
            let bits = 1 + 32 * u64::from(operator.centroids);
            assert_eq!(example(operator, "fixed", &[-3.0]), (vec![-3.0], bits));
        }
    }

    #[test]
    fn errors_are_those_of_the_specification() {
        // spec 5.15: pi/2 - 1 and 1 - 2/pi; two centroids of Gaussian values are nearly plus and minus one value.
        for x in [vectors::g(1000), vectors::t(1000)] {
            for operator in &ALL {
                let expected = if operator.scale == Scaling::Biased { 0.363380 } else { 0.570796 };
                let (mean, _) = mean_error(operator, &x, 100);
                let tolerance = if operator.centroids == 1 { 0.01 } else { 0.015 };
                assert!((mean / expected - 1.0).abs() < tolerance, "{operator:?}: {mean} for {expected}");
                assert_eq!(wire_bits(operator, "fixed", &x), 1000 + 32 * u64::from(operator.centroids));
            }
        }
    }

    #[test]
    fn two_means_are_the_best_two() {
        assert_eq!(two_means(&[1.0, 9.0, 2.0, 11.0, 0.0]), ([10.0, 1.0], 9.0));
        assert_eq!(two_means(&[5.0; 3]).0, [5.0, 5.0]);
        let (means, threshold) = two_means(&[-3.0, 0.0, 0.0]);
        assert_eq!((means, threshold), ([0.0, -3.0], 0.0));
    }

    #[test]
    fn sparse_vectors_have_no_bias_after_two_rounds() {
        // spec 5.11: e1 + e2 / 2, 256 values
        let mut x = vec![0.0; 256];
        (x[0], x[1]) = (1.0, 0.5);
        let mut sum = vec![0.0f64; 256];
        for draw in 0..4000 {
            let part = Part { layers: &[], streams: crate::rng::Streams::message(11, draw, 1, 2, 0) };
            let mut payload = Payload::default();
            ALL[0].compress(&x, &part, &mut Vec::new(), &mut payload).expect("finite");
            let mut out = vec![0.0; 256];
            ALL[0].restore(&mut payload.source(), &part, &mut out).expect("a payload can be restored");
            sum.iter_mut().zip(out).for_each(|(sum, value)| *sum += f64::from(value) / 4000.0);
        }
        let bias: f64 = sum.iter().zip(&x).map(|(mean, &x)| (mean - f64::from(x)).powi(2)).sum::<f64>() / 1.25;
        assert!(bias < 4.0 * 0.5708 / 4000.0, "{bias}");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, _) = example(&ALL[0], "fixed", &[1.0, -2.0, 2.0, 0.5, 0.0, 4.0, -1.0, 3.0]);
        let shown: Vec<i32> = decoded.iter().map(|value| (value * 1000.0).round() as i32).collect();
        assert_eq!(shown, [2820, -2820, 2820, -2820, 0, 5640, 0, 0]);
    }
}
