//! Operators: vector to payload and back, one file each; their classes; how a model is cut into parts.
//!
//! An operator knows no coder and no other operator; those that combine others get them from the catalogue. It sees one part
//! of a vector at a time, and never an empty one or one with a value that is not finite: the [`Codec`](crate::link::Codec) sees to that.

pub mod bounds;
pub mod granularity;
pub mod isotropic;
pub mod lloyd_max;
pub mod long_trellis;
pub mod nested;
pub mod rotation;
pub mod rounding;
pub mod trellis;
pub mod vectors;

mod composed;
mod directions;
mod drive;
mod ecsq;
mod eden;
mod gaussian;
mod identity;
mod induced;
mod kashin;
mod max_block;
mod natural;
mod natural_dithering;
mod power_sgd;
mod qsgd;
mod quic_fl;
mod quic_fl_tables;
mod rand_k;
mod random_vq;
mod repeated;
mod rotated;
mod scaled;
mod sign;
mod sparse_dithering;
mod sparse_ternary;
mod spherical;
mod srqs;
mod subtractive_dither;
mod tcq;
mod tern_grad;
mod thc;
mod top_k;
mod weave;

pub use granularity::Granularity;

use crate::{
    catalogue::Entry,
    entry,
    layout::Layer,
    payload::{Corrupt, Kind, Payload, Source},
    rng::Streams,
};

/// What an operator promises about its error, for vectors of a given length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Class {
    /// `C(x) = x`.
    Exact,
    /// `E C(x) = x` and `E|C(x) - x|^2 <= omega |x|^2`.
    Unbiased(f64),
    /// `E|C(x) - x|^2 <= (1 - a) |x|^2` with `0 < a <= 1`.
    Contractive(f64),
    /// Neither for every vector.
    Unproven,
}

impl Class {
    /// The class of `C / (1 + omega)`: unbiased operators become contractive, as error feedback needs.
    pub fn damped(self) -> Self {
        match self {
            Self::Unbiased(omega) => Self::Contractive(1.0 / (1.0 + omega)),
            other => other,
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact => write!(f, "exact"),
            Self::Unbiased(omega) => write!(f, "unbiased, omega = {omega:.4}"),
            Self::Contractive(a) => write!(f, "contractive, a = {a:.6}"),
            Self::Unproven => write!(f, "no bound for every vector"),
        }
    }
}

/// What an operator knows about the part of the vector that it is given.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The layers in it, with their shapes, for operators that look at matrices.
    pub layers: &'a [Layer],
    /// Its random streams.
    pub streams: Streams,
}

/// A part that an operator cannot compress although all its values are finite.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// The norm does not fit a 32-bit float.
    #[error("the norm {0:e} of a part is beyond the range of 32-bit floats")]
    ScaleOverflow(f64),
}

/// A setting that does not go with another one or with the vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The setting.
    pub key: &'static str,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// A compression operator: maps a vector to a payload and a payload to the vector that both ends will use.
pub trait Operator: Send + Sync {
    /// Describes `x` in `payload`.
    ///
    /// `warm` is what the operator remembers of this part between the messages of one sender, such as the factor that a low-rank
    /// operator starts from: empty at first, private to the sender, kept with the link's memory. Most operators ignore it.
    ///
    /// # Errors
    /// If the part cannot be compressed; nothing is sent then.
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit>;

    /// Writes the vector that the message describes to all of `out`.
    ///
    /// Uses nothing but the message, the length of `out`, the layers and the shared stream; so every node restores the same bits.
    ///
    /// # Errors
    /// On bytes that no sender wrote.
    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt>;

    /// The class for parts of `n >= 1` values.
    fn class(&self, n: usize) -> Class;

    /// The factor by which an operator that grows vectors is scaled down where a contractive one is needed: `1 / (1 + omega)` for
    /// unbiased ones; `None` if there is nothing to scale.
    fn damping(&self, n: usize) -> Option<f64> {
        match self.class(n) {
            Class::Unbiased(omega) => Some(1.0 / (1.0 + omega)),
            _ => None,
        }
    }

    /// Number of values of a part of `n` that are sent, for operators that select.
    fn kept(&self, _n: usize) -> Option<usize> {
        None
    }

    /// The kinds of sections that it sends, so that a coder can be refused when the scenario is read.
    fn kinds(&self) -> &'static [Kind];

    /// Name of the coder that `coder = "default"` means.
    fn default_coder(&self) -> &'static str;

    /// Checks settings against each other and against the longest part, of `longest` values.
    ///
    /// # Errors
    /// The settings that do not fit.
    fn check(&self, _longest: usize) -> Result<(), Misfit> {
        Ok(())
    }
}

/// All operators.
pub const CATALOGUE: &[Entry<dyn Operator>] = &[
    entry!(identity::Identity),
    entry!(weave::Weave),
    entry!(top_k::TopK),
    entry!(rand_k::RandK),
    entry!(sparse_ternary::SparseTernary),
    entry!(max_block::MaxBlock),
    entry!(qsgd::Qsgd),
    entry!(tern_grad::TernGrad),
    entry!(sign::Sign),
    entry!(natural::Natural),
    entry!(natural_dithering::NaturalDithering),
    entry!(sparse_dithering::SparseDithering),
    entry!(spherical::Spherical),
    entry!(random_vq::RandomVq),
    entry!(kashin::Kashin),
    entry!(drive::Drive),
    entry!(eden::Eden),
    entry!(thc::Thc),
    entry!(quic_fl::QuicFl),
    entry!(srqs::Srqs),
    entry!(subtractive_dither::SubtractiveDither),
    entry!(ecsq::Ecsq),
    entry!(tcq::Tcq),
    entry!(power_sgd::PowerSgd),
    entry!(rotated::Rotated),
    entry!(composed::Composed),
    entry!(scaled::Scaled),
    entry!(induced::Induced),
    entry!(repeated::Repeated),
];

/// Reads a scale; no sender writes one that is negative or not finite.
fn read_scale(source: &mut dyn Source) -> Result<f32, Corrupt> {
    match source.float()? {
        scale if scale.is_finite() && scale >= 0.0 => Ok(scale),
        _ => Err(Corrupt("a scale is negative or not finite")),
    }
}

/// A norm as the 32-bit float that is sent.
fn scale(norm: f64) -> Result<f32, Unfit> {
    if norm > f64::from(f32::MAX) { Err(Unfit::ScaleOverflow(norm)) } else { Ok(norm as f32) }
}

#[cfg(test)]
mod laws;
