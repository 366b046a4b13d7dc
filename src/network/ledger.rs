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

    /// All numbers of the closed rounds: of the totals first, then of every node; for [`Ledger::restore`].
    pub fn save(&self) -> Vec<u64> {
        let all = &self.all;
        let mut numbers = vec![
            all.uplink_bits,
            all.downlink_bits,
            all.peer_bits,
            all.multicast_bits,
            all.payload_bits,
            all.information_bits.to_bits(),
            all.messages,
            all.uplink_messages,
        ];
        for (node, traffic) in &self.nodes {
            numbers.extend([u64::from(node.0), traffic.sent_bits, traffic.received_bits]);
        }
        numbers
    }

    /// The ledger that [`Ledger::save`] has saved; none if the numbers are not those of a ledger.
    pub fn restore(numbers: &[u64]) -> Option<Self> {
        let (totals, nodes) = numbers.split_first_chunk::<8>()?;
        let [
            uplink_bits,
            downlink_bits,
            peer_bits,
            multicast_bits,
            payload_bits,
            information,
            messages,
            uplink_messages,
        ] = *totals;
        let information_bits = f64::from_bits(information);
        let all = Totals {
            uplink_bits,
            downlink_bits,
            peer_bits,
            multicast_bits,
            payload_bits,
            information_bits,
            messages,
            uplink_messages,
        };
        let (nodes, rest) = nodes.as_chunks::<3>();
        let node = |&[id, sent_bits, received_bits]: &[u64; 3]| {
            Some((NodeId(u32::try_from(id).ok()?), Traffic { sent_bits, received_bits }))
        };
        let nodes = nodes.iter().map(node).collect::<Option<_>>()?;
        rest.is_empty().then_some(Self { round: Totals::default(), all, nodes })
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
        let saved = network.ledger.save();
        let restored = Ledger::restore(&saved).expect("a ledger has saved them");
        assert_eq!((restored.totals(), restored.nodes()), (network.ledger.totals(), network.ledger.nodes()));
        assert!(Ledger::restore(&saved[..7]).is_none() && Ledger::restore(&saved[..10]).is_none());
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
