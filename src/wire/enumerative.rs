//! Enumerative codes of subsets, driven through the range coder.
//!
//! The coders that send levels as a subset differ only in [`Magnitudes`]: how the magnitudes are written.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    bits::fixed_width,
    plain::{get_floats, get_halves, get_number, get_waits, put_floats, put_halves, put_number, put_waits},
    range::{RangeDecoder, RangeEncoder, reciprocal},
    sparse::{ALL_BUT_SYMBOLS, level},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source},
};

/// Subsets at their information content: a `k`-subset of `n` takes `log2 C(n, k)` bits.
///
/// The range coder is given the exact probability `k left / n left` that the next position is in the set, so the code
/// lengths telescope to the binomial coefficient without a big integer.
///
/// # Bits
/// Positions `log2 C(n, k)`. Levels: the number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits,
/// magnitudes in unary (nothing where only 1 is possible). Waits are Golomb codes. One to two bytes end the message.
///
/// # Writes
/// Everything but symbols.
///
/// # Source
/// Cover, *Enumerative source encoding*, 1973.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enumerative {}

impl Named for Enumerative {
    const NAME: &'static str = "enumerative";
}

impl Coder for Enumerative {
    fn kinds(&self) -> &'static [Kind] {
        ALL_BUT_SYMBOLS
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SubsetWriter::new(*self))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SubsetReader::new(*self, bytes))
    }
}

impl Magnitudes for Enumerative {
    fn put(self, encoder: &mut RangeEncoder, magnitudes: &[u32]) {
        for &magnitude in magnitudes {
            (1..magnitude).for_each(|_| encoder.raw(1, 1));
            encoder.raw(0, 1);
        }
    }

    fn get(self, decoder: &mut RangeDecoder<'_>, m: usize, most: u64) -> Result<Vec<u64>, Corrupt> {
        let unary = |_| {
            let mut magnitude = 1;
            while decoder.raw(1) == 1 {
                magnitude += 1;
                if magnitude > most {
                    return Err(Corrupt("a level is out of range"));
                }
            }
            Ok(magnitude)
        };
        (0..m).map(unary).collect()
    }
}

/// How magnitudes of nonzero levels, which can be larger than 1, are written.
pub trait Magnitudes: Copy + Send + Sync + 'static {
    /// Encodes magnitudes, the number of which is known to both ends.
    fn put(self, encoder: &mut RangeEncoder, magnitudes: &[u32]);
    /// Decodes `m` magnitudes of at most `most`.
    fn get(self, decoder: &mut RangeDecoder<'_>, m: usize, most: u64) -> Result<Vec<u64>, Corrupt>;
}

/// Encodes a subset whose size both ends know: each position under the exact probability that it is in the set, so that
/// the code lengths telescope to `log2 C(n, k)`.
pub fn put_subset(encoder: &mut RangeEncoder, at: &[u32], n: u32) {
    let (mut left, mut places) = (at.len() as u64, u64::from(n));
    for &position in at {
        // Everything that is left is in the set.
        if left == places {
            return;
        }
        let wanted = u64::from(n - position);
        while places > wanted {
            encoder.chance(false, left * reciprocal(places));
            places -= 1;
        }
        if left < places {
            encoder.chance(true, left * reciprocal(places));
        }
        (left, places) = (left - 1, places - 1);
    }
}

/// Decodes a subset of `k` positions below `n`.
pub fn get_subset(decoder: &mut RangeDecoder<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
    if k > n as usize {
        return Err(Corrupt("a set is larger than what it is a set of"));
    }
    let mut at = Vec::with_capacity(k);
    let mut places = u64::from(n);
    for left in (1..=k as u64).rev() {
        while left < places && !decoder.chance(left * reciprocal(places)) {
            places -= 1;
        }
        at.push(n - places as u32);
        places -= 1;
    }
    Ok(at)
}

/// A message whose subsets take their information content.
#[derive(Debug)]
pub struct SubsetWriter<M> {
    magnitudes: M,
    encoder: RangeEncoder,
}

impl<M: Magnitudes> SubsetWriter<M> {
    /// An empty message.
    pub fn new(magnitudes: M) -> Self {
        Self { magnitudes, encoder: RangeEncoder::default() }
    }
}

impl<M: Magnitudes> MessageWriter for SubsetWriter<M> {
    fn put(&mut self, section: &Section) {
        let encoder = &mut self.encoder;
        match section {
            Section::Floats(values) => put_floats(encoder, values),
            Section::Halves(values) => put_halves(encoder, values),
            Section::Number { value, below } => put_number(encoder, *value, *below),
            Section::Waits { values, success } => put_waits(encoder, values, *success),
            Section::Signs(values) => values.iter().for_each(|&negative| encoder.raw(negative.into(), 1)),
            Section::Positions { at, n } => put_subset(encoder, at, *n),
            Section::Symbols { .. } => unreachable!("symbols are refused when a coder is chosen"),
            Section::Levels { values, largest, .. } => {
                let n = values.len() as u32;
                let at: Vec<u32> = (0..n).filter(|&i| values[i as usize] != 0).collect();
                encoder.raw(at.len() as u64, fixed_width(u64::from(n) + 1));
                put_subset(encoder, &at, n);
                at.iter().for_each(|&i| encoder.raw(u64::from(values[i as usize] < 0), 1));
                if *largest != Some(1) {
                    let magnitudes: Vec<u32> = at.iter().map(|&i| values[i as usize].unsigned_abs()).collect();
                    self.magnitudes.put(encoder, &magnitudes);
                }
            }
        }
    }

    fn bits(&self) -> u64 {
        self.encoder.len().ceil() as u64
    }

    fn finish(self: Box<Self>) -> (Vec<u8>, u64) {
        let bytes = self.encoder.finish();
        let bits = 8 * bytes.len() as u64;
        (bytes, bits)
    }
}

/// The receiving side of a [`SubsetWriter`].
#[derive(Debug)]
pub struct SubsetReader<'a, M> {
    magnitudes: M,
    decoder: RangeDecoder<'a>,
}

impl<'a, M: Magnitudes> SubsetReader<'a, M> {
    /// Reads a message from its beginning.
    pub fn new(magnitudes: M, bytes: &'a [u8]) -> Self {
        Self { magnitudes, decoder: RangeDecoder::new(bytes) }
    }
}

impl<M: Magnitudes> Source for SubsetReader<'_, M> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        get_floats(&mut self.decoder, out);
        Ok(())
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        get_halves(&mut self.decoder, out);
        Ok(())
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        get_number(&mut self.decoder, below)
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        get_waits(&mut self.decoder, n, success, most)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        get_subset(&mut self.decoder, k, n)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        Ok((0..n).map(|_| self.decoder.raw(1) == 1).collect())
    }

    fn symbols(&mut self, _n: usize, _alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        unreachable!("symbols are refused when a coder is chosen")
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        let k = self.decoder.raw(fixed_width(n as u64 + 1)) as usize;
        let at = get_subset(&mut self.decoder, k, n as u32)?;
        let negative = self.signs(k)?;
        let magnitudes = match largest {
            Some(1) => vec![1; k],
            _ => self.magnitudes.get(&mut self.decoder, k, u64::from(largest.unwrap_or(i32::MAX as u32)))?,
        };
        let mut values = vec![0; n];
        for ((i, negative), magnitude) in at.into_iter().zip(negative).zip(magnitudes) {
            values[i as usize] = level(negative, magnitude, largest)?;
        }
        Ok(values)
    }
}

impl<M: Magnitudes> MessageReader for SubsetReader<'_, M> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        self.decoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::log2_binomial;

    #[test]
    fn subsets_of_every_density_take_their_information() {
        for (n, every) in [(1_000_000, 100), (1_000_000, 7), (300_000, 2), (65_536, 65_536), (50_001, 1)] {
            for inverted in [false, true] {
                let at: Vec<u32> = (0..n).filter(|i| (i * 7 % every == 0) != inverted).collect();
                let mut encoder = RangeEncoder::default();
                put_subset(&mut encoder, &at, n);
                let information = log2_binomial(u64::from(n), at.len() as u64);
                assert!((encoder.len() - information).abs() < 1e-3 + 1e-8 * information, "{} of {n}", at.len());
                let bytes = encoder.finish();
                assert!(8.0 * bytes.len() as f64 <= information + 16.0);
                let mut decoder = RangeDecoder::new(&bytes);
                assert_eq!(get_subset(&mut decoder, at.len(), n), Ok(at));
                assert_eq!(decoder.finish(), Ok(()));
            }
        }
    }
}
