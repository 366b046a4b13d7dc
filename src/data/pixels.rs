//! From bytes to numbers: normalisation, a client's transform, crop and flip, for one batch at a time.
//!
//! A pixel is turned, made a number in [0, 1], given its noise, normalised, and then cropped and flipped. The result is
//! in the order channel, row, column.

use std::iter::repeat_n;

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Augmentation, DataError, Dataset, Normalisation, Options, Split, Transform};
use crate::rng::{Address, below};

/// The meaning of every byte of a data set under given options.
#[derive(Clone, Debug)]
pub struct Pixels {
    channels: Vec<Channel>,
    /// Height and width of a stored image.
    stored: [usize; 2],
    /// Height and width of what [`Pixels::gather`] gives.
    shown: [usize; 2],
    /// Rows and columns added on every side before the crop.
    padding: usize,
    is_augmented: bool,
}

#[derive(Clone, Debug)]
struct Channel {
    /// `(byte / 255 - mean) / deviation` for every byte.
    table: [f32; 256],
    mean: f32,
    deviation: f32,
}

impl Channel {
    fn new(mean: f32, deviation: f32) -> Self {
        let table = std::array::from_fn(|byte| (unit(byte as u8) - mean) / deviation);
        Self { table, mean, deviation }
    }

    fn value(&self, byte: u8) -> f32 {
        self.table[usize::from(byte)]
    }
}

/// `byte / 255`, never in integers.
fn unit(byte: u8) -> f32 {
    f32::from(byte) / 255.0
}

/// The part of a padded image that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    top: usize,
    left: usize,
    is_flipped: bool,
}

impl Pixels {
    /// Prepares the tables of a data set.
    ///
    /// # Errors
    /// A crop larger than the padded image; constants of the data set that do not suit its channels.
    pub fn new(dataset: &Dataset, options: &Options) -> Result<Self, DataError> {
        let [channels, height, width] = dataset.shape;
        let is_sound = dataset.mean.iter().all(|mean| mean.is_finite())
            && dataset.deviation.iter().all(|&deviation| deviation > 0.0 && deviation.is_finite());
        if dataset.mean.len() != channels || dataset.deviation.len() != channels || !is_sound {
            let problem = format!("`{}` needs a mean and a positive deviation for each channel", dataset.name);
            return Err(DataError::Unsuitable(problem));
        }
        let padding = options.resolved_padding() as usize;
        let padded = [height, width].map(|side| side.saturating_add(2 * padding));
        let shown = options.crop.map_or([height, width], |side| [side as usize; 2]);
        if shown.contains(&0) || shown[0] > padded[0] || shown[1] > padded[1] {
            return Err(DataError::Unsuitable(format!(
                "`crop` is {}, but must be in 1..={}: images of `{}` are {height} × {width} pixels, \
                 with {padding} of padding",
                shown[0],
                padded[0].min(padded[1]),
                dataset.name
            )));
        }
        let channel = |(&mean, &deviation): (&f32, &f32)| match options.normalisation {
            Normalisation::Unit => Channel::new(0.0, 1.0),
            Normalisation::Standard => Channel::new(mean, deviation),
        };
        Ok(Self {
            channels: dataset.mean.iter().zip(&dataset.deviation).map(channel).collect(),
            stored: [height, width],
            shown,
            padding,
            is_augmented: options.augmentation == Augmentation::CropFlip,
        })
    }

    /// Channels, height and width of a gathered image.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels.len(), self.shown[0], self.shown[1]]
    }

    /// Replaces `out` by the images `indices` of `split`, normalised, one after the other in the order channel, row,
    /// column.
    ///
    /// Noise is drawn from `noise` with the index of the sample as its part, so a sample has the same noise each time;
    /// it is not clipped. Crops and flips are random only with [`Augmentation::CropFlip`] and an address `augment`,
    /// whose generator serves the whole batch: for each sample in order a row, a column and a flip. Evaluation gives no
    /// address and sees the centre.
    ///
    /// # Panics
    /// If an index is not in the split, or [`Transform::check`] would refuse.
    pub fn gather(
        &self,
        split: &Split,
        indices: &[u32],
        transform: &Transform,
        noise: Address,
        augment: Option<Address>,
        out: &mut Vec<f32>,
    ) {
        out.clear();
        out.reserve(indices.len() * self.shape().iter().product::<usize>());
        let mut draws = augment.filter(|_| self.is_augmented).map(Address::generator);
        let is_whole = self.shown == self.stored && draws.is_none();
        if is_whole && transform.quarter_turns.is_multiple_of(4) && transform.noise_deviation == 0.0 {
            for &index in indices {
                for (channel, plane) in self.planes(split, index) {
                    out.extend(plane.iter().map(|&byte| channel.value(byte)));
                }
            }
            return;
        }
        let order = self.turned(transform.quarter_turns);
        let mut sample = Vec::new();
        for &index in indices {
            sample.clear();
            self.transformed(split, index, &order, transform.noise_deviation, noise, &mut sample);
            let window = draws.as_mut().map_or_else(|| self.central(), |generator| self.random(generator));
            self.show(&sample, window, out);
        }
    }

    /// The channels of one image, each with its bytes.
    fn planes<'a>(&'a self, split: &'a Split, index: u32) -> impl Iterator<Item = (&'a Channel, &'a [u8])> {
        let plane = self.stored[0] * self.stored[1];
        let size = plane * self.channels.len();
        self.channels.iter().zip(split.images[index as usize * size..][..size].chunks_exact(plane))
    }

    /// For every place of a turned plane, the place in the stored plane that it shows.
    fn turned(&self, quarter_turns: u8) -> Vec<usize> {
        let [height, width] = self.stored;
        let turns = quarter_turns % 4;
        assert!(turns.is_multiple_of(2) || height == width, "Transform::check allows quarter turns of squares alone");
        let source = |row: usize, column: usize| match turns {
            0 => row * width + column,
            1 => column * width + (width - 1 - row),
            2 => (height - 1 - row) * width + (width - 1 - column),
            _ => (height - 1 - column) * width + row,
        };
        (0..height).flat_map(|row| (0..width).map(move |column| source(row, column))).collect()
    }

    /// Appends one whole image, turned, with noise, normalised.
    fn transformed(
        &self,
        split: &Split,
        index: u32,
        order: &[usize],
        deviation: f32,
        noise: Address,
        sample: &mut Vec<f32>,
    ) {
        if deviation == 0.0 {
            for (channel, plane) in self.planes(split, index) {
                sample.extend(order.iter().map(|&from| channel.value(plane[from])));
            }
            return;
        }
        let mut generator = noise.part(u64::from(index)).generator();
        for (channel, plane) in self.planes(split, index) {
            sample.extend(order.iter().map(|&from| {
                let deviate: f32 = StandardNormal.sample(&mut generator);
                (unit(plane[from]) + deviation * deviate - channel.mean) / channel.deviation
            }));
        }
    }

    /// Room for the window on both axes.
    fn slack(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.stored[axis] + 2 * self.padding - self.shown[axis])
    }

    fn central(&self) -> Window {
        let [top, left] = self.slack().map(|slack| slack / 2);
        Window { top, left, is_flipped: false }
    }

    fn random(&self, generator: &mut impl Rng) -> Window {
        let [top, left] = self.slack().map(|slack| below(generator, slack as u32 + 1) as usize);
        Window { top, left, is_flipped: generator.next_u32() >> 31 == 1 }
    }

    /// Appends the part of a normalised image that the window shows.
    fn show(&self, sample: &[f32], window: Window, out: &mut Vec<f32>) {
        let [height, width] = self.stored;
        let [shown_height, shown_width] = self.shown;
        // Columns of the padded image that are shown and not padding.
        let begin = window.left.max(self.padding);
        let end = (window.left + shown_width).min(self.padding + width).max(begin);
        for (channel, plane) in self.channels.iter().zip(sample.chunks_exact(height * width)) {
            let blank = channel.value(0);
            for row in window.top..window.top + shown_height {
                let start = out.len();
                match row.checked_sub(self.padding).filter(|&row| row < height && begin < end) {
                    None => out.extend(repeat_n(blank, shown_width)),
                    Some(row) => {
                        let line = &plane[row * width..][..width];
                        out.extend(repeat_n(blank, begin - window.left));
                        out.extend_from_slice(&line[begin - self.padding..end - self.padding]);
                        out.extend(repeat_n(blank, window.left + shown_width - end));
                    }
                }
                if window.is_flipped {
                    out[start..].reverse();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
