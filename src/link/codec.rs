//! A codec: an operator, a coder and a granularity make packets of vectors and vectors of packets.

use std::{ops::Range, sync::Arc};

use crate::{
    compress::{Class, Granularity, Misfit, Operator, Part, Unfit, granularity::cut},
    layout::{Layer, Layout},
    payload::{Corrupt, Kind, Payload},
    rng::Streams,
    vector::first_non_finite,
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

/// Makes packets of vectors and vectors of packets. No memory: the same bytes give the same floats on every node.
pub struct Codec {
    operator: Box<dyn Operator>,
    coder: Box<dyn Coder>,
    layout: Arc<Layout>,
    parts: Vec<Cut>,
    damped: bool,
}

/// A part: its layers and its values.
struct Cut {
    layers: Range<usize>,
    values: Range<usize>,
}

impl Cut {
    fn layers<'a>(&self, layout: &'a Layout) -> &'a [Layer] {
        &layout.layers()[self.layers.clone()]
    }
}

impl Codec {
    /// Joins an operator and a coder for vectors of a layout, cut into parts; `groups` counts for [`Granularity::Groups`].
    ///
    /// # Errors
    /// If the coder cannot write what the operator sends, or if settings of the operator do not fit the parts.
    pub fn new(
        operator: Box<dyn Operator>,
        coder: Box<dyn Coder>,
        layout: Arc<Layout>,
        granularity: Granularity,
        groups: usize,
    ) -> Result<Self, Misfit> {
        // Positions and lengths are 32 bits wide.
        if u32::try_from(layout.len()).is_err() {
            let message =
                format!("a vector of {} values is longer than the largest supported, {}", layout.len(), u32::MAX);
            return Err(Misfit { key: "operator", message });
        }
        let unknown: Vec<String> = operator
            .kinds()
            .iter()
            .filter(|kind| !coder.kinds().contains(kind))
            .map(|kind| format!("{kind:?}").to_lowercase())
            .collect();
        if !unknown.is_empty() {
            let message = format!("this coder cannot write {}, which the operator sends", unknown.join(" and "));
            return Err(Misfit { key: "coder", message });
        }
        let parts: Vec<Cut> = cut(&layout, granularity, groups)
            .into_iter()
            .map(|layers| {
                let values = layout.layers()[layers.start].range.start..layout.layers()[layers.end - 1].range.end;
                Cut { layers, values }
            })
            .filter(|part| !part.values.is_empty())
            .collect();
        operator.check(parts.iter().map(|part| part.values.len()).max().unwrap_or(0))?;
        Ok(Self { operator, coder, layout, parts, damped: false })
    }

    /// Whether its operator has a factor to be scaled down by.
    pub fn can_be_damped(&self) -> bool {
        self.parts.iter().any(|part| self.operator.damping(part.values.len()).is_some())
    }

    /// Values sent and values there are in each part, for operators that select.
    pub fn kept(&self) -> Option<Vec<(usize, usize)>> {
        let one = |part: &Cut| Some((self.operator.kept(part.values.len())?, part.values.len()));
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

    /// Number of parts of a message.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The kinds of sections its operator sends.
    pub fn kinds(&self) -> &'static [Kind] {
        self.operator.kinds()
    }

    /// What it promises for the whole vector: the weakest promise of any part.
    pub fn class(&self) -> Class {
        let class = |part: &Cut| {
            let class = self.operator.class(part.values.len());
            if self.damped { class.damped() } else { class }
        };
        self.parts.iter().map(class).fold(Class::Exact, |all, part| match (all, part) {
            (Class::Unbiased(a), Class::Unbiased(b)) => Class::Unbiased(a.max(b)),
            (Class::Contractive(a), Class::Contractive(b)) => Class::Contractive(a.min(b)),
            (Class::Unproven, _) | (_, Class::Unproven) => Class::Unproven,
            (Class::Exact, other) | (other, _) => other,
        })
    }

    /// Compresses and encodes `x`. `warm` holds what the operator remembers of each part; it is filled on first use.
    ///
    /// # Errors
    /// On values that are not finite or cannot be compressed.
    pub fn encode(&self, x: &[f32], streams: Streams, warm: &mut Vec<Vec<f32>>) -> Result<Packet, Unsendable> {
        if let Some(at) = first_non_finite(x) {
            let layer =
                self.layout.layers().iter().find(|layer| layer.range.contains(&at)).expect("`x` has this layout");
            let (index, value) = (at - layer.range.start, x[at]);
            return Err(Unsendable::NonFinite { layer: layer.name.clone(), index, value });
        }
        warm.resize_with(self.parts.len(), Vec::new);
        let mut writer = self.coder.writer();
        let mut packet = Packet::default();
        let mut bits = 0;
        for ((index, cut), warm) in self.parts.iter().enumerate().zip(warm) {
            let part = Part { layers: cut.layers(&self.layout), streams: streams.part(index as u32) };
            let mut payload = Payload::default();
            self.operator
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

    /// Decodes a packet to all of `out`.
    ///
    /// # Errors
    /// On bytes that no sender wrote.
    pub fn decode(&self, packet: &Packet, streams: Streams, out: &mut [f32]) -> Result<(), Corrupt> {
        let mut reader = self.coder.reader(&packet.bytes);
        for (index, cut) in self.parts.iter().enumerate() {
            let part = Part { layers: cut.layers(&self.layout), streams: streams.part(index as u32) };
            let out = &mut out[cut.values.clone()];
            self.operator.restore(&mut *reader, &part, out)?;
            if let (true, Some(factor)) = (self.damped, self.operator.damping(out.len())) {
                out.iter_mut().for_each(|value| *value *= factor as f32);
            }
        }
        reader.finish()?;
        // Senders refuse such values, so nobody has sent them.
        if first_non_finite(out).is_some() { Err(Corrupt("a value is not finite")) } else { Ok(()) }
    }
}
