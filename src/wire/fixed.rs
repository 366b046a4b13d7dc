//! Fixed-width codes.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    bits::{BitReader, BitWriter, fixed_width},
    sparse::{get_signs, put_signs},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source},
};

/// Every value in the same number of bits, which its alphabet alone decides.
///
/// # Bits
/// Positions `k ceil(log2 n)`; symbols `ceil(log2 alphabet)` each; levels `ceil(log2(2 largest + 1))` each; signs 1; floats 32.
///
/// # Writes
/// Everything but levels without a largest magnitude and waits.
///
/// # Source
/// Folklore.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fixed {}

impl Named for Fixed {
    const NAME: &'static str = "fixed";
}

impl Coder for Fixed {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Halves, Kind::Number, Kind::Positions, Kind::Signs, Kind::Symbols, Kind::Levels]
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(FixedWriter(BitWriter::default()))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(FixedReader(BitReader::new(bytes)))
    }
}

struct FixedWriter(BitWriter);

/// Bits of a level from `-largest` to `largest`.
fn level_width(largest: Option<u32>) -> u32 {
    let largest = largest.expect("unbounded levels are refused when a coder is chosen");
    fixed_width(2 * u64::from(largest) + 1)
}

impl MessageWriter for FixedWriter {
    fn put(&mut self, section: &Section) {
        let bits = &mut self.0;
        match section {
            Section::Floats(values) => bits.put_floats(values),
            Section::Halves(values) => bits.put_halves(values),
            Section::Number { value, below } => bits.put_number(*value, *below),
            Section::Waits { .. } => unreachable!("waits are refused when a coder is chosen"),
            Section::Signs(values) => put_signs(bits, values),
            Section::Positions { at, n } => {
                let width = fixed_width(u64::from(*n));
                // The full set needs no words.
                if at.len() < *n as usize {
                    bits.put_each(at, width, u64::from);
                }
            }
            Section::Symbols { values, alphabet } => {
                let width = fixed_width(u64::from(*alphabet));
                bits.put_each(values, width, u64::from);
            }
            Section::Levels { values, largest, .. } => {
                let width = level_width(*largest);
                let shift = i64::from(largest.unwrap_or(0));
                bits.put_each(values, width, |level| (i64::from(level) + shift) as u64);
            }
        }
    }

    fn bits(&self) -> u64 {
        self.0.len()
    }

    fn finish(self: Box<Self>) -> (Vec<u8>, u64) {
        let bits = self.0.len();
        (self.0.finish(), bits)
    }
}

struct FixedReader<'a>(BitReader<'a>);

impl FixedReader<'_> {
    /// Reads `n` words of `width` bits below `limit`; what is not there is not allocated for.
    fn words(&mut self, n: usize, width: u32, limit: u64) -> Result<Vec<u64>, Corrupt> {
        if n as u64 * u64::from(width) > self.0.left() {
            return Err(Corrupt("it ends too early"));
        }
        let mut words = Vec::with_capacity(n);
        for _ in 0..n {
            let word = self.0.get(width)?;
            if word >= limit {
                return Err(Corrupt("a word is outside its alphabet"));
            }
            words.push(word);
        }
        Ok(words)
    }
}

impl Source for FixedReader<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        self.0.floats(out)
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        self.0.halves(out)
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        self.0.number(below)
    }

    fn waits(&mut self, _n: usize, _success: f64, _most: u64) -> Result<Vec<u64>, Corrupt> {
        unreachable!("waits are refused when a coder is chosen")
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k >= n as usize {
            return Ok((0..n).collect());
        }
        let at: Vec<u32> =
            self.words(k, fixed_width(n.into()), n.into())?.into_iter().map(|word| word as u32).collect();
        if !at.is_sorted_by(|a, b| a < b) {
            return Err(Corrupt("positions are not increasing"));
        }
        Ok(at)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        get_signs(&mut self.0, n)
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        let words = self.words(n, fixed_width(alphabet.into()), alphabet.into())?;
        Ok(words.into_iter().map(|word| word as u16).collect())
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        let shift = i64::from(largest.unwrap_or(0));
        let words = self.words(n, level_width(largest), 2 * shift as u64 + 1)?;
        Ok(words.into_iter().map(|word| (word as i64 - shift) as i32).collect())
    }
}

impl MessageReader for FixedReader<'_> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        self.0.finish()
    }
}
