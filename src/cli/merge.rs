//! `fedbits merge`

use std::path::PathBuf;

use clap::Args;

use super::{DONE, FAILED, Failure, MISMATCH, complain, print, refuse};
use crate::sweep::{self, MergeError};

/// Join result folders, for instance of the shards of a sweep
#[derive(Args)]
pub struct Arguments {
    /// Folders with runs in them, at any depth. Runs that have not ended stay where they are.
    #[arg(required = true, value_name = "DIR")]
    sources: Vec<PathBuf>,
    /// Results folder that the runs are copied to, as `<scenario>/<run>`. A run that is there already must have the same rows.
    #[arg(long, value_name = "DIR", default_value = "results")]
    into: PathBuf,
}

pub(super) fn merge(arguments: &Arguments) -> u8 {
    let merged = match sweep::merge(&arguments.sources, &arguments.into) {
        Ok(merged) => merged,
        Err(MergeError::Input(message)) => return refuse([Failure::input(message).refusal]),
        Err(MergeError::Mismatch(message)) => {
            complain(&message);
            return MISMATCH;
        }
        Err(MergeError::World(message)) => {
            complain(&message);
            return FAILED;
        }
    };
    for run in &merged.unfinished {
        tracing::warn!("`{}` has not ended and is left where it is", run.display());
    }
    let mut text = format!("{} runs copied, {} there already with the same rows\n", merged.copied, merged.equal);
    for (table, runs) in &merged.tables {
        text += &format!("{}: {runs} runs\n", table.display());
    }
    print(&text);
    DONE
}
