//! Evaluation of the server's model on the test set, or on the table that it fits, in parallel, summed in the order of the samples.

use super::{Plan, Workers};
use crate::model::Evaluation;

/// Samples of one piece of work.
const PIECE: u32 = 500;

/// Counts over the whole test set under each rotation that clients have.
pub(super) fn evaluate(plan: &Plan, model: &[f32], workers: &Workers<'_>) -> Vec<(u8, Evaluation)> {
    let n = plan.evaluated_samples() as u32;
    let rotations = plan.shards.rotations();
    let pieces: Vec<_> = rotations
        .iter()
        .flat_map(|&turns| (0..n).step_by(PIECE as usize).map(move |from| (turns, from..n.min(from + PIECE))))
        .collect();
    let counted = workers.map(pieces, |(turns, range), objective| (turns, objective.evaluate(model, range, turns)));
    let mut sums: Vec<(u8, Evaluation)> = rotations.into_iter().map(|turns| (turns, Evaluation::default())).collect();
    for (turns, evaluation) in counted {
        let (_, sum) = sums.iter_mut().find(|(of, _)| *of == turns).expect("every rotation has a sum");
        sum.add(evaluation);
    }
    sums
}

/// Accuracy by degrees; empty if nothing is rotated.
pub(super) fn accuracies(by_rotation: &[(u8, Evaluation)]) -> Vec<(u32, f64)> {
    if by_rotation.iter().all(|(turns, _)| *turns == 0) {
        return Vec::new();
    }
    by_rotation.iter().filter_map(|(turns, sum)| Some((90 * u32::from(*turns), sum.accuracy()?))).collect()
}
