//! The promise of every partitioner: each sample is held once, or counted as unused.

use super::Partition;

/// Checks that `partition` covers the samples `0..n_samples` exactly.
///
/// Every list must ascend and stay in range, no sample may be held twice, and the samples that nobody holds must be as
/// many as `unused` says. With `replicates` a sample may be held once for each rotation.
pub fn check_cover(partition: &Partition, n_samples: usize, replicates: bool) -> Result<(), String> {
    // One bit for each rotation under which a sample is held.
    let mut held = vec![0u8; n_samples];
    for (client, share) in partition.shares.iter().enumerate() {
        if share.quarter_turns > 3 {
            return Err(format!("client {client} makes {} quarter turns", share.quarter_turns));
        }
        if !share.noise_deviation.is_finite() || share.noise_deviation < 0.0 {
            return Err(format!("client {client} has noise of deviation {}", share.noise_deviation));
        }
        if let Some([first, second]) = share.samples.array_windows().find(|[first, second]| first >= second) {
            return Err(format!("client {client} lists sample {first} before sample {second}"));
        }
        let bit = if replicates { 1 << share.quarter_turns } else { 1 };
        for &sample in &share.samples {
            let Some(mask) = held.get_mut(sample as usize) else {
                return Err(format!("client {client} holds sample {sample} of a set of {n_samples}"));
            };
            if *mask & bit != 0 {
                return Err(format!("client {client} holds sample {sample}, which another client holds already"));
            }
            *mask |= bit;
        }
    }
    let lost = held.iter().map(|&mask| usize::from(mask == 0)).sum::<usize>();
    if lost == partition.unused {
        return Ok(());
    }
    Err(format!("{lost} samples are held by nobody, {} are reported as unused", partition.unused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::Share;

    fn partition(lists: &[(&[u32], u8)], unused: usize) -> Partition {
        let share = |&(samples, quarter_turns): &(&[u32], u8)| Share {
            samples: samples.to_vec(),
            quarter_turns,
            ..Share::default()
        };
        Partition { shares: lists.iter().map(share).collect(), unused, notes: Vec::new() }
    }

    #[test]
    fn exact_covers_pass_and_every_fault_is_named() {
        let check = |lists: &[(&[u32], u8)], unused, replicates| {
            check_cover(&partition(lists, unused), 5, replicates).map_err(|error| error.clone())
        };
        assert_eq!(check(&[(&[0, 2, 4], 0), (&[], 0), (&[1, 3], 0)], 0, false), Ok(()));
        assert_eq!(check(&[(&[0, 2], 0), (&[1], 0)], 2, false), Ok(()));
        assert_eq!(check(&[(&[0, 1, 2, 3, 4], 0), (&[0, 1, 2, 3, 4], 1)], 0, true), Ok(()));

        let refused = |lists: &[(&[u32], u8)], unused, replicates| check(lists, unused, replicates).unwrap_err();
        assert_eq!(refused(&[(&[0, 2], 0)], 2, false), "3 samples are held by nobody, 2 are reported as unused");
        assert_eq!(refused(&[(&[0, 0], 0)], 4, false), "client 0 lists sample 0 before sample 0");
        assert_eq!(refused(&[(&[2, 1], 0)], 3, false), "client 0 lists sample 2 before sample 1");
        assert_eq!(refused(&[(&[5], 0)], 5, false), "client 0 holds sample 5 of a set of 5");
        let twice = "client 1 holds sample 0, which another client holds already";
        assert_eq!(refused(&[(&[0], 0), (&[0], 0)], 4, false), twice);
        assert_eq!(refused(&[(&[0], 0), (&[0], 1)], 4, false), twice);
        assert_eq!(refused(&[(&[0], 1), (&[0], 1)], 4, true), twice);
        assert_eq!(refused(&[(&[0], 4)], 4, true), "client 0 makes 4 quarter turns");
    }
}
