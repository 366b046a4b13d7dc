//! Methods on the test problem R(n), through the nodes, links and rounds that train networks (spec of the algorithms, 7 and 14).

use std::sync::Arc;

use super::{Participation, Sampling, Star, Weights, Workers};
use crate::{
    catalogue,
    compress::{self, Granularity},
    layout::Layout,
    link::{self, Codec, Link},
    method::{self, Method, Population, Setup},
    network::Ledger,
    rng::{Address, Purpose, Streams},
    scenario::NonFinite,
    train::{Objective, Samples, ridge::Ridge},
    wire,
};

fn link(operator: &str, settings: &str, rule: &str) -> Link {
    let operator = catalogue::find(compress::CATALOGUE, operator).expect("the operator is listed");
    let operator = (operator.build)(toml::from_str(settings).expect("TOML")).expect("settings are valid").part;
    let coder = catalogue::find(wire::CATALOGUE, operator.default_coder()).expect("the coder is listed");
    let coder = coder.build_example().expect("examples are valid").part;
    let codec = Codec::new(operator, coder, Arc::new(Layout::flat(20)), Granularity::Model).expect("they fit");
    Link::new(codec, catalogue::find(link::CATALOGUE, rule).expect("the rule is listed").build_example().unwrap().part)
}

/// Nodes on R(n) that start from zero.
fn setup(uplink: Link, rounds: u32) -> Setup {
    Setup {
        layout: Arc::new(Layout::flat(20)),
        start: Arc::new(vec![0.0; 20]),
        uplink,
        downlink: link("identity", "", "plain"),
        rounds,
    }
}

fn method(name: &str, settings: &str) -> Box<dyn Method> {
    let entry = catalogue::find(method::CATALOGUE, name).expect("the method is listed");
    (entry.build)(toml::from_str(settings).expect("TOML")).expect("settings are valid").part
}

/// A run on a ridge problem.
struct Trial<'a> {
    problem: &'a Ridge,
    clients: u32,
    uplink: Link,
    participation: f64,
}

impl<'a> Trial<'a> {
    fn new(problem: &'a Ridge) -> Self {
        Self { problem, clients: 10, uplink: link("identity", "", "plain"), participation: 1.0 }
    }

    /// The model after each of `rounds` rounds.
    fn run(&self, method: &dyn Method, rounds: u32) -> Vec<Vec<f32>> {
        let setup = setup(self.uplink.clone(), rounds);
        let participation =
            Participation { participation: self.participation, sampling: Sampling::Uniform, weights: Weights::Equal };
        let population = Population { weights: vec![1.0; self.clients as usize], expected_share: None };
        let holders: Vec<u32> = (0..self.clients).collect();
        let workers = Workers::new(1, || Box::new(self.problem.clone()) as Box<dyn Objective>).expect("threads start");
        let mut star = Star::new(method, setup, population, 1, NonFinite::Stop);
        (1..=rounds)
            .map(|round| {
                let drawn = participation.draw(&holders, 1, round);
                star.round(round, &drawn, &workers).expect("messages can be read");
                star.model().to_vec()
            })
            .collect()
    }

    /// The relative squared error after `rounds` rounds.
    fn error(&self, name: &str, settings: &str, rounds: u32) -> f64 {
        let models = self.run(&*method(name, settings), rounds);
        self.problem.error(models.last().expect("there is a round"))
    }

    /// The mean error of the last 500 rounds.
    fn floor(&self, name: &str, settings: &str, rounds: u32) -> f64 {
        let models = self.run(&*method(name, settings), rounds);
        models[models.len() - 500..].iter().map(|model| self.problem.error(model)).sum::<f64>() / 500.0
    }
}

fn local(steps: u32, rate: f64, more: &str) -> String {
    format!("local_steps = {steps}\nbatch_size = \"full\"\nlearning_rate = {rate:?}\n{more}")
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{what}: {value:e} for {expected:e}");
}

#[test]
fn golden_values_after_fifty_rounds() {
    let problem = Ridge::heterogeneous(10);
    let trial = Trial::new(&problem);
    let optimiser = |kind: &str, rate: f64| format!("server_optimiser = \"{kind}\"\nserver_learning_rate = {rate:?}");
    let table = [
        ("DGD", "fedavg", local(1, 0.3, ""), 8.497370104e-03),
        ("FedAvg", "fedavg", local(5, 0.05, ""), 1.901185067e-02),
        ("FedProx", "fedprox", local(5, 0.05, "proximal = 1.0"), 2.390138438e-02),
        ("FedAvgM", "fedavg", local(5, 0.05, &optimiser("momentum", 0.1)), 2.006019250e-02),
        ("FedAdam", "fedavg", local(5, 0.05, &optimiser("adam", 0.01)), 9.375781273e-03),
        ("FedYogi", "fedavg", local(5, 0.05, &optimiser("yogi", 0.01)), 1.280994406e-02),
    ];
    for (what, name, settings, expected) in table {
        assert_near(what, trial.error(name, &settings, 50), expected, 1e-3);
    }
}

#[test]
fn gradient_descent_takes_55_rounds_to_a_millionth() {
    let problem = Ridge::heterogeneous(10);
    let models = Trial::new(&problem).run(&*method("fedavg", &local(1, 1.0 / 0.898603765, "")), 80);
    let first = models.iter().position(|model| problem.error(model) < 1e-6).expect("it converges") + 1;
    assert_eq!(first, 55);
}

#[test]
fn local_steps_have_the_wrong_fixed_point_of_the_specification() {
    let problem = Ridge::heterogeneous(10);
    let trial = Trial::new(&problem);
    for (steps, rate, expected) in [
        (2, 0.1, 1.2e-4),
        (5, 0.1, 1.7e-3),
        (10, 0.1, 6.5e-3),
        (50, 0.1, 4.3e-2),
        (10, 0.05, 2.0e-3),
        (10, 0.025, 5.4e-4),
    ] {
        assert_near(
            &format!("{steps} steps at {rate}"),
            trial.error("fedavg", &local(steps, rate, ""), 800),
            expected,
            0.05,
        );
    }
    assert_near("ten steps", trial.error("fedavg", &local(10, 0.1, ""), 800), 6.54e-3, 0.01);
    for (mu, expected) in [(0.0, 1.97e-3), (0.1, 1.95e-3), (1.0, 1.8e-3), (10.0, 3.8e-4)] {
        let settings = local(10, 0.05, &format!("proximal = {mu:?}"));
        assert_near(&format!("mu = {mu}"), trial.error("fedprox", &settings, 3000), expected, 0.03);
    }
    let homogeneous = Ridge::homogeneous(10);
    assert!(Trial::new(&homogeneous).error("fedavg", &local(10, 0.1, ""), 800) < 1e-10);
    let few = Trial { participation: 0.3, ..Trial::new(&problem) };
    assert_near("three of ten", few.floor("fedavg", &local(10, 0.1, ""), 3000), 4.6e-2, 0.15);
}

#[test]
fn server_optimisers_keep_the_fixed_point_and_reduce_to_averaging() {
    let problem = Ridge::heterogeneous(10);
    let trial = Trial::new(&problem);
    for more in [
        "",
        "server_optimiser = \"momentum\"\nserver_learning_rate = 0.1",
        "server_optimiser = \"adagrad\"\nserver_learning_rate = 0.1",
        "server_optimiser = \"adam\"\nserver_learning_rate = 0.003",
        "server_optimiser = \"yogi\"\nserver_learning_rate = 0.003",
    ] {
        assert_near(more, trial.error("fedavg", &local(5, 0.05, more), 6000), 4.40e-4, 0.03);
    }
    let plain = trial.run(&*method("fedavg", &local(5, 0.05, "")), 20);
    let still = "server_optimiser = \"momentum\"\nserver_momentum = 0.0\nserver_learning_rate = 1.0";
    assert_eq!(trial.run(&*method("fedavg", &local(5, 0.05, still)), 20), plain);
    assert_eq!(trial.run(&*method("fedprox", &local(5, 0.05, "proximal = 0.0")), 20), plain);
    let nesterov = "server_optimiser = \"momentum\"\nserver_nesterov = true\nserver_learning_rate = 0.1";
    assert_near("Nesterov", trial.error("fedavg", &local(5, 0.05, nesterov), 6000), 4.40e-4, 0.03);
}

#[test]
fn one_step_of_adam_with_and_without_bias_correction() {
    let problem = Ridge::heterogeneous(1);
    let trial = Trial { clients: 1, ..Trial::new(&problem) };
    let plain = trial.run(&*method("fedavg", &local(1, 1.0, "")), 1).remove(0);
    for (correction, formula) in [
        (false, (|d: f32| 0.01 * 0.1 * d / ((0.99e-6 + 0.01 * d * d).sqrt() + 1e-3)) as fn(f32) -> f32),
        (true, |d: f32| 0.01 * d / (d.abs() + 1e-3)),
    ] {
        let settings = local(1, 1.0, &format!("server_optimiser = \"adam\"\nserver_bias_correction = {correction}"));
        let moved = trial.run(&*method("fedavg", &settings), 1).remove(0);
        for (x, d) in moved.iter().zip(&plain) {
            assert!((x - formula(*d)).abs() < 1e-6, "{x} for {}", formula(*d));
        }
    }
}

#[test]
fn compressed_averaging_has_the_floors_of_the_specification() {
    let problem = Ridge::heterogeneous(10);
    let with = |uplink| Trial { uplink, ..Trial::new(&problem) };
    let settings = local(5, 0.05, "");
    // 7.2; randomised floors within a factor of 1.3
    let table = [
        ("FedPAQ, rand-k", link("rand-k", "k = 5", "plain"), 1.8e-2, 0.3),
        ("FedPAQ, QSGD", link("qsgd", "levels = 2", "plain"), 6.5e-3, 0.3),
        ("FedAvg with error feedback, top-k", link("top-k", "k = 2", "error-feedback"), 4.6e-3, 0.1),
    ];
    for (what, uplink, expected, tolerance) in table {
        assert_near(what, with(uplink).floor("fedavg", &settings, 3000), expected, tolerance);
    }
}

#[test]
fn nothing_moves_when_nothing_changes_locally_whatever_the_operator() {
    let problem = Ridge::heterogeneous(10);
    for operator in compress::CATALOGUE {
        for rule in ["plain", "error-feedback"] {
            let trial = Trial { uplink: link(operator.name, operator.example, rule), ..Trial::new(&problem) };
            let models = trial.run(&*method("fedavg", &local(3, 0.0, "")), 4);
            assert!(models.iter().flatten().all(|v| v.to_bits() == 0), "{} over {rule}", operator.name);
        }
    }
}

#[test]
fn one_client_is_plain_gradient_descent_and_identity_links_do_not_matter() {
    let problem = Ridge::heterogeneous(1);
    let trial = Trial { clients: 1, ..Trial::new(&problem) };
    let models = trial.run(&*method("fedavg", &local(1, 0.3, "")), 30);
    let (mut x, mut gradient) = (vec![0.0f32; 20], vec![0.0f32; 20]);
    let all: Vec<u32> = (0..30).collect();
    let mut objective = problem.clone();
    for model in models {
        let augmentation = Address::new(0, Purpose::Augmentation);
        objective.gradient(&x, &Samples { client: 0, at: &all, augmentation }, &mut gradient);
        // As the method has it: the change is sent, and the received model moves by it.
        let y: Vec<f32> = x.iter().zip(&gradient).map(|(x, g)| x + -0.3f32 * g).collect();
        x = x.iter().zip(&y).map(|(x, y)| x + (-f64::from(x - y)) as f32).collect();
        assert_eq!(model, x);
    }
}

#[test]
fn all_clients_that_are_absent_keep_their_memory_and_nobody_else_takes_any() {
    let problem = Ridge::heterogeneous(10);
    let method = method("fedavg", &local(2, 0.05, ""));
    let setup = setup(link("top-k", "k = 2", "error-feedback"), 9);
    let population = Population { weights: vec![1.0; 10], expected_share: None };
    let workers = Workers::new(2, || Box::new(problem.clone()) as Box<dyn Objective>).expect("threads start");
    let mut star = Star::new(&*method, setup, population, 1, NonFinite::Stop);
    star.round(1, &[2, 5], &workers).expect("messages can be read");
    assert_eq!(star.remembering(), 2);
    let before = star.residual(5);
    assert!(before.iter().any(|&v| v != 0.0));
    for round in 2..8 {
        star.round(round, &[2, 7], &workers).expect("messages can be read");
        assert_eq!((star.remembering(), star.residual(5)), (3, before.clone()));
    }
    star.round(8, &[5], &workers).expect("messages can be read");
    assert_ne!(star.residual(5), before);
}

#[test]
fn rounds_without_clients_or_weight_change_nothing_and_cost_nothing() {
    let problem = Ridge::heterogeneous(10);
    let method = method("fedavg", &local(2, 0.05, "server_optimiser = \"adam\""));
    let setup = Setup { start: Arc::new(vec![0.5; 20]), ..setup(link("identity", "", "plain"), 9) };
    let population = Population { weights: vec![0.0; 10], expected_share: None };
    let workers = Workers::new(1, || Box::new(problem.clone()) as Box<dyn Objective>).expect("threads start");
    let mut star = Star::new(&*method, setup, population, 1, NonFinite::Stop);
    let empty = star.round(1, &[], &workers).expect("an empty round is a round");
    assert_eq!((empty.totals.bits(), empty.clients.len(), empty.diverged), (0, 0, None));
    star.round(2, &[1, 4], &workers).expect("messages can be read");
    assert_eq!(star.model(), [0.5; 20]);
}

#[test]
fn bernoulli_estimates_divide_by_the_expected_weight() {
    let problem = Ridge::heterogeneous(4);
    let method = method("fedavg", &local(1, 0.1, ""));
    let workers = Workers::new(1, || Box::new(problem.clone()) as Box<dyn Objective>).expect("threads start");
    let run = |share| {
        let population = Population { weights: vec![1.0; 4], expected_share: share };
        let mut star = Star::new(&*method, setup(link("identity", "", "plain"), 1), population, 1, NonFinite::Stop);
        star.round(1, &[0, 1, 3], &workers).expect("messages can be read");
        star.model().to_vec()
    };
    // Three of four reported where half were expected: the mean of three is scaled by 3 / (4 * 0.5).
    for (scaled, mean) in run(Some(0.5)).iter().zip(run(None)) {
        assert!((scaled - 1.5 * mean).abs() < 1e-6);
    }
}

#[test]
fn averages_are_weighted_over_the_clients_that_take_part() {
    let problem = Ridge::heterogeneous(4);
    let method = method("fedavg", &local(1, 0.1, ""));
    let workers = Workers::new(1, || Box::new(problem.clone()) as Box<dyn Objective>).expect("threads start");
    let run = |weights: [f64; 4], drawn: &[u32]| {
        let setup = setup(link("identity", "", "plain"), 1);
        let population = Population { weights: weights.to_vec(), expected_share: None };
        let mut star = Star::new(&*method, setup, population, 1, NonFinite::Stop);
        star.round(1, drawn, &workers).expect("messages can be read");
        star.model().to_vec()
    };
    let [first, third] = [0, 2].map(|client| run([1.0; 4], &[client]));
    for (i, mean) in run([1.0, 100.0, 3.0, 100.0], &[0, 2]).into_iter().enumerate() {
        // Weights sum to one over the two that took part: 1/4 and 3/4.
        assert!((mean - (0.25 * first[i] + 0.75 * third[i])).abs() < 1e-6);
    }
}

#[test]
fn momentum_is_forgotten_or_kept_by_each_client_for_itself() {
    let problem = Ridge::heterogeneous(10);
    let trial = Trial { participation: 0.3, ..Trial::new(&problem) };
    let settings = |memory: &str| local(2, 0.02, &format!("momentum = 0.9\nmomentum_memory = \"{memory}\""));
    let [reset, keep] = ["reset", "keep"].map(|memory| trial.run(&*method("fedavg", &settings(memory)), 12));
    assert_eq!(reset[0], keep[0], "nobody has momentum before its first round");
    assert_ne!(reset[11], keep[11]);
    // A client that works alone with kept momentum is SGD with momentum that was never interrupted.
    let alone = Ridge::heterogeneous(1);
    let one = Trial { clients: 1, ..Trial::new(&alone) };
    let rounds = one.run(&*method("fedavg", &settings("keep")), 6);
    let whole = one.run(&*method("fedavg", &local(12, 0.02, "momentum = 0.9")), 1);
    for (a, b) in rounds[5].iter().zip(&whole[0]) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn streams_of_a_message_are_the_same_at_both_ends_and_differ_between_links() {
    let streams = |from, to, phase| Streams::message(1, 2, from, to, phase);
    let first = |streams: Streams| rand::Rng::next_u64(&mut streams.shared());
    assert_eq!(first(streams(1, 2, 0)), first(streams(1, 2, 0)));
    for other in [streams(2, 1, 0), streams(1, 3, 0), streams(1, 2, 1)] {
        assert_ne!(first(streams(1, 2, 0)), first(other));
    }
}

/// A run that is saved after every round and restored into new nodes, and one that is not, come to the same.
fn assert_survives(what: &str, method: &dyn Method, uplink: &Link) {
    let problem = Ridge::heterogeneous(10);
    let workers = Workers::new(1, || Box::new(problem.clone()) as Box<dyn Objective>).expect("threads start");
    let population = || Population { weights: vec![1.0; 10], expected_share: None };
    let star = || Star::new(method, setup(uplink.clone(), 6), population(), 1, NonFinite::Stop);
    let drawn = |round: u32| [round % 3, 3 + round % 2, 9];
    let (mut whole, mut broken) = (star(), star());
    for round in 1..=6 {
        let wanted = whole.round(round, &drawn(round), &workers).expect("messages can be read");
        let found = broken.round(round, &drawn(round), &workers).expect("messages can be read");
        assert_eq!(wanted, found, "{what}, round {round}");
        let mut vectors = std::collections::BTreeMap::new();
        broken.memory(&mut |name, vector| drop(vectors.insert(name.to_owned(), vector.clone())));
        vectors.retain(|_, vector| !vector.is_empty());
        let ledger = Ledger::restore(&broken.network().ledger.save()).expect("a ledger has saved them");
        broken = star();
        broken.restore(&mut vectors, ledger);
        assert!(vectors.is_empty(), "{what}: {:?} found no place", vectors.keys());
        assert_eq!(broken.remembering(), whole.remembering(), "{what}");
    }
    assert_eq!(whole.model(), broken.model(), "{what}");
    assert_eq!(whole.network().ledger.save(), broken.network().ledger.save(), "{what}");
}

#[test]
fn every_operator_and_rule_goes_on_from_what_nodes_remember() {
    let plain = method("fedavg", &local(2, 0.05, ""));
    for operator in compress::CATALOGUE {
        for rule in link::CATALOGUE {
            let what = format!("{} over {}", operator.name, rule.name);
            assert_survives(&what, &*plain, &link(operator.name, operator.example, rule.name));
        }
    }
}

#[test]
fn every_method_and_server_optimiser_goes_on_from_what_nodes_remember() {
    let uplink = link("top-k", "k = 3", "error-feedback");
    for entry in method::CATALOGUE {
        for kind in ["none", "momentum", "adagrad", "adam", "yogi"] {
            let more = format!("momentum = 0.9\nmomentum_memory = \"keep\"\nserver_optimiser = \"{kind}\"");
            let correction = if kind == "adam" { "\nserver_bias_correction = true" } else { "" };
            let settings = local(2, 0.05, &(more + correction));
            assert_survives(&format!("{} with {kind}", entry.name), &*method(entry.name, &settings), &uplink);
        }
    }
}
