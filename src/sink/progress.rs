//! Progress: a bar on a terminal, plain lines at a moderate rate elsewhere.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    run::{Observer, Plan, RoundRecord, Summary},
    units::Bits,
};

/// Time between two plain lines.
const PAUSE: Duration = Duration::from_secs(2);

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
    /// Progress of `rounds` rounds; a bar if `terminal`.
    pub fn new(name: &str, rounds: u32, terminal: bool) -> Self {
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(u64::from(rounds)), ProgressDrawTarget::stderr_with_hz(5));
            let template = "{prefix} {wide_bar} {pos}/{len} {msg} {eta} left";
            bar.set_style(ProgressStyle::with_template(template).expect("the template is valid").progress_chars("━━ "));
            bar.set_prefix(name.to_owned());
            bar.tick();
            bar
        });
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
