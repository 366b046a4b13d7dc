//! Softmax regression.

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Architecture, Network, Step,
    bridge::{Bridge, Forward},
    stack::Steps,
};
use crate::catalogue::Named;

/// Softmax regression: one linear layer.
///
/// # Layers
/// Pixels to classes, with bias. MNIST: 7,850 parameters.
///
/// # Source
/// The logistic regression of most federated benchmarks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Softmax {}

impl Named for Softmax {
    const NAME: &'static str = "softmax";
}

impl Architecture for Softmax {
    fn network(&self, shape: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String> {
        let inputs = shape.iter().product();
        let build = |device: &Device| SoftmaxNet { linear: LinearConfig::new(inputs, classes).init(device) };
        Ok(Bridge::boxed(classes, build))
    }

    fn steps(&self, shape: [usize; 3], classes: usize) -> Option<Vec<Step>> {
        Some(Steps::of(shape).linear(classes).done())
    }
}

#[derive(Module, Debug)]
struct SoftmaxNet {
    linear: Linear,
}

impl Forward for SoftmaxNet {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        self.linear.forward(images.flatten(1, 3))
    }
}
