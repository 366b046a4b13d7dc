//! A range coder with fractions as probabilities.
//!
//! The interval is 64 bits wide and kept at 2^48 or more, so that a probability of 2^-32 is met to a 65,000th. A carry
//! runs back into the bytes already written; the end is the shortest byte string all of whose continuations lie in the
//! interval.
//!
//! A probability takes no division of integers: a fraction is its numerator times a reciprocal, and a reciprocal is a
//! quotient of floats, which IEEE 754 makes the same on every machine.

use crate::payload::Corrupt;

/// The interval is widened while it holds no more than this and one more value.
const LEAST_SPAN: u64 = (1 << 48) - 1;

/// `2^64 / total`, rounded down and met to 52 bits; `total` is from 2 to 2^40, so that any smaller number times it
/// stays below 2^64.
#[inline]
pub fn reciprocal(total: u64) -> u64 {
    (18_446_744_073_709_551_616.0 / total as i64 as f64) as u64
}

/// The part of an interval that a probability, in units of 2^-64, has: at least one value where it is at least 2^-32.
#[inline]
fn share(span: u64, probability: u64) -> u64 {
    ((u128::from(span) * u128::from(probability)) >> 64) as u64
}

/// `(span + 1) >> width`; `width` is at least 1.
#[inline]
fn halved(span: u64, width: u32) -> u64 {
    ((span >> 1) + (span & 1)) >> (width - 1)
}

/// Writes symbols as one interval.
#[derive(Debug)]
pub struct RangeEncoder {
    bytes: Vec<u8>,
    low: u64,
    /// Size of the interval less one.
    span: u64,
}

impl Default for RangeEncoder {
    fn default() -> Self {
        Self { bytes: Vec::new(), low: 0, span: u64::MAX }
    }
}

impl RangeEncoder {
    /// Encodes `bit`, which is `false` with probability `zeros / total`; `0 < zeros < total <= 2^40`.
    #[inline]
    pub fn bit(&mut self, bit: bool, zeros: u64, total: u64) {
        debug_assert!(0 < zeros && zeros < total, "a certain bit is not coded");
        self.chance(bit, (total - zeros) * reciprocal(total));
    }

    /// Encodes `bit`, which is `true` with a probability in units of 2^-64, at least 2^-33.
    #[inline]
    pub fn chance(&mut self, bit: bool, probability: u64) {
        debug_assert!(probability >= 1 << 24, "the interval of a bit is not empty");
        let ones = share(self.span, probability);
        let zeros = self.span - ones;
        // Without a branch, because nobody can foresee the bit.
        let one = u64::from(bit).wrapping_neg();
        self.raise((zeros + 1) & one);
        self.span = zeros & !one | (ones - 1) & one;
        self.renormalise();
    }

    /// Encodes the low `width` bits of `value` as equally likely; `width` is at most 32.
    #[inline]
    pub fn raw(&mut self, value: u64, width: u32) {
        debug_assert!(width <= 32 && value >> width == 0, "value fits its width");
        if width == 0 {
            return;
        }
        let size = halved(self.span, width);
        self.raise(size * value);
        self.span = size - 1;
        self.renormalise();
    }

    /// Bits so far, with the fraction that the interval holds.
    pub fn len(&self) -> f64 {
        8.0 * self.bytes.len() as f64 + 64.0 - (self.span as f64 + 1.0).log2()
    }

    /// Whether nothing was encoded.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.span == u64::MAX
    }

    /// Ends the message with as few bytes as name the interval whatever follows them: the code is prefix-free, so its
    /// length is not something that the receiver would have to be told.
    pub fn finish(mut self) -> Vec<u8> {
        for kept in 0..=8u32 {
            let below = u64::MAX.checked_shr(8 * kept).unwrap_or(0);
            let (rounded, carry) = self.low.overflowing_add(below);
            let end = rounded & !below;
            if end.wrapping_sub(self.low).checked_add(below).is_some_and(|last| last <= self.span) {
                if carry {
                    self.carry();
                }
                self.bytes.extend_from_slice(&end.to_be_bytes()[..kept as usize]);
                return self.bytes;
            }
        }
        unreachable!("all eight bytes of `low` name the interval")
    }

    #[inline]
    fn raise(&mut self, by: u64) {
        let (low, carry) = self.low.overflowing_add(by);
        self.low = low;
        if carry {
            self.carry();
        }
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    #[inline]
    fn renormalise(&mut self) {
        while self.span < LEAST_SPAN {
            self.bytes.extend_from_slice(&((self.low >> 48) as u16).to_be_bytes());
            self.low <<= 16;
            self.span = self.span << 16 | 0xffff;
        }
    }
}

/// Reads what a [`RangeEncoder`] wrote. Any bytes decode to something; bytes behind the end count as zeros.
#[derive(Debug)]
pub struct RangeDecoder<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Distance of the message from the low end of the interval.
    code: u64,
    /// Size of the interval less one.
    span: u64,
}

impl<'a> RangeDecoder<'a> {
    /// Reads `bytes` from the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { bytes, at: 0, code: 0, span: u64::MAX };
        for _ in 0..4 {
            decoder.code = decoder.code << 16 | decoder.next_bytes();
        }
        decoder
    }

    /// The next bit under the same fraction as the encoder used.
    #[inline]
    pub fn bit(&mut self, zeros: u64, total: u64) -> bool {
        self.chance((total - zeros) * reciprocal(total))
    }

    /// The next bit under the same probability as the encoder used.
    #[inline]
    pub fn chance(&mut self, probability: u64) -> bool {
        let ones = share(self.span, probability);
        let zeros = self.span - ones;
        let bit = self.code > zeros;
        let one = u64::from(bit).wrapping_neg();
        self.code -= (zeros + 1) & one;
        self.span = zeros & !one | (ones - 1) & one;
        self.renormalise();
        bit
    }

    /// The next `width` equally likely bits, at most 32.
    #[inline]
    pub fn raw(&mut self, width: u32) -> u64 {
        if width == 0 {
            return 0;
        }
        let size = halved(self.span, width);
        // Bytes that no encoder wrote can lie above the last symbol.
        let value = if width == 1 { u64::from(self.code >= size) } else { (self.code / size).min((1 << width) - 1) };
        self.code -= size * value;
        self.span = size - 1;
        self.renormalise();
        value
    }

    /// Fails if bytes are left that no symbol needed, or if many more were needed than there are.
    pub fn finish(&self) -> Result<(), Corrupt> {
        // Eight bytes are always read ahead, and the last byte that was needed is among them.
        match self.at {
            at if at < self.bytes.len() => Err(Corrupt("it goes on after its end")),
            at if at > self.bytes.len() + 8 => Err(Corrupt("it ends too early")),
            _ => Ok(()),
        }
    }

    #[inline]
    fn next_bytes(&mut self) -> u64 {
        let from = self.at;
        self.at += 2;
        match self.bytes.get(from..from + 2) {
            Some(pair) => u64::from(pair[0]) << 8 | u64::from(pair[1]),
            None => u64::from(self.bytes.get(from).copied().unwrap_or(0)) << 8,
        }
    }

    #[inline]
    fn renormalise(&mut self) {
        while self.span < LEAST_SPAN {
            self.code = self.code << 16 | self.next_bytes();
            self.span = self.span << 16 | 0xffff;
        }
    }
}

/// An adaptive probability of a bit: the estimate of Krichevsky and Trofimov, `(n1 + 1/2) / (n + 1)`.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    /// `2 n1 + 1`.
    ones: u64,
    /// `2 n + 2`.
    total: u64,
    /// Of `total`. It does not depend on the bit that comes next, so it is there before that bit is.
    reciprocal: u64,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { ones: 1, total: 2, reciprocal: 1 << 63 }
    }
}

impl Adaptive {
    /// The estimate in units of 2^-64; from now on it is that of one bit more, the value of which is still to be
    /// learnt.
    #[inline]
    fn next(&mut self) -> u64 {
        let probability = self.ones * self.reciprocal;
        self.total += 2;
        self.reciprocal = reciprocal(self.total);
        probability
    }

    /// Encodes a bit and learns from it.
    #[inline]
    pub fn encode(&mut self, encoder: &mut RangeEncoder, bit: bool) {
        encoder.chance(bit, self.next());
        self.ones += 2 * u64::from(bit);
    }

    /// Decodes a bit and learns from it.
    #[inline]
    pub fn decode(&mut self, decoder: &mut RangeDecoder<'_>) -> bool {
        let bit = decoder.chance(self.next());
        self.ones += 2 * u64::from(bit);
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_and_raw_symbols_come_back(items in prop::collection::vec((any::<bool>(), 1u64..1 << 20, 1u64..1 << 20, any::<u32>(), 0u32..=32), 0..300)) {
            let cut = |value: u32, width: u32| if width == 32 { u64::from(value) } else { u64::from(value) & ((1 << width) - 1) };
            let mut encoder = RangeEncoder::default();
            for &(bit, zeros, ones, value, width) in &items {
                encoder.bit(bit, zeros, zeros + ones);
                encoder.raw(cut(value, width), width);
            }
            let ideal = encoder.len();
            let bytes = encoder.finish();
            prop_assert!(8.0 * bytes.len() as f64 <= ideal + 16.0);
            let mut decoder = RangeDecoder::new(&bytes);
            for &(bit, zeros, ones, value, width) in &items {
                prop_assert_eq!(decoder.bit(zeros, zeros + ones), bit);
                prop_assert_eq!(decoder.raw(width), cut(value, width));
            }
            prop_assert_eq!(decoder.finish(), Ok(()));
            // Whatever follows the message does not change it.
            for follow in [0u8, 0xff, 0x5a] {
                let mut more = bytes.clone();
                more.extend([follow; 9]);
                let mut decoder = RangeDecoder::new(&more);
                for &(bit, zeros, ones, value, width) in &items {
                    prop_assert_eq!(decoder.bit(zeros, zeros + ones), bit);
                    prop_assert_eq!(decoder.raw(width), cut(value, width));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn estimates_are_exact_however_the_source_changes(pieces in prop::collection::vec((1usize..20_000, 0u32..=64, any::<u32>()), 1..6)) {
            let (mut counts, mut ideal) = ([0.5f64, 0.5], 0.0);
            let (mut encoder, mut model) = (RangeEncoder::default(), Adaptive::default());
            let mut bits = Vec::new();
            for (length, ones, mut state) in pieces {
                for _ in 0..length {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let bit = state >> 26 < ones;
                    ideal -= (counts[usize::from(bit)] / (counts[0] + counts[1])).log2();
                    counts[usize::from(bit)] += 1.0;
                    model.encode(&mut encoder, bit);
                    bits.push(bit);
                }
            }
            prop_assert!((encoder.len() - ideal).abs() < 1e-3 + 1e-7 * ideal, "{} for {ideal}", encoder.len());
            let bytes = encoder.finish();
            prop_assert!(8.0 * bytes.len() as f64 <= ideal + 16.0);
            let (mut decoder, mut model) = (RangeDecoder::new(&bytes), Adaptive::default());
            prop_assert!(bits.into_iter().all(|bit| model.decode(&mut decoder) == bit));
            prop_assert_eq!(decoder.finish(), Ok(()));
        }
    }

    #[test]
    fn adaptive_bits_cost_the_beta_binomial_and_a_short_flush() {
        // 1000 bits with 50 ones: -log2 of the Krichevsky-Trofimov probability of the sequence.
        let bits: Vec<bool> = (0..1000).map(|i| i % 20 == 7).collect();
        let (mut counts, mut ideal) = ([0.5f64, 0.5], 0.0);
        for &bit in &bits {
            ideal -= (counts[usize::from(bit)] / (counts[0] + counts[1])).log2();
            counts[usize::from(bit)] += 1.0;
        }
        let (mut encoder, mut model) = (RangeEncoder::default(), Adaptive::default());
        bits.iter().for_each(|&bit| model.encode(&mut encoder, bit));
        assert!((encoder.len() - ideal).abs() < 1e-6);
        let bytes = encoder.finish();
        let spent = 8.0 * bytes.len() as f64;
        assert!(spent <= ideal * 1.001 + 16.0, "{spent} bits for {ideal}");
        let (mut decoder, mut model) = (RangeDecoder::new(&bytes), Adaptive::default());
        assert!(bits.iter().all(|&bit| model.decode(&mut decoder) == bit));
    }

    #[test]
    fn a_carry_runs_back_through_written_bytes() {
        // The upper branch of nearly certain bits pushes `low` against its end again and again.
        let mut encoder = RangeEncoder::default();
        for i in 0..5_000u64 {
            encoder.bit(i % 7 != 0, 1, 1 << 20);
        }
        let bytes = encoder.finish();
        let mut decoder = RangeDecoder::new(&bytes);
        for i in 0..5_000u64 {
            assert_eq!(decoder.bit(1, 1 << 20), i % 7 != 0);
        }
    }
}
