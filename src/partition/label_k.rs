//! Partitioner `label-k`: every client knows exactly `k` labels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, by_label, counted, cut};
use crate::{
    catalogue::Named,
    rng::{Address, shuffle},
};

/// Gives every client samples of a fixed number of labels.
///
/// # Rule
/// With `K` labels in the data set, client `i` holds label `i mod K` and `k − 1` other labels drawn at random. The
/// samples of a label are shuffled and cut into equal parts for its holders.
///
/// # Sizes
/// The holders of a label get equally many of its samples, up to one; the lower clients get the one more. So the sizes
/// of clients differ. A label that nobody holds, possible only with fewer clients than labels, is unused and reported.
/// A client that would hold nothing is refused.
///
/// # Source
/// Li, Diao, Chen, He, *Federated Learning on Non-IID Data Silos: An Experimental Study*, 2022, the setting `#C = k`.
/// Differs from the source in: labels that do not occur are not dealt.
///
/// # Example
/// 4 samples of each of 3 labels, `labels_per_client = 1`, 4 clients: clients 0 and 3 share label 0, so sizes 2, 4, 4,
/// 2.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabelK {
    /// Labels of a client, at least 1 and at most the number of labels; fewer is more uneven.
    #[schemars(range(min = 1))]
    labels_per_client: u32,
}

impl Default for LabelK {
    fn default() -> Self {
        Self { labels_per_client: 2 }
    }
}

impl Named for LabelK {
    const NAME: &'static str = "label-k";
    const EXAMPLE: &'static str = "labels_per_client = 2";
}

impl Partitioner for LabelK {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let (clients, each) = (samples.n_clients()?, self.labels_per_client as usize);
        let mut labels = by_label(samples.labels);
        if each == 0 || each > labels.len() {
            let message = format!("{each} labels for each client, the data set has {}", labels.len());
            return Err(PartitionError::new("labels_per_client", message).help("ask for at least 1, at most all"));
        }
        let mut holders: Vec<Vec<usize>> = vec![Vec::new(); labels.len()];
        for client in 0..clients {
            let own = client % labels.len();
            let mut others: Vec<usize> = (0..labels.len()).filter(|&label| label != own).collect();
            shuffle(&mut others, &mut address.node(client as u32).generator());
            holders[own].push(client);
            for &label in &others[..each - 1] {
                holders[label].push(client);
            }
        }
        let mut lists = vec![Vec::new(); clients];
        let (mut unused, mut notes) = (0, Vec::new());
        for ((label, samples), holders) in labels.iter_mut().zip(&holders) {
            if holders.is_empty() {
                unused += samples.len();
                let lost = counted(samples.len(), "sample is", "samples are");
                notes.push(format!("{lost} unused: no client holds label {label}"));
                continue;
            }
            shuffle(samples, &mut address.part(1 + u64::from(*label)).generator());
            for (&client, part) in holders.iter().zip(cut::deal(samples, cut::even(samples.len(), holders.len()))) {
                lists[client].extend(part);
            }
        }
        if let Some(client) = lists.iter().position(Vec::is_empty) {
            let (label, samples) = &labels[client % labels.len()];
            let count = counted(samples.len(), "sample", "samples");
            let holders = counted(holders[client % labels.len()].len(), "client", "clients");
            let message = format!("client {client} would hold nothing: label {label} has {count} for {holders}");
            return Err(PartitionError::new("clients", message).help("ask for fewer clients or more labels for each"));
        }
        Ok(Partition { unused, notes, ..Partition::of(lists) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{
        Passport,
        laws::{lists, sizes, split},
    };

    #[test]
    fn a_label_is_split_equally_among_its_holders() {
        let labels = [0, 1, 2].repeat(4);
        let partition = split(&LabelK { labels_per_client: 1 }, &labels, 4, 0).unwrap();
        assert_eq!(sizes(&partition), [2, 4, 4, 2]);
        assert_eq!(lists(&partition)[1], [1, 4, 7, 10]);
    }

    #[test]
    fn every_client_has_k_labels_its_own_among_them() {
        let labels: Vec<u8> = (0..10).cycle().take(6000).collect();
        for k in [1, 2, 3, 10] {
            let partition = split(&LabelK { labels_per_client: k }, &labels, 30, 5).unwrap();
            let passport = Passport::new(&partition, &labels, 10);
            assert_eq!(passport.label_shares[k as usize], 1.0);
            assert!(passport.clients.iter().enumerate().all(|(i, client)| client.labels[i % 10] > 0));
        }
    }

    #[test]
    fn lost_labels_are_reported() {
        let partition = split(&LabelK { labels_per_client: 1 }, &[0, 0, 1, 2, 2, 2], 2, 0).unwrap();
        assert_eq!((sizes(&partition), partition.unused), (vec![2, 1], 3));
        assert_eq!(partition.notes, ["3 samples are unused: no client holds label 2"]);
    }

    #[test]
    fn impossible_demands_are_refused() {
        let refused = |k, clients| split(&LabelK { labels_per_client: k }, &[0, 0, 0, 0, 1], clients, 0).unwrap_err();
        assert_eq!(refused(3, 2).message, "3 labels for each client, the data set has 2");
        assert_eq!(refused(0, 2).key, "labels_per_client");
        assert_eq!(refused(1, 4).message, "client 3 would hold nothing: label 1 has 1 sample for 2 clients");
    }

    #[test]
    fn shares_keep_their_values_across_versions() {
        let partition = split(&LabelK::default(), &[0, 1, 2].repeat(4), 3, 0).unwrap();
        assert_eq!(lists(&partition), [vec![0, 8, 9, 11], vec![1, 3, 6, 10], vec![2, 4, 5, 7]]);
    }
}
