//! `fedbits sweep`

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
    sync::{Mutex, atomic::Ordering},
};

use clap::{Args, ValueEnum};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use indicatif::HumanDuration;

use super::{
    CELLS_FAILED, DONE, FAILED, Failure, INTERRUPTED, ProgressArguments, Scenarios, complain, interruption, print,
    refuse, run::default_threads,
};
use crate::{
    run::{DataCache, RoundRecord},
    scenario::{Document, Refusal},
    sink::{Mode, Overall, State},
    sweep::{self, Cell, Cells, Outcome, Queue, Share, Sweep, Watcher},
    units::Bits,
};

/// Run every combination of the axes of a scenario, those that are done apart
///
/// Axes stand in the section `[sweep]`, or on the command line: `uplink.ratio=0.01,0.1` `seed=0..5`. Every cell is a run in a folder of
/// its own; the same command after an interruption, a failure or with more values runs only what is missing.
#[derive(Args)]
pub struct Arguments {
    /// The scenario file, then axes and overrides: `uplink.ratio=0.01,0.1` varies, `rounds=20` does not. They take the place of what
    /// `[sweep]` says of the same key.
    #[arg(required = true, value_name = "SCENARIO|KEY=VALUES", allow_negative_numbers = true)]
    scenario: Vec<String>,
    /// Seeds, as `seed=0..5` says them too.
    #[arg(long, value_name = "FROM..TO")]
    seeds: Option<String>,
    /// Cells that run at the same time. Default: one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    jobs: Option<u16>,
    /// Threads of every cell; the results do not depend on it. Default: the cores, shared among the cells at work.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Where the folders of runs are made.
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Say what would run, how many bits it would send and how long it would take, from two rounds of some cells.
    #[arg(long)]
    dry_run: bool,
    /// Stop at the first cell that fails or diverges, and do not begin if a cell is invalid. Default: carry on.
    #[arg(long)]
    fail_fast: bool,
    /// Carry on when a cell fails: the default.
    #[arg(long, conflicts_with = "fail_fast")]
    keep_going: bool,
    /// Only every n-th cell, from the i-th on, counted from 1: for several machines.
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    shard: Option<(usize, usize)>,
    /// Only the cells with these names of runs.
    #[arg(long, value_name = "RUN,..", value_delimiter = ',')]
    only: Option<Vec<String>>,
    /// Write a script to the standard output instead: a job array of the cells that are missing.
    #[arg(long, value_name = "KIND", conflicts_with = "dry_run")]
    emit: Option<Emit>,
    #[command(flatten)]
    progress: ProgressArguments,
}

#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    /// For `sbatch`
    Slurm,
}

fn parse_shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    parts
        .filter(|(i, n)| (1..=*n).contains(i))
        .ok_or_else(|| "a shard is `i/n` with i from 1 to n, such as 2/8".to_owned())
}

pub(super) fn sweep(arguments: &Arguments) -> u8 {
    let (file, overrides, sweep) = match read(arguments) {
        Ok(read) => read,
        Err(refusal) => return refuse([refusal]),
    };
    let mut cache = DataCache::default();
    let all = sweep.cells(&mut cache);
    if all.cells.is_empty() || (arguments.fail_fast && !all.invalid.is_empty()) {
        return refuse(all.reasons().into_iter().take(MOST_SHOWN).map(|(_, refusal)| refusal.clone()));
    }
    let chosen = match choose(&all, arguments) {
        Ok(chosen) => chosen,
        Err(failure) => return refuse([failure.refusal]),
    };
    let states: Vec<State> = chosen.iter().map(|cell| State::of(&cell.folder(&arguments.results))).collect();
    let is_missing = |state: &State| !matches!(state, State::Ended(_));
    let missing: Vec<&Cell> =
        chosen.iter().zip(&states).filter(|(_, state)| is_missing(state)).map(|(cell, _)| *cell).collect();
    if arguments.emit.is_some() {
        return emit(&missing, arguments, &file, &overrides);
    }
    let share = share(arguments, missing.len());
    let head = head(&sweep, &all, chosen.len(), missing.len());
    if arguments.dry_run {
        return dry_run(&head, &all, &missing, &share, &mut cache);
    }
    let (ran, end) = run(arguments, &head, &missing, share, cache);
    let mut outcomes = ran.into_iter();
    let all_chosen = chosen.iter().copied().zip(states);
    let ended: Vec<(&Cell, Outcome)> = all_chosen
        .map(|(cell, state)| match state {
            State::Ended(manifest) => (cell, sweep::ended(&manifest)),
            _ => (cell, outcomes.next().expect("every missing cell has an outcome")),
        })
        .collect();
    close(arguments, &all, &ended, end)
}

/// The scenario file, what was laid over it, and its axes.
fn read(arguments: &Arguments) -> Result<(PathBuf, Vec<String>, Sweep), Refusal> {
    let split = Scenarios { arguments: arguments.scenario.clone() }.split();
    let (files, mut overrides) = split.map_err(|failure| failure.refusal)?;
    overrides.extend(arguments.seeds.as_ref().map(|seeds| format!("seed={seeds}")));
    let [file] = files.as_slice() else {
        let message = "`sweep` takes one scenario file; several are swept one after the other";
        return Err(Failure::input(message).refusal);
    };
    let sweep = Sweep::new(Document::load(file, &[])?, &overrides)?;
    Ok((file.clone(), overrides, sweep))
}

/// What the axes make, and how much of it is to do.
fn head(sweep: &Sweep, all: &Cells, chosen: usize, missing: usize) -> String {
    let mut head = format!("{}: {} cells", sweep.shape(), all.cells.len() + all.invalid.len() + all.repeated);
    for (count, what) in [
        (all.repeated, "the same as others"),
        (all.invalid.len(), "invalid"),
        (all.cells.len() - chosen, "not chosen"),
        (chosen - missing, "done"),
        (missing, "to run"),
    ] {
        if count > 0 {
            let _ = write!(head, ", {count} {what}");
        }
    }
    head
}

/// Runs the missing cells.
fn run(arguments: &Arguments, head: &str, missing: &[&Cell], share: Share, cache: DataCache) -> (Vec<Outcome>, Stop) {
    let mode = arguments.progress.mode();
    let rounds = missing.iter().map(|cell| u64::from(cell.rounds)).sum();
    let name = missing.first().map_or("sweep", |cell| cell.scenario.as_str());
    let overall = Overall::new(name, missing.len(), rounds, mode);
    if mode != Mode::Silent {
        let threads = share.threads(missing.len());
        let plural = if threads == 1 { "" } else { "s" };
        let how = format!("; {} at a time on {threads} thread{plural} each", share.jobs);
        overall.line(&format!("{head}{}", if missing.is_empty() { "" } else { &how }));
    }
    let interrupt = interruption();
    let watch = Watch { overall, is_silent: mode == Mode::Silent };
    let queue = Queue {
        results: &arguments.results,
        share,
        fail_fast: arguments.fail_fast,
        interrupt: &interrupt,
        watcher: &watch,
    };
    let ran = queue.run(missing, &Mutex::new(cache));
    watch.overall.end();
    let fails = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_) | Outcome::Diverged(_));
    let end = match interrupt.load(Ordering::SeqCst) {
        true if arguments.fail_fast && ran.iter().any(fails) => Stop::Failure,
        true => Stop::User,
        false => Stop::No,
    };
    (ran, end)
}

/// What ended a sweep before its time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    User,
    Failure,
}

/// Refusals and failures that are shown one by one.
const MOST_SHOWN: usize = 20;

/// The cells of the shard, or those that are named.
fn choose<'a>(all: &'a Cells, arguments: &Arguments) -> Result<Vec<&'a Cell>, Failure> {
    let (first, step) = arguments.shard.map_or((0, 1), |(i, n)| (i - 1, n));
    let Some(only) = &arguments.only else { return Ok(all.cells.iter().skip(first).step_by(step).collect()) };
    if let Some(unknown) = only.iter().find(|name| all.cells.iter().all(|cell| cell.run != **name)) {
        let message =
            format!("no cell of this sweep is called `{unknown}`: the scenario, its data or the program has changed");
        return Err(Failure::input(message));
    }
    Ok(all.cells.iter().filter(|cell| only.contains(&cell.run)).skip(first).step_by(step).collect())
}

/// Cells side by side gain more than clients side by side: they never wait for each other.
fn share(arguments: &Arguments, missing: usize) -> Share {
    let cores = default_threads();
    let threads = arguments.threads.map(usize::from);
    let fitting = threads.map_or(cores, |threads| (cores / threads).max(1));
    Share { jobs: arguments.jobs.map_or(fitting, usize::from).min(missing.max(1)), threads, cores }
}

struct Watch {
    overall: Overall,
    is_silent: bool,
}

impl Watcher for Watch {
    fn round(&self, _cell: &Cell, _record: &RoundRecord) {
        self.overall.round();
    }

    fn resumed(&self, cell: &Cell, round: u32, notes: &[String]) {
        self.overall.skip(u64::from(round));
        for note in notes {
            if !self.is_silent {
                self.overall.line(&format!("{cell}: {note}"));
            }
        }
    }

    fn ended(&self, cell: &Cell, outcome: &Outcome) {
        if let Outcome::Failed(reason) | Outcome::Diverged(reason) = outcome {
            self.overall.ended(true);
            if !self.is_silent {
                self.overall.line(&format!("{cell}: {}", reason.lines().next().unwrap_or_default()));
            }
        } else if *outcome == Outcome::Finished {
            self.overall.ended(false);
        }
    }
}

/// Writes the table and says what became of the cells.
fn close(arguments: &Arguments, all: &Cells, ended: &[(&Cell, Outcome)], end: Stop) -> u8 {
    let scenario = &all.cells[0].scenario;
    let folder = arguments.results.join(scenario);
    // Also the cells of other shards, as far as they are there.
    let runs: Vec<String> = all.cells.iter().map(|cell| cell.run.clone()).collect();
    let table = sweep::gather(&folder, &all.keys, &runs);
    let mut failures = Vec::new();
    let count = |wanted: fn(&Outcome) -> bool| ended.iter().filter(|(_, outcome)| wanted(outcome)).count();
    let finished = count(|outcome| *outcome == Outcome::Finished);
    let waiting = count(|outcome| matches!(outcome, Outcome::Interrupted | Outcome::Waiting));
    let elsewhere = count(|outcome| *outcome == Outcome::Elsewhere);
    for (cell, outcome) in ended {
        match outcome {
            Outcome::Failed(reason) => {
                failures.push(format!("failed: {cell}\n    {}", reason.trim().replace('\n', "\n    ")));
            }
            Outcome::Diverged(reason) => failures.push(format!("diverged: {cell}\n    {reason}")),
            _ => {}
        }
    }
    failures.extend(invalid(all));
    let mut text = format!("{finished} of {} cells finished", ended.len() + all.invalid.len());
    let failed = ended.len() - finished - waiting - elsewhere + all.invalid.len();
    for (n, what) in [(failed, "did not"), (waiting, "are left"), (elsewhere, "are another process's work")] {
        if n > 0 {
            let _ = write!(text, ", {n} {what}");
        }
    }
    text += "\n";
    let code = match table {
        Ok(0) => None,
        Ok(runs) => {
            let _ = writeln!(text, "table of {runs} runs in {}", folder.join(sweep::TABLE).display());
            None
        }
        Err(message) => {
            complain(&message);
            Some(FAILED)
        }
    };
    for failure in failures.iter().take(MOST_SHOWN) {
        let _ = writeln!(text, "  {failure}");
    }
    if failures.len() > MOST_SHOWN {
        let _ = writeln!(text, "  and {} more", failures.len() - MOST_SHOWN);
    }
    if waiting > 0 {
        text += if end == Stop::Failure { "stopped at the first failure; " } else { "interrupted; " };
        text += "the same command goes on\n";
    } else if finished > 1 {
        let _ = writeln!(text, "figures: fedbits plot {}", sweep::quoted(&folder.display().to_string()));
    }
    print(&text);
    match code {
        Some(code) => code,
        None if end == Stop::User && waiting > 0 => INTERRUPTED,
        None if failures.is_empty() => DONE,
        None => CELLS_FAILED,
    }
}

/// The cells that cannot run, with their reasons.
fn invalid(all: &Cells) -> Vec<String> {
    let one = |(labels, refusal): (Vec<&str>, &Refusal)| {
        let more = if labels.len() > 1 { format!(", and {} more alike", labels.len() - 1) } else { String::new() };
        format!("invalid: {}{more}\n    {}", labels[0], refusal.reasons().replace('\n', "\n    "))
    };
    all.reasons().into_iter().map(one).collect()
}

/// Says what would run.
fn dry_run(head: &str, all: &Cells, missing: &[&Cell], share: &Share, cache: &mut DataCache) -> u8 {
    let threads = share.threads(missing.len());
    let estimates = match sweep::estimate(missing, threads, cache) {
        Ok(estimates) => estimates,
        Err(message) => {
            complain(&message);
            return FAILED;
        }
    };
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Dynamic).load_style(presets::NOTHING).set_header([
        "cells",
        "",
        "up, each",
        "down, each",
        "time, each",
    ]);
    for column in [0, 2, 3, 4] {
        table.column_mut(column).expect("there are five columns").set_cell_alignment(CellAlignment::Right);
    }
    let (mut up, mut down, mut seconds, mut about) = (0, 0, 0.0, BTreeSet::new());
    for one in &estimates {
        let n = one.cells.len() as u64;
        let bits = |way: usize| format!("{}{}", if one.varies[way] { "about " } else { "" }, Bits(one.bits[way]));
        table.add_row([n.to_string(), one.label.clone(), bits(0), bits(1), duration(one.seconds)]);
        (up, down, seconds) = (
            up + n.saturating_mul(one.bits[0]),
            down + n.saturating_mul(one.bits[1]),
            seconds + n as f64 * one.seconds,
        );
        about.extend(one.varies.iter().filter(|varies| **varies).copied());
    }
    let about = if about.is_empty() { "" } else { "about " };
    let time = HumanDuration(std::time::Duration::from_secs_f64(seconds / share.jobs as f64));
    print(&format!(
        "{head}\n{}{about}{} up and {} down in all\nabout {time} with {} at a time on {threads} thread{} each\n",
        if estimates.is_empty() { String::new() } else { format!("\n{table}\n\n") },
        Bits(up),
        Bits(down),
        share.jobs,
        if threads == 1 { "" } else { "s" }
    ));
    let invalid: Vec<String> = invalid(all).into_iter().take(MOST_SHOWN).map(|text| format!("  {text}\n")).collect();
    print(&invalid.concat());
    if invalid.is_empty() { DONE } else { CELLS_FAILED }
}

fn duration(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

/// Writes the script of a job array.
fn emit(missing: &[&Cell], arguments: &Arguments, file: &Path, overrides: &[String]) -> u8 {
    let Some(first) = missing.first() else {
        tracing::info!("every cell is done: there is nothing to submit");
        return DONE;
    };
    let mut command = vec!["fedbits".to_owned(), "sweep".to_owned(), file.display().to_string()];
    command.extend_from_slice(overrides);
    command.extend(["--results".to_owned(), arguments.results.display().to_string()]);
    print(&sweep::script(&first.scenario, missing, &command));
    DONE
}
