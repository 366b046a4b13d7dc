//! `fedbits export`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{DONE, FAILED, Failure, complain, print, refuse};
use crate::{
    export::{self, ExportError, Exported, Format},
    plot::{self, PlotError},
};

/// Write runs in the forms that TensorBoard, MLflow and data frames read
#[derive(Args)]
pub struct Arguments {
    /// Runs: `rounds.csv` files, or folders with runs in them; a run may still be running.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Form of the export.
    #[arg(long, value_name = "NAME")]
    format: Form,
    /// Folder to make, for parquet the file. What an earlier export made is made anew, anything else is left alone.
    #[arg(long, value_name = "DIR|FILE")]
    out: PathBuf,
    /// Replace a folder of ours that has been changed since, or for parquet any file.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// One folder a run with an event file: every column of numbers as a scalar, the settings as text and hyperparameters
    Tensorboard,
    /// The folder of MLflow's file store: one experiment a scenario, one run a run
    Mlflow,
    /// One table: all rows of all runs, with the settings in which runs differ as columns
    Parquet,
}

pub(super) fn export(arguments: &Arguments) -> u8 {
    match make(arguments) {
        Ok(text) => {
            print(&text);
            DONE
        }
        Err(ExportError::Write(message)) => {
            complain(&message);
            FAILED
        }
        Err(ExportError::Input(message)) => refuse([Failure::input(message).refusal]),
    }
}

fn make(arguments: &Arguments) -> Result<String, ExportError> {
    let unreadable = |error: PlotError| ExportError::Input(error.to_string());
    let (tables, notes) = plot::read(&arguments.paths).map_err(unreadable)?;
    let format = match arguments.format {
        Form::Tensorboard => Format::TensorBoard,
        Form::Mlflow => Format::Mlflow,
        Form::Parquet => Format::Parquet,
    };
    let exported = export::export(&tables, format, &arguments.out, arguments.force)?;
    for note in notes.iter().chain(&exported.notes) {
        tracing::warn!("{note}");
    }
    Ok(summarise(&exported, arguments))
}

/// What was written, and how it is looked at.
fn summarise(exported: &Exported, arguments: &Arguments) -> String {
    let out = arguments.out.display();
    let look = match arguments.format {
        Form::Tensorboard => format!("tensorboard --logdir '{out}'"),
        // Recent versions of MLflow read a folder only if told so.
        Form::Mlflow => format!("MLFLOW_ALLOW_FILE_STORE=true mlflow server --backend-store-uri '{out}'"),
        Form::Parquet => format!("pandas.read_parquet(\"{out}\")"),
    };
    let runs = if exported.runs == 1 { "run" } else { "runs" };
    format!("{out}: {} {runs}, {} rounds\n  {look}\n", exported.runs, exported.rows)
}
