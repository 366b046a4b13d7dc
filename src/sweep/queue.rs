//! The queue: cells in parallel, each in its folder; what is done is not done again, and one failure is one failure.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::Cell;
use crate::{
    run::{self, Checkpoint, DataCache, End, Observer, Plan, RoundRecord, run_folder},
    sink::{Folder, Resumed, State, StateError},
};

/// How cells are shared among cores.
#[derive(Clone, Debug)]
pub struct Share {
    /// Cells at the same time.
    pub jobs: usize,
    /// Threads of a cell; none: the cores that are there, divided among the cells that are at work.
    pub threads: Option<usize>,
    /// Cores of the machine.
    pub cores: usize,
}

impl Share {
    /// Threads for the next cell where so many, itself included, are not yet done: never more than there are cores for.
    pub fn threads(&self, left: usize) -> usize {
        self.threads.unwrap_or_else(|| (self.cores / self.jobs.min(left).max(1)).max(1))
    }
}

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It came to its end.
    Finished,
    /// A value was not finite.
    Diverged(String),
    /// It could not go on.
    Failed(String),
    /// The user interrupted it; it can be gone on with.
    Interrupted,
    /// Another process is at work on it.
    Elsewhere,
    /// Its turn did not come.
    Waiting,
}

/// Is told how a sweep comes along, from several threads.
pub trait Watcher: Sync {
    /// A round of a cell is over.
    fn round(&self, cell: &Cell, record: &RoundRecord);
    /// A cell goes on after a round, with notes.
    fn resumed(&self, cell: &Cell, round: u32, notes: &[String]);
    /// A cell is over.
    fn ended(&self, cell: &Cell, outcome: &Outcome);
}

/// Where cells run, and until when.
pub struct Queue<'a> {
    /// Folder of all results.
    pub results: &'a Path,
    /// How cells are shared among cores.
    pub share: Share,
    /// Whether the first failure ends the sweep.
    pub fail_fast: bool,
    /// Ends all cells after their round.
    pub interrupt: &'a AtomicBool,
    /// Is told of everything.
    pub watcher: &'a dyn Watcher,
}

impl Queue<'_> {
    /// Runs cells that are not done; outcomes come in their order.
    pub fn run(&self, cells: &[&Cell], cache: &Mutex<DataCache>) -> Vec<Outcome> {
        let queue: Mutex<VecDeque<usize>> = Mutex::new((0..cells.len()).collect());
        let outcomes = Mutex::new(vec![Outcome::Waiting; cells.len()]);
        let unfinished = || {
            let outcomes = outcomes.lock().expect("no thread panics while it holds the lock");
            outcomes.iter().filter(|outcome| **outcome == Outcome::Waiting).count()
        };
        let worker = || {
            while !self.interrupt.load(Ordering::SeqCst) {
                let next = queue.lock().expect("no thread panics while it holds the lock").pop_front();
                let Some(at) = next else { break };
                let cell = cells[at];
                let threads = self.share.threads(unfinished());
                let one = catch_unwind(AssertUnwindSafe(|| self.run_cell(cell, threads, cache)));
                let outcome =
                    one.unwrap_or_else(|_| Outcome::Failed("the program made a mistake; see above".to_owned()));
                self.watcher.ended(cell, &outcome);
                let fails = matches!(outcome, Outcome::Failed(_) | Outcome::Diverged(_));
                outcomes.lock().expect("no thread panics while it holds the lock")[at] = outcome;
                if fails && self.fail_fast {
                    self.interrupt.store(true, Ordering::SeqCst);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.share.jobs.min(cells.len()) {
                scope.spawn(worker);
            }
        });
        outcomes.into_inner().expect("all threads are done")
    }

    fn run_cell(&self, cell: &Cell, threads: usize, cache: &Mutex<DataCache>) -> Outcome {
        // A panic of another cell while it planned leaves no half-made data behind.
        let plan = Plan::new(&cell.document, &mut cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let plan = match plan {
            Ok(plan) => plan,
            Err(refusal) => return Outcome::Failed(refusal.reasons()),
        };
        let path = run_folder(self.results, &plan);
        let state = State::of(&path);
        let was_stopped = matches!(state, State::Stopped(_));
        let opened = match state {
            State::Ended(manifest) => return ended(&manifest),
            State::Running => return Outcome::Elsewhere,
            State::Stopped(_) => Folder::reopen(&path, &plan, threads),
            State::Absent => Folder::prolong_or_create(&path, &plan, threads),
        };
        let Resumed { mut folder, checkpoint, notes, .. } = match opened {
            Ok(resumed) => resumed,
            Err(StateError::World(reason) | StateError::Foreign(reason)) => {
                // Another process may have come first.
                return match State::of(&path) {
                    State::Running => Outcome::Elsewhere,
                    State::Ended(manifest) => ended(&manifest),
                    _ => Outcome::Failed(reason),
                };
            }
        };
        if was_stopped || checkpoint.is_some() {
            self.watcher.resumed(cell, checkpoint.as_ref().map_or(0, Checkpoint::round), &notes);
        }
        let mut told = Told { watcher: self.watcher, cell };
        match run::run(&plan, threads, checkpoint, &mut [&mut folder, &mut told], self.interrupt) {
            Ok(summary) => match (summary.end, summary.reason) {
                (End::Interrupted, _) => Outcome::Interrupted,
                (End::Diverged, reason) => Outcome::Diverged(reason.unwrap_or_default()),
                _ => Outcome::Finished,
            },
            Err(reason) => {
                folder.fail(&reason);
                Outcome::Failed(reason)
            }
        }
    }
}

/// The outcome of a run that has ended before, from its `run.json`.
pub fn ended(manifest: &serde_json::Value) -> Outcome {
    match manifest["state"].as_str() {
        Some("diverged") => Outcome::Diverged(manifest["summary"]["reason"].as_str().unwrap_or_default().to_owned()),
        _ => Outcome::Finished,
    }
}

struct Told<'a> {
    watcher: &'a dyn Watcher,
    cell: &'a Cell,
}

impl Observer for Told<'_> {
    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        self.watcher.round(self.cell, record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_share_the_cores_and_never_take_more() {
        for cores in 1..=64 {
            for jobs in 1..=cores {
                let share = Share { jobs, threads: None, cores };
                for left in 1..=100 {
                    let threads = share.threads(left);
                    assert!(
                        threads >= 1 && threads * jobs.min(left) <= cores,
                        "{cores} cores, {jobs} jobs, {left} left"
                    );
                }
            }
        }
        let share = Share { jobs: 2, threads: None, cores: 8 };
        assert_eq!((share.threads(10), share.threads(1)), (4, 8), "the last cell has all cores");
    }
}
