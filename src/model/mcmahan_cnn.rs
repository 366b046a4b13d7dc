//! McMahan's convolutional network for MNIST.

use burn::{
    module::Module,
    nn::{
        Linear, LinearConfig, PaddingConfig2d,
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

/// McMahan's convolutional network for MNIST.
///
/// # Layers
/// Two 5x5 convolutions with 32 and 64 channels, each with same padding, ReLU and 2x2 max-pooling; 512 units with ReLU; classes.
/// MNIST: 1,663,370 parameters. Images of any size whose sides are multiples of 4.
///
/// # Source
/// McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*, 2017, section 3.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McmahanCnn {}

impl Named for McmahanCnn {
    const NAME: &'static str = "mcmahan-cnn";
}

impl Architecture for McmahanCnn {
    fn network(&self, [channels, height, width]: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String> {
        if height % 4 != 0 || width % 4 != 0 || height * width == 0 {
            return Err(format!("`mcmahan-cnn` halves images twice, which {height}x{width} pixels do not allow"));
        }
        let conv = |from, to, device: &Device| {
            Conv2dConfig::new([from, to], [5, 5]).with_padding(PaddingConfig2d::Explicit(2, 2, 2, 2)).init(device)
        };
        let build = |device: &Device| McmahanCnnNet {
            conv1: conv(channels, 32, device),
            conv2: conv(32, 64, device),
            fc1: LinearConfig::new(64 * (height / 4) * (width / 4), 512).init(device),
            fc2: LinearConfig::new(512, classes).init(device),
            pool: MaxPool2dConfig::new([2, 2]).init(),
        };
        Ok(Bridge::boxed(classes, build))
    }

    fn steps(&self, shape: [usize; 3], classes: usize) -> Option<Vec<Step>> {
        let convolutions = Steps::of(shape).convolution(32, 5, 2).relu().max_pool(2, 2, 0);
        let convolutions = convolutions.convolution(64, 5, 2).relu().max_pool(2, 2, 0);
        Some(convolutions.linear(512).relu().linear(classes).done())
    }
}

#[derive(Module, Debug)]
struct McmahanCnnNet {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
    pool: MaxPool2d,
}

impl Forward for McmahanCnnNet {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(relu(self.conv1.forward(images)));
        let x = self.pool.forward(relu(self.conv2.forward(x)));
        self.fc2.forward(relu(self.fc1.forward(x.flatten(1, 3))))
    }
}
