//! `fedbits report`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{
    DONE,
    plot::{Way, bits},
    print, refuse_plot,
};
use crate::{
    plot::{self, Metric, PlotError, Report, Request},
    units,
};

/// Say in figures what runs came to: accuracy, bits and rounds to a target, against no compression, at a budget
#[derive(Args)]
pub struct Arguments {
    /// `rounds.csv` files, or folders with runs in them.
    ///
    /// Runs that differ in their seed alone become one group, with the mean over the seeds and its 95 % confidence
    /// interval (Student's t), below three seeds from the smallest value to the largest.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Value to reach: `0.97` is an accuracy of 97 %; a distance is reached from above. It counts from the first
    /// evaluated round that reaches it. Default: the highest whole percent, for distances the smallest power of ten,
    /// that at least half of the groups reach with all their seeds.
    #[arg(long, value_name = "VALUE")]
    target: Option<f64>,
    /// What is measured. Default: accuracy, or distance if the runs have no accuracies.
    #[arg(long, value_name = "NAME")]
    metric: Option<MetricName>,
    /// Whose bits count.
    #[arg(long, value_name = "WAY", default_value = "up")]
    bits: Way,
    /// Also the value that so many bits pay for: `800 bits`, `10 kB`, `1.5MB`; may be given several times.
    ///
    /// It is that of the last evaluation within the budget. `MB` is 10^6 bytes; a number without a unit counts bits.
    #[arg(long, value_name = "BITS")]
    budget: Vec<units::Bits>,
    /// Columns that tell groups apart. Default: the settings in which runs differ, the seed apart.
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    group: Option<Vec<String>>,
    /// How it is written.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum MetricName {
    /// Share of the test samples that are classified correctly
    Accuracy,
    /// Squared distance to the optimum, relative to that of the start
    Distance,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A table for the terminal
    Text,
    /// A table for documents
    Markdown,
    /// One row a group, units in the names of columns
    Csv,
    /// The same names, and remarks
    Json,
}

pub(super) fn report(arguments: &Arguments) -> u8 {
    match make(arguments) {
        Ok(report) => {
            print(&match arguments.format {
                Format::Text => report.text(),
                Format::Markdown => report.markdown(),
                Format::Csv => report.csv(),
                Format::Json => report.json(),
            });
            DONE
        }
        Err(error) => refuse_plot(error),
    }
}

fn make(arguments: &Arguments) -> Result<Report, PlotError> {
    let (tables, mut notes) = plot::read(&arguments.paths)?;
    let request = Request {
        metric: arguments.metric.map(|name| match name {
            MetricName::Accuracy => Metric::Accuracy,
            MetricName::Distance => Metric::Distance,
        }),
        target: arguments.target,
        bits: bits(arguments.bits),
        budgets: arguments.budget.clone(),
        group: arguments.group.clone(),
    };
    let mut report = plot::report(&tables, &request)?;
    notes.append(&mut report.notes);
    for note in &notes {
        tracing::warn!("{note}");
    }
    report.notes = notes;
    Ok(report)
}
