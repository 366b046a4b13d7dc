//! Runs as a user sees them: the same bytes on any number of threads, bits that add up, nothing overwritten.

use crate::support::{Place, SMALL, errors, rows, without_times};

fn number(row: &std::collections::BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is `{}`", row[column]))
}

/// Uplinks that between them use operators of every kind, every rule and most granularities.
const UPLINKS: [&str; 14] = [
    "{operator=\"identity\"}",
    "{operator=\"top-k\",ratio=0.05,link=\"error-feedback\",granularity=\"layer\"}",
    "{operator=\"rand-k\",ratio=0.1,link=\"error-feedback\"}",
    "{operator=\"qsgd\",levels=3,granularity=\"groups\",groups=2}",
    "{operator=\"qsgd\",levels=15,bucket=64,norm=\"linf\",coder=\"adaptive\"}",
    "{operator=\"terngrad\",granularity=\"layer\",coder=\"adaptive\"}",
    "{operator=\"sign\",link=\"error-feedback\",granularity=\"layer\"}",
    "{operator=\"natural\",coder=\"adaptive\"}",
    r#"{operator="weave",bits=0.5,link="error-feedback"}"#,
    r#"{operator="weave",bits=2,basis="rotated",granularity="layer"}"#,
    r#"{operator="ecsq",bits_per_coordinate=1,coder="mixture",link="error-feedback"}"#,
    r#"{operator="top-k",target_error=0.3,granularity="blocks",part_values=100}"#,
    r#"{operator="power-sgd",granularity="layer",link="error-feedback"}"#,
    r#"{operator="rotated",of={operator="qsgd",levels=3}}"#,
];

#[test]
fn rows_are_the_same_on_any_number_of_threads_and_every_time() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    for (i, uplink) in UPLINKS.iter().enumerate() {
        let uplink = format!("uplink={uplink}");
        let run = |results: String, threads: &str| {
            let arguments = [
                "run",
                "small.toml",
                &uplink,
                "record.clients=true",
                "--results",
                &results,
                "--threads",
                threads,
                "--quiet",
            ];
            place.succeed(&arguments);
            let folder = place.run(&results);
            (without_times(&folder.join("rounds.csv")), without_times(&folder.join("clients.csv")))
        };
        let one = run(format!("one{i}"), "1");
        assert_eq!(one, run(format!("two{i}"), "2"), "{uplink}");
        assert_eq!(one, run(format!("five{i}"), "5"), "{uplink}");
        assert_eq!(one, run(format!("again{i}"), "1"), "{uplink}");
    }
}

#[test]
fn another_seed_gives_another_run_and_the_operator_changes_nothing_else() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.succeed(&["run", "small.toml", "--seeds", "0..3", "--quiet"]);
    let runs = place.runs("results");
    assert_eq!(runs.len(), 3);
    let digests: std::collections::BTreeSet<String> =
        runs.iter().map(|run| rows(&run.join("rounds.csv"))[3]["model_digest"].clone()).collect();
    assert_eq!(digests.len(), 3);

    let first_clients = |uplink: &str, results: &str| {
        place.succeed(&["run", "small.toml", uplink, "record.clients=true", "--results", results, "--quiet"]);
        let rows = rows(&place.run(results).join("clients.csv"));
        let drawn: Vec<_> = rows.iter().map(|row| (row["round"].clone(), row["client"].clone())).collect();
        let losses: Vec<_> =
            rows.iter().filter(|row| row["round"] == "1").map(|row| row["train_loss"].clone()).collect();
        (drawn, losses)
    };
    // Sampling, data order and start do not depend on the operator: round 1 has the same clients and losses.
    let plain = first_clients("uplink.operator=identity", "plain");
    assert_eq!(plain, first_clients("uplink={operator=\"top-k\",k=5}", "top"));
}

#[test]
fn bits_are_those_of_the_packets_and_add_up() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let parameters = 64 * 16 + 16 + 16 * 10 + 10;
    for (i, uplink) in UPLINKS.iter().enumerate() {
        let (results, uplink) = (format!("r{i}"), format!("uplink={uplink}"));
        place.succeed(&["run", "small.toml", &uplink, "record.clients=true", "--results", &results, "--quiet"]);
        let folder = place.run(&results);
        let (mut up, mut down) = (0.0, 0.0);
        let clients = rows(&folder.join("clients.csv"));
        for row in rows(&folder.join("rounds.csv")) {
            up += number(&row, "uplink_bits");
            down += number(&row, "downlink_bits");
            assert_eq!(number(&row, "cumulative_uplink_bits"), up);
            assert_eq!(number(&row, "cumulative_downlink_bits"), down);
            assert_eq!(number(&row, "downlink_bits"), 5.0 * 32.0 * f64::from(parameters));
            let of_round = |column: &str| -> f64 {
                clients
                    .iter()
                    .filter(|client| client["round"] == row["round"])
                    .map(|client| number(client, column))
                    .sum()
            };
            assert_eq!(of_round("uplink_bits"), number(&row, "uplink_bits"), "{uplink}");
            assert_eq!(of_round("downlink_bits"), number(&row, "downlink_bits"));
            let payload = of_round("uplink_payload_bits");
            assert!(payload <= number(&row, "uplink_bits") && payload + 5.0 * 8.0 > number(&row, "uplink_bits"));
            // Both directions: five models went down.
            assert_eq!(number(&row, "payload_bits"), payload + number(&row, "downlink_bits"));
        }
        if i == 0 {
            assert_eq!(up, 4.0 * 5.0 * 32.0 * f64::from(parameters), "identity is 32 bits a parameter and no header");
        }
        let manifest: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
        assert_eq!(manifest["summary"]["totals"]["uplink_bits"].as_f64(), Some(up), "ledger and CSV agree");
        assert_eq!(manifest["summary"]["totals"]["downlink_bits"].as_f64(), Some(down));
    }
}

#[test]
fn a_finished_run_is_shown_and_never_overwritten() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.succeed(&["run", "small.toml", "--quiet"]);
    let folder = place.run("results");
    let before = std::fs::read(folder.join("rounds.csv")).unwrap();
    let again = place.succeed(&["run", "small.toml", "--quiet"]);
    assert!(again.contains("has been run") && again.contains("--force"), "{again}");
    assert_eq!(std::fs::read(folder.join("rounds.csv")).unwrap(), before);
    place.succeed(&["run", "small.toml", "--quiet", "--force"]);
    let runs = place.runs("results");
    assert_eq!(runs.len(), 2);
    let names: Vec<String> = runs.iter().map(|run| rows(&run.join("rounds.csv"))[0]["run"].clone()).collect();
    for (run, name) in runs.iter().zip(&names) {
        assert!(run.ends_with(name), "a run is named by its folder");
    }
    let [first, second] = [0, 1].map(|i| without_times(&runs[i].join("rounds.csv")).replace(&names[i], "RUN"));
    assert_eq!(first, second);
    // A run that did not finish is left alone, too.
    let manifest = std::fs::read_to_string(folder.join("run.json")).unwrap().replace("\"finished\"", "\"running\"");
    std::fs::write(folder.join("run.json"), manifest).unwrap();
    let output = place.fedbits(&["run", "small.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("has not ended (it was killed)"), "{}", errors(&output));
}

#[test]
fn the_stored_scenario_repeats_the_run() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    place.succeed(&["run", "small.toml", "--quiet", "uplink={operator=\"qsgd\",levels=3}"]);
    let folder = place.run("results");
    let stored = std::fs::read_to_string(folder.join("scenario.toml")).unwrap();
    for resolved in ["levels = 3", "coder = \"elias-omega\"", "norm = \"l2\"", "evaluate_every = 1", "hidden = [16]"] {
        assert!(stored.contains(resolved), "{resolved} is not in\n{stored}");
    }
    let copy = place.file("copy.toml", &stored);
    place.succeed(&["run", copy.to_str().unwrap(), "--quiet", "--results", "again"]);
    let again = place.run("again");
    assert_eq!(again.file_name(), folder.file_name(), "the resolved scenario resolves to itself");
    let rows = |folder: &std::path::Path| without_times(&folder.join("rounds.csv")).replace("copy", "small");
    assert_eq!(rows(&again), rows(&folder));
}

#[test]
fn paths_of_a_stored_scenario_lead_where_they_led_and_contents_name_a_run() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("deep")).unwrap();
    let scenario = SMALL
        .replace("name = \"dirichlet-client\"\nclients = 10\nalpha = 0.5", "name = \"file\"\npath = \"split.csv\"");
    place.file("deep/s.toml", &scenario);
    let split = |swap: u32| {
        let line = |sample: u32| format!("{},{sample}\n", if sample < swap { 1 } else { sample % 2 });
        format!("client,sample\n{}", (0..300).map(line).collect::<String>())
    };
    place.file("deep/split.csv", &split(0));
    place.succeed(&["run", "deep/s.toml", "--quiet"]);
    let first = place.run("results");
    let stored = place.file("stored.toml", &std::fs::read_to_string(first.join("scenario.toml")).unwrap());
    place.succeed(&["run", stored.to_str().unwrap(), "--quiet", "--results", "again"]);
    assert_eq!(place.run("again").file_name(), first.file_name());
    // The same path with other contents is another run.
    place.file("deep/split.csv", &split(100));
    place.succeed(&["run", "deep/s.toml", "--quiet"]);
    assert_eq!(place.runs("results").len(), 2);
}

#[test]
fn a_client_whose_update_failed_can_take_part_again() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    for memory in ["reset", "keep"] {
        let settings = [
            "run",
            "small.toml",
            "rounds=12",
            "--quiet",
            "--results",
            memory,
            "stop.non_finite=leave-out",
            "method.participation=1",
            "method.learning_rate=1e30",
            "method.learning_rate_schedule=round-exponential",
            "method.learning_rate_decay=0.0001",
        ];
        let memory = format!("method.momentum_memory={memory}");
        let mut arguments = settings.to_vec();
        arguments.push(&memory);
        place.succeed(&arguments);
        let rows = rows(&place.run(settings[5]).join("rounds.csv"));
        assert_eq!(
            (rows[0]["clients_reported"].as_str(), rows[11]["clients_reported"].as_str()),
            ("0", "10"),
            "{memory}"
        );
    }
}

#[test]
fn convolutions_are_the_same_on_any_number_of_threads() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    for engine in ["auto", "burn"] {
        let model = format!("model={{name=\"cifar-small-cnn\",engine=\"{engine}\"}}");
        let data = "data={name=\"synthetic\",train=120,test=700,height=16,width=16}";
        let text = |threads: &str| {
            let results = format!("{engine}{threads}");
            let arguments =
                ["run", "small.toml", data, &model, "rounds=2", "--threads", threads, "--quiet", "--results", &results];
            place.succeed(&arguments);
            without_times(&place.run(&results).join("rounds.csv"))
        };
        assert_eq!(text("1"), text("3"), "{engine}");
    }
}

#[test]
fn runs_stop_where_they_are_told_to() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let rounds = |results: &str, arguments: &[&str]| {
        let mut all = vec!["run", "small.toml", "rounds=30", "--quiet", "--results", results];
        all.extend_from_slice(arguments);
        place.succeed(&all);
        rows(&place.run(results).join("rounds.csv"))
    };
    let reached = rounds("accuracy", &["stop.accuracy=0.6"]);
    let accuracies: Vec<f64> = reached.iter().map(|row| number(row, "test_accuracy")).collect();
    assert!(accuracies.last().unwrap() >= &0.6 && accuracies[..accuracies.len() - 1].iter().all(|a| *a < 0.6));
    let spent = rounds("bits", &["stop.uplink_bits=500000"]);
    let last = number(spent.last().unwrap(), "cumulative_uplink_bits");
    assert!(last >= 500_000.0 && last - number(spent.last().unwrap(), "uplink_bits") < 500_000.0);
    let late = rounds("late", &["stop.uplink_bits=500000", "evaluate_every=20"]);
    assert!(!late.last().unwrap()["test_accuracy"].is_empty(), "the last model is evaluated whatever ends the run");
    let sparse = rounds("sparse", &["rounds=5", "evaluate_every=2"]);
    let evaluated: Vec<bool> = sparse.iter().map(|row| !row["test_accuracy"].is_empty()).collect();
    assert_eq!(evaluated, [false, true, false, true, true], "and after the last round");
}

#[test]
fn divergence_is_a_row_and_an_exit_code() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let output = place.fedbits(&["run", "small.toml", "method.learning_rate=1e30", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    let again = place.fedbits(&["run", "small.toml", "method.learning_rate=1e30", "--quiet"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&again.stdout).contains("it diverged: round 1"),
        "it has ended and is not run again"
    );
    let rows = rows(&place.run("results").join("rounds.csv"));
    assert_eq!(rows.last().unwrap()["status"], "diverged");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("diverged: round 1, client ") && text.contains("of layer `layers."), "{text}");
    let left_out =
        ["run", "small.toml", "method.learning_rate=1e30", "stop.non_finite=leave-out", "--quiet", "--results", "left"];
    place.succeed(&left_out);
    let rows = crate::support::rows(&place.run("left").join("rounds.csv"));
    assert!(rows.iter().all(|row| row["status"] == "no-clients" && row["clients_selected"] == "5"));
    assert!(rows.iter().all(|row| row["clients_reported"] == "0" && row["uplink_bits"] == "0"));
    assert!(rows.iter().all(|row| row["model_digest"] == rows[0]["model_digest"]));
}

#[test]
fn one_line_of_json_a_round_and_nothing_else_on_the_standard_output() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let output = place.fedbits(&["run", "small.toml", "--json"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(records.len(), 4);
    let csv = rows(&place.run("results").join("rounds.csv"));
    for (record, row) in records.iter().zip(&csv) {
        assert_eq!(record["cumulative_uplink_bits"].to_string(), row["cumulative_uplink_bits"]);
        assert_eq!(record["test_accuracy"].as_f64().unwrap().to_string(), row["test_accuracy"]);
    }
    let progress = errors(&output);
    assert!(progress.contains("round 4/4") && !progress.contains('\u{1b}') && !progress.contains('\r'), "{progress}");
}

#[test]
fn rotated_clients_are_tested_under_every_rotation() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let text = place.succeed(&["run", "small.toml", "partition={name=\"rotation\",clients=8,rotations=4}", "--quiet"]);
    for degrees in ["0 degrees", "90 degrees", "180 degrees", "270 degrees"] {
        assert!(text.contains(degrees), "{text}");
    }
    let folder = place.run("results");
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    let by_rotation = manifest["summary"]["accuracy_by_rotation"].as_array().unwrap();
    let mean: f64 = by_rotation.iter().map(|pair| pair[1].as_f64().unwrap()).sum::<f64>() / 4.0;
    let row = rows(&folder.join("rounds.csv")).pop().unwrap();
    assert!((mean - number(&row, "test_accuracy")).abs() < 1e-12);
}

#[test]
fn every_model_method_and_partitioner_runs_with_every_operator() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let images = "data={name=\"synthetic\",train=60,test=20,height=16,width=16}";
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let table = format!("data={{name='libsvm',file='breast-cancer',target='class',directory='{}'}}", folder.display());
    for model in fedbits::model::CATALOGUE {
        let is_network = model.build_example().expect("examples are valid").part.regression().is_none();
        let data = if is_network { images } else { table.as_str() };
        let model = format!("model={{name=\"{}\"}}", model.name);
        let arguments =
            ["run", "small.toml", data, &model, "rounds=1", "partition.clients=4", "--quiet", "--results", "models"];
        place.succeed(&arguments);
    }
    assert_eq!(place.runs("models").len(), fedbits::model::CATALOGUE.len());
    for operator in fedbits::compress::CATALOGUE {
        let settings = operator.example.replace('\n', ",");
        let separator = if settings.is_empty() { "" } else { "," };
        for method in ["fedavg", "fedprox"] {
            for link in ["plain", "error-feedback"] {
                let uplink = format!(
                    "uplink={{operator=\"{}\",link=\"{link}\",granularity=\"layer\"{separator}{settings}}}",
                    operator.name
                );
                let method = format!("method.name={method}");
                place.succeed(&[
                    "run",
                    "small.toml",
                    &uplink,
                    &method,
                    "rounds=2",
                    "--quiet",
                    "--results",
                    "operators",
                ]);
            }
        }
    }
    for partition in ["iid", "shards", "label-k", "dirichlet-class", "quantity", "noise"] {
        let partition = format!("partition={{name=\"{partition}\",clients=5}}");
        place.succeed(&["run", "small.toml", &partition, "rounds=1", "--quiet", "--results", "partitions"]);
    }
}

#[test]
fn server_optimisers_sampling_and_schedules_run() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    for (i, settings) in [
        &["method.server_optimiser=momentum"][..],
        &["method.server_optimiser=adagrad"],
        &["method.server_optimiser=adam", "method.server_bias_correction=true"],
        &["method.server_optimiser=yogi"],
        &["method.sampling=bernoulli", "method.participation=0.3", "rounds=12"],
        &["method.sampling=all", "method.participation=1", "method.weights=equal"],
        &["method.learning_rate_schedule=round-cosine", "method.warmup_rounds=2"],
        &["method.momentum_memory=keep", "method.nesterov=true"],
        &["method.batch_size=full", "method.clip_norm=1", "method.weight_decay=1e-4"],
        &["method.local_steps=3", "data.augmentation=crop-flip", "data.padding=1"],
        &["downlink.operator=natural"],
    ]
    .iter()
    .enumerate()
    {
        let results = format!("r{i}");
        let mut arguments = vec!["run", "small.toml", "--quiet", "--results", &results];
        arguments.extend_from_slice(settings);
        place.succeed(&arguments);
        let rows = rows(&place.run(&results).join("rounds.csv"));
        match i {
            4 => {
                let selected: Vec<&str> = rows.iter().map(|row| row["clients_selected"].as_str()).collect();
                assert!(selected.iter().any(|n| *n != selected[0]), "{selected:?}");
            }
            5 => assert!(rows.iter().all(|row| row["clients_selected"] == "10")),
            6 => assert_eq!(number(&rows[0], "learning_rate"), 0.025),
            10 => assert!(number(&rows[0], "downlink_bits") < 0.3 * 5.0 * 32.0 * 1210.0),
            _ => {}
        }
    }
}

#[test]
fn averages_go_by_samples_also_when_the_last_piece_is_short() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    // 701 test images are evaluated in pieces of 500 and 201.
    place.succeed(&["run", "small.toml", "data.test=701", "rounds=1", "record.clients=true", "--quiet"]);
    let folder = place.run("results");
    let row = rows(&folder.join("rounds.csv")).remove(0);
    let correct = number(&row, "test_accuracy") * 701.0;
    assert!((correct - correct.round()).abs() < 1e-9, "{correct} of 701");
    // The training loss is the mean over samples, not over clients.
    let clients = rows(&folder.join("clients.csv"));
    let samples: f64 = clients.iter().map(|client| number(client, "samples")).sum();
    let weighted: f64 = clients.iter().map(|client| number(client, "samples") * number(client, "train_loss")).sum();
    assert!((weighted / samples - number(&row, "train_loss")).abs() < 1e-12);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_whole_rows_and_says_so() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_fedbits"))
        .args(["run", "small.toml", "rounds=1000000", "--quiet"])
        .current_dir(place.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command can be run");
    let written = |place: &Place| {
        let runs = place.runs("results");
        runs.first()
            .and_then(|run| std::fs::read_to_string(run.join("rounds.csv")).ok())
            .map_or(0, |text| text.lines().count())
    };
    let started = std::time::Instant::now();
    while written(&place) < 5 {
        assert!(started.elapsed().as_secs() < 60, "no rows within a minute");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is a kill").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let folder = place.run("results");
    let rows = rows(&folder.join("rounds.csv"));
    let rounds: Vec<usize> = rows.iter().map(|row| row["round"].parse().expect("a number")).collect();
    assert_eq!(rounds, (1..=rows.len()).collect::<Vec<_>>());
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["state"], "interrupted");
    assert_eq!(manifest["summary"]["rounds"].as_u64(), Some(rows.len() as u64));
}

/// Regression of two clients on a small table.
const TABLE: &str = r#"
rounds = 50

[data]
name = "libsvm"
file = "own"
target = "class"
directory = "data"

[partition]
name = "iid"
clients = 2

[model]
name = "logistic-regression"
regularisation = 0.1

[method]
local_steps = 1
batch_size = "full"
learning_rate = 1.0
"#;

fn table() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.path().join("data/libsvm")).expect("a folder can be made");
    let row = |i: u32| format!("{} 1:{} 3:{}", i % 2, i % 7 + 3 * (i % 2), i * i % 11);
    place.file("data/libsvm/own", &(0..40).map(row).collect::<Vec<_>>().join("\n"));
    place.file("table.toml", TABLE);
    place
}

#[test]
fn regression_on_a_table_comes_nearer_in_every_round_on_any_number_of_threads() {
    let place = table();
    place.succeed(&["run", "table.toml", "--threads", "1", "--results", "one", "--quiet"]);
    place.succeed(&["run", "table.toml", "--threads", "3", "--results", "three", "--quiet"]);
    let [one, three] = ["one", "three"].map(|results| place.run(results).join("rounds.csv"));
    assert_eq!(without_times(&one), without_times(&three));
    let rows = rows(&one);
    let distances: Vec<f64> = rows.iter().map(|row| number(row, "distance_to_optimum")).collect();
    assert!(distances[0] < 1.0 && distances.is_sorted_by(|a, b| a > b), "{distances:?}");
    assert!(rows.iter().all(|row| number(row, "test_loss") > 0.0 && number(row, "test_accuracy") > 0.5));
    // A network has no known optimum.
    place.file("small.toml", SMALL);
    place.succeed(&["run", "small.toml", "rounds=1", "--results", "small", "--quiet"]);
    assert_eq!(self::rows(&place.run("small").join("rounds.csv"))[0]["distance_to_optimum"], "");
}

#[test]
fn a_run_stops_at_its_distance_and_evaluates_there() {
    let place = table();
    let text = place.succeed(&["run", "table.toml", "stop.distance=0.2", "evaluate_every=1000", "--quiet"]);
    assert!(text.contains("reached its distance") && text.contains("distance"), "{text}");
    let rows = rows(&place.run("results").join("rounds.csv"));
    let distances: Vec<f64> = rows.iter().map(|row| number(row, "distance_to_optimum")).collect();
    let (last, before) = distances.split_last().expect("there are rounds");
    assert!(*last <= 0.2 && before.iter().all(|distance| *distance > 0.2), "{distances:?}");
    assert!(!rows.last().unwrap()["test_loss"].is_empty());
    let ridge = ["run", "table.toml", "model={name=\"ridge-regression\"}", "rounds=2", "--results", "ridge", "--quiet"];
    place.succeed(&ridge);
    assert_eq!(self::rows(&place.run("ridge").join("rounds.csv"))[0]["test_accuracy"], "");
    let text = place.succeed(&["check", "table.toml"]);
    assert!(text.contains("libsvm: 40 rows of 3 features") && text.contains("1/L = "), "{text}");
}

#[test]
fn what_does_not_fit_a_table_is_refused() {
    let place = table();
    place.file("small.toml", SMALL);
    for (file, change, message) in [
        ("table.toml", "model={name=\"mlp\"}", "the model fits images, but `libsvm` is a table"),
        ("table.toml", "data.target=\"number\"", "needs two classes"),
        ("table.toml", "data.crop=3", "`crop` counts for images only"),
        ("table.toml", "model.engine=\"burn\"", "`engine` does not count"),
        ("table.toml", "partition={name=\"rotation\",clients=2,rotations=2}", "`libsvm` is a table"),
        ("table.toml", "partition={name=\"noise\",clients=2}", "changes images, but `libsvm` is a table"),
        ("table.toml", "data.file=\"other\"", "looked for `other`, `other.gz`"),
        ("small.toml", "model={name=\"ridge-regression\"}", "fits the rows of a table"),
        ("small.toml", "stop.distance=0.1", "a model whose optimum is known"),
    ] {
        let output = place.fedbits(&["check", file, change]);
        assert_eq!(output.status.code(), Some(2), "{change}");
        let text = errors(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.replace(" │ ", " ").contains(message), "{change}: {text}");
    }
}
