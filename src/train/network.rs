//! Networks on images: the objective of clients that hold shares of a data set, and the evaluation of a model on its test set.

use std::{ops::Range, sync::Arc};

use super::{Objective, Samples};
use crate::{
    data::{Dataset, Pixels, Transform},
    layout::Layout,
    model::{Batch, Evaluation, Network},
    partition::{Partition, Share},
    rng::{Address, Purpose},
};

/// Data, what its pixels mean, and who holds what; shared by all threads.
pub struct Shards {
    /// The data set.
    pub dataset: Arc<Dataset>,
    /// What its pixels mean.
    pub pixels: Pixels,
    /// The clients' shares.
    pub partition: Partition,
    /// Seed of the noise that a partition adds.
    pub seed: u64,
}

impl Shards {
    fn share(&self, client: u32) -> &Share {
        &self.partition.shares[client as usize]
    }

    /// The rotations of the test set that a model is evaluated under: those that clients have, in quarter turns.
    pub fn rotations(&self) -> Vec<u8> {
        let mut turns: Vec<u8> = self.partition.shares.iter().map(|share| share.quarter_turns).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    /// Puts training samples of a client into `batch`.
    fn training(&self, samples: &Samples<'_>, indices: &mut Vec<u32>, batch: &mut Batch) {
        let share = self.share(samples.client);
        indices.clear();
        indices.extend(samples.at.iter().map(|&i| share.samples[i as usize]));
        let transform = Transform { quarter_turns: share.quarter_turns, noise_deviation: share.noise_deviation };
        let noise = Address::new(self.seed, Purpose::Noise).node(samples.client);
        let split = &self.dataset.train;
        self.pixels.gather(split, indices, &transform, noise, Some(samples.augmentation), &mut batch.images);
        batch.shape = self.pixels.shape();
        batch.labels.clear();
        batch.labels.extend(indices.iter().map(|&i| split.labels[i as usize]));
    }

    /// Puts test samples under a rotation into `batch`; nothing is random and no noise is added.
    fn testing(&self, range: Range<u32>, quarter_turns: u8, batch: &mut Batch) {
        let indices: Vec<u32> = range.collect();
        let transform = Transform { quarter_turns, noise_deviation: 0.0 };
        let noise = Address::new(self.seed, Purpose::Noise);
        self.pixels.gather(&self.dataset.test, &indices, &transform, noise, None, &mut batch.images);
        batch.shape = self.pixels.shape();
        batch.labels = indices.iter().map(|&i| self.dataset.test.labels[i as usize]).collect();
    }
}

/// A network with the clients' images, on one thread.
pub struct NetworkObjective {
    network: Box<dyn Network>,
    shards: Arc<Shards>,
    batch: Batch,
    indices: Vec<u32>,
}

impl NetworkObjective {
    /// A network for the images of `shards`.
    pub fn new(network: Box<dyn Network>, shards: Arc<Shards>) -> Self {
        Self { network, shards, batch: Batch::default(), indices: Vec::new() }
    }
}

impl Objective for NetworkObjective {
    fn layout(&self) -> &Layout {
        self.network.layout()
    }

    fn samples(&self, client: u32) -> usize {
        self.shards.share(client).samples.len()
    }

    fn gradient(&mut self, x: &[f32], samples: &Samples<'_>, out: &mut [f32]) -> f64 {
        self.shards.training(samples, &mut self.indices, &mut self.batch);
        self.network.gradient(x, &self.batch, out)
    }

    fn evaluate(&mut self, x: &[f32], test: Range<u32>, quarter_turns: u8) -> Evaluation {
        self.shards.testing(test, quarter_turns, &mut self.batch);
        self.network.evaluate(x, &self.batch)
    }
}
