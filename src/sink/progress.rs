//! Progress: a bar on a terminal, plain lines at a moderate rate elsewhere.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    run::{Observer, Plan, RoundRecord, Summary},
    units::Bits,
};

/// Time between two plain lines.
const PAUSE: Duration = Duration::from_secs(2);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A bar that moves.
    Bar,
    /// Plain lines.
    Lines,
    /// Not at all.
    Silent,
}

impl Mode {
    /// A bar on a terminal, lines elsewhere.
    pub fn fitting() -> Self {
        if std::io::stderr().is_terminal() { Self::Bar } else { Self::Lines }
    }

    /// A bar of so many steps, if this mode has one.
    pub(super) fn bar(self, steps: u64, name: &str) -> Option<ProgressBar> {
        if self != Self::Bar {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr_with_hz(5));
        let template = "{prefix} {wide_bar} {pos}/{len} {msg} {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid").progress_chars("━━ "));
        bar.set_prefix(name.to_owned());
        bar.tick();
        Some(bar)
    }
}

/// Tells on the standard error how a run comes along.
pub struct Progress {
    bar: Option<ProgressBar>,
    rounds: u32,
    last_line: Option<Instant>,
    accuracy: Option<f64>,
    /// A line that was held back.
    pending: Option<String>,
}

impl Progress {
    /// Progress of a run, of which `passed` rounds are over already.
    pub fn new(name: &str, rounds: u32, passed: u32, mode: Mode) -> Self {
        let bar = mode.bar(u64::from(rounds), name);
        if let Some(bar) = &bar {
            bar.set_position(u64::from(passed));
            // What is past does not count in the time that is left.
            bar.reset_eta();
        }
        Self { bar, rounds, last_line: None, accuracy: None, pending: None }
    }
}

impl Progress {
    fn write_pending(&mut self) {
        if let Some(line) = self.pending.take() {
            self.last_line = Some(Instant::now());
            // Progress is worth less than the run: a closed standard error does not end it.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

impl Observer for Progress {
    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        self.accuracy = record.test_accuracy.or(self.accuracy);
        let progress = match (self.accuracy, record.distance_to_optimum) {
            (_, Some(distance)) => format!("distance {distance:.2e}"),
            (Some(accuracy), None) => format!("accuracy {:.2} %", 100.0 * accuracy),
            (None, None) => "accuracy -".to_owned(),
        };
        let (up, down) = (Bits(record.cumulative_uplink_bits), Bits(record.cumulative_downlink_bits));
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{progress}, up {up}, down {down}"));
            bar.set_position(u64::from(record.round));
            return Ok(());
        }
        self.pending = Some(format!("round {}/{}: {progress}, up {up}, down {down}", record.round, self.rounds));
        if self.last_line.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.write_pending();
        }
        Ok(())
    }

    fn end(&mut self, _plan: &Plan, _summary: &Summary) -> Result<(), String> {
        self.write_pending();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        Ok(())
    }
}
