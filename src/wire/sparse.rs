//! Sections written as a sparse set: where the nonzero values are, then their signs and magnitudes.
//!
//! Bitmap, Elias, Golomb and Rice differ only in a [`SparseCode`]: how a set of positions, its size and a magnitude are written.

use half::f16;

use super::{
    MessageReader, MessageWriter,
    bits::{BitReader, BitWriter, fixed_width},
    integer::{get_unary, put_unary},
};
use crate::payload::{Corrupt, Kind, Section, Source};

/// How a set of positions and what stands there are written.
pub trait SparseCode: Copy + Send + Sync + 'static {
    /// Writes `k` increasing positions below `n`; `k` is known to both ends.
    fn put_positions(self, writer: &mut BitWriter, at: &[u32], n: u32);
    /// Reads what [`SparseCode::put_positions`] wrote.
    fn get_positions(self, reader: &mut BitReader<'_>, k: usize, n: u32) -> Result<Vec<u32>, Corrupt>;

    /// Writes the size of a set among `n`: `ceil(log2(n + 1))` bits.
    fn put_count(self, writer: &mut BitWriter, k: usize, n: usize) {
        writer.put(k as u64, fixed_width(n as u64 + 1));
    }
    /// Reads the size of a set among `n`.
    fn get_count(self, reader: &mut BitReader<'_>, n: usize) -> Result<usize, Corrupt> {
        Ok(reader.get(fixed_width(n as u64 + 1))? as usize)
    }
    /// Writes a magnitude from 1 to `largest`: unary, or nothing where it can only be 1.
    fn put_magnitude(self, writer: &mut BitWriter, magnitude: u32, largest: Option<u32>) {
        if largest != Some(1) {
            put_unary(writer, u64::from(magnitude));
        }
    }
    /// Reads a magnitude.
    fn get_magnitude(self, reader: &mut BitReader<'_>, largest: Option<u32>) -> Result<u64, Corrupt> {
        if largest == Some(1) { Ok(1) } else { get_unary(reader, u64::from(largest.unwrap_or(i32::MAX as u32))) }
    }
    /// Writes a symbol; only codes that list [`Kind::Symbols`] are asked to.
    fn put_symbol(self, writer: &mut BitWriter, symbol: u16, alphabet: u32) {
        writer.put(u64::from(symbol), fixed_width(u64::from(alphabet)));
    }
    /// Writes a wait; only codes that list [`Kind::Waits`] are asked to.
    fn put_wait(self, writer: &mut BitWriter, wait: u64, success: f64);
    /// Reads a wait of at most `most`.
    fn get_wait(self, reader: &mut BitReader<'_>, success: f64, most: u64) -> Result<u64, Corrupt>;
    /// Reads a symbol.
    fn get_symbol(self, reader: &mut BitReader<'_>, alphabet: u32) -> Result<u64, Corrupt> {
        reader.get(fixed_width(u64::from(alphabet)))
    }
}

/// The kinds that a code of sets writes when symbols without order mean nothing to it.
pub const ALL_BUT_SYMBOLS: &[Kind] = &[
    Kind::Floats,
    Kind::Halves,
    Kind::Number,
    Kind::Positions,
    Kind::Signs,
    Kind::Levels,
    Kind::UnboundedLevels,
    Kind::Waits,
];

/// A message under a sparse code.
#[derive(Debug)]
pub struct SparseWriter<C> {
    code: C,
    bits: BitWriter,
}

impl<C: SparseCode> SparseWriter<C> {
    /// An empty message.
    pub fn new(code: C) -> Self {
        Self { code, bits: BitWriter::default() }
    }
}

impl<C: SparseCode> MessageWriter for SparseWriter<C> {
    fn put(&mut self, section: &Section) {
        let (code, bits) = (self.code, &mut self.bits);
        match section {
            Section::Floats(values) => bits.put_floats(values),
            Section::Halves(values) => bits.put_halves(values),
            Section::Number { value, below } => bits.put_number(*value, *below),
            Section::Waits { values, success } => values.iter().for_each(|&wait| code.put_wait(bits, wait, *success)),
            Section::Signs(values) => put_signs(bits, values),
            Section::Positions { at, n } => code.put_positions(bits, at, *n),
            Section::Symbols { values, alphabet } => {
                values.iter().for_each(|&symbol| code.put_symbol(bits, symbol, *alphabet));
            }
            Section::Levels { values, largest, .. } => {
                let at: Vec<u32> = (0..values.len() as u32).filter(|&i| values[i as usize] != 0).collect();
                code.put_count(bits, at.len(), values.len());
                code.put_positions(bits, &at, values.len() as u32);
                for &i in &at {
                    let level = values[i as usize];
                    bits.put(u64::from(level < 0), 1);
                    code.put_magnitude(bits, level.unsigned_abs(), *largest);
                }
            }
        }
    }

    fn bits(&self) -> u64 {
        self.bits.len()
    }

    fn finish(self: Box<Self>) -> (Vec<u8>, u64) {
        let bits = self.bits.len();
        (self.bits.finish(), bits)
    }
}

/// The receiving side of a [`SparseWriter`].
#[derive(Debug)]
pub struct SparseReader<'a, C> {
    code: C,
    bits: BitReader<'a>,
}

impl<'a, C: SparseCode> SparseReader<'a, C> {
    /// Reads a message from its first bit.
    pub fn new(code: C, bytes: &'a [u8]) -> Self {
        Self { code, bits: BitReader::new(bytes) }
    }
}

impl<C: SparseCode> Source for SparseReader<'_, C> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        self.bits.floats(out)
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        self.bits.halves(out)
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        self.bits.number(below)
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        get_waits(self.code, &mut self.bits, n, success, most)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        self.code.get_positions(&mut self.bits, k, n)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        get_signs(&mut self.bits, n)
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        get_symbols(self.code, &mut self.bits, n, alphabet)
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        let k = self.code.get_count(&mut self.bits, n)?;
        if k > n {
            return Err(Corrupt("a set is larger than what it is a set of"));
        }
        let at = self.code.get_positions(&mut self.bits, k, n as u32)?;
        let mut values = vec![0; n];
        for i in at {
            let negative = self.bits.get(1)? == 1;
            let magnitude = self.code.get_magnitude(&mut self.bits, largest)?;
            values[i as usize] = level(negative, magnitude, largest)?;
        }
        Ok(values)
    }
}

impl<C: SparseCode> MessageReader for SparseReader<'_, C> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        self.bits.finish()
    }
}

/// Reads `n` waits of at most `most`.
pub fn get_waits(
    code: impl SparseCode,
    bits: &mut BitReader<'_>,
    n: usize,
    success: f64,
    most: u64,
) -> Result<Vec<u64>, Corrupt> {
    // Every wait takes at least one bit.
    if n as u64 > bits.left() {
        return Err(Corrupt("it ends too early"));
    }
    (0..n).map(|_| code.get_wait(bits, success, most)).collect()
}

/// `wait`, which may only be from 1 to `most`.
pub fn bounded_wait(wait: u64, most: u64) -> Result<u64, Corrupt> {
    if (1..=most).contains(&wait) { Ok(wait) } else { Err(Corrupt("a wait is out of range")) }
}

/// Reads `n` symbols below `alphabet`.
pub fn get_symbols(
    code: impl SparseCode,
    bits: &mut BitReader<'_>,
    n: usize,
    alphabet: u32,
) -> Result<Vec<u16>, Corrupt> {
    let mut values = Vec::with_capacity(n);
    for _ in 0..n {
        let symbol = code.get_symbol(bits, alphabet)?;
        if symbol >= u64::from(alphabet) {
            return Err(Corrupt("a symbol is outside its alphabet"));
        }
        values.push(symbol as u16);
    }
    Ok(values)
}

/// A level from its sign and magnitude; fails outside the range.
pub fn level(negative: bool, magnitude: u64, largest: Option<u32>) -> Result<i32, Corrupt> {
    if magnitude == 0 || magnitude > u64::from(largest.unwrap_or(i32::MAX as u32)) {
        return Err(Corrupt("a level is out of range"));
    }
    let magnitude = magnitude as i32;
    Ok(if negative { -magnitude } else { magnitude })
}

/// Writes one bit a sign.
pub fn put_signs(bits: &mut BitWriter, values: &[bool]) {
    bits.put_each(values, 1, u64::from);
}

/// Reads one bit a sign.
pub fn get_signs(bits: &mut BitReader<'_>, n: usize) -> Result<Vec<bool>, Corrupt> {
    if n as u64 > bits.left() {
        return Err(Corrupt("it ends too early"));
    }
    let mut values = Vec::with_capacity(n);
    while values.len() < n {
        let width = (n - values.len()).min(32);
        let word = bits.get(width as u32)?;
        values.extend((0..width).rev().map(|i| word >> i & 1 == 1));
    }
    Ok(values)
}

/// Writes positions as gaps; the first gap counts from -1, so every gap is at least 1.
pub fn put_gaps(at: &[u32], mut put: impl FnMut(u64)) {
    let mut next = 0;
    for &position in at {
        put(u64::from(position - next) + 1);
        next = position + 1;
    }
}

/// Reads `k` positions below `n` from gaps; `get` is told the largest gap there can be.
pub fn get_gaps(k: usize, n: u32, mut get: impl FnMut(u64) -> Result<u64, Corrupt>) -> Result<Vec<u32>, Corrupt> {
    if k > n as usize {
        return Err(Corrupt("a set is larger than what it is a set of"));
    }
    let mut at = Vec::with_capacity(k);
    let mut next = 0u64;
    for _ in 0..k {
        let gap = get(u64::from(n) - next)?;
        let position = next + gap - 1;
        if gap == 0 || position >= u64::from(n) {
            return Err(Corrupt("a position is out of range"));
        }
        at.push(position as u32);
        next = position + 1;
    }
    Ok(at)
}
