//! Tables in the text form of LIBSVM.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DataError, Dataset, Remote, RemoteFile, Scaling, Source, Split, Table, absolute, error::grouped, packing};
use crate::catalogue::Named;

/// Most bytes that a file may unpack to.
const LIMIT: usize = 1 << 30;

/// Most values of a table, features of all rows.
const VALUES: usize = 1 << 27;

/// Rows of numbers with a target each, in the text form of LIBSVM; Body-Fat and Breast-Cancer come with the program.
///
/// # Files
/// `libsvm/` below the data directory holds the file that is named, packed with gzip or not: `bodyfat` (252 rows of 14
/// features) and `breast-cancer` (683 rows of 10) are there; lay your own beside them. A row is a line
/// `label index:value ..`; indices start at 1 and increase, what is not named is 0. Anything else is refused with its
/// line. All rows are for training, there is no test set: what is measured is the fit itself.
///
/// # Pixels
/// None: features are 64-bit numbers, scaled column by column over all rows of the file. The labels are numbers, or two
/// classes of which the smaller becomes -1 and the larger +1.
///
/// # Source
/// Chang and Lin, *LIBSVM: a library for support vector machines*, 2011. Body-Fat: StatLib, free for non-commercial use;
/// Breast Cancer Wisconsin (original): UCI, CC BY 4.0.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Libsvm {
    /// Name of the file in the folder `libsvm/` of the data directory; `.gz` may be left out.
    pub file: String,
    /// What a label is.
    #[serde(default)]
    pub target: Target,
    /// How features are scaled.
    #[serde(default)]
    pub scaling: Scaling,
    /// Number of features, at least 1. Absent: the largest index in the file.
    #[schemars(with = "u32", range(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<u32>,
}

/// What a label is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A number.
    #[default]
    Number,
    /// One of two classes.
    Class,
}

impl Named for Libsvm {
    const NAME: &'static str = "libsvm";
    const EXAMPLE: &'static str = "file = \"bodyfat\"";
}

impl Source for Libsvm {
    fn load(&self, directory: &Path, _seed: u64) -> Result<Dataset, DataError> {
        let path = self.find(&absolute(&directory.join(Self::NAME)))?;
        let rows = Rows::parse(&path, &packing::read(&path, LIMIT)?)?;
        let mut table = rows.table(&path, self.features)?;
        let (classes, labels) = match self.target {
            Target::Number => (1, vec![0; table.len()]),
            Target::Class => (2, classes(&path, &mut table.targets)?),
        };
        self.scaling.apply(&mut table);
        let dataset = Dataset {
            name: Self::NAME.to_owned(),
            shape: [1, 1, table.width],
            classes,
            train: Split { images: Vec::new(), labels },
            test: Split::default(),
            table: Some(table),
            mean: vec![0.0],
            deviation: vec![1.0],
            digest: String::new(),
            warnings: Vec::new(),
        };
        Ok(dataset.sealed())
    }

    fn remote(&self) -> Option<&'static Remote> {
        Some(&REMOTE)
    }
}

static REMOTE: Remote = Remote {
    name: Libsvm::NAME,
    folder: Libsvm::NAME,
    files: &[
        RemoteFile {
            name: "bodyfat.gz",
            bytes: 8_188,
            sha256: "4965cffaf38e885a5af2e085f981333ec1425c5477662329b6b49756268665ad",
            addresses: &[],
        },
        RemoteFile {
            name: "breast-cancer.gz",
            bytes: 6_194,
            sha256: "89ef3b2be519f6dd8d8e46a833af80ce4595416be6fbfcfe6638a8ced32591ad",
            addresses: &[],
        },
    ],
    terms: "Body-Fat (StatLib): free for non-commercial use; Breast Cancer Wisconsin (UCI): CC BY 4.0",
};

impl Libsvm {
    fn find(&self, folder: &Path) -> Result<PathBuf, DataError> {
        let names = [self.file.clone(), format!("{}.gz", self.file)];
        names.iter().map(|name| folder.join(name)).find(|path| path.is_file()).ok_or_else(|| DataError::Missing {
            name: Self::NAME.to_owned(),
            folder: folder.to_owned(),
            wanted: format!("looked for `{}`", names.join("`, `")),
            remedy: "lay the file into this folder; `data.directory` names the folder above it".to_owned(),
        })
    }
}

/// A file as it stands.
#[derive(Debug, Default)]
struct Rows {
    labels: Vec<f64>,
    /// Where the entries of a row end.
    ends: Vec<usize>,
    /// Indices from 1, and values.
    entries: Vec<(u32, f64)>,
}

impl Rows {
    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, DataError> {
        let mut rows = Self::default();
        let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.is_empty() {
            return Err(DataError::Content {
                path: path.to_owned(),
                expected: "lines `label index:value ..`".to_owned(),
                found: packing::describe(bytes, 0),
            });
        }
        for (at, line) in lines.split(|&byte| byte == b'\n').enumerate() {
            rows.push(line).map_err(|problem| DataError::Line { path: path.to_owned(), line: at + 1, problem })?;
        }
        Ok(rows)
    }

    /// Appends a line, or says what is wrong with it.
    fn push(&mut self, line: &[u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).map_err(|_| "is not text")?;
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        let label = words.next().ok_or("is empty")?;
        self.labels.push(number(label).map_err(|fault| format!("the label `{label}` {fault}"))?);
        let mut before = 0;
        for word in words {
            let (index, value) = word.split_once(':').ok_or_else(|| format!("`{word}` is not `index:value`"))?;
            let is_whole = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
            let index: u32 = index
                .parse()
                .ok()
                .filter(|&index| is_whole && index > 0)
                .ok_or_else(|| format!("the index `{index}` is not a whole number of at least 1"))?;
            if index <= before {
                return Err(format!("index {index} follows {before}, but indices must increase"));
            }
            before = index;
            let value = number(value).map_err(|fault| format!("the value `{value}` of index {index} {fault}"))?;
            self.entries.push((index, value));
        }
        self.ends.push(self.entries.len());
        Ok(())
    }

    fn table(self, path: &Path, features: Option<u32>) -> Result<Table, DataError> {
        let largest = self.entries.iter().map(|&(index, _)| index).max().unwrap_or(0);
        let width = features.unwrap_or(largest).max(1);
        if largest > width {
            return Err(DataError::Unsuitable(format!(
                "`features` is {}, but `{}` has an index {}",
                grouped(width.into()),
                path.display(),
                grouped(largest.into())
            )));
        }
        let (rows, width) = (self.labels.len(), width as usize);
        if rows.checked_mul(width).is_none_or(|values| values > VALUES) {
            return Err(DataError::Unsuitable(format!(
                "`{}` has {} rows of {} features, more than the {} values that are accepted",
                path.display(),
                grouped(rows as u64),
                grouped(width as u64),
                grouped(VALUES as u64)
            )));
        }
        let mut table = Table { width, features: vec![0.0; rows * width], targets: self.labels };
        let mut from = 0;
        for (row, &end) in table.features.chunks_exact_mut(width).zip(&self.ends) {
            for &(index, value) in &self.entries[from..end] {
                row[index as usize - 1] = value;
            }
            from = end;
        }
        Ok(table)
    }
}

/// A finite number.
fn number(text: &str) -> Result<f64, &'static str> {
    let value: f64 = text.parse().map_err(|_| "is not a number")?;
    if value.is_finite() { Ok(value) } else { Err("is not a finite number") }
}

/// Turns two labels into -1 and +1 and returns the classes 0 and 1.
fn classes(path: &Path, targets: &mut [f64]) -> Result<Vec<u8>, DataError> {
    let (low, high) = targets.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &t| (l.min(t), h.max(t)));
    let line = |line: usize, problem: String| DataError::Line { path: path.to_owned(), line, problem };
    if low == high {
        return Err(line(targets.len(), format!("all rows have the label {low}, but `target = \"class\"` needs two")));
    }
    if let Some(at) = targets.iter().position(|&t| t != low && t != high) {
        let problem = format!("the label {} is a third one beside {low} and {high}", targets[at]);
        return Err(line(at + 1, problem));
    }
    let labels = targets.iter().map(|&t| u8::from(t == high)).collect();
    targets.iter_mut().for_each(|t| *t = if *t == high { 1.0 } else { -1.0 });
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Options, Status, limit, packing::tests::gzip, verify};

    const PLAIN: &str = "file = 'own'\nscaling = 'none'";

    fn load(settings: &str, content: &[u8]) -> Result<Dataset, String> {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("libsvm");
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join("own"), content).unwrap();
        let settings: Libsvm = toml::from_str(settings).unwrap();
        settings.load(directory.path(), 0).map_err(|error| {
            let text = error.to_string();
            assert!(text.contains(&*folder.to_string_lossy()), "no absolute path in: {text}");
            text.replace(&*folder.to_string_lossy(), "")
        })
    }

    #[test]
    fn every_number_arrives_at_its_place_whatever_the_white_space() {
        let dataset = load(PLAIN, b"-1.5 1:2 3:-4e-1\n+2 \n0\t2:7.\r\n").unwrap();
        let table = dataset.table.as_ref().unwrap();
        assert_eq!((table.width, table.len(), dataset.classes, dataset.train.len()), (3, 3, 1, 3));
        assert_eq!(table.features, [2.0, 0.0, -0.4, 0.0, 0.0, 0.0, 0.0, 7.0, 0.0]);
        assert_eq!(table.targets, [-1.5, 2.0, 0.0]);
        assert_eq!(load(PLAIN, &gzip(b"-1.5 1:2 3:-4e-1\n2\n0 2:7")).unwrap().digest, dataset.digest);
        for other in ["-1.5 1:2 3:-4e-1\n2\n0 2:7.5", "-1.5 1:2 3:-4e-1\n2.5\n0 2:7"] {
            assert_ne!(load(PLAIN, other.as_bytes()).unwrap().digest, dataset.digest);
        }
        let wide = load(&format!("{PLAIN}\nfeatures = 5"), b"1 2:3").unwrap();
        assert_eq!(wide.table.unwrap().features, [0.0, 3.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn two_labels_of_any_value_are_two_classes() {
        let dataset = load(&format!("{PLAIN}\ntarget = 'class'"), b"4 1:1\n2 1:1\n2 1:1\n").unwrap();
        assert_eq!(dataset.table.unwrap().targets, [1.0, -1.0, -1.0]);
        assert_eq!((dataset.classes, dataset.train.labels), (2, vec![1, 0, 0]));
    }

    #[test]
    fn every_malformed_line_is_refused_with_its_number() {
        for (content, message) in [
            ("1 1:1\n\n2 1:1", "`/own`, line 2: is empty"),
            ("1 1:1\nx 1:1", "`/own`, line 2: the label `x` is not a number"),
            ("nan 1:1", "`/own`, line 1: the label `nan` is not a finite number"),
            ("1 1:inf", "`/own`, line 1: the value `inf` of index 1 is not a finite number"),
            ("1 1:1e999", "`/own`, line 1: the value `1e999` of index 1 is not a finite number"),
            ("1 1:", "`/own`, line 1: the value `` of index 1 is not a number"),
            ("1 7", "`/own`, line 1: `7` is not `index:value`"),
            ("1 0:1", "`/own`, line 1: the index `0` is not a whole number of at least 1"),
            ("1 +1:1", "`/own`, line 1: the index `+1` is not a whole number of at least 1"),
            ("1 4294967296:1", "`/own`, line 1: the index `4294967296` is not a whole number of at least 1"),
            ("1 2:1 2:1", "`/own`, line 1: index 2 follows 2, but indices must increase"),
            ("1 2:1 1:1 # comment", "`/own`, line 1: index 1 follows 2, but indices must increase"),
            ("1 1:1 # comment", "`/own`, line 1: `#` is not `index:value`"),
            ("1,2 1:1", "`/own`, line 1: the label `1,2` is not a number"),
            ("", "`/own` holds nothing (0 bytes), expected lines `label index:value ..`"),
            (
                "1 4000000000:1",
                "`/own` has 1 rows of 4,000,000,000 features, more than the 134,217,728 values that are accepted",
            ),
        ] {
            assert_eq!(load(PLAIN, content.as_bytes()).unwrap_err(), message);
        }
        assert_eq!(load(PLAIN, b"1 1:1\n\xff").unwrap_err(), "`/own`, line 2: is not text");
        let class = format!("{PLAIN}\ntarget = 'class'");
        assert_eq!(
            load(&class, b"1 1:1\n2 1:1\n3 1:2").unwrap_err(),
            "`/own`, line 2: the label 2 is a third one beside 1 and 3"
        );
        assert!(load(&class, b"1 1:1\n1 1:1").unwrap_err().contains("all rows have the label 1"));
        let narrow = format!("{PLAIN}\nfeatures = 2");
        assert_eq!(load(&narrow, b"1 3:1").unwrap_err(), "`features` is 2, but `/own` has an index 3");
    }

    #[test]
    fn the_tables_that_come_with_the_program_have_the_published_shapes() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let load = |settings: &str| toml::from_str::<Libsvm>(settings).unwrap().load(&data, 0).unwrap();
        let bodyfat = load("file = 'bodyfat'").table.unwrap();
        assert_eq!((bodyfat.len(), bodyfat.width), (252, 14));
        assert!(bodyfat.features.iter().all(|v| (-1.0..=1.0).contains(v)));
        let (low, high) = bodyfat.targets.iter().fold((2.0f64, 0.0f64), |(l, h), &t| (l.min(t), h.max(t)));
        assert_eq!((low, high), (0.995, 1.1089));
        let cancer = load("file = 'breast-cancer.gz'\ntarget = 'class'");
        assert_eq!(cancer.train.labels.iter().map(|&label| u32::from(label)).sum::<u32>(), 239);
        assert_eq!(cancer.table.as_ref().map(|table| (table.len(), table.width)), Some((683, 10)));
        assert!(verify(&REMOTE, &data).iter().all(|(_, status)| *status == Status::Right));

        let few = limit(cancer, &Options { train_samples: Some(30), ..Options::default() }).unwrap();
        assert_eq!(few.table.as_ref().map(|table| (table.len(), table.features.len())), Some((30, 300)));
        assert_eq!(few.train.len(), 30);
    }
}
