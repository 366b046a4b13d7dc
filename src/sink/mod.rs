//! Observers of a run: the run's folder, lines of JSON, progress.

mod folder;
mod json_lines;
mod overall;
mod progress;
mod resume;
mod table;
mod verify;

pub use folder::{Folder, MANIFEST, ROUNDS, SCENARIO, State, StateError, write_atomically};
pub use json_lines::JsonLines;
pub use overall::Overall;
pub use progress::{Mode, Progress};
pub use resume::{Resumed, stopped_beside};
pub use verify::Verifier;
