//! Start vectors.

use rand::Rng;

use crate::{
    layout::Layout,
    rng::{Address, Purpose, unit_f64},
};

/// The start vector of a model: a function of its layout and the seed alone.
///
/// Weights and biases are uniform in `(-1/sqrt(f), 1/sqrt(f))` where `f` is the fan-in of the weight, the default of the
/// frameworks that published figures come from. Fan-in: the first dimension of `[in, out]`, all but the first of
/// `[out, in, height, width]`. Normalisations start as the identity: `gamma = 1`, `beta = 0`.
pub fn start_vector(layout: &Layout, seed: u64) -> Vec<f32> {
    let mut x = Vec::with_capacity(layout.len());
    let mut fan_in = 1;
    for (index, layer) in layout.layers().iter().enumerate() {
        let kind = layer.name.rsplit('.').next().unwrap_or(&layer.name);
        match (kind, layer.shape.as_slice()) {
            ("gamma", _) => x.resize(x.len() + layer.len(), 1.0),
            ("beta", _) => x.resize(x.len() + layer.len(), 0.0),
            (_, shape) => {
                fan_in = match shape {
                    [inputs, _] => *inputs,
                    [_, rest @ ..] if rest.len() >= 2 => rest.iter().product(),
                    // A bias follows its weight.
                    _ => fan_in,
                };
                let bound = 1.0 / (fan_in as f64).sqrt();
                let mut generator = Address::new(seed, Purpose::Start).part(index as u64).generator();
                x.extend((0..layer.len()).map(|_| ((2.0 * unit_f64(generator.next_u64()) - 1.0) * bound) as f32));
            }
        }
    }
    x
}
