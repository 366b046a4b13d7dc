//! The command as a user runs it, in a folder of its own.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use assert_cmd::Command;
use tempfile::TempDir;

/// A folder with scenario files, in which the command is run.
pub struct Place {
    folder: TempDir,
}

/// A small scenario on synthetic data; `{}` takes more sections.
pub const SMALL: &str = r#"
rounds = 4
seed = 3

[data]
name = "synthetic"
train = 300
test = 100

[partition]
name = "dirichlet-client"
clients = 10
alpha = 0.5

[model]
name = "mlp"
hidden = [16]

[method]
name = "fedavg"
participation = 0.5
batch_size = 8
learning_rate = 0.05
momentum = 0.5
"#;

impl Place {
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder can be made") }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Runs the command here.
    pub fn fedbits(&self, arguments: &[&str]) -> Output {
        let mut command = Command::cargo_bin("fedbits").expect("the command is built");
        command.current_dir(self.path()).env_remove("FEDBITS_DATA").env("NO_COLOR", "1").args(arguments);
        command.output().expect("the command can be run")
    }

    /// Runs the command and returns the standard output; panics unless it ends well.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.fedbits(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", errors(&output));
        String::from_utf8(output.stdout).expect("output is text")
    }

    /// The folders of runs below a results folder.
    pub fn runs(&self, results: &str) -> Vec<PathBuf> {
        let mut runs = Vec::new();
        let Ok(scenarios) = std::fs::read_dir(self.path().join(results)) else { return runs };
        for scenario in scenarios {
            for run in std::fs::read_dir(scenario.expect("readable").path()).expect("readable") {
                runs.push(run.expect("readable").path());
            }
        }
        runs.sort();
        runs
    }

    /// The one run below a results folder.
    pub fn run(&self, results: &str) -> PathBuf {
        let mut runs = self.runs(results);
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }
}

/// The standard error as text.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The rows of a CSV file: column name to cell.
pub fn rows(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).expect("the file is CSV");
    reader.deserialize().map(|row| row.expect("every row fits the header")).collect()
}

/// The text of a CSV file without its time columns.
pub fn without_times(path: &Path) -> String {
    let mut reader = csv::Reader::from_path(path).expect("the file is CSV");
    let header = reader.headers().expect("there is a header").clone();
    let kept: Vec<usize> = (0..header.len()).filter(|&i| !header[i].ends_with("_seconds")).collect();
    let line = |record: &csv::StringRecord| kept.iter().map(|&i| record[i].to_owned()).collect::<Vec<_>>().join(",");
    let mut text = line(&header);
    for record in reader.records() {
        text += "\n";
        text += &line(&record.expect("every row fits the header"));
    }
    text
}

/// Runs a command that is wrong; its message, whatever the width, must hold every one of `wanted`.
pub fn refuse(place: &Place, arguments: &[&str], wanted: &[&str]) {
    let output = place.fedbits(arguments);
    let message = errors(&output).replace("\n  │ ", " ");
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for wanted in wanted {
        assert!(message.contains(wanted), "{arguments:?}: `{wanted}` is not in\n{message}");
    }
}
