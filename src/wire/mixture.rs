//! Adaptive coding of levels under a mixture of contexts.

use std::sync::LazyLock;

use half::f16;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    adaptive::{Adaptive, AdaptiveReader, AdaptiveWriter, PLACES},
    plain::{get_gamma, put_gamma},
    range::{RangeDecoder, RangeEncoder},
    sparse::level,
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind, Section, Source, Trellis},
};

/// Levels at the entropy that they have where they stand: contexts are learnt from what was decoded before.
///
/// Levels are written as `adaptive` writes them, but every flag is predicted by several counters at once: those of its
/// place in the unary code alone; of its place and the running mean of the last 14 magnitudes or so, or of the last 60,
/// in two classes an octave; of its place and the means of the last 4 and 14. If both ends know a guess of every
/// magnitude, such as how far a parameter has moved so far, its class is a further context. A logistic mixture learns
/// what each counter is worth; it shares the probability with the estimate of the place alone by how well both have
/// done. A new part forgets the means, not what was learnt.
///
/// # Bits
/// Where the scale of the levels varies slowly or by layer, 10 to 30 % below `adaptive`; where it does not, at most
/// 0.3 % above.
///
/// # Writes
/// Everything; what is not a level as `adaptive`.
///
/// # Source
/// Mahoney, *Adaptive weighing of context models for lossless data compression*, 2005. Scales learnt from decoded data:
/// Zhu et al., *Unified multivariate Gaussian mixture for efficient neural image compression*, 2022.
/// Differs from the source in: no network; the scales are running means.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mixture {}

impl Named for Mixture {
    const NAME: &'static str = "mixture";
}

impl Coder for Mixture {
    fn kinds(&self) -> &'static [Kind] {
        Adaptive {}.kinds()
    }

    fn takes_hints(&self) -> bool {
        true
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(MixtureWriter { rest: AdaptiveWriter::default(), model: Model::default() })
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(MixtureReader { rest: AdaptiveReader::new(bytes), model: Model::default() })
    }
}

/// Cells of each of the [`Tables`].
const CELLS: u64 = 1024;

/// Logarithms and powers to three digits from tables, the same on every machine.
struct Tables {
    /// `log2` of the middle of each cell of `[1, 2)`.
    logs: [f64; CELLS as usize],
    /// 2 to the power of the beginning of each cell of `[0, 1)`.
    powers: [f64; CELLS as usize],
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables {
    logs: std::array::from_fn(|cell| libm::log2(1.0 + (cell as f64 + 0.5) / CELLS as f64)),
    powers: std::array::from_fn(|cell| libm::exp2(cell as f64 / CELLS as f64)),
});

impl Tables {
    /// The binary logarithm of the odds of a flag that was 0 and 1 so often, if `given` flags of probability `prior`
    /// came before.
    #[inline]
    fn odds(&self, [zeros, ones]: Counts, prior: f64, given: f64) -> f64 {
        let (ones, zeros) = ((ones + given * prior).to_bits(), (zeros + given * (1.0 - prior)).to_bits());
        let log = |bits: u64| self.logs[(bits >> 42 & (CELLS - 1)) as usize];
        f64::from((ones >> 52) as i32 - (zeros >> 52) as i32) + (log(ones) - log(zeros))
    }

    /// The probability with these odds.
    #[inline]
    fn probability(&self, odds: f64) -> f64 {
        // The sum is rounded to a whole number of cells, and its lowest bits are the exponent of a float and a cell.
        const WHOLE: f64 = (1u64 << 52) as f64 + (1023 * CELLS) as f64;
        let bits = (WHOLE - CELLS as f64 * odds.clamp(-16.0, 16.0)).to_bits();
        let power = f64::from_bits((bits / CELLS) << 52);
        1.0 / (1.0 + power * self.powers[(bits & (CELLS - 1)) as usize])
    }
}

/// The class of a positive number, two to an octave from 2^-6.5 on; 0 is for what is no such number.
#[inline]
fn class(x: f64) -> usize {
    let halves = (x.to_bits() >> 51) as i64 - 2 * 1023;
    if x > 0.0 { (halves + 14).clamp(1, CLASSES as i64 - 1) as usize } else { 0 }
}

/// How often a flag was 0 and 1.
type Counts = [f64; 2];

/// Classes of running means and of hints.
const CLASSES: usize = 24;

/// The weight of a new magnitude in each running mean: fast, middle and slow.
const RATES: [f64; 3] = [0.25, 0.07, 0.015];

/// Counters that predict a flag.
const INPUTS: usize = 6;

/// What was learnt of one place of the code.
struct Place {
    /// The flags of this place, and the reciprocal of their number plus one.
    alone: Counts,
    reciprocal: f64,
    /// The flags by class of the middle and of the slow mean, and by class of the hint.
    middle: [Counts; CLASSES],
    slow: [Counts; CLASSES],
    hint: [Counts; CLASSES],
    /// By classes of the fast mean, in whole octaves, and of the middle mean.
    fast: [[Counts; CLASSES]; CLASSES / 2],
    /// By classes of the middle mean, in whole octaves, and of the hint.
    hinted: [[Counts; CLASSES]; CLASSES / 2],
    /// Of each counter in the mixture of odds, and how fast they are learnt.
    weights: [f64; INPUTS],
    rate: f64,
    /// Share of the mixture in the probability; the rest is of the place alone.
    share: f64,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            alone: [0.0; 2],
            reciprocal: 1.0,
            middle: [[0.0; 2]; CLASSES],
            slow: [[0.0; 2]; CLASSES],
            hint: [[0.0; 2]; CLASSES],
            fast: [[[0.0; 2]; CLASSES]; CLASSES / 2],
            hinted: [[[0.0; 2]; CLASSES]; CLASSES / 2],
            weights: [0.0, 0.3, 0.3, 0.3, 0.0, 0.0],
            rate: 0.02,
            share: 0.5,
        }
    }
}

/// Where a flag stands.
#[derive(Clone, Copy, Default)]
struct Setting {
    /// Classes of the running means.
    means: [usize; 3],
    /// Class of the hint.
    hint: Option<usize>,
}

impl Place {
    /// Codes a flag and learns from it; `code` is given the probability of a 1 in units of 2^-64.
    #[inline]
    fn flag(&mut self, setting: Setting, code: impl FnOnce(u64) -> bool) -> bool {
        /// A share is never below this, so that it can grow when the message changes.
        const LEAST_SHARE: f64 = 1e-4;
        let tables = &*TABLES;
        let [fast, middle, slow] = setting.means;
        let alone = (self.alone[1] + 0.5) * self.reciprocal;
        let mut odds = [
            tables.odds(self.alone, 0.5, 1.0),
            tables.odds(self.middle[middle], alone, 2.0),
            tables.odds(self.slow[slow], alone, 2.0),
            tables.odds(self.fast[fast / 2][middle], alone, 2.0),
            0.0,
            0.0,
        ];
        if let Some(hint) = setting.hint {
            odds[4] = tables.odds(self.hint[hint], alone, 2.0);
            odds[5] = tables.odds(self.hinted[middle / 2][hint], alone, 2.0);
        }
        let [a, b, c, d, e, f] = std::array::from_fn(|i| self.weights[i] * odds[i]);
        let mixed = tables.probability((a + b) + (c + d) + (e + f));
        let probability = alone + self.share * (mixed - alone);
        // The fraction of a number between 1 and 2 in units of 2^-52.
        let flag = code((1.0 + probability).to_bits() << 12);

        let (error, ratio) =
            if flag { (1.0 - mixed, mixed / probability) } else { (-mixed, (1.0 - mixed) / (1.0 - probability)) };
        for (weight, odds) in self.weights.iter_mut().zip(odds) {
            *weight += self.rate * error * odds;
        }
        self.rate += (0.003 - self.rate) / 256.0;
        self.share = (self.share * ratio).clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        self.alone[usize::from(flag)] += 1.0;
        self.reciprocal = 1.0 / (self.alone[0] + self.alone[1] + 1.0);
        let learn = |counts: &mut Counts| {
            counts[usize::from(flag)] += 1.0;
            // What is long ago counts less.
            if counts[0] + counts[1] > 1000.0 {
                *counts = counts.map(|count| count / 2.0);
            }
        };
        learn(&mut self.middle[middle]);
        learn(&mut self.slow[slow]);
        learn(&mut self.fast[fast / 2][middle]);
        if let Some(hint) = setting.hint {
            learn(&mut self.hint[hint]);
            learn(&mut self.hinted[middle / 2][hint]);
        }
        flag
    }
}

/// What a message has taught so far.
#[derive(Default)]
struct Model {
    /// The places reached so far: of levels by themselves, and of those of the first and of the second quantiser of a
    /// trellis.
    places: [Vec<Place>; 3],
    means: [f64; 3],
    /// Number of magnitudes in the means.
    age: f64,
    setting: Setting,
    /// Classes of the hints of this part that are still to be used, last one first.
    hints: Vec<u8>,
}

impl Model {
    fn part(&mut self, hints: Option<&[f32]>) {
        self.age = 0.0;
        self.hints.clear();
        if let Some(hints) = hints {
            let mean = hints.iter().map(|&hint| f64::from(hint)).sum::<f64>() / hints.len() as f64;
            self.hints.extend(hints.iter().rev().map(|&hint| class(f64::from(hint) / mean) as u8));
        }
        self.setting.hint = self.hints.pop().map(usize::from);
    }

    /// Codes whether the magnitude of the next level is above `place`.
    #[inline]
    fn flag(&mut self, set: usize, place: usize, code: impl FnOnce(u64) -> bool) -> bool {
        let places = &mut self.places[set];
        if places.len() <= place {
            places.resize_with(place + 1, Place::default);
        }
        places[place].flag(self.setting, code)
    }

    /// Goes on to the next level.
    #[inline]
    fn learn(&mut self, magnitude: u64) {
        let magnitude = magnitude.min(1 << 16) as f64;
        self.age += 1.0;
        let at_first = 1.0 / (self.age + 1.5);
        for ((mean, of), rate) in self.means.iter_mut().zip(&mut self.setting.means).zip(RATES) {
            *mean += (magnitude - *mean) * rate.max(at_first);
            // Below this, a mean says no more than how long ago the last level was.
            *of = class(*mean + 0.02);
        }
        self.setting.hint = self.hints.pop().map(usize::from);
    }

    fn put(&mut self, set: usize, encoder: &mut RangeEncoder, level: i32, largest: Option<u32>) {
        let magnitude = u64::from(level.unsigned_abs());
        let most = largest.map_or(u64::MAX, u64::from);
        let mut coded = 0;
        while coded < most && coded <= PLACES as u64 {
            let more = magnitude > coded;
            self.flag(set, coded as usize, |probability| {
                encoder.chance(more, probability);
                more
            });
            if !more {
                break;
            }
            coded += 1;
        }
        if coded > PLACES as u64 && coded < most {
            put_gamma(encoder, magnitude - PLACES as u64);
        }
        if level != 0 {
            encoder.raw(u64::from(level < 0), 1);
        }
        self.learn(magnitude);
    }

    fn get(&mut self, set: usize, decoder: &mut RangeDecoder<'_>, largest: Option<u32>) -> Result<i32, Corrupt> {
        let most = largest.map_or(u64::MAX, u64::from);
        let mut magnitude = 0;
        while magnitude < most && magnitude <= PLACES as u64 {
            if !self.flag(set, magnitude as usize, |probability| decoder.chance(probability)) {
                break;
            }
            magnitude += 1;
        }
        if magnitude > PLACES as u64 && magnitude < most {
            magnitude = PLACES as u64 + get_gamma(decoder)?;
        }
        self.learn(magnitude);
        if magnitude == 0 { Ok(0) } else { level(decoder.raw(1) == 1, magnitude, largest) }
    }
}

/// The index of the places of a level in a state of a trellis.
fn set_of(trellis: Trellis, state: u8) -> usize {
    1 + usize::from(trellis.is_second(state))
}

struct MixtureWriter {
    rest: AdaptiveWriter,
    model: Model,
}

impl MessageWriter for MixtureWriter {
    fn part(&mut self, hints: Option<&[f32]>) {
        self.model.part(hints);
    }

    fn put(&mut self, section: &Section) {
        match section {
            Section::Levels { values, largest, trellis: None } => {
                values.iter().for_each(|&level| self.model.put(0, &mut self.rest.encoder, level, *largest));
            }
            Section::Levels { values, largest, trellis: Some(trellis) } => {
                let mut state = 0;
                for &level in values {
                    self.model.put(set_of(*trellis, state), &mut self.rest.encoder, level, *largest);
                    state = trellis.step(state, level);
                }
            }
            other => self.rest.put(other),
        }
    }

    fn bits(&self) -> u64 {
        self.rest.bits()
    }

    fn finish(self: Box<Self>) -> (Vec<u8>, u64) {
        Box::new(self.rest).finish()
    }
}

struct MixtureReader<'a> {
    rest: AdaptiveReader<'a>,
    model: Model,
}

impl Source for MixtureReader<'_> {
    fn floats(&mut self, out: &mut [f32]) -> Result<(), Corrupt> {
        self.rest.floats(out)
    }

    fn halves(&mut self, out: &mut [f16]) -> Result<(), Corrupt> {
        self.rest.halves(out)
    }

    fn number(&mut self, below: u32) -> Result<u32, Corrupt> {
        self.rest.number(below)
    }

    fn waits(&mut self, n: usize, success: f64, most: u64) -> Result<Vec<u64>, Corrupt> {
        self.rest.waits(n, success, most)
    }

    fn positions(&mut self, k: usize, n: u32) -> Result<Vec<u32>, Corrupt> {
        self.rest.positions(k, n)
    }

    fn signs(&mut self, n: usize) -> Result<Vec<bool>, Corrupt> {
        self.rest.signs(n)
    }

    fn symbols(&mut self, n: usize, alphabet: u32) -> Result<Vec<u16>, Corrupt> {
        self.rest.symbols(n, alphabet)
    }

    fn levels(&mut self, n: usize, largest: Option<u32>) -> Result<Vec<i32>, Corrupt> {
        (0..n).map(|_| self.model.get(0, &mut self.rest.decoder, largest)).collect()
    }

    fn walk(&mut self, n: usize, trellis: Trellis) -> Result<Vec<i32>, Corrupt> {
        let mut state = 0;
        let next = |_| {
            let level = self.model.get(set_of(trellis, state), &mut self.rest.decoder, None)?;
            state = trellis.step(state, level);
            Ok(level)
        };
        (0..n).map(next).collect()
    }
}

impl MessageReader for MixtureReader<'_> {
    fn part(&mut self, hints: Option<&[f32]>) {
        self.model.part(hints);
    }

    fn finish(&mut self) -> Result<(), Corrupt> {
        self.rest.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compress::vectors,
        rng::{Address, Purpose},
        vector::norm_squared,
    };
    use rand_distr::{Distribution, Exp1, StandardNormal};

    /// Bits of one message of parts under a coder, read back.
    fn bits(coder: &dyn Coder, parts: &[Vec<i32>], trellis: Option<Trellis>, hints: Option<&[f32]>) -> f64 {
        let mut writer = coder.writer();
        for values in parts {
            writer.part(hints);
            writer.put(&Section::Levels { values: values.clone(), largest: None, trellis });
        }
        let (bytes, bits) = writer.finish();
        let mut reader = coder.reader(&bytes);
        for values in parts {
            reader.part(hints);
            let read = match trellis {
                Some(trellis) => reader.walk(values.len(), trellis),
                None => reader.levels(values.len(), None),
            };
            assert_eq!(read.as_ref(), Ok(values));
        }
        assert_eq!(reader.finish(), Ok(()));
        bits as f64
    }

    /// Nearest levels for a step in units of the root of the mean square.
    fn levels(x: &[f32], step: f64) -> Vec<i32> {
        let step = step * (norm_squared(x) / x.len() as f64).sqrt();
        x.iter().map(|&v| (f64::from(v) / step).round() as i32).collect()
    }

    /// By how many percent the mixture is shorter than one context.
    fn gain(parts: &[Vec<i32>], hints: Option<&[f32]>) -> f64 {
        100.0 * (1.0 - bits(&Mixture {}, parts, None, hints) / bits(&Adaptive {}, parts, None, None))
    }

    #[test]
    fn where_there_is_nothing_to_learn_nothing_is_lost() {
        for x in [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)] {
            for step in [0.5, 1.0, 2.0, 5.0] {
                let gain = gain(&[levels(&x, step)], None);
                assert!(gain > -0.3, "step {step}: {gain}");
            }
        }
    }

    #[test]
    fn layers_of_different_scale_tell_themselves_apart() {
        // spec 5.19: a context for every layer is 22 to 28 % shorter than one context, and the mixture is to come near
        // that.
        let layer = vectors::l(2500);
        let x: Vec<f32> = [1.0, 0.3, 0.1, 0.03].iter().flat_map(|scale| layer.iter().map(move |v| scale * v)).collect();
        for (step, least) in [(0.5, 20.0), (1.0, 23.0), (2.0, 26.0)] {
            let levels = levels(&x, step);
            let parts: Vec<Vec<i32>> = levels.chunks(2500).map(<[i32]>::to_vec).collect();
            let known: f64 = parts.iter().map(|part| bits(&Adaptive {}, std::slice::from_ref(part), None, None)).sum();
            for parts in [&[levels][..], &parts] {
                let (gain, bits) = (gain(parts, None), bits(&Mixture {}, parts, None, None));
                assert!(gain > least, "step {step}: {gain} %");
                assert!(bits < 1.015 * known, "step {step}: {bits} for {known}");
            }
        }
    }

    #[test]
    fn slowly_varying_scales_are_followed_and_hints_help() {
        // spec 5.19: 2.028, 1.244 and 0.652 bits a value; 12 to 19 % less by running means, 14 to 22 % by what is known
        // of the scale.
        let mut normal = Address::new(1, Purpose::Data).generator();
        let mut normal = || -> f64 { StandardNormal.sample(&mut normal) };
        let mut state = normal();
        let scale = |_| {
            state = 0.99 * state + (1.0f64 - 0.99 * 0.99).sqrt() * normal();
            libm::exp(1.1 * state) as f32
        };
        let scales: Vec<f32> = (0..40_000).map(scale).collect();
        let mut generator = Address::new(2, Purpose::Data).generator();
        let laplace = |scale: &f32| -> f32 {
            let (a, b): (f32, f32) = (Exp1.sample(&mut generator), Exp1.sample(&mut generator));
            scale * (a - b)
        };
        let x: Vec<f32> = scales.iter().map(laplace).collect();
        for (step, one, least) in [(0.5, 2.028, 11.0), (1.0, 1.244, 14.0), (2.0, 0.652, 17.0)] {
            let levels = [levels(&x, step)];
            let spent = bits(&Adaptive {}, &levels, None, None) / 40_000.0;
            assert!((spent / one - 1.0).abs() < 0.12, "{spent} bits a value for {one}");
            let (alone, hinted) = (gain(&levels, None), gain(&levels, Some(&scales)));
            assert!(alone > least && hinted > alone + 3.0, "step {step}: {alone} % and {hinted} %");
        }
    }

    #[test]
    fn hints_of_any_value_are_taken() {
        let levels = [vec![1, 0, -3, 70, 0]];
        for hint in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MAX, 1e-45] {
            bits(&Mixture {}, &levels, None, Some(&[1.0, hint, 0.0, hint]));
            bits(&Mixture {}, &levels, None, Some(&[hint; 5]));
        }
        bits(&Mixture {}, &levels, None, Some(&[]));
    }

    #[test]
    fn the_quantisers_of_a_trellis_are_learnt_apart() {
        const FOUR: Trellis = Trellis { next: &[[0, 2], [2, 0], [1, 3], [3, 1]], second: &[false, false, true, true] };
        let mut generator = Address::new(3, Purpose::Data).generator();
        let mut state = 0;
        let next = |_| {
            let normal: f64 = StandardNormal.sample(&mut generator);
            let level = (normal * if FOUR.is_second(state) { 0.4 } else { 2.0 }).round() as i32;
            state = FOUR.step(state, level);
            level
        };
        let levels = [(0..10_000).map(next).collect::<Vec<i32>>()];
        for coder in [&Adaptive {} as &dyn Coder, &Mixture {}] {
            let (plain, walk) = (bits(coder, &levels, None, None), bits(coder, &levels, Some(FOUR), None));
            assert!(walk < 0.9 * plain, "{walk} for {plain}");
        }
    }
}
