//! Laws that every operator obeys, in one loop over the catalogue; measurements that the operators' own tests use.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use rand::Rng;

use super::{CATALOGUE, Class, Operator, Part, vectors};
use crate::{
    catalogue,
    compress::Granularity,
    layout::{Layer, Layout},
    link::{Codec, Unsendable},
    payload::Payload,
    rng::{Address, Purpose, Streams, unit_f64},
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

/// Runs one part through operator and coder: the payload it describes, its bits, and the vector that comes back from
/// the bytes.
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

/// What an operator says about `x`.
pub fn payload(operator: &dyn Operator, x: &[f32]) -> Payload {
    through(operator, &*coder(operator.default_coder()), x, 0).0
}

/// The squared distance of the mean of decoded vectors from `x` and the mean squared distance of one, relative to the
/// norm.
pub fn bias(operator: &dyn Operator, x: &[f32], draws: u64) -> (f64, f64) {
    let coder = coder(operator.default_coder());
    let (mut sum, mut error) = (vec![0.0f64; x.len()], 0.0);
    for draw in 0..draws {
        let out = through(operator, &*coder, x, draw).2;
        sum.iter_mut().zip(&out).for_each(|(sum, &value)| *sum += f64::from(value));
        error += distance_squared(x, &out) / norm_squared(x);
    }
    let n = draws as f64;
    let bias: f64 = sum.iter().zip(x).map(|(sum, &x)| (sum / n - f64::from(x)).powi(2)).sum();
    (bias / norm_squared(x), error / n)
}

/// The mean error at a number of bits a value: bisects the setting that operators are built from between one that costs
/// more and one that costs less.
pub fn error_at_rate<O: Operator>(
    build: &dyn Fn(f64) -> O,
    (mut mild, mut harsh): (f64, f64),
    coder: &str,
    x: &[f32],
    rate: f64,
    draws: u64,
) -> f64 {
    for _ in 0..16 {
        let middle = (mild * harsh).sqrt();
        let costs_more = wire_bits(&build(middle), coder, x) as f64 > rate * x.len() as f64;
        *(if costs_more { &mut mild } else { &mut harsh }) = middle;
    }
    mean_error(&build(harsh), x, draws).0
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
        all.push(("Laplace", vectors::l(d)));
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
        ("weave", "bits = 0.5\nbasis = \"rotated\""),
        ("weave", "bits = 1.5\nbasis = \"rotated\"\nunbiased = true"),
        ("weave", "bits = 0.3\neffort = \"fast\""),
        ("tcq", "step = 2.0\nstates = \"4\""),
        ("terngrad", "clip = 0.1"),
        ("top-k", "ratio = 0.3\nvalues = \"f16\""),
        ("top-k", "ratio = 0.3\nvalues = \"natural\""),
        ("top-k", "k = 2\nvalues = \"sign\""),
        ("rand-k", "ratio = 0.3\nsupport = \"private\""),
        ("natural-dithering", "levels = 3\nnorm = \"l1\""),
        ("sparse-dithering", "nu = 0.9"),
        ("sparse-dithering", "kind = \"randomised\"\nomega = 4.0"),
        ("ecsq", "step = 6.0\ndead_zone = 0.2"),
        ("max-block", "block = 2\nnu = 0.5"),
        ("srqs", "ratio = 1.0"),
        ("spherical", "alpha = 0.6\nblock = 5\nradius = \"unbiased\""),
        ("spherical", "alpha = 0.3\nblock = 3\nradius = \"least-error\""),
        ("random-vq", "block = 4\nbits = 6\nunbiased = true"),
        ("kashin", "redundancy = 1.01\nlevels = 8"),
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
fn classes_hold_on_random_vectors_of_random_sparsity() {
    let mut generator = Address::new(5, Purpose::Data).generator();
    let mut uniform = || unit_f64(generator.next_u64());
    for _ in 0..40 {
        let (d, density) = (1 + (60.0 * uniform()) as usize, uniform());
        let mut x: Vec<f32> =
            (0..d).map(|_| if uniform() < density { (uniform() - 0.5) as f32 } else { 0.0 }).collect();
        x[0] += 0.1;
        for (name, operator) in settings() {
            let bound = match operator.class(d) {
                Class::Unbiased(omega) => omega,
                Class::Contractive(a) => 1.0 - a,
                Class::Exact | Class::Unproven => continue,
            };
            let (mean, standard_error) = mean_error(&*operator, &x, 20);
            assert!(mean <= bound + 5.0 * standard_error + 1e-6, "{name}: {mean} above {bound} for {x:?}");
        }
    }
}

#[test]
fn unbiased_operators_have_no_bias() {
    for (name, operator) in settings() {
        let x = vectors::g(100);
        let Class::Unbiased(_) = operator.class(x.len()) else { continue };
        // Sparse vectors are what a rotation in one round would leave biased. Of two values the square of the bias has
        // few degrees of freedom, so the same confidence needs a wider limit.
        let mut two = vec![0.0; 256];
        (two[0], two[1]) = (1.0, 0.5);
        for (x, limit) in [(x, 4.0), (two, 12.0)] {
            let (bias, error) = bias(&*operator, &x, 4000);
            assert!(bias <= limit * error / 4000.0 + 1e-12, "{name}: bias {bias} at an error of {error}");
        }
    }
}

#[test]
fn no_operator_beats_the_bound_of_isotropic_vectors() {
    let x = vectors::g(10_000);
    for (name, operator) in settings() {
        let class = operator.class(x.len());
        if class == Class::Exact {
            continue;
        }
        let bits = mean_bits(&*operator, operator.default_coder(), &x, 3).0 / x.len() as f64;
        let error = mean_error(&*operator, &x, 3).0;
        // Floats sent as they are have no error at all.
        if error == 0.0 && bits >= 32.0 {
            continue;
        }
        let power = libm::exp2(2.0 * bits);
        assert!(error >= 0.99 / power, "{name}: an error of {error} in {bits} bits a value");
        if let Class::Unbiased(_) = class {
            assert!(error >= 0.99 / (power - 1.0), "{name}: an error of {error} in {bits} bits a value without bias");
        }
    }
}

/// The operators among the settings that draw no numbers: they send the same whatever the streams.
static DETERMINISTIC: LazyLock<Vec<(String, Box<dyn Operator>)>> = LazyLock::new(|| {
    let x = vectors::g(100);
    let draws_nothing = |operator: &dyn Operator| {
        let coder = coder(operator.default_coder());
        let [first, second] = [0, 1].map(|draw| through(operator, &*coder, &x, draw));
        first.0 == second.0 && first.2 == second.2
    };
    settings().into_iter().filter(|(_, operator)| draws_nothing(&**operator)).collect()
});

#[test]
fn values_that_are_not_finite_are_refused_and_named() {
    let layout = Arc::new(Layout::new([("first".to_owned(), vec![3]), ("second".to_owned(), vec![2, 2])]));
    for (name, operator, coder) in combinations() {
        let codec = Codec::new(operator, coder, layout.clone(), Granularity::Layer).expect("they fit");
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![1.0; 7];
            x[5] = bad;
            match codec.encode(&x, None, streams(0), &mut Vec::new()) {
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
        let codec = Codec::new(operator, coder, layout.clone(), Granularity::Model).expect("they fit");
        if let Ok(packet) = codec.encode(&x, None, streams(0), &mut Vec::new()) {
            let mut out = vec![0.0; 4];
            codec.decode(&packet, None, streams(0), &mut out).expect("a packet can be read");
            assert!(out.iter().all(|value| value.is_finite()), "{name}");
        }
    }
}

#[test]
fn the_empty_vector_is_an_empty_message() {
    for (name, operator, coder) in combinations() {
        let codec = Codec::new(operator, coder, Arc::new(Layout::flat(0)), Granularity::Model);
        // A count of coordinates beyond the vector is refused before any message.
        let Ok(codec) = codec else { continue };
        let packet = codec.encode(&[], None, streams(0), &mut Vec::new()).expect("nothing can be sent");
        assert_eq!(packet, Packet::default(), "{name}");
        codec.decode(&packet, None, streams(0), &mut []).expect("nothing can be read");
    }
}

proptest! {
    #[test]
    fn any_bytes_give_an_error_or_a_finite_vector(bytes in prop::collection::vec(any::<u8>(), 0..64), d in 1usize..40) {
        let layout = Arc::new(Layout::flat(d));
        for (_, operator, coder) in combinations() {
            let codec = Codec::new(operator, coder, layout.clone(), Granularity::Model).expect("they fit");
            let packet = Packet { bytes: bytes.clone(), ..Packet::default() };
            let mut out = vec![0.0; d];
            if codec.decode(&packet, None, streams(0), &mut out).is_ok() {
                prop_assert!(out.iter().all(|value| value.is_finite()));
            }
        }
    }

    #[test]
    fn random_vectors_of_random_sparsity_meet_the_contractive_bound(
        x in prop::collection::vec(prop_oneof![Just(0.0f32), -1.0f32..1.0, -1e6f32..1e6], 1..60)
    ) {
        prop_assume!(norm_squared(&x) > 0.0);
        for (name, operator) in DETERMINISTIC.iter() {
            if let Class::Contractive(a) = operator.class(x.len()) {
                let error = error(&**operator, &x);
                prop_assert!(error <= 1.0 - a + 1e-5, "{}: {} for {}", name, error, 1.0 - a);
            }
        }
    }
}
