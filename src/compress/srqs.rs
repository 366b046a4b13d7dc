//! Signs of random coordinates of the rotated vector.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    rand_k::subset,
    read_scale,
    rotation::Rotation,
    scale,
    top_k::{check_kept, kept},
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::{l1, norm_squared},
};

/// Rotates at random and sends the signs of `k` random coordinates with one scale.
///
/// # Formula
/// `y = R x` with the shared random rotation; `C(x) = R^-1 z` with `z_i = S sign(y_i)` for `i` in a shared uniformly
/// random `k`-subset, else `0`; `S = (n/k) |x|_2^2 / |y|_1` and `sign(0) = +1`. `k` is given, or `max(1, round(ratio
/// n))` for every part.
///
/// # Bits
/// `32 + k` with every coder that writes signs. A part of zeros is 32 bits.
///
/// # Bound
/// None for every vector: the fast rotation is not a uniformly random one, under which the operator would be unbiased.
/// Measured `omega` is `(n/k) pi/2 - 1` from a few dozen values up (14.7 at a tenth of them), and the bias is below
/// what 4,000 messages show; it is never above `n^2/k - 1`. Error feedback scales by `(2/pi) k/n` all the same.
///
/// # Source
/// After Zhu, Ghosh, Mazumdar, *Optimal Compression of Unit Norm Vectors in the High Distortion Regime*, 2023 (sparse
/// randomized quantization scaling). Differs from the source in: one bit a coordinate and a scale that follows from the
/// whole rotated vector.
///
/// # Example
/// `x = (2, 0, 0, 0)`, `ratio = 1.0` has a rotation of equal magnitudes or of one value; its scale is found in 36 bits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Srqs {
    /// Share of coordinates sent, in (0, 1]; lower is more aggressive. Either this or `k`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Number of coordinates sent of every part, at least 1. Either this or `ratio`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
}

impl Named for Srqs {
    const NAME: &'static str = "srqs";
    const EXAMPLE: &'static str = "ratio = 0.5";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "ratio", mildest: 1.0, harshest: 1e-5, whole: false, instead_of: &["k"] });
}

/// Where the subset begins in the shared stream, in words of 32 bits: far behind the numbers that the rotation takes.
const SUBSET_FROM: u128 = 1 << 40;

impl Srqs {
    /// The coordinates of this message.
    fn subset(&self, n: usize, part: &Part<'_>) -> Vec<u32> {
        let mut generator = part.streams.shared();
        generator.set_word_pos(SUBSET_FROM);
        subset(kept(self.ratio, self.k, n), n, &mut generator)
    }
}

impl Operator for Srqs {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let norm = norm_squared(x).sqrt();
        let mut sent = 0.0;
        let mut negative = Vec::new();
        if norm > 0.0 {
            // Of unit norm, so that the rotation cannot overflow.
            let mut y: Vec<f32> = x.iter().map(|value| (f64::from(*value) / norm) as f32).collect();
            Rotation::new(&part.streams, x.len()).forward(&mut y);
            let at = self.subset(x.len(), part);
            sent = scale(x.len() as f64 / at.len() as f64 * norm / l1(&y))?;
            negative = at.into_iter().map(|i| y[i as usize] < 0.0).collect();
        }
        payload.push(Section::Floats(vec![sent]));
        if sent > 0.0 {
            payload.push(Section::Signs(negative));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        out.fill(0.0);
        let scale = f64::from(read_scale(source)?);
        if scale == 0.0 {
            return Ok(());
        }
        let signs = source.signs(kept(self.ratio, self.k, out.len()))?;
        for (i, negative) in self.subset(out.len(), part).into_iter().zip(signs) {
            out[i as usize] = if negative { -1.0 } else { 1.0 };
        }
        Rotation::new(&part.streams, out.len()).inverse(out);
        for value in out {
            *value = ((scale * f64::from(*value)) as f32).clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, _n: usize) -> Class {
        Class::Unproven
    }

    fn damping(&self, n: usize) -> Option<f64> {
        Some(std::f64::consts::FRAC_2_PI * kept(self.ratio, self.k, n) as f64 / n as f64)
    }

    fn kept(&self, n: usize) -> Option<usize> {
        Some(kept(self.ratio, self.k, n))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Signs]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        check_kept(self.ratio, self.k, longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{bias, example, mean_error, wire_bits},
        vectors,
    };

    fn share(ratio: f64) -> Srqs {
        Srqs { ratio: Some(ratio), k: None }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let (decoded, bits) = example(&share(1.0), "fixed", &[2.0, 0.0, 0.0, 0.0]);
        assert_eq!(bits, 36);
        // The part along x is exact whatever the rotation.
        assert!((decoded[0] - 2.0).abs() < 1e-5, "{decoded:?}");
    }

    #[test]
    fn the_error_is_that_of_the_specification() {
        // spec 5.18: k = d/10 gives 14.7 in k + 32 bits; spec 5.15: all coordinates give pi/2 - 1
        for x in [vectors::g(10_000), vectors::t(10_000)] {
            for (ratio, expected) in [(0.1, 14.708), (1.0, 0.5708)] {
                let (mean, standard_error) = mean_error(&share(ratio), &x, 20);
                assert!((mean / expected - 1.0).abs() < 0.01, "{mean} +- {standard_error} for {expected}");
            }
            assert_eq!(wire_bits(&share(0.1), "fixed", &x), 1032);
        }
    }

    #[test]
    fn no_bias_shows_not_even_on_two_values() {
        let mut two = vec![0.0; 256];
        (two[0], two[1]) = (1.0, 0.5);
        for x in [two, vectors::t(256), vectors::g(200)] {
            for ratio in [0.25, 1.0] {
                let (bias, error) = bias(&share(ratio), &x, 4000);
                assert!(bias <= 4.0 * error / 4000.0, "{bias} at {error}");
            }
        }
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, _) = example(&share(0.5), "fixed", &[1.0, -1.0, 2.0, -2.0, 0.0, 3.0, 1.0, 1.0]);
        assert_eq!(decoded.iter().map(|value| (100.0 * value).round() as i32).collect::<Vec<_>>(), STABLE);
    }

    const STABLE: [i32; 8] = [350, -350, 0, 0, 0, 350, 350, 0];
}
