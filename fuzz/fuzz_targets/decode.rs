//! Any bytes into every decoder: an error or a vector of finite values, never a panic, and no more memory than the vector needs.
//!
//! The first two bytes of an input choose operator and coder, the third the length of the vector, the fourth the granularity.

#![no_main]
#![allow(dead_code, unused_imports)]

#[path = "../../src/catalogue.rs"]
pub mod catalogue;
#[path = "../../src/compress/mod.rs"]
pub mod compress;
#[path = "../../src/layout.rs"]
pub mod layout;
#[path = "../../src/link/mod.rs"]
pub mod link;
#[path = "../../src/payload.rs"]
pub mod payload;
#[path = "../../src/rng.rs"]
pub mod rng;
#[path = "../../src/vector.rs"]
pub mod vector;
#[path = "../../src/wire/mod.rs"]
pub mod wire;

use std::sync::{Arc, LazyLock};

use compress::Granularity;
use layout::Layout;
use libfuzzer_sys::fuzz_target;
use link::Codec;
use rng::Streams;
use wire::Packet;

/// Operators with the coders that can write what they send, by their places in the catalogues.
static PAIRS: LazyLock<Vec<(usize, usize)>> = LazyLock::new(|| {
    let mut pairs = Vec::new();
    for (i, operator) in compress::CATALOGUE.iter().enumerate() {
        let operator = operator.build_example().expect("examples are valid").part;
        for (j, coder) in wire::CATALOGUE.iter().enumerate() {
            let coder = coder.build_example().expect("examples are valid").part;
            if operator.kinds().iter().all(|kind| coder.kinds().contains(kind)) {
                pairs.push((i, j));
            }
        }
    }
    pairs
});

fuzz_target!(|input: &[u8]| {
    let [high, low, length, granularity, message @ ..] = input else { return };
    let (operator, coder) = PAIRS[usize::from(u16::from_be_bytes([*high, *low])) % PAIRS.len()];
    let n = 1 + usize::from(*length) * 3;
    let layout = Arc::new(Layout::new([("a".to_owned(), vec![n / 2]), ("b".to_owned(), vec![n - n / 2])]));
    let granularity = match granularity % 3 {
        0 => Granularity::Model,
        1 => Granularity::Layer,
        _ => Granularity::Blocks(17),
    };
    let operator = compress::CATALOGUE[operator].build_example().expect("examples are valid").part;
    let coder = wire::CATALOGUE[coder].build_example().expect("examples are valid").part;
    // Settings that do not fit the length are refused before any message.
    let Ok(codec) = Codec::new(operator, coder, layout, granularity) else { return };
    let packet = Packet { bytes: message.to_vec(), ..Packet::default() };
    let mut out = vec![0.0; n];
    if codec.decode(&packet, None, Streams::message(1, 2, 3, 4, 0), &mut out).is_ok() {
        assert!(out.iter().all(|value| value.is_finite()));
    }
});
