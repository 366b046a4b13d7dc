//! Links: an operator with its coder and granularity, and what the two ends of a link remember.
//!
//! A link has a sending and a receiving half, which share nothing but packets. What is compressed and what is remembered is
//! decided by a [`Rule`], one a file; every method of the gradient family differs from the others by the rules of its links.

mod codec;
mod error_feedback;
mod plain;

use std::sync::Arc;

pub use codec::{Aim, Codec, Hints, Unsendable};

use crate::{
    catalogue::Entry,
    compress::{Class, granularity::Cut},
    entry,
    payload::Corrupt,
    rng::Streams,
    vector::{distance_squared, norm_squared},
    wire::Packet,
};

/// What a rule asks of its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Any class.
    Any,
    /// A contractive operator; an unbiased one is scaled by `1 / (1 + omega)`.
    Contractive,
}

/// What the sending end of a link compresses and remembers.
pub trait Rule: Send + Sync {
    /// What the operator must be.
    fn need(&self) -> Need;

    /// Whether the sender keeps a vector between its messages.
    fn remembers(&self) -> bool;

    /// What to compress for `value`: writes it to `target`, which holds `value` on entry. `memory` is as long as the vector, zero
    /// at first; empty for rules that remember nothing.
    fn target(&self, target: &mut [f32], memory: &[f32]);

    /// Takes note of what the receiver will decode: `target` was compressed, `decoded` is what arrives.
    fn sent(&self, target: &[f32], decoded: &[f32], memory: &mut [f32]);
}

/// All rules.
pub const CATALOGUE: &[Entry<dyn Rule>] = &[entry!(plain::Plain), entry!(error_feedback::ErrorFeedback)];

/// Codec and rule of a link, shared by its ends.
#[derive(Clone)]
pub struct Link {
    /// Operator, coder and granularity.
    pub codec: Arc<Codec>,
    /// The rule.
    pub rule: Arc<dyn Rule>,
}

impl Link {
    /// Joins a codec and a rule; where the rule needs a contractive operator and the codec's is unbiased, the codec is scaled down.
    pub fn new(codec: Codec, rule: Box<dyn Rule>) -> Self {
        let codec = if rule.need() == Need::Contractive && codec.can_be_damped() { codec.damped() } else { codec };
        Self { codec: Arc::new(codec), rule: Arc::from(rule) }
    }
}

/// What a sender hands over.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The message.
    pub packet: Packet,
    /// `|C(u) - u|^2 / |u|^2` of the compressed vector `u`; 0 for `u = 0`.
    pub error: f64,
    /// The compressed vector `u`.
    pub target: Vec<f32>,
    /// What the receiver will decode; empty where that is `u` itself.
    pub decoded: Vec<f32>,
}

/// Bits and distortion of one part, summed over messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartSums {
    /// Bits before the padding of a message.
    pub payload_bits: u64,
    /// Sum of `|C(u) - u|^2`.
    pub squared_error: f64,
    /// Sum of `|u|^2`.
    pub squared_norm: f64,
}

impl std::ops::AddAssign for PartSums {
    fn add_assign(&mut self, other: Self) {
        self.payload_bits += other.payload_bits;
        self.squared_error += other.squared_error;
        self.squared_norm += other.squared_norm;
    }
}

/// The sending end of a link.
pub struct Sender {
    link: Link,
    /// The rule's vector; empty until the first message, and for rules that remember nothing.
    memory: Vec<f32>,
    /// What the operator remembers of each part.
    warm: Vec<Vec<f32>>,
}

impl Sender {
    /// An end that has sent nothing yet. It takes no memory until it sends.
    pub fn new(link: Link) -> Self {
        Self { link, memory: Vec::new(), warm: Vec::new() }
    }

    /// Compresses and encodes `value`, which is used up, and remembers what the rule asks for.
    ///
    /// What counts as sent is decoded from the packet itself, so memory and receiver agree bit for bit.
    ///
    /// # Errors
    /// On values that are not finite or cannot be compressed. Nothing is sent and nothing is remembered then.
    pub fn send(&mut self, mut value: Vec<f32>, hints: Hints<'_>, streams: Streams) -> Result<Sent, Unsendable> {
        let Link { codec, rule } = &self.link;
        if rule.remembers() {
            self.memory.resize(value.len(), 0.0);
        }
        rule.target(&mut value, &self.memory);
        let packet = codec.encode(&value, hints, streams, &mut self.warm)?;
        if codec.class() == Class::Exact && !rule.remembers() {
            return Ok(Sent { packet, error: 0.0, target: value, decoded: Vec::new() });
        }
        let mut decoded = vec![0.0; value.len()];
        codec.decode(&packet, hints, streams, &mut decoded).expect("a sender can read its own packet");
        rule.sent(&value, &decoded, &mut self.memory);
        let norm = norm_squared(&value);
        let error = if norm > 0.0 { distance_squared(&value, &decoded) / norm } else { 0.0 };
        Ok(Sent { packet, error, target: value, decoded })
    }

    /// Bits and distortion of every part of a message of this end.
    pub fn parts(&self, sent: &Sent) -> Vec<PartSums> {
        let one = |(part, &payload_bits): (&Cut, &u64)| {
            let target = &sent.target[part.values.clone()];
            let decoded = sent.decoded.get(part.values.clone()).unwrap_or(target);
            PartSums {
                payload_bits,
                squared_error: distance_squared(target, decoded),
                squared_norm: norm_squared(target),
            }
        };
        self.link.codec.parts().iter().zip(&sent.packet.parts).map(one).collect()
    }

    /// Visits every vector that must survive between rounds, by name.
    pub fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        visit("residual", &mut self.memory);
        self.warm.resize_with(self.link.codec.warm(), Vec::new);
        for (part, warm) in self.warm.iter_mut().enumerate() {
            visit(&format!("warm.{part}"), warm);
        }
    }
}

/// The receiving end of a link.
pub struct Receiver {
    link: Link,
}

impl Receiver {
    /// An end that has received nothing yet.
    pub fn new(link: Link) -> Self {
        Self { link }
    }

    /// The vector that a packet stands for, written to `out`; with the hints that the sender had.
    ///
    /// # Errors
    /// On bytes that no sender wrote.
    pub fn receive(
        &mut self,
        packet: &Packet,
        hints: Hints<'_>,
        streams: Streams,
        out: &mut [f32],
    ) -> Result<(), Corrupt> {
        self.link.codec.decode(packet, hints, streams, out)
    }
}

#[cfg(test)]
mod laws;
