//! The passport of a split: what every client holds, how uneven that is, and a digest that identifies the split.

use std::fmt::Write;

use super::{Partition, Share, counted};
use crate::digest::Hash;

/// Columns of [`indices_csv`]; the last two are left out where no client turns its images or adds noise.
pub(super) const COLUMNS: [&str; 4] = ["client", "sample", "quarter_turns", "noise_deviation"];

/// What one client holds, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// Number of samples.
    pub samples: usize,
    /// Number of samples of each label.
    pub labels: Vec<u32>,
    /// Number of labels with at least one sample.
    pub distinct_labels: usize,
    /// Total-variation distance between the client's labels and equal numbers of every label; `None` without samples.
    pub total_variation: Option<f64>,
    /// Share of the most frequent label; `None` without samples.
    pub largest_share: Option<f64>,
    /// Quarter turns of the client's images.
    pub quarter_turns: u8,
    /// Standard deviation of the client's noise.
    pub noise_deviation: f32,
}

/// How a quantity is spread over the clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest value.
    pub min: f64,
    /// Middle value, or the mean of the two middle ones.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Largest value.
    pub max: f64,
    /// Population standard deviation; exactly 0 for equal values.
    pub deviation: f64,
}

/// The passport of a split.
#[derive(Clone, Debug, PartialEq)]
pub struct Passport {
    /// What each client holds.
    pub clients: Vec<Holding>,
    /// Samples that no client holds.
    pub unused: usize,
    /// Clients without samples.
    pub empty_clients: usize,
    /// Spread of the number of samples; `None` without clients.
    pub sizes: Option<Spread>,
    /// Spread of the total-variation distance over the clients that have samples.
    pub total_variation: Option<Spread>,
    /// Spread of the share of the most frequent label over the clients that have samples.
    pub largest_share: Option<Spread>,
    /// Entry `k` is the share of the clients that have exactly `k` labels, for `k` from 0 to the number of classes.
    pub label_shares: Vec<f64>,
    /// Remarks of the partitioner.
    pub notes: Vec<String>,
    /// SHA-256 in hexadecimal over the lists, turns and noise of all clients; equal exactly for equal splits.
    pub digest: String,
}

impl Passport {
    /// The passport of `partition`, a split of samples with these `labels`, each below `classes`.
    pub fn new(partition: &Partition, labels: &[u8], classes: usize) -> Self {
        let holding = |share: &Share| {
            let mut counts = vec![0u32; classes];
            for &sample in &share.samples {
                let label = labels.get(sample as usize).map(|&label| usize::from(label));
                if let Some(count) = label.and_then(|label| counts.get_mut(label)) {
                    *count += 1;
                }
            }
            let parts = || counts.iter().map(|&count| f64::from(count) / share.samples.len() as f64);
            let some = !share.samples.is_empty();
            Holding {
                samples: share.samples.len(),
                distinct_labels: counts.iter().filter(|&&count| count > 0).count(),
                total_variation: some.then(|| parts().map(|p| (p - 1.0 / classes as f64).abs()).sum::<f64>() / 2.0),
                largest_share: some.then(|| parts().fold(0.0, f64::max)),
                quarter_turns: share.quarter_turns,
                noise_deviation: share.noise_deviation,
                labels: counts,
            }
        };
        let clients: Vec<Holding> = partition.shares.iter().map(holding).collect();
        let mut label_shares = vec![0.0; classes + 1];
        for client in &clients {
            label_shares[client.distinct_labels] += 1.0;
        }
        for share in &mut label_shares {
            *share /= clients.len().max(1) as f64;
        }
        Self {
            unused: partition.unused,
            empty_clients: clients.iter().filter(|client| client.samples == 0).count(),
            sizes: Spread::of(clients.iter().map(|client| client.samples as f64)),
            total_variation: Spread::of(clients.iter().filter_map(|client| client.total_variation)),
            largest_share: Spread::of(clients.iter().filter_map(|client| client.largest_share)),
            label_shares,
            notes: partition.notes.clone(),
            digest: digest(partition),
            clients,
        }
    }

    /// One line for each client; cells that have no value for a client without samples are empty.
    pub fn to_csv(&self) -> String {
        let mut csv =
            "client,samples,distinct_labels,total_variation,largest_share,quarter_turns,noise_deviation".to_owned();
        for label in 0..self.label_shares.len() - 1 {
            push(&mut csv, format_args!(",label_{label}"));
        }
        csv.push('\n');
        let cell = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for (i, client) in self.clients.iter().enumerate() {
            let (variation, largest) = (cell(client.total_variation), cell(client.largest_share));
            let Holding { samples, distinct_labels, quarter_turns, noise_deviation, .. } = client;
            push(&mut csv, format_args!("{i},{samples},{distinct_labels},{variation},{largest},"));
            push(&mut csv, format_args!("{quarter_turns},{noise_deviation}"));
            for count in &client.labels {
                push(&mut csv, format_args!(",{count}"));
            }
            csv.push('\n');
        }
        csv
    }

    /// The passport for a human reader: counts, a table of spreads, a histogram of sizes, remarks and the digest.
    pub fn summary(&self) -> String {
        let held: usize = self.clients.iter().map(|client| client.samples).sum();
        let mut text = String::new();
        let clients = counted(self.clients.len(), "client", "clients");
        let samples = counted(held, "sample", "samples");
        push(&mut text, format_args!("{clients} with {samples}; {} empty; ", self.empty_clients));
        push(&mut text, format_args!("{} unused\n\n", counted(self.unused, "sample", "samples")));

        let columns = ["min", "median", "mean", "max", "deviation"];
        push(&mut text, format_args!("{:<22}", "per client"));
        for column in columns {
            push(&mut text, format_args!("{column:>11}"));
        }
        text.push('\n');
        let rows = [
            ("samples", self.sizes, 1),
            ("largest label share", self.largest_share, 3),
            ("distance to uniform", self.total_variation, 3),
        ];
        for (name, spread, decimals) in rows {
            push(&mut text, format_args!("{name:<22}"));
            for value in spread.map_or([None; 5], |s| [s.min, s.median, s.mean, s.max, s.deviation].map(Some)) {
                let cell = value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"));
                push(&mut text, format_args!("{cell:>11}"));
            }
            text.push('\n');
        }

        text.push_str("\nclients by number of labels\n");
        for (labels, share) in self.label_shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            push(&mut text, format_args!("{labels:>11} {share:>10.3}\n"));
        }
        text.push_str("\nclients by number of samples\n");
        for (range, count) in self.histogram() {
            let most = self.clients.len().max(1);
            let bar = "#".repeat((count * 50).div_ceil(most));
            let line = format!("{range:>11} {count:>6} {bar}");
            push(&mut text, format_args!("{}\n", line.trim_end()));
        }
        text.push('\n');
        for note in &self.notes {
            push(&mut text, format_args!("note: {note}\n"));
        }
        push(&mut text, format_args!("digest: {}\n", self.digest));
        text
    }

    /// Ranges of sizes and the number of clients in each; at most eight ranges, equally wide but for the last.
    fn histogram(&self) -> Vec<(String, usize)> {
        let sizes = || self.clients.iter().map(|client| client.samples);
        let (Some(min), Some(max)) = (sizes().min(), sizes().max()) else { return Vec::new() };
        let width = (max - min + 1).div_ceil(8);
        let mut counts = vec![0; (max - min) / width + 1];
        for size in sizes() {
            counts[(size - min) / width] += 1;
        }
        let name = |bin: usize| {
            let (from, to) = (min + bin * width, (min + (bin + 1) * width - 1).min(max));
            if from == to { from.to_string() } else { format!("{from}-{to}") }
        };
        counts.into_iter().enumerate().map(|(bin, count)| (name(bin), count)).collect()
    }
}

impl Spread {
    /// The spread of some finite values; `None` if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let n = values.len() as f64;
        // Sums of differences from a value of the list: those of equal values are exactly 0.
        let mean = min + values.iter().map(|value| value - min).sum::<f64>() / n;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { min, median: low + (high - low) / 2.0, mean, max, deviation })
    }
}

/// Every client's samples as CSV, which the partitioner `file` reads back to the identical split.
///
/// A client without samples has one line with an empty sample.
pub fn indices_csv(partition: &Partition) -> String {
    let plain = partition.shares.iter().all(|share| share.quarter_turns == 0 && share.noise_deviation == 0.0);
    let mut csv = if plain { COLUMNS[..2].join(",") } else { COLUMNS.join(",") };
    csv.push('\n');
    for (client, share) in partition.shares.iter().enumerate() {
        let rest = if plain { String::new() } else { format!(",{},{}", share.quarter_turns, share.noise_deviation) };
        if share.samples.is_empty() {
            push(&mut csv, format_args!("{client},{rest}\n"));
        }
        for sample in &share.samples {
            push(&mut csv, format_args!("{client},{sample}{rest}\n"));
        }
    }
    csv
}

/// SHA-256 over the number of clients and, for each, the number of samples, the turns, the noise and the samples, all
/// numbers in little-endian order; 64 bits for counts, 32 for noise and samples.
fn digest(partition: &Partition) -> String {
    let mut hash = Hash::default();
    hash.update(&(partition.shares.len() as u64).to_le_bytes());
    for share in &partition.shares {
        hash.update(&(share.samples.len() as u64).to_le_bytes());
        hash.update(&[share.quarter_turns]);
        hash.update(&share.noise_deviation.to_le_bytes());
        for sample in &share.samples {
            hash.update(&sample.to_le_bytes());
        }
    }
    hash.hex()
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> Partition {
        let share =
            |samples: &[u32], quarter_turns| Share { samples: samples.to_vec(), quarter_turns, noise_deviation: 0.1 };
        let shares = vec![share(&[0, 1, 2, 3], 0), share(&[], 0), share(&[5, 6], 3)];
        Partition { shares, unused: 1, notes: vec!["1 sample is unused: a test".to_owned()] }
    }

    const LABELS: [u8; 7] = [0, 1, 0, 0, 1, 0, 1];

    #[test]
    fn the_table_has_a_line_for_each_client() {
        let csv = Passport::new(&partition(), &LABELS, 2).to_csv();
        let header = "client,samples,distinct_labels,total_variation,largest_share,quarter_turns,noise_deviation";
        let lines = ["0,4,2,0.25,0.75,0,0.1,3,1", "1,0,0,,,0,0.1,0,0", "2,2,2,0,0.5,3,0.1,1,1"];
        assert_eq!(csv, format!("{header},label_0,label_1\n{}\n", lines.join("\n")));
    }

    #[test]
    fn the_summary_is_readable() {
        let wanted = "\
3 clients with 6 samples; 1 empty; 1 sample unused

per client                    min     median       mean        max  deviation
samples                       0.0        2.0        2.0        4.0        1.6
largest label share         0.500      0.625      0.625      0.750      0.125
distance to uniform         0.000      0.125      0.125      0.250      0.125

clients by number of labels
          0      0.333
          2      0.667

clients by number of samples
          0      1 #################
          1      0
          2      1 #################
          3      0
          4      1 #################

note: 1 sample is unused: a test
digest: 56f8ef553a9577b1f11d5c0ddc0f4c1b383ec1c76a58a12e4d06b0223e89d786
";
        assert_eq!(Passport::new(&partition(), &LABELS, 2).summary(), wanted);
    }

    #[test]
    fn no_clients_and_no_samples_make_a_passport_too() {
        let none = Partition { shares: Vec::new(), unused: 0, notes: Vec::new() };
        let passport = Passport::new(&none, &[], 3);
        assert_eq!((passport.sizes, passport.label_shares.len()), (None, 4));
        assert!(passport.summary().starts_with("0 clients with 0 samples; 0 empty; 0 samples unused\n"));
    }

    #[test]
    fn equal_values_have_no_spread() {
        for value in [0.1, 600.0, 1e-300, 1e300] {
            let spread = Spread::of(std::iter::repeat_n(value, 1001)).unwrap();
            assert_eq!((spread.mean, spread.deviation, spread.median), (value, 0.0, value));
        }
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0].into_iter()).unwrap();
        assert_eq!((spread.min, spread.median, spread.mean, spread.max), (1.0, 2.5, 2.5, 4.0));
        assert_eq!(spread.deviation, 1.25f64.sqrt());
    }

    #[test]
    fn the_digest_sees_lists_turns_and_noise_and_keeps_its_value() {
        let digest_after = |change: fn(&mut Partition)| {
            let mut partition = partition();
            change(&mut partition);
            digest(&partition)
        };
        let base = digest_after(|_| {});
        assert_eq!(base, "56f8ef553a9577b1f11d5c0ddc0f4c1b383ec1c76a58a12e4d06b0223e89d786");
        assert_eq!(base, digest_after(|partition| partition.notes.clear()));
        assert_ne!(base, digest_after(|partition| partition.shares[2].quarter_turns = 1));
        assert_ne!(base, digest_after(|partition| partition.shares[0].noise_deviation = 0.2));
        assert_ne!(base, digest_after(|partition| partition.shares.swap(0, 1)));
        assert_ne!(base, digest_after(|partition| partition.shares[0].samples[3] = 4));
    }

    #[test]
    fn a_dump_names_turns_and_noise_only_if_there_are_any() {
        let mut partition = partition();
        assert!(indices_csv(&partition).ends_with("0,3,0,0.1\n1,,0,0.1\n2,5,3,0.1\n2,6,3,0.1\n"));
        for share in &mut partition.shares {
            (share.quarter_turns, share.noise_deviation) = (0, 0.0);
        }
        assert_eq!(indices_csv(&partition), "client,sample\n0,0\n0,1\n0,2\n0,3\n1,\n2,5\n2,6\n");
    }
}
