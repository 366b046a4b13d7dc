//! Figures of small tables in words and numbers, and where two tables part.

use std::fs;

use serde_json::Value;

use crate::support::{Place, SMALL, errors, refuse, rows};

const HEADER: &str = "run,scenario,method,operator,seed,round,test_accuracy,test_loss,distance_to_optimum,\
                      cumulative_uplink_bits,cumulative_downlink_bits,cumulative_peer_bits,wall_seconds,status\n";

/// A table of rounds, as a run writes it, evaluated in every round but the second.
fn rounds(place: &Place, operator: &str, seed: u64, bits: u64, accuracies: &[&str]) {
    let folder = format!("{operator}-seed{seed}");
    let mut text = HEADER.to_owned();
    for (round, accuracy) in (1..).zip(accuracies) {
        let (up, down) = (bits * round, 8_000_000 * round);
        text += &format!("{folder},tiny,fedavg,{operator},{seed},{round},{accuracy},0.5,,{up},{down},0,0.25,ok\n");
    }
    fs::create_dir_all(place.path().join("results").join(&folder)).expect("a folder can be made");
    place.file(&format!("results/{folder}/rounds.csv"), &text);
}

/// Identity needs 16 and 24 MB until 90 %, top-k 2 and 1.5 MB, sign arrives with one of two seeds.
fn runs() -> Place {
    let place = Place::new();
    rounds(&place, "identity", 0, 64_000_000, &["0.8", "0.9", "0.95"]);
    rounds(&place, "identity", 1, 64_000_000, &["0.8", "0.85", "0.93"]);
    rounds(&place, "top-k", 0, 4_000_000, &["0.5", "", "0.8", "0.91"]);
    rounds(&place, "top-k", 1, 4_000_000, &["0.5", "", "0.905", "0.91"]);
    rounds(&place, "sign", 0, 2_000_000, &["0.5", "", "0.6", "0.9"]);
    rounds(&place, "sign", 1, 2_000_000, &["0.5", "", "0.6", "0.8"]);
    place
}

#[test]
fn runs_are_put_into_figures_in_every_format() {
    let place = runs();
    let text = place.succeed(&["report", "results", "--target", "0.9", "--budget", "1MB"]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let at = |name: &str| {
        lines.iter().position(|line| line.first() == Some(&name)).unwrap_or_else(|| panic!("no {name} in\n{text}"))
    };
    assert!(text.starts_with("6 runs in 3 groups; bits are those from clients to the server.\n"), "{text}");
    assert!(text.contains("Target: accuracy 90 %.\n") && text.contains("(1 of 2)"), "{text}");
    assert!(at("top-k") < at("identity") && at("identity") < at("sign"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    let markdown = place.succeed(&["report", "results", "--target", "0.9", "--budget", "1MB", "--format", "markdown"]);
    for wanted in [
        "| group | seeds | % at end | bits to 90 % | rounds | ratio | bits at end | % at 1 MB | best |\n|---|--:|",
        "| sign | 2 | 85.00 ±5.00 | 1.00 MB (1 of 2) | 4 (1 of 2) | 16.0 (1 of 2) | 1.00 MB | 85.00 ±5.00 | yes |\n",
        // 16 over 2 and 24 over 1.5: 8 and 16, whose geometric mean is 11.3.
        "| top-k | 2 | 91.00 | 1.75 MB ±0.25 | 3.5 ±0.5 | 11.3, 8.00..16.0 | 2.00 MB | 50.00 | yes |\n",
        "| identity | 2 | 94.00 ±1.00 | 20.0 MB ±4.0 | 2.5 ±0.5 | 1.00 | 24.0 MB | - | yes |\n",
    ] {
        assert!(markdown.contains(wanted), "`{wanted}` is not in\n{markdown}");
    }

    let csv = place.succeed(&["report", "results", "--target", "0.9", "--bits", "total", "--format", "csv"]);
    let table = rows(&place.file("report.csv", &csv));
    let row = table.iter().find(|row| row["group"] == "top-k").expect("there is a line for it");
    let cell = |name: &str| row[name].parse::<f64>().expect("it is a number");
    assert_eq!((row["group"].as_str(), row["bits_counted"].as_str(), row["seeds"].as_str()), ("top-k", "total", "2"));
    assert_eq!((cell("bits_to_target_low"), cell("bits_to_target_high")), (36_000_000.0, 48_000_000.0));
    assert_eq!((cell("target_accuracy"), cell("seeds_reached"), cell("bits_at_end_mean")), (0.9, 2.0, 48_000_000.0));

    let json = place.succeed(&["report", "results", "--target", "0.96", "--budget", "800 bits", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    let groups = json["groups"].as_array().expect("there are groups");
    assert_eq!((groups.len(), &json["runs"]), (3, &Value::from(6)));
    assert!(groups.iter().all(|group| group["seeds_reached"] == 0 && group["bits_to_target_mean"].is_null()));
    assert!(groups.iter().all(|group| group["accuracy_within_800_bits_seeds"] == 0));
    // What never arrives stands by what it reaches.
    let names: Vec<_> = groups.iter().map(|group| group["group"].as_str()).collect();
    assert_eq!(names, ["identity", "top-k", "sign"].map(Some));
}

#[test]
fn a_target_is_chosen_and_a_missing_baseline_is_told() {
    let place = runs();
    let text = place.succeed(&["report", "results"]);
    // All seeds of top-k reach 91 %, of identity 93 %, of sign 80 %.
    assert!(
        text.contains("Target: accuracy 91 %, chosen as the highest whole percent that at least half of"),
        "{text}"
    );
    let output = place.fedbits(&["report", "results/top-k-seed0", "results/sign-seed0/rounds.csv"]);
    assert!(output.status.success());
    let notes = errors(&output);
    assert_eq!(notes.matches("no group has the uplink operator `identity`").count(), 1, "{notes}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("ratio"));
}

#[test]
fn runs_of_scenarios_are_grouped_by_their_settings() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    for uplink in ["uplink={operator=\"top-k\",ratio=0.1}", "uplink={operator=\"identity\"}"] {
        place.succeed(&["run", "small.toml", uplink, "--seeds", "0..3", "--quiet"]);
    }
    let json = place.succeed(&["report", "results", "--target", "0.01", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    let groups = json["groups"].as_array().expect("there are groups");
    assert_eq!(groups.len(), 2);
    for group in groups {
        let counts =
            ["seeds", "seeds_reached", "ratio_to_baseline_seeds", "final_accuracy_seeds"].map(|name| &group[name]);
        assert_eq!(counts, [3; 4].map(Value::from).each_ref());
        assert_eq!((&group["baseline"], &group["seeds_unfinished"]), (&Value::from("identity"), &Value::from(0)));
    }
}

#[test]
fn mistakes_in_questions_are_explained() {
    let place = runs();
    place.file("operators.csv", "operator,wire_bits_per_coordinate,nmse\nsign,1,0.4\n");
    place.file("bare.csv", "run,seed,round,cumulative_uplink_bits\na,0,1,8\n");
    refuse(&place, &["report", "results", "--target", "97"], &["97 is no accuracy", "0.97 for 97 %"]);
    refuse(&place, &["report", "results", "--budget", "10 lightyears"], &["`10 lightyears`", "`MB`", "`1.5 MB`"]);
    refuse(&place, &["report", "results", "--metric", "distance"], &["no row has a value in `distance_to_optimum`"]);
    refuse(&place, &["report", "results", "--group", "operater"], &["did you mean `operator`?"]);
    refuse(&place, &["report", "operators.csv"], &["`operators.csv` holds measurements of operators", "`rounds.csv`"]);
    refuse(&place, &["report", "bare.csv"], &["no column is called `test_accuracy`"]);
    refuse(&place, &["report", "absent"], &["no file or folder `absent`"]);
}

#[test]
fn runs_that_should_be_equal_are_compared() {
    let place = runs();
    let diff = |a: &str, b: &str| {
        let output = place.fedbits(&["diff", a, b]);
        (output.status.code(), String::from_utf8(output.stdout).expect("output is text"))
    };
    let text = fs::read_to_string(place.path().join("results/sign-seed0/rounds.csv")).expect("the table is there");
    place.file("same.csv", &text.replace("sign-seed0", "another").replace(",0.25,ok", ",9.75,ok"));
    assert_eq!(
        diff("results/sign-seed0", "same.csv"),
        (Some(0), "A: results/sign-seed0/rounds.csv\nB: same.csv\nAll 4 rows are equal.\n".to_owned())
    );
    place.file("other.csv", &text.replace(",3,0.6,0.5,", ",3,0.7,0.5,"));
    let (code, message) = diff("results/sign-seed0", "other.csv");
    assert_eq!(code, Some(4));
    assert!(
        message.ends_with("The first difference is in round 3:\n  `test_accuracy`: 0.6 in A, 0.7 in B\n"),
        "{message}"
    );
    let two: String = text.split_inclusive('\n').take(3).collect();
    place.file("two.csv", &two);
    let (code, message) = diff("two.csv", "results/sign-seed0");
    assert!(code == Some(4) && message.ends_with("Equal up to round 2; B goes on to round 4.\n"), "{message}");
    refuse(&place, &["diff", "results", "two.csv"], &["there are 6 runs below `results`", "name one of them"]);
    refuse(&place, &["diff", "two.csv", "absent.csv"], &["no file or folder `absent.csv`"]);
    refuse(&place, &["diff", "two.csv"], &["<B>"]);
}

#[test]
fn the_same_scenario_and_seed_give_equal_runs() {
    let place = Place::new();
    place.file("small.toml", &format!("{SMALL}\n[record]\nclients = true\n"));
    for (results, seed) in [("first", "seed=0"), ("second", "seed=0"), ("third", "seed=1")] {
        place.succeed(&["run", "small.toml", seed, "--quiet", "--results", results]);
    }
    assert!(place.succeed(&["diff", "first", "second"]).ends_with("All 4 rows are equal.\n"));
    let output = place.fedbits(&["diff", "first", "third"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(4), "{text}");
    for wanted in
        ["is in round 1:\n  `seed`: 0 in A, 1 in B\n", "`clients.csv` is in round 1, client ", "\n  `seed`: 0 in A"]
    {
        assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
    }
}
