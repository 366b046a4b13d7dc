//! An operator applied to its own error, several times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    isotropic::saturated,
    nested::{Nested, inside},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Source},
};

/// Applies an operator to the part, then to the error that is left, and so on, and sends all of it in one message.
///
/// # Formula
/// `v_0 = 0`, `v_r = v_(r-1) + of(x - v_(r-1))`, `C(x) = v_R` with `R = times`.
///
/// # Bits
/// `R` times those of `of`.
///
/// # Bound
/// Contractive, `1 - (1 - a)^R`, for a contractive `of` with `a`. Unbiased, `omega^R`, for an unbiased one.
///
/// # Source
/// Huang et al., *Lower Bounds and Nearly Optimal Algorithms in Distributed Learning with Communication Compression*
/// (NEOLITHIC), 2022, Algorithm 1. Differs from the source in: the steps share one message, and what an operator
/// remembers serves the first step only.
///
/// # Example
/// `x = (3, -1, 2, 0)`, `top-k` with `k = 1`, `times = 2` gives `(3, 0, 2, 0)` in `2 (32 + 2)` bits with the fixed
/// coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeated {
    /// The operator, with its settings.
    pub of: Nested,
    /// Number of steps `R`, from 1 to 100; fewer is more aggressive.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 100))]
    pub times: u8,
}

fn two() -> u8 {
    2
}

impl Named for Repeated {
    const NAME: &'static str = "repeated";
    const EXAMPLE: &'static str = "of = { operator = \"top-k\", ratio = 0.25 }\ntimes = 2";
}

impl Operator for Repeated {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let mut sum = vec![0.0; x.len()];
        let mut rest = x.to_vec();
        for step in 0..self.times {
            let mut fresh = Vec::new();
            let warm = if step == 0 { &mut *warm } else { &mut fresh };
            let (sent, restored) = self.of.try_out(&rest, &inside(part, step), warm)?;
            sent.sections.into_iter().for_each(|section| payload.push(section));
            add(&mut sum, &restored);
            let left = |(&x, &sum): (&f32, &f32)| saturated(f64::from(x) - f64::from(sum));
            rest = x.iter().zip(&sum).map(left).collect();
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        out.fill(0.0);
        let mut one = vec![0.0; out.len()];
        for step in 0..self.times {
            self.of.operator.restore(source, &inside(part, step), &mut one)?;
            add(out, &one);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let power = |error: f64| (0..self.times).fold(1.0, |product, _| product * error);
        match self.of.operator.class(n) {
            Class::Contractive(a) => Class::Contractive(1.0 - power(1.0 - a)),
            Class::Unbiased(omega) => Class::Unbiased(power(omega)),
            other => other,
        }
    }

    fn kinds(&self) -> &'static [Kind] {
        self.of.operator.kinds()
    }

    fn default_coder(&self) -> &'static str {
        self.of.operator.default_coder()
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        self.of.check("of", longest)
    }
}

fn add(sum: &mut [f32], x: &[f32]) {
    sum.iter_mut().zip(x).for_each(|(sum, &x)| *sum = saturated(f64::from(*sum) + f64::from(x)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::read,
        compress::{
            laws::{error, example, wire_bits},
            vectors,
        },
    };

    fn repeated(settings: &str) -> Repeated {
        read(toml::from_str(settings).expect("TOML")).expect("settings are valid")
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let operator = repeated("of = { operator = \"top-k\", k = 1 }\ntimes = 2");
        assert_eq!(example(&operator, "fixed", &[3.0, -1.0, 2.0, 0.0]), (vec![3.0, 0.0, 2.0, 0.0], 68));
    }

    #[test]
    fn steps_of_top_k_are_one_larger_top_k_and_the_class_is_the_power() {
        // spec 5.4: k = 200 on G
        let operator = repeated("of = { operator = \"top-k\", k = 50 }\ntimes = 4");
        assert!((error(&operator, &vectors::g(1000)) - 0.35063).abs() < 1e-5);
        let Class::Contractive(a) = operator.class(1000) else { panic!("it is contractive") };
        assert!((a - (1.0 - 0.95f64.powi(4))).abs() < 1e-12);
        assert_eq!(wire_bits(&operator, "fixed", &vectors::g(1000)), 200 * 42);
    }

    #[test]
    fn errors_of_an_unbiased_operator_shrink_by_powers() {
        let operator = repeated("of = { operator = \"natural\" }\ntimes = 3");
        assert_eq!(operator.class(1000), Class::Unbiased(0.125 * 0.125 * 0.125));
        assert!(error(&operator, &vectors::t(1000)) < 0.125f64.powi(3));
    }

    #[test]
    fn values_are_stable_across_versions() {
        let operator = repeated("of = { operator = \"natural\" }");
        assert_eq!(example(&operator, "fixed", &[9.0, -4.5, 0.0, 3.3, 1.3]).0, [9.0, -4.5, 0.0, 3.0, 1.25]);
    }
}
