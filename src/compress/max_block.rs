//! The block with the most energy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Class, Misfit, Operator, Part, Unfit, read_scale,
    sparse_dithering::{check_nu, multiples, nearest, step},
};
use crate::{
    catalogue::{Named, Strength},
    payload::{Corrupt, Kind, Payload, Section, Source},
    vector::norm_squared,
};

/// Sends one block of consecutive values, that of largest norm, rounded to levels; the rest become zero.
///
/// # Formula
/// Blocks of `block` values, the last one perhaps shorter. In the block of largest Euclidean norm, `C(x)_i = gamma
/// sign(x_i) k_i` with `gamma = 2 |x_B| sqrt(nu / m)` for its `m` values and the whole number `k_i` nearest to `|x_i| /
/// gamma`, as in deterministic sparse dithering; ties go to the first block.
///
/// # Bits
/// 32 for `gamma`, `ceil(log2(number of blocks))` and the code of the unbounded levels of the block: about their
/// entropy with the adaptive coder (the default). A part of zeros is 32 bits.
///
/// # Bound
/// Contractive for every message, `a = (1 - nu) / (number of blocks)`.
///
/// # Source
/// After Zhu, Ghosh, Mazumdar, *Optimal Compression of Unit Norm Vectors in the High Distortion Regime*, 2023 (max
/// block norm quantization). Differs from the source in: the block is quantised by sparse dithering and its levels are
/// entropy-coded.
///
/// # Example
/// `x = (0, 1, 3, -4)`, `block = 2`, `nu = 0.02` sends the second block in steps of 1: `(0, 0, 3, -4)` in 32 + 1 + 11
/// bits with the bitmap coder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxBlock {
    /// Values of a block, at least 1; fewer is more aggressive.
    #[schemars(range(min = 1))]
    pub block: u32,
    /// Largest relative squared error within the block, in [1e-9, 1); higher is more aggressive.
    #[schemars(extend("exclusiveMaximum" = 1.0), range(min = 1e-9))]
    pub nu: f64,
}

impl Default for MaxBlock {
    fn default() -> Self {
        Self { block: 400, nu: 0.15 }
    }
}

impl Named for MaxBlock {
    const NAME: &'static str = "max-block";
    const EXAMPLE: &'static str = "block = 3";
    const STRENGTH: Option<Strength> =
        Some(Strength { key: "block", mildest: 16_777_216.0, harshest: 1.0, whole: true, instead_of: &[] });
}

impl MaxBlock {
    /// Length of a block and number of blocks of `n` values.
    fn blocks(&self, n: usize) -> (usize, usize) {
        let length = (self.block as usize).clamp(1, n);
        (length, n.div_ceil(length))
    }
}

impl Operator for MaxBlock {
    fn compress(&self, x: &[f32], _: &Part<'_>, _: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let (length, count) = self.blocks(x.len());
        let mut best = (0, -1.0, x);
        for (i, block) in x.chunks(length).enumerate() {
            let energy = norm_squared(block);
            if energy > best.1 {
                best = (i, energy, block);
            }
        }
        let (index, _, block) = best;
        let gamma = step(block, self.nu)?;
        payload.push(Section::Floats(vec![gamma]));
        if gamma > 0.0 {
            payload.push(Section::Number { value: index as u32, below: count as u32 });
            payload.push(Section::Levels { values: nearest(block, gamma), largest: None, trellis: None });
        }
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, _: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        out.fill(0.0);
        let gamma = read_scale(source)?;
        if gamma == 0.0 {
            return Ok(());
        }
        let (length, count) = self.blocks(out.len());
        let index = source.number(count as u32)? as usize;
        let block = out.chunks_mut(length).nth(index).ok_or(Corrupt("a block is beyond the vector"))?;
        multiples(&source.levels(block.len(), None)?, gamma, block);
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        Class::Contractive((1.0 - self.nu) / self.blocks(n).1 as f64)
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats, Kind::Number, Kind::UnboundedLevels]
    }

    fn default_coder(&self) -> &'static str {
        "adaptive"
    }

    fn check(&self, _longest: usize) -> Result<(), Misfit> {
        check_nu(self.nu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{
        laws::{error_at_rate, example, payload},
        vectors,
    };

    #[test]
    fn the_example_of_the_doc_comment_holds() {
        let operator = MaxBlock { block: 2, nu: 0.02 };
        assert_eq!(
            example(&operator, "bitmap", &[0.0, 1.0, 3.0, -4.0]),
            (vec![0.0, 0.0, 3.0, -4.0], 32 + 1 + 2 + 2 + 7)
        );
    }

    #[test]
    fn errors_at_equal_bits_are_those_of_the_ranked_table() {
        // spec 6.1, d = 10,000: bits a value, number of blocks, then NMSE on G, L, T. The number of blocks makes 2 to
        // 2.5 bits a value of the block; more blocks would do worse and fewer would leave the idea.
        let table =
            [(0.1, 25, [0.959, 0.953, 0.949]), (0.5, 5, [0.802, 0.797, 0.800]), (1.0, 2, [0.544, 0.532, 0.527])];
        for (rate, blocks, expected) in table {
            let build = |nu| MaxBlock { block: 10_000 / blocks, nu };
            for (x, expected) in [vectors::g(10_000), vectors::l(10_000), vectors::t(10_000)].iter().zip(expected) {
                let error = error_at_rate(&build, (1e-3, 0.99), "adaptive", x, rate, 1);
                assert!((error / expected - 1.0).abs() < 0.01, "{rate}: {error} for {expected}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_first_block_and_the_last_block_may_be_short() {
        let number = |x: &[f32]| payload(&MaxBlock { block: 2, nu: 0.1 }, x).sections[1].clone();
        assert_eq!(number(&[0.0, 1.0, 1.0, 0.0, 1.0]), Section::Number { value: 0, below: 3 });
        assert_eq!(number(&[0.0, 1.0, 1.0, 0.0, 2.0]), Section::Number { value: 2, below: 3 });
    }
}
