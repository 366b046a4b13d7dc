//! What a run writes down: every CSV column once, and who is told of it.

use serde::Serialize;

use super::{Capture, Checkpoint, Plan, star::ClientRound};
use crate::{compress::granularity::Cut, link::PartSums};

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Clients reported and the model moved on.
    Ok,
    /// No client was drawn or none reported: the model is unchanged.
    NoClients,
    /// A value was not finite; the run ends.
    Diverged,
}

/// One row of `rounds.csv`. Field names are column names; absent values are empty cells. Bits are bits of the round unless the name
/// says cumulative.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundRecord {
    /// Name of the run: its folder.
    pub run: String,
    /// Name of the scenario: its file without ending.
    pub scenario: String,
    /// Method.
    pub method: String,
    /// Operator of the uplink.
    pub operator: String,
    /// Seed.
    pub seed: u64,
    /// Round, counted from 1.
    pub round: u32,
    /// Share of test images, or rows of a table, that the server's model after the round classifies correctly; empty if it was not
    /// evaluated or does not classify.
    pub test_accuracy: Option<f64>,
    /// Mean loss of the same evaluation: the cross-entropy; for regression on a table the objective over all rows that clients hold.
    pub test_loss: Option<f64>,
    /// Squared distance of the server's model after the round from the optimum, relative to that of the start; empty where the
    /// optimum is not known.
    pub distance_to_optimum: Option<f64>,
    /// Mean over all samples that clients used this round of the loss just before their step.
    pub train_loss: Option<f64>,
    /// Learning rate of the local steps.
    pub learning_rate: Option<f64>,
    /// Clients drawn for the round.
    pub clients_selected: u64,
    /// Clients whose message arrived.
    pub clients_reported: u64,
    /// Wire bits from clients to the server.
    pub uplink_bits: u64,
    /// Wire bits from the server to clients, every copy counted.
    pub downlink_bits: u64,
    /// Wire bits between peers.
    pub peer_bits: u64,
    /// Uplink bits of all rounds so far.
    pub cumulative_uplink_bits: u64,
    /// Downlink bits of all rounds so far.
    pub cumulative_downlink_bits: u64,
    /// Peer bits of all rounds so far.
    pub cumulative_peer_bits: u64,
    /// Bits of all messages of the round, both directions, before the padding of their last byte.
    pub payload_bits: u64,
    /// Information of all messages of the round, both directions, whatever the coder.
    pub information_bits: f64,
    /// Mean over the reporting clients of the relative squared error of their message.
    pub compression_error: Option<f64>,
    /// Wall-clock time of the round with its evaluation.
    pub wall_seconds: f64,
    /// Simulated time from the start of the run to the end of the round; empty without a time model.
    pub simulated_seconds: Option<f64>,
    /// First 16 hexadecimal digits of the SHA-256 of the server's model.
    pub model_digest: String,
    /// How the round ended.
    pub status: Status,
}

/// One row of `clients.csv`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientRecord {
    /// Round, counted from 1.
    pub round: u32,
    /// Client.
    pub client: u32,
    /// Samples that the client holds.
    pub samples: u64,
    /// Local steps that it took.
    pub local_steps: Option<u64>,
    /// Mean loss of the samples that it used, just before their step.
    pub train_loss: Option<f64>,
    /// Wire bits that it sent.
    pub uplink_bits: u64,
    /// Wire bits that it received.
    pub downlink_bits: u64,
    /// Bits that it sent, before the padding of their last byte.
    pub uplink_payload_bits: u64,
    /// Information that it sent.
    pub uplink_information_bits: f64,
    /// Relative squared error of its message.
    pub compression_error: Option<f64>,
    /// Whether its message arrived.
    pub reported: bool,
}

impl ClientRecord {
    pub(super) fn new(round: u32, samples: u64, client: &ClientRound) -> Self {
        let report = client.report;
        Self {
            round,
            client: client.client,
            samples,
            local_steps: report.map(|report| report.steps),
            train_loss: report.and_then(|report| mean(report.loss_sum, report.samples)),
            uplink_bits: client.uplink_bits,
            downlink_bits: client.downlink_bits,
            uplink_payload_bits: client.payload_bits,
            uplink_information_bits: client.information_bits,
            compression_error: report.map(|report| report.compression_error),
            reported: report.is_some(),
        }
    }
}

/// One row of `layers.csv`: what the uplink did to one part of the vector, summed over the clients of a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerRecord {
    /// Name of the run: its folder.
    pub run: String,
    /// Round, counted from 1.
    pub round: u32,
    /// The part: name of its layer, or of its first and its last one.
    pub part: String,
    /// Number of layers in it, pieces counted.
    pub layers: u64,
    /// Number of values in it.
    pub values: u64,
    /// Bits of the part in all messages of the round, before the padding of a message.
    pub payload_bits: u64,
    /// Sum over the messages of the squared error.
    pub squared_error: f64,
    /// Sum over the messages of the squared norm of what was compressed.
    pub squared_norm: f64,
}

impl LayerRecord {
    /// The rows of a round; none unless the scenario asks for them and a client reported.
    pub(super) fn of_round(plan: &Plan, round: u32, clients: &[ClientRound]) -> Vec<Self> {
        let parts = plan.setup.uplink.codec.parts();
        let mut sums = vec![PartSums::default(); parts.len()];
        let reporting: Vec<_> = clients.iter().filter(|client| !client.trace.parts.is_empty()).collect();
        for client in &reporting {
            sums.iter_mut().zip(&client.trace.parts).for_each(|(sums, part)| *sums += *part);
        }
        if reporting.is_empty() {
            return Vec::new();
        }
        let row = |(part, sums): (&Cut, PartSums)| Self {
            run: plan.run.clone(),
            round,
            part: name(part),
            layers: part.layers.len() as u64,
            values: part.values.len() as u64,
            payload_bits: sums.payload_bits,
            squared_error: sums.squared_error,
            squared_norm: sums.squared_norm,
        };
        parts.iter().zip(sums).map(row).collect()
    }
}

fn name(part: &Cut) -> String {
    match &part.layers[..] {
        [first, .., last] => format!("{}..{}", first.name, last.name),
        layers => layers.iter().map(|layer| layer.name.clone()).collect(),
    }
}

pub(super) fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// All rounds were run.
    Rounds,
    /// The accuracy of `stop.accuracy` was reached.
    Accuracy,
    /// The distance of `stop.distance` was reached.
    Distance,
    /// The bits of `stop.total_bits` or `stop.uplink_bits` were spent.
    Bits,
    /// A value was not finite.
    Diverged,
    /// The user interrupted it.
    Interrupted,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Why it ended.
    pub end: End,
    /// What was not finite, if so.
    pub reason: Option<String>,
    /// Rounds that were run.
    pub rounds: u32,
    /// Accuracy of the last evaluation.
    pub test_accuracy: Option<f64>,
    /// Loss of the last evaluation.
    pub test_loss: Option<f64>,
    /// Squared distance of the final model from the optimum, relative to that of the start.
    pub distance_to_optimum: Option<f64>,
    /// Best accuracy of any evaluation.
    pub best_accuracy: Option<f64>,
    /// Accuracy of the last evaluation under each rotation of the test set, by degrees; empty unless clients rotate.
    pub accuracy_by_rotation: Vec<(u32, f64)>,
    /// Bits of the whole run.
    pub totals: crate::network::Totals,
    /// Wall-clock time.
    pub wall_seconds: f64,
    /// SHA-256 of the final model.
    pub model_digest: String,
}

/// Is told what happens in a run: files, the terminal.
pub trait Observer {
    /// A client's part in a round; told before the round itself, only if the scenario asks for it.
    ///
    /// # Errors
    /// Ends the run.
    fn client(&mut self, _record: &ClientRecord) -> Result<(), String> {
        Ok(())
    }

    /// What became of one part of the messages of a round; told before the round itself, only if the scenario asks for it.
    ///
    /// # Errors
    /// Ends the run.
    fn layer(&mut self, _record: &LayerRecord) -> Result<(), String> {
        Ok(())
    }

    /// A vector is to be stored; told before the round itself.
    ///
    /// # Errors
    /// Ends the run.
    fn capture(&mut self, _capture: &Capture) -> Result<(), String> {
        Ok(())
    }

    /// A round is over.
    ///
    /// # Errors
    /// Ends the run.
    fn round(&mut self, record: &RoundRecord) -> Result<(), String>;

    /// The rounds told so far can be gone on from; told now and then, and when a run that may be gone on with is over.
    ///
    /// # Errors
    /// Ends the run.
    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<(), String> {
        Ok(())
    }

    /// The run is over.
    ///
    /// # Errors
    /// Is reported.
    fn end(&mut self, _plan: &Plan, _summary: &Summary) -> Result<(), String> {
        Ok(())
    }
}
