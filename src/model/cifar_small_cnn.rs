//! The small convolutional network of the non-IID benchmark.

use burn::{
    module::Module,
    nn::{
        Linear, LinearConfig,
        conv::{Conv2d, Conv2dConfig},
        pool::{MaxPool2d, MaxPool2dConfig},
    },
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

/// The small convolutional network of the non-IID benchmark, a LeNet-5 with ReLU.
///
/// # Layers
/// Two 5x5 convolutions with 6 and 16 channels without padding, each with ReLU and 2x2 max-pooling; 120 and 84 units with ReLU;
/// classes. CIFAR-10: 62,006 parameters; MNIST: 44,426. Images of at least 16x16.
///
/// # Source
/// Li et al., *Federated Learning on Non-IID Data Silos: An Experimental Study*, 2021 (simple-cnn).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CifarSmallCnn {}

impl Named for CifarSmallCnn {
    const NAME: &'static str = "cifar-small-cnn";
}

impl Architecture for CifarSmallCnn {
    fn network(&self, [channels, height, width]: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String> {
        if height < 16 || width < 16 {
            return Err(format!("`cifar-small-cnn` needs images of at least 16x16 pixels, not {height}x{width}"));
        }
        // A 5x5 convolution without padding takes 4 pixels, the pooling halves.
        let side = |n: usize| ((n - 4) / 2 - 4) / 2;
        let build = |device: &Device| CifarSmallCnnNet {
            conv1: Conv2dConfig::new([channels, 6], [5, 5]).init(device),
            conv2: Conv2dConfig::new([6, 16], [5, 5]).init(device),
            fc1: LinearConfig::new(16 * side(height) * side(width), 120).init(device),
            fc2: LinearConfig::new(120, 84).init(device),
            fc3: LinearConfig::new(84, classes).init(device),
            pool: MaxPool2dConfig::new([2, 2]).init(),
        };
        Ok(Bridge::boxed(classes, build))
    }

    fn steps(&self, shape: [usize; 3], classes: usize) -> Option<Vec<Step>> {
        let convolutions = Steps::of(shape).convolution(6, 5, 0).relu().max_pool(2, 2, 0);
        let convolutions = convolutions.convolution(16, 5, 0).relu().max_pool(2, 2, 0);
        Some(convolutions.linear(120).relu().linear(84).relu().linear(classes).done())
    }
}

#[derive(Module, Debug)]
struct CifarSmallCnnNet {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
    fc3: Linear,
    pool: MaxPool2d,
}

impl Forward for CifarSmallCnnNet {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(relu(self.conv1.forward(images)));
        let x = self.pool.forward(relu(self.conv2.forward(x)));
        let x = relu(self.fc1.forward(x.flatten(1, 3)));
        self.fc3.forward(relu(self.fc2.forward(x)))
    }
}
