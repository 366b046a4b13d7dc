//! Typed sections: where operators and coders meet.
//!
//! An operator describes its message as a [`Payload`]: floats, positions, signs, symbols, levels. A coder writes sections as
//! bits without knowing which operator made them, and offers them back as a [`Source`], from which the operator pulls what it
//! expects next. What both ends know beforehand (lengths, alphabets) is asked for, never sent.

use half::f16;

/// The kinds of sections, so that a coder can say which it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32-bit floats.
    Floats,
    /// 16-bit floats.
    Halves,
    /// One number below a limit.
    Number,
    /// A subset of positions.
    Positions,
    /// One bit a value.
    Signs,
    /// Symbols of an alphabet without order.
    Symbols,
    /// Small signed integers around zero with a largest magnitude.
    Levels,
    /// Small signed integers around zero without a largest magnitude.
    UnboundedLevels,
    /// Numbers of trials until a success.
    Waits,
}

/// A machine that both ends walk along levels: the parities of the levels so far tell by which of two quantisers the next one is
/// meant, so a coder may keep what it learns of them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trellis {
    /// The next state, for every state and for an even and an odd level; the walk begins in state 0.
    pub next: &'static [[u8; 2]],
    /// The states of the second quantiser.
    pub second: &'static [bool],
}

impl Trellis {
    /// Whether a level in `state` is one of the second quantiser.
    #[inline]
    pub fn is_second(self, state: u8) -> bool {
        self.second[usize::from(state)]
    }

    /// The state after `level` in `state`.
    #[inline]
    pub fn step(self, state: u8, level: i32) -> u8 {
        self.next[usize::from(state)][(level & 1) as usize]
    }
}

/// One run of values of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    /// Floats, 32 bits each whatever the coder.
    Floats(Vec<f32>),
    /// Floats, 16 bits each whatever the coder.
    Halves(Vec<f16>),
    /// A number below a limit that both ends know: `ceil(log2 below)` bits whatever the coder.
    Number {
        /// The number.
        value: u32,
        /// The limit, at least 1.
        below: u32,
    },
    /// A strictly increasing subset of the positions below `n`; its size is known to both ends.
    Positions {
        /// The positions.
        at: Vec<u32>,
        /// Number of positions there are.
        n: u32,
    },
    /// Signs; `true` is negative.
    Signs(Vec<bool>),
    /// Symbols below `alphabet`.
    Symbols {
        /// The symbols.
        values: Vec<u16>,
        /// Number of symbols there are.
        alphabet: u32,
    },
    /// Signed levels with magnitudes up to `largest`, or unbounded.
    Levels {
        /// The levels.
        values: Vec<i32>,
        /// The largest magnitude there can be, if there is one.
        largest: Option<u32>,
        /// The trellis that the levels are a walk of, if they are one.
        trellis: Option<Trellis>,
    },
    /// Numbers of independent trials, at least 1, until one succeeds.
    Waits {
        /// The numbers.
        values: Vec<u64>,
        /// The probability that a trial succeeds, in (0, 1].
        success: f64,
    },
}

impl Section {
    /// The kind of this section.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Floats(_) => Kind::Floats,
            Self::Halves(_) => Kind::Halves,
            Self::Number { .. } => Kind::Number,
            Self::Positions { .. } => Kind::Positions,
            Self::Signs(_) => Kind::Signs,
            Self::Symbols { .. } => Kind::Symbols,
            Self::Levels { largest: Some(_), .. } => Kind::Levels,
            Self::Levels { largest: None, .. } => Kind::UnboundedLevels,
            Self::Waits { .. } => Kind::Waits,
        }
    }

    /// Bits that the section carries before any coder: 32 a float, 16 a half, `log2` of its limit a number, `log2 C(n, k)` for a subset, `log2` of the alphabet a symbol,
    /// `log2(2 largest + 1)` a bounded level; unbounded levels as in sparse dithering: the count, the subset of the nonzero ones,
    /// their signs and the sum of their magnitudes; the entropy of the geometric distribution a wait.
    pub fn information_bits(&self) -> f64 {
        match self {
            Self::Floats(values) => 32.0 * values.len() as f64,
            Self::Halves(values) => 16.0 * values.len() as f64,
            Self::Number { below, .. } => f64::from(*below).log2(),
            Self::Positions { at, n } => log2_binomial(u64::from(*n), at.len() as u64),
            Self::Signs(values) => values.len() as f64,
            Self::Symbols { values, alphabet } => values.len() as f64 * f64::from(*alphabet).log2(),
            Self::Levels { values, largest: Some(largest), .. } => {
                values.len() as f64 * (2.0 * f64::from(*largest) + 1.0).log2()
            }
            Self::Levels { values, largest: None, .. } => {
                let nonzero = values.iter().filter(|level| **level != 0).count() as u64;
                let magnitudes: f64 = values.iter().map(|level| f64::from(level.unsigned_abs())).sum();
                let n = values.len() as u64;
                (n as f64).log2().max(0.0) + log2_binomial(n, nonzero) + nonzero as f64 + magnitudes
            }
            Self::Waits { values, success } => {
                let (p, q) = (*success, 1.0 - *success);
                let failure = if q > 0.0 { q * libm::log1p(-p) / std::f64::consts::LN_2 } else { 0.0 };
                -(p * libm::log2(p) + failure) / p * values.len() as f64
            }
        }
    }
}

/// `log2` of the number of `k`-subsets of `n` things, to about ten digits.
pub fn log2_binomial(n: u64, k: u64) -> f64 {
    if k == 0 || k >= n {
        return 0.0;
    }
    let ln_factorial = |m: u64| libm::lgamma(m as f64 + 1.0);
    (ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)) / std::f64::consts::LN_2
}

/// What one operator has to say about one part of a message, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Payload {
    /// The sections in the order in which they are sent.
    pub sections: Vec<Section>,
}

impl Payload {
    /// Adds a section.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The sections as a source, without any coder: what an operator restores from in its own tests.
    pub fn source(&self) -> impl Source + '_ {
        InMemory { sections: self.sections.iter() }
    }
}

/// Bytes that cannot be what a sender wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("corrupt message: {0}")]
pub struct Corrupt(pub &'static str);

/// Sections on the receiving side. Every method fails on bytes that no sender wrote and never allocates beyond what is asked for.
pub trait Source {
    /// Fills `out` with floats.
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt>;
    /// Fills `out` with 16-bit floats.
    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt>;
    /// A number below `below`.
    fn number(&mut self, below: u32) -> Result<u32, Corrupt>;
    /// `k` increasing positions below `n`.
    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt>;
    /// `n` signs.
    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt>;
    /// `n` symbols below `alphabet`.
    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt>;
    /// `n` levels with magnitudes up to `largest`.
    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt>;
    /// `n` waits from 1 to `most` for a success of probability `success`.
    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt>;

    /// `n` levels without a largest magnitude that are a walk of `trellis`.
    fn walk(&mut self, n: usize, _trellis: Trellis) -> Result<Vec<i32>, Corrupt> {
        self.levels(n, None)
    }

    /// One float.
    fn float(&mut self) -> Result<f32, Corrupt> {
        let mut one = [0.0];
        self.floats(&mut one)?;
        Ok(one[0])
    }
}

struct InMemory<'a> {
    sections: std::slice::Iter<'a, Section>,
}

const UNEXPECTED: Corrupt = Corrupt("the next section is of another kind or length");

impl Source for InMemory<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        match self.sections.next() {
            Some(Section::Floats(values)) if values.len() == out.len() => {
                out.copy_from_slice(values);
                Ok(())
            }
            _ => Err(UNEXPECTED),
        }
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        match self.sections.next() {
            Some(Section::Halves(values)) if values.len() == out.len() => {
                out.copy_from_slice(values);
                Ok(())
            }
            _ => Err(UNEXPECTED),
        }
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        match self.sections.next() {
            Some(Section::Number { value, below: of }) if *of == below => Ok(*value),
            _ => Err(UNEXPECTED),
        }
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        match self.sections.next() {
            Some(Section::Positions { at, n: of }) if at.len() == k && *of == n => Ok(at.clone()),
            _ => Err(UNEXPECTED),
        }
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        match self.sections.next() {
            Some(Section::Signs(values)) if values.len() == n => Ok(values.clone()),
            _ => Err(UNEXPECTED),
        }
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        match self.sections.next() {
            Some(Section::Symbols { values, alphabet: of }) if values.len() == n && *of == alphabet => {
                Ok(values.clone())
            }
            _ => Err(UNEXPECTED),
        }
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        match self.sections.next() {
            Some(Section::Levels { values, largest: of, .. }) if values.len() == n && *of == largest => {
                Ok(values.clone())
            }
            _ => Err(UNEXPECTED),
        }
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        match self.sections.next() {
            Some(Section::Waits { values, success: of })
                if values.len() == n && *of == success && values.iter().all(|&wait| wait <= most) =>
            {
                Ok(values.clone())
            }
            _ => Err(UNEXPECTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_of_subsets_matches_the_table_of_top_k() {
        // spec 5.4, d = 1000
        for (k, bits) in
            [(1, 9.97), (10, 77.80), (50, 282.28), (100, 464.42), (200, 716.94), (500, 994.69), (1000, 0.0)]
        {
            assert!((log2_binomial(1000, k) - bits).abs() < 0.005, "k = {k}");
        }
    }

    #[test]
    fn a_source_refuses_what_was_not_sent() {
        let mut payload = Payload::default();
        payload.push(Section::Signs(vec![true, false]));
        assert_eq!(payload.source().signs(2), Ok(vec![true, false]));
        assert!(payload.source().signs(3).is_err());
        assert!(payload.source().float().is_err());
    }
}
