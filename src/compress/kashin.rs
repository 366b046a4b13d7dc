//! Random rounding of a representation whose coordinates are all of one size.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, rotation::hadamard, scale};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::{below, unit_f64},
    vector::{difference, linf, norm_squared},
};

/// Represents the part by more values than it has, none of them large, and rounds each at random to one of `s` points,
/// without bias.
///
/// # Formula
/// `C(x) = U Q(a)` with `U a = x`, where `U` holds `n` random columns, with random signs, of the Hadamard matrix of `N`
/// rows, the smallest power of two from `redundancy n` on. From `a = 0`, `r = x`, `M = |x| / sqrt(N)`, repeat
/// `b = U^T r` cut off at `M`, `a += b`, `r -= U b`, `M *= eta`, until `|r| < 10^-6 |x|`; then `a += U^T r`. `eta` is
/// 0.5 for `N/n >= 2`, 0.6 for `N/n >= 1.5`, else 0.65. `Q` rounds to `s` equally spaced points from `-A` to
/// `A = max |a_i|`, at random with mean `a_i`.
///
/// # Bits
/// `32 + N ceil(log2 s)` with the fixed coder. A part of zeros is 32 bits. Where the repetition does not converge, a
/// scale of -1 and the values themselves are sent: `32 + 32 n`.
///
/// # Bound
/// Unbiased, `omega = (n/N) K^2 / (s - 1)^2` with `K = 1 / (1 - eta) + 10^-6 sqrt(n)`: the sum of all `M` bounds `A`.
/// It holds for every vector, because convergence is not taken for granted but seen, and what does not converge is sent
/// exactly.
///
/// # Source
/// Safaryan, Shulgin, Richtarik, *Uncertainty Principle for Communication Compression*, 2020; iteration of Lyubarskii
/// and Vershynin, *Uncertainty Principles and Vector Quantization*, 2010. Differs from the source in: columns are
/// chosen at random, because the first `n` of `2 n` come in equal pairs and flatten nothing; the exact message where
/// the iteration fails.
///
/// # Example
/// `x = (1, 0)`, `levels = 2` has `a = (1/2, 1/2, 1/2, 1/2)` up to signs, which fall on points: `(1, 0)` in 36 bits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Kashin {
    /// Values of the representation for each value, above 1 and at most 8, before rounding up to a power of two; more
    /// is flatter and takes more bits.
    #[schemars(extend("exclusiveMinimum" = 1.0), range(max = 8.0))]
    pub redundancy: f64,
    /// Number of points `s` that values are rounded to, at least 2; fewer is more aggressive.
    #[schemars(range(min = 2, max = 65_536))]
    pub levels: u32,
}

impl Default for Kashin {
    fn default() -> Self {
        Self { redundancy: 2.0, levels: 4 }
    }
}

impl Named for Kashin {
    const NAME: &'static str = "kashin";
    const EXAMPLE: &'static str = "levels = 4";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "levels", mildest: 65_536.0, harshest: 2.0, whole: true, instead_of: &[] });
}

/// The scale of a message that holds the values themselves.
const RAW: f32 = -1.0;
/// Relative norm of what a representation may leave out before it is made exact.
const RESIDUE: f64 = 1e-6;
/// Repetitions after which the iteration counts as failed; 30 at most are enough where it converges by `eta` each time.
const REPETITIONS: usize = 40;

/// A frame `U`: which columns of the Hadamard matrix it holds, and their signs.
struct Frame {
    columns: Vec<u32>,
    negative: Vec<bool>,
    rows: usize,
}

impl Frame {
    fn new(part: &Part<'_>, n: usize, rows: usize) -> Self {
        let mut generator = part.streams.shared();
        // Floyd's sampling, as for random subsets.
        let mut inside = vec![false; rows];
        for last in (rows - n)..rows {
            let drawn = below(&mut generator, last as u32 + 1) as usize;
            let chosen = if inside[drawn] { last } else { drawn };
            inside[chosen] = true;
        }
        let columns = (0..rows as u32).filter(|&i| inside[i as usize]).collect();
        let negative = (0..n).map(|_| generator.next_u32() >> 31 == 1).collect();
        Self { columns, negative, rows }
    }

    /// `U^T r`.
    fn analyse(&self, r: &[f32]) -> Vec<f32> {
        let mut a = vec![0.0; self.rows];
        for ((&column, &negative), &value) in self.columns.iter().zip(&self.negative).zip(r) {
            a[column as usize] = if negative { -value } else { value };
        }
        hadamard(&mut a);
        a
    }

    /// `U a`, for which `a` is used up.
    fn synthesise(&self, mut a: Vec<f32>, out: &mut [f32]) {
        hadamard(&mut a);
        for ((&column, &negative), value) in self.columns.iter().zip(&self.negative).zip(out) {
            *value = if negative { -a[column as usize] } else { a[column as usize] };
        }
    }

    /// How fast the bound on coordinates shrinks, by the redundancy.
    fn eta(n: usize, rows: usize) -> f64 {
        match rows as f64 / n as f64 {
            redundancy if redundancy >= 2.0 => 0.5,
            redundancy if redundancy >= 1.5 => 0.6,
            _ => 0.65,
        }
    }

    /// A flat `a` with `U a = x` for a vector of norm one, and how many repetitions it took; none if they do not
    /// converge.
    fn represent(&self, x: &[f32]) -> Option<(Vec<f32>, usize)> {
        let (mut a, mut r, mut step) = (vec![0.0; self.rows], x.to_vec(), vec![0.0; x.len()]);
        let mut most = (1.0 / (self.rows as f64).sqrt()) as f32;
        for repetition in 1..=REPETITIONS {
            let mut b = self.analyse(&r);
            b.iter_mut().for_each(|value| *value = value.clamp(-most, most));
            a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
            self.synthesise(b, &mut step);
            let before = r.clone();
            difference(&before, &step, &mut r);
            most *= Self::eta(x.len(), self.rows) as f32;
            if norm_squared(&r).sqrt() < RESIDUE {
                a.iter_mut().zip(self.analyse(&r)).for_each(|(a, b)| *a += b);
                return Some((a, repetition));
            }
        }
        None
    }
}

impl Kashin {
    /// The length of the representation of `n` values.
    fn rows(&self, n: usize) -> usize {
        ((self.redundancy * n as f64).ceil() as usize).next_power_of_two()
    }
}

impl Operator for Kashin {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let norm = norm_squared(x).sqrt();
        if scale(norm)? == 0.0 {
            payload.push(Section::Floats(vec![0.0]));
            return Ok(());
        }
        let unit: Vec<f32> = x.iter().map(|&value| (f64::from(value) / norm) as f32).collect();
        let Some((a, _)) = Frame::new(part, x.len(), self.rows(x.len())).represent(&unit) else {
            payload.push(Section::Floats(vec![RAW]));
            payload.push(Section::Floats(x.to_vec()));
            return Ok(());
        };
        let largest = (f64::from(linf(&a)) * norm) as f32;
        payload.push(Section::Floats(vec![largest]));
        if largest == 0.0 {
            return Ok(());
        }
        let mut generator = part.streams.private();
        let half = f64::from(self.levels - 1) / 2.0;
        let round = |&value: &f32| {
            // The scale may have been rounded below the largest value.
            let target = ((f64::from(value) * norm / f64::from(largest)).clamp(-1.0, 1.0) + 1.0) * half;
            let below = target.floor();
            below as u16 + u16::from(unit_f64(generator.next_u64()) < target - below)
        };
        let values = a.iter().map(round).collect();
        payload.push(Section::Symbols { values, alphabet: self.levels });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let largest = source.float()?;
        if largest == RAW {
            return source.floats(out);
        }
        if !(largest >= 0.0 && largest.is_finite()) {
            return Err(Corrupt("a scale is negative or not finite"));
        }
        out.fill(0.0);
        if largest == 0.0 {
            return Ok(());
        }
        let rows = self.rows(out.len());
        let half = f64::from(self.levels - 1) / 2.0;
        let symbols = source.symbols(rows, self.levels)?;
        let a = symbols.into_iter().map(|symbol| (f64::from(symbol) / half - 1.0) as f32).collect();
        Frame::new(part, out.len(), rows).synthesise(a, out);
        for value in out {
            *value = ((f64::from(*value) * f64::from(largest)) as f32).clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let (rows, n) = (self.rows(n), n as f64);
        let k = 1.0 / (1.0 - Frame::eta(n as usize, rows)) + RESIDUE * n.sqrt();
        Class::Unbiased(n / rows as f64 * (k / f64::from(self.levels - 1)).powi(2))
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Symbols]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::{
            laws::{assert_mean_error, example, wire_bits},
            vectors,
        },
        layout::Layer,
        rng::Streams,
    };

    fn levels(levels: u32) -> Kashin {
        Kashin { levels, ..Kashin::default() }
    }

    fn frame(n: usize, rows: usize, draw: u64) -> Frame {
        let layers = [Layer { name: "x".into(), shape: vec![n], range: 0..n }];
        Frame::new(&Part { layers: &layers, streams: Streams::message(11, draw, 1, 2, 0) }, n, rows)
    }

    fn unit(x: &[f32]) -> Vec<f32> {
        let norm = norm_squared(x).sqrt();
        x.iter().map(|&value| (f64::from(value) / norm) as f32).collect()
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let (decoded, bits) = example(&levels(2), "fixed", &[1.0, 0.0]);
        assert!((decoded[0] - 1.0).abs() < 1e-6 && decoded[1].abs() < 1e-6, "{decoded:?}");
        assert_eq!(bits, 36);
    }

    #[test]
    fn representations_are_as_flat_as_in_the_specification() {
        // spec 5.14, N = 4096: 1.98 to 1.99, 1.8, 2.3 to 2.5 and 2.8, of few draws and vectors: n, K from, K to
        let rows = 4096;
        for (n, from, to) in [(2048, 1.97, 2.0), (1024, 1.75, 1.88), (2730, 2.28, 2.5), (3276, 2.5, 2.86)] {
            for draw in 0..3 {
                for x in [vectors::g(n), vectors::t(n)] {
                    let (frame, x) = (frame(n, rows, draw), unit(&x));
                    let (a, repetitions) = frame.represent(&x).expect("it converges");
                    let flatness = f64::from(linf(&a)) * (rows as f64).sqrt();
                    assert!((from..=to).contains(&flatness), "n = {n}: K = {flatness}");
                    assert!(flatness < 1.0 / (1.0 - Frame::eta(n, rows)));
                    assert!(n != 2048 || repetitions <= 8, "{repetitions} repetitions");
                    let mut back = vec![0.0; n];
                    frame.synthesise(a, &mut back);
                    assert!(crate::vector::distance_squared(&x, &back) < 1e-11);
                }
            }
        }
    }

    /// The exact mean error: the rounding of every coordinate, of which `U` keeps `n/N`.
    fn exact(operator: &Kashin, x: &[f32], draw: u64) -> f64 {
        let rows = operator.rows(x.len());
        let (a, _) = frame(x.len(), rows, draw).represent(&unit(x)).expect("it converges");
        let largest = f64::from(linf(&a));
        let half = f64::from(operator.levels - 1) / 2.0;
        let variance = |&a: &f32| {
            let target = (f64::from(a) / largest + 1.0) * half;
            (target - target.floor()) * (1.0 - target.fract()) * (largest / half).powi(2)
        };
        a.iter().map(variance).sum::<f64>() * x.len() as f64 / rows as f64
    }

    #[test]
    fn errors_and_bits_are_those_of_the_specification() {
        // spec 5.14, G_1000, N = 2048: levels, vNMSE, bits a value. The figures of the specification are of one frame;
        // the means of 200 frames in NumPy are 1.388, 0.1443 and 0.0262, with standard deviations of 1.6 % from frame
        // to frame.
        let x = vectors::g(1000);
        for (s, expected, bits) in [(2, 1.39, 2.08), (4, 0.147, 4.13), (8, 0.0265, 6.18)] {
            let operator = levels(s);
            let mean = (0..200).map(|draw| exact(&operator, &x, draw)).sum::<f64>() / 200.0;
            assert!((mean / expected - 1.0).abs() < 0.03, "s = {s}: {mean} for {expected}");
            assert!((wire_bits(&operator, "fixed", &x) as f64 / 1000.0 - bits).abs() < 0.005);
            assert_mean_error(&operator, &x, mean);
            let Class::Unbiased(omega) = operator.class(1000) else { panic!("it is unbiased") };
            assert!(mean <= omega, "s = {s}: {mean} above {omega}");
        }
    }

    #[test]
    fn what_does_not_converge_is_sent_as_it_is() {
        // Hardly more rows than values leave no other representation of this vector than a peak.
        let operator = Kashin { redundancy: 1.01, levels: 4 };
        let layers = [Layer { name: "x".into(), shape: vec![126], range: 0..126 }];
        let part = Part { layers: &layers, streams: Streams::message(1, 2, 3, 4, 0) };
        let (mut peak, mut x) = (vec![0.0; 128], vec![0.0; 126]);
        peak[5] = 3.0;
        Frame::new(&part, 126, 128).synthesise(peak, &mut x);
        let mut payload = Payload::default();
        operator.compress(&x, &part, &mut Vec::new(), &mut payload).expect("it can be sent");
        assert_eq!(payload.sections, [Section::Floats(vec![RAW]), Section::Floats(x.clone())]);
        let mut out = vec![0.0; 126];
        operator.restore(&mut payload.source(), &part, &mut out).expect("it can be read");
        assert_eq!(out, x);
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, _) = example(&levels(4), "fixed", &[1.0, -2.0, 2.0, 0.5, 0.0, 4.0]);
        assert_eq!(
            decoded.iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
            [1070397343, 3217880991, 1070397343, 1050933581, 3198417229, 1083816375]
        );
    }
}
