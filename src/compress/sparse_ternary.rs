//! The largest values, as signs with a common magnitude.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit, read_scale, scale,
    top_k::{check_kept, kept, largest},
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::l1,
};

/// Keeps the `k` coordinates largest in magnitude, each as its sign and their mean magnitude.
///
/// # Formula
/// `C(x)_i = mu sign(x_i)` if `i` is among the `k` largest `|x_i|`, else `0`; `mu` is the mean `|x_i|` of those kept,
/// and `sign(0) = +1`. Ties go to the lower index. `k` is given, or `max(1, round(ratio n))` for every part.
///
/// # Bits
/// `32 + k` and the code of a `k`-subset of `n` positions: `log2 C(n, k)` with the enumerative coder (the default). A
/// part of zeros is 32 bits.
///
/// # Bound
/// Contractive, `a = min(1/k, k/n)`; one value alone and equal magnitudes attain it. The error is `1 - |x_S|_1^2 / (k
/// |x|_2^2)`.
///
/// # Source
/// Sattler et al., *Robust and Communication-Efficient Federated Learning from Non-IID Data*, 2019, sparse ternary
/// compression. Differs from the source in: positions are enumerative codes unless the coder is `golomb`.
///
/// # Example
/// `x = (3, -1, 2, 0)`, `ratio = 0.5` gives `(2.5, 0, 2.5, 0)` in 38 bits with the fixed coder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SparseTernary {
    /// Share of coordinates kept, in (0, 1]; lower is more aggressive. Either this or `k`.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Number of coordinates kept in every part, at least 1. Either this or `ratio`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
}

impl Named for SparseTernary {
    const NAME: &'static str = "sparse-ternary";
    const EXAMPLE: &'static str = "ratio = 0.5";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "ratio", mildest: 1.0, harshest: 1e-5, whole: false, instead_of: &["k"] });
}

/// Sends the mean magnitude of the values of `x` at `at`, where they are, and their signs.
pub(super) fn put(x: &[f32], at: Vec<u32>, payload: &mut Payload) -> Result<(), Unfit> {
    let values: Vec<f32> = at.iter().map(|&i| x[i as usize]).collect();
    let mean = scale(l1(&values) / values.len() as f64)?;
    payload.push(Section::Floats(vec![mean]));
    if mean > 0.0 {
        payload.push(Section::Positions { at, n: x.len() as u32 });
        payload.push(Section::Signs(values.iter().map(|&value| value < 0.0).collect()));
    }
    Ok(())
}

/// Restores what [`put`] sent of `k` values.
pub(super) fn get(source: &mut dyn Source, k: usize, out: &mut [f32]) -> Result<(), Corrupt> {
    out.fill(0.0);
    let mean = read_scale(source)?;
    if mean == 0.0 {
        return Ok(());
    }
    let at = source.positions(k, out.len() as u32)?;
    for (i, negative) in at.into_iter().zip(source.signs(k)?) {
        out[i as usize] = if negative { -mean } else { mean };
    }
    Ok(())
}

/// The class of `k` kept of `n`.
///
/// The largest `|x|_2^2` for a given `|x_S|_1` is at a corner of the ordered vectors: all of `|x_S|_1` in one value, or
/// the same in all `n`.
pub(super) fn class(k: usize, n: usize) -> Class {
    let (k, n) = (k as f64, n as f64);
    if n == 1.0 { Class::Exact } else { Class::Contractive((1.0 / k).min(k / n)) }
}

impl Operator for SparseTernary {
    fn compress(&self, x: &[f32], _: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        put(x, largest(x, kept(self.ratio, self.k, x.len())), payload)
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        get(source, kept(self.ratio, self.k, out.len()), out)
    }

    fn class(&self, n: usize) -> Class {
        class(kept(self.ratio, self.k, n), n)
    }

    fn kept(&self, n: usize) -> Option<usize> {
        Some(kept(self.ratio, self.k, n))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Positions, Kind::Signs]
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
    use crate::compress::{
        laws::{error, example, wire_bits},
        vectors,
    };

    fn keep(k: u32) -> SparseTernary {
        SparseTernary { ratio: None, k: Some(k) }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let half = SparseTernary { ratio: Some(0.5), k: None };
        assert_eq!(example(&half, "fixed", &[3.0, -1.0, 2.0, 0.0]), (vec![2.5, 0.0, 2.5, 0.0], 38));
    }

    #[test]
    fn errors_and_bits_are_those_of_the_specification() {
        // spec 5.5: d, k, NMSE on G, L, T, and bits with a count of 14 bits that we need not send
        let table = [
            (1000, 10, [0.91725, 0.84578, 0.80777], None),
            (1000, 100, [0.57469, 0.45375, 0.47710], None),
            (10_000, 10, [0.98747, 0.96924, 0.93684], Some(168)),
            (10_000, 100, [0.91645, 0.84318, 0.80045], Some(950)),
            (10_000, 1000, [0.57453, 0.45447, 0.48296], Some(5730)),
        ];
        for (d, k, errors, bits) in table {
            for (x, expected) in [vectors::g(d), vectors::l(d), vectors::t(d)].iter().zip(errors) {
                let error = error(&keep(k), x);
                assert!((error - expected).abs() < 1e-5, "d = {d}, k = {k}: {error} for {expected}");
                let Some(bits) = bits else { continue };
                let sent = wire_bits(&keep(k), "enumerative", x);
                assert!((bits - 15..=bits + 2).contains(&sent), "k = {k}: {sent} for {bits}");
            }
        }
    }

    #[test]
    fn the_bound_is_attained() {
        let one_hot: Vec<f32> = (0..50).map(|i| f32::from(u8::from(i == 7))).collect();
        for k in [1, 5, 20, 50] {
            let (k, n) = (f64::from(k), 50.0);
            let operator = keep(k as u32);
            assert!((error(&operator, &one_hot) - (1.0 - 1.0 / k)).abs() < 1e-6);
            assert!((error(&operator, &[0.5; 50]) - (1.0 - k / n)).abs() < 1e-6);
        }
    }
}
