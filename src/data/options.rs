//! Settings of the `[data]` section that every data set has, and what a partition does to a client's samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Split, error::grouped};

/// How bytes become numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// `byte / 255`, in [0, 1].
    Unit,
    /// `(byte / 255 - mean) / deviation` with the published constants of the data set, one pair a channel.
    #[default]
    Standard,
}

/// Random changes to training images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Augmentation {
    /// None.
    #[default]
    None,
    /// A crop at a uniformly random position, then a horizontal flip with probability 1/2, drawn anew for every use.
    CropFlip,
}

/// Keys of the `[data]` section beside the name of the data set and its own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Data directory; without it the environment variable `FEDBITS_DATA`, else `data` in the current folder.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Use only so many training samples, the first ones.
    #[schemars(with = "u32", range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_samples: Option<u32>,
    /// Use only so many test samples, the first ones.
    #[schemars(with = "u32", range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_samples: Option<u32>,
    /// How bytes become numbers.
    pub normalisation: Normalisation,
    /// Random changes to training images.
    pub augmentation: Augmentation,
    /// Side of the square that is cut out of every image, in pixels: at a random position in training with `crop-flip`,
    /// else from the centre. Without it images keep their size.
    #[schemars(with = "u32", range(min = 1, max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crop: Option<u32>,
    /// Pixels of byte value 0 that are added on every side before the crop. Without it 4 with `crop-flip` and no
    /// `crop`, else 0.
    #[schemars(with = "u32", range(max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding: Option<u32>,
}

impl Options {
    /// The padding with its default filled in.
    pub fn resolved_padding(&self) -> u32 {
        let is_needed = self.augmentation == Augmentation::CropFlip && self.crop.is_none();
        self.padding.unwrap_or(if is_needed { 4 } else { 0 })
    }
}

/// What a partition does to all samples of one client; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transform {
    /// Counter-clockwise turns by 90 degrees.
    pub quarter_turns: u8,
    /// Standard deviation of the Gaussian noise that is added to `byte / 255`.
    pub noise_deviation: f32,
}

impl Transform {
    /// Checks that images of this shape (channels, height, width) can be changed so.
    ///
    /// # Errors
    /// A quarter turn of images that are not square; a deviation that is negative or not finite.
    pub fn check(&self, shape: [usize; 3]) -> Result<(), DataError> {
        let [_, height, width] = shape;
        if self.quarter_turns % 2 == 1 && height != width {
            return Err(DataError::Unsuitable(format!(
                "a quarter turn needs square images, these are {height} × {width}"
            )));
        }
        if self.noise_deviation >= 0.0 && self.noise_deviation.is_finite() {
            return Ok(());
        }
        Err(DataError::Unsuitable(format!(
            "the deviation of the noise is {}, it must be finite and at least 0",
            self.noise_deviation
        )))
    }
}

/// Keeps the first `train_samples` and `test_samples`, where they are given; the digest is that of what is kept.
///
/// # Errors
/// More samples asked for than there are, or none.
pub fn limit(mut dataset: Dataset, options: &Options) -> Result<Dataset, DataError> {
    let (name, pixels) = (dataset.name.clone(), dataset.pixels());
    let cut = |split: &mut Split, key: &str, wanted: Option<u32>| {
        let Some(wanted) = wanted else { return Ok(()) };
        let count = wanted as usize;
        if count == 0 || count > split.len() {
            return Err(DataError::Unsuitable(format!(
                "`{key}` is {}, but must be in 1..={} for `{name}`",
                grouped(wanted.into()),
                grouped(split.len() as u64)
            )));
        }
        split.images.truncate(count * pixels);
        split.labels.truncate(count);
        Ok(())
    };
    cut(&mut dataset.train, "train_samples", options.train_samples)?;
    let rows = dataset.train.len();
    if let Some(table) = &mut dataset.table {
        table.truncate(rows);
    }
    cut(&mut dataset.test, "test_samples", options.test_samples)?;
    if options.train_samples.or(options.test_samples).is_some() {
        dataset.digest = dataset.content_digest();
    }
    Ok(dataset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Source, Synthetic};
    use std::path::Path;

    #[test]
    fn options_are_written_as_in_a_scenario() {
        let options: Options = toml::from_str("normalisation = 'unit'\naugmentation = 'crop-flip'\ncrop = 24").unwrap();
        assert_eq!(options.normalisation, Normalisation::Unit);
        assert_eq!(options.augmentation, Augmentation::CropFlip);
        assert_eq!(toml::Table::try_from(&options).unwrap().len(), 3);
        assert_eq!(Options::default().normalisation, Normalisation::Standard);
        assert!(toml::from_str::<Options>("crops = 24").is_err());
    }

    #[test]
    fn padding_is_four_for_crop_flip_alone() {
        let padding = |augmentation, crop, padding| {
            Options { augmentation, crop, padding, ..Options::default() }.resolved_padding()
        };
        assert_eq!(padding(Augmentation::None, None, None), 0);
        assert_eq!(padding(Augmentation::CropFlip, None, None), 4);
        assert_eq!(padding(Augmentation::CropFlip, Some(24), None), 0);
        assert_eq!(padding(Augmentation::CropFlip, Some(24), Some(2)), 2);
    }

    #[test]
    fn the_first_samples_are_kept_and_the_digest_follows() {
        let load = |settings: Synthetic| settings.load(Path::new(""), 0).unwrap();
        let whole = load(Synthetic::default());
        let options = Options { train_samples: Some(30), test_samples: Some(200), ..Options::default() };
        let cut = limit(whole.clone(), &options).unwrap();
        assert_eq!((cut.train.len(), cut.train.images.len(), cut.test.len()), (30, 30 * 64, 200));
        assert_eq!(cut.train.images, whole.train.images[..30 * 64]);
        assert_ne!(cut.digest, whole.digest);
        assert_eq!(limit(whole.clone(), &Options::default()).unwrap().digest, whole.digest);

        for (train_samples, test_samples, text) in [
            (Some(1001), None, "`train_samples` is 1,001, but must be in 1..=1,000 for `synthetic`"),
            (None, Some(0), "`test_samples` is 0, but must be in 1..=200 for `synthetic`"),
        ] {
            let options = Options { train_samples, test_samples, ..Options::default() };
            assert_eq!(limit(whole.clone(), &options).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn transforms_that_cannot_be_are_refused() {
        let transform = |quarter_turns, noise_deviation| Transform { quarter_turns, noise_deviation };
        assert!(Transform::default().check([1, 2, 3]).is_ok());
        assert!(transform(2, 0.1).check([1, 2, 3]).is_ok());
        assert!(transform(1, 0.0).check([3, 4, 4]).is_ok());
        let message = transform(3, 0.0).check([1, 2, 3]).unwrap_err().to_string();
        assert_eq!(message, "a quarter turn needs square images, these are 2 × 3");
        for deviation in [-0.1, f32::NAN, f32::INFINITY] {
            assert!(transform(0, deviation).check([1, 4, 4]).is_err());
        }
    }
}
