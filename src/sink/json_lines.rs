//! One line of JSON a round.

use std::io::Write;

use crate::run::{Observer, RoundRecord};

/// Writes every round as one line of JSON.
pub struct JsonLines<W>(pub W);

impl<W: Write> Observer for JsonLines<W> {
    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        let line = serde_json::to_string(record).expect("a record is JSON");
        let written = writeln!(self.0, "{line}").and_then(|()| self.0.flush());
        written.map_err(|error| format!("cannot write a line of JSON: {error}"))
    }
}
