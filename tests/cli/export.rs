//! Exports of small tables.

use std::{fs, path::Path};

use crate::support::{Place, SMALL, errors, refuse};

/// A table of rounds, as a run writes it, with the settings and facts beside it.
fn run(place: &Place, name: &str, seed: u32, ratio: &str) {
    let mut text = "run,scenario,method,operator,seed,round,test_accuracy,uplink_bits,cumulative_uplink_bits,wall_seconds,model_digest,status\n".to_owned();
    for round in 1..=3 {
        let accuracy = if round == 2 { String::new() } else { format!("0.{round}") };
        text += &format!("{name},tiny,fedavg,top-k,{seed},{round},{accuracy},800,{},0.25,12345,ok\n", 800 * round);
    }
    fs::create_dir_all(place.path().join("results").join(name)).expect("a folder can be made");
    place.file(&format!("results/{name}/rounds.csv"), &text);
    let settings = format!("seed = {seed}\n\n[uplink]\noperator = \"top-k\"\nratio = {ratio}\n");
    place.file(&format!("results/{name}/scenario.toml"), &settings);
    let about = format!("{{\"run\": \"{name}\", \"state\": \"finished\", \"started_unix_seconds\": 1000}}");
    place.file(&format!("results/{name}/run.json"), &about);
}

fn two_runs() -> Place {
    let place = Place::new();
    run(&place, "a", 0, "0.1");
    run(&place, "b", 1, "0.01");
    place
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("readable").file_name().into_string().expect("text");
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn tensorboard_gets_one_event_file_a_run() {
    let place = two_runs();
    let arguments = ["export", "results", "--format", "tensorboard", "--out", "deep/tb"];
    let text = place.succeed(&arguments);
    assert_eq!(text, "deep/tb: 2 runs, 6 rounds\n  tensorboard --logdir 'deep/tb'\n");
    let out = place.path().join("deep/tb");
    assert_eq!(names(&out), ["a", "b", "export.json"]);
    assert_eq!(names(&out.join("a")), ["events.out.tfevents.0000001000.fedbits"]);
    let file = out.join("a/events.out.tfevents.0000001000.fedbits");
    let bytes = fs::read(&file).unwrap();
    for wanted in ["brain.Event:2", "accuracy/test", "bits/cumulative_uplink", "`uplink.ratio` | `0.1`", "hparams"] {
        assert!(bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes()), "`{wanted}`");
    }
    // The same runs give the same bytes, over the folder that is there.
    place.succeed(&arguments);
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(names(&place.path().join("deep")), ["tb"]);
}

#[test]
fn mlflow_gets_an_experiment_a_scenario() {
    let place = two_runs();
    let text = place.succeed(&["export", "results", "--format", "mlflow", "--out", "mlruns"]);
    assert!(text.starts_with("mlruns: 2 runs, 6 rounds\n"), "{text}");
    let out = place.path().join("mlruns");
    let listed = names(&out);
    let [experiment, mark] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!(mark, "export.json");
    let runs = names(&out.join(experiment));
    assert_eq!((runs.len(), runs[2].as_str()), (3, "meta.yaml"));
    assert!(runs[..2].iter().all(|id| id.len() == 32), "{runs:?}");
    // The name `a` has this SHA-256.
    let run = out.join(experiment).join("ca978112ca1bbdcafac231b39a23dc4d");
    let read = |name: &str| fs::read_to_string(run.join(name)).expect("the file is there");
    assert_eq!(read("metrics/test_accuracy"), "1000250 0.1 1\n1000750 0.3 3\n");
    assert_eq!(read("metrics/cumulative_uplink_bits"), "1000250 800 1\n1000500 1600 2\n1000750 2400 3\n");
    assert_eq!(read("params/uplink.ratio"), "0.1");
    assert_eq!(read("tags/mlflow.runName"), "a");
    assert!(read("meta.yaml").contains("status: 3\n"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_the_command_says_how_to_get_it() {
    let place = two_runs();
    refuse(&place, &["export", "results", "--format", "parquet", "--out", "all.parquet"], &["--features parquet"]);
    assert!(!place.path().join("all.parquet").exists());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_one_file() {
    let place = two_runs();
    let arguments = ["export", "results", "--format", "parquet", "--out", "all.parquet"];
    let text = place.succeed(&arguments);
    assert_eq!(text, "all.parquet: 2 runs, 6 rounds\n  pandas.read_parquet(\"all.parquet\")\n");
    let bytes = fs::read(place.path().join("all.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    place.succeed(&arguments);
    place.file("all.parquet", "mine");
    refuse(&place, &arguments, &["`all.parquet` is there", "--force"]);
    place.succeed(&[&arguments[..], &["--force"]].concat());
    assert_eq!(fs::read(place.path().join("all.parquet")).unwrap(), bytes);
}

#[test]
fn a_real_run_can_be_exported() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.succeed(&["run", "small.toml", "--quiet"]);
    let name = place.run("results").file_name().expect("a run has a name").to_string_lossy().into_owned();
    for format in ["tensorboard", "mlflow"] {
        let text = place.succeed(&["export", "results", "--format", format, "--out", format]);
        assert!(text.starts_with(&format!("{format}: 1 run, 4 rounds\n")), "{text}");
    }
    assert_eq!(names(&place.path().join("tensorboard")), ["export.json".to_owned(), name]);
}

#[test]
fn nothing_that_a_user_made_is_replaced() {
    let place = two_runs();
    let export = |out: &str| place.fedbits(&["export", "results", "--format", "tensorboard", "--out", out]);
    let arguments = |out| ["export", "results", "--format", "tensorboard", "--out", out, "--force"];
    place.file("notes.txt", "mine");
    fs::create_dir(place.path().join("mine")).unwrap();
    place.file("mine/notes.txt", "mine");
    refuse(&place, &arguments("notes.txt"), &["`notes.txt` is a file"]);
    refuse(&place, &arguments("mine"), &["`mine` is there", "never replaced"]);
    refuse(&place, &arguments("results"), &["`results` holds `results/a/rounds.csv`"]);
    assert!(export("tb").status.success());
    place.file("tb/notes.txt", "mine");
    refuse(&place, &arguments("tb")[..6], &["`tb` was made by", "changed since", "--force"]);
    assert!(place.path().join("tb/notes.txt").exists());
    place.succeed(&arguments("tb"));
    assert_eq!(names(&place.path().join("tb")), ["a", "b", "export.json"]);
}

#[test]
fn mistakes_are_explained() {
    let place = two_runs();
    place.file("operators.csv", "operator,wire_bits_per_coordinate,nmse\nsign,1,0.3\n");
    fs::create_dir(place.path().join("nothing")).unwrap();
    let export = |path| ["export", path, "--format", "mlflow", "--out", "out"];
    refuse(&place, &export("operators.csv"), &["measurements of operators", "only the rounds of runs"]);
    refuse(&place, &export("nothing"), &["no run", "`nothing`"]);
    refuse(&place, &["export", "results", "--format", "csv", "--out", "out"], &["tensorboard, mlflow, parquet"]);
    assert!(!place.path().join("out").exists());
    fs::create_dir_all(place.path().join("copy/a")).unwrap();
    fs::copy(place.path().join("results/a/rounds.csv"), place.path().join("copy/a/rounds.csv")).unwrap();
    let output = place.fedbits(&["export", "results", "copy", "--format", "mlflow", "--out", "out"]);
    assert!(output.status.success() && errors(&output).contains("holds the run `a`"), "{}", errors(&output));
}
