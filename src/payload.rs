//! Typed sections: where operators and coders meet.
//!
//! An operator describes its message as a [`Payload`]: floats, positions, signs, symbols, levels. A coder writes sections as
//! bits without knowing which operator made them, and offers them back as a [`Source`], from which the operator pulls what it
//! expects next. What both ends know beforehand (lengths, alphabets) is asked for, never sent.

/// The kinds of sections, so that a coder can say which it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32-bit floats.
    Floats,
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
}

/// One run of values of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    /// Floats, 32 bits each whatever the coder.
    Floats(Vec<f32>),
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
    },
}

impl Section {
    /// The kind of this section.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Floats(_) => Kind::Floats,
            Self::Positions { .. } => Kind::Positions,
            Self::Signs(_) => Kind::Signs,
            Self::Symbols { .. } => Kind::Symbols,
            Self::Levels { largest: Some(_), .. } => Kind::Levels,
            Self::Levels { largest: None, .. } => Kind::UnboundedLevels,
        }
    }

    /// Bits that the section carries before any coder: 32 a float, `log2 C(n, k)` for a subset, `log2` of the alphabet a symbol,
    /// `log2(2 largest + 1)` a bounded level; unbounded levels as in sparse dithering: the count, the subset of the nonzero ones,
    /// their signs and the sum of their magnitudes.
    pub fn information_bits(&self) -> f64 {
        match self {
            Self::Floats(values) => 32.0 * values.len() as f64,
            Self::Positions { at, n } => log2_binomial(u64::from(*n), at.len() as u64),
            Self::Signs(values) => values.len() as f64,
            Self::Symbols { values, alphabet } => values.len() as f64 * f64::from(*alphabet).log2(),
            Self::Levels { values, largest: Some(largest) } => {
                values.len() as f64 * (2.0 * f64::from(*largest) + 1.0).log2()
            }
            Self::Levels { values, largest: None } => {
                let nonzero = values.iter().filter(|level| **level != 0).count() as u64;
                let magnitudes: f64 = values.iter().map(|level| f64::from(level.unsigned_abs())).sum();
                let n = values.len() as u64;
                (n as f64).log2().max(0.0) + log2_binomial(n, nonzero) + nonzero as f64 + magnitudes
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
    /// `k` increasing positions below `n`.
    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt>;
    /// `n` signs.
    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt>;
    /// `n` symbols below `alphabet`.
    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt>;
    /// `n` levels with magnitudes up to `largest`.
    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt>;

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
            Some(Section::Levels { values, largest: of }) if values.len() == n && *of == largest => Ok(values.clone()),
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
