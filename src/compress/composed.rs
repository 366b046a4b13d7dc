//! One operator after another.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    nested::{Nested, common_coder, flat, inside, union},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Payload, Section, Source, Trellis},
};

/// Applies one operator, and a second one to what the first leaves.
///
/// # Formula
/// `C(x) = second(first(x))`. If `first` selects values, as `top-k` and `rand-k` do, `second` is applied to the kept
/// values alone, and `first` puts its result where they were.
///
/// # Bits
/// Those of `second` for the whole part. If `first` selects: what `first` sends beside its values, and `second` for
/// these `k` values: `log2 C(n, k) + 9 k` for `natural` after `top-k`.
///
/// # Bound
/// Unbiased for unbiased ones: `omega = omega_1 omega_2 + omega_1 + omega_2`. After a contractive selection:
/// contractive, `a = a_1 (1 - omega_2)` for an unbiased `second` with `omega_2 < 1`, and `a = a_1 a_2` for a
/// contractive one. Unproven else.
///
/// # Source
/// Horvath et al., *Natural Compression for Distributed Deep Learning*, 2019, Theorem 5 and Tables 2 and 3. Differs
/// from the source in: nothing.
///
/// # Example
/// `x = (4, -1, 2, 0)`, `natural` after `top-k` with `ratio = 0.5` gives `(4, 0, 2, 0)` in `2 (2 + 9)` bits with the
/// fixed coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Composed {
    /// The operator that is applied first, with its settings.
    pub first: Nested,
    /// The operator that is applied to its result, with its settings.
    pub second: Nested,
}

impl Named for Composed {
    const NAME: &'static str = "composed";
    const EXAMPLE: &'static str = "first = { operator = \"top-k\", ratio = 0.5 }\nsecond = { operator = \"natural\" }";
}

impl Composed {
    /// The number of values that `first` keeps as plain floats, if it selects.
    fn selected(&self, n: usize) -> Option<usize> {
        (n > 0 && self.selects()).then(|| self.first.operator.kept(n)).flatten()
    }

    /// Whether `first` sends nothing but places and the values there.
    fn selects(&self) -> bool {
        let first = &self.first.operator;
        let plain = first.kinds().iter().all(|kind| matches!(kind, Kind::Floats | Kind::Positions));
        plain && first.kept(1).is_some()
    }
}

/// A source in which floats of one length are what an operator restores.
struct Substituted<'a> {
    source: &'a mut dyn Source,
    operator: &'a dyn Operator,
    part: &'a Part<'a>,
    k: usize,
}

impl Source for Substituted<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        if out.len() == self.k { self.operator.restore(self.source, self.part, out) } else { self.source.floats(out) }
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        self.source.halves(out)
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        self.source.number(below)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        self.source.positions(k, n)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        self.source.signs(n)
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        self.source.symbols(n, alphabet)
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        self.source.levels(n, largest)
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        self.source.waits(n, success, most)
    }

    fn walk(&mut self, n: usize, trellis: Trellis) -> Result<Vec<i32>, Corrupt> {
        self.source.walk(n, trellis)
    }
}

impl Operator for Composed {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let second = &self.second.operator;
        let Some(k) = self.selected(x.len()) else {
            let (_, between) = self.first.try_out(x, &inside(part, 0), warm)?;
            return second.compress(&between, &inside(part, 1), &mut Vec::new(), payload);
        };
        let mut selection = Payload::default();
        self.first.operator.compress(x, &inside(part, 0), warm, &mut selection)?;
        let layers = flat(k);
        for section in selection.sections {
            match section {
                Section::Floats(values) if values.len() == k => {
                    let part = Part { layers: &layers, streams: part.streams.inner(1) };
                    second.compress(&values, &part, &mut Vec::new(), payload)?;
                }
                other => payload.push(other),
            }
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let Some(k) = self.selected(out.len()) else {
            return self.second.operator.restore(source, &inside(part, 1), out);
        };
        let layers = flat(k);
        let values = Part { layers: &layers, streams: part.streams.inner(1) };
        let mut source = Substituted { source, operator: &*self.second.operator, part: &values, k };
        self.first.operator.restore(&mut source, &inside(part, 0), out)
    }

    fn class(&self, n: usize) -> Class {
        let selected = self.selected(n);
        match (self.first.operator.class(n), self.second.operator.class(selected.unwrap_or(n))) {
            (Class::Exact, class) | (class, Class::Exact) => class,
            (Class::Unbiased(a), Class::Unbiased(b)) => Class::Unbiased(a * b + a + b),
            // A selection is a projection: what it drops is orthogonal to what it keeps.
            (Class::Contractive(a), Class::Unbiased(omega)) if selected.is_some() && omega < 1.0 => {
                Class::Contractive(a * (1.0 - omega))
            }
            (Class::Contractive(a), Class::Contractive(b)) if selected.is_some() => Class::Contractive(a * b),
            _ => Class::Unproven,
        }
    }

    fn kept(&self, n: usize) -> Option<usize> {
        self.selected(n)
    }

    fn kinds(&self) -> &'static [Kind] {
        let second = self.second.operator.kinds();
        if self.selects() { union(self.first.operator.kinds(), second) } else { second }
    }

    fn default_coder(&self) -> &'static str {
        if self.selects() { common_coder(&self.first, &self.second) } else { self.second.operator.default_coder() }
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        self.first.check("first", longest)?;
        self.second.check("second", self.selected(longest).unwrap_or(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::read,
        compress::{
            laws::{assert_mean_error, example, mean_bits, mean_error, rounding_error, wire_bits},
            vectors,
        },
        vector::norm_squared,
    };

    fn composed(first: &str, second: &str) -> Composed {
        let settings = format!("first = {{ operator = {first} }}\nsecond = {{ operator = {second} }}");
        read(toml::from_str(&settings).expect("TOML")).expect("settings are valid")
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let operator = composed("\"top-k\", ratio = 0.5", "\"natural\"");
        assert_eq!(example(&operator, "fixed", &[4.0, -1.0, 2.0, 0.0]), (vec![4.0, 0.0, 2.0, 0.0], 22));
    }

    #[test]
    fn natural_after_top_k_costs_nine_bits_a_value_and_its_places_once() {
        let x = vectors::t(1000);
        let operator = composed("\"top-k\", k = 100", "\"natural\"");
        assert_eq!(wire_bits(&operator, "fixed", &x), 100 * (10 + 9));
        let mut magnitudes: Vec<f32> = x.iter().map(|value| value.abs()).collect();
        magnitudes.sort_by(f32::total_cmp);
        let (dropped, kept) = magnitudes.split_at(900);
        let rounded = rounding_error(kept, |v| v.log2().floor().exp2(), |v| 2.0 * v.log2().floor().exp2());
        assert_mean_error(&operator, &x, (norm_squared(dropped) + rounded) / norm_squared(&x));
        // 464.4 bits of positions, 100 signs, and exponents at less than 8 bits.
        let (bits, _) = mean_bits(&operator, operator.default_coder(), &x, 20);
        assert!(bits < 464.4 + 400.0, "{bits}");
        assert_eq!(operator.class(1000), Class::Contractive(0.1 * 0.875));
        assert_eq!(operator.kept(1000), Some(100));
    }

    #[test]
    fn classes_of_the_others_are_those_of_the_formulas() {
        let random = composed("\"rand-k\", ratio = 0.5", "\"natural\"");
        assert_eq!(random.class(1000), Class::Unbiased(0.125 + 1.0 + 0.125));
        assert_eq!(wire_bits(&random, "fixed", &vectors::g(1000)), 4500);
        let (mean, standard_error) = mean_error(&random, &vectors::g(1000), 200);
        assert!(mean < 1.25 + 3.0 * standard_error, "{mean}");
        // Both are unbiased, and only the second is sent.
        let both = composed("\"qsgd\", levels = 64", "\"natural\"");
        assert_eq!(wire_bits(&both, "fixed", &vectors::g(1000)), 9000);
        assert!(matches!(both.class(1000), Class::Unbiased(_)));
        assert_eq!(composed("\"sign\"", "\"natural\"").class(1000), Class::Unproven);
        let signs = composed("\"top-k\", k = 10", "\"sign\"");
        assert_eq!(signs.class(1000), Class::Contractive(0.01 * 0.1));
    }

    #[test]
    fn a_count_beyond_what_the_first_leaves_is_refused() {
        let operator = composed("\"top-k\", k = 10", "\"top-k\", k = 20");
        assert_eq!(operator.check(100).unwrap_err().key, "second");
        assert_eq!(operator.check(5).unwrap_err().key, "first");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let operator = composed("\"rand-k\", k = 4", "\"natural\"");
        let x: Vec<f32> = (1..=10).map(|i| 1.1 * i as f32).collect();
        assert_eq!(example(&operator, "fixed", &x).0, [0.0, 5.0, 0.0, 0.0, 10.0, 20.0, 0.0, 0.0, 20.0, 0.0]);
    }
}
