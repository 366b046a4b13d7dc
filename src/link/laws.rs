//! Laws of links: both ends agree, nothing is lost, memories belong to their sender.

use std::sync::Arc;

use super::{Aim, CATALOGUE, Codec, Link, Receiver, Sender};
use crate::{
    catalogue,
    compress::{self, Class, Granularity, vectors},
    layout::Layout,
    rng::Streams,
    vector::norm_squared,
    wire,
};

fn layout() -> Arc<Layout> {
    Arc::new(Layout::new([("a".to_owned(), vec![20, 10]), ("b".to_owned(), vec![10]), ("c".to_owned(), vec![90])]))
}

/// The link of an operator with settings, its default coder, and a rule.
fn link(operator: &str, settings: &str, rule: &str, granularity: Granularity) -> Link {
    let operator = catalogue::find(compress::CATALOGUE, operator).expect("the operator is listed");
    let operator = (operator.build)(toml::from_str(settings).expect("TOML")).expect("settings are valid").part;
    let coder = catalogue::find(wire::CATALOGUE, operator.default_coder()).expect("the coder is listed");
    let coder = coder.build_example().expect("examples are valid").part;
    let codec = Codec::new(operator, coder, layout(), granularity).expect("they fit");
    Link::new(codec, catalogue::find(CATALOGUE, rule).expect("the rule is listed").build_example().unwrap().part)
}

fn streams(round: u64) -> Streams {
    Streams::message(5, round, 3, u32::MAX, 1)
}

fn vector(round: usize) -> Vec<f32> {
    let mut x = vectors::t(300);
    x.rotate_left(37 * round % 300);
    x
}

#[test]
fn the_receiver_gets_the_belief_of_the_sender_bit_for_bit() {
    for operator in compress::CATALOGUE {
        for rule in ["plain", "error-feedback"] {
            for (granularity, parts) in [
                (Granularity::Model, 1),
                (Granularity::Layer, 3),
                (Granularity::Groups(2), 2),
                (Granularity::Size(100), 2),
                (Granularity::Blocks(64), 5),
            ] {
                let link = link(operator.name, operator.example, rule, granularity);
                let (mut sender, mut receiver) = (Sender::new(link.clone()), Receiver::new(link));
                for round in 0..4 {
                    let mut before = Vec::new();
                    sender.memory(&mut |_, memory| before.push(memory.clone()));
                    let sent =
                        sender.send(vector(round), None, streams(round as u64)).expect("finite vectors can be sent");
                    assert_eq!(sent.packet.parts.len(), parts);
                    let mut received = vec![0.0; 300];
                    receiver
                        .receive(&sent.packet, None, streams(round as u64), &mut received)
                        .expect("packets can be read");
                    if rule == "error-feedback" {
                        // The residual is what was to be sent less what arrived, exactly.
                        sender.memory(&mut |name, residual| {
                            if name != "residual" {
                                return;
                            }
                            for i in 0..300 {
                                let wanted = vector(round)[i] + before[0].get(i).copied().unwrap_or(0.0);
                                assert_eq!(
                                    residual[i].to_bits(),
                                    (wanted - received[i]).to_bits(),
                                    "{}",
                                    operator.name
                                );
                            }
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn error_feedback_loses_nothing_over_many_rounds() {
    for operator in compress::CATALOGUE {
        let link = link(operator.name, operator.example, "error-feedback", Granularity::Layer);
        let (mut sender, mut receiver) = (Sender::new(link.clone()), Receiver::new(link));
        let (mut put_in, mut came_out) = (vec![0.0f64; 300], vec![0.0f64; 300]);
        let mut received = vec![0.0; 300];
        for round in 0..60 {
            let x = vector(round);
            put_in.iter_mut().zip(&x).for_each(|(sum, &value)| *sum += f64::from(value));
            let sent = sender.send(x, None, streams(round as u64)).expect("finite vectors can be sent");
            receiver.receive(&sent.packet, None, streams(round as u64), &mut received).expect("packets can be read");
            came_out.iter_mut().zip(&received).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        sender.memory(&mut |name, residual| {
            if name == "residual" {
                let scale = norm_squared(residual).sqrt() + 300.0;
                for i in 0..300 {
                    let lost = put_in[i] - came_out[i] - f64::from(residual[i]);
                    assert!(lost.abs() < 1e-5 * scale, "{}: {lost} at {i}", operator.name);
                }
            }
        });
    }
}

#[test]
fn unbiased_operators_are_scaled_down_under_error_feedback_and_only_there() {
    let plain = link("rand-k", "ratio = 0.1", "plain", Granularity::Model);
    assert_eq!((plain.codec.class(), plain.codec.is_damped()), (Class::Unbiased(9.0), false));
    let damped = link("rand-k", "ratio = 0.1", "error-feedback", Granularity::Model);
    assert_eq!((damped.codec.class(), damped.codec.is_damped()), (Class::Contractive(0.1), true));
    let top = link("top-k", "ratio = 0.1", "error-feedback", Granularity::Model);
    assert_eq!((top.codec.class(), top.codec.is_damped()), (Class::Contractive(0.1), false));
}

/// `|x|^2` after gradient descent on `sum_i i x_i^2 / 2` with error feedback around a contraction that keeps random coordinates.
fn descend(scale_down: bool) -> f64 {
    let layout = Arc::new(Layout::flat(100));
    let operator = catalogue::find(compress::CATALOGUE, "rand-k").expect("listed");
    let settings = if scale_down { "k = 10\nscaled = false" } else { "k = 10\nscaled = true" };
    let operator = (operator.build)(toml::from_str(settings).unwrap()).unwrap().part;
    let coder = catalogue::find(wire::CATALOGUE, "fixed").expect("listed").build_example().unwrap().part;
    let codec = Codec::new(operator, coder, layout, Granularity::Model).unwrap();
    // Past `Link::new`, which would scale the operator down by itself.
    let rule: Box<dyn super::Rule> =
        catalogue::find(CATALOGUE, "error-feedback").unwrap().build_example().unwrap().part;
    let link = Link { codec: Arc::new(codec), rule: Arc::from(rule) };
    let (mut sender, mut receiver) = (Sender::new(link.clone()), Receiver::new(link));
    let mut x = vec![1.0f32; 100];
    let mut step = vec![0.0; 100];
    for round in 0..3000 {
        let eigenvalue = |i: usize| 1.0 + 9.0 * i as f32 / 99.0;
        let gradient: Vec<f32> = x.iter().enumerate().map(|(i, x)| 0.02 * eigenvalue(i) * x).collect();
        let Ok(sent) = sender.send(gradient, None, streams(round)) else { return f64::INFINITY };
        receiver.receive(&sent.packet, None, streams(round), &mut step).unwrap();
        x.iter_mut().zip(&step).for_each(|(x, d)| *x -= d);
    }
    norm_squared(&x)
}

#[test]
fn error_feedback_converges_with_a_contraction_and_diverges_with_its_unbiased_scaling() {
    // spec 5.13: d = 100, eigenvalues 1..10, step 0.02, k = 10
    assert!(descend(true) < 1e-20);
    assert!(descend(false) > 1e30);
}

#[test]
fn three_opposed_clients_need_error_feedback() {
    // spec 5.13: f_i = <a_i, x>^2 + |x|^2 / 4, Top-1, step 0.01, x0 = (1, 1, 1)
    let a = [[-3.0f32, 2.0, 2.0], [2.0, -3.0, 2.0], [2.0, 2.0, -3.0]];
    let layout = Arc::new(Layout::flat(3));
    let run = |rule: &str, rounds: u64| {
        let operator = catalogue::find(compress::CATALOGUE, "top-k").unwrap();
        let operator = || (operator.build)(toml::from_str("k = 1").unwrap()).unwrap().part;
        let coder = || catalogue::find(wire::CATALOGUE, "fixed").unwrap().build_example().unwrap().part;
        let rule = || catalogue::find(CATALOGUE, rule).unwrap().build_example().unwrap().part;
        let link = || Link::new(Codec::new(operator(), coder(), layout.clone(), Granularity::Model).unwrap(), rule());
        let mut clients: Vec<(Sender, Receiver)> =
            (0..3).map(|_| (Sender::new(link()), Receiver::new(link()))).collect();
        let mut x = vec![1.0f32; 3];
        for round in 0..rounds {
            let mut mean = [0.0f32; 3];
            for (a, (sender, receiver)) in a.iter().zip(&mut clients) {
                let product: f32 = a.iter().zip(&x).map(|(a, x)| a * x).sum();
                let gradient = a.iter().zip(&x).map(|(a, x)| 0.01 * (2.0 * product * a + 0.5 * x)).collect();
                let sent = sender.send(gradient, None, streams(round)).unwrap();
                let mut received = [0.0; 3];
                receiver.receive(&sent.packet, None, streams(round), &mut received).unwrap();
                mean.iter_mut().zip(received).for_each(|(mean, value)| *mean += value / 3.0);
            }
            x.iter_mut().zip(mean).for_each(|(x, d)| *x -= d);
        }
        norm_squared(&x).sqrt()
    };
    let grown = run("plain", 100) / 3f64.sqrt();
    assert!((grown / 6.151711867625 - 1.0).abs() < 1e-3, "{grown}");
    assert!(run("error-feedback", 2000) < 1e-9);
}

#[test]
fn vectors_beyond_32_bit_positions_are_refused() {
    for operator in compress::CATALOGUE {
        let operator = operator.build_example().expect("examples are valid").part;
        let coder = catalogue::find(wire::CATALOGUE, operator.default_coder()).unwrap().build_example().unwrap().part;
        let layout = Arc::new(Layout::flat(1 << 32));
        let refused = Codec::new(operator, coder, layout, Granularity::Model).err().expect("it is too long");
        assert!(refused.message.contains("4294967296"), "{}", refused.message);
    }
}

/// A codec whose strength is solved for an aim, on every sixteenth step.
fn aimed(entry: &'static catalogue::Entry<dyn compress::Operator>, aim: Aim) -> Option<Codec> {
    let strength = entry.strength?;
    let build = |step| {
        let mut settings: toml::Table = toml::from_str(entry.example).expect("TOML");
        strength.instead_of.iter().for_each(|key| drop(settings.remove(*key)));
        settings.insert(strength.key.to_owned(), strength.value(step));
        (entry.build)(settings).expect("every strength is valid").part
    };
    let operators: Vec<_> = (0..catalogue::Strength::STEPS).step_by(16).map(build).collect();
    let coder = catalogue::find(wire::CATALOGUE, operators[0].default_coder()).expect("the coder is listed");
    let coder = coder.build_example().expect("examples are valid").part;
    Some(Codec::aimed(operators, aim, coder, layout(), Granularity::Model).expect("some strength fits"))
}

#[test]
fn aims_are_kept_from_the_first_message_on() {
    let x: Vec<f32> = vectors::t(300);
    for entry in compress::CATALOGUE {
        for aim in [Aim::Bits(4.0), Aim::Error(0.5)] {
            // The mildest searches of spherical compression would take minutes at this length.
            let Some(codec) = aimed(entry, aim).filter(|_| entry.name != "spherical") else { continue };
            let mut warm = Vec::new();
            let mut first = None;
            for round in 0..3 {
                let packet = codec.encode(&x, None, streams(round), &mut warm).expect("the vector can be sent");
                let mut out = vec![0.0; x.len()];
                codec.decode(&packet, None, streams(round), &mut out).expect("packets can be read");
                let error = crate::vector::distance_squared(&x, &out) / norm_squared(&x);
                let name = entry.name;
                match aim {
                    // Kashin's frame has seven coefficients for every two values here, vectors are no matrices to PowerSGD, and
                    // one bit a value leaves more than half.
                    Aim::Bits(_) if ["kashin", "power-sgd"].contains(&name) => {}
                    Aim::Error(_) if name == "srqs" => {}
                    Aim::Bits(bits) => assert!(packet.wire_bits() as f64 <= bits * 300.0, "{name}: {packet:?}"),
                    Aim::Error(most) => assert!(error <= most, "{name}: {error}"),
                }
                // The strength of one message is only where the search for the next begins.
                let strength = warm.last().expect("it is remembered")[0];
                let start = *first.get_or_insert(strength);
                assert!((strength - start).abs() <= 2.0, "{name}: {strength} after {start}");
            }
        }
    }
}
