//! What carries packets between nodes: addresses, messages, routing, the ledger.
//!
//! Nothing passes between nodes except through here, and bits are counted here and nowhere else.

pub mod ledger;

use std::sync::Arc;

pub use ledger::{Ledger, Totals};

use crate::wire::Packet;

/// A node of a run: a client by its number, or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The server of a star.
    pub const SERVER: Self = Self(u32::MAX);
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::SERVER { write!(f, "server") } else { write!(f, "client {}", self.0) }
    }
}

/// The way of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
    /// Peer to peer.
    Peer,
}

impl Direction {
    /// The way from one node to another.
    pub fn between(from: NodeId, to: NodeId) -> Self {
        match (from, to) {
            (_, NodeId::SERVER) => Self::Up,
            (NodeId::SERVER, _) => Self::Down,
            _ => Self::Peer,
        }
    }
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who sent it.
    pub from: NodeId,
    /// Who receives it.
    pub to: NodeId,
    /// The receiver that its random streams are addressed by: the same for all copies of a broadcast.
    pub stream_to: NodeId,
    /// The phase in which it was sent.
    pub phase: usize,
    /// The packet; copies of a broadcast share it.
    pub packet: Arc<Packet>,
}

/// Receivers of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One node.
    One(NodeId),
    /// Every client that takes part in the round; the packet is encoded once.
    Clients,
}

/// Where a node puts what it sends.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Packets and their receivers, in the order of sending.
    pub packets: Vec<(To, Packet)>,
}

impl Outbox {
    /// Sends a packet.
    pub fn send(&mut self, to: To, packet: Packet) {
        self.packets.push((to, packet));
    }
}

/// A network without delay and loss in which every packet arrives in the phase in which it was sent.
#[derive(Debug, Default)]
pub struct Network {
    /// What has crossed it.
    pub ledger: Ledger,
}

impl Network {
    /// Carries what `from` has sent in a phase: counts every copy and hands out the messages in order of their receivers.
    pub fn route(&mut self, from: NodeId, phase: usize, outbox: Outbox, clients: &[NodeId]) -> Vec<Message> {
        let mut messages = Vec::new();
        for (to, packet) in outbox.packets {
            let packet = Arc::new(packet);
            let one;
            let (receivers, stream_to) = match to {
                To::One(node) => {
                    one = [node];
                    (&one[..], node)
                }
                To::Clients => (clients, NodeId::SERVER),
            };
            self.ledger.sent(&packet, receivers.len() as u64);
            for &to in receivers {
                self.ledger.carried(from, to, &packet);
                messages.push(Message { from, to, stream_to, phase, packet: packet.clone() });
            }
        }
        messages
    }
}
