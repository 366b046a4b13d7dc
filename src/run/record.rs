//! What a run writes down: every CSV column once, and who is told of it.

use serde::Serialize;

use super::{Plan, star::ClientRound};

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
    /// Simulated time of the round; empty without a time model.
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

    /// A round is over.
    ///
    /// # Errors
    /// Ends the run.
    fn round(&mut self, record: &RoundRecord) -> Result<(), String>;

    /// The run is over.
    ///
    /// # Errors
    /// Is reported.
    fn end(&mut self, _plan: &Plan, _summary: &Summary) -> Result<(), String> {
        Ok(())
    }
}
