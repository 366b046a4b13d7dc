//! A folder in the layout of MLflow's file store: one experiment a scenario, in it one folder a run.
//!
//! Metrics have the names of columns, parameters those of settings. Identifiers come from digests of names, so that the same
//! run has the same one in every export.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ExportError, folder::Folder, run::Run};
use crate::digest::sha256;

/// What of `run.json` becomes a tag.
const FACTS: [&str; 7] =
    ["state", "reason", "fedbits_version", "results_version", "device", "data_digest", "partition_digest"];

pub(super) fn write(runs: &[Run], folder: &mut Folder) -> Result<(), ExportError> {
    let mut experiments = BTreeMap::<&str, Vec<&Run>>::new();
    for run in runs {
        experiments.entry(run.scenario).or_default().push(run);
    }
    for (name, runs) in experiments {
        let id = experiment_id(name);
        let meta = json!({
            "artifact_location": address(folder, &id),
            "creation_time": runs.iter().map(|run| 1000 * run.start).min(),
            "experiment_id": &id,
            "last_update_time": runs.iter().map(|run| milliseconds(run.last())).max(),
            "lifecycle_stage": "active",
            "name": name,
        });
        folder.write(&format!("{id}/meta.yaml"), yaml(&meta).as_bytes())?;
        for run in runs {
            write_run(run, &id, folder)?;
        }
    }
    Ok(())
}

fn write_run(run: &Run, experiment: &str, folder: &mut Folder) -> Result<(), ExportError> {
    let id = run_id(run.name);
    let place = format!("{experiment}/{id}");
    let artifacts = format!("{place}/artifacts");
    folder.folder(&artifacts)?;
    let status = status(run.state());
    let end = (status != RUNNING).then(|| {
        let ended = run.about["ended_unix_seconds"].as_u64().map(|seconds| 1000 * seconds);
        // Whole seconds may lie before the last row.
        ended.unwrap_or(0).max(milliseconds(run.last()))
    });
    let meta = json!({
        "artifact_uri": address(folder, &artifacts),
        "end_time": end,
        "entry_point_name": "",
        "experiment_id": experiment,
        "lifecycle_stage": "active",
        "run_id": id,
        "run_name": run.name,
        "run_uuid": id,
        "source_name": "",
        "source_type": 4,
        "source_version": "",
        "start_time": 1000 * run.start,
        "status": status,
        "tags": [],
        "user_id": "",
    });
    folder.write(&format!("{place}/meta.yaml"), yaml(&meta).as_bytes())?;
    for series in run.series() {
        let line = |&(row, cell, _): &(usize, &str, f64)| {
            format!("{} {cell} {}\n", milliseconds(run.times[row]), run.rounds[row])
        };
        let lines: String = series.points.iter().map(line).collect();
        folder.write(&format!("{place}/metrics/{}", plain(series.column)), lines.as_bytes())?;
    }
    for (key, value) in &run.table.settings {
        folder.write(&format!("{place}/params/{}", plain(key)), value.as_bytes())?;
    }
    for (key, value) in tags(run) {
        folder.write(&format!("{place}/tags/{key}"), value.as_bytes())?;
    }
    Ok(())
}

fn tags(run: &Run) -> Vec<(String, String)> {
    let own = [("mlflow.runName", run.name), ("mlflow.source.name", "fedbits"), ("mlflow.source.type", "LOCAL")];
    let mut tags = own.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    for fact in FACTS {
        let value = match &run.about[fact] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        tags.push((format!("fedbits.{fact}"), value));
    }
    tags
}

/// `RUNNING` of MLflow's states of a run.
const RUNNING: u8 = 1;

/// MLflow's state of a run that is in a state of ours; without `run.json` it is taken for finished.
fn status(state: &str) -> u8 {
    match state {
        "running" => RUNNING,
        "diverged" | "failed" => 4,
        "interrupted" => 5,
        _ => 3,
    }
}

/// 32 hexadecimal digits.
fn run_id(name: &str) -> String {
    sha256(name.as_bytes())[..32].to_owned()
}

/// 18 digits, as MLflow makes them.
fn experiment_id(name: &str) -> String {
    let digits = &sha256(name.as_bytes())[..15];
    let number = u64::from_str_radix(digits, 16).expect("they are hexadecimal digits");
    format!("{}", 100_000_000_000_000_000 + number % 900_000_000_000_000_000)
}

fn milliseconds(seconds: f64) -> u64 {
    (1000.0 * seconds).round() as u64
}

/// The address of a path in the folder, once that is in its place.
fn address(folder: &Folder, path: &str) -> String {
    let whole = folder.out().to_string_lossy().replace('\\', "/");
    let mut address = if whole.starts_with('/') { "file://".to_owned() } else { "file:///".to_owned() };
    for byte in format!("{whole}/{path}").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                address.push(byte as char);
            }
            other => address += &format!("%{other:02X}"),
        }
    }
    address
}

/// A name of letters, digits, `_`, `-` and `.` alone, which does not begin with a dot.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.is_empty() || plain.starts_with('.') { format!("_{plain}") } else { plain }
}

/// One line a key; every JSON value is one of YAML.
fn yaml(object: &Value) -> String {
    let pairs = object.as_object().into_iter().flatten();
    pairs.map(|(key, value)| format!("{key}: {value}\n")).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fs_err as fs;

    use super::{
        super::{
            folder::make,
            run::tests::{TWO_ROUNDS, table},
        },
        *,
    };

    fn read(path: impl AsRef<Path>) -> String {
        fs::read_to_string(path.as_ref()).expect("the file is there")
    }

    #[test]
    fn the_layout_is_that_of_a_file_store() {
        let place = tempfile::tempdir().unwrap();
        let about = r#"{"run": "a", "started_unix_seconds": 1000, "ended_unix_seconds": 1000, "state": "diverged"}"#;
        fs::write(place.path().join("run.json"), about).unwrap();
        let tables = [table(place.path(), "a", TWO_ROUNDS, &[("uplink.operator", "top-k"), ("odd/../key", "1")])];
        let (runs, _) = Run::of(&tables).unwrap();
        let out = place.path().join("ml runs");
        make(&out, &runs, false, |folder| write(&runs, folder)).unwrap();
        let experiment = out.join(experiment_id("tiny"));
        let meta = read(experiment.join("meta.yaml"));
        assert!(meta.contains("name: \"tiny\"\n") && meta.contains("creation_time: 1000000\n"), "{meta}");
        assert!(meta.contains("/ml%20runs/"), "{meta}");
        let run = experiment.join(run_id("a"));
        let meta = read(run.join("meta.yaml"));
        for wanted in ["run_name: \"a\"\n", "start_time: 1000000\n", "end_time: 1000750\n", "status: 4\n"] {
            assert!(meta.contains(wanted), "`{wanted}` is not in\n{meta}");
        }
        assert_eq!(read(run.join("metrics/uplink_bits")), "1000500 63747200 1\n1000750 63747201 2\n");
        assert_eq!(read(run.join("metrics/test_accuracy")), "1000750 0.75 2\n");
        assert_eq!(read(run.join("metrics/learning_rate")), "1000500 0.1 1\n1000750 NaN 2\n");
        assert!(!run.join("metrics/distance_to_optimum").exists());
        assert_eq!(read(run.join("params/uplink.operator")), "top-k");
        assert_eq!(read(run.join("params/odd_.._key")), "1");
        assert_eq!(read(run.join("tags/mlflow.runName")), "a");
        assert_eq!(read(run.join("tags/fedbits.state")), "diverged");
        assert!(run.join("artifacts").is_dir());
    }

    #[test]
    fn identifiers_depend_on_names_alone() {
        assert_eq!(run_id("a"), "ca978112ca1bbdcafac231b39a23dc4d");
        let id = experiment_id("mnist_quickstart");
        assert!(id.len() == 18 && id.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
        assert_eq!(id, experiment_id("mnist_quickstart"));
    }
}
