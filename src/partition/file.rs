//! Partitioner `file`: a split that was written down.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Partition, PartitionError, Partitioner, Samples, Share, counted, passport::COLUMNS};
use crate::{catalogue::Named, rng::Address};

/// Reads the split from a CSV file, such as one that `fedbits` wrote.
///
/// # Rule
/// The first line is `client,sample` or `client,sample,quarter_turns,noise_deviation`; every other line, in any order,
/// gives one training sample to one client. Clients are numbered from 0 without gaps; a line with an empty sample
/// declares a client without saying what it holds, so that it may be empty. Turns (0 to 3) and noise must be the same
/// on all lines of a client.
///
/// # Sizes
/// As listed. Samples on no line are unused and reported. A sample listed twice, out of range, or a client that is
/// missing is refused with the line; so is a number of clients other than the one asked for.
///
/// # Source
/// Ours, so that splits of other programs can be used and splits can be archived.
/// Differs from the source in: nothing.
///
/// # Example
/// The lines `client,sample`, `0,2`, `1,0`, `1,1` for 3 samples: client 0 holds sample 2, client 1 holds samples 0 and
/// 1.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where the file lies.
    path: String,
    /// Whether a sample may be listed once for each rotation, as `rotation` with `replicate` does.
    #[serde(default)]
    replicate: bool,
}

impl Named for File {
    const NAME: &'static str = "file";
    const EXAMPLE: &'static str = "path = \"split.csv\"";
}

impl Partitioner for File {
    fn split(&self, samples: &Samples<'_>, _: Address) -> Result<Partition, PartitionError> {
        let total = samples.labels.len();
        let fault = |message: String| PartitionError::new("path", message);
        let text = (samples.read)(&self.path).map_err(fault)?;
        let shares = self.parse(&text, samples).map_err(fault)?;
        match samples.clients {
            Some(asked) if asked as usize != shares.len() => {
                let message = format!("`{}` lists {} clients, {asked} are asked for", self.path, shares.len());
                return Err(PartitionError::new("clients", message));
            }
            _ => {}
        }
        let mut held = vec![false; total];
        for &sample in shares.iter().flat_map(|share| &share.samples) {
            held[sample as usize] = true;
        }
        let unused = held.iter().filter(|held| !**held).count();
        let note =
            || format!("{} unused: `{}` does not list them", counted(unused, "sample is", "samples are"), self.path);
        Ok(Partition { shares, unused, notes: (unused > 0).then(note).into_iter().collect() })
    }

    fn replicates(&self) -> bool {
        self.replicate
    }
}

/// One line after the header; an empty sample declares the client.
struct Line {
    client: u32,
    sample: Option<u32>,
    quarter_turns: u8,
    noise_deviation: f32,
}

impl File {
    fn parse(&self, text: &str, samples: &Samples<'_>) -> Result<Vec<Share>, String> {
        let at = |number: usize, fault: String| format!("line {number} of `{}`: {fault}", self.path);
        let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).zip(1..);
        let header = lines.next().map_or("", |(header, _)| header);
        let columns = match header.split(',').map(str::trim).collect::<Vec<_>>() {
            names if names == COLUMNS[..2] => 2,
            names if names == COLUMNS => 4,
            _ => {
                return Err(at(1, format!("`{header}` is neither `client,sample` nor `{}`", COLUMNS.join(","))));
            }
        };
        let mut shares: BTreeMap<u32, Share> = BTreeMap::new();
        let mut first_line: BTreeMap<(u32, u8), usize> = BTreeMap::new();
        for (text, number) in lines.filter(|(text, _)| !text.is_empty()) {
            let line = read_line(text, columns, samples).map_err(|fault| at(number, fault))?;
            let Line { client, sample, quarter_turns, noise_deviation } = line;
            let fresh = || Share { samples: Vec::new(), quarter_turns, noise_deviation };
            let share = shares.entry(client).or_insert_with(fresh);
            if share.quarter_turns != quarter_turns || share.noise_deviation != noise_deviation {
                return Err(at(number, format!("client {client} has other turns or noise on an earlier line")));
            }
            let Some(sample) = sample else { continue };
            share.samples.push(sample);
            let seen_as = (sample, if self.replicate { quarter_turns } else { 0 });
            if let Some(earlier) = first_line.insert(seen_as, number) {
                return Err(at(number, format!("sample {sample} is given away on line {earlier} already")));
            }
        }
        // Keys ascend without repeats, so the first that differs from its place leaves a gap.
        if let Some((missing, (&client, _))) = (0..).zip(&shares).find(|(place, (client, _))| place != *client) {
            let why = "one without samples needs a line with an empty sample";
            return Err(format!("`{}` lists client {client} but not client {missing}; {why}", self.path));
        }
        if shares.is_empty() {
            return Err(format!("`{}` lists no client", self.path));
        }
        let sorted = |mut share: Share| {
            share.samples.sort_unstable();
            share
        };
        Ok(shares.into_values().map(sorted).collect())
    }
}

fn read_line(text: &str, columns: usize, samples: &Samples<'_>) -> Result<Line, String> {
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    if cells.len() != columns {
        return Err(format!("{} values where {columns} belong", cells.len()));
    }
    let client = cells[0].parse().map_err(|_| format!("`{}` is not the number of a client", cells[0]))?;
    let parse_sample = |cell: &str| match cell.parse::<u32>() {
        Ok(sample) if (sample as usize) < samples.labels.len() => Ok(sample),
        Ok(sample) => Err(format!("sample {sample} is outside the training set of {}", samples.labels.len())),
        Err(_) => Err(format!("`{cell}` is not the number of a sample")),
    };
    let sample = if cells[1].is_empty() { None } else { Some(parse_sample(cells[1])?) };
    let (mut quarter_turns, mut noise_deviation) = (0, 0.0);
    if let &[_, _, turns, noise] = cells.as_slice() {
        quarter_turns = match turns.parse() {
            Ok(1 | 3) if !samples.square => return Err(format!("{turns} quarter turns of images that are not square")),
            Ok(turns @ 0..=3) => turns,
            _ => return Err(format!("`{turns}` quarter turns, not 0, 1, 2 or 3")),
        };
        noise_deviation = match noise.parse::<f32>() {
            // `-0` is 0, also in the digest.
            Ok(noise) if noise.is_finite() && noise >= 0.0 => noise.abs(),
            _ => return Err(format!("`{noise}` is not the deviation of a noise")),
        };
    }
    Ok(Line { client, sample, quarter_turns, noise_deviation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{
        Passport, indices_csv,
        laws::{address, lists, samples},
    };

    fn read(text: &str, n_samples: usize, clients: Option<u32>, replicate: bool) -> Result<Partition, PartitionError> {
        let labels = vec![0; n_samples];
        let give = |path: &str| if path == "s.csv" { Ok(text.to_owned()) } else { Err(format!("no file `{path}`")) };
        let file = File { path: "s.csv".to_owned(), replicate };
        crate::partition::split(&file, &Samples { read: &give, ..samples(&labels, clients) }, address(0))
    }

    #[test]
    fn lines_in_any_order_make_the_split() {
        let partition = read("client,sample\n1,1\r\n0,2\n1,0\n", 3, Some(2), false).unwrap();
        assert_eq!(lists(&partition), [vec![2], vec![0, 1]]);
        let partition = read("client,sample\n0,\n1,4", 9, None, false).unwrap();
        assert_eq!((lists(&partition), partition.unused), (vec![vec![], vec![4]], 8));
        assert_eq!(partition.notes, ["8 samples are unused: `s.csv` does not list them"]);
    }

    #[test]
    fn every_fault_is_named_with_its_line() {
        let refused = |text: &str| read(text, 3, None, false).unwrap_err().message;
        let long = "client,sample,quarter_turns,noise_deviation";
        assert_eq!(refused(""), format!("line 1 of `s.csv`: `` is neither `client,sample` nor `{long}`"));
        assert_eq!(refused("client,sample"), "`s.csv` lists no client");
        let after = |line: &str| refused(&format!("client,sample\n0,0\n{line}\n"));
        assert_eq!(after("0,0"), "line 3 of `s.csv`: sample 0 is given away on line 2 already");
        assert_eq!(after("1,0"), "line 3 of `s.csv`: sample 0 is given away on line 2 already");
        assert_eq!(after("1,3"), "line 3 of `s.csv`: sample 3 is outside the training set of 3");
        assert_eq!(after("1,x"), "line 3 of `s.csv`: `x` is not the number of a sample");
        assert_eq!(after("-1,1"), "line 3 of `s.csv`: `-1` is not the number of a client");
        assert_eq!(after("1"), "line 3 of `s.csv`: 1 values where 2 belong");
        assert_eq!(
            after("4294967295,1"),
            "`s.csv` lists client 4294967295 but not client 1; one without samples needs a line with an empty sample"
        );
        let after = |line: &str| refused(&format!("{long}\n0,0,1,0\n{line}\n"));
        assert_eq!(after("0,1,2,0"), "line 3 of `s.csv`: client 0 has other turns or noise on an earlier line");
        assert_eq!(after("1,1,4,0"), "line 3 of `s.csv`: `4` quarter turns, not 0, 1, 2 or 3");
        assert_eq!(after("1,1,0,inf"), "line 3 of `s.csv`: `inf` is not the deviation of a noise");
    }

    #[test]
    fn a_missing_file_and_another_number_of_clients_are_refused() {
        let file = File { path: "t.csv".to_owned(), replicate: false };
        let give = |path: &str| Err(format!("no file `{path}`"));
        let labels = [0; 3];
        let samples = Samples { read: &give, ..samples(&labels, None) };
        let error = file.split(&samples, address(0)).unwrap_err();
        assert_eq!((error.key.as_str(), error.message.as_str()), ("path", "no file `t.csv`"));
        let error = read("client,sample\n0,0\n1,1\n", 3, Some(3), false).unwrap_err();
        assert_eq!(
            (error.key.as_str(), error.message.as_str()),
            ("clients", "`s.csv` lists 2 clients, 3 are asked for")
        );
    }

    #[test]
    fn a_dump_reads_back_identically() {
        let share = |samples: &[u32], quarter_turns, noise_deviation| Share {
            samples: samples.to_vec(),
            quarter_turns,
            noise_deviation,
        };
        let plain = vec![share(&[0, 3], 0, 0.0), share(&[], 0, 0.0), share(&[2], 0, 0.0)];
        let altered = vec![share(&[0, 3], 1, 0.1), share(&[], 2, 0.0), share(&[2], 0, 1e-30)];
        let replicated = vec![share(&[0, 1, 2], 0, 0.0), share(&[0, 1, 2], 2, 0.0)];
        for (shares, unused, replicate) in [(plain, 1, false), (altered, 1, false), (replicated, 1, true)] {
            let partition = Partition { shares, unused, notes: Vec::new() };
            let again = read(&indices_csv(&partition), 4, None, replicate).unwrap();
            assert_eq!((&again.shares, again.unused), (&partition.shares, partition.unused));
            let digest = |partition: &Partition| Passport::new(partition, &[0; 4], 1).digest;
            assert_eq!(digest(&again), digest(&partition));
        }
    }
}
