//! MNIST, handwritten digits.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Remote, RemoteFile, Source, idx_images::IdxImages, published::Published};
use crate::catalogue::Named;

/// Handwritten digits: 60,000 training and 10,000 test images of 28 × 28 grey pixels in 10 classes.
///
/// # Files
/// In `mnist/` below the data directory: `train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz`,
/// `t10k-images-idx3-ubyte.gz`, `t10k-labels-idx1-ubyte.gz`; each also without `.gz`, or with `.idx` in place of
/// `-idx`, looked for in this order. The content decides whether a file is packed.
///
/// # Pixels
/// One channel, row by row from the top; 0 is paper, 255 is full ink. `unit` gives `byte / 255`, `standard` gives
/// `(byte / 255 - 0.1307) / 0.3081`.
///
/// # Source
/// LeCun, Bottou, Bengio, Haffner, *Gradient-based learning applied to document recognition*, Proceedings of the IEEE
/// 86(11), 1998. Commonly given as CC BY-SA 3.0.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mnist {}

impl Named for Mnist {
    const NAME: &'static str = "mnist";
}

impl Source for Mnist {
    fn load(&self, directory: &Path, _seed: u64) -> Result<Dataset, DataError> {
        SET.load(directory)
    }

    fn remote(&self) -> Option<&'static Remote> {
        Some(&REMOTE)
    }
}

const SET: IdxImages = IdxImages {
    name: Mnist::NAME,
    files: [
        Published {
            name: "train-images-idx3-ubyte",
            sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        },
        Published {
            name: "train-labels-idx1-ubyte",
            sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        },
        Published {
            name: "t10k-images-idx3-ubyte",
            sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        },
        Published {
            name: "t10k-labels-idx1-ubyte",
            sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
    ],
    digest: Some("2f1615ce4546b33b9a36159014deb17a78c7c2d00f18d0fda2925ab7fafc2b5e"),
    mean: 0.1307,
    deviation: 0.3081,
};

static REMOTE: Remote = Remote {
    name: Mnist::NAME,
    folder: Mnist::NAME,
    files: &[
        RemoteFile {
            name: "train-images-idx3-ubyte.gz",
            bytes: 9_912_422,
            sha256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            addresses: &[
                "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
                "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
                "http://yann.lecun.com/exdb/mnist/train-images-idx3-ubyte.gz",
            ],
        },
        RemoteFile {
            name: "train-labels-idx1-ubyte.gz",
            bytes: 28_881,
            sha256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            addresses: &[
                "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
                "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz",
                "http://yann.lecun.com/exdb/mnist/train-labels-idx1-ubyte.gz",
            ],
        },
        RemoteFile {
            name: "t10k-images-idx3-ubyte.gz",
            bytes: 1_648_877,
            sha256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            addresses: &[
                "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
                "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz",
                "http://yann.lecun.com/exdb/mnist/t10k-images-idx3-ubyte.gz",
            ],
        },
        RemoteFile {
            name: "t10k-labels-idx1-ubyte.gz",
            bytes: 4_542,
            sha256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            addresses: &[
                "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
                "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz",
                "http://yann.lecun.com/exdb/mnist/t10k-labels-idx1-ubyte.gz",
            ],
        },
    ],
    terms: "Yann LeCun, Corinna Cortes, Christopher J. C. Burges; commonly given as CC BY-SA 3.0",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Normalisation, Options, Pixels, Transform};

    #[test]
    fn the_published_files_load_without_a_warning() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        if !data.join("mnist").exists() {
            return;
        }
        let dataset = Mnist {}.load(&data, 0).unwrap();
        assert_eq!(dataset.warnings, [""; 0]);
        assert_eq!(dataset.digest, "2f1615ce4546b33b9a36159014deb17a78c7c2d00f18d0fda2925ab7fafc2b5e");
        assert_eq!(dataset.train.labels[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
        assert_eq!(dataset.test.labels[..10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);

        // The published constants are those of the training pixels.
        let options = Options { normalisation: Normalisation::Standard, ..Options::default() };
        let mut out = Vec::new();
        let indices: Vec<u32> = (0..60_000).collect();
        let noise = crate::rng::Address::new(0, crate::rng::Purpose::Noise);
        let pixels = Pixels::new(&dataset, &options).unwrap();
        pixels.gather(&dataset.train, &indices, &Transform::default(), noise, None, &mut out);
        let mean = out.iter().map(|&x| f64::from(x)).sum::<f64>() / out.len() as f64;
        let square = out.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / out.len() as f64;
        assert!(mean.abs() < 1e-3 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
    }
}
