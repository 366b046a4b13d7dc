//! Elias omega codes of every level: the dense code of QSGD.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, EVERYTHING, MessageReader, MessageWriter,
    bits::{BitReader, BitWriter},
    elias::Elias,
    integer::{IntegerCode, Omega},
    sparse::{SparseCode, get_signs, get_symbols, get_waits, level, put_signs},
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source},
};

/// Every level, zero or not, in the Elias omega code: the dense code of QSGD.
///
/// # Bits
/// Levels: omega of (magnitude + 1) for each, and a sign bit for the nonzero ones. Positions, symbols and waits as `elias-omega`.
///
/// # Writes
/// Everything.
///
/// # Source
/// Alistarh et al., *QSGD*, 2017, section 3.3.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EliasDense {}

impl Named for EliasDense {
    const NAME: &'static str = "elias-dense";
}

impl Coder for EliasDense {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(DenseWriter(BitWriter::default()))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(DenseReader(BitReader::new(bytes)))
    }
}

/// What is not a level is written as the sparse code writes it.
const SPARSE: Elias<Omega> = Elias::CODE;

struct DenseWriter(BitWriter);

impl MessageWriter for DenseWriter {
    fn put(&mut self, section: &Section) {
        let bits = &mut self.0;
        match section {
            Section::Floats(values) => bits.put_floats(values),
            Section::Halves(values) => bits.put_halves(values),
            Section::Number { value, below } => bits.put_number(*value, *below),
            Section::Waits { values, success } => {
                values.iter().for_each(|&wait| SPARSE.put_wait(bits, wait, *success));
            }
            Section::Signs(values) => put_signs(bits, values),
            Section::Positions { at, n } => SPARSE.put_positions(bits, at, *n),
            Section::Symbols { values, alphabet } => {
                values.iter().for_each(|&symbol| SPARSE.put_symbol(bits, symbol, *alphabet));
            }
            Section::Levels { values, .. } => {
                for &level in values {
                    Omega::put(bits, u64::from(level.unsigned_abs()) + 1);
                    if level != 0 {
                        bits.put(u64::from(level < 0), 1);
                    }
                }
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

struct DenseReader<'a>(BitReader<'a>);

impl Source for DenseReader<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        self.0.floats(out)
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        self.0.halves(out)
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        self.0.number(below)
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        get_waits(SPARSE, &mut self.0, n, success, most)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        SPARSE.get_positions(&mut self.0, k, n)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        get_signs(&mut self.0, n)
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        get_symbols(SPARSE, &mut self.0, n, alphabet)
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        let mut values = Vec::with_capacity(n);
        for _ in 0..n {
            values.push(match Omega::get(&mut self.0)? - 1 {
                0 => 0,
                magnitude => level(self.0.get(1)? == 1, magnitude, largest)?,
            });
        }
        Ok(values)
    }
}

impl MessageReader for DenseReader<'_> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        self.0.finish()
    }
}
