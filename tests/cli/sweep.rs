//! Sweeps: cells that run once, failures that stay alone, tables of them all, several machines.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    resume::{start, terminate, wait_until},
    support::{Place, SMALL, errors, rows, without_times},
};

const AXES: &str = r#"
[sweep]
seed = "0..2"

[[sweep.uplink]]
operator = "identity"

[[sweep.uplink]]
operator = "top-k"
link = "error-feedback"
axis.ratio = [0.01, 0.1]

[[sweep.uplink]]
operator = "qsgd"
axis.levels = [1, 7]
"#;

fn swept() -> Place {
    let place = Place::new();
    place.file("small.toml", &format!("{SMALL}{AXES}"));
    place
}

fn output(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = place.fedbits(arguments);
    let text = String::from_utf8(output.stdout.clone()).expect("output is text");
    (output.status.code(), text, errors(&output))
}

/// Names of the folders of runs, and when their rows were last written.
fn cells(place: &Place, results: &str) -> BTreeMap<PathBuf, std::time::SystemTime> {
    let folders = place.runs(results).into_iter().filter(|path| path.is_dir());
    folders.map(|path| (path.clone(), fs::metadata(path.join("rounds.csv")).unwrap().modified().unwrap())).collect()
}

fn table(place: &Place, results: &str) -> PathBuf {
    place.path().join(results).join("small").join("sweep.csv")
}

#[test]
fn a_sweep_runs_every_cell_once_and_grows_by_what_is_new() {
    let place = swept();
    let (code, text, log) = output(&place, &["sweep", "small.toml"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.starts_with("2 of seed x 5 of uplink: 10 cells, 10 to run"), "{log}");
    assert!(text.contains("10 of 10 cells finished") && text.contains("table of 10 runs"), "{text}");
    let first = cells(&place, "results");
    assert_eq!(first.len(), 10);
    let again = output(&place, &["sweep", "small.toml", "--quiet"]);
    assert!(again.0 == Some(0) && again.1.contains("10 of 10 cells finished") && again.2.is_empty(), "{again:?}");
    assert_eq!(cells(&place, "results"), first, "nothing was run again");
    let (code, _, log) = output(&place, &["sweep", "small.toml", "seed=0..3"]);
    assert!(code == Some(0) && log.starts_with("5 of uplink x 3 of seed: 15 cells, 10 done, 5 to run"), "{log}");
    let grown = cells(&place, "results");
    assert_eq!(grown.len(), 15);
    assert!(first.iter().all(|(path, time)| grown[path] == *time), "what was done stays");
    // A cell is a run like any other.
    let one = ["run", "small.toml", "seed=1", r#"uplink={operator="qsgd",levels=7}"#];
    place.file("small.toml", SMALL);
    assert!(place.succeed(&one).contains("has been run"));
}

#[test]
fn the_table_has_every_cell_and_every_evaluated_round_with_the_axes_first() {
    let place = swept();
    place.succeed(&["sweep", "small.toml", "evaluate_every=2", "rounds=5", "--quiet"]);
    let table = rows(&table(&place, "results"));
    let mut expected = Vec::new();
    for (folder, _) in cells(&place, "results") {
        let scenario: toml::Table = toml::from_str(&fs::read_to_string(folder.join("scenario.toml")).unwrap()).unwrap();
        for mut row in rows(&folder.join("rounds.csv")) {
            if ["2", "4", "5"].contains(&row["round"].as_str()) {
                for key in ["operator", "link", "ratio", "levels"] {
                    let value = scenario["uplink"].get(key).map_or(String::new(), |value| match value {
                        toml::Value::String(text) => text.clone(),
                        other => other.to_string(),
                    });
                    row.insert(format!("uplink.{key}"), value);
                }
                expected.push(row);
            }
        }
    }
    let sorted = |mut rows: Vec<BTreeMap<String, String>>| {
        rows.sort_by_key(|row| (row["run"].clone(), row["round"].clone()));
        rows
    };
    assert_eq!(table.len(), 30);
    assert_eq!(sorted(table), sorted(expected));
    let header = fs::read_to_string(self::table(&place, "results")).unwrap();
    assert!(header.starts_with("uplink.operator,uplink.link,uplink.ratio,uplink.levels,run,scenario,"), "{header}");
}

#[test]
fn jobs_and_threads_change_nothing_and_operators_see_the_same_clients() {
    let place = swept();
    for (results, jobs, threads) in [("a", "1", "1"), ("b", "3", "2"), ("c", "10", "1")] {
        place.succeed(&[
            "sweep",
            "small.toml",
            "record.clients=true",
            "--results",
            results,
            "--jobs",
            jobs,
            "--threads",
            threads,
            "--quiet",
        ]);
    }
    assert_eq!(without_times(&table(&place, "a")), without_times(&table(&place, "b")));
    assert_eq!(without_times(&table(&place, "a")), without_times(&table(&place, "c")));
    let mut drawn: BTreeMap<String, BTreeSet<Vec<(String, String)>>> = BTreeMap::new();
    for (folder, _) in cells(&place, "a") {
        let seed = rows(&folder.join("rounds.csv"))[0]["seed"].clone();
        let clients = rows(&folder.join("clients.csv"));
        let clients = clients.iter().map(|row| (row["round"].clone(), row["client"].clone())).collect();
        drawn.entry(seed).or_default().insert(clients);
    }
    assert_eq!(drawn.values().map(BTreeSet::len).collect::<Vec<_>>(), [1, 1], "one list of clients a seed");
}

#[test]
fn a_cell_that_diverges_and_one_that_is_invalid_do_not_stop_the_others() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let axes = [
        "method.learning_rate=0.05,1e30",
        "uplink={operator=\"top-k\",ratio=0.1},{operator=\"top-k\",ratio=2},{operator=\"sign\"}",
    ];
    let arguments = [&["sweep", "small.toml"][..], &axes, &["--quiet"]].concat();
    for time in 0..2 {
        let (code, text, log) = output(&place, &arguments);
        assert_eq!(code, Some(3), "{text}{log}");
        for wanted in [
            "2 of 6 cells finished, 4 did not",
            "diverged: top-k, learning rate 1e30, ratio 0.1",
            "diverged: sign",
            "invalid: ",
            "`uplink.ratio`: ",
            "table of 4 runs",
        ] {
            assert!(text.contains(wanted), "time {time}: `{wanted}` is not in\n{text}");
        }
    }
    let (code, _, log) = output(&place, &[&arguments[..], &["--fail-fast", "--results", "other"]].concat());
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("ratio") && !place.path().join("other").exists(), "{log}");
    let diverging = [
        "sweep",
        "small.toml",
        "method.learning_rate=1e30,0.05,0.06",
        "--fail-fast",
        "--jobs",
        "1",
        "--results",
        "fast",
    ];
    let (code, text, _) = output(&place, &diverging);
    assert_eq!(code, Some(3));
    assert!(text.contains("stopped at the first failure") && cells(&place, "fast").len() == 1, "{text}");
}

#[test]
fn a_cell_that_cannot_be_written_is_one_failure() {
    let place = swept();
    place.succeed(&["sweep", "small.toml", "--results", "whole", "--quiet"]);
    let name = cells(&place, "whole").keys().next().unwrap().file_name().unwrap().to_owned();
    fs::create_dir_all(place.path().join("results/small")).unwrap();
    fs::write(place.path().join("results/small").join(&name), "a file in the place of a folder").unwrap();
    let (code, text, _) = output(&place, &["sweep", "small.toml", "--quiet"]);
    assert_eq!(code, Some(3));
    assert!(text.contains("9 of 10 cells finished, 1 did not") && text.contains("failed: identity, seed 0"), "{text}");
    fs::remove_file(place.path().join("results/small").join(&name)).unwrap();
    place.succeed(&["sweep", "small.toml", "--quiet"]);
    assert_eq!(without_times(&table(&place, "results")), without_times(&table(&place, "whole")));
}

#[test]
fn a_sweep_that_sigterm_stops_goes_on_where_it_was() {
    let place = swept();
    let arguments = ["sweep", "small.toml", "rounds=150", "--quiet"];
    place.succeed(&[&arguments[..], &["--results", "whole"]].concat());
    let child = start(&place, &arguments);
    let ended = || {
        let folders = place.runs("results").into_iter();
        folders
            .filter(|path| fs::read_to_string(path.join("run.json")).is_ok_and(|text| text.contains("\"finished\"")))
            .count()
    };
    wait_until("the sweep", || ended() >= 3);
    terminate(&child);
    let stopped = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&stopped.stdout).into_owned();
    assert_eq!(stopped.status.code(), Some(130), "{text}");
    assert!(text.contains("interrupted; the same command goes on"), "{text}");
    let before = cells(&place, "results");
    let done = ended();
    assert!(done < 10, "it was stopped before its end");
    let (code, _, log) = output(&place, &arguments[..3]);
    assert!(code == Some(0) && log.contains(&format!("{done} done, {} to run", 10 - done)), "{log}");
    let after = cells(&place, "results");
    assert!(before.keys().all(|path| after.contains_key(path)) && after.len() == 10);
    assert_eq!(without_times(&table(&place, "results")), without_times(&table(&place, "whole")));
}

#[test]
fn two_sweeps_at_once_share_the_cells_and_no_folder() {
    let place = swept();
    place.succeed(&["sweep", "small.toml", "rounds=40", "--results", "whole", "--quiet"]);
    let both = [0, 1].map(|_| start(&place, &["sweep", "small.toml", "rounds=40", "--quiet"]));
    for output in both.map(|child| child.wait_with_output().expect("it ends")) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}{}", errors(&output));
    }
    let text = place.succeed(&["sweep", "small.toml", "rounds=40", "--quiet"]);
    assert!(text.contains("10 of 10 cells finished"), "{text}");
    assert_eq!(without_times(&table(&place, "results")), without_times(&table(&place, "whole")));
}

#[test]
fn shards_join_to_the_whole_and_damage_is_found() {
    let place = swept();
    place.succeed(&["sweep", "small.toml", "--results", "whole", "--quiet"]);
    for shard in ["1/3", "2/3", "3/3"] {
        let results = format!("node{}", &shard[..1]);
        place.succeed(&["sweep", "small.toml", "--shard", shard, "--results", &results, "--quiet"]);
    }
    let sizes = ["node1", "node2", "node3"].map(|results| cells(&place, results).len());
    assert_eq!(sizes, [4, 3, 3]);
    let text = place.succeed(&["merge", "node1", "node2", "node3", "--into", "all"]);
    assert!(text.contains("10 runs copied, 0 there already") && text.contains("sweep.csv: 10 runs"), "{text}");
    assert_eq!(cells(&place, "all").len(), 10);
    let sorted = |path: PathBuf| {
        let mut lines: Vec<String> = without_times(&path).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(table(&place, "all")), sorted(table(&place, "whole")));
    let again = place.succeed(&["merge", "node2", "whole", "--into", "all"]);
    assert!(again.contains("0 runs copied, 13 there already with the same rows"), "{again}");
    let run = cells(&place, "node2").keys().next().unwrap().join("rounds.csv");
    let text = fs::read_to_string(&run).unwrap();
    fs::write(&run, text.replacen(&rows(&run)[1]["test_loss"], "0.5", 1)).unwrap();
    let (code, _, log) = output(&place, &["merge", "node2", "--into", "all"]);
    assert!(code == Some(4) && log.contains("are the same run, but differ from row 2 on"), "{log}");
    fs::write(&run, text.lines().take(3).collect::<Vec<_>>().join("\n")).unwrap();
    let (code, _, log) = output(&place, &["merge", "node2", "--into", "new"]);
    assert!(code == Some(4) && log.contains("rounds are 4 in `run.json` and 2 in `rounds.csv`"), "{log}");
    assert!(!place.path().join("new").exists(), "nothing is copied unless all is whole");
    assert_eq!(output(&place, &["merge", "nowhere", "--into", "new"]).0, Some(2));
}

#[test]
fn a_job_array_holds_exactly_the_missing_cells() {
    let place = swept();
    let arguments = ["sweep", "small.toml", "rounds=3", "--results", "a results folder"];
    place.succeed(&[&arguments[..], &["--shard", "1/2", "--quiet"]].concat());
    let script = place.succeed(&[&arguments[..], &["--emit", "slurm"]].concat());
    assert!(script.starts_with("#!/bin/bash\n#SBATCH --job-name=fedbits-small\n#SBATCH --array=0-4\n"), "{script}");
    place.file("array.sh", &script);
    let binary = Path::new(env!("CARGO_BIN_EXE_fedbits"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for task in 0..5 {
        let mut command = Command::new("bash");
        command
            .arg("array.sh")
            .current_dir(place.path())
            .env("PATH", &path)
            .env("SLURM_ARRAY_TASK_ID", task.to_string());
        let output = command.output().expect("there is bash");
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(cells(&place, "a results folder").len(), 6 + task);
    }
    let (code, _, log) = output(&place, &[&arguments[..], &["--emit", "slurm"]].concat());
    assert!(code == Some(0) && log.contains("nothing to submit"), "{log}");
    let unknown = output(&place, &["sweep", "small.toml", "--only", "fedavg-sign-seed0-00000000"]);
    assert!(unknown.0 == Some(2) && unknown.2.contains("no cell of this sweep is called"), "{unknown:?}");
}

#[test]
fn a_dry_run_says_the_bits_and_runs_nothing() {
    let place = swept();
    let (code, text, log) = output(&place, &["sweep", "small.toml", "--dry-run"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(!place.path().join("results").exists(), "nothing was written");
    assert!(text.contains("10 cells, 10 to run") && text.contains("top-k, error-feedback, ratio 0.01"), "{text}");
    // 4 rounds of 5 clients, 1,210 parameters of 32 bits: 96.8 kB each way, exact without compression.
    let plain = text.lines().find(|line| line.contains("identity")).expect("a line for it");
    assert_eq!(
        plain.split_whitespace().collect::<Vec<_>>()[..6],
        ["2", "identity", "96.8", "kB", "96.8", "kB"],
        "{plain}"
    );
    assert!(text.contains("in all\nabout"), "{text}");
}

#[test]
fn mistakes_in_axes_are_all_named_before_anything_runs() {
    let place = Place::new();
    place.file("small.toml", &format!("{SMALL}\n[sweep]\nseed = 3\n\"uplink.ratio\" = \"logspace(-3, -1, 5)\"\n"));
    let (code, _, log) = output(&place, &["sweep", "small.toml", "rounds=5..5"]);
    assert_eq!(code, Some(2));
    for wanted in ["this is one value, not an axis", "not exponents", "the range 5..5 is empty", "small.toml:"] {
        assert!(log.contains(wanted), "`{wanted}` is not in\n{log}");
    }
    let (code, _, log) = output(&place, &["run", "small.toml"]);
    assert!(code == Some(2) && log.contains("`fedbits sweep small.toml` runs them"), "{log}");
    place.file("plain.toml", SMALL);
    let (code, _, log) = output(&place, &["sweep", "plain.toml", "model.hidden=[20,10]"]);
    assert!(code == Some(2) && log.contains("nothing varies"), "a value in brackets is one value: {log}");
    let (code, _, log) = output(&place, &["sweep", "plain.toml", "model.hidden=[20,10],[5]", "rounds=1", "--quiet"]);
    assert!(code == Some(0) && cells(&place, "results").len() == 2, "{log}");
}

#[test]
fn progress_is_plain_in_a_pipe_and_silent_on_request() {
    let place = swept();
    let (_, text, log) = output(&place, &["sweep", "small.toml"]);
    let is_plain = |text: &str| text.chars().all(|c| c == '\n' || !c.is_control());
    assert!(is_plain(&log) && is_plain(&text), "{log:?}");
    assert!(
        log.lines().count() < 10 && log.lines().all(|line| line.starts_with("cells ") || line.contains("10 cells")),
        "{log}"
    );
    assert!(log.contains("cells 10/10, rounds 40/40"), "{log}");
    for quiet in [&["--quiet"][..], &["--progress", "none"]] {
        let (_, _, log) = output(&place, &[&["sweep", "small.toml", "--results", "other"], quiet].concat());
        assert_eq!(log, "", "{quiet:?}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedbits"));
    let coloured =
        command.args(["sweep", "small.toml", "uplink.ratio=2"]).current_dir(place.path()).env_remove("NO_COLOR");
    let coloured = errors(&coloured.output().expect("the command can be run"));
    assert!(is_plain(&coloured), "no terminal, no colour: {coloured:?}");
    let (_, _, log) = output(&place, &["run", "small.toml", "--progress", "sometimes"]);
    assert!(log.contains("auto") && log.contains("lines") && log.contains("none"), "{log}");
}
