//! Methods: what a server and its clients compute, send and absorb in each phase of a round; one file each.
//!
//! A method knows no files and no threads. It makes [`Node`]s; the loop hands them their messages and their surroundings ([`Env`])
//! and carries what they emit. Clients live only while they take part; what must outlast a round is visited by
//! [`Node::memory`], and nothing else of them is kept.

mod fedavg;
mod fedprox;
pub mod local_steps;
pub mod server_optimiser;

use std::sync::Arc;

use crate::{
    catalogue::Entry,
    compress::Misfit,
    entry,
    layout::Layout,
    link::{Link, PartSums, Sender, Sent, Unsendable},
    network::{Message, NodeId, Outbox},
    payload::Corrupt,
    rng::{Address, Purpose, Streams, unit_f64},
    train::Objective,
    wire::Packet,
};

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The centre of a star.
    Server,
    /// One of its clients.
    Client,
}

/// What a node is made from.
#[derive(Clone)]
pub struct Setup {
    /// Layers of the model.
    pub layout: Arc<Layout>,
    /// The model before the first round.
    pub start: Arc<Vec<f32>>,
    /// Clients to server.
    pub uplink: Link,
    /// Server to clients.
    pub downlink: Link,
    /// Rounds of the whole run, for schedules.
    pub rounds: u32,
}

/// What every node knows of the others without a message: it follows from the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// Weight of each client in an average: its number of samples, or 1.
    pub weights: Vec<f64>,
    /// Share of the total weight that takes part on average, where a client's chance does not depend on the others: the estimate
    /// then divides by it. `None` divides by the weight of those that did take part.
    pub expected_share: Option<f64>,
}

impl Population {
    /// Sum of all weights.
    pub fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }
}

/// What a client measured while it worked: for the CSV, not on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Local steps taken.
    pub steps: u64,
    /// Samples used, repetitions counted.
    pub samples: u64,
    /// Sum of the losses of those samples just before their step.
    pub loss_sum: f64,
    /// Relative squared error of the compressed message.
    pub compression_error: f64,
    /// The learning rate.
    pub learning_rate: f64,
}

/// What is recorded of a client's messages on request, beside their bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Whether the vector is wanted.
    pub wants_vector: bool,
    /// Whether the parts are wanted.
    pub wants_parts: bool,
    /// The vector that was compressed, of the last message of the round.
    pub vector: Option<Vec<f32>>,
    /// Bits and distortion of every part of all messages of the round.
    pub parts: Vec<PartSums>,
}

/// The surroundings of a node in one phase of one round.
pub struct Env<'a> {
    /// Seed of the scenario.
    pub seed: u64,
    /// Number of the round, counted from 1.
    pub round: u32,
    /// Number of the phase in the round, counted from 0.
    pub phase: usize,
    /// The node itself.
    pub id: NodeId,
    /// All clients.
    pub population: &'a Population,
    /// The losses of all clients, where the node computes on data.
    pub objective: Option<&'a mut dyn Objective>,
    /// What the node measures.
    pub report: Report,
    /// What is recorded of its messages.
    pub trace: Trace,
}

impl Env<'_> {
    /// Random streams of what this node sends to another in this phase; of a broadcast, with the server itself as receiver.
    pub fn streams_to(&self, to: NodeId) -> Streams {
        Streams::message(self.seed, u64::from(self.round), self.id.0, to.0, self.phase as u16)
    }

    /// Random streams of a message that came in this round.
    pub fn streams_of(&self, message: &Message) -> Streams {
        let (from, to) = (message.from.0, message.stream_to.0);
        Streams::message(self.seed, u64::from(self.round), from, to, message.phase as u16)
    }

    /// Notes what `sender` has made of a client's vector, as far as it is wanted, and hands out the packet.
    pub fn record(&mut self, sender: &Sender, sent: Sent) -> Packet {
        self.report.compression_error = sent.error;
        if self.trace.wants_parts {
            let parts = sender.parts(&sent);
            self.trace.parts.resize(parts.len(), PartSums::default());
            self.trace.parts.iter_mut().zip(parts).for_each(|(sums, part)| *sums += part);
        }
        if self.trace.wants_vector {
            self.trace.vector = Some(sent.target);
        }
        sent.packet
    }

    /// The address of draws for a purpose at this node in this round.
    pub fn address(&self, purpose: Purpose) -> Address {
        Address::new(self.seed, purpose).round(u64::from(self.round)).node(self.id.0)
    }

    /// A coin that falls alike at every node of the round; `true` with probability `p`.
    pub fn coin(&self, p: f64) -> bool {
        use rand::Rng;
        let address = Address::new(self.seed, Purpose::Coin).round(u64::from(self.round)).part(self.phase as u64);
        unit_f64(address.generator().next_u64()) < p
    }
}

/// What can stop a node.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// A vector that cannot be sent.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// A message that nobody can have sent.
    #[error("{from}: {reason}")]
    Corrupt {
        /// Who is said to have sent it.
        from: NodeId,
        /// What is wrong with it.
        reason: Corrupt,
    },
}

/// A server, a client or a peer.
pub trait Node: Send {
    /// Sends what the phase asks for.
    ///
    /// # Errors
    /// On values that cannot be sent.
    fn emit(&mut self, env: &mut Env<'_>, out: &mut Outbox) -> Result<(), Failure>;

    /// Takes one message of the phase; messages come in order of their senders.
    ///
    /// # Errors
    /// On a message that cannot be read.
    fn absorb(&mut self, env: &mut Env<'_>, message: &Message) -> Result<(), Failure>;

    /// All messages of the phase are in.
    ///
    /// # Errors
    /// If what they amount to cannot be used.
    fn conclude(&mut self, _env: &mut Env<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// The round is over: gives up everything that need not be remembered.
    fn rest(&mut self) {}

    /// The model as the node sees it; empty while it has none.
    fn model(&self) -> &[f32];

    /// Visits every vector that must survive between rounds, by name. A vector of another length may be put in its place: this is
    /// how a node is saved, restored and inspected.
    fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>));
}

/// A training method.
pub trait Method: Send + Sync {
    /// Who emits in each phase of a round. What a server emits goes to the clients of the round, what clients emit to the server.
    fn phases(&self) -> Vec<Role>;

    /// A new node.
    fn node(&self, role: Role, setup: &Setup) -> Box<dyn Node>;

    /// Whether the number of rounds of the whole run matters before its last one, as for a learning rate that ends at zero: such a run
    /// cannot be prolonged.
    fn depends_on_rounds(&self) -> bool {
        false
    }

    /// Settings that have no effect beside the others, with the reason; one that is given nevertheless is a mistake.
    fn idle(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Checks the two links: `Err` names the section (`uplink` or `downlink`), its key, and the reason.
    ///
    /// # Errors
    /// The combination that cannot work.
    fn check(&self, uplink: &Link, downlink: &Link) -> Result<(), (&'static str, Misfit)>;
}

/// All methods.
pub const CATALOGUE: &[Entry<dyn Method>] = &[entry!(fedavg::Fedavg), entry!(fedprox::Fedprox)];
