//! Low-rank factors of matrices.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Operator, Part, Unfit, gaussian::Stream, scale};
use crate::{
    catalogue::{Named, Strength},
    layout::Layer,
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::{norm_squared, vectorised},
};

/// Sends two thin factors of every matrix, found by power iteration that starts from the last message's.
///
/// # Formula
/// Every layer of two or more axes is a matrix `M`, its first axis down and the others across. `P` = the orthonormal
/// columns of `M Q`, `Q = M^T P`, `iterations` times; `C(M) = P Q^T`. `Q` starts from what it was in the sender's last
/// message, at first at random. `Q` has `r = min(rank, rows, columns)` columns; one that is zero starts at random
/// again. Layers of one axis, and matrices that are not at least `min_ratio` times as many values as their factors, are
/// sent as they are.
///
/// # Bits
/// `32 r (rows + columns)` for a matrix in factors, 32 a value otherwise, with any coder.
///
/// # Bound
/// None for every vector. `C` is a projection, so the error never exceeds the vector, but a column space that `Q`
/// misses is left out whole: no positive `a` holds for one message alone. With more iterations on one matrix the error
/// tends to that of the best approximation of its rank.
///
/// # Source
/// Vogels, Karimireddy, Jaggi, *PowerSGD*, 2019, algorithm 1. Differs from the source in: one sender alone finds and
/// sends both factors. The source averages `P` over all senders, makes it orthonormal and averages `Q = M^T P` with
/// that common `P`, so that everyone has the factors of the mean: two phases, which only a method can have.
///
/// # Example
/// `M = ((2, 0), (4, 0))`, `rank = 1`, `min_ratio = 1` has rank 1 and comes back as it is in 128 bits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PowerSgd {
    /// Columns of the factors, at least 1; fewer is more aggressive.
    #[schemars(range(min = 1, max = 4096))]
    pub rank: u32,
    /// Power iterations for each message, at least 1; more come closer to the best factors and take more time, but no
    /// bits.
    #[schemars(range(min = 1, max = 100))]
    pub iterations: u32,
    /// Least number of values of a matrix for each value of its factors, at least 1; other matrices are sent as they
    /// are.
    #[schemars(range(min = 1.0))]
    pub min_ratio: f64,
}

impl Default for PowerSgd {
    fn default() -> Self {
        Self { rank: 2, iterations: 1, min_ratio: 2.0 }
    }
}

impl Named for PowerSgd {
    const NAME: &'static str = "power-sgd";
    const EXAMPLE: &'static str = "rank = 2";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "rank", mildest: 256.0, harshest: 1.0, whole: true, instead_of: &[] });
}

/// Share of a column's norm below which what others leave of it is rounding.
const DEPENDENT: f64 = 1e-6;

/// The shape of a matrix and of its factors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    rows: usize,
    columns: usize,
    rank: usize,
}

impl PowerSgd {
    /// The shape of a layer that is sent in factors.
    fn shape(&self, layer: &Layer) -> Option<Shape> {
        let [rows, ref others @ ..] = layer.shape[..] else { return None };
        if others.is_empty() {
            return None;
        }
        let columns = others.iter().product();
        let rank = (self.rank as usize).min(rows).min(columns);
        let (values, sent) = (rows as f64 * columns as f64, rank as f64 * (rows as f64 + columns as f64));
        (sent > 0.0 && values >= self.min_ratio * sent).then_some(Shape { rows, columns, rank })
    }

    /// The layers of a part: which of its values they are, and their shapes if they are sent in factors.
    fn layers(&self, part: &Part<'_>) -> Vec<(std::ops::Range<usize>, Option<Shape>)> {
        let start = part.layers.first().map_or(0, |layer| layer.range.start);
        let one = |layer: &Layer| (layer.range.start - start..layer.range.end - start, self.shape(layer));
        part.layers.iter().map(one).collect()
    }
}

/// `M Q`, column after column, from the columns of `Q`.
fn times(m: &[f32], q: &[f32], shape: Shape) -> Vec<f64> {
    let product = |q: &[f32]| m.chunks_exact(shape.columns).map(|row| dot(row, q)).collect::<Vec<f64>>();
    q.chunks_exact(shape.columns).flat_map(product).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let mut lanes = [0.0f64; 16];
            let (mut a, mut b) = (a.chunks_exact(16), b.chunks_exact(16));
            for (a, b) in (&mut a).zip(&mut b) {
                for (lane, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                    *lane += f64::from(a) * f64::from(b);
                }
            }
            let tail: f64 = a.remainder().iter().zip(b.remainder()).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            lanes.iter().sum::<f64>() + tail
        },
    )
}

/// `M^T P`, column after column, from the columns of `P`.
fn transposed_times(m: &[f32], p: &[f32], shape: Shape) -> Vec<f64> {
    let mut q = vec![0.0f64; shape.rank * shape.columns];
    for (p, q) in p.chunks_exact(shape.rows).zip(q.chunks_exact_mut(shape.columns)) {
        for (row, &p) in m.chunks_exact(shape.columns).zip(p) {
            crate::vector::add_weighted(q, f64::from(p), row);
        }
    }
    q
}

/// Makes columns orthonormal (Gram-Schmidt, twice); those that depend on earlier ones become zero.
fn orthonormal(mut columns: Vec<f64>, length: usize) -> Vec<f32> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for i in 0..columns.len() / length {
        let (before, rest) = columns.split_at_mut(i * length);
        let column = &mut rest[..length];
        let norm = dot(column, column).sqrt();
        for _ in 0..2 {
            for other in before.chunks_exact(length) {
                let along = dot(column, other);
                column.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
            }
        }
        let left = dot(column, column).sqrt();
        let factor = if left > DEPENDENT * norm { 1.0 / left } else { 0.0 };
        column.iter_mut().for_each(|value| *value *= factor);
    }
    columns.into_iter().map(|value| value as f32).collect()
}

/// The columns scaled to unit norm; zero ones stay zero.
fn unit_columns(columns: &[f64], length: usize) -> impl Iterator<Item = f32> {
    columns.chunks_exact(length).flat_map(|column| {
        let norm = column.iter().map(|value| value * value).sum::<f64>().sqrt();
        column.iter().map(move |value| if norm > 0.0 { (value / norm) as f32 } else { 0.0 })
    })
}

impl Operator for PowerSgd {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let layers = self.layers(part);
        let remembered: usize = layers.iter().filter_map(|(_, shape)| shape.map(|s| s.rank * s.columns)).sum();
        warm.resize(remembered, 0.0);
        let key = part.streams.private().next_u64();
        let (mut start, mut column) = (0, 0);
        for (range, shape) in layers {
            let m = &x[range];
            let Some(shape) = shape else {
                payload.push(Section::Floats(m.to_vec()));
                continue;
            };
            // Factors are at most as large as the matrix.
            scale(norm_squared(m).sqrt())?;
            let q = &mut warm[start..][..shape.rank * shape.columns];
            start += q.len();
            for q in q.chunks_exact_mut(shape.columns) {
                if q.iter().all(|&value| value == 0.0) {
                    Stream::new(key, column).fill(q);
                }
                column += 1;
            }
            let (mut p, mut sent) = (Vec::new(), Vec::new());
            for _ in 0..self.iterations {
                p = orthonormal(times(m, q, shape), shape.rows);
                sent = transposed_times(m, &p, shape);
                q.iter_mut().zip(unit_columns(&sent, shape.columns)).for_each(|(q, unit)| *q = unit);
            }
            payload.push(Section::Floats(p));
            payload.push(Section::Floats(sent.into_iter().map(|value| value as f32).collect()));
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        for (range, shape) in self.layers(part) {
            let m = &mut out[range];
            let Some(shape) = shape else {
                source.floats(m)?;
                continue;
            };
            let mut p = vec![0.0; shape.rank * shape.rows];
            let mut q = vec![0.0; shape.rank * shape.columns];
            source.floats(&mut p)?;
            source.floats(&mut q)?;
            let mut row = vec![0.0f64; shape.columns];
            for (i, out) in m.chunks_exact_mut(shape.columns).enumerate() {
                row.fill(0.0);
                for (k, q) in q.chunks_exact(shape.columns).enumerate() {
                    crate::vector::add_weighted(&mut row, f64::from(p[k * shape.rows + i]), q);
                }
                out.iter_mut().zip(&row).for_each(|(out, &value)| *out = (value as f32).clamp(f32::MIN, f32::MAX));
            }
        }
        Ok(())
    }

    fn class(&self, _: usize) -> Class {
        Class::Unproven
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compress::vectors, layout::Layout, rng::Streams, vector::distance_squared};

    fn rank(rank: u32) -> PowerSgd {
        PowerSgd { rank, iterations: 1, min_ratio: 1.0 }
    }

    /// One message: what comes back, and its bits.
    fn send(operator: &PowerSgd, layout: &Layout, x: &[f32], warm: &mut Vec<f32>, round: u64) -> (Vec<f32>, f64) {
        let part = Part { layers: layout.layers(), streams: Streams::message(11, round, 1, 2, 0) };
        let mut payload = Payload::default();
        operator.compress(x, &part, warm, &mut payload).expect("it can be sent");
        let mut out = vec![f32::NAN; x.len()];
        operator.restore(&mut payload.source(), &part, &mut out).expect("it can be read");
        (out, payload.sections.iter().map(Section::information_bits).sum())
    }

    fn layout(shapes: &[&[usize]]) -> Layout {
        Layout::new(shapes.iter().enumerate().map(|(i, shape)| (format!("layer{i}"), shape.to_vec())))
    }

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let x = [2.0, 0.0, 4.0, 0.0];
        let (out, bits) = send(&rank(1), &layout(&[&[2, 2]]), &x, &mut Vec::new(), 1);
        assert!(distance_squared(&x, &out) < 1e-12, "{out:?}");
        assert_eq!(bits, 128.0);
    }

    #[test]
    fn a_matrix_of_low_rank_comes_back() {
        let (u, v) = (vectors::t(40), vectors::g(30));
        let x: Vec<f32> = u.iter().flat_map(|&u| v.iter().map(move |&v| u * v)).collect();
        for r in [1, 3] {
            let mut warm = Vec::new();
            for round in 0..4 {
                let (out, _) = send(&rank(r), &layout(&[&[40, 30]]), &x, &mut warm, round);
                assert!(distance_squared(&x, &out) < 1e-12 * norm_squared(&x), "rank {r}");
            }
        }
    }

    #[test]
    fn errors_and_bits_are_those_of_the_specification() {
        // spec 5.17: G_1024 as 32 x 32, error of the best matrix of rank 1 and rank 4, bits. How near to it the sixth
        // message comes depends on the start: over 2,000 starts in NumPy it is 0.9 % and 2.1 % above on average, with
        // standard deviations of 0.6 % and 1.2 %, and the specification's 2 % holds for 96 % and 52 % of them.
        let (x, layout) = (vectors::g(1024), layout(&[&[32, 32]]));
        for (r, best, bits, above) in [(1, 0.892816, 2048.0, 0.0092), (4, 0.628487, 8192.0, 0.0211)] {
            let starts = 40;
            let mut total = 0.0;
            for start in 0..starts {
                let (mut warm, mut errors) = (Vec::new(), Vec::new());
                for round in 0..6 {
                    let (out, spent) = send(&rank(r), &layout, &x, &mut warm, 100 * start + round);
                    assert_eq!(spent, bits);
                    errors.push(distance_squared(&x, &out) / norm_squared(&x));
                }
                assert!(errors.is_sorted_by(|a, b| a >= b) && errors[0] < 1.0, "{errors:?}");
                assert!(errors[5] >= best - 1e-6 && errors[5] < 1.06 * best, "rank {r}: {errors:?}");
                total += errors[5] / best - 1.0;
                let at_once = PowerSgd { iterations: 6, ..rank(r) };
                let (out, _) = send(&at_once, &layout, &x, &mut Vec::new(), 100 * start);
                assert!((distance_squared(&x, &out) / norm_squared(&x) - errors[5]).abs() < 1e-4);
            }
            let mean = total / starts as f64;
            assert!((mean - above).abs() < 0.006, "rank {r}: {mean} for {above}");
        }
    }

    #[test]
    fn layers_are_found_behind_the_start_of_the_part() {
        let layout = layout(&[&[9], &[6, 2, 4], &[7], &[3, 3], &[0, 4], &[20, 5]]);
        let x = vectors::t(layout.len());
        let operator = PowerSgd { rank: 2, iterations: 1, min_ratio: 1.1 };
        let mut warm = Vec::new();
        let streams = Streams::message(1, 2, 3, 4, 0);
        let part = Part { layers: &layout.layers()[1..], streams };
        let mut payload = Payload::default();
        operator.compress(&x[9..], &part, &mut warm, &mut payload).expect("it can be sent");
        // 3 x 3 is smaller than its factors.
        let lengths: Vec<usize> = payload
            .sections
            .iter()
            .map(|section| match section {
                Section::Floats(values) => values.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(lengths, [12, 16, 7, 9, 0, 40, 10]);
        assert_eq!(warm.len(), 16 + 10);
        let mut out = vec![0.0; x.len() - 9];
        operator.restore(&mut payload.source(), &part, &mut out).expect("it can be read");
        assert_eq!(out[48..64], x[57..73]);
        assert!(distance_squared(&out, &x[9..]) < norm_squared(&x[9..]));
    }

    #[test]
    fn a_zero_matrix_comes_back_as_zeros_and_does_not_stay_in_the_way() {
        let (layout, mut warm) = (layout(&[&[8, 8]]), Vec::new());
        let (out, _) = send(&rank(2), &layout, &[0.0; 64], &mut warm, 1);
        assert_eq!(out, [0.0; 64]);
        let x = vectors::g(64);
        let (out, _) = send(&rank(2), &layout, &x, &mut warm, 2);
        assert!(distance_squared(&x, &out) < 0.95 * norm_squared(&x));
    }

    #[test]
    fn it_is_a_projection_whatever_the_start() {
        for (round, shape) in [[5, 5], [2, 30], [30, 2], [1, 9], [9, 1]].into_iter().enumerate() {
            let x = vectors::t(shape[0] * shape[1]);
            for r in [1, 2, 4] {
                let operator = PowerSgd { min_ratio: 0.1, ..rank(r) };
                let (out, _) = send(&operator, &layout(&[&shape]), &x, &mut Vec::new(), round as u64);
                assert!(distance_squared(&x, &out) <= norm_squared(&x) * (1.0 + 1e-6), "{shape:?}, rank {r}");
            }
        }
    }

    #[test]
    fn norms_beyond_32_bits_are_refused() {
        let layout = layout(&[&[4, 4]]);
        let part = Part { layers: layout.layers(), streams: Streams::message(1, 2, 3, 4, 0) };
        let result = rank(1).compress(&[f32::MAX; 16], &part, &mut Vec::new(), &mut Payload::default());
        assert!(matches!(result, Err(Unfit::ScaleOverflow(_))));
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (out, _) = send(&rank(1), &layout(&[&[2, 2]]), &[1.0, -2.0, 2.0, 0.5], &mut Vec::new(), 1);
        assert_eq!(
            out.iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
            [1057146032, 3221260479, 3186729059, 1055752085]
        );
    }
}
