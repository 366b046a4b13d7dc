//! Codes for positive integers: unary, Elias, Golomb, Rice (spec of the operators, section 2.2).

use super::bits::{BitReader, BitWriter};
use crate::payload::Corrupt;

/// Writes `n >= 1` as `n - 1` ones and a zero: `n` bits.
#[inline]
pub fn put_unary(writer: &mut BitWriter, n: u64) {
    let mut ones = n - 1;
    while ones >= 32 {
        writer.put(u64::from(u32::MAX), 32);
        ones -= 32;
    }
    writer.put((1 << (ones + 1)) - 2, ones as u32 + 1);
}

/// Reads a unary code of at most `most`.
#[inline]
pub fn get_unary(reader: &mut BitReader<'_>, most: u64) -> Result<u64, Corrupt> {
    Ok(reader.ones(most.saturating_sub(1))? + 1)
}

/// An integer code that needs no parameter.
pub trait IntegerCode {
    /// Writes `n >= 1`.
    fn put(writer: &mut BitWriter, n: u64);
    /// Reads an integer from 1 to `2^32`; anything larger is corrupt.
    fn get(reader: &mut BitReader<'_>) -> Result<u64, Corrupt>;
}

const TOO_LARGE: Corrupt = Corrupt("an integer is too large");

/// Largest bit length of an integer that is read: positions, counts and levels are below `2^32`.
const MAX_BITS: u64 = 33;

/// Elias gamma: the bit length in unary, then the bits below the leading one; `2 floor(log2 n) + 1` bits.
pub struct Gamma;

impl IntegerCode for Gamma {
    fn put(writer: &mut BitWriter, n: u64) {
        let below = n.ilog2();
        put_unary(writer, u64::from(below) + 1);
        writer.put(n ^ 1 << below, below);
    }

    fn get(reader: &mut BitReader<'_>) -> Result<u64, Corrupt> {
        let below = reader.ones(MAX_BITS - 1)? as u32;
        Ok(1 << below | reader.get(below)?)
    }
}

/// Elias delta: the bit length in gamma, then the bits below the leading one.
pub struct Delta;

impl IntegerCode for Delta {
    fn put(writer: &mut BitWriter, n: u64) {
        let below = n.ilog2();
        Gamma::put(writer, u64::from(below) + 1);
        writer.put(n ^ 1 << below, below);
    }

    fn get(reader: &mut BitReader<'_>) -> Result<u64, Corrupt> {
        let below = Gamma::get(reader)? - 1;
        if below >= MAX_BITS {
            return Err(TOO_LARGE);
        }
        Ok(1 << below | reader.get(below as u32)?)
    }
}

/// Elias omega: the number, before it its bit length less one, and so on down to one; then a zero.
pub struct Omega;

impl IntegerCode for Omega {
    fn put(writer: &mut BitWriter, n: u64) {
        fn group(writer: &mut BitWriter, n: u64) {
            if n > 1 {
                group(writer, u64::from(n.ilog2()));
                writer.put(n, n.ilog2() + 1);
            }
        }
        group(writer, n);
        writer.put(0, 1);
    }

    fn get(reader: &mut BitReader<'_>) -> Result<u64, Corrupt> {
        let mut n = 1u64;
        while reader.get(1)? == 1 {
            if n >= MAX_BITS {
                return Err(TOO_LARGE);
            }
            n = 1 << n | reader.get(n as u32)?;
        }
        Ok(n)
    }
}

/// The Golomb code with a parameter `m`: the quotient in unary, the remainder in truncated binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Golomb {
    m: u64,
}

impl Golomb {
    /// The best parameter for gaps between successes of probability `k / n`:
    /// `ceil(log(2 - p) / -log(1 - p))`, and 1 from `p = 0.38` on.
    pub fn for_density(k: u64, n: u64) -> Self {
        if k == 0 { Self { m: 1 } } else { Self::for_success(k as f64 / n.max(1) as f64) }
    }

    /// The best parameter for waits less one, when a trial succeeds with probability `p` in (0, 1].
    pub fn for_success(p: f64) -> Self {
        let m = if p >= 0.38 { 1.0 } else { (libm::log(2.0 - p) / -libm::log1p(-p)).ceil() };
        Self { m: m as u64 }
    }

    /// The best power of two: `2^round(log2(ln 2 / p))`, at least 1. This is the Rice code.
    pub fn rice_for_density(k: u64, n: u64) -> Self {
        if k == 0 { Self { m: 1 } } else { Self::rice_for_success(k as f64 / n.max(1) as f64) }
    }

    /// The best power of two for waits less one, when a trial succeeds with probability `p` in (0, 1].
    pub fn rice_for_success(p: f64) -> Self {
        let r = libm::log2(std::f64::consts::LN_2 / p).round().clamp(0.0, 32.0);
        Self { m: 1 << r as u32 }
    }

    /// The parameter `m`.
    pub fn parameter(self) -> u64 {
        self.m
    }

    /// Writes `n >= 0`.
    pub fn put(self, writer: &mut BitWriter, n: u64) {
        let (quotient, rest, width) = self.split(n);
        put_unary(writer, quotient + 1);
        writer.put(rest, width);
    }

    /// The quotient, which is written in unary, and the word and width that are written for the remainder.
    pub fn split(self, n: u64) -> (u64, u64, u32) {
        let (width, short) = self.remainder();
        match n % self.m {
            rest if rest < short => (n / self.m, rest, width - 1),
            rest => (n / self.m, rest + short, width),
        }
    }

    /// Reads an integer of at most `most`.
    pub fn get(self, reader: &mut BitReader<'_>, most: u64) -> Result<u64, Corrupt> {
        let quotient = reader.ones(most / self.m)?;
        self.join(quotient, most, |width| reader.get(width))
    }

    /// The integer, at most `most`, of a quotient and of the bits that follow it.
    pub fn join(
        self,
        quotient: u64,
        most: u64,
        mut bits: impl FnMut(u32) -> Result<u64, Corrupt>,
    ) -> Result<u64, Corrupt> {
        let (width, short) = self.remainder();
        let rest = match width {
            0 => 0,
            _ => match bits(width - 1)? {
                rest if rest < short => rest,
                rest => (rest << 1 | bits(1)?) - short,
            },
        };
        let n = quotient * self.m + rest;
        if n > most { Err(TOO_LARGE) } else { Ok(n) }
    }

    /// Width of the long remainders, and how many remainders are one bit shorter.
    fn remainder(self) -> (u32, u64) {
        let width = super::bits::fixed_width(self.m);
        // With m = 1 there is no remainder, and "width - 1" must not be asked for.
        if width == 0 { (0, 0) } else { (width, (1 << width) - self.m) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn length(put: impl Fn(&mut BitWriter, u64), n: u64) -> u64 {
        let mut writer = BitWriter::default();
        put(&mut writer, n);
        writer.len()
    }

    #[test]
    fn lengths_are_those_of_the_definitions() {
        let omega: Vec<u64> = [1, 2, 3, 4, 7, 8, 15, 16, 100].into_iter().map(|n| length(Omega::put, n)).collect();
        assert_eq!(omega, [1, 3, 3, 6, 6, 7, 7, 11, 13]);
        for n in 1..2000u64 {
            let log = u64::from(n.ilog2());
            assert_eq!(length(Gamma::put, n), 2 * log + 1);
            assert_eq!(length(Delta::put, n), log + 2 * u64::from((log + 1).ilog2()) + 1);
            assert_eq!(length(put_unary, n), n);
        }
    }

    #[test]
    fn golomb_parameters_and_expected_lengths() {
        for (p, m, bits) in
            [(0.001, 693, 11.436), (0.01, 69, 8.105), (0.05, 14, 5.762), (0.1, 7, 4.725), (0.3, 2, 2.961)]
        {
            let code = Golomb::for_density((p * 1e6) as u64, 1_000_000);
            assert_eq!(code.parameter(), m, "p = {p}");
            let mean: f64 = (0..60_000u64)
                .map(|gap| p * (1.0f64 - p).powi(gap as i32) * length(|w, n| code.put(w, n), gap) as f64)
                .sum();
            assert!((mean - bits).abs() < 0.002, "p = {p}: {mean}");
        }
        assert_eq!(Golomb::for_density(0, 10).parameter(), 1);
        assert_eq!(Golomb::for_density(10, 10).parameter(), 1);
    }

    fn round_trip<C: IntegerCode>(values: &[u64]) {
        let mut writer = BitWriter::default();
        values.iter().for_each(|&n| C::put(&mut writer, n));
        let bytes = writer.finish();
        let mut reader = BitReader::new(&bytes);
        for &n in values {
            assert_eq!(C::get(&mut reader), Ok(n));
        }
        assert_eq!(reader.finish(), Ok(()));
    }

    proptest! {
        #[test]
        fn integers_come_back(values in prop::collection::vec(prop_oneof![1u64..20, 1u64..=1 << 32], 0..50)) {
            round_trip::<Gamma>(&values);
            round_trip::<Delta>(&values);
            round_trip::<Omega>(&values);
        }

        #[test]
        fn golomb_comes_back(values in prop::collection::vec(0u64..5_000, 0..50), k in 1u64..500) {
            for code in [Golomb::for_density(k, 1000), Golomb::rice_for_density(k, 1000)] {
                let mut writer = BitWriter::default();
                values.iter().for_each(|&n| code.put(&mut writer, n));
                let bytes = writer.finish();
                let mut reader = BitReader::new(&bytes);
                for &n in &values {
                    prop_assert_eq!(code.get(&mut reader, 5_000), Ok(n));
                }
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), m in 1u64..100) {
            let drain = |get: &dyn Fn(&mut BitReader<'_>) -> Result<u64, Corrupt>| {
                let mut reader = BitReader::new(&bytes);
                while get(&mut reader).is_ok() {}
            };
            drain(&|reader| Gamma::get(reader));
            drain(&|reader| Delta::get(reader));
            drain(&|reader| Omega::get(reader));
            drain(&|reader| Golomb { m }.get(reader, 1000));
            drain(&|reader| get_unary(reader, 1000));
        }
    }
}
