//! One line of JSON a round.

use std::io::{ErrorKind, Write};

use crate::run::{Observer, RoundRecord};

/// Writes every round as one line of JSON; stops writing when the reader has gone away.
pub struct JsonLines<W> {
    out: Option<W>,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: Some(out) }
    }
}

impl<W: Write> Observer for JsonLines<W> {
    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let line = serde_json::to_string(record).expect("a record is JSON");
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            // The run is worth more than its lines: `| head` must not end it.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.out = None,
            Err(error) => return Err(format!("cannot write a line of JSON: {error}")),
            Ok(()) => {}
        }
        Ok(())
    }
}
