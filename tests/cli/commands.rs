//! The other commands: check, list, explain, schema, partition, data.

use crate::support::{Place, SMALL, errors, rows};

#[test]
fn check_says_what_a_run_will_do_and_writes_nothing() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let text = place.succeed(&["check", "small.toml", "uplink={operator=\"sign\",granularity=\"layer\"}"]);
    for wanted in [
        "synthetic: 300 training and 100 test images of 1x8x8",
        "10 with 30 to 30 samples, 0 without",
        "4 with 5 clients each\n",
        "contractive",
        "layers.0.weight",
        "64 x 16",
        "1,210",
    ] {
        assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
    }
    // 1210 signs and four scales are 1338 bits, 1344 on the wire.
    assert!(text.contains("1344 bits a message in 4 parts"), "{text}");
    assert!(!place.path().join("results").exists());
}

#[test]
fn every_name_is_listed_and_explained() {
    let place = Place::new();
    let all = place.succeed(&["list"]);
    let names = |kind: &str| -> Vec<String> {
        let text = place.succeed(&["list", kind]);
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    for operator in fedbits::compress::CATALOGUE {
        assert!(all.contains(operator.name));
        assert!(names("operators").contains(&operator.name.to_owned()));
        let text = place.succeed(&["explain", operator.name]);
        for wanted in ["# Formula", "# Bits", "# Bound", "# Source", "# Settings", "granularity", "[uplink]"] {
            assert!(text.contains(wanted), "{}: no `{wanted}`\n{text}", operator.name);
        }
    }
    for (name, wanted) in [
        ("fedavg", "server_optimiser"),
        ("dirichlet-class", "min_size"),
        ("mlp", "hidden"),
        ("adaptive", "Krichevsky"),
        ("error-feedback", "residual"),
        ("mnist", "# Pixels"),
    ] {
        let text = place.succeed(&["explain", name]);
        assert!(text.contains(wanted), "{text}");
    }
    let output = place.fedbits(&["explain", "topk"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("did you mean `top-k`?"));
    let output = place.fedbits(&["list", "operatorz"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("did you mean `operators`?"));
}

#[test]
fn the_schema_is_json_and_knows_every_section() {
    let place = Place::new();
    let schema: serde_json::Value = serde_json::from_str(&place.succeed(&["schema"])).expect("the schema is JSON");
    for section in ["data", "partition", "model", "method", "uplink", "downlink", "stop", "record", "rounds", "include"]
    {
        assert!(schema["properties"].get(section).is_some(), "no `{section}`");
    }
    let operators = schema["properties"]["uplink"]["anyOf"].as_array().expect("operators are choices");
    assert_eq!(operators.len(), fedbits::compress::CATALOGUE.len());
    let top_k = operators.iter().find(|choice| choice["properties"]["operator"]["const"] == "top-k");
    let keys = &top_k.expect("top-k is a choice")["properties"];
    assert!(["granularity", "ratio", "bits_per_coordinate"].iter().all(|key| keys.get(key).is_some()));
    assert_eq!(schema["anyOf"][0]["required"], serde_json::json!(["data", "model"]));
}

#[test]
fn every_shipped_scenario_is_one_by_the_schema() {
    use fedbits::scenario::{Document, json_schema, schema};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut of = json_schema(&fedbits::run::slots());
    // Included files are merged when a document is loaded; what is left is a table.
    of.as_object_mut().expect("a schema is an object").remove("anyOf");
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        files.extend(std::fs::read_dir(folder).expect("readable").map(|file| file.expect("readable").path()));
        folders.extend(files.extract_if(.., |path| path.is_dir()));
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    assert!(files.len() >= 14, "{files:?}");
    for file in files {
        let document = Document::load(&file, &[]).expect("the syntax is right");
        let mut mistakes = Vec::new();
        schema::check(document.root(), "", &of, &mut mistakes);
        assert!(mistakes.is_empty(), "{}: {mistakes:?}", file.display());
    }
}

#[test]
fn a_partition_is_shown_exported_and_read_back() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let text = place.succeed(&["partition", "small.toml", "--export", "passport.csv", "--indices", "indices.csv"]);
    assert!(text.contains("clients") && text.contains("300"), "{text}");
    let clients = rows(&place.path().join("passport.csv"));
    assert_eq!(clients.len(), 10);
    let samples: u32 = clients.iter().map(|row| row["samples"].parse::<u32>().unwrap()).sum();
    assert_eq!(samples, 300);
    // Neither file is overwritten.
    let output = place.fedbits(&["partition", "small.toml", "--export", "passport.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("`passport.csv` is there already"));
    // The index file gives the same clients, so the same run but for its name.
    place.succeed(&["run", "small.toml", "--quiet", "--results", "drawn"]);
    let read_back = "partition={name=\"file\",path=\"indices.csv\"}";
    place.succeed(&["run", "small.toml", read_back, "--quiet", "--results", "read"]);
    let last = |results: &str| rows(&place.run(results).join("rounds.csv")).pop().unwrap()["model_digest"].clone();
    assert_eq!(last("drawn"), last("read"));
}

#[test]
fn data_sets_are_listed_and_verified_and_imported() {
    let place = Place::new();
    let text = place.succeed(&["data", "list"]);
    for name in ["mnist", "fashion-mnist", "cifar-10", "qmnist"] {
        assert!(text.contains(name), "{text}");
    }
    let output = place.fedbits(&["data", "verify", "mnist"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("missing"));
    let output = place.fedbits(&["data", "fetch", "mnits"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("did you mean `mnist`?"));
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    if committed.join("mnist").exists() {
        let from = committed.join("mnist");
        let text = place.succeed(&["data", "import", "mnist", from.to_str().unwrap()]);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(place.succeed(&["data", "verify", "mnist"]).lines().all(|line| line.ends_with(": right")));
        // With the files there no address is asked.
        let text = place.succeed(&["data", "fetch", "mnist"]);
        assert!(text.lines().all(|line| line.ends_with("was there")), "{text}");
    }
}

#[test]
fn help_and_version_are_there_and_a_closed_pipe_is_no_panic() {
    let place = Place::new();
    let help = place.succeed(&["--help"]);
    for command in ["run", "check", "partition", "data", "list", "explain", "schema"] {
        assert!(help.contains(command), "{help}");
    }
    assert!(place.succeed(&["--version"]).starts_with("fedbits "));
    for command in ["run", "check", "partition", "data", "list", "explain", "schema"] {
        assert!(!place.succeed(&[command, "--help"]).is_empty());
    }
    #[cfg(unix)]
    {
        let script = format!("'{}' schema | head -1; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_fedbits"));
        let output = std::process::Command::new("bash").args(["-c", &script]).output().expect("there is a shell");
        assert!(output.status.success(), "{}", errors(&output));
        assert!(!errors(&output).contains("panicked"), "{}", errors(&output));
    }
}
