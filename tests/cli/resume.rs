//! Runs that stop and go on.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{Place, SMALL, errors, rows, without_times};

const TABLES: [&str; 3] = ["rounds.csv", "clients.csv", "layers.csv"];

/// A run that is long enough to be stopped, with every table and memories at both ends.
const LONG: &str = r#"
rounds = 1500
evaluate_every = 3
[record]
clients = true
layers = true
[run]
checkpoint_every = 7
[data]
name = "synthetic"
train = 600
test = 100
[partition]
clients = 20
[model]
name = "mlp"
hidden = [16]
[method]
participation = 0.3
server_optimiser = "adam"
[uplink]
operator = "top-k"
ratio = 0.05
link = "error-feedback"
"#;

pub fn start(place: &Place, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedbits"));
    command.current_dir(place.path()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command can be run")
}

/// Waits for something that a process is about to do.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_mins(1), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn terminate(child: &Child) {
    let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("there is `kill`");
    assert!(status.success());
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn only_run(place: &Place, results: &str) -> Option<PathBuf> {
    let runs = place.runs(results);
    (runs.len() == 1).then(|| runs[0].clone())
}

/// Starts a run, waits for some rounds, and stops it with SIGTERM.
fn stopped(place: &Place, arguments: &[&str], results: &str) -> PathBuf {
    let child = start(place, arguments);
    wait_until("the run", || only_run(place, results).is_some_and(|run| lines(&run.join("rounds.csv")) > 20));
    let running = place.fedbits(&[arguments, &["--resume"]].concat());
    assert_eq!(running.status.code(), Some(1));
    assert!(errors(&running).contains("another process is at work on"), "{}", errors(&running));
    terminate(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("--resume goes on with it"));
    only_run(place, results).expect("it is there")
}

#[test]
fn a_run_that_sigterm_stops_goes_on_as_if_it_had_not_stopped() {
    let place = Place::new();
    place.file("long.toml", LONG);
    place.succeed(&["run", "long.toml", "--results", "whole", "--quiet"]);
    let run = stopped(&place, &["run", "long.toml", "--quiet"], "results");
    let manifest = fs::read_to_string(run.join("run.json")).unwrap();
    assert!(manifest.contains("\"state\": \"interrupted\""), "{manifest}");
    let before = TABLES.map(|name| fs::read_to_string(run.join(name)).unwrap());
    assert!(before.iter().all(|text| text.ends_with('\n') && text.matches("round,").count() == 1), "rows are whole");
    let asked = place.fedbits(&["run", "long.toml", "--quiet"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(errors(&asked).contains("has not ended (interrupted); --resume goes on with it"), "{}", errors(&asked));
    place.succeed(&["run", "long.toml", "--resume", "--threads", "3", "--quiet"]);
    for (name, before) in TABLES.iter().zip(before) {
        let after = fs::read_to_string(run.join(name)).unwrap();
        assert!(after.starts_with(&before), "{name}: what was recorded stays byte for byte");
        assert_eq!(without_times(&run.join(name)), without_times(&place.run("whole").join(name)));
    }
    let manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    assert!(manifest["resumed"][0]["after_round"].as_u64() > Some(20), "it went on from a checkpoint");
    let again = place.succeed(&["run", "long.toml", "--resume", "--quiet"]);
    assert!(again.contains("has been run"), "{again}");
}

/// A run of seven rounds whose files say that it was killed after the fifth.
fn killed(place: &Place) -> PathBuf {
    place.file("small.toml", SMALL);
    place.succeed(&["run", "small.toml", "rounds=7", "run.checkpoint_every=2", "--results", "whole", "--quiet"]);
    let whole = place.run("whole");
    let killed = place.path().join("results").join("small").join(whole.file_name().unwrap());
    fs::create_dir_all(&killed).unwrap();
    fs::copy(whole.join("scenario.toml"), killed.join("scenario.toml")).unwrap();
    let manifest = fs::read_to_string(whole.join("run.json")).unwrap().replace("\"finished\"", "\"running\"");
    fs::write(killed.join("run.json"), manifest).unwrap();
    let text = fs::read_to_string(whole.join("rounds.csv")).unwrap();
    let five: String = text.split_inclusive('\n').take(6).collect();
    fs::write(killed.join("rounds.csv"), five + "fedavg-identity-se").unwrap();
    killed
}

/// The same arguments again.
const RESUME: [&str; 6] = ["run", "small.toml", "rounds=7", "run.checkpoint_every=2", "--resume", "--quiet"];

fn checkpoint_of(place: &Place, rounds: u32) -> Vec<u8> {
    let overrides = format!("rounds={rounds}");
    let results = format!("of{rounds}");
    place.succeed(&["run", "small.toml", &overrides, "run.checkpoint_every=1", "--results", &results, "--quiet"]);
    fs::read(place.run(&results).join("checkpoint.safetensors")).unwrap()
}

#[test]
fn torn_rows_are_repaired_and_rows_without_a_checkpoint_are_run_again_and_compared() {
    let place = Place::new();
    let killed = killed(&place);
    let before = fs::read_to_string(killed.join("rounds.csv")).unwrap();
    let output = place.fedbits(&RESUME);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("without a checkpoint the run starts from its beginning"), "{}", errors(&output));
    let after = fs::read_to_string(killed.join("rounds.csv")).unwrap();
    assert!(after.starts_with(before.strip_suffix("fedavg-identity-se").unwrap()), "whole rows stay");
    assert_eq!(without_times(&killed.join("rounds.csv")), without_times(&place.run("whole").join("rounds.csv")));
    assert_eq!(rows(&killed.join("rounds.csv")).len(), 7);
}

#[test]
fn a_row_that_was_changed_is_found_and_named() {
    let place = Place::new();
    let killed = killed(&place);
    let text = fs::read_to_string(killed.join("rounds.csv")).unwrap();
    let loss = rows(&place.run("whole").join("rounds.csv"))[2]["test_loss"].clone();
    fs::write(killed.join("rounds.csv"), text.replace(&loss, "0.125")).unwrap();
    let output = place.fedbits(&RESUME);
    assert_eq!(output.status.code(), Some(1));
    let message = errors(&output);
    assert!(message.contains("in round 3 `test_loss` is `0.125` there, and comes out as `"), "{message}");
    let manifest = fs::read_to_string(killed.join("run.json")).unwrap();
    assert!(manifest.contains("\"failed\"") && manifest.contains("test_loss"), "{manifest}");
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let place = Place::new();
    let killed = killed(&place);
    let (newer, older) = (checkpoint_of(&place, 4), checkpoint_of(&place, 2));
    fs::write(killed.join("checkpoint.safetensors"), &newer[..newer.len() - 9]).unwrap();
    fs::write(killed.join("checkpoint.previous.safetensors"), older).unwrap();
    let output = place.fedbits(&RESUME);
    assert!(output.status.success(), "{}", errors(&output));
    let message = errors(&output);
    assert!(message.contains("checkpoint.safetensors` is not used: it is damaged"), "{message}");
    assert!(message.contains("goes on after round 2"), "{message}");
    assert_eq!(without_times(&killed.join("rounds.csv")), without_times(&place.run("whole").join("rounds.csv")));
}

#[test]
fn a_checkpoint_ahead_of_the_rows_is_not_used() {
    let place = Place::new();
    let killed = killed(&place);
    fs::write(killed.join("checkpoint.safetensors"), checkpoint_of(&place, 6)).unwrap();
    fs::write(killed.join("checkpoint.previous.safetensors"), checkpoint_of(&place, 4)).unwrap();
    let output = place.fedbits(&RESUME);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("`rounds.csv` ends before its round 6"), "{}", errors(&output));
    assert!(errors(&output).contains("goes on after round 4"), "{}", errors(&output));
    assert_eq!(without_times(&killed.join("rounds.csv")), without_times(&place.run("whole").join("rounds.csv")));
}

#[test]
fn a_checkpoint_or_folder_of_another_run_is_refused_with_the_difference() {
    let place = Place::new();
    let killed = killed(&place);
    place.succeed(&[
        "run",
        "small.toml",
        "rounds=3",
        "seed=4",
        "run.checkpoint_every=1",
        "--results",
        "other",
        "--quiet",
    ]);
    let other = place.run("other");
    fs::copy(other.join("checkpoint.safetensors"), killed.join("checkpoint.safetensors")).unwrap();
    let output = place.fedbits(&RESUME);
    assert_eq!(output.status.code(), Some(2));
    let message = errors(&output).replace("\n  │ ", " ");
    for wanted in ["`checkpoint.safetensors`: `seed` is `4` there, `3` here", "digest"] {
        assert!(message.contains(wanted), "{message}");
    }
    fs::copy(other.join("scenario.toml"), killed.join("scenario.toml")).unwrap();
    let output = place.fedbits(&RESUME);
    assert_eq!(output.status.code(), Some(2));
    let message = errors(&output).replace("\n  │ ", " ");
    assert!(
        message.contains("cannot be gone on with") && message.contains("`rounds` is `3` there, `7` here"),
        "{message}"
    );
    assert_eq!(lines(&killed.join("rounds.csv")), 7, "nothing was touched: header, five rows and the torn one");
}

#[test]
fn a_run_is_prolonged_in_a_folder_of_its_own() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let run = |rounds: &str, results: &str, more: &[&str]| {
        let arguments = ["run", "small.toml", rounds, "evaluate_every=3", "record.clients=true", "record.layers=true"];
        place.fedbits(&[&arguments[..], &["--results", results, "--quiet"], more].concat())
    };
    assert!(run("rounds=4", "results", &[]).status.success());
    assert!(run("rounds=9", "whole", &[]).status.success());
    let short = place.run("results");
    let before = fs::read(short.join("rounds.csv")).unwrap();
    let output = run("rounds=9", "results", &["--resume"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("goes on after round 4 of"), "{}", errors(&output));
    assert_eq!(fs::read(short.join("rounds.csv")).unwrap(), before, "the shorter run stays as it is");
    let longer = place.runs("results").into_iter().find(|run| *run != short).expect("there are two");
    for name in TABLES {
        assert_eq!(without_times(&longer.join(name)), without_times(&place.run("whole").join(name)), "{name}");
    }
    // A schedule that looks ahead to the last round has no shorter run.
    let cosine = ["method.learning_rate_schedule=round-cosine"];
    assert!(run("rounds=4", "cosine", &cosine).status.success());
    let output = run("rounds=9", "cosine", &[&cosine[..], &["--resume"]].concat());
    assert!(output.status.success() && !errors(&output).contains("goes on after"), "{}", errors(&output));
}

#[test]
fn where_nothing_can_be_gone_on_with_a_run_begins_and_says_what_else_has_stopped() {
    let place = Place::new();
    place.file("long.toml", LONG);
    stopped(&place, &["run", "long.toml", "--quiet"], "results");
    let output = place.fedbits(&["run", "long.toml", "rounds=3", "uplink.ratio=0.1", "--resume", "--quiet"]);
    assert!(output.status.success(), "{}", errors(&output));
    let message = errors(&output);
    assert!(
        message.contains("is another run") && message.contains("`uplink.ratio` is `0.05` there, `0.1` here"),
        "{message}"
    );
}

#[test]
fn a_full_disk_or_a_folder_that_cannot_be_written_is_said_and_earlier_rows_stay() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.file("results", "a file where the folder should be");
    let output = place.fedbits(&["run", "small.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("results") && !errors(&output).contains("panicked"), "{}", errors(&output));
    // A limit on the size of files does what a full disk does: writing fails in the middle of the run.
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec '{}' run small.toml rounds=200 --results full --quiet",
        env!("CARGO_BIN_EXE_fedbits")
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(place.path()).output().expect("there is bash");
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(
        errors(&output).contains("failed to write to file `") && errors(&output).contains("rounds.csv`"),
        "{}",
        errors(&output)
    );
    let run = place.run("full");
    let text = fs::read_to_string(run.join("rounds.csv")).unwrap();
    assert!(text.lines().count() > 5);
    // With room again it goes on.
    place.succeed(&["run", "small.toml", "rounds=200", "--results", "full", "--resume", "--quiet"]);
    let whole: String = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    assert!(fs::read_to_string(run.join("rounds.csv")).unwrap().starts_with(&whole));
    assert_eq!(rows(&run.join("rounds.csv")).len(), 200);
}

#[test]
fn bytes_depend_neither_on_the_language_nor_on_names_with_signs() {
    let place = Place::new();
    fs::create_dir(place.path().join("ein Ordner, größer")).unwrap();
    place.file("ein Ordner, größer/klein, \"schnell\" ü.toml", SMALL);
    let run = |results: &str, language: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedbits"));
        command.args(["run", "ein Ordner, größer/klein, \"schnell\" ü.toml", "--results", results, "--quiet"]);
        command.current_dir(place.path()).env("LC_ALL", language).env("LANG", language);
        assert!(command.output().expect("the command can be run").status.success());
        place.run(results).join("rounds.csv")
    };
    let (plain, german) = (run("er gebnisse", "C"), run("er gebnisse 2", "de_DE.UTF-8"));
    assert_eq!(without_times(&plain), without_times(&german));
    assert!(rows(&plain).iter().all(|row| row["scenario"] == "klein, \"schnell\" ü"), "names stay in their cell");
}

#[test]
fn a_run_is_verified_row_by_row_and_nothing_is_written() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let tables = ["record.clients=true", "record.layers=true", "rounds=6", "evaluate_every=4"];
    place.succeed(&[&["run", "small.toml", "--quiet"][..], &tables].concat());
    let run = place.run("results");
    let shown = run.strip_prefix(place.path()).unwrap().to_str().unwrap().to_owned();
    let files =
        || fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path()).collect::<std::collections::BTreeSet<_>>();
    let before = files();
    let text = place.succeed(&["verify", &shown, "--threads", "3", "--quiet"]);
    assert!(text.starts_with("6 rounds of fedavg-identity-seed3-") && files() == before, "{text}");
    for (name, round) in [("rounds.csv", 5), ("clients.csv", 2), ("layers.csv", 4)] {
        let path = run.join(name);
        let whole = fs::read_to_string(&path).unwrap();
        let row = rows(&path).into_iter().find(|row| row["round"] == round.to_string()).expect("the round is there");
        let column = ["train_loss", "squared_norm"].into_iter().find(|column| row.contains_key(*column)).unwrap();
        fs::write(&path, whole.replacen(&row[column], "0.5", 1)).unwrap();
        let output = place.fedbits(&["verify", &shown, "--quiet"]);
        let wanted = format!("in round {round} `{column}` is `0.5` there");
        assert!(output.status.code() == Some(4) && errors(&output).contains(&wanted), "{}", errors(&output));
        let first = (round - 1).to_string();
        place.succeed(&["verify", &shown, "--rounds", &first, "--quiet"]);
        fs::write(&path, whole).unwrap();
    }
    let output = place.fedbits(&["verify", "results"]);
    assert!(output.status.code() == Some(2) && errors(&output).contains("is not the folder of a run"));
}
