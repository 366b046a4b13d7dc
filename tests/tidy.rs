//! The shape of the house: rooms and their order, names, headings, tables.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use fedbits::{catalogue::Entry, cli, compress, data, link, method, model, partition, wire};

/// Rooms, ground floor first: a room may use itself and those before it (`src/ARCHITECTURE.md`, section 3).
const ROOMS: [&str; 24] = [
    "digest",
    "rng",
    "vector",
    "layout",
    "units",
    "catalogue",
    "scenario",
    "data",
    "partition",
    "model",
    "train",
    "payload",
    "compress",
    "wire",
    "link",
    "network",
    "method",
    "run",
    "sink",
    "sweep",
    "lab",
    "plot",
    "export",
    "cli",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The program text of a file, without its tests: they may look into any room.
fn program(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("sources are text");
    if path.ends_with("laws.rs") {
        return String::new();
    }
    let cut = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    text[..cut].to_owned()
}

/// Names that follow `crate::` in a text, also inside `use crate::{..}`.
fn used_rooms(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            rooms.insert(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && depth == 0 && !c.is_whitespace() => {
                    rooms.insert(word(&list[i..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    rooms
}

fn room_of(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).expect("sources are in src");
    let first = inside.components().next().expect("a file has a name");
    Path::new(first.as_os_str()).file_stem().expect("a file has a name").to_string_lossy().into_owned()
}

#[test]
fn rooms_use_only_rooms_before_them() {
    let mut slips = Vec::new();
    for path in sources(&root().join("src")) {
        let room = room_of(&path);
        if room == "lib" || room == "main" {
            continue;
        }
        let own = ROOMS.iter().position(|name| *name == room).unwrap_or_else(|| panic!("`{room}` is no room"));
        for used in used_rooms(&program(&path)) {
            if ROOMS.iter().position(|name| *name == used).is_some_and(|other| other > own) {
                slips.push(format!("{}: `{room}` must not use `{used}`", path.display()));
            }
        }
    }
    assert!(slips.is_empty(), "{}", slips.join("\n"));
}

#[test]
fn the_tidy_test_sees_a_slip() {
    let text = "use crate::{\n    rng::{Address, below},\n    wire::Packet,\n};\nuse crate::cli;";
    assert_eq!(used_rooms(text).into_iter().collect::<Vec<_>>(), ["cli", "rng", "wire"]);
}

#[test]
fn burn_and_files_and_printing_stay_in_their_rooms() {
    let touches_files = ["cli", "sink", "sweep", "data", "scenario", "plot", "export"];
    for path in sources(&root().join("src")) {
        let (room, text) = (room_of(&path), program(&path));
        let shown = path.display();
        assert!(room == "model" || room == "train" || !text.contains("burn::"), "{shown} uses burn");
        // `run::plan` hands the partitioner `file` its text.
        let reads = path.ends_with("run/plan/builder.rs") || touches_files.contains(&room.as_str());
        assert!(reads || !(text.contains("std::fs") || text.contains("fs_err")), "{shown} touches files");
        assert!(!text.contains("println!") && !text.contains("print!("), "{shown} prints");
    }
}

/// Folder, catalogue and names agree: file `top_k.rs`, type `TopK`, name `top-k`.
fn check_catalogue<P: ?Sized>(room: &str, entries: &'static [Entry<P>], others: &[&str], headings: &[&str]) {
    let mut listed: BTreeSet<String> = entries.iter().map(|entry| format!("{}.rs", entry.module)).collect();
    listed.extend(others.iter().map(|name| format!("{name}.rs")));
    listed.extend(["mod.rs".to_owned(), "laws.rs".to_owned(), "vectors.rs".to_owned()]);
    for file in fs::read_dir(root().join("src").join(room)).expect("the room is there") {
        let name = file.expect("the entry can be read").file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|ending| ending == "rs") {
            assert!(listed.contains(&name), "src/{room}/{name} is not in the catalogue of `{room}`");
        }
    }
    let mut names = BTreeSet::new();
    for entry in entries {
        assert!(names.insert(entry.name), "`{}` is listed twice", entry.name);
        let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        assert_eq!(plain(entry.name), plain(entry.module), "name and file of `{}`", entry.name);
        assert_eq!(plain(entry.name), plain(entry.type_name), "name and type of `{}`", entry.name);
        let doc = entry.doc();
        let found: Vec<&str> = doc.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        for heading in headings {
            assert!(found.contains(heading), "the doc comment of `{}` has no heading `# {heading}`", entry.name);
        }
        assert!(!entry.summary().is_empty(), "`{}` has no summary", entry.name);
        entry.build_example().unwrap_or_else(|reason| panic!("the example of `{}`: {reason}", entry.name));
    }
}

#[test]
fn folders_catalogues_names_and_headings_agree() {
    let operator = ["Formula", "Bits", "Bound", "Source", "Example"];
    check_catalogue(
        "compress",
        compress::CATALOGUE,
        &[
            "bounds",
            "directions",
            "gaussian",
            "granularity",
            "isotropic",
            "lloyd_max",
            "long_trellis",
            "nested",
            "quic_fl_tables",
            "rotation",
            "rounding",
            "trellis",
        ],
        &operator,
    );
    let parts = ["bits", "elias", "golomb_gaps", "integer", "packet", "plain", "range", "sparse"];
    check_catalogue("wire", wire::CATALOGUE, &parts, &["Bits", "Writes", "Source"]);
    check_catalogue("link", link::CATALOGUE, &["codec"], &["Update", "Memory", "Needs", "Source"]);
    let method_headings = ["Update", "Sent", "Memory", "Step size", "Source", "Reduces to"];
    check_catalogue("method", method::CATALOGUE, &["local_steps", "server_optimiser"], &method_headings);
    check_catalogue(
        "model",
        model::CATALOGUE,
        &["bridge", "image_columns", "regression", "stack", "start"],
        &["Layers", "Source"],
    );
    let helpers = ["check", "cut", "draw", "passport"];
    check_catalogue("partition", partition::CATALOGUE, &helpers, &["Rule", "Sizes", "Source", "Example"]);
    let data_files = [
        "archive",
        "cifar_records",
        "published",
        "download",
        "error",
        "idx",
        "idx_images",
        "leak",
        "options",
        "packing",
        "pixels",
        "remote",
        "subset",
        "table",
        "transfer",
        "writers",
    ];
    check_catalogue("data", data::CATALOGUE, &data_files, &["Files", "Pixels", "Source"]);
    let operators_differ: Vec<&str> = compress::CATALOGUE
        .iter()
        .filter(|entry| !entry.doc().replace('\n', " ").contains("Differs from the source in:"))
        .map(|entry| entry.name)
        .collect();
    assert!(operators_differ.is_empty(), "say how these differ from their source: {operators_differ:?}");
}

#[test]
fn the_tables_of_the_readme_are_those_of_the_catalogues() {
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).expect("there is a README");
    let mut fresh = text.clone();
    for (kind, table) in cli::markdown() {
        let (begin, end) = (format!("<!-- {kind} -->\n"), format!("<!-- end of {kind} -->"));
        let from = fresh.find(&begin).unwrap_or_else(|| panic!("the README has no marker {begin}")) + begin.len();
        let to = fresh.find(&end).unwrap_or_else(|| panic!("the README has no marker {end}"));
        fresh.replace_range(from..to, &table);
    }
    if fresh != text && std::env::var_os("FEDBITS_BLESS").is_some() {
        fs::write(&path, &fresh).expect("the README can be written");
        return;
    }
    assert!(fresh == text, "tables of the README are stale: FEDBITS_BLESS=1 cargo test --test tidy writes them anew");
}

#[test]
fn the_readme_shows_the_scenario_of_its_first_command() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let scenario = fs::read_to_string(root().join("scenarios/mnist_quickstart.toml")).expect("there is the scenario");
    assert!(readme.contains(&scenario), "the README shows another scenario than `scenarios/mnist_quickstart.toml`");
}

#[test]
fn scenarios_begin_with_their_question() {
    for entry in fs::read_dir(root().join("scenarios")).expect("the folder is there") {
        let path = entry.expect("the entry can be read").path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = fs::read_to_string(&path).expect("scenarios are text");
            assert!(text.starts_with("# Question: "), "{} does not begin with its question", path.display());
        }
    }
}
