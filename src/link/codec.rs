//! A codec: an operator, a coder and a granularity make packets of vectors and vectors of packets.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    compress::{
        Class, Granularity, Misfit, Operator, Part, Unfit,
        granularity::{Cut, cut},
    },
    layout::Layout,
    payload::{Corrupt, Kind, Payload, Section},
    rng::Streams,
    vector::{distance_squared, first_non_finite, norm_squared},
    wire::{Coder, Packet},
};

/// A vector that cannot be sent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unsendable {
    /// A value is NaN or infinite.
    #[error("value {index} of layer `{layer}` is {value}")]
    NonFinite {
        /// The layer.
        layer: String,
        /// Position in the layer.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The operator cannot take a part.
    #[error("layer `{layer}`: {reason}")]
    Unfit {
        /// The first layer of the part.
        layer: String,
        /// Why.
        reason: Unfit,
    },
}

/// A guess of the magnitude of every value of a vector, at least 0, that both ends of a link know without a message; or none. Coders
/// that learn may use it.
pub type Hints<'a> = Option<&'a [f32]>;

/// What the strength of an operator is solved for, message by message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// At most so many bits a value, wire bits of the whole message.
    Bits(f64),
    /// At most so much relative squared error.
    Error(f64),
}

/// Makes packets of vectors and vectors of packets. No memory: the same bytes give the same floats on every node.
pub struct Codec {
    /// One operator; or with an aim the same one at every strength, the mildest first.
    operators: Vec<Box<dyn Operator>>,
    aim: Option<Aim>,
    coder: Box<dyn Coder>,
    layout: Arc<Layout>,
    parts: Vec<Cut>,
    damped: bool,
}

impl Codec {
    /// Joins an operator and a coder for vectors of a layout, cut into parts.
    ///
    /// # Errors
    /// If the coder cannot write what the operator sends, or if settings of the operator do not fit the parts.
    pub fn new(
        operator: Box<dyn Operator>,
        coder: Box<dyn Coder>,
        layout: Arc<Layout>,
        granularity: Granularity,
    ) -> Result<Self, Misfit> {
        Self::join(vec![operator], None, coder, layout, granularity)
    }

    /// A codec that solves the strength of its operator for an aim, anew for every message: `operators` are the same one from the
    /// mildest to the harshest strength, at most 2^16 of them. Which one was taken is said in the first bits of a message.
    ///
    /// Strengths that do not fit the parts are left out. Where not even the harshest (or mildest) reaches the aim, it is taken.
    ///
    /// # Errors
    /// If the coder cannot write what the operator sends, or if no strength fits the parts.
    pub fn aimed(
        operators: Vec<Box<dyn Operator>>,
        aim: Aim,
        coder: Box<dyn Coder>,
        layout: Arc<Layout>,
        granularity: Granularity,
    ) -> Result<Self, Misfit> {
        Self::join(operators, Some(aim), coder, layout, granularity)
    }

    fn join(
        mut operators: Vec<Box<dyn Operator>>,
        aim: Option<Aim>,
        coder: Box<dyn Coder>,
        layout: Arc<Layout>,
        granularity: Granularity,
    ) -> Result<Self, Misfit> {
        // Positions and lengths are 32 bits wide.
        if u32::try_from(layout.len()).is_err() {
            let message =
                format!("a vector of {} values is longer than the largest supported, {}", layout.len(), u32::MAX);
            return Err(Misfit { key: "operator", message });
        }
        let unknown: Vec<String> = operators
            .iter()
            .flat_map(|operator| operator.kinds())
            .chain(aim.map(|_| &Kind::Number))
            .filter(|kind| !coder.kinds().contains(kind))
            .map(|kind| format!("{kind:?}").to_lowercase())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if !unknown.is_empty() {
            let message = format!("this coder cannot write {}, which the operator sends", unknown.join(" and "));
            return Err(Misfit { key: "coder", message });
        }
        let parts = cut(&layout, granularity);
        let longest = parts.iter().map(|part| part.values.len()).max().unwrap_or(0);
        let mut misfit = None;
        operators.retain(|operator| operator.check(longest).map_err(|reason| misfit = Some(reason)).is_ok());
        if operators.is_empty() {
            return Err(misfit.expect("there was an operator"));
        }
        Ok(Self { operators, aim, coder, layout, parts, damped: false })
    }

    /// Whether its operator has a factor to be scaled down by.
    pub fn can_be_damped(&self) -> bool {
        self.parts.iter().any(|part| self.operators[0].damping(part.values.len()).is_some())
    }

    /// Values sent and values there are in each part, for operators that select.
    pub fn kept(&self) -> Option<Vec<(usize, usize)>> {
        let [operator] = &self.operators[..] else { return None };
        let one = |part: &Cut| Some((operator.kept(part.values.len())?, part.values.len()));
        self.parts.iter().map(one).collect()
    }

    /// The same codec with every decoded part scaled by `1 / (1 + omega)`: contractive where it was unbiased.
    pub fn damped(self) -> Self {
        Self { damped: true, ..self }
    }

    /// Whether decoded parts are scaled down.
    pub fn is_damped(&self) -> bool {
        self.damped
    }

    /// Whether its coder makes use of hints.
    pub fn takes_hints(&self) -> bool {
        self.coder.takes_hints()
    }

    /// The parts of a message.
    pub fn parts(&self) -> &[Cut] {
        &self.parts
    }

    /// The kinds of sections its operator sends.
    pub fn kinds(&self) -> &'static [Kind] {
        self.operators[0].kinds()
    }

    /// What it promises for the whole vector: the weakest promise of any part at any strength.
    pub fn class(&self) -> Class {
        let class = |(operator, part): (&dyn Operator, &Cut)| {
            let class = operator.class(part.values.len());
            if self.damped { class.damped() } else { class }
        };
        let pairs = self.operators.iter().flat_map(|operator| self.parts.iter().map(move |part| (&**operator, part)));
        pairs.map(class).fold(Class::Exact, |all, part| match (all, part) {
            (Class::Unbiased(a), Class::Unbiased(b)) => Class::Unbiased(a.max(b)),
            (Class::Contractive(a), Class::Contractive(b)) => Class::Contractive(a.min(b)),
            (Class::Unproven, _) | (_, Class::Unproven) => Class::Unproven,
            (Class::Exact, other) | (other, _) => other,
        })
    }

    /// Compresses and encodes `x`. `warm` holds what the operator remembers of each part; it is filled on first use. `hints` are
    /// guesses of magnitudes that the receiver has as well.
    ///
    /// # Errors
    /// On values that are not finite or cannot be compressed.
    pub fn encode(
        &self,
        x: &[f32],
        hints: Hints<'_>,
        streams: Streams,
        warm: &mut Vec<Vec<f32>>,
    ) -> Result<Packet, Unsendable> {
        if let Some(at) = first_non_finite(x) {
            let layer =
                self.layout.layers().iter().find(|layer| layer.range.contains(&at)).expect("`x` has this layout");
            let (index, value) = (at - layer.range.start, x[at]);
            return Err(Unsendable::NonFinite { layer: layer.name.clone(), index, value });
        }
        warm.resize_with(self.warm(), Vec::new);
        let Some(aim) = self.aim else { return self.encode_at(0, x, hints, streams, warm) };
        let last = warm[self.parts.len()].first().map(|&last| last as usize);
        let mut best: Option<(usize, Packet, Vec<Vec<f32>>)> = None;
        let border = first_true(self.operators.len(), last, &mut |strength| {
            let mut tried = warm.clone();
            let packet = self.encode_at(strength, x, hints, streams, &mut tried)?;
            let (is_harsh, is_good) = match aim {
                Aim::Bits(bits) => {
                    let fits = packet.wire_bits() as f64 <= bits * x.len() as f64;
                    (fits, fits)
                }
                Aim::Error(error) => {
                    let mut out = vec![0.0; x.len()];
                    self.decode(&packet, hints, streams, &mut out).expect("a sender can read its own packet");
                    let misses = distance_squared(x, &out) > error * norm_squared(x);
                    (misses, !misses)
                }
            };
            if is_good {
                best = Some((strength, packet, tried));
            }
            Ok(is_harsh)
        })?;
        let strength = match aim {
            Aim::Bits(_) => border.min(self.operators.len() - 1),
            Aim::Error(_) => border.saturating_sub(1),
        };
        let (packet, tried) = match best {
            Some((tried_strength, packet, tried)) if tried_strength == strength => (packet, tried),
            _ => {
                let mut tried = warm.clone();
                (self.encode_at(strength, x, hints, streams, &mut tried)?, tried)
            }
        };
        *warm = tried;
        warm[self.parts.len()] = vec![strength as f32];
        Ok(packet)
    }

    /// Number of vectors that a sender remembers for its codec, empty ones included: one a part, and with an aim behind them the
    /// strength of the last message, which the next one is likely to be near.
    pub(super) fn warm(&self) -> usize {
        self.parts.len() + usize::from(self.aim.is_some())
    }

    /// Compresses and encodes at one strength.
    fn encode_at(
        &self,
        strength: usize,
        x: &[f32],
        hints: Hints<'_>,
        streams: Streams,
        warm: &mut [Vec<f32>],
    ) -> Result<Packet, Unsendable> {
        let mut writer = self.coder.writer();
        let mut packet = Packet::default();
        if self.aim.is_some() && !x.is_empty() {
            let section = Section::Number { value: strength as u32, below: self.operators.len() as u32 };
            writer.put(&section);
            packet.information_bits += section.information_bits();
        }
        let mut bits = 0;
        for ((index, cut), warm) in self.parts.iter().enumerate().zip(warm) {
            let part = Part { layers: &cut.layers, streams: streams.part(index as u32) };
            let mut payload = Payload::default();
            writer.part(hints.map(|hints| &hints[cut.values.clone()]));
            self.operators[strength]
                .compress(&x[cut.values.clone()], &part, warm, &mut payload)
                .map_err(|reason| Unsendable::Unfit { layer: part.layers[0].name.clone(), reason })?;
            for section in &payload.sections {
                writer.put(section);
                packet.information_bits += section.information_bits();
            }
            packet.parts.push(writer.bits() - bits);
            bits = writer.bits();
        }
        (packet.bytes, packet.payload_bits) = writer.finish();
        Ok(packet)
    }

    /// Decodes a packet to all of `out`, with the hints that the sender had.
    ///
    /// # Errors
    /// On bytes that no sender wrote.
    pub fn decode(&self, packet: &Packet, hints: Hints<'_>, streams: Streams, out: &mut [f32]) -> Result<(), Corrupt> {
        let mut reader = self.coder.reader(&packet.bytes);
        let operator = if self.aim.is_some() && !out.is_empty() {
            &self.operators[reader.number(self.operators.len() as u32)? as usize]
        } else {
            &self.operators[0]
        };
        for (index, cut) in self.parts.iter().enumerate() {
            let part = Part { layers: &cut.layers, streams: streams.part(index as u32) };
            let out = &mut out[cut.values.clone()];
            reader.part(hints.map(|hints| &hints[cut.values.clone()]));
            operator.restore(&mut *reader, &part, out)?;
            if let (true, Some(factor)) = (self.damped, operator.damping(out.len())) {
                out.iter_mut().for_each(|value| *value *= factor as f32);
            }
        }
        reader.finish()?;
        // Senders refuse such values, so nobody has sent them.
        if first_non_finite(out).is_some() { Err(Corrupt("a value is not finite")) } else { Ok(()) }
    }
}

/// The first of `n` places from which `is_true` holds, `n` if it never does, for a property that stays true; looks around `near`
/// first.
fn first_true<E>(
    n: usize,
    near: Option<usize>,
    is_true: &mut impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    // It is false below `low` and true from `high` on.
    let (mut low, mut high) = (0, n);
    if let Some(near) = near.filter(|&near| near < n) {
        let mut reach = 1;
        if is_true(near)? {
            high = near;
            while low < high && is_true(high.saturating_sub(reach))? {
                high = high.saturating_sub(reach);
                reach *= 2;
            }
            low = if high == 0 { 0 } else { high.saturating_sub(reach) + 1 };
        } else {
            low = near + 1;
            while low + reach <= n && !is_true(low + reach - 1)? {
                low += reach;
                reach *= 2;
            }
            high = (low + reach - 1).min(n);
        }
    }
    while low < high {
        let middle = low.midpoint(high);
        if is_true(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_true_place_is_found_from_anywhere() {
        for n in [1, 2, 7, 256] {
            for border in 0..=n {
                for near in std::iter::once(None).chain((0..=n).map(Some)) {
                    let found = first_true::<()>(n, near, &mut |at| {
                        assert!(at < n);
                        Ok(at >= border)
                    });
                    assert_eq!(found, Ok(border), "{n} {near:?}");
                }
            }
        }
    }
}
