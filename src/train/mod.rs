//! The local work of one client: batches, gradients, the local optimiser; evaluation of a model.
//!
//! An [`Objective`] is the loss of every client over flat vectors. [`local`] takes steps on it, so methods run the same code on a
//! network and on a problem with a known minimiser.

mod dense;
pub mod local;
pub mod network;
pub mod regression;
pub mod ridge;
pub mod schedule;

use std::ops::Range;

use crate::{layout::Layout, model::Evaluation, rng::Address};

/// Samples of one client for one gradient. Can be replayed at another point.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples<'a> {
    /// The client that holds them.
    pub client: u32,
    /// Positions in the client's own list of samples.
    pub at: &'a [u32],
    /// The stream of random crops and flips, the same in every replay.
    pub augmentation: Address,
}

/// The losses of all clients, on one thread.
pub trait Objective: Send {
    /// Names and shapes of the parameters.
    fn layout(&self) -> &Layout;
    /// Number of samples that a client holds.
    fn samples(&self, client: u32) -> usize;
    /// Writes the gradient of the mean loss over `samples` at `x` to `out` and returns the mean loss.
    fn gradient(&mut self, x: &[f32], samples: &Samples<'_>, out: &mut [f32]) -> f64;
    /// Evaluates `x` on the test samples of a range under a rotation; problems without a test set count nothing.
    fn evaluate(&mut self, _x: &[f32], _test: Range<u32>, _quarter_turns: u8) -> Evaluation {
        Evaluation::default()
    }
}
