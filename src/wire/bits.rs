//! Bits in bytes, most significant first.

use half::f16;

use crate::payload::Corrupt;

/// Appends bits to a growing message.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits not yet in `bytes`, left-aligned; bits below the first `used` are zero.
    word: u64,
    /// Number of bits in `word`, below 64.
    used: u32,
}

impl BitWriter {
    /// Appends the low `width` bits of `value`; `width` is at most 64 and higher bits of `value` are zero.
    #[inline]
    pub fn put(&mut self, value: u64, width: u32) {
        debug_assert!(width <= 64 && (width == 64 || value >> width == 0), "value fits its width");
        let room = 64 - self.used;
        if width < room {
            // A width of zero would shift by 64 when the word is empty.
            self.word |= value.checked_shl(room - width).unwrap_or(0);
            self.used += width;
            return;
        }
        let rest = width - room;
        self.word |= value >> rest;
        self.bytes.extend_from_slice(&self.word.to_be_bytes());
        self.word = if rest == 0 { 0 } else { value << (64 - rest) };
        self.used = rest;
    }

    /// Appends one word of `width` bits for every value, several at a time.
    #[inline(always)]
    pub fn put_each<T: Copy>(&mut self, values: &[T], width: u32, word: impl Fn(T) -> u64) {
        match width {
            0 => {}
            1..=32 => {
                self.bytes.reserve(values.len() * width as usize / 8);
                for group in values.chunks((64 / width) as usize) {
                    let packed = group.iter().fold(0, |packed, &value| packed << width | word(value));
                    self.put(packed, group.len() as u32 * width);
                }
            }
            _ => values.iter().for_each(|&value| self.put(word(value), width)),
        }
    }

    /// Appends floats by their bits, 32 each.
    pub fn put_floats(&mut self, values: &[f32]) {
        if self.used.is_multiple_of(8) {
            let pending = (self.used / 8) as usize;
            self.bytes.extend_from_slice(&self.word.to_be_bytes()[..pending]);
            (self.word, self.used) = (0, 0);
            self.bytes.reserve(4 * values.len());
            for value in values {
                self.bytes.extend_from_slice(&value.to_bits().to_be_bytes());
            }
            return;
        }
        for value in values {
            self.put(u64::from(value.to_bits()), 32);
        }
    }

    /// Appends 16-bit floats by their bits.
    pub fn put_halves(&mut self, values: &[f16]) {
        values.iter().for_each(|value| self.put(u64::from(value.to_bits()), 16));
    }

    /// Appends a number below `below` in the fewest bits that can hold any such number.
    pub fn put_number(&mut self, value: u32, below: u32) {
        self.put(u64::from(value), fixed_width(u64::from(below)));
    }

    /// Number of bits so far.
    pub fn len(&self) -> u64 {
        8 * self.bytes.len() as u64 + u64::from(self.used)
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message, filled up to whole bytes with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let pending = self.used.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.word.to_be_bytes()[..pending]);
        self.bytes
    }
}

/// Takes bits from a message; fails past its end.
#[derive(Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Position of the next bit.
    at: u64,
}

/// `number`, which a message may only hold below `below`.
pub fn below_limit(number: u64, below: u32) -> Result<u32, Corrupt> {
    if number < u64::from(below) { Ok(number as u32) } else { Err(Corrupt("a number is beyond its limit")) }
}

const PAST_THE_END: Corrupt = Corrupt("it ends too early");

impl<'a> BitReader<'a> {
    /// Reads `bytes` from their first bit.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Number of bits that are left.
    pub fn left(&self) -> u64 {
        8 * self.bytes.len() as u64 - self.at
    }

    /// The next 64 bits, with zeros past the end.
    #[inline]
    fn peek(&self) -> u64 {
        let byte = (self.at / 8) as usize;
        let offset = (self.at % 8) as u32;
        let word = if let Some(window) = self.bytes.get(byte..byte + 8) {
            u64::from_be_bytes(window.try_into().expect("a window of eight bytes"))
        } else {
            let mut window = [0u8; 8];
            let tail = &self.bytes[byte.min(self.bytes.len())..];
            window[..tail.len().min(8)].copy_from_slice(&tail[..tail.len().min(8)]);
            u64::from_be_bytes(window)
        };
        let next = self.bytes.get(byte + 8).copied().unwrap_or(0);
        if offset == 0 { word } else { word << offset | u64::from(next) >> (8 - offset) }
    }

    /// The next `width` bits, at most 64.
    #[inline]
    pub fn get(&mut self, width: u32) -> Result<u64, Corrupt> {
        if u64::from(width) > self.left() {
            return Err(PAST_THE_END);
        }
        if width == 0 {
            return Ok(0);
        }
        let value = self.peek() >> (64 - width);
        self.at += u64::from(width);
        Ok(value)
    }

    /// Counts ones up to the next zero and takes both; fails past `most` ones.
    #[inline]
    pub fn ones(&mut self, most: u64) -> Result<u64, Corrupt> {
        let mut count = 0;
        loop {
            let run = u64::from(self.peek().leading_ones());
            count += run;
            if count > most {
                return Err(Corrupt("a unary code is too long"));
            }
            self.at += run;
            if self.at >= 8 * self.bytes.len() as u64 {
                return Err(PAST_THE_END);
            }
            if run < 64 {
                self.at += 1;
                return Ok(count);
            }
        }
    }

    /// Fills `out` with floats.
    pub fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        if 32 * out.len() as u64 > self.left() {
            return Err(PAST_THE_END);
        }
        if self.at.is_multiple_of(8) {
            let from = (self.at / 8) as usize;
            let window = &self.bytes[from..from + 4 * out.len()];
            for (value, bytes) in out.iter_mut().zip(window.chunks_exact(4)) {
                *value = f32::from_bits(u32::from_be_bytes(bytes.try_into().expect("a chunk of four bytes")));
            }
            self.at += 32 * out.len() as u64;
            return Ok(());
        }
        for value in out {
            *value = f32::from_bits(self.get(32)? as u32);
        }
        Ok(())
    }

    /// Fills `out` with 16-bit floats.
    pub fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        for value in out {
            *value = f16::from_bits(self.get(16)? as u16);
        }
        Ok(())
    }

    /// A number below `below`.
    pub fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        below_limit(self.get(fixed_width(u64::from(below)))?, below)
    }

    /// Fails unless all that is left is the padding of the last byte.
    pub fn finish(&mut self) -> Result<(), Corrupt> {
        if self.left() >= 8 {
            return Err(Corrupt("it goes on after its end"));
        }
        match self.get(self.left() as u32)? {
            0 => Ok(()),
            _ => Err(Corrupt("its padding is not zero")),
        }
    }
}

/// Bits of a fixed-width symbol among `n`: `ceil(log2 n)`, zero for one symbol.
pub fn fixed_width(n: u64) -> u32 {
    u64::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn widths_of_fixed_symbols() {
        let widths: Vec<u32> = [0, 1, 2, 3, 4, 5, 256, 257, 1001].into_iter().map(fixed_width).collect();
        assert_eq!(widths, [0, 0, 1, 2, 2, 3, 8, 9, 10]);
    }

    proptest! {
        #[test]
        fn what_was_put_is_got(items in prop::collection::vec((any::<u64>(), 0u32..=64), 0..200)) {
            let cut = |value: u64, width: u32| if width == 64 { value } else { value & ((1 << width) - 1) };
            let mut writer = BitWriter::default();
            for &(value, width) in &items {
                writer.put(cut(value, width), width);
            }
            let total: u64 = items.iter().map(|item| u64::from(item.1)).sum();
            prop_assert_eq!(writer.len(), total);
            let bytes = writer.finish();
            prop_assert_eq!(bytes.len() as u64, total.div_ceil(8));
            let mut reader = BitReader::new(&bytes);
            for &(value, width) in &items {
                prop_assert_eq!(reader.get(width), Ok(cut(value, width)));
            }
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        #[test]
        fn ones_and_floats_come_back(runs in prop::collection::vec(0u64..200, 1..20), x in prop::collection::vec(any::<u32>(), 0..9)) {
            let mut writer = BitWriter::default();
            for &run in &runs {
                (0..run).for_each(|_| writer.put(1, 1));
                writer.put(0, 1);
            }
            let floats: Vec<f32> = x.iter().map(|&bits| f32::from_bits(bits)).collect();
            writer.put_floats(&floats);
            writer.put(1, 1);
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            for &run in &runs {
                prop_assert_eq!(reader.ones(1000), Ok(run));
            }
            let mut back = vec![0.0; floats.len()];
            prop_assert_eq!(reader.floats(&mut back), Ok(()));
            prop_assert!(back.iter().zip(&floats).all(|(a, b)| a.to_bits() == b.to_bits()));
            prop_assert_eq!(reader.get(1), Ok(1));
        }
    }

    #[test]
    fn reading_past_the_end_fails() {
        let mut reader = BitReader::new(&[0xff]);
        assert_eq!(reader.get(7), Ok(0x7f));
        assert!(reader.get(2).is_err());
        assert!(reader.ones(100).is_err());
        assert!(BitReader::new(&[0xff; 40]).ones(100).is_err());
        assert!(BitReader::new(&[]).floats(&mut [0.0]).is_err());
        assert!(BitReader::new(&[0, 0]).finish().is_err());
        assert!(BitReader::new(&[1]).finish().is_err());
    }
}
