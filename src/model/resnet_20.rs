//! ResNet-20 with group normalisation.

use burn::{
    module::Module,
    nn::{
        GroupNorm, GroupNormConfig, Linear, LinearConfig, PaddingConfig2d,
        conv::{Conv2d, Conv2dConfig},
    },
    tensor::{Device, Tensor, activation::relu, s},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Architecture, Network,
    bridge::{Bridge, Forward},
};
use crate::catalogue::Named;

/// ResNet-20 with group normalisation in place of batch normalisation, so that a model has no state that is not trained.
///
/// # Layers
/// A 3x3 convolution with 16 channels; three stages of three residual blocks with 16, 32 and 64 channels, the first block of the
/// second and third stage at stride 2; global average pooling; classes. Convolutions have no bias. Shortcuts have no parameters:
/// every second pixel, new channels zero. Groups of 8 channels. CIFAR-10: 269,722 parameters.
///
/// # Source
/// He et al., *Deep Residual Learning*, 2016, section 4.2, shortcut A; Wu and He, *Group Normalization*, 2018. Differs from the
/// source in: the normalisation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resnet20 {}

impl Named for Resnet20 {
    const NAME: &'static str = "resnet-20";
}

/// Channels that share a mean and a variance.
const GROUP: usize = 8;

impl Architecture for Resnet20 {
    fn network(&self, [channels, height, width]: [usize; 3], classes: usize) -> Result<Box<dyn Network>, String> {
        if height < 4 || width < 4 {
            return Err(format!("`resnet-20` needs images of at least 4x4 pixels, not {height}x{width}"));
        }
        let build = |device: &Device| {
            let block = |i: usize| {
                let to = 16 << (i / 3);
                let from = if i > 0 && i.is_multiple_of(3) { to / 2 } else { to };
                Block::new(from, to, device)
            };
            Resnet20Net {
                conv: convolution(channels, 16, 1, device),
                norm: GroupNormConfig::new(16 / GROUP, 16).init(device),
                blocks: (0..9).map(block).collect(),
                linear: LinearConfig::new(64, classes).init(device),
            }
        };
        Ok(Bridge::boxed(classes, build))
    }
}

fn convolution(from: usize, to: usize, stride: usize, device: &Device) -> Conv2d {
    Conv2dConfig::new([from, to], [3, 3])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
        .with_bias(false)
        .init(device)
}

#[derive(Module, Debug)]
struct Block {
    conv1: Conv2d,
    norm1: GroupNorm,
    conv2: Conv2d,
    norm2: GroupNorm,
    grows: bool,
}

impl Block {
    fn new(from: usize, to: usize, device: &Device) -> Self {
        let norm = || GroupNormConfig::new(to / GROUP, to).init(device);
        Self {
            conv1: convolution(from, to, if from == to { 1 } else { 2 }, device),
            norm1: norm(),
            conv2: convolution(to, to, 1, device),
            norm2: norm(),
            grows: from != to,
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let y = relu(self.norm1.forward(self.conv1.forward(x.clone())));
        let y = self.norm2.forward(self.conv2.forward(y));
        let shortcut = if self.grows { every_second_pixel(x) } else { x };
        relu(y + shortcut)
    }
}

/// Halves the sides and doubles the channels: every second pixel, and as many channels of zeros behind the old ones.
fn every_second_pixel(x: Tensor<4>) -> Tensor<4> {
    let x = x.slice(s![.., .., ..;2, ..;2]);
    let zeros = Tensor::zeros(x.dims(), &x.device());
    Tensor::cat(vec![x, zeros], 1)
}

#[derive(Module, Debug)]
struct Resnet20Net {
    conv: Conv2d,
    norm: GroupNorm,
    blocks: Vec<Block>,
    linear: Linear,
}

impl Forward for Resnet20Net {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = relu(self.norm.forward(self.conv.forward(images)));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        let [n, channels, height, width] = x.dims();
        let pooled = x.reshape([n, channels, height * width]).mean_dim(2).reshape([n, channels]);
        self.linear.forward(pooled)
    }
}
