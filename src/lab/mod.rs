//! The operator laboratory: what an operator with its coder costs and loses on one vector, measured from real messages.
//!
//! Whatever is measured goes through the same [`Codec`] as the messages of a run: encoded to bytes, decoded from them. Draws
//! are messages of different rounds, so they have different random streams, and every one is the first of its sender.

pub mod line_up;
pub mod rates;
pub mod vectors;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    compress::{Class, bounds},
    layout::Layout,
    link::{Codec, Unsendable},
    rng::Streams,
    run,
    scenario::{Mistake, Section},
    vector::{distance_squared, norm_squared},
};

/// An operator with all its settings, ready to be measured on vectors of one layout.
pub struct Subject {
    /// Name of the operator.
    pub operator: String,
    /// All settings that count, as `key=value`.
    pub settings: String,
    codec: Arc<Codec>,
}

impl Subject {
    /// Builds what a section like `[uplink]` describes.
    ///
    /// # Errors
    /// Every mistake that was found, by the keys of `[uplink]`.
    pub fn new(section: &Section, layout: Arc<Layout>) -> Result<Self, Vec<Mistake>> {
        let (link, settings) = run::link(section, layout)?;
        Ok(Self { operator: section.name.clone(), settings: shown(&settings), codec: link.codec })
    }

    /// What it promises for every vector.
    pub fn class(&self) -> Class {
        self.codec.class()
    }

    /// Wire bits a value of one message.
    ///
    /// # Errors
    /// On values that are not finite or cannot be compressed.
    pub fn bits(&self, x: &[f32], seed: u64) -> Result<f64, Unsendable> {
        let packet = self.codec.encode(x, None, streams(seed, 0), &mut Vec::new())?;
        Ok(packet.wire_bits() as f64 / x.len() as f64)
    }

    /// Encodes and decodes `x`, which must hold something else than zeros, `draws >= 1` times.
    ///
    /// # Errors
    /// On values that are not finite or cannot be compressed.
    pub fn measure(&self, x: &[f32], draws: u32, seed: u64) -> Result<Measurement, Unsendable> {
        let (n, norm, draws) = (x.len() as f64, norm_squared(x), draws.max(1));
        let (mut wire, mut payload, mut information) = (0.0, 0.0, 0.0);
        let mut errors = Vec::with_capacity(draws as usize);
        let (mut out, mut sum) = (vec![0.0; x.len()], vec![0.0f64; x.len()]);
        let (mut encoding, mut decoding) = (Duration::MAX, Duration::MAX);
        for draw in 0..draws {
            let streams = streams(seed, draw);
            let started = Instant::now();
            let packet = self.codec.encode(x, None, streams, &mut Vec::new())?;
            let encoded = Instant::now();
            self.codec.decode(&packet, None, streams, &mut out).expect("a sender can read its own packet");
            decoding = decoding.min(encoded.elapsed());
            encoding = encoding.min(encoded - started);
            wire += packet.wire_bits() as f64;
            payload += packet.payload_bits as f64;
            information += packet.information_bits;
            errors.push(distance_squared(x, &out) / norm);
            sum.iter_mut().zip(&out).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let draws = f64::from(draws);
        // Equal errors have no variance, not even one of rounding: they are taken from the first one.
        let first = errors[0];
        let mean = errors.iter().map(|error| error - first).sum::<f64>() / draws;
        let variance = errors.iter().map(|error| (error - first - mean).powi(2)).sum::<f64>() / (draws - 1.0);
        let nmse = first + mean;
        // The mean of the decoded vectors has the bias and its share of the noise; the error of one message has the bias and all
        // of the noise. So both follow.
        let of_mean = sum.iter().zip(x).map(|(sum, &x)| (sum / draws - f64::from(x)).powi(2)).sum::<f64>() / norm;
        let bias = (draws * of_mean - nmse) / (draws - 1.0);
        let several = |value: f64| (draws > 1.0).then_some(value);
        let speed = |time: Duration| n / 1e6 / time.as_secs_f64().max(1e-9);
        Ok(Measurement {
            wire_bits: wire / draws / n,
            payload_bits: payload / draws / n,
            information_bits: information / draws / n,
            nmse,
            nmse_standard_error: several((variance / draws).sqrt()),
            bias: several(bias.max(0.0)),
            class: self.codec.class(),
            encode_million_per_second: speed(encoding),
            decode_million_per_second: speed(decoding),
        })
    }
}

/// The streams of one draw.
fn streams(seed: u64, draw: u32) -> Streams {
    Streams::message(seed, u64::from(draw), 1, 2, 0)
}

/// Settings that count, the coder last.
fn shown(settings: &toml::Table) -> String {
    let is_default = |key: &str, value: &toml::Value| match key {
        "operator" | "coder" => true,
        "link" => value.as_str() == Some("plain"),
        "granularity" => value.as_str() == Some("model"),
        _ => false,
    };
    let rest = settings.iter().filter(|(key, value)| !is_default(key, value));
    let coder = settings.iter().filter(|(key, _)| *key == "coder");
    rest.chain(coder).map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(" ")
}

/// A setting as it is typed on the command line.
pub fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        // As many digits as tell settings apart, where they were computed.
        toml::Value::Float(float) => format!("{float:.5e}").parse::<f64>().unwrap_or(*float).to_string(),
        other => other.to_string(),
    }
}

/// What one subject does to one vector. Bits are means over the draws and count per value of the vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Bits on the wire: eight a byte.
    pub wire_bits: f64,
    /// Bits before the padding of the last byte.
    pub payload_bits: f64,
    /// Bits of information, whatever the coder.
    pub information_bits: f64,
    /// Mean of `|C(x) - x|^2 / |x|^2`.
    pub nmse: f64,
    /// Standard error of that mean; needs two draws.
    pub nmse_standard_error: Option<f64>,
    /// `|E C(x) - x|^2 / |x|^2`: estimated without the floor that the number of draws sets, and 0 where it is below its noise;
    /// needs two draws.
    pub bias: Option<f64>,
    /// What the operator promises for every vector.
    pub class: Class,
    /// Speed of encoding: the best of all draws.
    pub encode_million_per_second: f64,
    /// Speed of decoding: the best of all draws.
    pub decode_million_per_second: f64,
}

/// Whether `E C(x) = x` is promised.
pub fn is_unbiased(class: Class) -> bool {
    matches!(class, Class::Unbiased(_) | Class::Exact)
}

impl Measurement {
    /// Whether `E C(x) = x` is promised.
    pub fn is_unbiased(&self) -> bool {
        is_unbiased(self.class)
    }

    /// The error that the operator promises not to exceed on average, where it promises one.
    pub fn class_bound(&self) -> Option<f64> {
        match self.class {
            Class::Exact => Some(0.0),
            Class::Unbiased(omega) => Some(omega),
            Class::Contractive(a) => Some(1.0 - a),
            Class::Unproven => None,
        }
    }

    /// The least error of any operator of its kind at these bits, on vectors without structure.
    pub fn lower_bound(&self) -> f64 {
        if self.is_unbiased() { bounds::unbiased(self.wire_bits) } else { bounds::contractive(self.wire_bits) }
    }

    /// The fewest bits of any operator of its kind for this error, on vectors without structure, over the bits that were spent.
    pub fn efficiency(&self) -> Option<f64> {
        // An unbiased operator of variance omega is a contractive one, scaled up.
        let error = if self.is_unbiased() { self.nmse / (1.0 + self.nmse) } else { self.nmse };
        (error > 0.0 && self.wire_bits > 0.0).then(|| bounds::least_bits(error) / self.wire_bits)
    }

    /// Bits per value and per equivalent exact step of gradient descent: `b / (1 - NMSE)`, or `b (1 + NMSE)` if unbiased.
    pub fn cost(&self) -> Option<f64> {
        match (self.is_unbiased(), self.nmse) {
            (true, nmse) => Some(self.wire_bits * (1.0 + nmse)),
            (false, nmse) if nmse < 1.0 => Some(self.wire_bits / (1.0 - nmse)),
            _ => None,
        }
    }
}

/// One row of the CSV file of measurements. Field names are column names; absent values are empty cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the operator.
    pub operator: String,
    /// All settings that count.
    pub settings: String,
    /// Name of the vector, or its file.
    pub vector: String,
    /// Its length.
    pub dimension: u64,
    /// Bits on the wire.
    pub wire_bits_per_coordinate: f64,
    /// Bits before padding.
    pub payload_bits_per_coordinate: f64,
    /// Bits of information.
    pub information_bits_per_coordinate: f64,
    /// Mean relative squared error.
    pub nmse: f64,
    /// Standard error of that mean.
    pub nmse_standard_error: Option<f64>,
    /// Squared bias.
    pub bias: Option<f64>,
    /// Promise for every vector.
    pub class: String,
    /// Least error of any operator of its kind at these bits, on vectors without structure.
    pub lower_bound: f64,
    /// Speed of encoding.
    pub encode_million_per_second: f64,
    /// Speed of decoding.
    pub decode_million_per_second: f64,
}

impl Row {
    /// The row of a measurement.
    pub fn new(subject: &Subject, vector: &str, dimension: usize, measured: &Measurement) -> Self {
        Self {
            operator: subject.operator.clone(),
            settings: subject.settings.clone(),
            vector: vector.to_owned(),
            dimension: dimension as u64,
            wire_bits_per_coordinate: measured.wire_bits,
            payload_bits_per_coordinate: measured.payload_bits,
            information_bits_per_coordinate: measured.information_bits,
            nmse: measured.nmse,
            nmse_standard_error: measured.nmse_standard_error,
            bias: measured.bias,
            class: measured.class.to_string(),
            lower_bound: measured.lower_bound(),
            encode_million_per_second: measured.encode_million_per_second,
            decode_million_per_second: measured.decode_million_per_second,
        }
    }
}

#[cfg(test)]
mod laws;
