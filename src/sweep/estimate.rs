//! What a sweep will cost: bits from messages like the ones to come, time from two rounds of a cell.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use super::Cell;
use crate::run::{self, DataCache, Observer, Plan, RoundRecord};

/// Time that all trials together may take; cells beyond it are taken to be as slow as the ones before.
const MOST: Duration = Duration::from_secs(20);

/// What a group of cells that differ in the seed alone will cost, each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// What the axes are.
    pub label: String,
    /// Numbers of the cells.
    pub cells: Vec<usize>,
    /// Wire bits of a run, up and down.
    pub bits: [u64; 2],
    /// Whether lengths of messages depend on values, so that the bits are not exact.
    pub varies: [bool; 2],
    /// Seconds of a run on the threads of a cell.
    pub seconds: f64,
}

/// Tries the first cell of every group for two rounds on so many threads, the second one evaluated.
///
/// # Errors
/// If a trial cannot be run.
pub fn estimate(cells: &[&Cell], threads: usize, cache: &mut DataCache) -> Result<Vec<Estimate>, String> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        match groups.iter_mut().find(|(label, _)| *label == cell.label) {
            Some((_, group)) => group.push(i),
            None => groups.push((cell.label.clone(), vec![i])),
        }
    }
    let (started, mut tried, mut all) = (Instant::now(), Vec::new(), Vec::new());
    for (label, group) in groups {
        let cell = cells[group[0]];
        let plan = Plan::new(&cell.document, cache).map_err(|refusal| refusal.reasons())?;
        let (rounds, every) = (f64::from(plan.general.rounds), f64::from(plan.general.evaluate_every));
        let (round, evaluation) = if tried.is_empty() || started.elapsed() < MOST {
            let pace = trial(cell, threads, cache)?;
            tried.push(pace);
            pace
        } else {
            let sum = tried.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            (sum.0 / tried.len() as f64, sum.1 / tried.len() as f64)
        };
        let messages = plan.participation.count(plan.holders.len()) as u64 * u64::from(plan.general.rounds);
        all.push(Estimate {
            label,
            cells: group,
            bits: plan.message_bits().map(|bits| bits.saturating_mul(messages)),
            varies: plan.bits_vary(),
            seconds: rounds * round + (rounds / every).ceil() * evaluation,
        });
    }
    Ok(all)
}

/// Seconds of a round and of an evaluation.
fn trial(cell: &Cell, threads: usize, cache: &mut DataCache) -> Result<(f64, f64), String> {
    let mut document = cell.document.clone();
    for text in ["rounds=2", "evaluate_every=2"] {
        document.lay(text).map_err(|mistake| mistake.message)?;
    }
    let plan = Plan::new(&document, cache).map_err(|refusal| refusal.reasons())?;
    let mut clock = Clock(Vec::new());
    run::run(&plan, threads, None, &mut [&mut clock], &AtomicBool::new(false))?;
    let round = clock.0[0];
    Ok((round, clock.0.get(1).map_or(0.0, |second| (second - round).max(0.0))))
}

/// Notes how long rounds take.
struct Clock(Vec<f64>);

impl Observer for Clock {
    fn round(&mut self, record: &RoundRecord) -> Result<(), String> {
        self.0.push(record.wall_seconds);
        Ok(())
    }
}
