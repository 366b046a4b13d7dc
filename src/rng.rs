//! Keyed random streams: every draw of a run comes from a stream addressed by (seed, purpose, round, nodes, part).
//!
//! No generator is ever stored. A stream is recomputed from its [`Address`], so results do not depend on the number of
//! threads, on the order of work or on an interruption, and a draw for one purpose never shifts the draws of another.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a stream is used for. Different purposes never share numbers.
///
/// The discriminants are part of the promise that a seed gives the same results in later versions: append, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// The start vector of the model.
    Start = 1,
    /// The synthetic data set.
    Data = 2,
    /// Which client holds which sample.
    Partition = 3,
    /// Which clients take part in a round.
    Sampling = 4,
    /// The order of a client's samples in its local epochs.
    Batches = 5,
    /// Random crops and flips.
    Augmentation = 6,
    /// Noise that a partitioner adds to a client's samples.
    Noise = 7,
    /// Private randomness of an operator: only the sender knows it.
    Private = 8,
    /// Shared randomness of an operator: both ends of a link derive it, so it costs no bits.
    Shared = 9,
    /// A coin that every node of a round sees alike.
    Coin = 10,
    /// Which messages are captured.
    Capture = 11,
}

/// The address of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    seed: u64,
    purpose: Purpose,
    round: u64,
    from: u32,
    to: u32,
    part: u64,
    inner: u32,
}

impl Address {
    /// The stream of `purpose` under the scenario's `seed`; round, nodes and part are zero until set.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, purpose, round: 0, from: 0, to: 0, part: 0, inner: 0 }
    }

    /// The same stream in another round.
    pub fn round(self, round: u64) -> Self {
        Self { round, ..self }
    }

    /// The same stream at one node.
    pub fn node(self, node: u32) -> Self {
        Self { from: node, ..self }
    }

    /// The same stream for messages from one node to another.
    pub fn link(self, from: u32, to: u32) -> Self {
        Self { from, to, ..self }
    }

    /// The same stream for the `part`-th part of the work: a group of a message, a sample, an epoch.
    pub fn part(self, part: u64) -> Self {
        Self { part, ..self }
    }

    /// The same address for another purpose.
    pub fn purpose(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }

    /// The generator at this address, always from its beginning.
    ///
    /// The whole address is the key of ChaCha8, a pseudo-random function: distinct addresses cannot collide.
    pub fn generator(self) -> ChaCha8Rng {
        let mut key = [0u8; 32];
        key[0..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&(self.purpose as u32).to_le_bytes());
        key[12..20].copy_from_slice(&self.round.to_le_bytes());
        key[20..24].copy_from_slice(&self.from.to_le_bytes());
        key[24..28].copy_from_slice(&self.to.to_le_bytes());
        key[28..32].copy_from_slice(&self.inner.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(self.part);
        generator
    }
}

/// The two streams that an operator may use for one part of one message.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    private: Address,
}

impl Streams {
    /// The streams of the message that goes `from` one node `to` another in `round`.
    ///
    /// `tag` tells apart messages that cross the same link in the same round.
    pub fn message(seed: u64, round: u64, from: u32, to: u32, tag: u16) -> Self {
        let private = Address::new(seed, Purpose::Private).round(round).link(from, to).part(u64::from(tag) << 48);
        Self { private }
    }

    /// The streams of the `part`-th group of the same message.
    pub fn part(self, part: u32) -> Self {
        let private = self.private.part(self.private.part | u64::from(part));
        Self { private }
    }

    /// The streams of the `k`-th thing inside an operator, `k < 255`, four levels deep: another operator, or a second use of shared
    /// randomness. They share no number with the streams of the operator itself.
    pub fn inner(self, k: u8) -> Self {
        let inner = self.private.inner << 8 | (u32::from(k) + 1);
        Self { private: Address { inner, ..self.private } }
    }

    /// Randomness that only the sender uses; never available to a receiver.
    pub fn private(&self) -> ChaCha8Rng {
        self.private.generator()
    }

    /// The private stream for operators that draw a number for every value.
    pub fn private_lanes(&self) -> Lanes {
        Lanes::new(&mut self.private())
    }

    /// Randomness that both ends derive; it depends on the address alone, not on any private draw.
    pub fn shared(&self) -> ChaCha8Rng {
        self.private.purpose(Purpose::Shared).generator()
    }
}

/// Many random numbers fast: sixteen generators xoshiro128++ (Blackman and Vigna, 2021) side by side, seeded from a stream.
#[derive(Clone, Debug)]
pub struct Lanes {
    state: [[u32; Lanes::WIDTH]; 4],
}

impl Lanes {
    /// Numbers that are drawn at once.
    pub const WIDTH: usize = 16;

    fn new(generator: &mut ChaCha8Rng) -> Self {
        let mut state = [[0; Self::WIDTH]; 4];
        state.iter_mut().flatten().for_each(|word| *word = generator.next_u32());
        // A state of zeros would stay there; setting a bit in every lane costs nothing.
        state[0].iter_mut().for_each(|word| *word |= 1);
        Self { state }
    }

    /// The next sixteen numbers of 32 bits.
    #[inline(always)]
    pub fn draw(&mut self) -> [u32; Self::WIDTH] {
        let [a, b, c, d] = &mut self.state;
        let mut drawn = [0; Self::WIDTH];
        for i in 0..Self::WIDTH {
            drawn[i] = a[i].wrapping_add(d[i]).rotate_left(7).wrapping_add(a[i]);
            let shifted = b[i] << 9;
            c[i] ^= a[i];
            d[i] ^= b[i];
            b[i] ^= c[i];
            a[i] ^= d[i];
            c[i] ^= shifted;
            d[i] = d[i].rotate_left(11);
        }
        drawn
    }
}

/// A uniform number in [0, 1) from 32 random bits.
#[inline(always)]
pub fn unit_f64_of_32(bits: u32) -> f64 {
    f64::from(bits) * (1.0 / 4_294_967_296.0)
}

/// A uniform number in [0, 1) from 53 random bits.
#[inline]
pub fn unit_f64(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// A uniform index below `n`, the same on 32- and 64-bit machines; `n` must be positive.
#[inline]
pub fn below(generator: &mut impl rand::Rng, n: u32) -> u32 {
    // Lemire's method: the high half of a product, redrawn in the short biased zone.
    let mut product = u64::from(generator.next_u32()) * u64::from(n);
    if (product as u32) < n {
        let threshold = n.wrapping_neg() % n;
        while (product as u32) < threshold {
            product = u64::from(generator.next_u32()) * u64::from(n);
        }
    }
    (product >> 32) as u32
}

/// Shuffles in place (Fisher-Yates from the end), using only 32-bit draws.
pub fn shuffle<T>(items: &mut [T], generator: &mut impl rand::Rng) {
    for i in (1..items.len()).rev() {
        let j = below(generator, i as u32 + 1) as usize;
        items.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_address_gives_the_same_numbers_and_any_other_gives_others() {
        let base = Address::new(7, Purpose::Batches).round(3).node(5).part(1);
        let first = |address: Address| address.generator().next_u64();
        assert_eq!(first(base), first(base));
        let others = [
            Address::new(8, Purpose::Batches).round(3).node(5).part(1),
            base.purpose(Purpose::Sampling),
            base.round(4),
            base.node(6),
            base.part(2),
            base.link(5, 1),
        ];
        for other in others {
            assert_ne!(first(base), first(other), "{other:?}");
        }
    }

    #[test]
    fn streams_keep_their_values_across_versions() {
        let mut generator = Address::new(0, Purpose::Start).generator();
        let drawn: Vec<u32> = (0..3).map(|_| generator.next_u32()).collect();
        assert_eq!(drawn, [1389847909, 1072424912, 3107563525]);
        let mut order: Vec<u32> = (0..8).collect();
        shuffle(&mut order, &mut Address::new(0, Purpose::Batches).generator());
        assert_eq!(order, [3, 5, 7, 6, 1, 4, 2, 0]);
    }

    #[test]
    fn shared_streams_ignore_private_draws() {
        let streams = Streams::message(1, 2, 3, 4, 0).part(9);
        let mut private = streams.private();
        let before = streams.shared().next_u64();
        private.next_u64();
        assert_eq!(before, streams.shared().next_u64());
        assert_ne!(before, streams.private().next_u64());
    }

    #[test]
    fn lanes_are_the_published_generator_and_uniform() {
        let mut lanes = Lanes { state: [[1; 16], [2; 16], [3; 16], [4; 16]] };
        // The first numbers of xoshiro128++ from the state 1, 2, 3, 4.
        let first: Vec<u32> = (0..4).map(|_| lanes.draw()[5]).collect();
        assert_eq!(first, [641, 1573767, 3222811527, 3517856514]);
        let mut lanes = Streams::message(1, 2, 3, 4, 0).private_lanes();
        let mut counts = [0u32; 8];
        (0..10_000).for_each(|_| lanes.draw().iter().for_each(|bits| counts[(bits >> 29) as usize] += 1));
        // 20,000 expected each, standard deviation 132.
        assert!(counts.iter().all(|&c| (19_400..20_600).contains(&c)), "{counts:?}");
    }

    #[test]
    fn streams_inside_an_operator_are_others() {
        let outer = Streams::message(1, 2, 3, 4, 0).part(9);
        let all = [outer, outer.inner(0), outer.inner(1), outer.inner(0).inner(0), outer.inner(0).inner(1)];
        let firsts: std::collections::BTreeSet<u64> =
            all.iter().flat_map(|streams| [streams.private().next_u64(), streams.shared().next_u64()]).collect();
        assert_eq!(firsts.len(), 2 * all.len());
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut generator = Address::new(3, Purpose::Data).generator();
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[below(&mut generator, 7) as usize] += 1;
        }
        // 10,000 expected each, standard deviation 93; the seed is fixed, so this cannot flake.
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
    }
}
