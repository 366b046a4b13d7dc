//! The error of a lane at given bits: the strength is bracketed, measured on both sides, and interpolated.

use std::{collections::BTreeMap, sync::Arc};

use super::{Measurement, Row, Subject, line_up::Lane};
use crate::{catalogue::Strength, compress::Class, layout::Layout};

/// A measurement this near to a rate, relative to it, stands for it where there is nothing on the other side.
const NEAR: f64 = 0.02;

/// The vector, and how it is measured.
pub struct Bench<'a> {
    /// Name of the vector.
    pub vector: &'a str,
    /// The vector.
    pub x: &'a [f32],
    /// Its layers.
    pub layout: &'a Arc<Layout>,
    /// Draws of a measurement.
    pub draws: u32,
    /// Seed of the draws.
    pub seed: u64,
}

/// A lane at the rates that were asked for, on one vector.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The error at each rate; `None` where the operator cannot run at it.
    pub cells: Vec<Option<f64>>,
    /// What the operator promises at the harshest strength that was measured.
    pub class: Option<Class>,
    /// Everything that was measured, the mildest first.
    pub rows: Vec<Row>,
    /// Bits and error of the one point of a lane without a strength.
    pub point: Option<(f64, f64)>,
    /// Why nothing could be measured.
    pub reason: Option<String>,
}

/// Measures a lane at rates in bits a value.
pub fn curve(lane: &Lane, bench: &Bench<'_>, rates: &[f64]) -> Curve {
    let mut track = Track { lane, bench, bits: BTreeMap::new(), measured: BTreeMap::new(), reason: None };
    let cells: Vec<Option<f64>> = if lane.has_strength() {
        rates.iter().map(|&rate| track.at(rate)).collect()
    } else {
        let point = track.measure(0);
        rates.iter().map(|&rate| near(point.as_ref(), rate)).collect()
    };
    let measured: Vec<(Row, Measurement)> = track.measured.into_values().flatten().collect();
    // The mildest strength of a biased operator may lose nothing; the harshest one tells its class.
    let class = measured.last().map(|(_, one)| one.class);
    let point = measured.first().filter(|_| !lane.has_strength()).map(|(_, one)| (one.wire_bits, one.nmse));
    let rows: Vec<Row> = measured.into_iter().map(|(row, _)| row).collect();
    let reason = track.reason.filter(|_| rows.is_empty());
    Curve { cells, class, rows, point, reason }
}

fn near(one: Option<&Measurement>, rate: f64) -> Option<f64> {
    one.filter(|one| (one.wire_bits - rate).abs() <= NEAR * rate).map(|one| one.nmse)
}

/// One lane on one vector, and what is known of it by step of its strength.
struct Track<'a> {
    lane: &'a Lane,
    bench: &'a Bench<'a>,
    bits: BTreeMap<usize, Option<f64>>,
    measured: BTreeMap<usize, Option<(Row, Measurement)>>,
    reason: Option<String>,
}

impl Track<'_> {
    fn subject(&mut self, step: usize) -> Option<Subject> {
        let subject = Subject::new(&self.lane.at(step), self.bench.layout.clone());
        subject.map_err(|mistakes| self.reason = mistakes.into_iter().next().map(|mistake| mistake.message)).ok()
    }

    fn bits(&mut self, step: usize) -> Option<f64> {
        if let Some(&bits) = self.bits.get(&step) {
            return bits;
        }
        let bits = self.subject(step).and_then(|subject| {
            let bits = subject.bits(self.bench.x, self.bench.seed);
            bits.map_err(|reason| self.reason = Some(reason.to_string())).ok()
        });
        self.bits.insert(step, bits);
        bits
    }

    fn measure(&mut self, step: usize) -> Option<Measurement> {
        if !self.measured.contains_key(&step) {
            let Bench { vector, x, draws, seed, .. } = *self.bench;
            let measured = self.subject(step).and_then(|subject| {
                let measured = subject.measure(x, draws, seed);
                let measured = measured.map_err(|reason| self.reason = Some(reason.to_string())).ok()?;
                Some((Row::new(&subject, vector, x.len(), &measured), measured))
            });
            self.measured.insert(step, measured);
        }
        self.measured[&step].as_ref().map(|(_, measured)| measured.clone())
    }

    /// The first step whose message is shorter than `rate`; `STEPS` if there is none.
    fn border(&mut self, rate: f64) -> usize {
        let known: Vec<(usize, f64)> = self.bits.iter().filter_map(|(&step, bits)| Some((step, (*bits)?))).collect();
        // Steps below `low` are not shorter, those from `high` on are. The ends can be slow: they are only tried if need be.
        let mut low = known.iter().filter(|(_, bits)| *bits >= rate).map(|(step, _)| step + 1).max().unwrap_or(0);
        let mut high = known.iter().filter(|(_, bits)| *bits < rate).map(|(step, _)| *step).min();
        let mut reach = 8;
        while low < high.unwrap_or(Strength::STEPS) {
            let step = match (low, high) {
                (0, None) => Strength::STEPS / 2,
                (0, Some(high)) => high.saturating_sub(reach),
                (low, None) => (low + reach).min(Strength::STEPS - 1),
                (low, Some(high)) => low.midpoint(high),
            };
            reach *= 2;
            match self.bits(step) {
                Some(bits) if bits < rate => high = Some(step),
                // A strength that does not fit the vector is too mild, or too harsh, as those beyond it.
                None if low > 0 && high.is_none() => high = Some(step),
                _ => low = step + 1,
            }
        }
        low.min(high.unwrap_or(Strength::STEPS))
    }

    fn at(&mut self, rate: f64) -> Option<f64> {
        let border = self.border(rate);
        let milder = border.checked_sub(1).and_then(|step| self.measure(step));
        let harsher = if border < Strength::STEPS { self.measure(border) } else { None };
        match (milder, harsher) {
            (Some(above), Some(below)) => Some(interpolate(&above, &below, rate)),
            (one, other) => near(one.as_ref().or(other.as_ref()), rate),
        }
    }
}

/// The logarithm of the error is taken as linear in the bits between two neighbours.
fn interpolate(above: &Measurement, below: &Measurement, rate: f64) -> f64 {
    let width = above.wire_bits - below.wire_bits;
    if width <= 0.0 || above.nmse <= 0.0 || below.nmse <= 0.0 {
        return below.nmse;
    }
    let share = ((rate - below.wire_bits) / width).clamp(-0.5, 1.5);
    libm::exp((1.0 - share) * libm::log(below.nmse) + share * libm::log(above.nmse))
}
