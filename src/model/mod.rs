//! Models: burn modules behind flat vectors, one architecture a file.
//!
//! The burn module is the definition of a model. `bridge` gives every module the same face: a [`Layout`], a loss and its
//! gradient at a flat vector, an evaluation. Start vectors come from our own streams, so they depend on the seed alone.

mod bridge;
mod image_columns;
mod regression;
mod stack;
mod start;

mod cifar_cnn;
mod cifar_small_cnn;
mod logistic_regression;
mod mcmahan_cnn;
mod mlp;
mod resnet_20;
mod ridge_regression;
mod softmax;

pub use regression::{Loss, Regression};
pub use start::start_vector;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use stack::Step;

use crate::{catalogue::Entry, entry, layout::Layout};

/// Normalised images with their labels.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Images one after the other, channel-height-width.
    pub images: Vec<f32>,
    /// Channels, height, width.
    pub shape: [usize; 3],
    /// One label an image.
    pub labels: Vec<u8>,
}

/// What an evaluation counts; sums, so that parts can be added up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Samples seen.
    pub samples: u64,
    /// Samples whose largest output is their label.
    pub correct: u64,
    /// Sum of the losses of all samples.
    pub loss_sum: f64,
}

impl Evaluation {
    /// Adds the counts of another part.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.correct += other.correct;
        self.loss_sum += other.loss_sum;
    }

    /// Share of correct samples; `None` without samples.
    pub fn accuracy(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.correct as f64 / self.samples as f64)
    }

    /// Mean loss; `None` without samples.
    pub fn loss(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.loss_sum / self.samples as f64)
    }
}

/// A model on one thread.
pub trait Network: Send {
    /// Names and shapes of the parameters in the flat vector.
    fn layout(&self) -> &Layout;
    /// Writes the gradient of the mean cross-entropy over `batch` at `x` to `out` and returns the mean loss.
    fn gradient(&mut self, x: &[f32], batch: &Batch, out: &mut [f32]) -> f64;
    /// Counts correct samples and sums losses at `x`.
    fn evaluate(&mut self, x: &[f32], batch: &Batch) -> Evaluation;
}

/// What computes gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The fastest that can: `stack` for plain stacks of linear layers, convolutions, ReLU and max-pooling, else `burn`.
    #[default]
    Auto,
    /// The framework, for every model.
    Burn,
}

/// A family of models: builds the one that fits a data set.
pub trait Architecture: Send + Sync {
    /// The model for images of `shape` (channels, height, width) and `classes` classes, on burn.
    ///
    /// # Errors
    /// Why images of this shape do not fit.
    fn network(&self, shape: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String>;

    /// The same model as a plain stack, if it is one; `shape` is one that [`Architecture::network`] accepts.
    fn steps(&self, _shape: [usize; 3], _classes: usize) -> Option<Vec<Step>> {
        None
    }

    /// The loss, for a model that fits the rows of a table and has no network.
    fn regression(&self) -> Option<Regression> {
        None
    }
}

/// The model of an architecture on an engine.
///
/// # Errors
/// Why images of this shape do not fit.
pub fn network(
    architecture: &dyn Architecture,
    shape: [usize; 3],
    classes: usize,
    engine: Engine,
) -> Result<Box<dyn Network>, String> {
    let on_burn = architecture.network(shape, classes)?;
    Ok(match (engine, architecture.steps(shape, classes)) {
        (Engine::Auto, Some(steps)) => {
            Box::new(stack::Stack::new(on_burn.layout().clone(), shape.iter().product(), classes, steps))
        }
        _ => on_burn,
    })
}

/// Counts correct samples and sums losses from outputs (logits), one row a sample.
///
/// Ties go to the lower class, and a row that is not finite is never correct.
fn count(logits: &[f32], labels: &[u8], classes: usize) -> Evaluation {
    let mut evaluation = Evaluation { samples: labels.len() as u64, ..Evaluation::default() };
    for (logits, &label) in logits.chunks_exact(classes).zip(labels) {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let predicted = logits.iter().position(|&logit| logit == largest);
        let finite = logits.iter().all(|logit| logit.is_finite());
        evaluation.correct += u64::from(finite && predicted == Some(usize::from(label)));
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
        evaluation.loss_sum += sum.ln() + f64::from(largest) - f64::from(logits[usize::from(label)]);
    }
    evaluation
}

/// All models.
pub const CATALOGUE: &[Entry<dyn Architecture>] = &[
    entry!(softmax::Softmax),
    entry!(mlp::Mlp),
    entry!(mcmahan_cnn::McmahanCnn),
    entry!(cifar_small_cnn::CifarSmallCnn),
    entry!(cifar_cnn::CifarCnn),
    entry!(resnet_20::Resnet20),
    entry!(ridge_regression::RidgeRegression),
    entry!(logistic_regression::LogisticRegression),
];

#[cfg(test)]
mod laws;
