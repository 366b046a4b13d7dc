//! Coders: payload to bits and back, one file each; packets.
//!
//! A coder knows no operator. It writes sections one after the other into one bit string and gives them back as a
//! [`Source`]. `bits`, `integer`, `plain`, `range` and `sparse` are the parts that coders are made of.

pub mod bits;
pub mod elias;
pub mod golomb_gaps;
pub mod integer;
pub mod packet;
pub mod plain;
pub mod range;
pub mod sparse;

mod adaptive;
mod bitmap;
mod elias_delta;
mod elias_dense;
mod elias_gamma;
mod elias_omega;
mod enumerative;
mod fixed;
mod golomb;
mod mixture;
mod rice;
mod stars_and_bars;
mod unary;
mod zstd;

pub use packet::Packet;

use crate::{
    catalogue::Entry,
    entry,
    payload::{Corrupt, Kind, Section, Source},
};

/// A way to write sections as bits.
pub trait Coder: Send + Sync {
    /// The kinds of sections that it can write.
    fn kinds(&self) -> &'static [Kind];
    /// Whether hints about the parts make a difference.
    fn takes_hints(&self) -> bool {
        false
    }
    /// An empty message.
    fn writer(&self) -> Box<dyn MessageWriter>;
    /// The sections of a message, from its first bit.
    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a>;
}

/// A message being written.
pub trait MessageWriter {
    /// Begins the next part of the message. `hints`, one for each value of the part, guess magnitudes that both ends
    /// know.
    fn part(&mut self, _hints: Option<&[f32]>) {}
    /// Appends a section of a kind that the coder lists.
    fn put(&mut self, section: &Section);
    /// Number of bits so far, rounded up.
    fn bits(&self) -> u64;
    /// The bytes, and how many of their bits are the message.
    fn finish(self: Box<Self>) -> (Vec<u8>, u64);
}

/// A message being read.
pub trait MessageReader: Source {
    /// Begins the next part of the message, with the hints that the writer was given.
    fn part(&mut self, _hints: Option<&[f32]>) {}
    /// Fails unless the message ends here.
    fn finish(&mut self) -> Result<(), Corrupt>;
}

/// All kinds of sections.
const EVERYTHING: &[Kind] = &[
    Kind::Floats,
    Kind::Halves,
    Kind::Number,
    Kind::Positions,
    Kind::Signs,
    Kind::Symbols,
    Kind::Levels,
    Kind::UnboundedLevels,
    Kind::Waits,
];

/// All coders.
pub const CATALOGUE: &[Entry<dyn Coder>] = &[
    entry!(fixed::Fixed),
    entry!(bitmap::Bitmap),
    entry!(elias_gamma::EliasGamma),
    entry!(elias_delta::EliasDelta),
    entry!(elias_omega::EliasOmega),
    entry!(elias_dense::EliasDense),
    entry!(golomb::Golomb),
    entry!(rice::Rice),
    entry!(enumerative::Enumerative),
    entry!(stars_and_bars::StarsAndBars),
    entry!(unary::Unary),
    entry!(adaptive::Adaptive),
    entry!(mixture::Mixture),
    entry!(zstd::Zstd),
];

#[cfg(test)]
mod laws;
