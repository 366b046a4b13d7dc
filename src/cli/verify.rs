//! `fedbits verify`

use std::{path::PathBuf, sync::atomic::Ordering};

use clap::Args;

use super::{
    DONE, Failure, INTERRUPTED, MISMATCH, ProgressArguments, complain, interruption, print, refuse,
    run::default_threads,
};
use crate::{
    run::{self, DataCache, Observer, Plan},
    scenario::Document,
    sink::{Mode, Progress, SCENARIO, Verifier},
};

/// Run a run again and compare it with its folder, row by row; exit code 4 if it comes out otherwise
///
/// Nothing is written. Times and captured vectors are not compared.
#[derive(Args)]
pub struct Arguments {
    /// The folder of a run.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Compare only so many rounds from the beginning. Default: all that stand there.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Clients that work at the same time; the results do not depend on it. Default: one a core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    progress: ProgressArguments,
}

pub(super) fn verify(arguments: &Arguments) -> u8 {
    let file = arguments.run.join(SCENARIO);
    if !file.is_file() {
        let message = format!("`{}` is not the folder of a run: it has no `{SCENARIO}`", arguments.run.display());
        return refuse([Failure::input(message).refusal]);
    }
    let plan = Document::load(&file, &[]).and_then(|document| Plan::new(&document, &mut DataCache::default()));
    let mut plan = match plan {
        Ok(plan) => plan,
        Err(refusal) => return refuse([refusal]),
    };
    let stop = interruption();
    let mut verifier = match Verifier::open(&arguments.run, &mut plan, arguments.rounds, &stop) {
        Ok(verifier) => verifier,
        Err(message) => {
            complain(&message);
            return MISMATCH;
        }
    };
    let rounds = verifier.last_round();
    if rounds == 0 {
        return refuse([Failure::input(format!("there is no round in `{}` yet", arguments.run.display())).refusal]);
    }
    let mode = arguments.progress.mode();
    let mut progress = Progress::new(&plan.scenario, rounds, 0, mode);
    let mut observers: Vec<&mut dyn Observer> = vec![&mut verifier];
    if mode != Mode::Silent {
        observers.push(&mut progress);
    }
    let threads = arguments.threads.map_or_else(default_threads, usize::from);
    match run::run(&plan, threads, None, &mut observers, &stop) {
        Ok(summary) if summary.rounds >= rounds => {
            print(&format!("{rounds} rounds of {} come out as they stand there\n", plan.run));
            DONE
        }
        Ok(summary) if stop.load(Ordering::SeqCst) => {
            print(&format!("interrupted after {} rounds, all of which are equal\n", summary.rounds));
            INTERRUPTED
        }
        Ok(summary) => {
            complain(&format!("the run ends after round {}, but {rounds} rounds stand there", summary.rounds));
            MISMATCH
        }
        Err(message) => {
            complain(&message);
            MISMATCH
        }
    }
}
