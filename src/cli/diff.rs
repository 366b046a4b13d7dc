//! `fedbits diff`

use std::path::PathBuf;

use clap::Args;

use super::{DONE, MISMATCH, print, refuse_plot};
use crate::plot;

/// Name the first round and column in which two runs differ; exit code 4 if they do
#[derive(Args)]
pub struct Arguments {
    /// The folder of a run, or a CSV file.
    ///
    /// Names of runs and wall-clock times do not count. Where both runs have a `clients.csv`, its first difference is
    /// named too, and where both have a `scenario.toml`, the settings that differ.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other one.
    #[arg(value_name = "B")]
    b: PathBuf,
}

pub(super) fn diff(arguments: &Arguments) -> u8 {
    match plot::diff(&arguments.a, &arguments.b) {
        Ok(diff) => {
            print(&diff.text());
            if diff.is_equal() { DONE } else { MISMATCH }
        }
        Err(error) => refuse_plot(error),
    }
}
