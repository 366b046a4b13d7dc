//! Magnitudes as one composition of their sum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Coder, MessageReader, MessageWriter,
    enumerative::{Magnitudes, SubsetReader, SubsetWriter, get_subset, put_subset},
    plain::{get_delta, put_delta},
    range::{RangeDecoder, RangeEncoder},
    sparse::ALL_BUT_SYMBOLS,
};
use crate::{
    catalogue::Named,
    payload::{Corrupt, Kind},
};

/// Subsets and sums at their information content: `m` magnitudes with sum `K` take `log2 C(K - 1, m - 1)` bits.
///
/// The partial sums of the magnitudes but the last are a subset of `K - 1` places, the bars between the stars, and are
/// coded as `enumerative` codes a subset.
///
/// # Bits
/// Positions `log2 C(n, k)`. Levels: the number of nonzero ones in `ceil(log2(n + 1))`, where they are, sign bits,
/// `K - m + 1` in the Elias delta code, `log2 C(K - 1, m - 1)` (the last two not where only 1 is possible). Where `K`
/// is above `64 m + 65536`, a composition takes too many steps to read, and every magnitude is an Elias delta code
/// instead. Waits are Golomb codes. One to two bytes end the message.
///
/// # Writes
/// Everything but symbols.
///
/// # Source
/// Wire format B of the specification, section 5.1; stars and bars: Feller, *An Introduction to Probability Theory*,
/// 1950.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StarsAndBars {}

impl Named for StarsAndBars {
    const NAME: &'static str = "stars-and-bars";
}

impl Coder for StarsAndBars {
    fn kinds(&self) -> &'static [Kind] {
        ALL_BUT_SYMBOLS
    }

    fn writer(&self) -> Box<dyn MessageWriter> {
        Box::new(SubsetWriter::new(*self))
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Box<dyn MessageReader + 'a> {
        Box::new(SubsetReader::new(*self, bytes))
    }
}

/// The largest sum that `m` magnitudes are a composition of: it takes as many steps to read. One magnitude is its own
/// sum.
fn largest_sum(m: u64) -> u64 {
    if m == 1 { i32::MAX as u64 } else { (64 * m + 65_536).min(u32::MAX.into()) }
}

impl Magnitudes for StarsAndBars {
    fn put(self, encoder: &mut RangeEncoder, magnitudes: &[u32]) {
        let m = magnitudes.len() as u64;
        if m == 0 {
            return;
        }
        let sum: u64 = magnitudes.iter().map(|&magnitude| u64::from(magnitude)).sum();
        put_delta(encoder, sum.min(largest_sum(m) + 1) - m + 1);
        if sum > largest_sum(m) {
            magnitudes.iter().for_each(|&magnitude| put_delta(encoder, magnitude.into()));
            return;
        }
        let mut partial = 0;
        let mut bar = |&magnitude: &u32| {
            partial += magnitude;
            partial - 1
        };
        let bars: Vec<u32> = magnitudes[..magnitudes.len() - 1].iter().map(&mut bar).collect();
        put_subset(encoder, &bars, (sum - 1) as u32);
    }

    fn get(self, decoder: &mut RangeDecoder<'_>, m: usize, _most: u64) -> Result<Vec<u64>, Corrupt> {
        if m == 0 {
            return Ok(Vec::new());
        }
        let sum = get_delta(decoder)? - 1 + m as u64;
        if sum > largest_sum(m as u64) {
            return (0..m).map(|_| get_delta(decoder)).collect();
        }
        let bars = get_subset(decoder, m - 1, (sum - 1) as u32)?;
        let ends = bars.into_iter().map(|bar| u64::from(bar) + 1).chain([sum]);
        let mut before = 0;
        let magnitude = |end| {
            let magnitude = end - before;
            before = end;
            magnitude
        };
        Ok(ends.map(magnitude).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compress::vectors, payload::Section, vector::norm_squared};

    fn bits_of(values: Vec<i32>) -> u64 {
        let section = Section::Levels { values: values.clone(), largest: None, trellis: None };
        let mut writer = StarsAndBars {}.writer();
        writer.put(&Section::Floats(vec![1.5]));
        writer.put(&section);
        let (bytes, bits) = writer.finish();
        let mut reader = StarsAndBars {}.reader(&bytes);
        assert_eq!(reader.float(), Ok(1.5));
        assert_eq!(reader.levels(values.len(), None), Ok(values));
        assert_eq!(reader.finish(), Ok(()));
        bits
    }

    #[test]
    fn sparse_dithering_takes_the_bits_of_wire_format_b() {
        // spec 5.1, d = 1000
        let table = [
            (vectors::g(1000), 0.05, 824, 1770, 3307),
            (vectors::g(1000), 0.1, 752, 1240, 2805),
            (vectors::g(1000), 0.25, 618, 764, 2162),
            (vectors::g(1000), 0.5, 480, 514, 1703),
            (vectors::g(1000), 0.9, 344, 348, 1345),
            (vectors::l(1000), 0.1, 640, 1086, 2690),
            (vectors::l(1000), 0.5, 368, 424, 1599),
            (vectors::t(1000), 0.1, 682, 1102, 2687),
            (vectors::t(1000), 0.5, 382, 434, 1615),
        ];
        for (x, nu, m, sum, bits) in table {
            let step = 2.0 * (nu / 1000.0f64 * norm_squared(&x)).sqrt();
            // Halves go to the smaller level.
            let level = |&v: &f32| (f64::from(v.abs()) / step - 0.5).ceil().copysign(f64::from(v)) as i32;
            let levels: Vec<i32> = x.iter().map(level).collect();
            assert_eq!(levels.iter().filter(|&&level| level != 0).count(), m);
            assert_eq!(levels.iter().map(|level| level.unsigned_abs()).sum::<u32>(), sum);
            let spent = bits_of(levels);
            assert!(spent.abs_diff(bits) <= 16, "nu = {nu}: {spent} for {bits}");
        }
    }

    #[test]
    fn one_level_costs_where_it_is_and_its_sum() {
        let mut levels = vec![0; 1000];
        levels[3] = -50;
        // float, count, position, sign, delta of 50: the sum is the magnitude.
        assert!(bits_of(levels.clone()).abs_diff(32 + 10 + 10 + 1 + 10) <= 16);
        levels[4] = i32::MAX;
        levels[5] = -i32::MAX;
        assert!(bits_of(levels) < 300, "sums without a short way are written one by one");
    }
}
