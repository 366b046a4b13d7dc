//! Runs that are run again and compared with what stands in their folder.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    State,
    folder::{CLIENTS, LAYERS, ROUNDS, manifest_of},
    table::{Replay, read},
};
use crate::run::{ClientRecord, LayerRecord, Observer, Plan, RoundRecord};

/// Compares every row of a run with the tables of its folder, times apart; nothing is written.
pub struct Verifier<'a> {
    rounds: Replay,
    clients: Option<Replay>,
    layers: Option<Replay>,
    last_round: u32,
    /// Set once all rows that are asked for have come again.
    done: &'a AtomicBool,
}

impl<'a> Verifier<'a> {
    /// Opens the tables of a run, for its first `most` rounds or all that stand there; the plan gets the names that stand in them.
    ///
    /// # Errors
    /// If there is no such run, or if its `run.json` speaks of other data than the plan.
    pub fn open(path: &Path, plan: &mut Plan, most: Option<u32>, done: &'a AtomicBool) -> Result<Self, String> {
        if State::of(path) == State::Running {
            return Err(format!("another process is at work on `{}`", path.display()));
        }
        let manifest = manifest_of(path);
        for (key, here) in [
            ("data_digest", &plan.shards.dataset.digest),
            ("partition_digest", &plan.partition_digest),
            ("start_digest", &plan.start_digest),
        ] {
            if let Some(there) = manifest[key].as_str().filter(|there| there != here) {
                return Err(format!("`{key}` is {there} in `run.json`, and {here} here"));
            }
        }
        for (name, field) in [("run", &mut plan.run), ("scenario", &mut plan.scenario)] {
            if let Some(there) = manifest[name].as_str() {
                there.clone_into(field);
            }
        }
        let table = |name: &str| read(&path.join(name)).map(Replay::new).map_err(|error| error.to_string());
        let wanted = |is_wanted: bool, name| is_wanted.then(|| table(name)).transpose();
        let rounds = table(ROUNDS)?;
        let record = &plan.general.record;
        Ok(Self {
            last_round: most.unwrap_or(u32::MAX).min(rounds.left() as u32),
            rounds,
            clients: wanted(record.clients, CLIENTS)?,
            layers: wanted(record.layers, LAYERS)?,
            done,
        })
    }

    /// The last round that is compared.
    pub fn last_round(&self) -> u32 {
        self.last_round
    }
}

impl Observer for Verifier<'_> {
    fn client(&mut self, record: &ClientRecord) -> Result<(), String> {
        self.clients.as_mut().filter(|_| record.round <= self.last_round).map_or(Ok(()), |table| table.next(record))
    }

    fn layer(&mut self, record: &LayerRecord) -> Result<(), String> {
        self.layers.as_mut().filter(|_| record.round <= self.last_round).map_or(Ok(()), |table| table.next(record))
    }

    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        if record.round <= self.last_round {
            self.rounds.next(record)?;
        }
        // The flag is seen after the next round, which is not compared.
        self.done.fetch_or(record.round >= self.last_round, Ordering::SeqCst);
        Ok(())
    }
}
