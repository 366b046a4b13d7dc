//! Trellis-coded quantisation with rate-distortion optimisation: the search that `tcq` and `weave` share.
//!
//! Levels live on two interleaved quantisers, `Q0` with the even multiples of a step and `Q1` with the odd ones and zero. A small
//! machine, driven by the parities of the levels, says which of them is in use; so both ends follow it for free, and the encoder
//! looks for the best path (Viterbi) instead of the nearest level.

use half::f16;

use crate::{
    payload::Trellis,
    vector::{linf, vectorised},
};

/// Four states.
pub const FOUR: Trellis = Trellis { next: &[[0, 2], [2, 0], [1, 3], [3, 1]], second: &[false, false, true, true] };

/// Eight states, as in dependent quantisation of Versatile Video Coding.
pub const EIGHT: Trellis = Trellis {
    next: &[[0, 2], [5, 7], [1, 3], [6, 4], [2, 0], [4, 6], [3, 1], [7, 5]],
    second: &[false, true, false, true, false, true, false, true],
};

/// Thirty-two states: Ungerboeck's code with the parity-check polynomials 10 and 45 (octal).
pub const THIRTY_TWO: Trellis = Trellis { next: &UNGERBOECK_32.0, second: &UNGERBOECK_32.1 };

static UNGERBOECK_32: ([[u8; 2]; 32], [bool; 32]) = ungerboeck(0o10, 0o45);

/// The systematic feedback encoder of a rate-1/2 code with 32 states: the lowest bit of a state is the parity that selects the
/// quantiser.
const fn ungerboeck(input: usize, feedback: usize) -> ([[u8; 2]; 32], [bool; 32]) {
    let (mut next, mut second) = ([[0; 2]; 32], [false; 32]);
    let mut state = 0;
    while state < 32 {
        let parity = state & 1;
        second[state] = parity == 1;
        let mut x = 0;
        while x < 2 {
            let (mut to, mut j) = (0, 1);
            while j <= 5 {
                let shifted = if j < 5 { state >> j & 1 } else { 0 };
                to |= (shifted ^ (feedback >> j & parity & 1) ^ (input >> j & x & 1)) << (j - 1);
                j += 1;
            }
            next[state][x] = to as u8;
            x += 1;
        }
        state += 1;
    }
    (next, second)
}

/// Where levels are restored: at their nominal value, moved by an offset, all in units of the step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offsets {
    /// For magnitude 1 in each quantiser.
    pub first: [f32; 2],
    /// For larger magnitudes.
    pub larger: f32,
}

/// How an offset is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As a 16-bit float.
    Half,
    /// In steps of 1/64, from -2 to 2.
    Byte,
}

impl Precision {
    /// The offset that is sent for `offset`.
    pub fn round(self, offset: f64) -> f32 {
        match self {
            Self::Half => f16::from_f64(offset.min(f64::from(f16::MAX))).to_f32(),
            Self::Byte => Self::from_byte(Self::to_byte(offset as f32)),
        }
    }

    /// The number below 256 that stands for an offset.
    pub fn to_byte(offset: f32) -> u32 {
        ((offset * 64.0).round() + 128.0).clamp(0.0, 255.0) as u32
    }

    /// The offset that a number below 256 stands for.
    pub fn from_byte(byte: u32) -> f32 {
        (byte as f32 - 128.0) / 64.0
    }
}

impl Offsets {
    /// The magnitude of a level of a quantiser, in units of the step.
    #[inline]
    pub fn value(&self, second: bool, magnitude: u32) -> f32 {
        let nominal = |m: u32| (2 * u64::from(m) - u64::from(second)) as f32;
        match magnitude {
            0 => 0.0,
            1 => nominal(1) + self.first[usize::from(second)],
            m => nominal(m) + self.larger,
        }
    }
}

/// Values beyond so many steps are cut off: their levels would not fit.
const LARGEST: f64 = 1e9;

/// Places of the unary code of magnitudes with a probability of their own, as in the adaptive coder.
const PLACES: usize = 15;

/// What levels cost: the ideal lengths of an adaptive coder that keeps the two quantisers apart.
#[derive(Clone, Debug)]
struct Costs {
    /// Bits of a magnitude up to `PLACES`, sign included, for each quantiser.
    table: [[f32; PLACES + 1]; 2],
}

impl Costs {
    /// Before anything is known: so many bits for every unit of magnitude.
    fn guess(bits: f32) -> Self {
        Self { table: [std::array::from_fn(|m| bits * m as f32); 2] }
    }

    #[inline]
    fn bits(&self, second: bool, magnitude: u32) -> f32 {
        let table = &self.table[usize::from(second)];
        match table.get(magnitude as usize) {
            Some(&bits) => bits,
            // Beyond the table an Elias gamma code follows.
            None => table[PLACES] + 1.0 + 2.0 * (magnitude - PLACES as u32).ilog2() as f32,
        }
    }
}

/// Occurrences of the decisions that a coder would be told: zero or not, one more or not.
#[derive(Default)]
struct Counts {
    nonzero: [[u32; 2]; 2],
    more: [[[u32; 2]; PLACES]; 2],
}

impl Counts {
    fn add(&mut self, second: bool, magnitude: u32) {
        let q = usize::from(second);
        self.nonzero[q][usize::from(magnitude != 0)] += 1;
        for place in 0..PLACES.min(magnitude as usize) {
            self.more[q][place][usize::from(magnitude as usize > place + 1)] += 1;
        }
    }

    /// Bits of all decisions under the estimate of Krichevsky and Trofimov, signs and escapes excluded.
    fn adaptive_bits(&self) -> f64 {
        self.nonzero.iter().chain(self.more.iter().flatten()).map(|&[a, b]| beta_binomial_bits(a, b)).sum()
    }

    fn costs(&self) -> Costs {
        let length = |counts: [u32; 2], bit: usize| {
            let total = f64::from(counts[0]) + f64::from(counts[1]) + 1.0;
            -libm::log2((f64::from(counts[bit]) + 0.5) / total) as f32
        };
        let table = |q: usize| {
            let mut table = [0.0; PLACES + 1];
            table[0] = length(self.nonzero[q], 0);
            let mut so_far = length(self.nonzero[q], 1) + 1.0;
            for (bits, &more) in table[1..].iter_mut().zip(&self.more[q]) {
                *bits = so_far + length(more, 0);
                so_far += length(more, 1);
            }
            table
        };
        Costs { table: [table(0), table(1)] }
    }
}

/// `-log2` of the probability that the estimate of Krichevsky and Trofimov gives to `zeros` and `ones` in any order.
fn beta_binomial_bits(zeros: u32, ones: u32) -> f64 {
    let ln_gamma_half = libm::lgamma(0.5);
    let (a, b) = (f64::from(zeros), f64::from(ones));
    let ln = libm::lgamma(a + 0.5) + libm::lgamma(b + 0.5) - 2.0 * ln_gamma_half - libm::lgamma(a + b + 1.0);
    -ln / std::f64::consts::LN_2
}

/// A quantised vector.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Signed levels.
    pub levels: Vec<i32>,
    /// Where they are restored.
    pub offsets: Offsets,
    /// What an adaptive coder needs for the levels, in bits, learning included.
    pub bits: f64,
    /// Squared error in units of the squared step.
    pub error: f64,
}

/// How offsets are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recentre {
    /// One offset for all levels.
    Common,
    /// One for magnitude 1 of each quantiser and one for the rest.
    Apart,
}

/// What a search optimises.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The machine.
    pub trellis: Trellis,
    /// Price of a bit in units of the squared step.
    pub lambda: f32,
    /// How offsets are chosen.
    pub recentre: Recentre,
    /// How offsets are sent.
    pub precision: Precision,
    /// Bits that the first pass takes a unit of magnitude to cost. Starting from 0 ends in finer walks and less error at equal bits.
    pub start: f32,
    /// Number of passes; costs and offsets of one are those that the next one assumes. At least 1.
    pub passes: u32,
}

impl Search {
    /// Quantises `x` with a step above 0.
    pub fn run(&self, x: &[f32], step: f32) -> Walk {
        let inverse = 1.0 / f64::from(step);
        let y: Vec<f32> = x.iter().map(|&v| (f64::from(v) * inverse).clamp(-LARGEST, LARGEST) as f32).collect();
        let (mut costs, mut offsets) = (Costs::guess(self.start), Offsets::default());
        let mut levels = Vec::new();
        let mut counts = Counts::default();
        for _ in 0..self.passes.max(1) {
            levels = match self.trellis.next.len() {
                4 => path(&y, self, &costs, &offsets, advance::<4>),
                8 => path(&y, self, &costs, &offsets, advance::<8>),
                _ => path(&y, self, &costs, &offsets, |_, price, step| advance_32(price, step)),
            };
            counts = self.count(&levels);
            costs = counts.costs();
            offsets = self.offsets(&y, &levels);
        }
        let (mut bits, mut error, mut state) = (counts.adaptive_bits(), 0.0, 0);
        for (&level, &y) in levels.iter().zip(&y) {
            let (second, magnitude) = (self.trellis.is_second(state), level.unsigned_abs());
            bits += f64::from(u8::from(magnitude > 0));
            if magnitude > PLACES as u32 {
                bits += f64::from(1 + 2 * (magnitude - PLACES as u32).ilog2());
            }
            error += f64::from(y.abs() - offsets.value(second, magnitude)).powi(2);
            state = self.trellis.step(state, level);
        }
        Walk { levels, offsets, bits, error }
    }

    fn count(&self, levels: &[i32]) -> Counts {
        let (mut counts, mut state) = (Counts::default(), 0);
        for &level in levels {
            counts.add(self.trellis.is_second(state), level.unsigned_abs());
            state = self.trellis.step(state, level);
        }
        counts
    }

    /// The offsets with the least error for these levels, rounded as they are sent.
    fn offsets(&self, y: &[f32], levels: &[i32]) -> Offsets {
        // Sum of the excess over the nominal value, and number: first of each quantiser, larger.
        let (mut sums, mut state) = ([(0.0f64, 0.0f64); 3], 0);
        let nominal = Offsets::default();
        for (&level, &y) in levels.iter().zip(y) {
            let second = self.trellis.is_second(state);
            let magnitude = level.unsigned_abs();
            if magnitude > 0 {
                let at = if magnitude == 1 { usize::from(second) } else { 2 };
                sums[at].0 += f64::from(y.abs() - nominal.value(second, magnitude));
                sums[at].1 += 1.0;
            }
            state = self.trellis.step(state, level);
        }
        let mean = |(sum, number): (f64, f64)| self.precision.round(if number > 0.0 { sum / number } else { 0.0 });
        match self.recentre {
            Recentre::Apart => Offsets { first: [mean(sums[0]), mean(sums[1])], larger: mean(sums[2]) },
            Recentre::Common => {
                let all = mean(sums.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1)));
                Offsets { first: [all; 2], larger: all }
            }
        }
    }
}

/// The cheapest level of each quantiser and parity for a magnitude, at `2 quantiser + parity`: its value, its price in bits times
/// `lambda`, and itself.
#[derive(Clone, Copy, Default)]
struct Candidates {
    value: [f32; 4],
    price: [f32; 4],
    magnitude: [u32; 4],
}

impl Candidates {
    fn new(a: f32, lambda: f32, costs: &Costs, offsets: &Offsets) -> Self {
        let mut best = [f32::MAX; 4];
        let mut found = Self::default();
        for second in [false, true] {
            // Levels of a quantiser stand two steps apart; the two below and the two above cover both parities twice.
            let middle = ((a + f32::from(second)) * 0.5) as u32;
            let mut consider = |m: u32| {
                let (value, price) = (offsets.value(second, m), lambda * costs.bits(second, m));
                let at = 2 * usize::from(second) + (m & 1) as usize;
                let total = (a - value).powi(2) + price;
                if total < best[at] {
                    best[at] = total;
                    (found.value[at], found.price[at], found.magnitude[at]) = (value, price, m);
                }
            };
            consider(0);
            consider(1);
            for m in middle.saturating_sub(1).max(2)..=middle + 2 {
                consider(m);
            }
        }
        found
    }

    /// The prices of the four, error included.
    #[inline]
    fn total(&self, a: f32) -> [f32; 4] {
        std::array::from_fn(|i| (a - self.value[i]).powi(2) + self.price[i])
    }
}

/// Candidates on a grid of magnitudes: near the border of two levels it hardly matters which of them is the candidate.
struct Grid<'a> {
    cells: Vec<Candidates>,
    lambda: f32,
    costs: &'a Costs,
    offsets: &'a Offsets,
}

impl<'a> Grid<'a> {
    const CELLS_PER_STEP: f32 = 16.0;

    fn new(largest: f32, lambda: f32, costs: &'a Costs, offsets: &'a Offsets) -> Self {
        let cells = (largest * Self::CELLS_PER_STEP).min(1023.0) as usize + 1;
        let cell = |i: usize| Candidates::new((i as f32 + 0.5) / Self::CELLS_PER_STEP, lambda, costs, offsets);
        Self { cells: (0..cells).map(cell).collect(), lambda, costs, offsets }
    }

    #[inline]
    fn at(&self, a: f32) -> Candidates {
        match self.cells.get((a * Self::CELLS_PER_STEP) as usize) {
            Some(cell) => *cell,
            None => Candidates::new(a, self.lambda, self.costs, self.offsets),
        }
    }
}

/// The two ways into every state, by the parity of the level: where from, and the kind of level, `2 quantiser + parity`.
fn ways<const N: usize>(trellis: Trellis) -> [[(u8, u8); 2]; N] {
    let mut ways = [[(0, 0); 2]; N];
    for (state, next) in (0..).zip(trellis.next) {
        for (parity, &to) in (0..).zip(next) {
            ways[usize::from(to)][usize::from(parity)] = (state, 2 * u8::from(trellis.is_second(state)) + parity);
        }
    }
    ways
}

/// One step of the search through few states; the result has a bit for every state that an odd level leads to.
#[inline(always)]
fn advance<const N: usize>(ways: &[[(u8, u8); 2]; N], price: &mut [f32; N], step: [f32; 4]) -> u32 {
    let mut next = [0.0; N];
    let mut turns = 0;
    for (to, ways) in ways.iter().enumerate() {
        let [even, odd] = ways.map(|(from, kind)| price[usize::from(from)] + step[usize::from(kind)]);
        turns |= u32::from(odd < even) << to;
        next[to] = if odd < even { odd } else { even };
    }
    *price = next;
    turns
}

/// The same for the machine of 32 states, whose ways are shifts and exclusive-ors: states below 16 are reached from even states by
/// the first quantiser, the others from odd ones by the second.
#[inline(always)]
fn advance_32(price: &mut [f32; 32], step: [f32; 4]) -> u32 {
    let even: [f32; 16] = std::array::from_fn(|u| price[2 * u]);
    let odd: [f32; 16] = std::array::from_fn(|u| price[2 * u + 1]);
    let mut turns = 0;
    for to in 0..16 {
        let (a, b) = (even[to] + step[0], even[to ^ 4] + step[1]);
        turns |= u32::from(b < a) << to;
        price[to] = if b < a { b } else { a };
    }
    for to in 0..16 {
        let (a, b) = (odd[to ^ 2] + step[2], odd[to ^ 6] + step[3]);
        turns |= u32::from(b < a) << (to + 16);
        price[to + 16] = if b < a { b } else { a };
    }
    turns
}

/// The path through `N` states with the least price.
fn path<const N: usize>(
    y: &[f32],
    search: &Search,
    costs: &Costs,
    offsets: &Offsets,
    advance: impl Fn(&[[(u8, u8); 2]; N], &mut [f32; N], [f32; 4]) -> u32,
) -> Vec<i32> {
    let ways = ways::<N>(search.trellis);
    let grid = Grid::new(linf(y), search.lambda, costs, offsets);
    let mut price = [f32::MAX / 4.0; N];
    price[0] = 0.0;
    let mut turns = vec![0u32; y.len()];
    vectorised(
        #[inline(always)]
        || {
            for (i, (&y, turns)) in y.iter().zip(&mut turns).enumerate() {
                *turns = advance(&ways, &mut price, grid.at(y.abs()).total(y.abs()));
                // Only differences count; kept small, they do not lose their digits.
                if i % 32 == 31 {
                    let least = price.iter().copied().fold(f32::MAX, f32::min);
                    price.iter_mut().for_each(|price| *price -= least);
                }
            }
        },
    );
    let mut state = (0..N).min_by(|&a, &b| price[a].total_cmp(&price[b])).expect("there are states");
    let mut levels = vec![0; y.len()];
    for (i, level) in levels.iter_mut().enumerate().rev() {
        let (from, kind) = ways[state][(turns[i] >> state & 1) as usize];
        let magnitude = grid.at(y[i].abs()).magnitude[usize::from(kind)] as i32;
        *level = if y[i] < 0.0 { -magnitude } else { magnitude };
        state = usize::from(from);
    }
    levels
}

/// Restores a walk in place of `out`; saturates instead of overflowing.
pub fn restore(levels: &[i32], trellis: Trellis, offsets: &Offsets, step: f32, out: &mut [f32]) {
    let mut state = 0;
    for (out, &level) in out.iter_mut().zip(levels) {
        let magnitude = (step * offsets.value(trellis.is_second(state), level.unsigned_abs())).min(f32::MAX);
        *out = if level < 0 { -magnitude } else { magnitude };
        state = trellis.step(state, level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_permutations_that_every_state_can_be_reached_in() {
        for trellis in [FOUR, EIGHT, THIRTY_TWO] {
            let n = trellis.next.len();
            let mut into = vec![0; n];
            trellis.next.iter().flatten().for_each(|&to| into[usize::from(to)] += 1);
            assert!(into.iter().all(|&ways| ways == 2));
            assert_eq!(trellis.second.len(), n);
            assert_eq!(trellis.second.iter().filter(|&&second| second).count(), n / 2);
        }
    }

    #[test]
    fn the_shortcut_through_32_states_is_the_machine() {
        let ways = ways::<32>(THIRTY_TWO);
        let mut price: [f32; 32] = std::array::from_fn(|i| (i * 7919 % 31) as f32 * 0.1);
        let mut other = price;
        for i in 0..50 {
            let step = std::array::from_fn(|k| ((i + 3) * (k + 5) * 104_729 % 97) as f32 * 0.013);
            assert_eq!(advance(&ways, &mut price, step), advance_32(&mut other, step));
            assert_eq!(price, other);
        }
    }

    #[test]
    fn the_path_is_no_worse_than_any_path() {
        // All walks of six levels with magnitudes up to two, by brute force.
        let y = [0.3f32, -2.2, 1.1, 4.7, -0.9, 3.1];
        let search = Search {
            trellis: FOUR,
            lambda: 0.3,
            recentre: Recentre::Common,
            precision: Precision::Half,
            start: 2.0,
            passes: 1,
        };
        let (costs, offsets) = (Costs::guess(2.0), Offsets::default());
        let price = |levels: &[i32]| {
            let mut state = 0;
            let mut total = 0.0;
            for (&level, &y) in levels.iter().zip(&y) {
                let second = FOUR.is_second(state);
                let value = offsets.value(second, level.unsigned_abs()) * level.signum() as f32;
                total += (y - value).powi(2) + 0.3 * costs.bits(second, level.unsigned_abs());
                state = FOUR.step(state, level);
            }
            total
        };
        let found = price(&path(&y, &search, &costs, &offsets, advance::<4>));
        for code in 0..7usize.pow(6) {
            let levels: Vec<i32> = (0..6).map(|i| (code / 7usize.pow(i) % 7) as i32 - 3).collect();
            assert!(found <= price(&levels) + 1e-3);
        }
    }
}
