//! Wrong scenarios: every mistake is named with its place, the exit code is 2, and nothing is written.

use crate::support::{Place, SMALL, errors};

/// Runs a wrong scenario; its message must hold every one of `wanted`.
fn refuse(place: &Place, arguments: &[&str], wanted: &[&str]) {
    let mut all = vec!["run"];
    all.extend_from_slice(arguments);
    let output = place.fedbits(&all);
    // Messages are folded to the width of a terminal; compare words.
    let message = errors(&output).replace(['│', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for wanted in wanted {
        assert!(message.contains(wanted), "{arguments:?}: `{wanted}` is not in\n{}", errors(&output));
    }
    assert!(!message.contains("panicked") && output.stdout.is_empty());
    assert!(!place.path().join("results").exists(), "{arguments:?} has written something");
}

/// The small scenario with a text replaced.
fn with(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from} is not in the scenario");
    SMALL.replace(from, to)
}

#[test]
fn ten_wrong_files_give_ten_helpful_messages() {
    let place = Place::new();
    let file = |name: &str, text: &str| place.file(name, text).to_str().expect("a plain path").to_owned();

    let unknown_key = file("unknown.toml", &with("momentum", "momentun"));
    refuse(
        &place,
        &[&unknown_key],
        &["`fedavg` has no setting `momentun`", "unknown.toml:24", "did you mean `momentum`?"],
    );

    let wrong_type = file("type.toml", &with("rounds = 4", "rounds = \"four\""));
    refuse(&place, &[&wrong_type], &["`rounds` is a string, but must be a whole number", "type.toml:2"]);

    let negative_rate = file("negative.toml", &with("learning_rate = 0.05", "learning_rate = -0.05"));
    refuse(&place, &[&negative_rate], &["`learning_rate` is -0.05, but must be at least 0", "out of range"]);

    let mnist = "name = \"mnist\"\ndirectory = \"nowhere\"";
    let missing_data = file("data.toml", &with("name = \"synthetic\"\ntrain = 300\ntest = 100", mnist));
    let folder = place.path().join("nowhere").join("mnist");
    let folder = folder.to_str().expect("a plain path");
    refuse(&place, &[&missing_data], &["`mnist` is not complete in", folder, "fedbits data fetch mnist"]);

    let many_clients = file("clients.toml", &with("clients = 10", "clients = 1000"));
    refuse(&place, &[&many_clients], &["1000", "300", "clients.toml:12"]);

    let large_k = file("k.toml", &format!("{SMALL}\n[uplink]\noperator = \"top-k\"\nk = 5000\n"));
    refuse(&place, &[&large_k], &["`k` is 5000, but the longest part of the vector has 1210 values", "k.toml:"]);

    let unknown_operator = file("operator.toml", &format!("{SMALL}\n[uplink]\noperator = \"top_k\"\n"));
    refuse(&place, &[&unknown_operator], &["unknown operator `top_k`", "`terngrad`", "did you mean `top-k`?"]);

    let duplicate_key = file("twice.toml", &with("seed = 3", "seed = 3\nseed = 4"));
    refuse(&place, &[&duplicate_key], &["duplicate key", "twice.toml:4"]);

    let wrong_include = file("include.toml", &format!("include = \"not_there.toml\"\n{SMALL}"));
    refuse(&place, &[&wrong_include], &["cannot read", "not_there.toml", "No such file", "include.toml:1"]);

    std::fs::create_dir(place.path().join("folder.toml")).expect("a folder can be made");
    refuse(&place, &["folder.toml"], &["cannot read", "folder.toml", "directory"]);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let place = Place::new();
    let text = with("clients = 10", "clients = 0").replace("participation = 0.5", "participation = 1.5\nbatch = 3");
    let text = format!("colour = 3\n{text}\n[uplink]\noperator = \"qsgd\"\nlevels = 0\ncoder = \"huffman\"\n");
    place.file("many.toml", &text);
    let wanted = [
        "6 mistakes",
        "unknown key `colour`",
        "`clients` is 0, but must be at least 1",
        "`participation` is 1.5, but must be greater than 0 and at most 1",
        "`fedavg` has no setting `batch`",
        "did you mean `batch_size`",
        "`levels` is 0, but must be at least 1",
        "`coder` is `huffman`, but must be one of `default`, `fixed`",
    ];
    refuse(&place, &["many.toml"], &wanted);
}

#[test]
fn combinations_that_cannot_work_are_refused_with_the_reason() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let cases: &[(&str, &[&str])] = &[
        ("uplink={operator=\"natural\",coder=\"golomb\"}", &["this coder cannot write symbols"]),
        ("uplink={operator=\"top-k\"}", &["one of `ratio` and `k` must be given"]),
        ("uplink={operator=\"top-k\",ratio=0.1,k=3}", &["give either `ratio` or `k`, not both"]),
        ("downlink={operator=\"top-k\",ratio=0.1}", &["the downlink carries the model itself", "biased operator"]),
        (
            "downlink={operator=\"identity\",link=\"error-feedback\"}",
            &["the downlink carries the model itself", "`plain`"],
        ),
        ("method.sampling=all", &["takes every client, but `participation` is 0.5"]),
        ("model={name=\"cifar-small-cnn\"}", &["needs images of at least 16x16"]),
        ("uplink.groups=3", &["`groups` counts only with"]),
        ("partition={name=\"writer\"}", &["writer"]),
        ("uplink={operator=\"qsgd\",ratio=0.1}", &["`ratio` belongs to `top-k`", "'uplink={operator=\"qsgd\"}'"]),
        ("model.name=mlpp", &["unknown model `mlpp`", "did you mean `mlp`?"]),
        ("data.train_samples=301", &["301", "300"]),
        ("downlink={operator=\"terngrad\"}", &["biased operator"]),
        ("downlink={operator=\"rand-k\",ratio=0.01}", &["99.8 times as large as the model"]),
        ("method.server_momentum=0.95", &["`server_momentum` counts only with a `server_optimiser`"]),
        ("rounds=5000000000", &["`rounds` is 5000000000, but must be at least 1 and at most 4294967295"]),
        ("partition.clients=5000000000", &["at most 4294967295"]),
        ("model.hidden=[65536,65536]", &["parameters; at most 4294967295 are supported"]),
    ];
    for (override_, wanted) in cases {
        refuse(&place, &["small.toml", override_], wanted);
    }
}

#[test]
fn operators_inside_operators_are_checked_as_strictly_as_the_outer_ones() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let rotated = |of: &str| format!("uplink={{operator=\"rotated\",of={of}}}");
    let cases: &[(String, &[&str])] = &[
        (rotated("{operator=\"qsgdd\"}"), &["unknown operator `qsgdd`", "did you mean `qsgd`?"]),
        (rotated("{operator=\"qsgd\",level=3}"), &["`qsgd` has no setting `level`", "did you mean `levels`?"]),
        (rotated("{operator=\"qsgd\",ratio=0.1}"), &["`ratio` belongs to `top-k`"]),
        (rotated("{operator=\"qsgd\",levels=0}"), &["`levels` is 0, but must be at least 1"]),
        (rotated("{operator=\"qsgd\",coder=\"fixed\"}"), &["`qsgd` has no setting `coder`"]),
        (rotated("{levels=3}"), &["`uplink.of.operator` is missing; it is one of `identity`"]),
        (rotated("\"qsgd\""), &["`uplink.of` is a single value, but must be a table", "operator"]),
        ("uplink={operator=\"rotated\"}".into(), &["`rotated` needs `of`", "a table with `operator"]),
        (rotated("{operator=\"top-k\"}"), &["`top-k`: one of `ratio` and `k` must be given"]),
        (rotated("{operator=\"top-k\",k=5000}"), &["`top-k`: `k` is 5000, but the longest part"]),
        (rotated("{operator=\"rotated\",of={operator=\"natral\"}}"), &["did you mean `natural`?"]),
        (
            rotated(
                "{operator=\"rotated\",of={operator=\"rotated\",of={operator=\"rotated\",of={operator=\"sign\"}}}}",
            ),
            &["operators may stand inside each other 3 deep"],
        ),
        (
            "uplink={operator=\"induced\",biased={operator=\"sign\"},unbiased={operator=\"sign\"}}".into(),
            &["the operator of the error must be unbiased"],
        ),
        ("uplink={operator=\"scaled\",of={operator=\"sign\"}}".into(), &["`factor` must be given"]),
    ];
    for (override_, wanted) in cases {
        refuse(&place, &["small.toml", override_], wanted);
    }
    place.succeed(&[
        "check",
        "small.toml",
        "uplink={operator=\"rotated\",of={operator=\"qsgd\"}}",
        "uplink.of.levels=3",
    ]);
}

#[test]
fn overrides_are_as_strict_as_the_file() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    refuse(&place, &["small.toml", "method.learning_rat=0.1"], &["no setting `learning_rat`", "command line:1"]);
    refuse(&place, &["small.toml", "rounds.x=1"], &["`rounds` is a single value"]);
    refuse(&place, &["small.toml", "method..x=1"], &["empty step"]);
    refuse(&place, &["small.toml", "rounds=[1"], &["not a TOML value"]);
    refuse(&place, &["rounds=3"], &["no scenario file is given"]);
    refuse(&place, &["small.toml", "method.learning_rate=-1"], &["`learning_rate` is -1"]);
    refuse(&place, &["absent.toml"], &["cannot read", "absent.toml"]);
    let output = place.fedbits(&["run", "small.toml", "--threads", "-1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("-1 is not in 1..=65535"), "{}", errors(&output));
    let output = place.fedbits(&["run", "small.toml", "--seeds", "3..3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("is empty"), "{}", errors(&output));
}

#[test]
fn includes_overrides_windows_line_ends_and_odd_paths_work() {
    let place = Place::new();
    let folder = place.path().join("Ordner mit Ümlaut");
    std::fs::create_dir(&folder).expect("a folder can be made");
    std::fs::write(folder.join("base.toml"), SMALL.replace('\n', "\r\n")).unwrap();
    let over = "\u{feff}include = \"base.toml\"\r\nrounds = 2e0\r\n[uplink]\r\noperator = \"sign\"\r\n";
    std::fs::write(folder.join("Frage ä.toml"), over).unwrap();
    place.succeed(&["run", "Ordner mit Ümlaut/Frage ä.toml", "seed=9", "--quiet"]);
    let run = place.run("results");
    let stored = std::fs::read_to_string(run.join("scenario.toml")).unwrap();
    assert!(stored.contains("rounds = 2\n") && stored.contains("seed = 9") && stored.contains("operator = \"sign\""));
    assert!(stored.contains("participation = 0.5"), "what is not laid over stays\n{stored}");
    assert!(run.parent().unwrap().ends_with("Frage ä"));
    // A section that names its part replaces the included one as a whole.
    let replaced = "include = \"base.toml\"\n[partition]\nname = \"iid\"\nclients = 4\n";
    std::fs::write(folder.join("replaced.toml"), replaced).unwrap();
    place.succeed(&["check", "Ordner mit Ümlaut/replaced.toml"]);
    // An include that includes itself ends.
    std::fs::write(folder.join("loop.toml"), "include = \"loop.toml\"\n").unwrap();
    let output = place.fedbits(&["check", "Ordner mit Ümlaut/loop.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("includes itself"), "{}", errors(&output));
}

#[test]
fn data_directories_start_from_the_file_or_the_current_folder() {
    let place = Place::new();
    let folder = place.path().join("deep");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let mnist =
        SMALL.replace("name = \"synthetic\"\ntrain = 300\ntest = 100", "name = \"mnist\"\ndirectory = \"my data\"");
    std::fs::write(folder.join("s.toml"), &mnist).unwrap();
    let missing = |arguments: &[&str]| errors(&place.fedbits(arguments)).replace(['│', '\n'], " ");
    let squeezed = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let in_file = squeezed(missing(&["check", "deep/s.toml"]));
    assert!(in_file.contains(folder.join("my data").join("mnist").to_str().unwrap()), "{in_file}");
    let on_line = squeezed(missing(&["check", "deep/s.toml", "data.directory=elsewhere"]));
    assert!(on_line.contains(place.path().join("elsewhere").join("mnist").to_str().unwrap()), "{on_line}");
}

#[test]
fn numbers_beyond_their_width_are_refused_for_every_key() {
    use fedbits::scenario::{Document, check, schema::properties};
    let slots = fedbits::run::slots();
    let mut tried = 0;
    for slot in &slots {
        for (part, own) in &slot.parts {
            for (key, of) in properties(own).chain(properties(&slot.common)) {
                if of["type"] != "integer" && of["type"] != serde_json::json!(["integer", "null"]) {
                    continue;
                }
                for value in ["-1", "9223372036854775807"] {
                    let text = format!("[{0}]\n{1} = \"{part}\"\n{key} = {value}\n", slot.section, slot.selector);
                    let document = Document::parse("width.toml", &text, &[]).expect("the syntax is right");
                    let mut mistakes = Vec::new();
                    check(&document, &slots, &mut mistakes);
                    let path = format!("{}.{key}", slot.section);
                    assert!(
                        mistakes.iter().any(|mistake| mistake.path == path),
                        "{path} = {value} of `{part}` is accepted"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 50, "{tried}");
}

#[test]
fn an_aim_needs_a_strength_and_takes_its_place() {
    let place = Place::new();
    let refused = |settings: &str, wanted: &str| {
        let text = format!("{SMALL}\n[uplink]\n{settings}\n");
        let file = place.file("aim.toml", &text).to_str().expect("a plain path").to_owned();
        refuse(&place, &[&file], &[wanted]);
    };
    refused(
        "operator = \"qsgd\"\nbits_per_coordinate = 2\nlevels = 3",
        "`levels` is what `bits_per_coordinate` is solved with: give one of them",
    );
    refused("operator = \"sign\"\ntarget_error = 0.1", "`sign` has no setting that trades bits for error; there are");
    refused(
        "operator = \"ecsq\"\ntarget_error = 0.1\nbits_per_coordinate = 1",
        "a message has either `bits_per_coordinate` or `target_error` to keep to",
    );
    refused("operator = \"sign\"\npart_values = 10", "`part_values` counts only with `granularity = \"size\"`");
}
