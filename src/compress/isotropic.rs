//! Parts that a rotation has made look Gaussian, and the scale under which a quantised one is sent.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Part, Unfit, read_scale, rotation::Rotation, scale};
use crate::{
    payload::{Corrupt, Payload, Section, Source},
    rng::unit_f64,
    vector::{l1, linf, norm_squared},
};

/// How a quantised direction is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// The least squared error: what error feedback wants.
    Biased,
    /// The mean over rotations is the vector itself.
    #[default]
    Unbiased,
    /// The norm of the vector.
    Matched,
}

impl Scale {
    /// The factor to put before `q`, for a vector `z` of squared norm `zz` with the products `qz` and `qq`.
    pub fn factor(self, zz: f64, qz: f64, qq: f64) -> f64 {
        match self {
            Self::Biased => qz / qq,
            Self::Unbiased => zz / qz,
            Self::Matched => (zz / qq).sqrt(),
        }
    }
}

/// A vector rotated and scaled to a mean square of 1: nearly Gaussian, whatever it was.
pub struct Isotropic {
    /// The Euclidean norm of the vector.
    pub norm: f64,
    /// The rotated values.
    pub z: Vec<f32>,
}

/// Parts of so many values are rotated to what is Gaussian for every practical purpose.
pub const LONG: usize = 256;

impl Isotropic {
    /// Rotates `x`; `None` if its norm is zero as a 32-bit float.
    pub fn of(x: &[f32], part: &Part<'_>) -> Result<Option<Self>, Unfit> {
        let norm = norm_squared(x).sqrt();
        if scale(norm)? == 0.0 {
            return Ok(None);
        }
        let factor = (x.len() as f64).sqrt() / norm;
        let mut z: Vec<f32> = x.iter().map(|&value| (f64::from(value) * factor) as f32).collect();
        Rotation::new(&part.streams, x.len()).forward(&mut z);
        Ok(Some(Self { norm, z }))
    }

    /// The norm divided by the root of the length: what one unit of `z` stands for.
    pub fn unit(&self) -> f64 {
        self.norm / (self.z.len() as f64).sqrt()
    }

    /// Sends the scale of `q`, which stands for `z`. Returns whether the sections of `q` follow: not if the scale is
    /// zero, and not if `q` has no unbiased scale, such as a `q` of zeros. Then one value of `x`, drawn with
    /// probability proportional to its magnitude, is sent as `|x|_1` under its sign, which is unbiased too.
    pub fn announce(
        &self,
        q: &[f32],
        kind: Scale,
        x: &[f32],
        part: &Part<'_>,
        payload: &mut Payload,
    ) -> Result<bool, Unfit> {
        let (qz, qq) = (dot(q, &self.z), norm_squared(q));
        let factor = self.unit() * kind.factor(self.z.len() as f64, qz, qq);
        if kind == Scale::Unbiased && !(qz > 0.0 && factor <= f64::from(f32::MAX)) {
            send_one(x, part, payload)?;
            return Ok(false);
        }
        let sent = if qq > 0.0 { scale(factor)? } else { 0.0 };
        payload.push(Section::Floats(vec![sent]));
        Ok(sent != 0.0)
    }
}

/// Sends one value for all of `x`, under a negative scale that tells it apart.
pub fn send_one(x: &[f32], part: &Part<'_>, payload: &mut Payload) -> Result<(), Unfit> {
    let sum = l1(x);
    payload.push(Section::Floats(vec![-scale(sum)?]));
    let mut left = unit_f64(part.streams.private().next_u64()) * sum;
    let chosen = x.iter().position(|value| {
        left -= f64::from(value.abs());
        left < 0.0
    });
    // Rounding may leave a rest behind the last value.
    let chosen = chosen.or(x.iter().rposition(|value| *value != 0.0)).unwrap_or(0);
    payload.push(Section::Number { value: chosen as u32, below: x.len() as u32 });
    payload.push(Section::Signs(vec![x[chosen] < 0.0]));
    Ok(())
}

/// Reads a scale; `None` if no `q` follows and `out` is complete.
pub fn hear(source: &mut dyn Source, out: &mut [f32]) -> Result<Option<f32>, Corrupt> {
    let scale = source.float()?;
    if !scale.is_finite() {
        return Err(Corrupt("a scale is not finite"));
    }
    if scale > 0.0 {
        return Ok(Some(scale));
    }
    out.fill(0.0);
    if scale < 0.0 {
        let at = source.number(out.len() as u32)?;
        let negative = source.signs(1)?[0];
        out[at as usize] = if negative { scale } else { -scale };
    }
    Ok(None)
}

/// Reads a scale that nothing else than zero can be told by.
pub fn hear_plain(source: &mut dyn Source, out: &mut [f32]) -> Result<Option<f32>, Corrupt> {
    let scale = read_scale(source)?;
    if scale == 0.0 {
        out.fill(0.0);
    }
    Ok((scale != 0.0).then_some(scale))
}

/// Turns `q` back in place and multiplies it by `factor`.
pub fn turn_back(q: &mut [f32], factor: f64, part: &Part<'_>) {
    Rotation::new(&part.streams, q.len()).inverse(q);
    multiply(q, factor);
}

/// Multiplies by `factor` in 64 bits; results beyond the largest 32-bit float become that float.
pub fn multiply(x: &mut [f32], factor: f64) {
    x.iter_mut().for_each(|value| *value = saturated(f64::from(*value) * factor));
}

/// The nearest finite 32-bit float.
pub fn saturated(value: f64) -> f32 {
    value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

/// A power of two that a vector is multiplied by before it is rotated, so that no sum within the rotation overflows.
pub fn headroom(x: &[f32]) -> f64 {
    if linf(x) > 1e20 { 1.0 / 18_446_744_073_709_551_616.0 } else { 1.0 }
}

/// `sum_i a_i b_i` in 64 bits and fixed order.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// The bound for parts of `n < LONG` values under the unbiased scale of one bit.
///
/// For every rotation the error is `n |y|^2 / |y|_1^2 - 1 <= n |y|_4^4 / |y|^4 - 1` by Hoelder's inequality. The
/// values after the last transform of `m` values are sums under independent random signs, so `E y_i^4 <= 3 (E
/// y_i^2)^2`, and no `E y_i^2` is above `|y|^2 / m`: together `3 n / m - 1`.
pub fn omega_of_short(n: usize) -> f64 {
    3.0 * n as f64 / f64::from(1u32 << n.ilog2()) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    #[test]
    fn one_value_stands_for_all_without_bias() {
        let x = [3.0f32, 0.0, -1.0, 4.0];
        let mut sum = [0.0f64; 4];
        for draw in 0..8000 {
            let part = Part { layers: &[], streams: Streams::message(1, draw, 3, 4, 0) };
            let mut payload = Payload::default();
            send_one(&x, &part, &mut payload).expect("finite");
            let mut out = [f32::NAN; 4];
            assert_eq!(hear(&mut payload.source(), &mut out), Ok(None));
            assert_eq!(out.iter().map(|v| v.abs()).sum::<f32>(), 8.0);
            sum.iter_mut().zip(out).for_each(|(sum, value)| *sum += f64::from(value) / 8000.0);
        }
        // Standard deviation 4 at most, so 0.045 for the mean.
        assert!(sum.iter().zip(x).all(|(mean, x)| (mean - f64::from(x)).abs() < 0.2), "{sum:?}");
    }

    #[test]
    fn scales_are_related_as_in_the_specification() {
        let (zz, qz, qq) = (10.0, 7.0, 6.0);
        let [biased, unbiased, matched] =
            [Scale::Biased, Scale::Unbiased, Scale::Matched].map(|scale| scale.factor(zz, qz, qq));
        assert!((matched * matched - biased * unbiased).abs() < 1e-12);
    }
}
