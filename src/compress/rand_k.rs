//! Random values.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit,
    top_k::{check_kept, kept},
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::below,
};

/// Keeps `k` coordinates chosen at random; the rest become zero.
///
/// # Formula
/// `C(x)_i = (n/k) x_i` if `i` is in a uniformly random `k`-subset, else `0`; without `scaled`, `x_i` in place of
/// `(n/k) x_i`. The subset is drawn without repetition from the shared stream of the message, so its positions cost
/// nothing, unless `support` is `private`. `k` is given, or `max(1, round(ratio n))` for every part.
///
/// # Bits
/// `32 k` with any coder. A private subset costs its code as well: `log2 C(n, k)` with the enumerative coder (then the
/// default).
///
/// # Bound
/// Unbiased, `omega = n/k - 1`, attained by every vector. Without `scaled`: contractive, `a = k/n`, exact on average.
///
/// # Source
/// Konecny et al., *Federated Learning: Strategies for Improving Communication Efficiency*, 2016, section 3 (random
/// mask). Differs from the source in: the subset has exactly `k` elements.
///
/// # Example
/// `x = (3, 3, 3, 3)`, `ratio = 0.5` gives two sixes and two zeros in 64 bits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandK {
    /// Share of coordinates kept, in (0, 1]; lower is more aggressive. Either this or `k`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Number of coordinates kept in every part, at least 1. Either this or `ratio`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Whether kept values are multiplied by `n/k`, which makes the operator unbiased.
    pub scaled: bool,
    /// Who knows beforehand which coordinates are kept: both ends (`shared`) or the sender (`private`), who must then
    /// say so.
    pub support: Support,
}

/// Who knows beforehand which coordinates are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// Both ends, from their common random stream.
    #[default]
    Shared,
    /// The sender, who sends the positions.
    Private,
}

impl Default for RandK {
    fn default() -> Self {
        Self { ratio: None, k: None, scaled: true, support: Support::Shared }
    }
}

impl Named for RandK {
    const NAME: &'static str = "rand-k";
    const EXAMPLE: &'static str = "ratio = 0.5";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "ratio", mildest: 1.0, harshest: 1e-5, whole: false, instead_of: &["k"] });
}

/// A uniformly random `k`-subset of the positions below `n`, increasing.
pub(super) fn subset(k: usize, n: usize, generator: &mut impl Rng) -> Vec<u32> {
    if k == n {
        return (0..n as u32).collect();
    }
    // Floyd's sampling: k draws, no repetition, every subset equally likely.
    let mut inside = vec![false; n];
    for last in (n - k)..n {
        let drawn = below(generator, last as u32 + 1) as usize;
        let chosen = if inside[drawn] { last } else { drawn };
        inside[chosen] = true;
    }
    (0..n as u32).filter(|&i| inside[i as usize]).collect()
}

impl Operator for RandK {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let (k, n) = (kept(self.ratio, self.k, x.len()), x.len());
        let at = match self.support {
            Support::Shared => subset(k, n, &mut part.streams.shared()),
            Support::Private => subset(k, n, &mut part.streams.private()),
        };
        let values = at.iter().map(|&i| x[i as usize]).collect();
        if self.support == Support::Private {
            payload.push(Section::Positions { at, n: n as u32 });
        }
        payload.push(Section::Floats(values));
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let (k, n) = (kept(self.ratio, self.k, out.len()), out.len());
        let at = match self.support {
            Support::Shared => subset(k, n, &mut part.streams.shared()),
            Support::Private => source.positions(k, n as u32)?,
        };
        let mut values = vec![0.0; at.len()];
        source.floats(&mut values)?;
        let factor = if self.scaled { out.len() as f64 / at.len() as f64 } else { 1.0 };
        out.fill(0.0);
        for (i, value) in at.into_iter().zip(values) {
            let scaled = (f64::from(value) * factor) as f32;
            out[i as usize] = scaled.clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let k = kept(self.ratio, self.k, n) as f64;
        match n as f64 {
            n if n == k => Class::Exact,
            n if self.scaled => Class::Unbiased(n / k - 1.0),
            n => Class::Contractive(k / n),
        }
    }

    fn kept(&self, n: usize) -> Option<usize> {
        Some(kept(self.ratio, self.k, n))
    }

    fn kinds(&self) -> &'static [Kind] {
        match self.support {
            Support::Shared => &[Kind::Floats],
            Support::Private => &[Kind::Positions, Kind::Floats],
        }
    }

    fn default_coder(&self) -> &'static str {
        match self.support {
            Support::Shared => "fixed",
            Support::Private => "enumerative",
        }
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        check_kept(self.ratio, self.k, longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{example, mean_error, wire_bits},
        vectors,
    };

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let half = RandK { ratio: Some(0.5), ..RandK::default() };
        let (mut decoded, bits) = example(&half, "fixed", &[3.0; 4]);
        decoded.sort_by(f32::total_cmp);
        assert_eq!((decoded, bits), (vec![0.0, 0.0, 6.0, 6.0], 64));
    }

    #[test]
    fn the_mean_error_is_that_of_the_specification() {
        // spec 5.6: k = 10, 100, 500 of 1000 give 99, 9, 1 for any vector
        for (k, expected) in [(10, 99.0), (100, 9.0), (500, 1.0)] {
            let operator = RandK { k: Some(k), ..RandK::default() };
            let (mean, standard_error) = mean_error(&operator, &vectors::g(1000), 200);
            assert!((mean - expected).abs() < 5.0 * standard_error + 1e-9, "k = {k}: {mean} +- {standard_error}");
            assert_eq!(wire_bits(&operator, "fixed", &vectors::g(1000)), 32 * u64::from(k));
        }
    }

    #[test]
    fn a_private_subset_costs_its_positions() {
        let operator = RandK { k: Some(100), support: Support::Private, ..RandK::default() };
        let (mean, standard_error) = mean_error(&operator, &vectors::g(1000), 200);
        assert!((mean - 9.0).abs() < 5.0 * standard_error, "{mean} +- {standard_error}");
        // spec 5.4: the code of 100 of 1000 positions
        assert_eq!(wire_bits(&operator, "fixed", &vectors::g(1000)), 3200 + 1000);
        let bits = wire_bits(&operator, "enumerative", &vectors::g(1000)) as f64 - 3200.0;
        assert!((464.42..464.42 + 17.0).contains(&bits), "{bits}");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let operator = RandK { k: Some(3), ..RandK::default() };
        let x: Vec<f32> = (1..=10).map(|i| i as f32).collect();
        let (decoded, _) = example(&operator, "fixed", &x);
        let at: Vec<usize> = (0..10).filter(|&i| decoded[i] != 0.0).collect();
        assert_eq!(at, [4, 7, 8]);
    }
}
