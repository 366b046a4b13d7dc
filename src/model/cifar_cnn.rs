//! The convolutional network of McMahan's CIFAR-10 experiment.

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

/// The convolutional network of McMahan's CIFAR-10 experiment, for 24x24 crops.
///
/// # Layers
/// Two 5x5 convolutions with 64 channels and same padding, each with ReLU and 3x3 max-pooling at stride 2; 384 and 192 units with
/// ReLU; classes. With `data.crop = 24`: 1,068,298 parameters. Images of any size whose sides are multiples of 4.
///
/// # Source
/// McMahan et al., 2017, section 3, after the TensorFlow tutorial. Differs from the source in: no local response normalisation,
/// which has no parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CifarCnn {}

impl Named for CifarCnn {
    const NAME: &'static str = "cifar-cnn";
}

impl Architecture for CifarCnn {
    fn network(&self, [channels, height, width]: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String> {
        if height % 4 != 0 || width % 4 != 0 || height * width == 0 {
            return Err(format!("`cifar-cnn` halves images twice, which {height}x{width} pixels do not allow"));
        }
        let conv = |from, device: &Device| {
            Conv2dConfig::new([from, 64], [5, 5]).with_padding(PaddingConfig2d::Explicit(2, 2, 2, 2)).init(device)
        };
        let pool = MaxPool2dConfig::new([3, 3]).with_strides([2, 2]);
        let build = |device: &Device| CifarCnnNet {
            conv1: conv(channels, device),
            conv2: conv(64, device),
            fc1: LinearConfig::new(64 * (height / 4) * (width / 4), 384).init(device),
            fc2: LinearConfig::new(384, 192).init(device),
            fc3: LinearConfig::new(192, classes).init(device),
            pool: pool.clone().with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(),
        };
        Ok(Bridge::boxed(classes, build))
    }

    fn steps(&self, shape: [usize; 3], classes: usize) -> Option<Vec<Step>> {
        let convolutions = Steps::of(shape).convolution(64, 5, 2).relu().max_pool(3, 2, 1);
        let convolutions = convolutions.convolution(64, 5, 2).relu().max_pool(3, 2, 1);
        Some(convolutions.linear(384).relu().linear(192).relu().linear(classes).done())
    }
}

#[derive(Module, Debug)]
struct CifarCnnNet {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
    fc3: Linear,
    pool: MaxPool2d,
}

impl Forward for CifarCnnNet {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(relu(self.conv1.forward(images)));
        let x = self.pool.forward(relu(self.conv2.forward(x)));
        let x = relu(self.fc1.forward(x.flatten(1, 3)));
        self.fc3.forward(relu(self.fc2.forward(x)))
    }
}
