//! How a long measurement comes along, on the standard error.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two plain lines, and before the first one.
const PAUSE: Duration = Duration::from_secs(2);

/// A bar on a terminal, plain lines elsewhere; nothing of what is done at once.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    last: Instant,
}

impl Progress {
    pub(super) fn new(total: usize) -> Self {
        let bar = (std::io::stderr().is_terminal() && total > 1).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr_with_hz(5));
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} {eta} left");
            bar.set_style(style.expect("the template is valid").progress_chars("━━ "));
            bar
        });
        Self { bar, total, done: 0, last: Instant::now() }
    }

    /// The next measurement begins.
    pub(super) fn step(&mut self, what: &str) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.set_message(what.trim().to_owned());
            bar.set_position(self.done as u64 - 1);
        } else if self.last.elapsed() >= PAUSE {
            self.last = Instant::now();
            // Progress is worth less than the measurement: a closed standard error does not end it.
            let _ = writeln!(std::io::stderr(), "measurement {}/{}: {}", self.done, self.total, what.trim());
        }
    }

    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
