//! Observers of a run: the run's folder, lines of JSON, progress.

mod folder;
mod json_lines;
mod progress;
mod resume;
mod table;

pub use folder::{Folder, State, StateError};
pub use json_lines::JsonLines;
pub use progress::Progress;
pub use resume::{Resumed, stopped_beside};
