//! The largest values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Misfit, Operator, Part, Unfit};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
};

/// Keeps the `k` coordinates largest in magnitude; the rest become zero.
///
/// # Formula
/// `C(x)_i = x_i` if `i` is among the `k` largest `|x_i|`, else `0`; ties go to the lower index.
/// `k` is given, or `max(1, round(ratio n))` for every part. Parts shorter than `k` are kept whole; a `k` beyond the longest part is
/// refused. `fedbits check` prints what every part keeps.
///
/// # Bits
/// `32 k` for the values and the code of a `k`-subset of `n` positions: `k ceil(log2 n)` with the fixed coder, `log2 C(n, k)`
/// with the enumerative one (the default). `k` itself follows from the settings and is not sent.
///
/// # Bound
/// Contractive, `a = k/n`; equal magnitudes attain it. The error is the energy of what is dropped.
///
/// # Source
/// Stich, Cordonnier, Jaggi, *Sparsified SGD with Memory*, 2018, Def. 2.1. Differs from the source in: nothing.
///
/// # Example
/// `x = (3, -1, 2, 0)`, `ratio = 0.5` gives `(3, 0, 2, 0)` in 68 bits with the fixed coder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TopK {
    /// Share of coordinates kept, in (0, 1]; lower is more aggressive. Either this or `k`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Number of coordinates kept in every part, at least 1. Either this or `ratio`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
}

impl Named for TopK {
    const NAME: &'static str = "top-k";
    const EXAMPLE: &'static str = "ratio = 0.5";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "ratio", mildest: 1.0, harshest: 1e-5, whole: false, instead_of: &["k"] });
}

/// The number of coordinates kept among `n >= 1`.
pub(super) fn kept(ratio: Option<f64>, k: Option<u32>, n: usize) -> usize {
    let wanted = match (k, ratio) {
        (Some(k), _) => k as usize,
        (None, Some(ratio)) => (ratio * n as f64).round() as usize,
        (None, None) => n,
    };
    wanted.clamp(1, n)
}

/// Checks that exactly one of `ratio` and `k` is given and that `k` is below the longest part.
pub(super) fn check_kept(ratio: Option<f64>, k: Option<u32>, longest: usize) -> Result<(), Misfit> {
    match (ratio, k) {
        (Some(_), Some(_)) => Err(Misfit { key: "k", message: "give either `ratio` or `k`, not both".into() }),
        (None, None) => Err(Misfit { key: "ratio", message: "one of `ratio` and `k` must be given".into() }),
        (_, Some(k)) if k as usize > longest => {
            let message = format!("`k` is {k}, but the longest part of the vector has {longest} values");
            Err(Misfit { key: "k", message })
        }
        _ => Ok(()),
    }
}

/// The positions of the `k` largest magnitudes, increasing; ties go to the lower index. `O(n)`.
fn largest(x: &[f32], k: usize) -> Vec<u32> {
    let magnitude = |value: f32| value.to_bits() & 0x7fff_ffff;
    if k >= x.len() {
        return (0..x.len() as u32).collect();
    }
    // Magnitudes of finite floats are ordered as their bits are.
    let mut magnitudes: Vec<u32> = x.iter().map(|&value| magnitude(value)).collect();
    let (_, &mut threshold, above) = magnitudes.select_nth_unstable(x.len() - k);
    let above = above.iter().filter(|&&value| value > threshold).count();
    let mut ties = k - above;
    let mut at = Vec::with_capacity(k);
    for (i, &value) in x.iter().enumerate() {
        let value = magnitude(value);
        if value > threshold || (value == threshold && ties > 0) {
            ties -= usize::from(value == threshold);
            at.push(i as u32);
        }
    }
    at
}

impl Operator for TopK {
    fn compress(&self, x: &[f32], _: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let at = largest(x, kept(self.ratio, self.k, x.len()));
        let values = at.iter().map(|&i| x[i as usize]).collect();
        payload.push(Section::Positions { at, n: x.len() as u32 });
        payload.push(Section::Floats(values));
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let k = kept(self.ratio, self.k, out.len());
        let at = source.positions(k, out.len() as u32)?;
        let mut values = vec![0.0; k];
        source.floats(&mut values)?;
        out.fill(0.0);
        for (i, value) in at.into_iter().zip(values) {
            out[i as usize] = value;
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        match kept(self.ratio, self.k, n) {
            k if k == n => Class::Exact,
            k => Class::Contractive(k as f64 / n as f64),
        }
    }

    fn kept(&self, n: usize) -> Option<usize> {
        Some(kept(self.ratio, self.k, n))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Positions, Kind::Floats]
    }

    fn default_coder(&self) -> &'static str {
        "enumerative"
    }

    fn check(&self, longest: usize) -> Result<(), Misfit> {
        check_kept(self.ratio, self.k, longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::{
            laws::{error, example, wire_bits},
            vectors,
        },
        payload::log2_binomial,
    };

    fn keep(k: u32) -> TopK {
        TopK { ratio: None, k: Some(k) }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let half = TopK { ratio: Some(0.5), k: None };
        assert_eq!(example(&half, "fixed", &[3.0, -1.0, 2.0, 0.0]), (vec![3.0, 0.0, 2.0, 0.0], 68));
    }

    #[test]
    fn ties_go_to_the_lower_index_and_magnitude_means_magnitude() {
        assert_eq!(largest(&[1.0, -1.0, 1.0, -1.0], 2), [0, 1]);
        assert_eq!(largest(&[1.0, -5.0, 2.0, -5.0, 5.0], 2), [1, 3]);
        assert_eq!(largest(&[0.0, -0.0, 0.0], 1), [0]);
    }

    #[test]
    fn ratio_is_rounded_and_at_least_one() {
        let kept = |ratio, n| kept(Some(ratio), None, n);
        assert_eq!([kept(0.01, 10), kept(0.01, 149), kept(0.01, 150), kept(1.0, 7), kept(0.5, 3)], [1, 1, 2, 7, 2]);
    }

    #[test]
    fn errors_are_those_of_the_specification() {
        // spec 5.4, d = 1000: k, then NMSE on G, L, T
        let table = [
            (1, 0.98916, 0.97600, 0.96166),
            (10, 0.91667, 0.84274, 0.79793),
            (50, 0.72183, 0.57922, 0.55250),
            (100, 0.56144, 0.40701, 0.40119),
            (200, 0.35063, 0.22036, 0.23291),
            (500, 0.07142, 0.03351, 0.04332),
        ];
        for (k, g, l, t) in table {
            for (vector, expected) in [(vectors::g(1000), g), (vectors::l(1000), l), (vectors::t(1000), t)] {
                let error = error(&keep(k), &vector);
                assert!((error - expected).abs() < 1e-5, "k = {k}: {error} for {expected}");
            }
        }
        assert_eq!(error(&keep(1000), &vectors::g(1000)), 0.0);
    }

    #[test]
    fn bits_are_those_of_the_specification() {
        // spec 5.4, index set of G_1000: k, enumerative, fixed, Golomb, Rice, gamma, delta, omega
        let table = [
            (1u32, 9.97f64, 10, 11, 11, 19, 16, 17),
            (10, 77.80, 100, 81, 81, 112, 103, 116),
            (50, 282.28, 500, 290, 289, 380, 385, 425),
            (100, 464.42, 1000, 470, 475, 572, 610, 642),
            (200, 716.94, 2000, 730, 738, 834, 925, 917),
            (500, 994.69, 5000, 999, 999, 1128, 1322, 1186),
        ];
        let x = vectors::g(1000);
        for (k, enumerative, fixed, golomb, rice, gamma, delta, omega) in table {
            let index = |coder: &str| wire_bits(&keep(k), coder, &x) - 32 * u64::from(k);
            let exact = [
                ("fixed", fixed),
                ("golomb", golomb),
                ("rice", rice),
                ("elias-gamma", gamma),
                ("elias-delta", delta),
                ("elias-omega", omega),
                ("bitmap", 1000),
            ];
            for (coder, bits) in exact {
                assert_eq!(index(coder), bits, "k = {k}, {coder}");
            }
            let spent = index("enumerative") as f64;
            assert!(spent >= enumerative - 8.0 && spent <= enumerative + 16.0, "k = {k}: {spent}");
            assert!((log2_binomial(1000, k.into()) - enumerative).abs() < 0.005);
        }
        assert_eq!(wire_bits(&keep(1000), "enumerative", &x), 32_000);
    }

    #[test]
    fn both_or_none_of_ratio_and_k_are_refused_and_so_is_k_beyond_the_vector() {
        assert_eq!(TopK::default().check(10).unwrap_err().key, "ratio");
        assert_eq!(TopK { ratio: Some(0.1), k: Some(1) }.check(10).unwrap_err().key, "k");
        assert_eq!(
            keep(11).check(10).unwrap_err().message,
            "`k` is 11, but the longest part of the vector has 10 values"
        );
        assert_eq!(keep(10).check(10), Ok(()));
    }
}
