//! The largest values.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Misfit, Operator, Part, Unfit, natural, read_scale, sparse_ternary};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::{linf, vectorised},
};

/// Keeps the `k` coordinates largest in magnitude; the rest become zero.
///
/// # Formula
/// `C(x)_i = x_i` if `i` is among the `k` largest `|x_i|`, else `0`; ties go to the lower index. `k` is given, or
/// `max(1, round(ratio n))` for every part. Parts shorter than `k` are kept whole; a `k` beyond the longest part is
/// refused. `fedbits check` prints what every part keeps. `values` says how the values kept are sent: `f32` exactly;
/// `f16` as 16-bit floats in units of the largest one; `natural` rounded to powers of two at random, as by the operator
/// `natural`; `sign` as signs with their mean magnitude, as by the operator `sparse-ternary`.
///
/// # Bits
/// `32 k` (`f32`), `32 + 16 k` (`f16`), `9 k` (`natural`) or `32 + k` (`sign`) for the values and the code of a
/// `k`-subset of `n` positions: `k ceil(log2 n)` with the fixed coder, `log2 C(n, k)` with the enumerative one (the
/// default). `natural` is for the fixed coder or for the adaptive one (then the default), which takes fewer than 9
/// bits. `k` itself follows from the settings and is not sent.
///
/// # Bound
/// Contractive, `a = k/n`; equal magnitudes attain it. The error is the energy of what is dropped. `f16`: `(1 - 2^-21 -
/// 2^-49 k) k/n`; `natural`: `(7/8) k/n`; `sign`: `min(1/k, k/n)`.
///
/// # Source
/// Stich, Cordonnier, Jaggi, *Sparsified SGD with Memory*, 2018, Def. 2.1. Differs from the source in: nothing for
/// `f32`; the other formats of values are not in the source.
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
    /// How the values kept are sent: `f32`, `f16`, `natural` or `sign`, from many bits to few.
    pub values: Values,
}

/// How the values kept are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// Exactly, as 32-bit floats.
    #[default]
    F32,
    /// As 16-bit floats in units of the largest one.
    F16,
    /// As powers of two, rounded at random without bias.
    Natural,
    /// As signs with a common magnitude.
    Sign,
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

/// The magnitude of a finite float as bits, which are ordered as magnitudes are.
#[inline(always)]
fn magnitude(value: f32) -> u32 {
    value.to_bits() & 0x7fff_ffff
}

/// The positions of the `k` largest magnitudes, increasing; ties go to the lower index. `O(n)`.
pub(super) fn largest(x: &[f32], k: usize) -> Vec<u32> {
    if k >= x.len() {
        return (0..x.len() as u32).collect();
    }
    let candidates = at_least(x, likely_threshold(x, k));
    let candidates = if candidates.len() >= k { candidates } else { (0..x.len() as u32).collect() };
    let mut magnitudes: Vec<u32> = candidates.iter().map(|&i| magnitude(x[i as usize])).collect();
    let cut = magnitudes.len() - k;
    let (_, &mut threshold, above) = magnitudes.select_nth_unstable(cut);
    let above = above.iter().filter(|&&value| value > threshold).count();
    let mut ties = k - above;
    let mut at = candidates;
    at.retain(|&i| {
        let value = magnitude(x[i as usize]);
        let tie = value == threshold && ties > 0;
        ties -= usize::from(tie);
        value > threshold || tie
    });
    at
}

/// A magnitude that a few more than `k` values are likely to reach: a quantile of a sample, with a margin of four standard deviations.
fn likely_threshold(x: &[f32], k: usize) -> u32 {
    const SAMPLE: usize = 4096;
    if x.len() < 4 * SAMPLE {
        return 0;
    }
    let stride = x.len() / SAMPLE;
    let mut sample: Vec<u32> = x.iter().step_by(stride).map(|&value| magnitude(value)).collect();
    let expected = sample.len() as f64 * k as f64 / x.len() as f64;
    let rank = (expected + 4.0 * expected.sqrt()).ceil() as usize + 1;
    if rank >= sample.len() {
        return 0;
    }
    let cut = sample.len() - rank;
    *sample.select_nth_unstable(cut).1
}

/// The positions whose magnitude is at least `threshold`.
fn at_least(x: &[f32], threshold: u32) -> Vec<u32> {
    if threshold == 0 {
        return (0..x.len() as u32).collect();
    }
    let mut at = Vec::new();
    vectorised(
        #[inline(always)]
        || {
            for (start, chunk) in (0..).step_by(64).zip(x.chunks(64)) {
                // Most stretches hold none, which vectors find out fast.
                if chunk.iter().fold(0, |largest, &value| magnitude(value).max(largest)) >= threshold {
                    at.extend(
                        (start..).zip(chunk).filter(|(_, value)| magnitude(**value) >= threshold).map(|(i, _)| i),
                    );
                }
            }
        },
    );
    at
}

impl Operator for TopK {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let at = largest(x, kept(self.ratio, self.k, x.len()));
        if self.values == Values::Sign {
            return sparse_ternary::put(x, at, payload);
        }
        let values: Vec<f32> = at.iter().map(|&i| x[i as usize]).collect();
        let positions = Section::Positions { at, n: x.len() as u32 };
        if self.values == Values::F16 {
            let unit = linf(&values);
            payload.push(Section::Floats(vec![unit]));
            if unit > 0.0 {
                payload.push(positions);
                let share = |value: &f32| f16::from_f32((f64::from(*value) / f64::from(unit)) as f32);
                payload.push(Section::Halves(values.iter().map(share).collect()));
            }
            return Ok(());
        }
        payload.push(positions);
        if self.values == Values::Natural {
            natural::put(&values, part, payload);
        } else {
            payload.push(Section::Floats(values));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let k = kept(self.ratio, self.k, out.len());
        if self.values == Values::Sign {
            return sparse_ternary::get(source, k, out);
        }
        out.fill(0.0);
        let unit = if self.values == Values::F16 { read_scale(source)? } else { 1.0 };
        if unit == 0.0 {
            return Ok(());
        }
        let at = source.positions(k, out.len() as u32)?;
        let mut values = vec![0.0; k];
        match self.values {
            Values::F16 => {
                let mut halves = vec![f16::ZERO; k];
                source.halves(&mut halves)?;
                for (value, half) in values.iter_mut().zip(halves.into_iter().map(f64::from)) {
                    if half.is_nan() || half.abs() > 1.0 {
                        return Err(Corrupt("a value is larger than the largest one"));
                    }
                    *value = (half * f64::from(unit)) as f32;
                }
            }
            Values::Natural => natural::get(source, &mut values)?,
            Values::F32 | Values::Sign => source.floats(&mut values)?,
        }
        for (i, value) in at.into_iter().zip(values) {
            out[i as usize] = value;
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let k = kept(self.ratio, self.k, n);
        let share = k as f64 / n as f64;
        match self.values {
            Values::F32 if k == n => Class::Exact,
            Values::F32 => Class::Contractive(share),
            // 11 bits of the values kept, and half of 2^-24 of the largest one where they are subnormal in these units.
            Values::F16 => Class::Contractive(share * (1.0 - 2f64.powi(-21) - 2f64.powi(-49) * k as f64)),
            Values::Natural => Class::Contractive(share * 0.875),
            Values::Sign => sparse_ternary::class(k, n),
        }
    }

    fn kept(&self, n: usize) -> Option<usize> {
        Some(kept(self.ratio, self.k, n))
    }

    fn kinds(&self) -> &'static [Kind] {
        match self.values {
            Values::F32 => &[Kind::Positions, Kind::Floats],
            Values::F16 => &[Kind::Floats, Kind::Positions, Kind::Halves],
            Values::Natural => &[Kind::Positions, Kind::Signs, Kind::Symbols],
            Values::Sign => &[Kind::Floats, Kind::Positions, Kind::Signs],
        }
    }

    fn default_coder(&self) -> &'static str {
        if self.values == Values::Natural { "adaptive" } else { "enumerative" }
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
            laws::{error, example, mean_error, payload, wire_bits},
            sparse_ternary::SparseTernary,
            vectors,
        },
        payload::log2_binomial,
    };

    fn keep(k: u32) -> TopK {
        TopK { k: Some(k), ..TopK::default() }
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let half = TopK { ratio: Some(0.5), ..TopK::default() };
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

    fn keep_as(values: Values, k: u32) -> TopK {
        TopK { values, ..keep(k) }
    }

    #[test]
    fn formats_of_values_cost_their_bits_and_lose_what_they_must() {
        let x = vectors::g(1000);
        let exact = error(&keep(100), &x);
        for (values, bits) in
            [(Values::F32, 3200), (Values::F16, 32 + 1600), (Values::Natural, 900), (Values::Sign, 132)]
        {
            assert_eq!(wire_bits(&keep_as(values, 100), "fixed", &x), bits + 1000, "{values:?}");
        }
        let halves = error(&keep_as(Values::F16, 100), &x);
        assert!(halves > exact - 1e-7 && halves < exact + 1e-6, "{halves} for {exact}");
        let (rounded, _) = mean_error(&keep_as(Values::Natural, 100), &x, 200);
        let (lost, most) = (rounded - exact, (1.0 - exact) / 8.0);
        assert!(lost > 0.5 * most && lost < most, "{lost} of {most}");
        let ternary = SparseTernary { ratio: None, k: Some(100) };
        assert_eq!(payload(&keep_as(Values::Sign, 100), &x), payload(&ternary, &x));
    }

    #[test]
    fn errors_of_powers_of_two_at_equal_bits_are_those_of_the_ranked_table() {
        // spec 6.1, d = 10,000, 9 bits a value and the enumerative code (30 bits of count and end): bits a value, NMSE
        // on G, L, T
        let table = [
            (0.1, [0.952, 0.902, 0.849]),
            (0.5, [0.814, 0.690, 0.645]),
            (1.0, [0.673, 0.536, 0.514]),
            (2.0, [0.481, 0.348, 0.345]),
            (4.0, [0.244, 0.171, 0.185]),
        ];
        for (rate, expected) in table {
            let bits = |k: u32| 9.0 * f64::from(k) + log2_binomial(10_000, k.into()) + 30.0;
            let k = (1..10_000).take_while(|&k| bits(k) <= rate * 1e4).last().expect("one value fits");
            for (x, expected) in [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)].iter().zip(expected) {
                let (error, _) = mean_error(&keep_as(Values::Natural, k), x, 5);
                assert!((error / expected - 1.0).abs() < 0.02, "{rate}: {error} for {expected}");
            }
        }
    }

    #[test]
    fn halves_reach_over_the_whole_range_of_floats() {
        let (decoded, _) = example(&keep_as(Values::F16, 3), "fixed", &[f32::MAX, -f32::MAX / 2.0, 1e-45, 0.0]);
        assert_eq!(decoded, [f32::MAX, -f32::MAX / 2.0, 0.0, 0.0]);
        let tiny = f32::from_bits(3);
        assert_eq!(example(&keep_as(Values::F16, 1), "fixed", &[0.0, tiny]).0, [0.0, tiny]);
    }

    #[test]
    fn both_or_none_of_ratio_and_k_are_refused_and_so_is_k_beyond_the_vector() {
        assert_eq!(TopK::default().check(10).unwrap_err().key, "ratio");
        assert_eq!(TopK { ratio: Some(0.1), ..keep(1) }.check(10).unwrap_err().key, "k");
        assert_eq!(
            keep(11).check(10).unwrap_err().message,
            "`k` is 11, but the longest part of the vector has 10 values"
        );
        assert_eq!(keep(10).check(10), Ok(()));
    }
}
