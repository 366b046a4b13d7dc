//! A general-purpose compressor.

use std::{
    cell::RefCell,
    io::{BufReader, Read, Write},
};

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Coder, EVERYTHING, MessageReader, MessageWriter, bits::fixed_width, sparse::bounded_wait};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source},
};

/// Bytes under Zstandard: what a general-purpose compressor makes of a message, to compare with.
///
/// Every value is written in the fewest whole bytes that its alphabet fits in, least significant first; signs are eight
/// a byte. Levels without a largest magnitude and waits have no alphabet and are written seven bits a byte, levels with
/// their sign in the lowest bit. The bytes are one frame without magic number, size and checksum, and a part of the
/// message ends a block, so that its bits are known.
///
/// # Bits
/// What Zstandard makes of them; no formula holds, not even for floats.
///
/// # Writes
/// Everything.
///
/// # Source
/// Collet and Kucherawy, *Zstandard Compression and the application/zstd Media Type*, RFC 8878, 2021.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Zstd {
    /// How long it looks for repetitions, 1 to 19; higher is slower and rarely longer.
    #[schemars(range(min = 1, max = 19))]
    level: i32,
}

impl Default for Zstd {
    fn default() -> Self {
        Self { level: 3 }
    }
}

impl Named for Zstd {
    const NAME: &'static str = "zstd";
}

impl Coder for Zstd {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(ZstdWriter { level: self.level, frame: None })
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(ZstdReader { bytes, frame: None })
    }
}

/// Repetitions are at most 1 MiB back, which bounds the memory of a receiver.
const WINDOW_LOG: u32 = 20;

/// The fewest bytes that hold any number below `n`.
fn width(n: u64) -> usize {
    fixed_width(n).div_ceil(8) as usize
}

fn put_word(bytes: &mut Vec<u8>, word: u64, width: usize) {
    bytes.extend_from_slice(&word.to_le_bytes()[..width]);
}

fn put_sevens(bytes: &mut Vec<u8>, mut word: u64) {
    while word >= 0x80 {
        bytes.push(word as u8 | 0x80);
        word >>= 7;
    }
    bytes.push(word as u8);
}

fn bytes_of(section: &Section) -> Vec<u8> {
    let mut bytes = Vec::new();
    match section {
        Section::Floats(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
        Section::Halves(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
        Section::Number { value, below } => put_word(&mut bytes, u64::from(*value), width(u64::from(*below))),
        Section::Positions { at, n } if at.len() == *n as usize => {}
        Section::Positions { at, n } => {
            at.iter().for_each(|&position| put_word(&mut bytes, position.into(), width(u64::from(*n))));
        }
        Section::Signs(values) => {
            let byte = |signs: &[bool]| signs.iter().rev().fold(0, |byte, &negative| byte << 1 | u8::from(negative));
            bytes.extend(values.chunks(8).map(byte));
        }
        Section::Symbols { values, alphabet } => {
            values.iter().for_each(|&symbol| put_word(&mut bytes, symbol.into(), width(u64::from(*alphabet))));
        }
        Section::Levels { values, largest: Some(largest), .. } => {
            let word = |level: i32| (i64::from(level) + i64::from(*largest)) as u64;
            let width = width(2 * u64::from(*largest) + 1);
            values.iter().for_each(|&level| put_word(&mut bytes, word(level), width));
        }
        Section::Levels { values, largest: None, .. } => {
            let word = |level: i32| u64::from(level.unsigned_abs()) << 1 | u64::from(level < 0);
            values.iter().for_each(|&level| put_sevens(&mut bytes, word(level)));
        }
        Section::Waits { values, .. } => values.iter().for_each(|&wait| put_sevens(&mut bytes, wait)),
    }
    bytes
}

struct ZstdWriter {
    level: i32,
    /// The frame, as soon as there is a byte in it. Asking for its bits ends a block.
    frame: Option<RefCell<zstd::Encoder<'static, Vec<u8>>>>,
}

const IN_MEMORY: &str = "a vector takes every byte";

fn open(level: i32) -> std::io::Result<zstd::Encoder<'static, Vec<u8>>> {
    let mut frame = zstd::Encoder::new(Vec::new(), level)?;
    frame.window_log(WINDOW_LOG)?;
    frame.include_magicbytes(false)?;
    frame.include_contentsize(false)?;
    frame.include_checksum(false)?;
    Ok(frame)
}

impl MessageWriter for ZstdWriter {
    fn put(&mut self, section: &Section) {
        let bytes = bytes_of(section);
        if !bytes.is_empty() {
            let frame = self.frame.get_or_insert_with(|| RefCell::new(open(self.level).expect("the level is valid")));
            frame.get_mut().write_all(&bytes).expect(IN_MEMORY);
        }
    }

    fn bits(&self) -> u64 {
        let Some(frame) = &self.frame else { return 0 };
        let mut frame = frame.borrow_mut();
        frame.flush().expect(IN_MEMORY);
        8 * frame.get_ref().len() as u64
    }

    fn finish(self: Box<Self>) -> (Vec<u8>, u64) {
        let bytes = self.frame.map_or_else(Vec::new, |frame| frame.into_inner().finish().expect(IN_MEMORY));
        let bits = 8 * bytes.len() as u64;
        (bytes, bits)
    }
}

struct ZstdReader<'a> {
    bytes: &'a [u8],
    /// The frame, as soon as a byte of it is asked for. It gives no more bytes than are asked for.
    frame: Option<BufReader<zstd::Decoder<'static, &'a [u8]>>>,
}

const NOT_A_FRAME: Corrupt = Corrupt("it is no frame, or ends too early");

impl<'a> ZstdReader<'a> {
    fn open(bytes: &'a [u8]) -> std::io::Result<BufReader<zstd::Decoder<'static, &'a [u8]>>> {
        let mut frame = zstd::Decoder::with_buffer(bytes)?.single_frame();
        frame.window_log_max(WINDOW_LOG)?;
        frame.include_magicbytes(false)?;
        Ok(BufReader::new(frame))
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<(), Corrupt> {
        if out.is_empty() {
            return Ok(());
        }
        if self.frame.is_none() {
            self.frame = Some(Self::open(self.bytes).map_err(|_| NOT_A_FRAME)?);
        }
        self.frame.as_mut().expect("it was opened").read_exact(out).map_err(|_| NOT_A_FRAME)
    }

    /// `n` words of `width` bytes, below `limit`.
    fn words(&mut self, n: usize, width: usize, limit: u64) -> Result<Vec<u64>, Corrupt> {
        let mut words = Vec::with_capacity(n);
        for _ in 0..n {
            let mut word = [0; 8];
            self.fill(&mut word[..width])?;
            let word = u64::from_le_bytes(word);
            if word >= limit {
                return Err(Corrupt("a word is outside its alphabet"));
            }
            words.push(word);
        }
        Ok(words)
    }

    /// A number that was written seven bits a byte.
    fn sevens(&mut self) -> Result<u64, Corrupt> {
        let mut word = 0;
        for shift in (0..63).step_by(7) {
            let mut byte = [0];
            self.fill(&mut byte)?;
            word |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(word);
            }
        }
        Err(Corrupt("an integer is too large"))
    }
}

impl Source for ZstdReader<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        let words = self.words(out.len(), 4, 1 << 32)?;
        out.iter_mut().zip(words).for_each(|(value, word)| *value = f32::from_bits(word as u32));
        Ok(())
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        let words = self.words(out.len(), 2, 1 << 16)?;
        out.iter_mut().zip(words).for_each(|(value, word)| *value = f16::from_bits(word as u16));
        Ok(())
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        Ok(self.words(1, width(below.into()), below.into())?[0] as u32)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        if k >= n as usize {
            return Ok((0..n).collect());
        }
        let at: Vec<u32> = self.words(k, width(n.into()), n.into())?.into_iter().map(|word| word as u32).collect();
        if at.is_sorted_by(|a, b| a < b) { Ok(at) } else { Err(Corrupt("positions are not increasing")) }
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        let mut bytes = vec![0; n.div_ceil(8)];
        self.fill(&mut bytes)?;
        Ok((0..n).map(|i| bytes[i / 8] >> (i % 8) & 1 == 1).collect())
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        let words = self.words(n, width(alphabet.into()), alphabet.into())?;
        Ok(words.into_iter().map(|word| word as u16).collect())
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        if let Some(largest) = largest.map(i64::from) {
            let limit = 2 * largest as u64 + 1;
            let words = self.words(n, width(limit), limit)?;
            return Ok(words.into_iter().map(|word| (word as i64 - largest) as i32).collect());
        }
        let mut values = Vec::with_capacity(n);
        for _ in 0..n {
            let word = self.sevens()?;
            let magnitude = i32::try_from(word >> 1).map_err(|_| Corrupt("a level is out of range"))?;
            values.push(if word & 1 == 1 { -magnitude } else { magnitude });
        }
        Ok(values)
    }

    fn waits(&mut self, n: usize, _success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        (0..n).map(|_| bounded_wait(self.sevens()?, most)).collect()
    }
}

impl MessageReader for ZstdReader<'_> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        let more = Corrupt("it goes on after its end");
        let Some(frame) = &mut self.frame else { return if self.bytes.is_empty() { Ok(()) } else { Err(more) } };
        match frame.read(&mut [0]) {
            Ok(0) if frame.get_ref().get_ref().is_empty() => Ok(()),
            Ok(_) => Err(more),
            Err(_) => Err(NOT_A_FRAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_short_and_a_receiver_takes_only_what_it_asks_for() {
        let mut writer = Zstd::default().writer();
        writer.put(&Section::Levels { values: vec![1; 1_000_000], largest: Some(1), trellis: None });
        let (bytes, bits) = writer.finish();
        assert!(bits < 2_000, "{bits}");
        let mut reader = Zstd::default().reader(&bytes);
        assert_eq!(reader.levels(1_000, Some(1)), Ok(vec![1; 1_000]));
        assert!(reader.finish().is_err());
        assert!(Zstd::default().reader(&bytes[..bytes.len() - 1]).levels(1_000_000, Some(1)).is_err());
    }

    #[test]
    fn parts_know_their_bits() {
        let mut writer = Zstd::default().writer();
        assert_eq!(writer.bits(), 0);
        writer.put(&Section::Signs(vec![true; 800]));
        let first = writer.bits();
        writer.put(&Section::Signs(vec![false; 800]));
        let second = writer.bits();
        assert!(0 < first && first < second);
        let (bytes, bits) = writer.finish();
        assert!(bits <= second + 24, "{bits} for {second}");
        let mut reader = Zstd::default().reader(&bytes);
        assert_eq!(reader.signs(800), Ok(vec![true; 800]));
        assert_eq!(reader.signs(800), Ok(vec![false; 800]));
        assert_eq!(reader.finish(), Ok(()));
    }
}
