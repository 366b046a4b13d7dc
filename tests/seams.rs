//! Trials of the hardest seams: what later methods and operators ask of the interfaces, tried on the real ones.

use std::{collections::BTreeMap, sync::Arc};

use fedbits::{
    catalogue,
    compress::{self, Class, Granularity, Misfit, Operator, Part, Unfit},
    layout::Layout,
    link::{self, Codec, Link, Receiver, Sender},
    method::{Env, Failure, Method, Node, Population, Report, Role, Setup, Trace},
    network::{Message, Network, NodeId, Outbox, To},
    payload::{Corrupt, Kind, Payload, Section, Source},
    rng::{Address, Purpose, Streams},
    run::{Star, Workers},
    scenario::NonFinite,
    train::{Objective, Samples, ridge::Ridge},
    vector::{distance_squared, norm_squared},
    wire,
};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

fn codec(operator: Box<dyn Operator>, coder: &str, layout: Arc<Layout>, granularity: Granularity) -> Codec {
    let coder = catalogue::find(wire::CATALOGUE, coder).expect("listed").build_example().expect("valid").part;
    Codec::new(operator, coder, layout, granularity).expect("they fit")
}

fn operator(name: &str, settings: &str) -> Box<dyn Operator> {
    let entry = catalogue::find(compress::CATALOGUE, name).expect("listed");
    (entry.build)(toml::from_str(settings).expect("TOML")).expect("valid").part
}

fn plain(codec: Codec) -> Link {
    Link::new(codec, catalogue::find(link::CATALOGUE, "plain").expect("listed").build_example().expect("valid").part)
}

fn gaussian(n: usize, seed: u64) -> Vec<f32> {
    let mut generator = Address::new(seed, Purpose::Data).generator();
    (0..n).map(|_| StandardNormal.sample(&mut generator)).collect()
}

// ---------------------------------------------------------------------------------------------------------------------
// A warm-started low-rank operator: looks at shapes, remembers a factor between the messages of one sender.

/// One step of power iteration on every matrix: sends `p` and `q = M^T p`; other tensors are sent as they are.
struct RankOne;

/// Rows and columns of a part that is one matrix.
fn matrix(part: &Part<'_>) -> Option<[usize; 2]> {
    match part.layers {
        [layer] if layer.shape.len() == 2 => Some([layer.shape[0], layer.shape[1]]),
        _ => None,
    }
}

fn normalise(v: &mut [f32]) {
    let norm = norm_squared(v).sqrt().max(1e-16) as f32;
    v.iter_mut().for_each(|v| *v /= norm);
}

impl Operator for RankOne {
    fn compress(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>, payload: &mut Payload) -> Result<(), Unfit> {
        let Some([rows, columns]) = matrix(part) else {
            payload.push(Section::Floats(x.to_vec()));
            return Ok(());
        };
        if warm.is_empty() {
            let mut generator = part.streams.private();
            warm.extend((0..columns).map(|_| generator.next_u32() as f32 / 2e9 - 1.0));
        }
        let mut p: Vec<f32> = (0..rows).map(|i| (0..columns).map(|j| x[i * columns + j] * warm[j]).sum()).collect();
        normalise(&mut p);
        *warm = (0..columns).map(|j| (0..rows).map(|i| x[i * columns + j] * p[i]).sum()).collect();
        payload.push(Section::Floats(p));
        payload.push(Section::Floats(warm.clone()));
        normalise(warm);
        Ok(())
    }

    fn restore(&self, source: &mut dyn Source, part: &Part<'_>, out: &mut [f32]) -> Result<(), Corrupt> {
        let Some([rows, columns]) = matrix(part) else { return source.floats(out) };
        let (mut p, mut q) = (vec![0.0; rows], vec![0.0; columns]);
        source.floats(&mut p)?;
        source.floats(&mut q)?;
        for (i, row) in out.chunks_exact_mut(columns).enumerate() {
            row.iter_mut().zip(&q).for_each(|(value, q)| *value = p[i] * q);
        }
        Ok(())
    }

    fn class(&self, n: usize) -> Class {
        Class::Contractive(1.0 / n as f64)
    }

    fn kinds(&self) -> &'static [Kind] {
        &[Kind::Floats]
    }

    fn default_coder(&self) -> &'static str {
        "fixed"
    }
}

#[test]
fn a_low_rank_operator_sees_shapes_and_starts_from_its_last_factor() {
    let layout = Arc::new(Layout::new([("w".to_owned(), vec![32, 32]), ("b".to_owned(), vec![32])]));
    let link = plain(codec(Box::new(RankOne), "fixed", layout, Granularity::Layer));
    let (mut sender, mut receiver) = (Sender::new(link.clone()), Receiver::new(link));
    let x = gaussian(32 * 32 + 32, 1);
    let mut errors = Vec::new();
    for round in 0..12 {
        let streams = Streams::message(0, round, 1, 2, 0);
        let sent = sender.send(x.clone(), None, streams).expect("finite vectors can be sent");
        assert_eq!(sent.packet.payload_bits, 32 * (32 + 32) + 32 * 32);
        let mut out = vec![0.0; x.len()];
        receiver.receive(&sent.packet, None, streams, &mut out).expect("packets can be read");
        assert_eq!(out[1024..], x[1024..], "vectors are sent as they are");
        errors.push(distance_squared(&x, &out));
    }
    assert!(errors.windows(2).all(|pair| pair[1] <= pair[0] * 1.000_001), "{errors:?}");
    assert!(errors[11] < 0.97 * errors[0], "a fresh start every time would not improve: {errors:?}");
    // The factor survives as the sender's memory does.
    let mut warm = 0;
    sender.memory(&mut |name, vector| warm += usize::from(name.starts_with("warm") && vector.len() == 32));
    assert_eq!(warm, 1);
}

// ---------------------------------------------------------------------------------------------------------------------
// An operator that lives on an edge: both ends hold a factor of the edge and update it from each other's raw messages.

/// A peer of PowerGossip, rank one, on square matrices: one half step a round, the two sides in turn.
struct Peer {
    x: Vec<f32>,
    side: usize,
    neighbours: Vec<(NodeId, f32)>,
    /// State of each edge: the normalised factor of the last half step.
    edges: BTreeMap<NodeId, Vec<f32>>,
    /// What was sent over each edge this round.
    halves: BTreeMap<NodeId, Vec<f32>>,
    link: Link,
}

impl Peer {
    /// `X v` or `X^T v`.
    fn times(&self, v: &[f32], transposed: bool) -> Vec<f32> {
        let n = self.side;
        let at = |i: usize, j: usize| if transposed { self.x[j * n + i] } else { self.x[i * n + j] };
        (0..n).map(|i| (0..n).map(|j| at(i, j) * v[j]).sum()).collect()
    }
}

impl Node for Peer {
    fn emit(&mut self, env: &mut Env<'_>, out: &mut Outbox) -> Result<(), Failure> {
        for (neighbour, _) in self.neighbours.clone() {
            let edge = self.edges.entry(neighbour).or_insert_with(|| {
                // Both ends derive the first factor from the edge, not from a message.
                let (low, high) = (env.id.min(neighbour), env.id.max(neighbour));
                let mut generator = Streams::message(env.seed, 0, low.0, high.0, 0).shared();
                (0..self.side).map(|_| generator.next_u32() as f32 / 2e9 - 1.0).collect()
            });
            normalise(edge);
            let half = self.times(&self.edges[&neighbour], env.round.is_multiple_of(2));
            let sent = Sender::new(self.link.clone()).send(half.clone(), None, env.streams_to(neighbour))?;
            self.halves.insert(neighbour, half);
            out.send(To::One(neighbour), sent.packet);
        }
        Ok(())
    }

    fn absorb(&mut self, env: &mut Env<'_>, message: &Message) -> Result<(), Failure> {
        let transposed = env.round.is_multiple_of(2);
        let mut theirs = vec![0.0; self.side];
        let mut receiver = Receiver::new(self.link.clone());
        receiver
            .receive(&message.packet, None, env.streams_of(message), &mut theirs)
            .map_err(|reason| Failure::Corrupt { from: message.from, reason })?;
        let factor = self.edges[&message.from].clone();
        let ours = self.halves.remove(&message.from).expect("both ends of an edge speak");
        // Written so that both ends compute the same floats: lower number minus higher.
        let first = env.id < message.from;
        let (low, high) = if first { (&ours, &theirs) } else { (&theirs, &ours) };
        let difference: Vec<f32> = low.iter().zip(high).map(|(a, b)| b - a).collect();
        let weight = self.neighbours.iter().find(|(id, _)| *id == message.from).expect("a neighbour").1;
        let sign = if first { weight } else { -weight };
        for i in 0..self.side {
            for j in 0..self.side {
                let delta = if transposed { factor[i] * difference[j] } else { difference[i] * factor[j] };
                self.x[i * self.side + j] += sign * delta;
            }
        }
        self.edges.insert(message.from, difference);
        Ok(())
    }

    fn model(&self) -> &[f32] {
        &self.x
    }

    fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        visit("model", &mut self.x);
        for (neighbour, factor) in &mut self.edges {
            visit(&format!("edge.{}", neighbour.0), factor);
        }
    }
}

#[test]
fn an_edge_keeps_its_state_at_both_ends_bit_for_bit() {
    let side = 8;
    let link = plain(codec(operator("identity", ""), "fixed", Arc::new(Layout::flat(side)), Granularity::Model));
    let ids = [NodeId(0), NodeId(1), NodeId(2)];
    let third = 1.0 / 3.0;
    let mut peers: Vec<Peer> = ids
        .iter()
        .map(|&id| Peer {
            x: gaussian(side * side, u64::from(id.0) + 1),
            side,
            neighbours: ids.iter().filter(|other| **other != id).map(|&other| (other, third)).collect(),
            edges: BTreeMap::new(),
            halves: BTreeMap::new(),
            link: link.clone(),
        })
        .collect();
    let population = Population { weights: vec![1.0; 3], expected_share: None };
    let mut network = Network::default();
    let spread =
        |peers: &[Peer]| distance_squared(&peers[0].x, &peers[1].x) + distance_squared(&peers[1].x, &peers[2].x);
    let mean = |peers: &[Peer]| -> f64 { peers.iter().flat_map(|peer| &peer.x).map(|&v| f64::from(v)).sum() };
    let (start, sum) = (spread(&peers), mean(&peers));
    for round in 1..=400 {
        let env = |id| Env {
            seed: 7,
            round,
            phase: 0,
            id,
            population: &population,
            objective: None,
            report: Report::default(),
            trace: Trace::default(),
        };
        let mut inboxes: BTreeMap<NodeId, Vec<Message>> = BTreeMap::new();
        for (peer, &id) in peers.iter_mut().zip(&ids) {
            let mut out = Outbox::default();
            peer.emit(&mut env(id), &mut out).expect("finite vectors can be sent");
            for message in network.route(id, 0, out, &[]) {
                inboxes.entry(message.to).or_default().push(message);
            }
        }
        for (peer, &id) in peers.iter_mut().zip(&ids) {
            for message in &inboxes[&id] {
                peer.absorb(&mut env(id), message).expect("messages can be read");
            }
        }
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            assert_eq!(peers[i].edges[&ids[j]], peers[j].edges[&ids[i]], "round {round}");
        }
        let totals = network.ledger.close_round();
        assert_eq!((totals.peer_bits, totals.messages), (6 * 32 * side as u64, 6));
    }
    assert!(spread(&peers) < 1e-3 * start, "{} from {start}", spread(&peers));
    assert!((mean(&peers) - sum).abs() < 1e-3, "gossip keeps the mean");
}

// ---------------------------------------------------------------------------------------------------------------------
// MARINA: the difference of two gradients on the same batch, a coin that all see alike, a memory at the server.

struct Marina {
    p: f64,
    rate: f32,
    exact: Link,
    /// Samples of a batch; all when it is as large as the data.
    batch: usize,
    /// Whether the second gradient is taken on the same batch, as it must be.
    replays: bool,
}

impl Method for Marina {
    fn phases(&self) -> Vec<Role> {
        vec![Role::Server, Role::Client]
    }

    fn node(&self, role: Role, setup: &Setup) -> Box<dyn Node> {
        Box::new(MarinaNode {
            role,
            p: self.p,
            rate: self.rate,
            batch: self.batch,
            replays: self.replays,
            x: setup.start.to_vec(),
            previous: Vec::new(),
            g: Vec::new(),
            sum: vec![0.0; setup.start.len()],
            received: 0,
            exact: self.exact.clone(),
            compressed: setup.uplink.clone(),
        })
    }

    fn check(&self, _: &Link, _: &Link) -> Result<(), (&'static str, Misfit)> {
        Ok(())
    }
}

struct MarinaNode {
    role: Role,
    p: f64,
    rate: f32,
    batch: usize,
    replays: bool,
    x: Vec<f32>,
    previous: Vec<f32>,
    g: Vec<f32>,
    sum: Vec<f32>,
    received: u32,
    exact: Link,
    compressed: Link,
}

impl MarinaNode {
    /// The link of this round: exact in the first and when the coin falls so.
    fn uplink(&self, env: &Env<'_>) -> (&Link, bool) {
        // The phase is part of the coin's address; both sides ask in the phase in which clients speak.
        let full = env.round == 1 || env.coin(self.p);
        (if full { &self.exact } else { &self.compressed }, full)
    }
}

impl Node for MarinaNode {
    fn emit(&mut self, env: &mut Env<'_>, out: &mut Outbox) -> Result<(), Failure> {
        if self.role == Role::Server {
            let step: Vec<f32> = self.g.iter().map(|g| self.rate * g).collect();
            self.x.iter_mut().zip(&step).for_each(|(x, step)| *x -= step);
            let sent = Sender::new(self.exact.clone()).send(self.x.clone(), None, env.streams_to(NodeId::SERVER))?;
            out.send(To::Clients, sent.packet);
            return Ok(());
        }
        let n = env.objective.as_ref().expect("clients have data").samples(env.id.0);
        let mut order: Vec<u32> = (0..n as u32).collect();
        let mut draw = |part: u64| {
            fedbits::rng::shuffle(&mut order, &mut env.address(Purpose::Batches).part(part).generator());
            order[..self.batch.min(n)].to_vec()
        };
        let first = draw(0);
        let second = if self.replays { first.clone() } else { draw(1) };
        let augmentation = env.address(Purpose::Augmentation);
        let mut target = vec![0.0; self.x.len()];
        let objective = env.objective.as_deref_mut().expect("clients have data");
        objective.gradient(&self.x, &Samples { client: env.id.0, at: &first, augmentation }, &mut target);
        let (link, full) = self.uplink(env);
        let link = link.clone();
        if !full {
            let mut old = vec![0.0; self.x.len()];
            let objective = env.objective.as_deref_mut().expect("clients have data");
            objective.gradient(&self.previous, &Samples { client: env.id.0, at: &second, augmentation }, &mut old);
            target.iter_mut().zip(&old).for_each(|(new, old)| *new -= old);
        }
        let sent = Sender::new(link).send(target, None, env.streams_to(NodeId::SERVER))?;
        out.send(To::One(NodeId::SERVER), sent.packet);
        Ok(())
    }

    fn absorb(&mut self, env: &mut Env<'_>, message: &Message) -> Result<(), Failure> {
        let link = if self.role == Role::Server { self.uplink(env).0.clone() } else { self.exact.clone() };
        let mut vector = vec![0.0; self.x.len()];
        Receiver::new(link)
            .receive(&message.packet, None, env.streams_of(message), &mut vector)
            .map_err(|reason| Failure::Corrupt { from: message.from, reason })?;
        if self.role == Role::Server {
            self.sum.iter_mut().zip(&vector).for_each(|(sum, v)| *sum += v);
            self.received += 1;
        } else {
            self.previous = std::mem::replace(&mut self.x, vector);
        }
        Ok(())
    }

    fn conclude(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        let full = self.uplink(env).1;
        let n = self.received as f32;
        self.g.resize(self.x.len(), 0.0);
        for (g, sum) in self.g.iter_mut().zip(&mut self.sum) {
            *g = if full { *sum / n } else { *g + *sum / n };
            *sum = 0.0;
        }
        self.received = 0;
        Ok(())
    }

    fn model(&self) -> &[f32] {
        &self.x
    }

    fn memory(&mut self, visit: &mut dyn FnMut(&str, &mut Vec<f32>)) {
        visit("x", &mut self.x);
        visit("previous", &mut self.previous);
        visit("g", &mut self.g);
    }
}

fn marina_error(p: f64, rate: f32, k: u32, batch: usize, replays: bool, rounds: u32) -> f64 {
    let problem = Ridge::heterogeneous(10);
    let layout = Arc::new(Layout::flat(20));
    let exact = plain(codec(operator("identity", ""), "fixed", layout.clone(), Granularity::Model));
    let compressed = codec(operator("rand-k", &format!("k = {k}")), "fixed", layout.clone(), Granularity::Model);
    let setup =
        Setup { layout, start: Arc::new(vec![0.0; 20]), uplink: plain(compressed), downlink: exact.clone(), rounds };
    let method = Marina { p, rate, exact, batch, replays };
    let population = Population { weights: vec![1.0; 10], expected_share: None };
    let workers = Workers::new(1, || Box::new(problem.clone()) as Box<dyn Objective>).expect("threads start");
    let mut star = Star::new(&method, setup, population, 3, NonFinite::Stop);
    let all: Vec<u32> = (0..10).collect();
    for round in 1..=rounds {
        if star.round(round, &all, &workers).expect("messages can be read").diverged.is_some() {
            return f64::INFINITY;
        }
    }
    problem.error(star.model())
}

#[test]
fn marina_replays_its_batch_and_shares_its_coin() {
    // spec 14.2: R(10), rand-k 5, p 0.25, step 0.3924, 500 rounds: below 1e-10 in f32
    let error = marina_error(0.25, 0.3924, 5, 30, true, 500);
    assert!(error < 1e-10, "{error:e}");
    // spec 14.4: with another batch for the second gradient the server's memory is a random walk
    let walk = marina_error(0.1, 0.2, 5, 3, false, 1500);
    assert!(walk > 1.0, "{walk:e}");
}

// ---------------------------------------------------------------------------------------------------------------------
// An adaptive coder learns across the parts of a message, and needs nothing from the operator.

#[test]
fn an_adaptive_coder_carries_what_it_learns_from_part_to_part() {
    let names = (0..40).map(|i| (format!("layer{i}"), vec![50]));
    let layout = Arc::new(Layout::new(names));
    let x = gaussian(2000, 5);
    let streams = Streams::message(0, 1, 2, 3, 0);
    let bits = |layout: Arc<Layout>, granularity, x: &[f32]| {
        let qsgd = operator("qsgd", "levels = 15\nnorm = \"linf\"");
        codec(qsgd, "adaptive", layout, granularity).encode(x, None, streams, &mut Vec::new()).expect("it can be sent")
    };
    let together = bits(layout, Granularity::Layer, &x);
    assert_eq!(together.parts.len(), 40);
    let alone: u64 =
        x.chunks(50).map(|part| bits(Arc::new(Layout::flat(50)), Granularity::Model, part).payload_bits).sum();
    assert!(together.payload_bits + 40 * 8 < alone, "{} together, {alone} alone", together.payload_bits);
    let sum: u64 = together.parts.iter().sum();
    assert!(sum.abs_diff(together.payload_bits) <= 48, "parts add up to the message: {sum}");
}
