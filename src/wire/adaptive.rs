//! Adaptive range coding.

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, EVERYTHING, MessageReader, MessageWriter,
    bits::fixed_width,
    enumerative::{get_subset, put_subset},
    plain::{
        get_floats, get_gamma, get_halves, get_number, get_waits, put_floats, put_gamma, put_halves, put_number,
        put_waits,
    },
    range::{Adaptive as Context, RangeDecoder, RangeEncoder},
    sparse::level,
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source, Trellis},
};

/// Levels and symbols at the entropy that the message itself turns out to have, learnt on the way.
///
/// Levels: a zero flag with one context; a raw sign bit; the magnitude less one in unary with a context for each of the
/// first 15 places, then Elias gamma. Levels that are a walk of a trellis have all these contexts once for each
/// quantiser. Symbols: a binary tree with a context at every node. All contexts use the estimate of Krichevsky and
/// Trofimov and live for one message, across its parts. Positions are enumerative; waits are Golomb codes.
///
/// # Bits
/// The adaptive entropy of the values (the Beta-binomial code length of every context) and one to two bytes at the end.
///
/// # Writes
/// Everything.
///
/// # Source
/// Krichevsky and Trofimov, *The performance of universal encoding*, 1981; level code of the specification, section
/// 2.2.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {}

impl Named for Adaptive {
    const NAME: &'static str = "adaptive";
}

impl Coder for Adaptive {
    fn kinds(&self) -> &'static [Kind] {
        EVERYTHING
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(AdaptiveWriter::default())
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(AdaptiveReader::new(bytes))
    }
}

/// Number of places of the unary code that have a context of their own.
pub const PLACES: usize = 15;

/// What a message has taught of levels.
#[derive(Default)]
struct Ladder {
    nonzero: Context,
    more: [Context; PLACES],
}

/// What a message has taught so far.
#[derive(Default)]
struct Contexts {
    /// Levels by themselves.
    plain: Ladder,
    /// Levels of the first and of the second quantiser of a trellis.
    walk: [Ladder; 2],
    /// Nodes of the symbol tree in heap order; grown to the largest alphabet seen.
    tree: Vec<Context>,
}

impl Contexts {
    /// The tree for `alphabet`: its depth.
    fn tree(&mut self, alphabet: u32) -> u32 {
        let depth = fixed_width(alphabet.into());
        if self.tree.len() < 1 << depth {
            self.tree.resize(1 << depth, Context::default());
        }
        depth
    }
}

impl Ladder {
    fn put(&mut self, encoder: &mut RangeEncoder, level: i32, largest: Option<u32>) {
        self.nonzero.encode(encoder, level != 0);
        if level != 0 {
            encoder.raw(u64::from(level < 0), 1);
            self.put_magnitude(encoder, level.unsigned_abs(), largest);
        }
    }

    fn put_magnitude(&mut self, encoder: &mut RangeEncoder, magnitude: u32, largest: Option<u32>) {
        for (context, place) in self.more.iter_mut().zip(1..) {
            // The largest level needs no stop.
            if largest == Some(place) {
                return;
            }
            context.encode(encoder, magnitude > place);
            if magnitude == place {
                return;
            }
        }
        put_gamma(encoder, u64::from(magnitude) - PLACES as u64);
    }

    fn get(&mut self, decoder: &mut RangeDecoder<'_>, largest: Option<u32>) -> Result<i32, Corrupt> {
        if !self.nonzero.decode(decoder) {
            return Ok(0);
        }
        let negative = decoder.raw(1) == 1;
        level(negative, self.get_magnitude(decoder, largest)?, largest)
    }

    fn get_magnitude(&mut self, decoder: &mut RangeDecoder<'_>, largest: Option<u32>) -> Result<u64, Corrupt> {
        for (context, place) in self.more.iter_mut().zip(1..) {
            if largest == Some(place) || !context.decode(decoder) {
                return Ok(place.into());
            }
        }
        Ok(PLACES as u64 + get_gamma(decoder)?)
    }
}

/// A message that learns its levels and symbols.
#[derive(Default)]
pub struct AdaptiveWriter {
    /// Where it is written; what it does not write itself goes there too.
    pub encoder: RangeEncoder,
    contexts: Contexts,
}

impl MessageWriter for AdaptiveWriter {
    fn put(&mut self, section: &Section) {
        let Self { encoder, contexts } = self;
        match section {
            Section::Floats(values) => put_floats(encoder, values),
            Section::Halves(values) => put_halves(encoder, values),
            Section::Number { value, below } => put_number(encoder, *value, *below),
            Section::Waits { values, success } => put_waits(encoder, values, *success),
            Section::Signs(values) => values.iter().for_each(|&negative| encoder.raw(negative.into(), 1)),
            Section::Positions { at, n } => put_subset(encoder, at, *n),
            Section::Symbols { values, alphabet } => {
                let depth = contexts.tree(*alphabet);
                for &symbol in values {
                    let mut node = 1;
                    for bit in (0..depth).rev().map(|i| symbol >> i & 1 == 1) {
                        contexts.tree[node].encode(encoder, bit);
                        node = 2 * node + usize::from(bit);
                    }
                }
            }
            Section::Levels { values, largest, trellis: None } => {
                values.iter().for_each(|&level| contexts.plain.put(encoder, level, *largest));
            }
            Section::Levels { values, largest, trellis: Some(trellis) } => {
                let mut state = 0;
                for &level in values {
                    contexts.walk[usize::from(trellis.is_second(state))].put(encoder, level, *largest);
                    state = trellis.step(state, level);
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

/// The receiving side of an [`AdaptiveWriter`].
pub struct AdaptiveReader<'a> {
    /// Where it is read from.
    pub decoder: RangeDecoder<'a>,
    contexts: Contexts,
}

impl<'a> AdaptiveReader<'a> {
    /// Reads a message from its beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { decoder: RangeDecoder::new(bytes), contexts: Contexts::default() }
    }
}

impl Source for AdaptiveReader<'_> {
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

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        let depth = self.contexts.tree(alphabet);
        let mut values = Vec::with_capacity(n);
        for _ in 0..n {
            let mut node = 1;
            for _ in 0..depth {
                node = 2 * node + usize::from(self.contexts.tree[node].decode(&mut self.decoder));
            }
            let symbol = (node - (1 << depth)) as u32;
            if symbol >= alphabet {
                return Err(Corrupt("a symbol is outside its alphabet"));
            }
            values.push(symbol as u16);
        }
        Ok(values)
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        (0..n).map(|_| self.contexts.plain.get(&mut self.decoder, largest)).collect()
    }

    fn walk(&mut self, n: usize, trellis: Trellis) -> Result<Vec<i32>, Corrupt> {
        let mut state = 0;
        let next = |_| {
            let ladder = &mut self.contexts.walk[usize::from(trellis.is_second(state))];
            let level = ladder.get(&mut self.decoder, None)?;
            state = trellis.step(state, level);
            Ok(level)
        };
        (0..n).map(next).collect()
    }
}

impl MessageReader for AdaptiveReader<'_> {
    fn finish(&mut self) -> Result<(), Corrupt> {
        self.decoder.finish()
    }
}
