//! Multi-layer perceptrons.

use burn::{
    module::Module,
    nn::{Linear, LinearConfig},
    tensor::{Device, Tensor, activation::relu},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Architecture, Network, Step,
    bridge::{Bridge, Forward},
    stack::Steps,
};
use crate::catalogue::Named;

/// A multi-layer perceptron with ReLU; by default McMahan's 2NN.
///
/// # Layers
/// Pixels to 200 to 200 to classes, with biases. MNIST: 199,210 parameters.
///
/// # Source
/// McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*, 2017, section 3.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mlp {
    /// Widths of the hidden layers, each from 1 to 65,536; an empty list is softmax regression.
    #[schemars(inner(range(min = 1, max = 65_536)))]
    pub hidden: Vec<u32>,
}

impl Default for Mlp {
    fn default() -> Self {
        Self { hidden: vec![200, 200] }
    }
}

impl Named for Mlp {
    const NAME: &'static str = "mlp";
    const EXAMPLE: &'static str = "hidden = [200, 200]";
}

impl Mlp {
    /// Values before each layer and after the last.
    fn widths(&self, shape: [usize; 3], classes: usize) -> Vec<usize> {
        let hidden = self.hidden.iter().map(|&width| width as usize);
        std::iter::once(shape.iter().product()).chain(hidden).chain([classes]).collect()
    }
}

impl Architecture for Mlp {
    fn network(&self, shape: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String> {
        let widths = self.widths(shape, classes);
        let parameters: usize = widths.windows(2).map(|pair| pair[0] * pair[1] + pair[1]).sum();
        if u32::try_from(parameters).is_err() {
            return Err(format!("this `mlp` has {parameters} parameters; at most {} are supported", u32::MAX));
        }
        let build = |device: &Device| MlpNet {
            layers: widths.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect(),
        };
        Ok(Bridge::boxed(classes, build))
    }

    fn steps(&self, shape: [usize; 3], classes: usize) -> Option<Vec<Step>> {
        let hidden = self.hidden.iter().fold(Steps::of(shape), |steps, &width| steps.linear(width as usize).relu());
        Some(hidden.linear(classes).done())
    }
}

#[derive(Module, Debug)]
struct MlpNet {
    layers: Vec<Linear>,
}

impl Forward for MlpNet {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = images.flatten(1, 3);
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(if i == 0 { x } else { relu(x) });
        }
        x
    }
}
