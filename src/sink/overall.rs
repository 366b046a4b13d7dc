//! Progress of many runs at once: one bar for the whole with the time left, plain lines at a moderate rate elsewhere.

use std::{
    io::Write,
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{HumanDuration, ProgressBar};

use super::Mode;

/// Time between two plain lines.
const PAUSE: Duration = Duration::from_secs(5);

/// Tells on the standard error how a sweep comes along; from any thread.
pub struct Overall {
    mode: Mode,
    bar: Option<ProgressBar>,
    started: Instant,
    steps: u64,
    state: Mutex<State>,
}

struct State {
    /// Rounds that were run here.
    run: u64,
    /// Rounds that need not be run any more.
    skipped: u64,
    done: usize,
    failed: usize,
    runs: usize,
    last_line: Option<Instant>,
}

impl Overall {
    /// Progress of `runs` runs with so many rounds in all.
    pub fn new(name: &str, runs: usize, rounds: u64, mode: Mode) -> Self {
        let state = State { run: 0, skipped: 0, done: 0, failed: 0, runs, last_line: None };
        Self { mode, bar: mode.bar(rounds, name), started: Instant::now(), steps: rounds, state: state.into() }
    }

    /// A round was run.
    pub fn round(&self) {
        self.update(|state| state.run += 1, false);
    }

    /// So many rounds need not be run.
    pub fn skip(&self, rounds: u64) {
        self.update(|state| state.skipped += rounds, false);
        if let Some(bar) = &self.bar {
            bar.reset_eta();
        }
    }

    /// A run is over.
    pub fn ended(&self, fails: bool) {
        self.update(
            |state| {
                state.done += usize::from(!fails);
                state.failed += usize::from(fails);
            },
            self.mode == Mode::Lines,
        );
    }

    /// A line that stays, above the bar.
    pub fn line(&self, text: &str) {
        match &self.bar {
            // Progress is worth less than the runs: a closed standard error does not end them.
            Some(bar) => bar.suspend(|| drop(writeln!(std::io::stderr(), "{text}"))),
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }

    /// All is over.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn update(&self, change: impl FnOnce(&mut State), wants_line: bool) {
        let mut state = self.state.lock().expect("no thread panics while it holds the lock");
        change(&mut state);
        let position = state.run + state.skipped;
        let failed = if state.failed > 0 { format!(", {} failed", state.failed) } else { String::new() };
        let cells = format!("cells {}/{}{failed}", state.done + state.failed, state.runs);
        if let Some(bar) = &self.bar {
            bar.set_message(format!("rounds, {cells},"));
            bar.set_position(position);
        }
        let is_time = state.last_line.is_none_or(|last| last.elapsed() >= PAUSE);
        if self.mode == Mode::Lines && (is_time || (wants_line && state.done + state.failed == state.runs)) {
            state.last_line = Some(Instant::now());
            let left = match state.run {
                0 => String::new(),
                run => {
                    let seconds = self.started.elapsed().as_secs_f64() / run as f64
                        * (self.steps - position.min(self.steps)) as f64;
                    format!(", {} left", HumanDuration(Duration::from_secs_f64(seconds)))
                }
            };
            drop(state);
            self.line(&format!("{cells}, rounds {position}/{}{left}", self.steps));
        }
    }
}
