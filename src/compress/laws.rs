//! Laws that every operator obeys, in one loop over the catalogue; measurements that the operators' own tests use.

use std::sync::Arc;

use proptest::prelude::*;

use super::{CATALOGUE, Class, Operator, Part, vectors};
use crate::{
    catalogue,
    compress::Granularity,
    layout::{Layer, Layout},
    link::{Codec, Unsendable},
    payload::Payload,
    rng::Streams,
    vector::{distance_squared, norm_squared},
    wire::{self, Coder, Packet},
};

fn streams(draw: u64) -> Streams {
    Streams::message(11, draw, 1, 2, 0)
}

fn coder(name: &str) -> Box<dyn Coder> {
    catalogue::find(wire::CATALOGUE, name)
        .expect("the coder is listed")
        .build_example()
        .expect("examples are valid")
        .part
}

/// Runs one part through operator and coder: the payload it describes, its bits, and the vector that comes back from the bytes.
fn through(operator: &dyn Operator, coder: &dyn Coder, x: &[f32], draw: u64) -> (Payload, u64, Vec<f32>) {
    let layers = [Layer { name: "x".into(), shape: vec![x.len()], range: 0..x.len() }];
    let part = Part { layers: &layers, streams: streams(draw) };
    let mut payload = Payload::default();
    operator.compress(x, &part, &mut Vec::new(), &mut payload).expect("the vector can be compressed");
    let mut writer = coder.writer();
    payload.sections.iter().for_each(|section| writer.put(section));
    let (bytes, bits) = writer.finish();
    let mut reader = coder.reader(&bytes);
    let mut out = vec![f32::NAN; x.len()];
    operator.restore(&mut *reader, &part, &mut out).expect("a message can be read");
    reader.finish().expect("a message is read to its end");
    let mut from_payload = vec![f32::NAN; x.len()];
    operator.restore(&mut payload.source(), &part, &mut from_payload).expect("a payload can be restored");
    assert!(out.iter().zip(&from_payload).all(|(a, b)| a.to_bits() == b.to_bits()), "bytes and payload agree");
    (payload, bits, out)
}

/// The decoded vector and the payload bits of one message.
pub fn example(operator: &dyn Operator, coder_name: &str, x: &[f32]) -> (Vec<f32>, u64) {
    let (_, bits, out) = through(operator, &*coder(coder_name), x, 0);
    (out, bits)
}

/// The payload bits of one message.
pub fn wire_bits(operator: &dyn Operator, coder_name: &str, x: &[f32]) -> u64 {
    example(operator, coder_name, x).1
}

/// The relative squared error of one message.
pub fn error(operator: &dyn Operator, x: &[f32]) -> f64 {
    let (out, _) = example(operator, operator.default_coder(), x);
    distance_squared(x, &out) / norm_squared(x)
}

fn mean_and_standard_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Mean relative squared error over draws, with its standard error.
pub fn mean_error(operator: &dyn Operator, x: &[f32], draws: u64) -> (f64, f64) {
    let coder = coder(operator.default_coder());
    let one = |draw| distance_squared(x, &through(operator, &*coder, x, draw).2) / norm_squared(x);
    mean_and_standard_error(&(0..draws).map(one).collect::<Vec<_>>())
}

/// Asserts that the mean error of 200 draws is within five standard errors of its closed form.
pub fn assert_mean_error(operator: &dyn Operator, x: &[f32], exact: f64) {
    let (mean, standard_error) = mean_error(operator, x, 200);
    assert!((mean - exact).abs() <= 5.0 * standard_error + 1e-9, "{mean} +- {standard_error} for {exact}");
}

/// Mean payload bits over draws, with their standard error.
pub fn mean_bits(operator: &dyn Operator, coder_name: &str, x: &[f32], draws: u64) -> (f64, f64) {
    let coder = coder(coder_name);
    let one = |draw| through(operator, &*coder, x, draw).1 as f64;
    mean_and_standard_error(&(0..draws).map(one).collect::<Vec<_>>())
}

/// Sum over values of the variance of random rounding between the points below and above: `(|x| - low)(high - |x|)`.
pub fn rounding_error(x: &[f32], low: impl Fn(f64) -> f64, high: impl Fn(f64) -> f64) -> f64 {
    x.iter().map(|v| f64::from(v.abs())).filter(|v| *v > 0.0).map(|v| (v - low(v)) * (high(v) - v)).sum()
}

type Combination = (String, Box<dyn Operator>, Box<dyn Coder>);

/// Every operator under every coder that can write it.
fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    for operator in CATALOGUE {
        for coder in wire::CATALOGUE {
            let (name, operator) = (operator.name, operator.build_example().expect("examples are valid").part);
            let (coder_name, coder) = (coder.name, coder.build_example().expect("examples are valid").part);
            if operator.kinds().iter().all(|kind| coder.kinds().contains(kind)) {
                all.push((format!("{name} with {coder_name}"), operator, coder));
            }
        }
    }
    all
}

/// Vectors that have broken compressors before.
fn hard_vectors() -> Vec<(&'static str, Vec<f32>)> {
    let mut all = Vec::new();
    for d in [1, 2, 3, 7, 8, 9, 255, 256, 257, 1000, 4097] {
        all.push(("Gaussian", vectors::g(d)));
        all.push(("heavy-tailed", vectors::t(d)));
        all.push(("zero", vec![0.0; d]));
        all.push(("negative zero", vec![-0.0; d]));
        all.push(("constant", vec![0.3; d]));
        all.push(("alternating", (0..d).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect()));
        all.push(("one-hot", (0..d).map(|i| if i == d / 2 { -2.5 } else { 0.0 }).collect()));
        all.push(("subnormal", (0..d).map(|i| f32::from_bits(i as u32 + 1)).collect()));
        all.push(("tiny", vec![1e-38; d]));
        all.push(("huge", (0..d).map(|i| if i % 3 == 0 { 1e30 } else { -3e29 }).collect()));
    }
    all
}

#[test]
fn every_vector_comes_back_finite_and_zeros_stay_zeros() {
    for (name, operator, coder) in combinations() {
        for (kind, x) in hard_vectors() {
            let (_, bits, out) = through(&*operator, &*coder, &x, 3);
            assert!(out.iter().all(|value| value.is_finite()), "{name}: {kind} vector of {}", x.len());
            if norm_squared(&x) == 0.0 {
                assert!(out.iter().all(|&value| value == 0.0), "{name}: {kind} vector of {}", x.len());
            }
            let again = through(&*operator, &*coder, &x, 3);
            assert_eq!((bits, &out), (again.1, &again.2), "{name}: the same address gives the same bits");
        }
    }
}

/// Every operator with its example, and further settings that take another way through the code.
fn settings() -> Vec<(String, Box<dyn Operator>)> {
    let more = [
        ("top-k", "k = 1"),
        ("rand-k", "ratio = 0.3\nscaled = false"),
        ("qsgd", "levels = 3\nnorm = \"linf\""),
        ("qsgd", "levels = 2\nbucket = 7"),
        ("terngrad", "clip = 2.5"),
        ("terngrad", "clip = 0.1"),
        ("drive", "scale = \"biased\""),
        ("drive", "centroids = 2"),
        ("eden", "bits = 0.4"),
        ("eden", "bits = 3.5\nscale = \"biased\""),
        ("eden", "bits = 1\nscale = \"matched\""),
        ("eden", "step = 0.5\nscale = \"biased\""),
        ("eden", "step = 3.0"),
        ("quic-fl", "bits = 1"),
        ("rotated", "of = { operator = \"top-k\", ratio = 0.3 }\nscale = \"unbiased\""),
        (
            "rotated",
            "of = { operator = \"composed\", first = { operator = \"rand-k\", k = 9 }, second = { operator = \"eden\", bits = 1.5 } }",
        ),
        ("composed", "first = { operator = \"rand-k\", ratio = 0.5 }\nsecond = { operator = \"qsgd\" }"),
        ("induced", "biased = { operator = \"sign\" }\nunbiased = { operator = \"rand-k\", ratio = 0.5 }"),
    ];
    let examples = CATALOGUE.iter().map(|entry| (entry.name, entry.example));
    let build = |(name, settings): (&str, &str)| {
        let entry = catalogue::find(CATALOGUE, name).expect("the operator is listed");
        let built = (entry.build)(toml::from_str(settings).expect("TOML")).expect("settings are valid");
        (format!("{name} {settings:?}"), built.part)
    };
    examples.chain(more).map(build).collect()
}

#[test]
fn classes_hold_on_the_test_vectors() {
    for (name, operator) in settings() {
        for (kind, x) in hard_vectors().into_iter().filter(|(_, x)| x.len() <= 1000 && norm_squared(x) > 0.0) {
            let (mean, standard_error) = mean_error(&*operator, &x, 30);
            let bound = match operator.class(x.len()) {
                Class::Exact => 0.0,
                Class::Unbiased(omega) => omega,
                Class::Contractive(a) => 1.0 - a,
                Class::Unproven => continue,
            };
            // Sums below the smallest normal float cannot be represented to relative precision.
            if kind != "subnormal" && kind != "tiny" {
                let slack = 5.0 * standard_error + 1e-6;
                assert!(mean <= bound + slack, "{name}: {kind} of {}: {mean} above {bound}", x.len());
            }
        }
    }
}

#[test]
fn unbiased_operators_have_no_bias() {
    for (name, operator) in settings() {
        let x = vectors::g(100);
        let Class::Unbiased(_) = operator.class(x.len()) else { continue };
        let draws = 4000;
        let coder = coder(operator.default_coder());
        let (mut sum, mut error) = (vec![0.0f64; x.len()], 0.0);
        for draw in 0..draws {
            let out = through(&*operator, &*coder, &x, draw).2;
            sum.iter_mut().zip(&out).for_each(|(sum, &value)| *sum += f64::from(value));
            error += distance_squared(&x, &out) / norm_squared(&x);
        }
        let n = draws as f64;
        let bias: f64 =
            sum.iter().zip(&x).map(|(sum, &x)| (sum / n - f64::from(x)).powi(2)).sum::<f64>() / norm_squared(&x);
        assert!(bias <= 4.0 * (error / n) / n, "{name}: bias {bias}");
    }
}

#[test]
fn values_that_are_not_finite_are_refused_and_named() {
    let layout = Arc::new(Layout::new([("first".to_owned(), vec![3]), ("second".to_owned(), vec![2, 2])]));
    for (name, operator, coder) in combinations() {
        let codec = Codec::new(operator, coder, layout.clone(), Granularity::Layer, 1).expect("they fit");
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![1.0; 7];
            x[5] = bad;
            match codec.encode(&x, streams(0), &mut Vec::new()) {
                Err(Unsendable::NonFinite { layer, index: 2, .. }) => assert_eq!(layer, "second", "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn norms_beyond_32_bits_are_an_error_and_not_an_infinity() {
    let layout = Arc::new(Layout::flat(4));
    let x = [f32::MAX; 4];
    for (name, operator, coder) in combinations() {
        let codec = Codec::new(operator, coder, layout.clone(), Granularity::Model, 1).expect("they fit");
        if let Ok(packet) = codec.encode(&x, streams(0), &mut Vec::new()) {
            let mut out = vec![0.0; 4];
            codec.decode(&packet, streams(0), &mut out).expect("a packet can be read");
            assert!(out.iter().all(|value| value.is_finite()), "{name}");
        }
    }
}

#[test]
fn the_empty_vector_is_an_empty_message() {
    for (name, operator, coder) in combinations() {
        let codec = Codec::new(operator, coder, Arc::new(Layout::flat(0)), Granularity::Model, 1);
        // A count of coordinates beyond the vector is refused before any message.
        let Ok(codec) = codec else { continue };
        let packet = codec.encode(&[], streams(0), &mut Vec::new()).expect("nothing can be sent");
        assert_eq!(packet, Packet::default(), "{name}");
        codec.decode(&packet, streams(0), &mut []).expect("nothing can be read");
    }
}

proptest! {
    #[test]
    fn any_bytes_give_an_error_or_a_finite_vector(bytes in prop::collection::vec(any::<u8>(), 0..64), d in 1usize..40) {
        let layout = Arc::new(Layout::flat(d));
        for (_, operator, coder) in combinations() {
            let codec = Codec::new(operator, coder, layout.clone(), Granularity::Model, 1).expect("they fit");
            let packet = Packet { bytes: bytes.clone(), ..Packet::default() };
            let mut out = vec![0.0; d];
            if codec.decode(&packet, streams(0), &mut out).is_ok() {
                prop_assert!(out.iter().all(|value| value.is_finite()));
            }
        }
    }

    #[test]
    fn random_vectors_of_random_sparsity_meet_the_contractive_bound(
        x in prop::collection::vec(prop_oneof![Just(0.0f32), -1.0f32..1.0, -1e6f32..1e6], 1..60)
    ) {
        prop_assume!(norm_squared(&x) > 0.0);
        for entry in CATALOGUE {
            let operator = entry.build_example().expect("examples are valid").part;
            let deterministic = ["top-k", "sign", "identity"].contains(&entry.name);
            if let (true, Class::Contractive(a)) = (deterministic, operator.class(x.len())) {
                prop_assert!(error(&*operator, &x) <= 1.0 - a + 1e-5, "{}", entry.name);
            }
        }
    }
}
