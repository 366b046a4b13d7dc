//! Any operator after a rotation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    isotropic::{Scale, dot, headroom, hear, multiply, send_one},
    nested::{Nested, flat, union},
    rotation::Rotation,
    scale,
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::norm_squared,
};

/// Rotates the part at random, applies another operator to what comes out, and turns the result back.
///
/// # Formula
/// `C(x) = S R^-1 of(R x)` with the randomised Hadamard rotation `R` in two rounds, from the shared stream, over the
/// whole part; layers lose their shapes. `S = 1` without `scale`; with it, `y = R x` and `q = of(y)`, `S` is `|y|^2 /
/// <q, y>` if `unbiased`, `<q, y> / |q|^2` if `biased`, `|y| / |q|` if `matched`. Where no scale makes `q` unbiased,
/// `unbiased` sends one value of `x`, drawn with probability `|x_i| / |x|_1`, as `|x|_1` under its sign.
///
/// # Bits
/// Those of `of`, and 32 with a `scale`.
///
/// # Bound
/// That of `of` without `scale`. With it, for a contractive `of`: `unbiased` is unbiased under uniformly random
/// rotations with `omega = 1/a - 1`, `biased` is contractive with the same `a`, or `1/(1 + omega)` for an unbiased
/// `of`. Else unproven.
///
/// # Source
/// Suresh et al., *Distributed Mean Estimation with Limited Communication*, 2017; the scale is that of Vargaftik et
/// al., *EDEN*, 2022. Differs from the source in: two Hadamard rounds without padding, and any operator.
///
/// # Example
/// `of = { operator = "identity" }` sends the rotated vector: 1000 values take 32,000 bits and come back up to
/// rounding.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotated {
    /// The operator that is applied to the rotated part, with its settings.
    pub of: Nested,
    /// `unbiased`, `biased` or `matched`: a scale for the result, as the `eden` operator has it; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

impl Named for Rotated {
    const NAME: &'static str = "rotated";
    const EXAMPLE: &'static str = "of = { operator = \"qsgd\", levels = 7 }";
}

impl Rotated {
    fn rotate(x: &[f32], part: &Part<'_>) -> Vec<f32> {
        let room = headroom(x);
        let mut y = x.to_vec();
        multiply(&mut y, room);
        Rotation::new(&part.streams, x.len()).forward(&mut y);
        multiply(&mut y, 1.0 / room);
        y
    }
}

impl Operator for Rotated {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        scale(norm_squared(x).sqrt())?;
        let layers = flat(x.len());
        let inside = Part { layers: &layers, streams: part.streams.inner(0) };
        let y = Self::rotate(x, part);
        let Some(kind) = self.scale else {
            return self.of.operator.compress(&y, &inside, warm, payload);
        };
        let yy = norm_squared(&y);
        if yy == 0.0 {
            payload.push(Section::Floats(vec![0.0]));
            return Ok(());
        }
        let (inner, q) = self.of.try_out(&y, &inside, warm)?;
        let (qy, qq) = (dot(&q, &y), norm_squared(&q));
        let factor = kind.factor(yy, qy, qq);
        let fits = factor.is_finite() && factor > 0.0 && factor <= f64::from(f32::MAX);
        if kind == Scale::Unbiased && !fits {
            return send_one(x, part, payload);
        }
        let sent = if fits { factor as f32 } else { 0.0 };
        payload.push(Section::Floats(vec![sent]));
        if sent != 0.0 {
            inner.sections.into_iter().for_each(|section| payload.push(section));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let factor = if self.scale.is_some() {
            let Some(factor) = hear(source, out)? else { return Ok(()) };
            f64::from(factor)
        } else {
            1.0
        };
        let layers = flat(out.len());
        self.of.operator.restore(source, &Part { layers: &layers, streams: part.streams.inner(0) }, out)?;
        let room = headroom(out);
        multiply(out, room);
        Rotation::new(&part.streams, out.len()).inverse(out);
        multiply(out, factor / room);
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        match (self.scale, self.of.operator.class(n)) {
            // The rotation is rounded.
            (None | Some(Scale::Unbiased | Scale::Biased), Class::Exact) => Class::Unbiased(0.0),
            (None, class) => class,
            (Some(Scale::Unbiased), Class::Contractive(a)) => Class::Unbiased(1.0 / a - 1.0),
            (Some(Scale::Biased), Class::Contractive(a)) => Class::Contractive(a),
            (Some(Scale::Biased), Class::Unbiased(omega)) => Class::Contractive(1.0 / (1.0 + omega)),
            _ => Class::Unproven,
        }
    }

    fn kept(&self, n: usize) -> Option<usize> {
        self.of.operator.kept(n)
    }

    fn kinds(&self) -> &'static [Kind] {
        let kinds = self.of.operator.kinds();
        if self.scale.is_some() { union(kinds, &[Kind::Floats, Kind::Number, Kind::Signs]) } else { kinds }
    }

    fn default_coder(&self) -> &'static str {
        self.of.operator.default_coder()
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        self.of.check("of", longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::read,
        compress::{
            laws::{example, mean_error, wire_bits},
            vectors,
        },
        vector::distance_squared,
    };

    fn rotated(settings: &str) -> Rotated {
        read(toml::from_str(settings).expect("TOML")).expect("settings are valid")
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let x = vectors::t(1000);
        let (decoded, bits) = example(&rotated("of = { operator = \"identity\" }"), "fixed", &x);
        assert_eq!(bits, 32_000);
        assert!(distance_squared(&x, &decoded) < 1e-10 * norm_squared(&x));
    }

    #[test]
    fn scaled_signs_are_drive() {
        // spec 5.15 and 5.16: the unbiased wrap of the scaled sign.
        for (scale, expected) in [("biased", 0.363380), ("unbiased", 0.570796)] {
            let operator = rotated(&format!("of = {{ operator = \"sign\" }}\nscale = \"{scale}\""));
            let (mean, standard_error) = mean_error(&operator, &vectors::t(1000), 100);
            assert!((mean - expected).abs() < 0.01 * expected + 2.0 * standard_error, "{scale}: {mean}");
            assert_eq!(wire_bits(&operator, "fixed", &vectors::t(1000)), 1000 + 64);
        }
    }

    #[test]
    fn heavy_tails_are_rounded_as_well_as_gaussian_ones() {
        // spec 5.7 with 15 levels of the largest value: 0.00723 on G and 0.02216 on T, without a rotation and 512
        // values a bucket.
        let operator = rotated("of = { operator = \"qsgd\", levels = 15, norm = \"linf\" }");
        let (mean, _) = mean_error(&operator, &vectors::t(1000), 100);
        assert!(mean < 0.01, "{mean}");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let operator = rotated("of = { operator = \"qsgd\", levels = 3 }\nscale = \"unbiased\"");
        let (decoded, _) = example(&operator, "fixed", &[1.0, -2.0, 2.0, 0.5, 0.0, 4.0, -1.0, 3.0]);
        let shown: Vec<i32> = decoded.iter().map(|value| (value * 1000.0).round() as i32).collect();
        assert_eq!(shown, [0, -1533, 1533, 0, 0, 4598, -1533, 3065]);
    }
}
