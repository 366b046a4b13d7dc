//! One server, its clients, and what they do in a round.

use std::collections::BTreeMap;

use super::workers::Workers;
use crate::{
    method::{Env, Failure, Method, Node, Population, Report, Role, Setup, Trace},
    network::{Ledger, Message, Network, NodeId, Outbox, Totals},
    scenario::NonFinite,
};

/// Clients that are processed before their messages are absorbed, so that memory does not grow with a round's cohort.
const BLOCK: usize = 64;

/// A client's part in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientRound {
    /// The client.
    pub client: u32,
    /// What it measured; `None` if it sent nothing.
    pub report: Option<Report>,
    /// Wire bits that it sent.
    pub uplink_bits: u64,
    /// Wire bits that it received.
    pub downlink_bits: u64,
    /// Bits that it sent, before padding.
    pub payload_bits: u64,
    /// Information that it sent, in bits.
    pub information_bits: f64,
    /// What is recorded of its messages.
    pub trace: Trace,
}

/// What a round came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Bits of the round.
    pub totals: Totals,
    /// The clients that took part, in order of their numbers.
    pub clients: Vec<ClientRound>,
    /// Why the run cannot go on, if so: a value that is not finite.
    pub diverged: Option<String>,
}

/// A server, its clients, and the network between them.
pub struct Star<'a> {
    method: &'a dyn Method,
    setup: Setup,
    place: Place,
    non_finite: NonFinite,
    server: Box<dyn Node>,
    /// Clients that have taken part and remember something.
    clients: BTreeMap<u32, Box<dyn Node>>,
    network: Network,
    /// Clients whose vectors are recorded, increasing.
    captured: Vec<u32>,
    /// Whether the parts of messages are recorded.
    wants_parts: bool,
}

/// What does not change from round to round.
struct Place {
    population: Population,
    seed: u64,
}

impl Place {
    fn env(&self, round: u32, phase: usize, id: NodeId) -> Env<'_> {
        let (seed, population) = (self.seed, &self.population);
        Env { seed, round, phase, id, population, objective: None, report: Report::default(), trace: Trace::default() }
    }
}

/// A client during a round.
struct Present {
    node: Box<dyn Node>,
    inbox: Vec<Message>,
    round: ClientRound,
}

impl<'a> Star<'a> {
    /// A server before its first round.
    pub fn new(method: &'a dyn Method, setup: Setup, population: Population, seed: u64, non_finite: NonFinite) -> Self {
        let server = method.node(Role::Server, &setup);
        Self {
            method,
            setup,
            place: Place { population, seed },
            non_finite,
            server,
            clients: BTreeMap::new(),
            network: Network::default(),
            captured: Vec::new(),
            wants_parts: false,
        }
    }

    /// What the next round records: the vectors that these clients compress, and the parts of all messages.
    pub fn record(&mut self, captured: &[u32], wants_parts: bool) {
        captured.clone_into(&mut self.captured);
        self.wants_parts = wants_parts;
    }

    /// The server's model.
    pub fn model(&self) -> &[f32] {
        self.server.model()
    }

    /// What has crossed the network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Clients that remember something.
    pub fn remembering(&self) -> usize {
        self.clients.len()
    }

    /// Visits every vector that must survive between rounds, by the name of its node and its own.
    pub fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        self.server.memory(&mut |name, vector| visit(&format!("server.{name}"), vector));
        for (client, node) in &mut self.clients {
            node.memory(&mut |name, vector| visit(&format!("client.{client}.{name}"), vector));
        }
    }

    /// Takes over what [`Star::memory`] has visited of another one: every vector that has a place here is taken out of `vectors`.
    pub fn restore(&mut self, vectors: &mut BTreeMap<String, Vec<f32>>, ledger: Ledger) {
        let number = |name: &String| name.strip_prefix("client.")?.split('.').next()?.parse::<u32>().ok();
        let known = self.place.population.weights.len() as u32;
        for client in vectors.keys().filter_map(number).filter(|client| *client < known) {
            self.clients.entry(client).or_insert_with(|| self.method.node(Role::Client, &self.setup));
        }
        self.memory(&mut |name, vector| *vector = vectors.remove(name).unwrap_or_default());
        self.network.ledger = ledger;
    }

    /// What the link of a client remembers.
    #[cfg(test)]
    pub(super) fn residual(&mut self, client: u32) -> Vec<f32> {
        let mut residual = Vec::new();
        let node = self.clients.get_mut(&client).expect("the client remembers something");
        node.memory(&mut |name, vector| residual = if name == "residual" { vector.clone() } else { residual.clone() });
        residual
    }

    /// One round with the clients `drawn`, in order of their numbers.
    ///
    /// # Errors
    /// On a message that nobody can have sent, which is a fault of the program.
    pub fn round(&mut self, round: u32, drawn: &[u32], workers: &Workers<'_>) -> Result<Round, Failure> {
        if drawn.is_empty() {
            return Ok(Round { totals: self.network.ledger.close_round(), clients: Vec::new(), diverged: None });
        }
        let ids: Vec<NodeId> = drawn.iter().map(|&client| NodeId(client)).collect();
        let mut present: Vec<Present> = drawn.iter().map(|&client| self.wake(client)).collect();
        let mut diverged = None;
        let phases = self.method.phases();
        for (phase, &role) in phases.iter().enumerate() {
            if diverged.is_some() {
                break;
            }
            match role {
                Role::Server => diverged = self.server_speaks(round, phase, &ids, &mut present)?,
                Role::Client => {
                    // Clients that have spoken for the last time keep only their memory, however many there are.
                    let is_last = phase + 1 == phases.len();
                    for block in present.chunks_mut(BLOCK) {
                        self.clients_speak(round, phase, is_last, &ids, block, workers, &mut diverged)?;
                    }
                    if diverged.is_none() {
                        self.server.conclude(&mut self.place.env(round, phase, NodeId::SERVER))?;
                    }
                }
            }
        }
        let clients = present.into_iter().map(|client| self.rest(client)).collect();
        self.server.rest();
        Ok(Round { totals: self.network.ledger.close_round(), clients, diverged })
    }

    fn wake(&mut self, client: u32) -> Present {
        let node = self.clients.remove(&client).unwrap_or_else(|| self.method.node(Role::Client, &self.setup));
        let trace = Trace {
            wants_vector: self.captured.binary_search(&client).is_ok(),
            wants_parts: self.wants_parts,
            ..Trace::default()
        };
        let (report, uplink_bits, downlink_bits, payload_bits, information_bits) = (None, 0, 0, 0, 0.0);
        let round = ClientRound { client, report, uplink_bits, downlink_bits, payload_bits, information_bits, trace };
        Present { node, inbox: Vec::new(), round }
    }

    /// Keeps a client only if it remembers something.
    fn rest(&mut self, mut client: Present) -> ClientRound {
        client.node.rest();
        let mut remembers = false;
        client.node.memory(&mut |_, vector| remembers |= !vector.is_empty());
        if remembers {
            self.clients.insert(client.round.client, client.node);
        }
        client.round
    }

    fn server_speaks(
        &mut self,
        round: u32,
        phase: usize,
        ids: &[NodeId],
        present: &mut [Present],
    ) -> Result<Option<String>, Failure> {
        let mut outbox = Outbox::default();
        match self.server.emit(&mut self.place.env(round, phase, NodeId::SERVER), &mut outbox) {
            Err(Failure::Unsendable(reason)) => return Ok(Some(format!("round {round}, server: {reason}"))),
            other => other?,
        }
        for message in self.network.route(NodeId::SERVER, phase, outbox, ids) {
            let at = ids.binary_search(&message.to).expect("packets go to clients of the round");
            present[at].round.downlink_bits += message.packet.wire_bits();
            present[at].inbox.push(message);
        }
        Ok(None)
    }

    /// A block of clients takes its messages, works and speaks, all in parallel; the server listens in order.
    #[allow(clippy::too_many_arguments, reason = "the coordinates of one block of work")]
    fn clients_speak(
        &mut self,
        round: u32,
        phase: usize,
        is_last: bool,
        ids: &[NodeId],
        block: &mut [Present],
        workers: &Workers<'_>,
        diverged: &mut Option<String>,
    ) -> Result<(), Failure> {
        let place = &self.place;
        let spoken = workers.map(block.iter_mut().collect(), |client: &mut Present, objective| {
            let trace = std::mem::take(&mut client.round.trace);
            let id = NodeId(client.round.client);
            let mut env = Env { objective: Some(objective), trace, ..place.env(round, phase, id) };
            let mut outbox = Outbox::default();
            for message in std::mem::take(&mut client.inbox) {
                client.node.absorb(&mut env, &message)?;
            }
            let emitted = client.node.emit(&mut env, &mut outbox);
            client.round.trace = std::mem::take(&mut env.trace);
            if is_last {
                client.node.rest();
            }
            emitted.map(|()| (outbox, env.report))
        });
        for (client, spoken) in block.iter_mut().zip(spoken) {
            let id = NodeId(client.round.client);
            let (outbox, report) = match spoken {
                Ok(spoken) => spoken,
                Err(Failure::Unsendable(reason)) => {
                    if self.non_finite == NonFinite::Stop && diverged.is_none() {
                        *diverged = Some(format!("round {round}, {id}: {reason}"));
                    }
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            client.round.report = Some(report);
            for message in self.network.route(id, phase, outbox, ids) {
                client.round.uplink_bits += message.packet.wire_bits();
                client.round.payload_bits += message.packet.payload_bits;
                client.round.information_bits += message.packet.information_bits;
                self.server.absorb(&mut self.place.env(round, phase, NodeId::SERVER), &message)?;
            }
        }
        Ok(())
    }
}
