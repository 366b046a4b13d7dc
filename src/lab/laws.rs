//! Measurements against closed forms, and the line-up against the published tables.

use std::sync::Arc;

use super::{
    Measurement, Subject,
    line_up::Lane,
    rates::{Bench, curve},
    vectors,
};
use crate::{compress::Class, layout::Layout, scenario::Section};

fn section(operator: &str, settings: &str, common: &str) -> Section {
    let table = |text: &str| text.parse::<toml::Table>().expect("TOML");
    Section { name: operator.to_owned(), common: table(common), settings: table(settings) }
}

fn measure(operator: &str, settings: &str, common: &str, x: &[f32], draws: u32) -> Measurement {
    let layout = Arc::new(Layout::flat(x.len()));
    let subject = Subject::new(&section(operator, settings, common), layout).map_err(|mistakes| mistakes.len());
    subject.expect("the settings fit").measure(x, draws, 0).expect("the vector can be sent")
}

#[test]
fn nothing_is_lost_without_compression() {
    let x = vectors::named("gaussian", 1000).expect("listed");
    let one = measure("identity", "", "", &x, 3);
    assert_eq!((one.wire_bits, one.payload_bits, one.information_bits), (32.0, 32.0, 32.0));
    assert_eq!((one.nmse, one.nmse_standard_error, one.bias), (0.0, Some(0.0), Some(0.0)));
    assert_eq!((one.class, one.cost(), one.efficiency()), (Class::Exact, Some(32.0), None));
    assert!(one.encode_million_per_second > 0.0 && one.decode_million_per_second > 0.0);
}

#[test]
fn a_deterministic_operator_is_all_bias_and_a_random_unbiased_one_has_none() {
    let x = vectors::named("gaussian", 1000).expect("listed");
    let top = measure("top-k", "ratio = 0.1", "coder = \"fixed\"", &x, 5);
    assert_eq!(top.wire_bits, 4.2);
    assert!(top.nmse_standard_error.expect("five draws") < 1e-9);
    assert!((top.bias.expect("five draws") / top.nmse - 1.0).abs() < 1e-9);
    assert!(top.nmse <= top.class_bound().expect("it is contractive"));
    assert!((top.cost().expect("it contracts") - 4.2 / (1.0 - top.nmse)).abs() < 1e-9);

    // rand-k of a tenth: omega = 9 exactly, for every vector.
    let draws = 400;
    let rand = measure("rand-k", "ratio = 0.1", "", &x, draws);
    assert_eq!(rand.class, Class::Unbiased(9.0));
    let error = rand.nmse_standard_error.expect("several draws");
    assert!((rand.nmse - 9.0).abs() < 5.0 * error, "{} +- {error}", rand.nmse);
    // The floor that was subtracted is 9/400; what is left is noise about zero.
    assert!(rand.bias.expect("several draws") < 0.5 * 9.0 / f64::from(draws), "{:?}", rand.bias);
    assert_eq!(rand.cost(), Some(rand.wire_bits * (1.0 + rand.nmse)));

    let one = measure("rand-k", "ratio = 0.1", "", &x, 1);
    assert_eq!((one.nmse_standard_error, one.bias), (None, None));
}

#[test]
fn bounds_hold_on_the_vector_without_structure() {
    let x = vectors::named("gaussian", 10_000).expect("listed");
    for (operator, settings) in [("top-k", "ratio = 0.05"), ("qsgd", "levels = 7"), ("sign", ""), ("natural", "")] {
        let one = measure(operator, settings, "", &x, 5);
        assert!(one.nmse >= 0.99 * one.lower_bound(), "{operator}: {} below {}", one.nmse, one.lower_bound());
        assert!(one.efficiency().expect("it loses something") <= 1.01);
    }
    // Sign: sqrt(2/pi) of a Gaussian vector stays, at one bit and a scale: 1 - 2/pi = .363.
    let sign = measure("sign", "", "", &x, 2);
    assert!((sign.nmse - (1.0 - std::f64::consts::FRAC_2_PI)).abs() < 1e-3);
    assert!((sign.efficiency().unwrap() - 0.7285).abs() < 0.005, "{:?}", sign.efficiency());
}

#[test]
fn what_links_with_memory_compress_with_is_scaled_down() {
    let x = vectors::named("gaussian", 1000).expect("listed");
    let one = measure("rand-k", "ratio = 0.1", "link = \"error-feedback\"", &x, 50);
    assert!((one.nmse - 0.9).abs() < 0.02, "{}", one.nmse);
    assert!(matches!(one.class, Class::Contractive(a) if (a - 0.1).abs() < 1e-12));
}

/// The published tables of top-k and rand-k, d = 10000.
#[test]
fn rates_are_those_of_the_tables() {
    let rates = [0.1, 0.5, 1.0, 2.0, 4.0];
    let cells = |operator: &str, settings: &str, common: &str, vector: &str, draws: u32| {
        let lane = Lane::new(section(operator, settings, common));
        let x = vectors::named(vector, 10_000).expect("listed");
        let layout = Arc::new(Layout::flat(x.len()));
        let curve = curve(&lane, &Bench { vector, x: &x, layout: &layout, draws, seed: 0 }, &rates);
        assert!(!curve.rows.is_empty() && curve.reason.is_none());
        curve.cells
    };
    for (common, vector, expected) in [
        ("", "gaussian", [0.974, 0.899, 0.826, 0.709, 0.536]),
        ("", "laplace", [0.941, 0.813, 0.708, 0.563, 0.381]),
        ("", "student-t", [0.895, 0.755, 0.656, 0.528, 0.372]),
        ("coder = \"fixed\"", "gaussian", [0.976, 0.910, 0.847, 0.747, 0.598]),
        ("coder = \"fixed\"", "student-t", [0.900, 0.771, 0.682, 0.567, 0.424]),
    ] {
        for (cell, expected) in cells("top-k", "", common, vector, 1).into_iter().zip(expected) {
            let cell = cell.expect("top-k runs at every rate");
            assert!((cell - expected).abs() < 0.0012, "{vector} {common}: {cell} for {expected}");
        }
    }
    // Exactly 32/b - 1.
    for (cell, expected) in cells("rand-k", "", "", "gaussian", 40).into_iter().zip([319.0, 63.0, 31.0, 15.0, 7.0]) {
        let cell = cell.expect("rand-k runs at every rate");
        assert!((cell / expected - 1.0).abs() < 0.2, "{cell} for {expected}");
    }
    // One bit a value and a scale: at 1, and at no other rate.
    let sign = cells("sign", "", "", "gaussian", 1);
    assert!((sign[2].expect("one bit a value") - 0.363).abs() < 1e-3);
    assert!(sign.iter().enumerate().all(|(i, cell)| cell.is_some() == (i == 2)));
}
