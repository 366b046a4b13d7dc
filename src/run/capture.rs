//! Vectors of a run that are stored on request: which ones, and how they are handed out.

use super::{Plan, star::ClientRound};
use crate::{
    rng::{Address, Purpose, unit_f64},
    vector::difference,
};

/// Messages that a run captures at most.
pub const MOST_CAPTURES: usize = 1000;

/// A stored vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Round, counted from 1.
    pub round: u32,
    /// The client whose update it is, as it was given to the codec; none for the change of the server's model from the start of
    /// the run to the start of the round.
    pub client: Option<u32>,
    /// The vector.
    pub vector: Vec<f32>,
}

/// Chooses messages: each by a draw of its own, whatever else is drawn.
pub(super) struct Captures<'a> {
    plan: &'a Plan,
    left: usize,
}

impl<'a> Captures<'a> {
    pub(super) fn new(plan: &'a Plan, left: usize) -> Self {
        Self { plan, left }
    }

    /// Messages that may still be captured.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The clients among `drawn` whose vectors are stored, in order of their numbers.
    pub(super) fn choose(&mut self, round: u32, drawn: &[u32]) -> Vec<u32> {
        use rand::Rng;
        let Some(share) = self.plan.general.record.capture else { return Vec::new() };
        let address = Address::new(self.plan.general.seed, Purpose::Capture).round(u64::from(round));
        let is_chosen = |client: &&u32| unit_f64(address.node(**client).generator().next_u64()) < share;
        let chosen: Vec<u32> = drawn.iter().filter(is_chosen).take(self.left).copied().collect();
        self.left -= chosen.len();
        chosen
    }

    /// How far the model has come, in rounds of which something is stored.
    pub(super) fn displacement(&self, chosen: &[u32], model: &[f32]) -> Option<Vec<f32>> {
        if chosen.is_empty() {
            return None;
        }
        let mut moved = vec![0.0; model.len()];
        difference(model, &self.plan.setup.start, &mut moved);
        Some(moved)
    }
}

/// What is stored of a round. Vectors move out of the clients' records.
pub(super) fn of_round(round: u32, moved: Option<Vec<f32>>, clients: &mut [ClientRound]) -> Vec<Capture> {
    let of_client = |client: &mut ClientRound| {
        let vector = client.trace.vector.take()?;
        Some(Capture { round, client: Some(client.client), vector })
    };
    let mut all: Vec<Capture> = clients.iter_mut().filter_map(of_client).collect();
    if let (false, Some(vector)) = (all.is_empty(), moved) {
        all.push(Capture { round, client: None, vector });
    }
    all
}
