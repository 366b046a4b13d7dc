//! Runs in the forms that other programs read, from their files alone: table -> run -> folder or file.
//!
//! [`export`] takes the tables of [`plot::read`](crate::plot::read). The same files give the same bytes: times come from
//! `run.json` and `wall_seconds`, and identifiers from names. An empty cell is no point; a value that is not finite is
//! written as such.

mod folder;
mod mlflow;
#[cfg(feature = "parquet")]
mod parquet;
mod protobuf;
mod run;
mod tensorboard;

use std::path::Path;

use run::Run;

use crate::plot::Table;

/// The program that made an export, of whatever version.
const MAKER: &str = "fedbits export";

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A folder with one sub-folder a run, each with an event file.
    TensorBoard,
    /// A folder as MLflow keeps it: experiments, in them runs.
    Mlflow,
    /// One file with the rows of all runs.
    Parquet,
}

/// What was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Number of runs.
    pub runs: usize,
    /// Number of rows.
    pub rows: usize,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// An export that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The input or the place for the output is wrong.
    #[error("{0}")]
    Input(String),
    /// A file cannot be written.
    #[error("{0}")]
    Write(String),
}

impl ExportError {
    fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    fn write(path: &Path, error: &impl std::fmt::Display) -> Self {
        Self::Write(format!("cannot write `{}`: {error}", path.display()))
    }
}

/// Writes runs to a folder, or for [`Format::Parquet`] to a file.
///
/// What this function made before and nobody has changed is made anew. A folder of ours that was changed and a file that is
/// not ours are replaced only by `force`; a folder that is not ours never is.
///
/// # Errors
/// If a table is no table of rounds, if something else is there, or if a file cannot be written.
pub fn export(tables: &[Table], format: Format, out: &Path, force: bool) -> Result<Exported, ExportError> {
    let (runs, notes) = Run::of(tables)?;
    match format {
        Format::TensorBoard => folder::make(out, &runs, force, |folder| tensorboard::write(&runs, folder))?,
        Format::Mlflow => folder::make(out, &runs, force, |folder| mlflow::write(&runs, folder))?,
        Format::Parquet => save_parquet(&runs, out, force)?,
    }
    Ok(Exported { runs: runs.len(), rows: runs.iter().map(|run| run.table.rows.len()).sum(), notes })
}

#[cfg(feature = "parquet")]
fn save_parquet(runs: &[Run], out: &Path, force: bool) -> Result<(), ExportError> {
    parquet::save(runs, out, force)
}

#[cfg(not(feature = "parquet"))]
fn save_parquet(_runs: &[Run], _out: &Path, _force: bool) -> Result<(), ExportError> {
    Err(ExportError::input(
        "this `fedbits` was built without Parquet; `cargo build --release --features parquet` builds one that has it",
    ))
}
