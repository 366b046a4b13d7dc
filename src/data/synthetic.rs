//! A classification problem drawn from the seed, for quick trials and tests.

use std::path::Path;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Remote, Source, Split, error::grouped};
use crate::{
    catalogue::Named,
    rng::{Address, Purpose, shuffle},
};

/// Most bytes of all images together.
const LIMIT: usize = 1 << 31;

/// Noisy copies of one random image a class, drawn from the seed; a linear classifier can learn it.
///
/// # Files
/// None.
///
/// # Pixels
/// Every class has a prototype of uniform random bytes. An image is its prototype plus Gaussian noise of deviation
/// `255·noise` on every byte, rounded and clipped to 0..=255. Labels are as balanced as the size allows
/// (`i mod classes`), in random order. `unit` gives `byte / 255`, `standard` gives `(byte / 255 - 0.5) / 0.3`.
///
/// # Source
/// Ours. The prototypes depend on the seed, the number of classes and the shape alone, so that a larger split or other
/// noise keeps the problem.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Synthetic {
    /// Number of classes, 2 to 256.
    #[schemars(range(min = 2, max = 256))]
    pub classes: u32,
    /// Number of channels.
    #[schemars(range(min = 1, max = 64))]
    pub channels: u32,
    /// Height in pixels.
    #[schemars(range(min = 1, max = 1024))]
    pub height: u32,
    /// Width in pixels.
    #[schemars(range(min = 1, max = 1024))]
    pub width: u32,
    /// Number of training images.
    #[schemars(range(min = 1))]
    pub train: u32,
    /// Number of test images.
    #[schemars(range(min = 1))]
    pub test: u32,
    /// Deviation of the noise as a share of the full scale, at least 0; higher is harder.
    #[schemars(range(min = 0.0))]
    pub noise: f64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self { classes: 10, channels: 1, height: 8, width: 8, train: 1000, test: 200, noise: 0.3 }
    }
}

impl Named for Synthetic {
    const NAME: &'static str = "synthetic";
}

impl Source for Synthetic {
    fn load(&self, _directory: &Path, seed: u64) -> Result<Dataset, DataError> {
        let pixels = self.check()?;
        let address = Address::new(seed, Purpose::Data);
        let mut prototypes = vec![0; self.classes as usize * pixels];
        address.part(0).generator().fill_bytes(&mut prototypes);
        let dataset = Dataset {
            name: Self::NAME.to_owned(),
            shape: [self.channels, self.height, self.width].map(|side| side as usize),
            classes: self.classes as usize,
            train: self.draw(self.train, &prototypes, &mut address.part(1).generator()),
            test: self.draw(self.test, &prototypes, &mut address.part(2).generator()),
            table: None,
            mean: vec![0.5; self.channels as usize],
            deviation: vec![0.3; self.channels as usize],
            digest: String::new(),
            warnings: Vec::new(),
        };
        Ok(dataset.sealed())
    }

    fn remote(&self) -> Option<&'static Remote> {
        None
    }
}

impl Synthetic {
    /// Bytes of one image, if the settings describe a data set that fits.
    fn check(&self) -> Result<usize, DataError> {
        let is_sound = [self.channels, self.height, self.width, self.train, self.test].iter().all(|&size| size > 0)
            && (2..=256).contains(&self.classes)
            && (self.noise >= 0.0 && self.noise.is_finite());
        if !is_sound {
            return Err(DataError::Unsuitable(
                "`synthetic` needs 2 to 256 `classes`, sizes of at least 1, and a finite `noise` of at least 0"
                    .to_owned(),
            ));
        }
        let image = [self.channels, self.height, self.width]
            .iter()
            .try_fold(1usize, |product, &side| product.checked_mul(side as usize));
        let images = self.train as usize + self.test as usize + self.classes as usize;
        match image.and_then(|image| Some((image, image.checked_mul(images)?))) {
            Some((image, total)) if total <= LIMIT => Ok(image),
            _ => Err(DataError::Unsuitable(format!(
                "`synthetic` of {} × {} × {} pixels with {} training and {} test images needs more than {} bytes",
                self.channels,
                self.height,
                self.width,
                grouped(self.train.into()),
                grouped(self.test.into()),
                grouped(LIMIT as u64)
            ))),
        }
    }

    fn draw(&self, count: u32, prototypes: &[u8], generator: &mut ChaCha8Rng) -> Split {
        let mut labels: Vec<u8> = (0..count).map(|i| (i % self.classes) as u8).collect();
        shuffle(&mut labels, generator);
        let size = prototypes.len() / self.classes as usize;
        let mut images = Vec::with_capacity(labels.len() * size);
        for &label in &labels {
            let prototype = &prototypes[usize::from(label) * size..][..size];
            images.extend(prototype.iter().map(|&byte| {
                let deviate: f64 = StandardNormal.sample(generator);
                (f64::from(byte) + 255.0 * self.noise * deviate).round() as u8
            }));
        }
        Split { images, labels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(settings: &Synthetic, seed: u64) -> Dataset {
        settings.load(Path::new(""), seed).unwrap()
    }

    #[test]
    fn the_seed_decides_and_values_stay() {
        let dataset = load(&Synthetic::default(), 0);
        assert_eq!((dataset.shape, dataset.train.len(), dataset.test.len()), ([1, 8, 8], 1000, 200));
        assert_eq!(dataset.train.images.len(), 64_000);
        assert_eq!(dataset.digest, load(&Synthetic::default(), 0).digest);
        assert_ne!(dataset.digest, load(&Synthetic::default(), 1).digest);
        assert_eq!(dataset.train.labels[..8], [3, 7, 4, 5, 7, 6, 4, 7]);
        assert_eq!(dataset.train.images[..8], [233, 255, 255, 192, 255, 201, 255, 222]);
        assert!(dataset.warnings.is_empty());
    }

    #[test]
    fn labels_are_balanced_and_in_no_order() {
        let dataset = load(&Synthetic { train: 1003, ..Synthetic::default() }, 3);
        let count = |class: u8| dataset.train.labels.iter().map(|&label| usize::from(label == class)).sum::<usize>();
        assert!((0..10).all(|class| count(class) == 100 + usize::from(class < 3)));
        assert_ne!(dataset.train.labels[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn the_nearest_class_mean_of_the_training_images_classifies_the_test_images() {
        let dataset = load(&Synthetic::default(), 5);
        let size = dataset.pixels();
        let mut means = vec![0.0; 10 * size];
        for (image, &label) in dataset.train.images.chunks_exact(size).zip(&dataset.train.labels) {
            for (mean, &byte) in means[usize::from(label) * size..].iter_mut().zip(image) {
                *mean += f64::from(byte) / 100.0;
            }
        }
        let distance = |image: &[u8], class: usize| -> f64 {
            image.iter().zip(&means[class * size..]).map(|(&byte, mean)| (f64::from(byte) - mean).powi(2)).sum()
        };
        let nearest = |image| (0..10).min_by(|&a, &b| distance(image, a).total_cmp(&distance(image, b)));
        let images = dataset.test.images.chunks_exact(size).zip(&dataset.test.labels);
        let right = images.filter(|(image, label)| nearest(image) == Some(usize::from(**label))).count();
        assert!(right >= 190, "{right} of 200");
    }

    #[test]
    fn without_noise_the_test_images_are_training_images_and_that_is_said() {
        assert_eq!(load(&Synthetic { noise: 0.0, ..Synthetic::default() }, 0).warnings.len(), 1);
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let refuse = |settings: Synthetic| settings.load(Path::new(""), 0).unwrap_err().to_string();
        assert!(refuse(Synthetic { classes: 1, ..Synthetic::default() }).contains("2 to 256 `classes`"));
        assert!(refuse(Synthetic { noise: f64::NAN, ..Synthetic::default() }).contains("finite `noise`"));
        assert!(refuse(Synthetic { train: u32::MAX, ..Synthetic::default() }).contains("4,294,967,295 training"));
        let huge = Synthetic { channels: u32::MAX, height: u32::MAX, width: u32::MAX, ..Synthetic::default() };
        assert!(refuse(huge).contains("needs more than"));
    }
}
