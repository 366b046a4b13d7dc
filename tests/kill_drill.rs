//! Fifty `kill -9` at random moments: every run that is gone on with ends as one that was never killed.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use fedbits::rng::{Address, Purpose, unit_f64};
use rand::Rng;

const KILLS: u32 = 50;
const MOST_SECONDS: u64 = 600;

/// Error feedback, an adaptive server optimiser, partial participation, momentum that clients keep, and every table.
const SCENARIO: &str = r#"
rounds = 60
evaluate_every = 4
[run]
checkpoint_every = 3
[record]
clients = true
layers = true
capture = 0.02
[data]
name = "synthetic"
train = 1200
test = 200
[partition]
name = "dirichlet-client"
clients = 40
alpha = 0.3
[model]
name = "mlp"
hidden = [32]
[method]
participation = 0.25
batch_size = 8
local_epochs = 3
momentum = 0.5
momentum_memory = "keep"
server_optimiser = "yogi"
[uplink]
operator = "top-k"
ratio = 0.02
link = "error-feedback"
granularity = "layer"
"#;

struct Drill {
    folder: tempfile::TempDir,
}

impl Drill {
    fn start(&self, results: &str, threads: u32) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedbits"));
        let threads = threads.to_string();
        command.args(["run", "drill.toml", "--resume", "--quiet", "--results", results, "--threads", &threads]);
        command.current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("the command can be run")
    }

    fn end(mut child: Child) {
        let status = child.wait().expect("the command ends");
        let mut errors = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().expect("it is piped"), &mut errors).expect("it is text");
        assert!(status.success(), "{errors}");
    }

    /// Everything that must be equal: tables without times, captured vectors, the digest of the model.
    fn outcome(&self, results: &str) -> Vec<(String, Vec<u8>)> {
        let folder = only_entry(&only_entry(&self.folder.path().join(results)));
        let manifest = std::fs::read_to_string(folder.join("run.json")).expect("it is there");
        let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("it is JSON");
        assert_eq!(manifest["state"], "finished");
        let mut all = vec![("model".to_owned(), manifest["summary"]["model_digest"].to_string().into_bytes())];
        for name in ["rounds.csv", "clients.csv", "layers.csv"] {
            let mut reader = csv::Reader::from_path(folder.join(name)).expect("it is CSV");
            let header = reader.headers().expect("there is a header").clone();
            let mut text = String::new();
            for row in reader.records() {
                let row = row.expect("every row fits the header");
                let kept = header.iter().zip(&row).filter(|(column, _)| *column != "wall_seconds");
                text += &kept.map(|(_, cell)| cell).collect::<Vec<_>>().join(",");
                text.push('\n');
            }
            all.push((name.to_owned(), text.into_bytes()));
        }
        let mut captures: Vec<PathBuf> = entries(&folder.join("captures"));
        captures.sort();
        for path in captures {
            let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
            all.push((name, std::fs::read(path).expect("it can be read")));
        }
        all
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("readable").path()).collect()
}

fn only_entry(folder: &Path) -> PathBuf {
    let mut all = entries(folder);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn fifty_kills_at_random_moments_change_nothing() {
    let drill = Drill { folder: tempfile::tempdir().expect("a folder can be made") };
    std::fs::write(drill.folder.path().join("drill.toml"), SCENARIO).expect("it can be written");
    let started = Instant::now();
    Drill::end(drill.start("whole", 2));
    let whole = started.elapsed();
    let wanted = drill.outcome("whole");
    assert!(wanted.len() > 5, "vectors were captured");
    let mut generator = Address::new(4, Purpose::Data).generator();
    let mut uniform = || unit_f64(generator.next_u64());
    let (mut kills, mut runs, mut from_checkpoints) = (0, 0, 0);
    while kills < KILLS {
        runs += 1;
        let results = format!("killed{runs}");
        let mut left = 1 + (4.0 * uniform()) as u32;
        while left > 0 {
            let mut child = drill.start(&results, 1 + (3.0 * uniform()) as u32);
            std::thread::sleep(whole.mul_f64(uniform()));
            if child.try_wait().expect("it can be asked").is_some() {
                Drill::end(child);
                break;
            }
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
            (kills, left) = (kills + 1, left - 1);
        }
        Drill::end(drill.start(&results, 2));
        let found = drill.outcome(&results);
        let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&wanted), names(&found), "after {kills} kills in {results}");
        for (wanted, found) in wanted.iter().zip(found) {
            assert!(*wanted == found, "`{}` differs after {kills} kills in {results}", wanted.0);
        }
        let folder = only_entry(&only_entry(&drill.folder.path().join(&results)));
        let manifest = std::fs::read_to_string(folder.join("run.json")).expect("it is there");
        let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("it is JSON");
        let resumed = manifest["resumed"].as_array().map_or(&[][..], Vec::as_slice);
        from_checkpoints += resumed.iter().filter(|one| one["after_round"].as_u64() > Some(0)).count();
        assert!(!folder.join("checkpoint.previous.safetensors").exists(), "a run that is over keeps one checkpoint");
        assert!(started.elapsed() < Duration::from_secs(MOST_SECONDS), "{kills} kills take too long");
    }
    assert!(from_checkpoints > 20, "only {from_checkpoints} times a run went on from a checkpoint");
}
