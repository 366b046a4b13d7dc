//! The local-steps family: clients work on their data for a while and send the change of the model.
//!
//! FedSGD, FedAvg, FedProx and the server optimisers of FedOpt are settings of this one method; compression, error feedback and
//! granularity come from its links.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Env, Failure, Node, Role, Setup,
    server_optimiser::{Kind, ServerOptimiser},
};
use crate::{
    compress::{Class, Misfit},
    link::{Link, Receiver, Sender},
    network::{Message, NodeId, Outbox, To},
    rng::Purpose,
    train::{
        local::{Amount, Work},
        schedule::{Schedule, Shape},
    },
    vector::add_weighted,
};

/// Settings that all methods of the family share.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LocalSteps {
    /// Passes of a client over its samples in a round, at least 1. Not beside `local_steps`.
    #[schemars(range(min = 1))]
    pub local_epochs: u32,
    /// Steps of a client in a round, at least 1, in place of `local_epochs`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_steps: Option<u32>,
    /// Samples a step, at least 1, or `full` for all that a client has.
    pub batch_size: BatchSize,
    /// Learning rate of the local steps, at least 0.
    #[schemars(range(min = 0.0, max = 1e30))]
    pub learning_rate: f64,
    /// How the learning rate changes from round to round.
    pub learning_rate_schedule: Shape,
    /// Factor of the schedules `round-step` and `round-exponential`, in (0, 1].
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub learning_rate_decay: f64,
    /// Rounds between two steps of `round-step`, at least 1.
    #[schemars(range(min = 1))]
    pub learning_rate_decay_rounds: u32,
    /// Rounds over which the learning rate grows linearly to its full size; 0 is none.
    pub warmup_rounds: u32,
    /// Momentum of the local steps, in [0, 1).
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub momentum: f64,
    /// Whether local momentum looks ahead (Nesterov).
    pub nesterov: bool,
    /// What becomes of a client's momentum when the round ends.
    pub momentum_memory: MomentumMemory,
    /// Factor of the parameters that is added to the gradient, at least 0.
    #[schemars(range(min = 0.0))]
    pub weight_decay: f64,
    /// Largest Euclidean norm of a stochastic gradient, greater than 0; longer ones are scaled down. Absent: no clipping.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// What the server does with the average update: `none` averages, the others are FedAvgM, FedAdagrad, FedAdam, FedYogi.
    pub server_optimiser: Kind,
    /// Step size of the server, at least 0. Absent: 1 for `none` and `momentum`, 0.01 for the adaptive ones.
    #[schemars(range(min = 0.0, max = 1e30))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_learning_rate: Option<f64>,
    /// `beta1` of the server, in [0, 1). Absent: 0.9, and 0 for `adagrad`.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_momentum: Option<f64>,
    /// Whether the server's momentum looks ahead (Nesterov).
    pub server_nesterov: bool,
    /// `beta2` of `adam` and `yogi`, in [0, 1).
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1.0))]
    pub server_beta2: f64,
    /// `epsilon` of the adaptive server optimisers, at least 1e-30; part of the method, not a nuisance.
    #[schemars(range(min = 1e-30, max = 1e30))]
    pub server_epsilon: f64,
    /// Whether the adaptive ones correct their start (`v = 0`, division by `1 - beta^t`); the paper does not.
    pub server_bias_correction: bool,
}

/// Samples a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BatchSize {
    /// So many.
    Samples(u32),
    /// All that a client has.
    Full(Full),
}

/// The word `full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Full {
    /// The word itself.
    Full,
}

impl JsonSchema for BatchSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BatchSize".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": u32::MAX }, { "const": "full" }]
        })
    }
}

/// What becomes of a client's momentum when the round ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MomentumMemory {
    /// Every round starts without momentum.
    #[default]
    Reset,
    /// A client keeps its own momentum until it takes part again; one whose update could not be sent starts again without.
    Keep,
}

impl Default for LocalSteps {
    fn default() -> Self {
        Self {
            local_epochs: 1,
            local_steps: None,
            batch_size: BatchSize::Samples(10),
            learning_rate: 0.1,
            learning_rate_schedule: Shape::Constant,
            learning_rate_decay: 0.99,
            learning_rate_decay_rounds: 10,
            warmup_rounds: 0,
            momentum: 0.0,
            nesterov: false,
            momentum_memory: MomentumMemory::Reset,
            weight_decay: 0.0,
            clip_norm: None,
            server_optimiser: Kind::None,
            server_learning_rate: None,
            server_momentum: None,
            server_nesterov: false,
            server_beta2: 0.99,
            server_epsilon: 1e-3,
            server_bias_correction: false,
        }
    }
}

impl LocalSteps {
    fn work(&self, proximal: f64) -> Work {
        Work {
            amount: self.local_steps.map_or(Amount::Epochs(self.local_epochs), Amount::Steps),
            batch_size: match self.batch_size {
                BatchSize::Samples(samples) => Some(samples),
                BatchSize::Full(_) => None,
            },
            momentum: self.momentum,
            nesterov: self.nesterov,
            weight_decay: self.weight_decay,
            clip_norm: self.clip_norm,
            proximal,
        }
    }

    fn schedule(&self, rounds: u32) -> Schedule {
        Schedule {
            rate: self.learning_rate,
            shape: self.learning_rate_schedule,
            decay: self.learning_rate_decay,
            decay_rounds: self.learning_rate_decay_rounds,
            warmup_rounds: self.warmup_rounds,
            rounds,
        }
    }

    fn optimiser(&self) -> ServerOptimiser {
        let kind = self.server_optimiser;
        ServerOptimiser {
            kind,
            rate: self.server_learning_rate.unwrap_or(kind.default_rate()),
            momentum: self.server_momentum.unwrap_or(kind.default_momentum()),
            nesterov: self.server_nesterov,
            beta2: self.server_beta2,
            epsilon: self.server_epsilon,
            bias_correction: self.server_bias_correction,
            first: Vec::new(),
            second: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// A node of the family; `proximal` is the weight of the pull towards the received model.
    pub fn node(&self, role: Role, setup: &Setup, proximal: f64) -> Box<dyn Node> {
        match role {
            Role::Server => Box::new(Server {
                model: setup.start.to_vec(),
                sum: Vec::new(),
                weight: 0.0,
                received: Vec::new(),
                hints: Displacement::new(setup),
                moved: None,
                optimiser: self.optimiser(),
                downlink: Sender::new(setup.downlink.clone()),
                uplink: Receiver::new(setup.uplink.clone()),
            }),
            Role::Client => Box::new(Client {
                model: Vec::new(),
                velocity: Vec::new(),
                keeps_velocity: self.momentum_memory == MomentumMemory::Keep,
                work: self.work(proximal),
                schedule: self.schedule(setup.rounds),
                hints: Displacement::new(setup),
                downlink: Receiver::new(setup.downlink.clone()),
                uplink: Sender::new(setup.uplink.clone()),
            }),
        }
    }

    /// Whether the number of rounds of the whole run matters before its last one.
    pub fn depends_on_rounds(&self) -> bool {
        self.learning_rate_schedule == Shape::RoundCosine
    }

    /// Who emits: the server its model, then the clients their changes.
    pub fn phases() -> Vec<Role> {
        vec![Role::Server, Role::Client]
    }

    /// Settings that have no effect beside the others, with the reason.
    pub fn idle(&self) -> Vec<(&'static str, &'static str)> {
        let kind = self.server_optimiser;
        let mut idle = Vec::new();
        let mut unless = |counts: bool, keys: &[&'static str], reason: &'static str| {
            if !counts {
                idle.extend(keys.iter().map(|&key| (key, reason)));
            }
        };
        unless(kind != Kind::None, &["server_momentum"], "counts only with a `server_optimiser`");
        unless(kind == Kind::Momentum, &["server_nesterov"], "counts only with `server_optimiser = \"momentum\"`");
        unless(
            kind.is_adaptive(),
            &["server_epsilon", "server_bias_correction"],
            "counts only with `server_optimiser` `adagrad`, `adam` or `yogi`",
        );
        unless(
            matches!(kind, Kind::Adam | Kind::Yogi),
            &["server_beta2"],
            "counts only with `server_optimiser` `adam` or `yogi`",
        );
        unless(self.momentum > 0.0, &["nesterov", "momentum_memory"], "counts only with `momentum` above 0");
        let shape = self.learning_rate_schedule;
        unless(
            matches!(shape, Shape::RoundStep | Shape::RoundExponential),
            &["learning_rate_decay"],
            "counts only with `learning_rate_schedule` `round-step` or `round-exponential`",
        );
        unless(
            shape == Shape::RoundStep,
            &["learning_rate_decay_rounds"],
            "counts only with `learning_rate_schedule = \"round-step\"`",
        );
        unless(self.local_steps.is_none(), &["local_epochs"], "does not count beside `local_steps`");
        idle
    }

    /// The downlink carries the model itself, which only some links can.
    pub fn check(_uplink: &Link, downlink: &Link) -> Result<(), (&'static str, Misfit)> {
        if downlink.rule.remembers() {
            let message = "the downlink carries the model itself, which a link with memory would mix with earlier ones; \
                           use `plain`";
            return Err(("downlink", Misfit { key: "link", message: message.into() }));
        }
        let message = match downlink.codec.class() {
            Class::Contractive(_) | Class::Unproven => {
                "the downlink carries the model itself, which a biased operator \
                destroys; use `identity` or an unbiased operator"
                    .to_owned()
            }
            Class::Unbiased(omega) if omega >= 1.0 => format!(
                "the downlink carries the model itself, and the error of this operator can be {omega:.1} times as large as the \
                 model; at most 1 is allowed, such as `natural` or `qsgd` with more levels or smaller buckets"
            ),
            _ => return Ok(()),
        };
        Err(("downlink", Misfit { key: "operator", message }))
    }
}

struct Server {
    model: Vec<f32>,
    /// Weighted sum of the updates of this round, in 64 bits; empty between rounds.
    sum: Vec<f64>,
    weight: f64,
    received: Vec<f32>,
    hints: Displacement,
    /// How far the model that was sent has moved.
    moved: Option<Vec<f32>>,
    optimiser: ServerOptimiser,
    downlink: Sender,
    uplink: Receiver,
}

impl Node for Server {
    fn emit(&mut self, env: &mut Env<'_>, out: &mut Outbox) -> Result<(), Failure> {
        self.moved = self.hints.moved(&self.model);
        let sent = self.downlink.send(self.model.clone(), None, env.streams_to(NodeId::SERVER))?;
        out.send(To::Clients, sent.packet);
        Ok(())
    }

    fn absorb(&mut self, env: &mut Env<'_>, message: &Message) -> Result<(), Failure> {
        self.received.resize(self.model.len(), 0.0);
        let streams = env.streams_of(message);
        self.uplink
            .receive(&message.packet, self.moved.as_deref(), streams, &mut self.received)
            .map_err(|reason| Failure::Corrupt { from: message.from, reason })?;
        let weight = env.population.weights[message.from.0 as usize];
        self.sum.resize(self.model.len(), 0.0);
        add_weighted(&mut self.sum, weight, &self.received);
        self.weight += weight;
        Ok(())
    }

    fn conclude(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        let total = match env.population.expected_share {
            Some(share) => share * env.population.total_weight(),
            None => self.weight,
        };
        // A round without weight changes nothing.
        if self.weight > 0.0 {
            // Clients send x - y; the optimiser moves along y - x.
            self.received.iter_mut().zip(&self.sum).for_each(|(mean, sum)| *mean = (-sum / total) as f32);
            self.optimiser.step(&mut self.model, &self.received);
        }
        self.sum.clear();
        self.weight = 0.0;
        Ok(())
    }

    fn model(&self) -> &[f32] {
        &self.model
    }

    fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        visit("model", &mut self.model);
        self.optimiser.memory(visit);
        self.downlink.memory(visit);
    }
}

struct Client {
    /// The received model; empty between rounds.
    model: Vec<f32>,
    velocity: Vec<f32>,
    keeps_velocity: bool,
    work: Work,
    schedule: Schedule,
    hints: Displacement,
    downlink: Receiver,
    uplink: Sender,
}

/// What both ends of an uplink know of an update before it is sent: a parameter that has moved far since the start is likely to
/// move on, and one that never moved is likely to stay.
struct Displacement {
    start: Arc<Vec<f32>>,
    /// Whether it is of use: only a downlink that loses nothing gives both ends the same model, and not every coder listens.
    counts: bool,
}

impl Displacement {
    fn new(setup: &Setup) -> Self {
        let counts = setup.downlink.codec.class() == Class::Exact && setup.uplink.codec.takes_hints();
        Self { start: setup.start.clone(), counts }
    }

    /// The distance of every parameter from the start.
    fn moved(&self, model: &[f32]) -> Option<Vec<f32>> {
        self.counts.then(|| model.iter().zip(&*self.start).map(|(x, start)| (x - start).abs()).collect())
    }
}

impl Node for Client {
    fn absorb(&mut self, env: &mut Env<'_>, message: &Message) -> Result<(), Failure> {
        let objective = env.objective.as_ref().expect("clients work on data");
        self.model.resize(objective.layout().len(), 0.0);
        let streams = env.streams_of(message);
        self.downlink
            .receive(&message.packet, None, streams, &mut self.model)
            .map_err(|reason| Failure::Corrupt { from: message.from, reason })
    }

    fn emit(&mut self, env: &mut Env<'_>, out: &mut Outbox) -> Result<(), Failure> {
        let rate = self.schedule.at(env.round);
        let stream = env.address(Purpose::Batches);
        let objective = env.objective.as_deref_mut().expect("clients work on data");
        let outcome = self.work.run(objective, env.id.0, &self.model, rate, &mut self.velocity, stream);
        let mut delta = outcome.model;
        delta.iter_mut().zip(&self.model).for_each(|(y, x)| *y = x - *y);
        env.report.steps = outcome.steps;
        env.report.samples = outcome.samples;
        env.report.loss_sum = outcome.loss_sum;
        env.report.learning_rate = rate;
        let moved = self.hints.moved(&self.model);
        let sent = self.uplink.send(delta, moved.as_deref(), env.streams_to(NodeId::SERVER));
        if sent.is_err() {
            self.velocity.clear();
        }
        let packet = env.record(&self.uplink, sent?);
        out.send(To::One(NodeId::SERVER), packet);
        Ok(())
    }

    fn rest(&mut self) {
        self.model = Vec::new();
        if !self.keeps_velocity {
            self.velocity = Vec::new();
        }
    }

    fn model(&self) -> &[f32] {
        &self.model
    }

    fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        if self.keeps_velocity {
            visit("velocity", &mut self.velocity);
        }
        self.uplink.memory(visit);
    }
}
