//! Enumerative codes of subsets, driven through the range coder.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    plain::{get_floats, get_halves, get_number, get_waits, put_floats, put_halves, put_number, put_waits},
    range::{RangeDecoder, RangeEncoder},
    sparse::{ALL_BUT_SYMBOLS, level},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source},
    wire::bits::fixed_width,
};

/// Subsets at their information content: a `k`-subset of `n` takes `log2 C(n, k)` bits.
///
/// The range coder is given the exact probability `k left / n left` that the next position is in the set, so the code lengths
/// telescope to the binomial coefficient without a big integer.
///
/// # Bits
/// Positions `log2 C(n, k)`. Levels: the number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits, magnitudes in
/// unary (nothing where only 1 is possible). Waits are Golomb codes. One to two bytes end the message.
///
/// # Writes
/// Everything but symbols.
///
/// # Source
/// Cover, *Enumerative source encoding*, 1973.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
        Box::new(EnumerativeWriter(RangeEncoder::default()))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(EnumerativeReader(RangeDecoder::new(bytes)))
    }
}

/// Encodes a subset whose size both ends know.
pub fn put_subset(encoder: &mut RangeEncoder, at: &[u32], n: u32) {
    let mut wanted = at.iter().copied().peekable();
    let mut left = at.len() as u64;
    for position in 0..n {
        let places = u64::from(n - position);
        // From here on everything or nothing is in the set.
        if left == 0 || left == places {
            return;
        }
        let inside = wanted.next_if_eq(&position).is_some();
        encoder.bit(inside, places - left, places);
        left -= u64::from(inside);
    }
}

/// Decodes a subset of `k` positions below `n`.
pub fn get_subset(decoder: &mut RangeDecoder<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
    if k > n as usize {
        return Err(Corrupt("a set is larger than what it is a set of"));
    }
    let mut at = Vec::with_capacity(k);
    for position in 0..n {
        let (left, places) = ((k - at.len()) as u64, u64::from(n - position));
        if left == 0 {
            break;
        }
        if left == places || decoder.bit(places - left, places) {
            at.push(position);
        }
    }
    Ok(at)
}

struct EnumerativeWriter(RangeEncoder);

impl MessageWriter for EnumerativeWriter {
    fn put(&mut self, section: &Section) {
        let encoder = &mut self.0;
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
                for &i in &at {
                    let level = values[i as usize];
                    encoder.raw(u64::from(level < 0), 1);
                    if *largest != Some(1) {
                        (1..level.unsigned_abs()).for_each(|_| encoder.raw(1, 1));
                        encoder.raw(0, 1);
                    }
                }
            }
        }
    }

    fn bits(&self) -> u64 {
        self.0.len().ceil() as u64
    }

    fn finish(self: Box<Self>) -> (Vec<u8>, u64) {
        let bytes = self.0.finish();
        let bits = 8 * bytes.len() as u64;
        (bytes, bits)
    }
}

struct EnumerativeReader<'a>(RangeDecoder<'a>);

impl Source for EnumerativeReader<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        get_floats(&mut self.0, out);
        Ok(())
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        get_halves(&mut self.0, out);
        Ok(())
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        get_number(&mut self.0, below)
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        get_waits(&mut self.0, n, success, most)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        get_subset(&mut self.0, k, n)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        Ok((0..n).map(|_| self.0.raw(1) == 1).collect())
    }

    fn symbols(&mut self, _n: usize, _alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        unreachable!("symbols are refused when a coder is chosen")
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        let k = self.0.raw(fixed_width(n as u64 + 1)) as usize;
        let at = get_subset(&mut self.0, k, n as u32)?;
        let most = u64::from(largest.unwrap_or(i32::MAX as u32));
        let mut values = vec![0; n];
        for i in at {
            let negative = self.0.raw(1) == 1;
            let mut magnitude = 1;
            while largest != Some(1) && self.0.raw(1) == 1 {
                magnitude += 1;
                if magnitude > most {
                    return Err(Corrupt("a level is out of range"));
                }
            }
            values[i as usize] = level(negative, magnitude, largest)?;
        }
        Ok(values)
    }
}

impl MessageReader for EnumerativeReader<'_> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        self.0.finish()
    }
}
