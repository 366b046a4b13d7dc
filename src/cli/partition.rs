//! `fedbits partition`

use std::{io::Write, path::PathBuf};

use clap::Args;

use super::{DONE, FAILED, Failure, Scenarios, complain, print, refuse};
use crate::{
    partition::{Passport, indices_csv},
    run::{DataCache, Plan},
};

/// Show who holds which samples: the passport of a scenario's partition
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    scenarios: Scenarios,
    /// Write one row a client to this new file: samples, labels, distance to uniform.
    #[arg(long, value_name = "FILE.csv")]
    export: Option<PathBuf>,
    /// Write the index of every sample of every client to this new file; `partition.name = "file"` reads it back.
    #[arg(long, value_name = "FILE.csv")]
    indices: Option<PathBuf>,
}

pub(super) fn partition(arguments: &Arguments) -> u8 {
    let documents = match arguments.scenarios.load(&[]) {
        Ok(documents) => documents,
        Err(refusals) => return refuse(refusals),
    };
    let files = [&arguments.export, &arguments.indices];
    if documents.len() > 1 && files.iter().any(|file| file.is_some()) {
        return refuse([Failure::input("`--export` and `--indices` take one scenario").refusal]);
    }
    if let Some(file) = files.into_iter().flatten().find(|file| file.exists()) {
        return refuse([
            Failure::input(format!("`{}` is there already and is not overwritten", file.display())).refusal
        ]);
    }
    let mut cache = DataCache::default();
    for document in &documents {
        let plan = match Plan::new(document, &mut cache) {
            Ok(plan) => plan,
            Err(refusal) => return refuse([refusal]),
        };
        let (partition, dataset) = (&plan.shards.partition, &plan.shards.dataset);
        let passport = Passport::new(partition, &dataset.train.labels, dataset.classes);
        print(&format!("{}\n{}\n", plan.scenario, passport.summary()));
        let files = [
            (&arguments.export, passport.to_csv()),
            (&arguments.indices, arguments.indices.as_ref().map_or(String::new(), |_| indices_csv(partition))),
        ];
        for (path, text) in files {
            let Some(path) = path else { continue };
            // Nothing a user made is overwritten.
            let written = fs_err::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
            if let Err(error) = written {
                complain(&error.to_string());
                return FAILED;
            }
        }
    }
    DONE
}
