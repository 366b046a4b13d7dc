//! Any operator, multiplied by a factor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    isotropic::multiply,
    nested::{Nested, inside},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Source},
};

/// Multiplies what another operator restores by a factor, which makes unbiased operators contractive.
///
/// # Formula
/// `C(x) = f of(x)`, `f = 1 / (1 + omega)` unless a factor is given.
///
/// # Bits
/// Those of `of`.
///
/// # Bound
/// For an unbiased `of`: contractive, `a = 1 - f^2 omega - (1 - f)^2` where this is above 0; that is `1 / (1 + omega)`
/// by default. Unproven else.
///
/// # Source
/// Beznosikov et al., *On Biased Compression for Distributed Learning*, 2020, Lemma 8. Differs from the source in:
/// nothing.
///
/// # Example
/// `x = (4, 4)`, `rand-k` with `k = 1` gives `(4, 0)` or `(0, 4)` in 32 bits, for `omega = 1`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scaled {
    /// The operator whose result is multiplied, with its settings.
    pub of: Nested,
    /// The factor, in (0, 1]; `1 / (1 + omega)` if absent.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

impl Named for Scaled {
    const NAME: &'static str = "scaled";
    const EXAMPLE: &'static str = "of = { operator = \"natural\" }";
}

impl Scaled {
    fn factor(&self, n: usize) -> f64 {
        self.factor.or_else(|| self.of.operator.damping(n)).unwrap_or(1.0)
    }
}

impl Operator for Scaled {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        self.of.operator.compress(x, &inside(part, 0), warm, payload)
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        self.of.operator.restore(source, &inside(part, 0), out)?;
        multiply(out, self.factor(out.len()));
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let (f, class) = (self.factor(n), self.of.operator.class(n));
        match class {
            _ if f == 1.0 => class,
            Class::Exact => Class::Contractive(1.0 - (1.0 - f).powi(2)),
            Class::Unbiased(omega) => match 1.0 - f * f * omega - (1.0 - f).powi(2) {
                a if a > 0.0 => Class::Contractive(a),
                _ => Class::Unproven,
            },
            _ => Class::Unproven,
        }
    }

    fn kinds(&self) -> &'static [Kind] {
        self.of.operator.kinds()
    }

    fn default_coder(&self) -> &'static str {
        self.of.operator.default_coder()
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        self.of.check("of", longest)?;
        if self.factor.is_none() && longest > 0 && self.of.operator.damping(longest).is_none() {
            let message = "`factor` must be given: the operator that is scaled has no bound as an unbiased one";
            return Err(Misfit { key: "factor", message: message.into() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::read,
        compress::{
            laws::{example, mean_error},
            vectors,
        },
    };

    fn scaled(settings: &str) -> Scaled {
        read(toml::from_str(settings).expect("TOML")).expect("settings are valid")
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let (mut decoded, bits) = example(&scaled("of = { operator = \"rand-k\", k = 1 }"), "fixed", &[4.0, 4.0]);
        decoded.sort_by(f32::total_cmp);
        assert_eq!((decoded, bits), (vec![0.0, 4.0], 32));
    }

    #[test]
    fn rand_k_becomes_its_unscaled_form() {
        let operator = scaled("of = { operator = \"rand-k\", k = 100 }");
        let Class::Contractive(a) = operator.class(1000) else { panic!("it is contractive") };
        assert!((a - 0.1).abs() < 1e-12);
        let (mean, standard_error) = mean_error(&operator, &vectors::g(1000), 200);
        assert!((mean - 0.9).abs() < 5.0 * standard_error, "{mean}");
        let half = scaled("of = { operator = \"rand-k\", k = 500 }\nfactor = 0.5");
        assert_eq!(half.class(1000), Class::Contractive(0.5));
    }

    #[test]
    fn a_factor_must_be_given_for_what_is_not_unbiased() {
        assert_eq!(scaled("of = { operator = \"sign\" }").check(10).unwrap_err().key, "factor");
        assert_eq!(scaled("of = { operator = \"sign\" }\nfactor = 0.5").check(10), Ok(()));
    }

    #[test]
    fn values_are_stable_across_versions() {
        assert_eq!(
            example(&scaled("of = { operator = \"natural\" }"), "fixed", &[9.0, -4.5, 0.0]).0,
            [7.111111, -3.5555556, 0.0]
        );
    }
}
