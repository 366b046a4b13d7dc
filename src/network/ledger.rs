//! The ledger: what crossed which link, counted from the bytes of the packets.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Direction, NodeId};
use crate::wire::Packet;

/// Exact sums over messages. Bits are wire bits: eight a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Wire bits from clients to the server.
    pub uplink_bits: u64,
    /// Wire bits from the server to clients, every copy counted.
    pub downlink_bits: u64,
    /// Wire bits between peers.
    pub peer_bits: u64,
    /// Wire bits if a broadcast counted once, however many receive it.
    pub multicast_bits: u64,
    /// Bits of all messages before the padding of their last byte.
    pub payload_bits: u64,
    /// Information of all messages in bits, whatever the coder.
    pub information_bits: f64,
    /// Number of messages, every copy counted.
    pub messages: u64,
    /// Number of messages from clients to the server.
    pub uplink_messages: u64,
}

impl Totals {
    /// Wire bits over all directions.
    pub fn bits(&self) -> u64 {
        self.uplink_bits + self.downlink_bits + self.peer_bits
    }

    fn add(&mut self, other: &Self) {
        self.uplink_bits += other.uplink_bits;
        self.downlink_bits += other.downlink_bits;
        self.peer_bits += other.peer_bits;
        self.multicast_bits += other.multicast_bits;
        self.payload_bits += other.payload_bits;
        self.information_bits += other.information_bits;
        self.messages += other.messages;
        self.uplink_messages += other.uplink_messages;
    }
}

/// Wire bits that a node has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Sent, every copy counted.
    pub sent_bits: u64,
    /// Received.
    pub received_bits: u64,
}

/// Bits by round, by direction and by node.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    round: Totals,
    all: Totals,
    nodes: BTreeMap<NodeId, Traffic>,
}

impl Ledger {
    /// A packet was encoded for `receivers` nodes.
    pub fn sent(&mut self, packet: &Packet, receivers: u64) {
        if receivers > 0 {
            self.round.multicast_bits += packet.wire_bits();
        }
    }

    /// One copy of a packet crossed a link.
    pub fn carried(&mut self, from: NodeId, to: NodeId, packet: &Packet) {
        let bits = packet.wire_bits();
        match Direction::between(from, to) {
            Direction::Up => {
                self.round.uplink_bits += bits;
                self.round.uplink_messages += 1;
            }
            Direction::Down => self.round.downlink_bits += bits,
            Direction::Peer => self.round.peer_bits += bits,
        }
        self.round.payload_bits += packet.payload_bits;
        self.round.information_bits += packet.information_bits;
        self.round.messages += 1;
        self.nodes.entry(from).or_default().sent_bits += bits;
        self.nodes.entry(to).or_default().received_bits += bits;
    }

    /// Closes the round and returns its totals.
    pub fn close_round(&mut self) -> Totals {
        let round = std::mem::take(&mut self.round);
        self.all.add(&round);
        round
    }

    /// Totals of all closed rounds.
    pub fn totals(&self) -> &Totals {
        &self.all
    }

    /// Traffic of every node that has sent or received, in order of their numbers.
    pub fn nodes(&self) -> &BTreeMap<NodeId, Traffic> {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Network, Outbox, To};
    use super::*;

    fn packet(bytes: usize) -> Packet {
        Packet { bytes: vec![0; bytes], payload_bits: 8 * bytes as u64 - 3, information_bits: 1.5, parts: vec![] }
    }

    #[test]
    fn every_copy_is_counted_once_and_nodes_add_up_to_the_totals() {
        let mut network = Network::default();
        let clients = [NodeId(4), NodeId(7), NodeId(9)];
        let mut down = Outbox::default();
        down.send(To::Clients, packet(100));
        assert_eq!(network.route(NodeId::SERVER, 0, down, &clients).len(), 3);
        for &client in &clients[..2] {
            let mut up = Outbox::default();
            up.send(To::One(NodeId::SERVER), packet(10));
            network.route(client, 1, up, &clients);
        }
        let round = network.ledger.close_round();
        assert_eq!((round.uplink_bits, round.downlink_bits, round.peer_bits), (160, 2400, 0));
        assert_eq!((round.multicast_bits, round.messages, round.payload_bits), (960, 5, 2560 - 15));
        assert_eq!(round.information_bits, 7.5);
        assert_eq!(network.ledger.totals(), &round);
        let sent: u64 = network.ledger.nodes().values().map(|traffic| traffic.sent_bits).sum();
        let received: u64 = network.ledger.nodes().values().map(|traffic| traffic.received_bits).sum();
        assert_eq!((sent, received), (round.bits(), round.bits()));
        assert_eq!(network.ledger.nodes()[&NodeId(9)], Traffic { sent_bits: 0, received_bits: 800 });
    }

    #[test]
    fn a_broadcast_to_nobody_costs_nothing() {
        let mut network = Network::default();
        let mut down = Outbox::default();
        down.send(To::Clients, packet(100));
        assert!(network.route(NodeId::SERVER, 0, down, &[]).is_empty());
        assert_eq!(network.ledger.close_round(), Totals::default());
    }
}
