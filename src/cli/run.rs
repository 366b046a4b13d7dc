//! `fedbits run`

use std::{
    fmt::Write,
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread::available_parallelism,
};

use clap::Args;

use super::{DONE, FAILED, Failure, INTERRUPTED, ProgressArguments, Scenarios, complain, interruption, print, refuse};
use crate::{
    run::{self, Checkpoint, DataCache, End, Observer, Plan, Summary, run_folder},
    scenario::{Document, Refusal},
    sink::{Folder, JsonLines, Mode, Progress, Resumed, State, StateError, stopped_beside},
    units::{Bits, thousands},
};

/// Run scenarios: train, count every bit, write CSV
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    scenarios: Scenarios,
    /// Seeds to run, as a number or a range without its end: `0..5` are 0, 1, 2, 3, 4. Replaces the scenario's seed.
    #[arg(long, value_name = "FROM..TO", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    /// Clients that work at the same time; the results do not depend on it. Default: one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Where the folders of runs are made.
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Go on with a run that was stopped, or prolong one that has ended with fewer rounds; one that has not begun is begun.
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Run again what has been run, in another folder.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArguments,
    /// One line of JSON a round on the standard output; the summary goes to the standard error.
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
struct Seeds(Vec<u64>);

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number =
        |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{text}` is not a whole number of at least 0"));
    let Some((from, to)) = text.split_once("..") else { return Ok(Seeds(vec![number(text)?])) };
    let (from, to) = (number(from)?, number(to)?);
    match to.checked_sub(from) {
        None | Some(0) => Err(format!("the range {from}..{to} is empty; its end is not included")),
        Some(1..=10_000) => Ok(Seeds((from..to).collect())),
        Some(n) => Err(format!("the range {from}..{to} has {n} seeds; at most 10000 are allowed")),
    }
}

/// Threads to use where none are asked for.
pub(super) fn default_threads() -> usize {
    available_parallelism().map_or(1, std::num::NonZero::get)
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let mut cache = DataCache::default();
    let documents = match documents(arguments, &mut cache) {
        Ok(documents) => documents,
        Err(refusals) => return refuse(refusals),
    };
    let interrupt = interruption();
    let mut worst = DONE;
    for document in &documents {
        if interrupt.load(Ordering::SeqCst) {
            return INTERRUPTED;
        }
        worst = worst.max(match Plan::new(document, &mut cache) {
            Ok(plan) => run_one(arguments, plan, &interrupt),
            Err(refusal) => refuse([refusal]),
        });
    }
    worst
}

/// The scenarios under every seed, all of them checked before any is run. Plans are made again when their turn comes: the plans of
/// many seeds need not fit into memory together.
fn documents(arguments: &Arguments, cache: &mut DataCache) -> Result<Vec<Document>, Vec<Refusal>> {
    let seeds: Vec<Vec<String>> = match &arguments.seeds {
        Some(Seeds(seeds)) => seeds.iter().map(|seed| vec![format!("seed={seed}")]).collect(),
        None => vec![Vec::new()],
    };
    let (mut all, mut refusals) = (Vec::new(), Vec::new());
    for seed in &seeds {
        match arguments.scenarios.load(seed) {
            Ok(documents) => {
                refusals.extend(documents.iter().filter_map(|document| Plan::new(document, cache).err()));
                all.extend(documents);
            }
            Err(more) => refusals.extend(more),
        }
        // Other seeds would repeat the same mistakes.
        if !refusals.is_empty() {
            return Err(refusals);
        }
    }
    Ok(all)
}

fn run_one(arguments: &Arguments, mut plan: Plan, interrupt: &AtomicBool) -> u8 {
    let path = match free_folder(arguments, &plan) {
        Ok(path) => path,
        Err(code) => return code,
    };
    let can_go_on = path == run_folder(&arguments.results, &plan);
    // A run is named by its folder, also by one that `--force` has made beside another.
    if let Some(name) = path.file_name() {
        plan.run = name.to_string_lossy().into_owned();
    }
    let plan = &plan;
    let threads = arguments.threads.map_or_else(default_threads, usize::from);
    let Resumed { mut folder, checkpoint, from, notes } = match open(arguments, &path, plan, threads) {
        Ok(resumed) => resumed,
        Err(StateError::Foreign(message)) => return refuse([Failure::input(message).refusal]),
        Err(StateError::World(message)) => {
            complain(&message);
            return FAILED;
        }
    };
    for note in plan.notes.iter().chain(&notes) {
        tracing::warn!("{note}");
    }
    if let Some(checkpoint) = &checkpoint {
        let of = from.map_or(String::new(), |from| format!(" of `{}`, which stays as it is", from.display()));
        tracing::info!("{} goes on after round {}{of}", plan.run, checkpoint.round());
    }
    // Lines of JSON on the same terminal would run into a bar.
    let mode = match arguments.progress.mode() {
        Mode::Bar if arguments.json && std::io::stdout().is_terminal() => Mode::Lines,
        mode => mode,
    };
    let passed = checkpoint.as_ref().map_or(0, Checkpoint::round);
    let mut progress = Progress::new(&plan.scenario, plan.general.rounds, passed, mode);
    let mut lines = JsonLines::new(std::io::stdout());
    let mut observers: Vec<&mut dyn Observer> = vec![&mut folder];
    if arguments.json {
        observers.push(&mut lines);
    }
    if mode != Mode::Silent {
        observers.push(&mut progress);
    }
    let summary = match run::run(plan, threads, checkpoint, &mut observers, interrupt) {
        Ok(summary) => summary,
        Err(message) => {
            folder.fail(&message);
            complain(&message);
            return FAILED;
        }
    };
    let text = summarise(plan, &summary, &path, can_go_on);
    if arguments.json {
        eprint(&text);
    } else {
        print(&text);
    }
    match summary.end {
        End::Rounds | End::Accuracy | End::Distance | End::Bits => DONE,
        End::Diverged => FAILED,
        End::Interrupted => INTERRUPTED,
    }
}

/// Makes the folder, or opens one that is to be gone on with.
fn open(arguments: &Arguments, path: &Path, plan: &Plan, threads: usize) -> Result<Resumed, StateError> {
    if path.exists() {
        return Folder::reopen(path, plan, threads);
    }
    if !arguments.resume {
        let folder = Folder::create(path, plan, threads)?;
        return Ok(Resumed { folder, checkpoint: None, from: None, notes: Vec::new() });
    }
    let stopped = stopped_beside(path, plan);
    let mut resumed = Folder::prolong_or_create(path, plan, threads)?;
    if resumed.checkpoint.is_none() {
        resumed.notes.extend(stopped);
    }
    Ok(resumed)
}

/// The folder to run in, or the exit code if the run exists: its summary was shown instead.
fn free_folder(arguments: &Arguments, plan: &Plan) -> Result<PathBuf, u8> {
    let path = run_folder(&arguments.results, plan);
    if arguments.force {
        let numbered = |n: u32| path.with_file_name(format!("{}-{n}", plan.run));
        let mut candidates = std::iter::once(path.clone()).chain((2..=u32::MAX).map(numbered));
        return candidates.find(|path| State::of(path) == State::Absent).ok_or(FAILED);
    }
    match State::of(&path) {
        State::Absent => Ok(path),
        State::Ended(manifest) => {
            let summary = &manifest["summary"];
            let accuracy = summary["test_accuracy"].as_f64();
            let accuracy = accuracy.map_or("none".to_owned(), |accuracy| format!("{:.2} %", 100.0 * accuracy));
            let rounds = summary["rounds"].as_u64().unwrap_or(0);
            let mut text = format!("{} has been run: {rounds} rounds, test accuracy {accuracy}\n", plan.run);
            let reason = summary["reason"].as_str();
            if let Some(reason) = reason {
                text += &format!("  it diverged: {reason}\n");
            }
            text += &format!("  results in {}\n  --force runs it again in another folder\n", path.display());
            if arguments.json {
                eprint(&text);
            } else {
                print(&text);
            }
            Err(if reason.is_some() { FAILED } else { DONE })
        }
        State::Stopped(_) if arguments.resume => Ok(path),
        State::Running => {
            complain(&format!("`{}` holds a run that another process is at work on", path.display()));
            Err(FAILED)
        }
        State::Stopped(state) => {
            complain(&format!(
                "`{}` holds a run that has not ended ({state}); --resume goes on with it, --force runs it anew in another folder and leaves this one as it is",
                path.display()
            ));
            Err(FAILED)
        }
    }
}

fn eprint(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// What a run came to, for people.
fn summarise(plan: &Plan, summary: &Summary, path: &Path, can_go_on: bool) -> String {
    let mut text = String::new();
    let how = match summary.end {
        End::Rounds => "finished".to_owned(),
        End::Accuracy => "reached its accuracy".to_owned(),
        End::Distance => "reached its distance".to_owned(),
        End::Bits => "spent its bits".to_owned(),
        End::Diverged => format!("diverged: {}", summary.reason.as_deref().unwrap_or("a value is not finite")),
        End::Interrupted if can_go_on => "was interrupted; --resume goes on with it".to_owned(),
        End::Interrupted => "was interrupted".to_owned(),
    };
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share));
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key:<16}{value}");
    };
    line("run", format!("{} {how}", plan.run));
    line("rounds", format!("{} in {:.1} s", summary.rounds, summary.wall_seconds));
    if plan.classifies() {
        line("test accuracy", format!("{} (best {})", percent(summary.test_accuracy), percent(summary.best_accuracy)));
    }
    if let Some(distance) = summary.distance_to_optimum {
        line("distance", format!("{distance:.3e} of the start's squared distance to the optimum"));
    }
    for (degrees, accuracy) in &summary.accuracy_by_rotation {
        line("", format!("{degrees} degrees: {}", percent(Some(*accuracy))));
    }
    let bits = |bits: u64| format!("{} ({} bits)", Bits(bits), thousands(bits));
    line("uplink", bits(summary.totals.uplink_bits));
    if summary.totals.uplink_bits > 0 {
        let uncompressed = 32.0 * plan.setup.layout.len() as f64 * summary.totals.uplink_messages as f64;
        let times = uncompressed / summary.totals.uplink_bits as f64;
        line("", format!("{times:.1} times less than {} uncompressed", Bits(uncompressed as u64)));
    }
    line("downlink", bits(summary.totals.downlink_bits));
    line("results", path.display().to_string());
    text
}
