//! Partitioner `writer`: the natural split of data sets that say who wrote what.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, counted};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle},
};

/// Makes every writer of the data set a client, or deals the writers to a given number of clients.
///
/// # Rule
/// Writers with fewer than `min_samples` samples are dropped; of the `W` left, `⌈subsample · W⌉` are kept at random.
/// Without a number of clients, client `i` is the `i`-th kept writer by ascending number. With one, the kept writers
/// are shuffled and dealt in turn.
///
/// # Sizes
/// As the writers have them; dealt, every client has `⌊W/n⌋` writers or one more. The samples of dropped writers are
/// unused and reported. More clients than kept writers are refused, so no client is empty.
///
/// # Source
/// Caldas et al., *LEAF: A Benchmark for Federated Settings*, 2018, FEMNIST.
/// Differs from the source in: `subsample` is a share of the writers, not of the samples, and keeps whole writers.
///
/// # Example
/// Samples by writers 7, 3, 7, 7 without a number of clients: client 0 is writer 3 with sample 1, client 1 is writer 7
/// with samples 0, 2, 3.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Writer {
    /// Samples that a writer must have to be kept; 0 keeps all.
    min_samples: u32,
    /// Share of the writers kept, in (0, 1].
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    subsample: f64,
}

impl Default for Writer {
    fn default() -> Self {
        Self { min_samples: 0, subsample: 1.0 }
    }
}

impl Named for Writer {
    const NAME: &'static str = "writer";
    const EXAMPLE: &'static str = "min_samples = 10";
}

impl Partitioner for Writer {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let Some(writers) = samples.writers else {
            return Err(PartitionError::new("name", "the data set does not say who wrote which sample"));
        };
        if !(self.subsample > 0.0 && self.subsample <= 1.0) {
            let message = format!("`subsample` is {}, but must be greater than 0 and at most 1", self.subsample);
            return Err(PartitionError::new("subsample", message));
        }
        let mut by_writer: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (sample, &writer) in writers.iter().enumerate() {
            by_writer.entry(writer).or_default().push(sample as u32);
        }
        let all = by_writer.len();
        let (mut kept, small): (Vec<_>, Vec<_>) =
            by_writer.into_values().partition(|list| list.len() >= self.min_samples as usize);
        if kept.is_empty() {
            let largest = small.iter().map(Vec::len).max().unwrap_or(0);
            let message = format!("no writer has {} samples, the largest of {all} has {largest}", self.min_samples);
            return Err(PartitionError::new("min_samples", message));
        }

        let wanted = ((self.subsample * kept.len() as f64).ceil() as usize).clamp(1, kept.len());
        let mut left_out = Vec::new();
        if wanted < kept.len() {
            let mut order: Vec<u32> = (0..kept.len() as u32).collect();
            shuffle(&mut order, &mut address.generator());
            order[..wanted].sort_unstable();
            left_out = order[wanted..].iter().map(|&writer| std::mem::take(&mut kept[writer as usize])).collect();
            kept = order[..wanted].iter().map(|&writer| std::mem::take(&mut kept[writer as usize])).collect();
        }

        let lists = match samples.clients {
            None => kept,
            Some(clients) if clients == 0 || clients as usize > kept.len() => {
                let message =
                    format!("{clients} clients need as many writers, {} of the data set's {all} are kept", kept.len());
                return Err(PartitionError::new("clients", message));
            }
            Some(clients) => {
                shuffle(&mut kept, &mut address.part(1).generator());
                let mut lists = vec![Vec::new(); clients as usize];
                for (turn, list) in kept.into_iter().enumerate() {
                    lists[turn % clients as usize].extend(list);
                }
                lists
            }
        };
        let count = |lists: &[Vec<u32>]| lists.iter().map(Vec::len).sum::<usize>();
        let note = |dropped: &[Vec<u32>], why: String| {
            let (n, writers) = (count(dropped), dropped.len());
            let unused = counted(n, "sample is", "samples are");
            (writers > 0).then(|| format!("{unused} unused: {writers} of {all} writers {why}"))
        };
        let notes = [
            note(&small, format!("have fewer than {}", counted(self.min_samples as usize, "sample", "samples"))),
            note(&left_out, "were left out by `subsample`".to_owned()),
        ];
        let unused = count(&small) + count(&left_out);
        Ok(Partition { unused, notes: notes.into_iter().flatten().collect(), ..Partition::of(lists) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::laws::{address, lists, samples};

    fn split(writer: &Writer, writers: &[u32], clients: Option<u32>) -> Result<Partition, PartitionError> {
        let labels = vec![0; writers.len()];
        let samples = Samples { writers: Some(writers), ..samples(&labels, clients) };
        crate::partition::split(writer, &samples, address(0))
    }

    #[test]
    fn writers_are_clients_in_ascending_order() {
        let partition = split(&Writer::default(), &[7, 3, 7, 7], None).unwrap();
        assert_eq!(lists(&partition), [vec![1], vec![0, 2, 3]]);
    }

    #[test]
    fn small_writers_are_dropped_and_reported() {
        let writer = Writer { min_samples: 2, ..Writer::default() };
        let partition = split(&writer, &[7, 3, 7, 7, 9, 1, 9], None).unwrap();
        assert_eq!(lists(&partition), [vec![0, 2, 3], vec![4, 6]]);
        assert_eq!(partition.unused, 2);
        assert_eq!(partition.notes, ["2 samples are unused: 2 of 4 writers have fewer than 2 samples"]);
        let error = split(&Writer { min_samples: 5, ..writer }, &[7, 3, 7, 7], None).unwrap_err();
        assert_eq!(error.message, "no writer has 5 samples, the largest of 2 has 3");
    }

    #[test]
    fn a_share_of_the_writers_is_kept_and_dealt_with_values_that_stay() {
        let writers: Vec<u32> = (0..20).map(|sample| sample / 2).collect();
        let half = Writer { subsample: 0.45, ..Writer::default() };
        let partition = split(&half, &writers, None).unwrap();
        assert_eq!((partition.shares.len(), partition.unused), (5, 10));
        assert_eq!(partition.notes, ["10 samples are unused: 5 of 10 writers were left out by `subsample`"]);
        assert_eq!(lists(&partition), [vec![4, 5], vec![6, 7], vec![14, 15], vec![16, 17], vec![18, 19]]);
        let dealt = split(&Writer::default(), &writers, Some(3)).unwrap();
        assert_eq!(
            lists(&dealt),
            [vec![0, 1, 8, 9, 10, 11, 18, 19], vec![2, 3, 14, 15, 16, 17], vec![4, 5, 6, 7, 12, 13]]
        );
    }

    #[test]
    fn more_clients_than_writers_and_sets_without_writers_are_refused() {
        let error = split(&Writer::default(), &[7, 3, 7, 7], Some(3)).unwrap_err();
        assert_eq!(error.message, "3 clients need as many writers, 2 of the data set's 2 are kept");
        let without = Writer::default().split(&samples(&[0; 4], None), address(0)).unwrap_err();
        assert_eq!(without.key, "name");
        for subsample in [0.0, -1.0, 1.5, f64::NAN] {
            let writer = Writer { subsample, ..Writer::default() };
            assert_eq!(split(&writer, &[1, 2], None).unwrap_err().key, "subsample");
        }
    }
}
