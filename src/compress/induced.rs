//! A biased operator made unbiased by a second message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    isotropic::saturated,
    nested::{Nested, common_coder, inside, union},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Source},
};

/// Sends what a biased operator makes of the part, and what an unbiased one makes of its error.
///
/// # Formula
/// `C(x) = biased(x) + unbiased(x - biased(x))`.
///
/// # Bits
/// Those of both.
///
/// # Bound
/// Unbiased, `omega (1 - a)` for a contractive `biased` with `a` and an unbiased `unbiased` with `omega`.
///
/// # Source
/// Horvath and Richtarik, *A Better Alternative to Error Feedback for Communication-Efficient Distributed Learning*,
/// 2021, section 3. Differs from the source in: nothing.
///
/// # Example
/// `x = (3, -1, 2, 0)`, `top-k` with `k = 2` and `natural` give `(3, -1, 2, 0)` in 68 + 36 bits with the fixed coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Induced {
    /// The operator of the first message, with its settings.
    pub biased: Nested,
    /// The operator of its error, with its settings; it must be unbiased.
    pub unbiased: Nested,
}

impl Named for Induced {
    const NAME: &'static str = "induced";
    const EXAMPLE: &'static str =
        "biased = { operator = \"top-k\", ratio = 0.5 }\nunbiased = { operator = \"natural\" }";
}

impl Operator for Induced {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let (first, restored) = self.biased.try_out(x, &inside(part, 0), warm)?;
        first.sections.into_iter().for_each(|section| payload.push(section));
        let rest: Vec<f32> = x.iter().zip(&restored).map(|(&x, &c)| saturated(f64::from(x) - f64::from(c))).collect();
        self.unbiased.operator.compress(&rest, &inside(part, 1), &mut Vec::new(), payload)
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        self.biased.operator.restore(source, &inside(part, 0), out)?;
        let mut rest = vec![0.0; out.len()];
        self.unbiased.operator.restore(source, &inside(part, 1), &mut rest)?;
        out.iter_mut().zip(rest).for_each(|(c, rest)| *c = saturated(f64::from(*c) + f64::from(rest)));
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let omega = match self.unbiased.operator.class(n) {
            Class::Exact => 0.0,
            Class::Unbiased(omega) => omega,
            _ => return Class::Unproven,
        };
        match self.biased.operator.class(n) {
            Class::Exact => Class::Unbiased(0.0),
            Class::Contractive(a) => Class::Unbiased(omega * (1.0 - a)),
            Class::Unbiased(first) => Class::Unbiased(omega * first),
            Class::Unproven => Class::Unproven,
        }
    }

    fn kinds(&self) -> &'static [Kind] {
        union(self.biased.operator.kinds(), self.unbiased.operator.kinds())
    }

    fn default_coder(&self) -> &'static str {
        common_coder(&self.biased, &self.unbiased)
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        self.biased.check("biased", longest)?;
        self.unbiased.check("unbiased", longest)?;
        match self.unbiased.operator.class(longest.max(1)) {
            Class::Exact | Class::Unbiased(_) => Ok(()),
            class => {
                let message = format!("the operator of the error must be unbiased, but this one has {class}");
                Err(Misfit { key: "unbiased", message })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::read,
        compress::{
            laws::{assert_mean_error, example, wire_bits},
            vectors,
        },
        vector::norm_squared,
    };

    fn induced(biased: &str, unbiased: &str) -> Induced {
        let settings = format!("biased = {{ operator = {biased} }}\nunbiased = {{ operator = {unbiased} }}");
        read(toml::from_str(&settings).expect("TOML")).expect("settings are valid")
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let operator = induced("\"top-k\", k = 2", "\"natural\"");
        assert_eq!(example(&operator, "fixed", &[3.0, -1.0, 2.0, 0.0]), (vec![3.0, -1.0, 2.0, 0.0], 104));
    }

    #[test]
    fn the_error_is_that_of_the_unbiased_one_on_what_is_left() {
        let operator = induced("\"top-k\", k = 200", "\"rand-k\", k = 200");
        let x = vectors::t(1000);
        let mut magnitudes: Vec<f32> = x.iter().map(|value| value.abs()).collect();
        magnitudes.sort_by(f32::total_cmp);
        // omega = 4 of the random subset, exactly, on the dropped energy
        assert_mean_error(&operator, &x, 4.0 * norm_squared(&magnitudes[..800]) / norm_squared(&x));
        let Class::Unbiased(omega) = operator.class(1000) else { panic!("it is unbiased") };
        assert!((omega - 4.0 * 0.8).abs() < 1e-12);
        assert_eq!(wire_bits(&operator, "fixed", &x), 200 * 42 + 200 * 32);
    }

    #[test]
    fn an_error_that_is_sent_with_bias_is_refused() {
        let misfit = induced("\"sign\"", "\"top-k\", k = 1").check(10).unwrap_err();
        assert_eq!(misfit.key, "unbiased");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let operator = induced("\"top-k\", k = 1", "\"natural\"");
        assert_eq!(example(&operator, "fixed", &[9.0, -4.5, 0.0, 3.0, 1.3]).0, [9.0, -4.0, 0.0, 4.0, 1.0]);
    }
}
