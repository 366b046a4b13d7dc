//! Runs: from a checked scenario to rows.
//!
//! [`Plan`] turns a scenario into live objects, [`run`] is the loop, [`Star`] is one round of a server and its clients, and an
//! [`Observer`] is told of every round.

mod capture;
mod evaluate;
mod plan;
mod record;
mod sampling;
mod star;
mod workers;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

pub use capture::{Capture, MOST_CAPTURES};
pub use plan::{DataCache, Plan, RESULTS_VERSION, link, run_folder, slots};
pub use record::{ClientRecord, End, LayerRecord, Observer, RoundRecord, Status, Summary};
pub use sampling::{Participation, Sampling, Weights};
pub use star::{ClientRound, Round, Star};
pub use workers::Workers;

use crate::{digest::sha256_floats, model::Evaluation, network::Totals, vector::first_non_finite};

#[cfg(test)]
mod laws;

/// Runs a plan on `threads` threads, telling every observer; `interrupt` ends it after the round in which it is set.
///
/// # Errors
/// If an observer fails, threads cannot be started, or a message cannot be read, which is a fault of the program.
pub fn run(
    plan: &Plan,
    threads: usize,
    observers: &mut [&mut dyn Observer],
    interrupt: &AtomicBool,
) -> Result<Summary, String> {
    let workers = Workers::new(threads, || plan.objective())?;
    let mut star = plan.star();
    let mut captures = capture::Captures::new(plan);
    let started = Instant::now();
    let mut summary = Summary {
        end: End::Rounds,
        reason: None,
        rounds: 0,
        test_accuracy: None,
        test_loss: None,
        distance_to_optimum: None,
        best_accuracy: None,
        accuracy_by_rotation: Vec::new(),
        totals: Totals::default(),
        wall_seconds: 0.0,
        model_digest: String::new(),
    };
    for round in 1..=plan.general.rounds {
        let round_started = Instant::now();
        let drawn = plan.participation.draw(&plan.holders, plan.general.seed, round);
        let captured = captures.choose(round, &drawn);
        let moved = captures.displacement(&captured, star.model());
        star.record(&captured, plan.general.record.layers);
        let mut outcome = star.round(round, &drawn, &workers).map_err(|failure| format!("round {round}: {failure}"))?;
        let interrupted = interrupt.load(Ordering::Relaxed);
        let mut end = if plan.is_near(star.model()) {
            Some(End::Distance)
        } else if round == plan.general.rounds {
            Some(End::Rounds)
        } else if plan.has_spent(star.network().ledger.totals()) {
            Some(End::Bits)
        } else {
            interrupted.then_some(End::Interrupted)
        };
        // The last model is evaluated whatever ends the run.
        let evaluation = if end.is_some() || round % plan.general.evaluate_every == 0 {
            let by_rotation = evaluate::evaluate(plan, star.model(), &workers);
            summary.accuracy_by_rotation = evaluate::accuracies(&by_rotation);
            let mut all = Evaluation::default();
            by_rotation.iter().for_each(|(_, evaluation)| all.add(*evaluation));
            all
        } else {
            Evaluation::default()
        };
        let mut record = plan.record(round, &outcome, &evaluation, &star);
        summary.reason = outcome.diverged.or_else(|| not_finite(plan, round, &record, star.model()));
        if plan.is_reached(record.test_accuracy) {
            end = Some(End::Accuracy);
        }
        if summary.reason.is_some() {
            record.status = Status::Diverged;
            end = Some(End::Diverged);
        }
        record.wall_seconds = round_started.elapsed().as_secs_f64();
        summary.rounds = round;
        summary.totals = *star.network().ledger.totals();
        summary.wall_seconds = started.elapsed().as_secs_f64();
        summary.distance_to_optimum = record.distance_to_optimum;
        if record.test_loss.is_some() {
            (summary.test_accuracy, summary.test_loss) = (record.test_accuracy, record.test_loss);
            let best = summary.best_accuracy.into_iter().chain(record.test_accuracy).reduce(f64::max);
            summary.best_accuracy = best;
        }
        let layers = LayerRecord::of_round(plan, round, &outcome.clients);
        let captured = capture::of_round(round, moved, &mut outcome.clients);
        for observer in observers.iter_mut() {
            if plan.general.record.clients {
                for client in &outcome.clients {
                    observer.client(&ClientRecord::new(round, plan.samples(client.client), client))?;
                }
            }
            for layer in &layers {
                observer.layer(layer)?;
            }
            for capture in &captured {
                observer.capture(capture)?;
            }
            observer.round(&record)?;
        }
        if let Some(end) = end {
            summary.end = end;
            break;
        }
    }
    summary.model_digest = sha256_floats(star.model());
    for observer in observers.iter_mut() {
        observer.end(plan, &summary)?;
    }
    Ok(summary)
}

/// What is not finite after a round, if anything.
fn not_finite(plan: &Plan, round: u32, record: &RoundRecord, model: &[f32]) -> Option<String> {
    if let Some(at) = first_non_finite(model) {
        let (layer, value) = (plan.setup.layout.name_at(at), model[at]);
        return Some(format!("round {round}, server: a value of layer `{layer}` of the model is {value}"));
    }
    let losses = [("training loss", record.train_loss), ("test loss", record.test_loss)];
    let (name, loss) =
        losses.into_iter().find_map(|(name, loss)| Some((name, loss.filter(|loss| !loss.is_finite())?)))?;
    Some(format!("round {round}: the {name} is {loss}"))
}
