//! The operator laboratory, and what a run stores for it.

use crate::support::{Place, SMALL, errors, rows};

/// A wrong command; its message must hold every one of `wanted`.
fn refuse(place: &Place, arguments: &[&str], wanted: &[&str]) {
    let mut all = vec!["measure"];
    all.extend_from_slice(arguments);
    let output = place.fedbits(&all);
    let message = errors(&output).replace(['│', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for wanted in wanted {
        assert!(message.contains(wanted), "{arguments:?}: `{wanted}` is not in\n{}", errors(&output));
    }
    assert!(!message.contains("panicked") && output.stdout.is_empty());
}

fn number(row: &std::collections::BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is `{}`", row[column]))
}

#[test]
fn one_operator_is_measured_on_several_vectors_side_by_side() {
    let place = Place::new();
    let arguments = ["measure", "top-k", "ratio=0.1", "--coder", "fixed", "--dimension", "1000", "--draws", "2"];
    let text = place.succeed(&[&arguments[..], &["--vector", "gaussian", "--vector", "student-t"]].concat());
    for wanted in ["top-k ratio=0.1", "coder=fixed", "contractive", "gaussian", "student-t", "4.200", "NMSE", "cost"] {
        assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\u{1b}'));
    // What holds in a scenario holds here: links with memory scale unbiased operators down.
    let text = place.succeed(&["measure", "rand-k", "ratio=0.1", "link=error-feedback", "--dimension", "1000"]);
    assert!(text.contains("contractive, a = 0.1"), "{text}");
    let text = place.succeed(&["measure", "sign", "granularity=layer", "--shape", "10x20,100", "--dimension", "300"]);
    // 300 signs and two scales are 364 bits, 368 on the wire.
    assert!(text.contains("1.227"), "{text}");
}

#[test]
fn every_measurement_is_a_row_of_the_file_and_no_file_is_overwritten() {
    let place = Place::new();
    let arguments = ["measure", "qsgd", "--sweep", "levels=1..16:5", "--dimension", "500", "--csv", "out.csv"];
    let text = place.succeed(&arguments);
    assert!(text.contains("efficiency"), "{text}");
    let path = place.path().join("out.csv");
    let header = std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(
        header,
        "operator,settings,vector,dimension,wire_bits_per_coordinate,payload_bits_per_coordinate,\
         information_bits_per_coordinate,nmse,nmse_standard_error,bias,class,lower_bound,encode_million_per_second,\
         decode_million_per_second"
    );
    let measured = rows(&path);
    assert_eq!(measured.len(), 5);
    for (row, levels) in measured.iter().zip([1, 2, 4, 8, 16]) {
        assert!(row["settings"].contains(&format!("levels={levels} ")), "{row:?}");
        assert_eq!(
            (row["operator"].as_str(), row["vector"].as_str(), row["dimension"].as_str()),
            ("qsgd", "gaussian", "500")
        );
        assert!(row["class"].starts_with("unbiased"));
        assert!(number(row, "payload_bits_per_coordinate") <= number(row, "wire_bits_per_coordinate"));
        assert!(number(row, "nmse") >= 0.99 * number(row, "lower_bound"));
        assert!(number(row, "bias") < 0.2 * number(row, "nmse"));
    }
    let fall = |column: &str| measured.windows(2).all(|pair| number(&pair[0], column) > number(&pair[1], column));
    assert!(fall("nmse"));
    refuse(&place, &arguments[1..], &["`out.csv` is there already", "--force"]);
    assert_eq!(rows(&path).len(), 5);
    place.succeed(&["measure", "sign", "--dimension", "500", "--draws", "1", "--csv", "out.csv", "--force"]);
    let measured = rows(&path);
    assert_eq!(
        (measured.len(), measured[0]["nmse_standard_error"].as_str(), measured[0]["bias"].as_str()),
        (1, "", "")
    );
    // The same command gives the same numbers, whatever the speeds.
    let numbers = |file: &str| {
        place.succeed(&["measure", "rand-k", "ratio=0.1", "--dimension", "99", "--seed", "5", "--csv", file]);
        let mut row = rows(&place.path().join(file)).remove(0);
        row.retain(|column, _| !column.ends_with("_second"));
        row
    };
    assert_eq!(numbers("first.csv"), numbers("second.csv"));
}

#[test]
fn operators_are_ranked_at_equal_bits() {
    let place = Place::new();
    let text = place.succeed(&[
        "measure",
        "top-k",
        "--rates",
        "0.5,1,40",
        "--dimension",
        "2000",
        "--draws",
        "1",
        "--vector",
        "gaussian",
        "--vector",
        "student-t",
    ]);
    // Spec 6.1 at d = 10000: .899 and .826 on G, .755 and .656 on T; nothing has 40 bits a value.
    let line = |name: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name} in\n{text}"));
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    for (name, expected) in [("gaussian", [0.899, 0.826]), ("student-t", [0.755, 0.656])] {
        let cells = line(name);
        assert_eq!(cells.len(), 2, "{text}");
        assert!(cells.iter().zip(expected).all(|(cell, expected)| (cell - expected).abs() < 0.02), "{text}");
    }
    assert_eq!(line("least of any operator")[..2], [0.5, 0.25]);
    let text = place.succeed(&["measure", "natural", "--rates", "1", "--dimension", "100", "--draws", "2"]);
    assert!(text.contains("without a strength"), "{text}");
}

#[test]
fn wrong_measurements_are_refused_with_the_reason() {
    let place = Place::new();
    place.file("text.npy", "no array");
    place.file("vectors.csv", "1,2");
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["no operator is named", "--all"]),
        (&["ratio=0.1"], &["`ratio=0.1` stands where the name of an operator belongs"]),
        (&["topk"], &["unknown operator `topk`", "did you mean `top-k`?"]),
        (&["top-k"], &["one of `ratio` and `k` must be given"]),
        (&["top-k", "ratio=2"], &["`ratio` is 2, but must be greater than 0 and at most 1", "command line"]),
        (&["top-k", "ratio"], &["missing `=`", "`ratio=0.01`"]),
        (&["top-k", "rato=0.1"], &["`top-k` has no setting `rato`", "did you mean `ratio`?"]),
        (&["qsgd", "ratio=0.1"], &["`qsgd` has no setting `ratio`", "belongs to"]),
        (&["top-k", "k=20000"], &["`k` is 20000, but the longest part of the vector has 10000 values"]),
        (&["natural", "--coder", "golomb"], &["this coder cannot write symbols"]),
        (&["natural", "--coder", "huffman"], &["`coder` is `huffman`, but must be one of"]),
        (&["sign", "groups=3"], &["`groups` counts only with"]),
        (&["sign", "--vector", "gausian"], &["there is no vector `gausian`", "did you mean `gaussian`?"]),
        (&["sign", "--vector", "vectors.csv"], &["there is no vector `vectors.csv`", "*.npy"]),
        (&["sign", "--vector", "text.npy"], &["`text.npy` is no vector"]),
        (&["sign", "--vector", "absent.npy"], &["absent.npy", "No such file"]),
        (&["sign", "--dimension", "1"], &["every value of `gaussian` is zero"]),
        (&["sign", "--dimension", "0"], &["0"]),
        (&["sign", "--shape", "3x4"], &["the shapes hold 12 values, but the vector has 10000"]),
        (&["sign", "--sweep", "levels"], &["has not the form"]),
        (&["qsgd", "--sweep", "levels=1,0"], &["`levels` is 0, but must be at least 1"]),
        (
            &["top-k", "--sweep", "k=3,20000", "--dimension", "100"],
            &["k=20000", "the longest part of the vector has 100"],
        ),
        (&["top-k", "--rates", "0"], &["`--rates` has 0"]),
        (&["--rates", "1", "--coder", "fixed"], &["settings belong to an operator"]),
        (&["sign", "--all"], &["name none beside it"]),
    ];
    for (arguments, wanted) in cases {
        refuse(&place, arguments, wanted);
    }
}

#[test]
fn captured_vectors_are_measured_and_do_not_depend_on_threads() {
    let place = Place::new();
    place.file("small.toml", SMALL);
    let run = |results: &str, threads: &str, more: &[&str]| {
        let fixed = ["run", "small.toml", "record.capture=0.6", "record.layers=true", "--quiet"];
        let arguments = [&fixed[..], &["--results", results, "--threads", threads], more].concat();
        place.succeed(&arguments);
        let folder = place.run(results);
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder.join("captures"))
            .expect("something was captured")
            .map(|file| file.expect("readable"))
            .map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()))
            .collect();
        files.sort();
        (folder.clone(), files, std::fs::read_to_string(folder.join("layers.csv")).unwrap())
    };
    let uplink = "uplink={operator=\"top-k\",ratio=0.1,link=\"error-feedback\",granularity=\"layer\"}";
    let (folder, files, layers) = run("one", "1", &[uplink]);
    let (_, again, layers_again) = run("two", "2", &[uplink]);
    assert_eq!((&files, &layers), (&again, &layers_again));
    // 20 messages, each with a chance of 0.6; a displacement a round.
    let clients = files.iter().filter(|(name, _)| name.contains("client")).count();
    assert!((5..20).contains(&clients), "{clients}");
    let rounds: std::collections::BTreeSet<&str> = files.iter().map(|(name, _)| &name[..11]).collect();
    assert_eq!(files.len(), clients + rounds.len());
    assert!(files.iter().all(|(name, bytes)| name.starts_with("round-0000") && bytes.len() > 4 * 1210));

    // One row a round and layer; bits and errors are those of `rounds.csv`.
    let layers = rows(&folder.join("layers.csv"));
    assert_eq!(layers.len(), 4 * 4);
    assert_eq!(
        (layers[0]["part"].as_str(), layers[0]["values"].as_str(), layers[0]["layers"].as_str()),
        ("layers.0.weight", "1024", "1")
    );
    for row in rows(&folder.join("rounds.csv")) {
        let of_round: Vec<_> = layers.iter().filter(|layer| layer["round"] == row["round"]).collect();
        let sum = |column: &str| of_round.iter().map(|layer| number(layer, column)).sum::<f64>();
        let padding = number(&row, "uplink_bits") - sum("payload_bits");
        // What a range coder has in hand between parts comes out at the end.
        assert!(padding.abs() < 5.0 * 64.0, "{padding}");
        assert!(sum("squared_error") > 0.0 && sum("squared_error") < sum("squared_norm"));
        assert!(of_round.iter().all(|layer| layer["run"] == row["run"]));
    }

    let client = files.iter().find(|(name, _)| name.contains("client")).expect("a client was captured").0.clone();
    let path = folder.join("captures").join(client);
    let text = place.succeed(&["measure", "sign", "--vector", path.to_str().unwrap(), "--draws", "2"]);
    assert!(text.contains("1,210"), "{text}");

    // Capturing changes nothing else, and neither does the operator change which messages are captured.
    let model = |folder: &std::path::Path| rows(&folder.join("rounds.csv"))[3]["model_digest"].clone();
    place.succeed(&["run", "small.toml", uplink, "--quiet", "--results", "plain"]);
    assert_eq!(model(&folder), model(&place.run("plain")));
    let (_, exact, layers) = run("exact", "2", &["uplink.operator=identity"]);
    assert_eq!(
        exact.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        files.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert!(layers.contains("layers.0.weight..layers.") && layers.contains(",4,1210,193600,0.0,"), "{layers}");
}

#[test]
fn arrays_of_numpy_are_read_and_others_are_refused() {
    let place = Place::new();
    let array = |descriptor: &str, shape: &str, data: &[u8]| {
        let mut header = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {shape}, }}");
        header += &" ".repeat(64 - (10 + header.len() + 1) % 64);
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    };
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(place.path().join(name), bytes).unwrap();
    let values = [3.0f64, -1.0, 2.0, 0.0];
    let double: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let single: Vec<u8> = values.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
    write("double.npy", array("<f8", "(4,)", &double));
    write("single.npy", array("<f4", "(4,)", &single));
    // The example of top-k keeps 13 of 14.
    for file in ["double.npy", "single.npy"] {
        let text = place.succeed(&["measure", "top-k", "ratio=0.5", "--vector", file, "--draws", "1"]);
        assert!(text.contains("0.07143"), "{text}");
    }
    write("matrix.npy", array("<f4", "(2, 2)", &single));
    write("short.npy", array("<f4", "(5,)", &single));
    write("huge.npy", array("<f4", "(4611686018427387904,)", &single));
    write("whole.npy", array("<i4", "(4,)", &single));
    write("empty.npy", array("<f4", "(0,)", &[]));
    write("zero.npy", array("<f4", "(4,)", &[0; 16]));
    write("nan.npy", array("<f4", "(1,)", &f32::NAN.to_le_bytes()));
    for file in ["matrix.npy", "short.npy", "huge.npy", "whole.npy", "empty.npy", "zero.npy", "nan.npy"] {
        refuse(&place, &["sign", "--vector", file], &[file]);
    }
}
