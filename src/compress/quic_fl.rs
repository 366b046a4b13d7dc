//! Rounding with shared randomness after a rotation, without bias in any coordinate.

use std::sync::OnceLock;

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Operator, Part, Unfit,
    isotropic::{Isotropic, LONG, hear_plain, turn_back},
    lloyd_max::{density, tail},
    quic_fl_tables as tables, scale,
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::unit_f64,
};

/// Rotates the vector at random and rounds every coordinate to a value that depends on a symbol and on a number that
/// both ends know.
///
/// # Formula
/// `z = sqrt(n) R x / |x|` with the randomised Hadamard rotation `R` in two rounds. Coordinates with `|z_i| > T =
/// 3.09727` (one in 512 of a Gaussian) are sent as they are. For every other one both ends draw `h_i` from `0..H`,
/// with `H` = 64, 32, 16, 16 for 1 to 4 bits; the sender chooses a symbol `s_i` with the mean of `r(s_i, h_i)` equal
/// to `z_i`, over `h_i` and its own randomness; the receiver takes `r(s_i, h_i)`. Of all such choices the one with the
/// least variance takes the value of row `h_i` nearest to a common point `t(z_i)`, and flips a coin where the point
/// lies in the middle of two. `C(x) = |x| / sqrt(n) R^-1 r`.
///
/// # Bits
/// `b n + 32` and a count below `n/9 + 1`; for every exact value 32 and its position instead of `b`: with the fixed
/// coder, `ceil(log2 n)`. That is 0.09 bits a value more for Gaussian ones.
///
/// # Bound
/// Unbiased for every single rotation. For parts of 256 values and more `omega` is the mean variance on a Gaussian,
/// 1.465, 0.2135, 0.0426, 0.0095 for 1 to 4 bits; shorter ones have the largest of any values with a mean square of 1:
/// 3.41, 0.643, 0.137, 0.0359.
///
/// # Source
/// Ben Basat et al., *QUIC-FL: Quick Unbiased Compression for Federated Learning*, 2022. Differs from the source in:
/// the values `r` are not the published ones, whose errors are 1.48, 0.214, 0.0430, 0.0097, but were minimised anew;
/// two Hadamard rounds without padding.
///
/// # Example
/// 1000 values with `bits = 2` take `32 + 7 + 2000` bits if no rotated one is beyond `T`; a vector of zeros stays one,
/// in 32.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuicFl {
    /// Bits a value, from 1 to 4; fewer is more aggressive.
    #[schemars(range(min = 1, max = 4))]
    pub bits: u32,
}

impl Default for QuicFl {
    fn default() -> Self {
        Self { bits: 2 }
    }
}

impl Named for QuicFl {
    const NAME: &'static str = "quic-fl";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "bits", mildest: 4.0, harshest: 1.0, whole: true, instead_of: &[] });
}

/// Values beyond are sent as they are.
const LIMIT: f32 = 3.09727;

/// How values are rounded with the help of a shared number.
///
/// Walking up from the least symbol of every row, the rows change to their next symbol one after the other, in the
/// order of the midpoints between the two values. After every change the mean over rows is larger; between two changes
/// the row that changes next has changed already with the probability that makes the mean right. The order of
/// midpoints is that of least variance: the change from `u` to `v` adds `v^2 - u^2 = (v - u)(u + v)` to the mean
/// square, so every unit of mean costs twice the midpoint.
pub struct Rule {
    /// The values of row `h`, increasing.
    rows: Vec<Vec<f32>>,
    /// For row `h`, when it changes to the next symbol: numbers of changes, increasing.
    turns: Vec<Vec<u32>>,
    /// The mean before every change, and after the last one.
    means: Vec<f64>,
    /// Mean variance on a Gaussian up to the limit.
    omega: f64,
    /// Largest mean variance of any values with a mean square up to 1.
    worst: f64,
}

impl Rule {
    /// The rule of 1 to 4 bits, made on first use.
    fn of(bits: u32) -> &'static Self {
        static RULES: [OnceLock<Rule>; 4] = [const { OnceLock::new() }; 4];
        RULES[bits as usize - 1].get_or_init(|| match bits {
            1 => Self::new(&tables::ONE),
            2 => Self::new(&tables::TWO),
            3 => Self::new(&tables::THREE),
            _ => Self::new(&tables::FOUR),
        })
    }

    fn new<const SYMBOLS: usize>(half: &[[f32; SYMBOLS]]) -> Self {
        let mut rows: Vec<Vec<f32>> = half.iter().map(|row| row.to_vec()).collect();
        rows.extend(half.iter().rev().map(|row| row.iter().rev().map(|value| -value).collect::<Vec<_>>()));
        let pair = |h: usize, s: usize| (f64::from(rows[h][s]), f64::from(rows[h][s + 1]));
        let mut changes: Vec<(usize, usize)> =
            (0..rows.len()).flat_map(|h| (0..SYMBOLS - 1).map(move |s| (h, s))).collect();
        changes.sort_by(|&(g, s), &(h, t)| (pair(g, s).0 + pair(g, s).1).total_cmp(&(pair(h, t).0 + pair(h, t).1)));
        let count = rows.len() as f64;
        let mut mean = rows.iter().map(|row| f64::from(row[0])).sum::<f64>() / count;
        let mut square = rows.iter().map(|row| f64::from(row[0]).powi(2)).sum::<f64>() / count;
        let (mut turns, mut means) = (vec![Vec::new(); rows.len()], vec![mean]);
        let mut omega = 0.0;
        let mut pieces = Vec::new();
        let limit = f64::from(LIMIT);
        for (number, &(h, s)) in changes.iter().enumerate() {
            turns[h].push(number as u32);
            let (u, v) = pair(h, s);
            let after = mean + (v - u) / count;
            // Between the two means the variance is `square + (u + v)(z - mean) - z^2`.
            let (constant, slope) = (square - (u + v) * mean, u + v);
            let (low, high) = (mean.clamp(-limit, limit), after.clamp(-limit, limit));
            let mass = tail(low) - tail(high);
            omega += (constant - 1.0) * mass + slope * (density(low) - density(high));
            omega -= low * density(low) - high * density(high);
            if low < high {
                pieces.push((constant, slope, low, high));
            }
            (mean, square) = (after, square + (v * v - u * u) / count);
            means.push(mean);
        }
        // The largest mean of variances `v(z)` where the mean of `z^2` is at most 1: for every price of `z^2` at most
        // the price and the largest `v(z) - price z^2`.
        let at_price = |price: f64| {
            let best = |&(constant, slope, low, high): &(f64, f64, f64, f64)| {
                let z = (0.5 * slope / (1.0 + price)).clamp(low, high);
                constant + slope * z - (1.0 + price) * z * z
            };
            price + pieces.iter().map(best).fold(0.0, f64::max)
        };
        let worst = (0..=1000).map(|i| at_price(0.005 * f64::from(i))).fold(f64::INFINITY, f64::min);
        Self { rows, turns, means, omega, worst }
    }

    /// The symbol of `z` under the shared number `h`; `coin` is uniform in [0, 1).
    fn symbol(&self, z: f32, h: usize, coin: f64) -> u16 {
        let z = f64::from(z);
        let last = self.means.len() - 2;
        let number = self.means.partition_point(|&mean| mean <= z).saturating_sub(1).min(last);
        let turns = &self.turns[h];
        let done = turns.partition_point(|&turn| (turn as usize) < number);
        let is_open = turns.get(done).is_some_and(|&turn| turn as usize == number);
        let (before, after) = (self.means[number], self.means[number + 1]);
        (done + usize::from(is_open && coin * (after - before) < z - before)) as u16
    }
}

/// The numbers that both ends know, for `n` values.
fn shared_numbers(part: &Part<'_>, rows: usize, n: usize) -> impl Iterator<Item = usize> {
    let mut generator = part.streams.inner(0).shared();
    // The number of rows is a power of two.
    (0..n).map(move |_| generator.next_u32() as usize & (rows - 1))
}

/// The count of exact values is below this: their squares sum to at most `n`.
fn below(n: usize) -> u32 {
    (n / 9 + 1) as u32
}

impl Operator for QuicFl {
    fn compress(&self, x: &[f32], part: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let Some(isotropic) = Isotropic::of(x, part)? else {
            payload.push(Section::Floats(vec![0.0]));
            return Ok(());
        };
        let (n, rule) = (x.len(), Rule::of(self.bits));
        payload.push(Section::Floats(vec![scale(isotropic.norm)?]));
        let is_exact = |z: f32| z.abs() > LIMIT;
        let at: Vec<u32> = (0..n as u32).filter(|&i| is_exact(isotropic.z[i as usize])).collect();
        payload.push(Section::Number { value: at.len() as u32, below: below(n) });
        let exact = at.iter().map(|&i| isotropic.z[i as usize]).collect();
        payload.push(Section::Positions { at, n: n as u32 });
        payload.push(Section::Floats(exact));
        let mut generator = part.streams.private();
        let rest = isotropic.z.iter().zip(shared_numbers(part, rule.rows.len(), n)).filter(|(z, _)| !is_exact(**z));
        let values = rest.map(|(&z, h)| rule.symbol(z, h, unit_f64(generator.next_u64()))).collect();
        payload.push(Section::Symbols { values, alphabet: 1 << self.bits });
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let Some(norm) = hear_plain(source, out)? else { return Ok(()) };
        let (n, rule) = (out.len(), Rule::of(self.bits));
        let count = source.number(below(n))? as usize;
        let at = source.positions(count, n as u32)?;
        let mut exact = vec![0.0; count];
        source.floats(&mut exact)?;
        if exact.iter().any(|z| !z.is_finite() || f64::from(*z).powi(2) > 2.0 * n as f64) {
            return Err(Corrupt("a rotated value is larger than the norm"));
        }
        let mut symbols = source.symbols(n - count, 1 << self.bits)?.into_iter();
        let mut exact = at.into_iter().zip(exact).peekable();
        for ((i, value), h) in out.iter_mut().enumerate().zip(shared_numbers(part, rule.rows.len(), n)) {
            *value = match exact.next_if(|(at, _)| *at as usize == i) {
                Some((_, z)) => z,
                None => symbols.next().map_or(0.0, |symbol| rule.rows[h][usize::from(symbol)]),
            };
        }
        turn_back(out, f64::from(norm) / (n as f64).sqrt(), part);
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        let rule = Rule::of(self.bits);
        Class::Unbiased(if n < LONG { rule.worst } else { rule.omega })
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Number, Kind::Positions, Kind::Symbols]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{example, mean_bits, mean_error, wire_bits},
        vectors,
    };

    /// Published errors, and the bound of short parts.
    const TABLE: [(u32, f64, f64); 4] = [(1, 1.48, 3.41), (2, 0.214, 0.643), (3, 0.0430, 0.137), (4, 0.0097, 0.0359)];

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let bits = wire_bits(&QuicFl::default(), "fixed", &vectors::g(1000));
        assert_eq!((bits - 2039) % 40, 0, "{bits}");
        assert_eq!(example(&QuicFl::default(), "fixed", &[0.0; 9]), (vec![0.0; 9], 32));
    }

    #[test]
    fn errors_are_not_above_the_published_ones() {
        for (bits, published, worst) in TABLE {
            let rule = Rule::of(bits);
            assert!(rule.omega <= published && rule.omega > 0.95 * published, "{bits} bits: {}", rule.omega);
            assert!(rule.worst <= worst && rule.worst > 0.97 * worst, "{bits} bits: {}", rule.worst);
            for x in [vectors::g(4096), vectors::t(4096)] {
                let (mean, standard_error) = mean_error(&QuicFl { bits }, &x, 100);
                assert!((mean - rule.omega).abs() < 4.0 * standard_error + 0.005 * rule.omega, "{bits} bits: {mean}");
            }
        }
    }

    #[test]
    fn every_coordinate_is_unbiased_over_the_shared_number_and_the_coin() {
        for (bits, ..) in TABLE {
            let rule = Rule::of(bits);
            let last = *rule.means.last().expect("there are changes");
            assert!(last >= f64::from(LIMIT) && rule.means[0] <= -f64::from(LIMIT), "{bits} bits: up to {last}");
            for i in -100..=100 {
                let z = LIMIT * i as f32 / 100.0;
                let coins = 2000;
                let mut mean = 0.0;
                for h in 0..rule.rows.len() {
                    for coin in 0..coins {
                        let symbol = rule.symbol(z, h, (f64::from(coin) + 0.5) / f64::from(coins));
                        mean += f64::from(rule.rows[h][usize::from(symbol)]);
                    }
                }
                mean /= f64::from(coins) * rule.rows.len() as f64;
                assert!((mean - f64::from(z)).abs() < 1e-3, "{bits} bits: {mean} for {z}");
            }
        }
    }

    #[test]
    fn exact_values_take_a_tenth_of_a_bit() {
        let (bits, _) = mean_bits(&QuicFl { bits: 2 }, "fixed", &vectors::t(10_000), 30);
        // (32 + 14 - 2) / 512
        assert!((bits / 10_000.0 - 2.0 - 0.086).abs() < 0.01, "{bits}");
    }

    #[test]
    fn values_are_stable_across_versions() {
        let (decoded, _) = example(&QuicFl::default(), "fixed", &[1.0, -2.0, 2.0, 0.5, 0.0, 4.0, -1.0, 3.0]);
        let shown: Vec<i32> = decoded.iter().map(|value| (value * 1000.0).round() as i32).collect();
        assert_eq!(shown, [941, -1835, 3250, 1427, -1500, 4973, -1638, 3574]);
    }
}
