//! Runs: from a checked scenario to rows.
//!
//! [`Plan`] turns a scenario into live objects, [`run`] is the loop, [`Star`] is one round of a server and its clients, and an
//! [`Observer`] is told of every round.

mod capture;
mod checkpoint;
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
pub use checkpoint::{Checkpoint, CheckpointError, Evaluated};
pub use plan::{DataCache, Plan, RESULTS_VERSION, differences_of, link, run_folder, slots};
pub use record::{ClientRecord, End, LayerRecord, Observer, RoundRecord, Status, Summary};
pub use sampling::{Participation, Sampling, Weights};
pub use star::{ClientRound, Round, Star};
pub use workers::Workers;

use checkpoint::{Pace, State};

use crate::{digest::sha256_floats, model::Evaluation, vector::first_non_finite};

#[cfg(test)]
mod laws;

/// Runs a plan on `threads` threads, from its beginning or from a checkpoint, telling every observer; `interrupt` ends it after the
/// round in which it is set.
///
/// # Errors
/// If the checkpoint is of another run, an observer fails, threads cannot be started, or a message cannot be read, which is a fault of
/// the program.
pub fn run(
    plan: &Plan,
    threads: usize,
    from: Option<Checkpoint>,
    observers: &mut [&mut dyn Observer],
    interrupt: &AtomicBool,
) -> Result<Summary, String> {
    let workers = Workers::new(threads, || plan.objective())?;
    let mut star = plan.star();
    let started = Instant::now();
    let (mut evaluated, mut passed, mut before, mut left) = (Evaluated::default(), 0, 0.0, MOST_CAPTURES);
    if let Some(checkpoint) = from {
        checkpoint.check(plan)?;
        let state = checkpoint.restore(&mut star)?;
        (evaluated, passed, before, left) = (state.evaluated, state.round, state.wall_seconds, state.captures_left);
    }
    let mut captures = capture::Captures::new(plan, left);
    let mut pace = Pace::new(plan.general.run.checkpoint_every);
    let general = &plan.general;
    let (mut round, mut end, mut reason) = (passed, None, None);
    while end.is_none() {
        round += 1;
        let round_started = Instant::now();
        let drawn = plan.participation.draw(&plan.holders, general.seed, round);
        let captured = captures.choose(round, &drawn);
        let moved = captures.displacement(&captured, star.model());
        star.record(&captured, general.record.layers);
        let mut outcome = star.round(round, &drawn, &workers).map_err(|failure| format!("round {round}: {failure}"))?;
        if plan.is_near(star.model()) {
            end = Some(End::Distance);
        } else if plan.has_spent(star.network().ledger.totals()) {
            end = Some(End::Bits);
        } else if round >= general.rounds {
            end = Some(End::Rounds);
        }
        // The last model is evaluated whatever ends the run; but a longer run would not have evaluated it in this round, and goes on
        // as if this one had not.
        let is_regular = round % general.evaluate_every == 0;
        let known = evaluated.clone();
        let evaluation = if end.is_some() || is_regular {
            let by_rotation = evaluate::evaluate(plan, star.model(), &workers);
            let mut all = Evaluation::default();
            by_rotation.iter().for_each(|(_, evaluation)| all.add(*evaluation));
            evaluated.accuracy_by_rotation = evaluate::accuracies(&by_rotation);
            all
        } else {
            Evaluation::default()
        };
        let mut record = plan.record(round, &outcome, &evaluation, &star);
        reason = outcome.diverged.take().or_else(|| not_finite(plan, round, &record, star.model()));
        if plan.is_reached(record.test_accuracy) {
            end = Some(End::Accuracy);
        }
        if reason.is_some() {
            record.status = Status::Diverged;
            end = Some(End::Diverged);
        }
        if end.is_none() && interrupt.load(Ordering::Relaxed) {
            end = Some(End::Interrupted);
        }
        if record.test_loss.is_some() {
            (evaluated.accuracy, evaluated.loss) = (record.test_accuracy, record.test_loss);
            evaluated.best_accuracy = evaluated.best_accuracy.into_iter().chain(record.test_accuracy).reduce(f64::max);
        }
        record.wall_seconds = round_started.elapsed().as_secs_f64();
        let layers = LayerRecord::of_round(plan, round, &outcome.clients);
        let captured = capture::of_round(round, moved, &mut outcome.clients);
        for observer in observers.iter_mut() {
            if general.record.clients {
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
        let goes_on = matches!(end, None | Some(End::Interrupted | End::Rounds));
        if goes_on && (end.is_some() || pace.is_due(round)) {
            let seconds = before + started.elapsed().as_secs_f64();
            let known = if is_regular { evaluated.clone() } else { known };
            let state = State::new(plan, round, seconds, captures.left(), known);
            pace.spend(|| {
                let checkpoint = Checkpoint::take(state, &mut star);
                observers.iter_mut().try_for_each(|observer| observer.checkpoint(&checkpoint))
            })?;
        }
    }
    let summary = Summary {
        end: end.unwrap_or(End::Rounds),
        reason,
        rounds: round,
        test_accuracy: evaluated.accuracy,
        test_loss: evaluated.loss,
        distance_to_optimum: plan.distance(star.model()),
        best_accuracy: evaluated.best_accuracy,
        accuracy_by_rotation: evaluated.accuracy_by_rotation,
        totals: *star.network().ledger.totals(),
        wall_seconds: before + started.elapsed().as_secs_f64(),
        model_digest: sha256_floats(star.model()),
    };
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
