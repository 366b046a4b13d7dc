//! Fashion-MNIST, pictures of clothing.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Remote, RemoteFile, Source, idx_images::IdxImages, published::Published};
use crate::catalogue::Named;

/// Pictures of clothing: 60,000 training and 10,000 test images of 28 × 28 grey pixels in 10 classes.
///
/// # Files
/// In `fashion-mnist/` below the data directory: `train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz`,
/// `t10k-images-idx3-ubyte.gz`, `t10k-labels-idx1-ubyte.gz`; each also without `.gz`, or with `.idx` in place of
/// `-idx`, looked for in this order. The content decides whether a file is packed.
///
/// # Pixels
/// One channel, row by row from the top; 0 is background. `unit` gives `byte / 255`, `standard` gives
/// `(byte / 255 - 0.2860) / 0.3530`.
///
/// # Source
/// Xiao, Rasul, Vollgraf, *Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms*, 2017,
/// arXiv:1708.07747. MIT licence, Zalando SE.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FashionMnist {}

impl Named for FashionMnist {
    const NAME: &'static str = "fashion-mnist";
}

impl Source for FashionMnist {
    fn load(&self, directory: &Path, _seed: u64) -> Result<Dataset, DataError> {
        SET.load(directory)
    }

    fn remote(&self) -> Option<&'static Remote> {
        Some(&REMOTE)
    }
}

const SET: IdxImages = IdxImages {
    name: FashionMnist::NAME,
    files: [
        Published {
            name: "train-images-idx3-ubyte",
            sha256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        },
        Published {
            name: "train-labels-idx1-ubyte",
            sha256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        },
        Published {
            name: "t10k-images-idx3-ubyte",
            sha256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        },
        Published {
            name: "t10k-labels-idx1-ubyte",
            sha256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    ],
    digest: None,
    mean: 0.2860,
    deviation: 0.3530,
};

static REMOTE: Remote = Remote {
    name: FashionMnist::NAME,
    folder: FashionMnist::NAME,
    files: &[
        RemoteFile {
            name: "train-images-idx3-ubyte.gz",
            bytes: 26_421_880,
            sha256: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            addresses: &[
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz",
                "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/train-images-idx3-ubyte.gz",
            ],
        },
        RemoteFile {
            name: "train-labels-idx1-ubyte.gz",
            bytes: 29_515,
            sha256: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            addresses: &[
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-labels-idx1-ubyte.gz",
                "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/train-labels-idx1-ubyte.gz",
            ],
        },
        RemoteFile {
            name: "t10k-images-idx3-ubyte.gz",
            bytes: 4_422_102,
            sha256: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            addresses: &[
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-images-idx3-ubyte.gz",
                "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/t10k-images-idx3-ubyte.gz",
            ],
        },
        RemoteFile {
            name: "t10k-labels-idx1-ubyte.gz",
            bytes: 5_148,
            sha256: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            addresses: &[
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-labels-idx1-ubyte.gz",
                "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/t10k-labels-idx1-ubyte.gz",
            ],
        },
    ],
    terms: "MIT licence, Zalando SE",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::idx::tests::idx_bytes;

    #[test]
    fn files_in_the_folder_of_this_name_are_read_and_compared_with_its_own_digests() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("fashion-mnist");
        fs_err::create_dir(&folder).unwrap();
        for (file, count) in SET.files.iter().zip([3, 3, 2, 2]) {
            let content = match file.name.contains("images") {
                true => idx_bytes(&[count, 28, 28], &(0..count * 784).map(|i| (i / 300) as u8).collect::<Vec<_>>()),
                false => idx_bytes(&[count], &vec![7; count as usize]),
            };
            fs_err::write(folder.join(file.name), content).unwrap();
        }
        let dataset = FashionMnist {}.load(directory.path(), 0).unwrap();
        assert_eq!((dataset.name.as_str(), dataset.train.len(), dataset.test.len()), ("fashion-mnist", 3, 2));
        assert!(dataset.warnings.iter().any(|warning| warning.contains(SET.files[0].sha256)));
    }
}
