//! Partitioner `rotation`: clusters of clients that see the images turned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, iid};
use crate::{catalogue::Named, rng::Address};

/// Gives every client a random share, turned by an angle that depends on the client.
///
/// # Rule
/// Client `i` turns its images by `360/R · (i mod R)` degrees, an exact permutation of the pixels. The samples are
/// dealt as by `iid`; with `replicate`, each of the `R` clusters of equally turned clients gets all samples and deals
/// them among its members.
///
/// # Sizes
/// `⌊N/n⌋` or one more; with `replicate`, the same with the number of clients in the cluster in place of `n`. No sample
/// is unused.
///
/// # Source
/// Ghosh, Chung, Yin, Ramchandran, *An Efficient Framework for Clustered Federated Learning*, 2020, rotated MNIST.
/// Differs from the source in: without `replicate`, which is the default, no sample is used twice.
///
/// # Example
/// 8 samples for 4 clients: 2 each, turned by 0, 90, 180, 270 degrees; with `replicate`, 8 each.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rotation {
    /// Number of angles `R`: 2 (upright, upside down) or 4, which needs square images.
    #[schemars(extend("enum" = [2, 4]))]
    rotations: u8,
    /// Whether every cluster gets all samples rather than its share.
    replicate: bool,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { rotations: 4, replicate: false }
    }
}

impl Named for Rotation {
    const NAME: &'static str = "rotation";
    const EXAMPLE: &'static str = "rotations = 4";
}

impl Partitioner for Rotation {
    fn split(&self, samples: &Samples<'_>, address: Address) -> Result<Partition, PartitionError> {
        let (total, clients, rotations) = (samples.labels.len(), samples.n_clients()?, usize::from(self.rotations));
        if !matches!(rotations, 2 | 4) {
            return Err(PartitionError::new("rotations", format!("`rotations` is {rotations}, but must be 2 or 4")));
        }
        if rotations == 4 && !samples.square {
            let error =
                PartitionError::new("rotations", "4 rotations need square images, those of the data set are not");
            return Err(error.help("`rotations = 2` turns images of any shape"));
        }
        let lists = if self.replicate {
            let mut lists = vec![Vec::new(); clients];
            for cluster in 0..rotations.min(clients) {
                let members: Vec<usize> = (cluster..clients).step_by(rotations).collect();
                let shares = iid::equal_shares(total, members.len(), address.part(1 + cluster as u64));
                for (client, share) in members.into_iter().zip(shares) {
                    lists[client] = share;
                }
            }
            lists
        } else {
            iid::equal_shares(total, clients, address)
        };
        let mut partition = Partition::of(lists);
        for (client, share) in partition.shares.iter_mut().enumerate() {
            share.quarter_turns = (client % rotations * (4 / rotations)) as u8;
        }
        Ok(partition)
    }

    fn replicates(&self) -> bool {
        self.replicate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::laws::{lists, samples, sizes, split};

    fn turns(partition: &Partition) -> Vec<u8> {
        partition.shares.iter().map(|share| share.quarter_turns).collect()
    }

    #[test]
    fn clients_turn_in_order_and_keep_their_values_across_versions() {
        let partition = split(&Rotation::default(), &[0; 8], 4, 0).unwrap();
        assert_eq!((sizes(&partition), turns(&partition)), (vec![2; 4], vec![0, 1, 2, 3]));
        assert_eq!(lists(&partition), [vec![1, 6], vec![2, 5], vec![3, 4], vec![0, 7]]);
        let two = split(&Rotation { rotations: 2, replicate: false }, &[0; 8], 5, 0).unwrap();
        assert_eq!(turns(&two), [0, 2, 0, 2, 0]);
    }

    #[test]
    fn a_replicated_set_is_dealt_in_every_cluster() {
        let rotation = Rotation { rotations: 4, replicate: true };
        let partition = split(&rotation, &[0; 8], 4, 0).unwrap();
        assert_eq!(sizes(&partition), [8; 4]);
        // Clusters of 2, 2, 1 and 1 clients; of 1 each if there are fewer clients than angles.
        assert_eq!(sizes(&split(&rotation, &[0; 9], 6, 0).unwrap()), [5, 5, 9, 9, 4, 4]);
        assert_eq!(sizes(&split(&rotation, &[0; 9], 2, 0).unwrap()), [9, 9]);
    }

    #[test]
    fn quarter_turns_need_square_images_and_half_turns_do_not() {
        let oblong = crate::partition::Samples { square: false, ..samples(&[0; 8], Some(4)) };
        let at = crate::partition::laws::address(0);
        let try_with = |rotations| crate::partition::split(&Rotation { rotations, replicate: false }, &oblong, at);
        assert_eq!(try_with(4).unwrap_err().key, "rotations");
        assert!(try_with(2).is_ok());
        for rotations in [0, 1, 3, 255] {
            assert_eq!(try_with(rotations).unwrap_err().key, "rotations");
        }
    }
}
