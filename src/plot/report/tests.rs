//! Reports of tables made by hand and by chance; figures are computed again in other ways than in the program.

use std::path::PathBuf;

use csv::StringRecord;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::*;

const UP: &str = "cumulative_uplink_bits";

/// A run with a row for each of: accuracy or distance, bits up, bits down; the round is the number of the row.
fn run(operator: &str, seed: usize, rows: &[(&str, u64, u64)]) -> Table {
    let columns = ["run", "operator", "seed", "round", "test_accuracy", UP, "cumulative_downlink_bits"];
    let columns = columns.iter().chain(&["cumulative_peer_bits", "status"]).map(|&name| name.to_owned()).collect();
    let name = format!("{operator}-{seed}");
    let row = |(i, (value, up, down)): (usize, &(&str, u64, u64))| {
        let (round, seed, up, down) = ((i + 1).to_string(), seed.to_string(), up.to_string(), down.to_string());
        StringRecord::from([&name, operator, &seed, &round, *value, &up, &down, "7", "ok"].as_slice())
    };
    Table {
        path: PathBuf::from(format!("{name}/rounds.csv")),
        kind: Kind::Rounds,
        columns,
        rows: rows.iter().enumerate().map(row).collect(),
        settings: BTreeMap::new(),
        source: name.clone(),
    }
}

/// A run with bits up in equal steps and as many down.
fn steps(operator: &str, seed: usize, bits: u64, values: &[&str]) -> Table {
    let rows: Vec<_> = values.iter().zip(1..).map(|(value, i)| (*value, i * bits, i * bits)).collect();
    run(operator, seed, &rows)
}

/// Changes the cell of a row.
fn set(table: &mut Table, row: usize, column: &str, cell: &str) {
    let at = table.columns.iter().position(|name| name == column).expect("there is the column");
    let cells: Vec<&str> =
        table.rows[row].iter().enumerate().map(|(i, old)| if i == at { cell } else { old }).collect();
    table.rows[row] = StringRecord::from(cells);
}

fn rename(table: &mut Table, column: &str, to: &str) {
    table.columns.iter_mut().filter(|name| *name == column).for_each(|name| *name = to.to_owned());
}

fn aim(target: f64) -> Request {
    Request { target: Some(target), ..Request::default() }
}

fn budgets(target: f64, bits: &[u64]) -> Request {
    Request { budgets: bits.iter().map(|bits| units::Bits(*bits)).collect(), ..aim(target) }
}

fn group<'a>(report: &'a Report, name: &str) -> &'a Group {
    report.groups.iter().find(|group| group.name == name).unwrap_or_else(|| panic!("no {name} in {report:#?}"))
}

fn mean(average: Average) -> (Option<f64>, usize) {
    (average.mean(), average.seeds)
}

fn refusal(tables: &[Table], request: &Request) -> String {
    report(tables, request).expect_err("it is refused").to_string()
}

#[test]
fn the_first_evaluated_round_that_reaches_the_target_counts() {
    let tables = [steps("sign", 0, 100, &["0.5", "", "0.9", "0.8", "0.95"])];
    let of = |target: f64| {
        let report = report(&tables, &aim(target)).expect("there are values");
        let group = group(&report, "sign");
        (group.bits_to_target.mean(), group.rounds_to_target.mean())
    };
    assert_eq!(of(0.5), (Some(100.0), Some(1.0)));
    assert_eq!(of(0.6), (Some(300.0), Some(3.0)));
    assert_eq!(of(0.9), (Some(300.0), Some(3.0)));
    assert_eq!(of(0.91), (Some(500.0), Some(5.0)));
    assert_eq!(of(0.96), (None, None));
    let all = report(&tables, &Request { bits: Bits::Total, ..aim(0.9) }).expect("there are values");
    // 300 up, 300 down, 7 between peers.
    assert_eq!((all.groups[0].bits_to_target.mean(), all.groups[0].total_bits.mean()), (Some(607.0), Some(1007.0)));
    let down = report(&tables, &Request { bits: Bits::Down, ..aim(0.9) }).expect("there are values");
    assert_eq!(down.groups[0].bits_to_target.mean(), Some(300.0));
}

#[test]
fn seeds_that_do_not_arrive_are_counted_not_dropped() {
    let tables = [
        steps("sign", 0, 100, &["0.5", "0.9"]),
        steps("sign", 1, 300, &["0.9", "0.9"]),
        steps("sign", 2, 100, &["0.5", "0.6"]),
        steps("qsgd", 0, 100, &["0.5", "0.7"]),
    ];
    let report = report(&tables, &aim(0.9)).expect("there are values");
    assert_eq!(mean(group(&report, "sign").bits_to_target), (Some(250.0), 2));
    assert_eq!(mean(group(&report, "qsgd").bits_to_target), (None, 0));
    assert_eq!(
        report.groups.last().map(|group| group.name.as_str()),
        Some("qsgd"),
        "those that never arrive stand last"
    );
    let (header, rows) = report.table();
    let at = header.iter().position(|name| name == "bits to 90 %").expect("there is the column");
    assert_eq!([&rows[0][at], &rows[1][at]], ["250 bits ±50 (2 of 3)", "never"]);
    assert_eq!([&rows[0][at + 1], &rows[1][at + 1]], ["1.5 ±0.5 (2 of 3)", "-"]);
    assert!(
        report.text().contains("(2 of 3)") && report.text().contains("never") && report.markdown().contains("never")
    );
    assert!(report.notes[0].contains("no group has the uplink operator `identity`"), "{:?}", report.notes);
    assert_eq!(group(&report, "sign").ratio, Average::default());
}

#[test]
fn ratios_pair_the_same_seeds() {
    let mut tables = vec![
        steps("identity", 0, 1000, &["0.5", "0.9"]),
        steps("identity", 1, 3000, &["0.5", "0.9"]),
        steps("identity", 2, 5000, &["0.5", "0.6"]),
        // 2000 over 500, 6000 over 375: 4 and 16, whose geometric mean is 8; the means of bits have another ratio.
        steps("sign", 0, 500, &["0.9"]),
        steps("sign", 1, 375, &["0.9"]),
        steps("sign", 2, 1, &["0.9"]),
        steps("sign", 3, 1, &["0.9"]),
    ];
    let first = report(&tables, &aim(0.9)).expect("there are values");
    let sign = group(&first, "sign");
    let Spread { mean, low, high } = sign.ratio.spread.expect("there are pairs");
    assert_eq!((sign.seeds, sign.ratio.seeds, sign.baseline.as_deref()), (4, 2, Some("identity")));
    for (value, wanted) in [(mean, 8.0), (low, 4.0), (high, 16.0)] {
        assert!((value / wanted - 1.0).abs() < 1e-14, "{value} is not {wanted}");
    }
    let (header, rows) = first.table();
    let at = header.iter().position(|name| name == "ratio").expect("there is the column");
    assert!(rows.iter().any(|row| row[at] == "8.00, 4.00..16.0 (2 of 4)"), "{rows:?}");
    // Three pairs: 4, 16 and 2^(4.5) have logarithms 2, 4 and 4.5 to the base 2.
    tables[2] = run("identity", 2, &[("0.9", 23_170_475, 0)]);
    tables[5] = run("sign", 2, &[("0.9", 1_024_000, 0)]);
    let three = report(&tables, &aim(0.9)).expect("there are values");
    let spread = group(&three, "sign").ratio.spread.expect("there are pairs");
    let logs = [2.0, 4.0, 4.5_f64];
    let middle = logs.iter().sum::<f64>() / 3.0;
    let deviation = (logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / 2.0).sqrt();
    let half = 4.302_65 * deviation / 3.0_f64.sqrt();
    for (value, wanted) in [(spread.mean, middle), (spread.low, middle - half), (spread.high, middle + half)] {
        assert!((value.log2() - wanted).abs() < 1e-3, "{value} is not 2^{wanted}");
    }
}

#[test]
fn the_baseline_agrees_in_all_but_the_uplink() {
    let with = |mut table: Table, settings: &[(&str, &str)]| {
        table.settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        table
    };
    let exact = ("uplink.operator", "identity");
    let of = |folder: usize, bits: u64, settings: &[(&str, &str)]| {
        let mut table = with(steps("x", 0, bits, &["0.9"]), settings);
        table.path = PathBuf::from(format!("{folder}/rounds.csv"));
        table
    };
    let fedavg = ("method.name", "fedavg");
    let fedprox = ("method.name", "fedprox");
    let top_k = ("uplink.operator", "top-k");
    let tables = [
        of(0, 800, &[exact, fedavg]),
        of(1, 1600, &[exact, fedprox]),
        of(2, 100, &[top_k, fedavg, ("uplink.ratio", "0.1")]),
        of(3, 100, &[top_k, fedprox, ("uplink.ratio", "0.1")]),
        of(4, 100, &[top_k, ("method.name", "scaffold"), ("uplink.ratio", "0.1")]),
    ];
    let all = report(&tables, &aim(0.9)).expect("there are values");
    let baselines: Vec<_> = all.groups.iter().map(|group| (group.values.join(" "), group.baseline.clone())).collect();
    let ratio = |values: &str| {
        let found = all.groups.iter().find(|group| group.values.join(" ") == values);
        found.unwrap_or_else(|| panic!("{baselines:?}")).ratio.mean().map(f64::round)
    };
    assert_eq!([ratio("top-k fedavg"), ratio("top-k fedprox"), ratio("top-k scaffold")], [Some(8.0), Some(16.0), None]);
    assert_eq!(ratio("identity fedprox"), Some(1.0));
    assert!(all.notes.len() == 1 && all.notes[0].ends_with("with `top-k, scaffold`: no ratio"), "{:?}", all.notes);
    // A coder of the uplink makes two baselines; the one of plain floats counts.
    let coder = |name| ("uplink.coder", name);
    let tables = [
        of(0, 800, &[exact, coder("fixed"), ("method.learning_rate", "0.1")]),
        of(1, 400, &[exact, coder("zstd"), ("method.learning_rate", "0.1")]),
        of(2, 100, &[top_k, coder("fixed"), ("method.learning_rate", "0.2"), ("rounds", "9")]),
    ];
    let two = report(&tables, &aim(0.9)).expect("there are values");
    assert_eq!(group(&two, "top-k, fixed").ratio.mean().map(f64::round), Some(8.0));
    assert_eq!(two.notes, ["`top-k, fixed` differs from `identity, fixed` also in `method.learning_rate`"]);
}

#[test]
fn budgets_pay_for_the_last_evaluation_within_them() {
    let tables = [steps("sign", 0, 100, &["0.5", "", "0.9", "0.8"])];
    let budgets = budgets(0.9, &[99, 100, 101, 250, 299, 300, 400, 10_000]);
    let report = report(&tables, &budgets).expect("there are values");
    let values: Vec<_> = report.groups[0].at_budgets.iter().map(Average::mean).collect();
    let some = [0.5, 0.5, 0.5, 0.5, 0.9, 0.8, 0.8].map(Some);
    assert_eq!(values, [&[None][..], &some[..]].concat());
    let (header, rows) = report.table();
    assert_eq!((header[6].as_str(), rows[0][6].as_str()), ("% at 99 bits", "-"));
    assert_eq!((header[7].as_str(), rows[0][7].as_str()), ("% at 100 bits", "50.00"));
}

#[test]
fn the_front_holds_what_no_other_group_beats() {
    let point = |bits: f64, value: f64| Some((bits, value));
    let points = [
        point(1.0, 0.5),
        point(2.0, 0.6),
        // Equal points stand or fall together.
        point(2.0, 0.6),
        // As many bits, less accuracy; as accurate, more bits.
        point(2.0, 0.55),
        point(3.0, 0.6),
        None,
        point(4.0, 0.9),
    ];
    let front = compare::front(&points, Metric::Accuracy);
    assert_eq!(front, [true, true, true, false, false, false, true]);
    assert_eq!(compare::front(&points, Metric::Distance), [true, false, false, false, false, false, false]);
}

#[test]
fn diverged_and_unfinished_runs_are_told() {
    let mut tables = [
        steps("sign", 0, 100, &["0.5", "0.9"]),
        steps("sign", 1, 100, &["0.5", "0.1"]),
        steps("sign", 2, 100, &["0.5", "NaN"]),
        steps("qsgd", 0, 100, &["0.5", "0.6"]),
    ];
    for table in &mut tables[1..3] {
        set(table, 1, "status", "diverged");
    }
    let first = report(&tables, &aim(0.9)).expect("there are values");
    let sign = group(&first, "sign");
    // The accuracy of a diverged run counts; what is not a number does not, and is not passed over in silence either.
    assert_eq!((sign.diverged, sign.seeds, mean(sign.last)), (2, 3, (Some(0.5), 2)));
    assert!(!sign.is_pareto && group(&first, "qsgd").is_pareto);
    let (_, rows) = first.table();
    assert_eq!((rows[0][1].as_str(), rows[0][2].as_str()), ("3, 2 diverged", "50.00 ±40.00 (2 of 3)"));
    for (table, rounds) in tables.iter_mut().zip(["2", "3", "2", "3"]) {
        for (key, value) in [("rounds", rounds), ("uplink.operator", "sign"), ("stop.uplink_bits", "500")] {
            table.settings.insert(key.to_owned(), value.to_owned());
        }
    }
    tables[3].settings.insert("uplink.operator".to_owned(), "qsgd".to_owned());
    let unfinished = |tables: &[Table]| {
        let request = Request { group: Some(vec!["uplink.operator".to_owned()]), ..aim(0.9) };
        let report = report(tables, &request).expect("there are values");
        ["sign", "qsgd"].map(|name| group(&report, name).unfinished)
    };
    assert_eq!(unfinished(&tables), [0, 1], "a diverged run ended for a reason");
    for (stop, value) in [("stop.accuracy", "0.6"), ("stop.uplink_bits", "200"), ("stop.total_bits", "407")] {
        let mut stopped = tables.clone();
        stopped[3].settings.insert(stop.to_owned(), value.to_owned());
        assert_eq!(unfinished(&stopped), [0, 0], "{stop}");
    }
}

#[test]
fn targets_are_chosen_so_that_half_of_the_groups_reach_them() {
    let best = |operator: &str, seed: usize, value: &str| steps(operator, seed, 100, &["0.1", value, "0.2"]);
    let tables =
        [best("a", 0, "0.95"), best("a", 1, "0.9199"), best("b", 0, "0.29"), best("c", 0, "0.99"), best("c", 1, "0.2")];
    let target = |tables: &[Table]| {
        let report = report(tables, &Request::default()).expect("there are values");
        assert!(report.is_chosen && report.summary()[1].contains("whole percent"), "{:?}", report.summary());
        report.target
    };
    // The best of all seeds: 0.9199, 0.29, 0.2; two of three groups are at least half.
    assert_eq!(target(&tables), 0.29);
    assert_eq!(target(&tables[..3]), 0.91);
    assert_eq!(target(&tables[..2]), 0.91);
    assert!(!report(&tables, &aim(0.5)).expect("there are values").is_chosen);
    let none = [steps("a", 0, 100, &["0.5"]), steps("b", 0, 1, &[""]), steps("c", 0, 1, &[""])];
    let refused = refusal(&none, &Request::default());
    assert!(refused.contains("fewer than half of the 3 groups") && refused.contains("--target"), "{refused}");
}

#[test]
fn distances_are_reached_from_above() {
    let mut tables =
        [steps("a", 0, 100, &["1", "0.03", "2e-5", "0.5"]), steps("identity", 0, 800, &["1", "5e-4", "1e-3"])];
    tables.iter_mut().for_each(|table| rename(table, "test_accuracy", "distance_to_optimum"));
    let chosen = report(&tables, &budgets(1e-3, &[250])).expect("there are values");
    let a = group(&chosen, "a");
    assert_eq!((chosen.metric, a.bits_to_target.mean(), a.last.mean()), (Metric::Distance, Some(300.0), Some(0.5)));
    assert_eq!((a.at_budgets[0].mean(), a.ratio.mean().map(|ratio| (3.0 * ratio).round())), (Some(0.03), Some(16.0)));
    assert!(group(&chosen, "identity").is_pareto && a.is_pareto);
    let chosen = report(&tables, &Request::default()).expect("there are values");
    assert_eq!(chosen.target, 1e-4);
    assert!(chosen.text().contains("distance 1e-4, chosen as the smallest power of ten"), "{}", chosen.text());
    assert!(chosen.table().1[0].contains(&"5.00e-1".to_owned()), "{:?}", chosen.table());
    let both = [steps("a", 0, 100, &["0.5"]), tables[1].clone()];
    let refused = refusal(&both, &Request::default());
    assert!(refused.contains("`identity-0/rounds.csv` has no column `test_accuracy`"), "{refused}");
}

#[test]
fn one_run_is_a_group_of_its_own() {
    let report = report(&[steps("identity", 3, 8_000_000, &["0.5", "0.9123"])], &aim(0.9)).expect("there are values");
    let (header, rows) = report.table();
    assert_eq!(header, ["group", "seeds", "% at end", "bits to 90 %", "rounds", "ratio", "bits at end", "best"]);
    assert_eq!(rows, [["identity", "1", "91.23", "2.00 MB", "2", "1.00", "2.00 MB", "yes"]]);
    assert_eq!(report.summary()[0], "1 run in 1 group; bits are those from clients to the server.");
    assert!(!report.text().contains('±'));
}

#[test]
fn a_file_may_hold_several_runs_and_a_seed_counts_once() {
    let mut whole = steps("sign", 0, 100, &["0.5", "0.9"]);
    whole.rows.extend(steps("sign", 1, 300, &["0.5", "0.7"]).rows);
    let two = report(&[whole.clone()], &aim(0.5)).expect("there are values");
    assert_eq!((two.runs, mean(two.groups[0].last)), (2, (Some(0.8), 2)));
    let again = Request { group: Some(vec!["operator".to_owned()]), ..aim(0.5) };
    let mut copy = steps("sign", 1, 300, &["0.1"]);
    copy.path = PathBuf::from("copy/rounds.csv");
    let once = report(&[whole, copy], &again).expect("there are values");
    assert_eq!((once.runs, mean(once.groups[0].last)), (2, (Some(0.8), 2)));
    assert!(once.notes[0].starts_with("`copy/rounds.csv` repeats `sign-0/rounds.csv`"), "{:?}", once.notes);
}

#[test]
fn mistakes_say_where_they_are() {
    let good = || steps("sign", 0, 100, &["0.5", "0.9"]);
    let broken = |change: &dyn Fn(&mut Table)| {
        let mut table = good();
        change(&mut table);
        refusal(&[table], &Request::default())
    };
    let missing = broken(&|table| rename(table, "test_accuracy", "test_acuracy"));
    assert!(missing.contains("no column is called `test_accuracy`; did you mean `test_acuracy`?"), "{missing}");
    for column in [UP, "seed", "round"] {
        let missing = broken(&|table| rename(table, column, "other"));
        assert!(missing.contains(&format!("`sign-0/rounds.csv` has no column `{column}`")), "{missing}");
    }
    let no_number = broken(&|table| set(table, 1, "test_accuracy", "high"));
    assert!(no_number.contains("`high` stands in `test_accuracy`, where a number is"), "{no_number}");
    assert!(broken(&|table| set(table, 1, UP, "-3")).contains("where a whole number is allowed"));
    assert!(broken(&|table| set(table, 1, "round", "1")).contains("has round 1 twice"));
    assert!(broken(&|table| table.kind = Kind::Laboratory).contains("holds measurements of operators"));
    let empty = broken(&|table| (0..2).for_each(|row| set(table, row, "test_accuracy", "")));
    assert_eq!(empty, "no row has a value in `test_accuracy`");
    for target in [0.0, -1.0, 97.0, f64::NAN] {
        assert!(refusal(&[good()], &aim(target)).contains("such as 0.97 for 97 %"), "{target}");
    }
    let unknown = Request { group: Some(vec!["operater".to_owned()]), ..Request::default() };
    assert!(refusal(&[good()], &unknown).contains("did you mean `operator`?"));
}

/// Accuracy, if it was evaluated, and bits so far.
type Row = (Option<f64>, u64);

/// What a report says in one field of a group.
fn number(row: &Value, name: &str) -> Option<f64> {
    row.get(name).unwrap_or_else(|| panic!("no `{name}` in {row}")).as_f64()
}

fn close(value: Option<f64>, wanted: Option<f64>, name: &str) {
    let agree = match (value, wanted) {
        (Some(value), Some(wanted)) => (value - wanted).abs() <= 1e-9 * wanted.abs().max(1e-9),
        (None, None) => true,
        _ => false,
    };
    assert!(agree, "{name}: {value:?} instead of {wanted:?}");
}

/// Mean and interval by sums of powers, with quantiles of another library.
fn interval(values: &[f64]) -> [Option<f64>; 3] {
    use statrs::distribution::{ContinuousCDF, StudentsT};
    let n = values.len() as f64;
    if values.is_empty() {
        return [None; 3];
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = sorted.iter().rev().sum::<f64>() / n;
    if values.len() < 3 {
        return [Some(mean), Some(sorted[0]), Some(sorted[sorted.len() - 1])];
    }
    let pairs: f64 = values.iter().flat_map(|a| values.iter().map(move |b| (a - b) * (a - b))).sum();
    let variance = pairs / (2.0 * n * (n - 1.0));
    let quantile = StudentsT::new(0.0, 1.0, n - 1.0).expect("valid").inverse_cdf(0.975);
    let half = quantile * (variance / n).sqrt();
    [Some(mean), Some(mean - half), Some(mean + half)]
}

#[test]
fn every_figure_is_found_again_from_random_tables() {
    for seed in 0..40 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let operators = &["identity", "qsgd", "sign", "top-k"][usize::from(seed % 4 == 0)..];
        let mut tables = Vec::new();
        let mut plain: Vec<(&str, usize, Vec<Row>)> = Vec::new();
        for &operator in operators {
            for seed in 0..random.random_range(1..6) {
                let mut sum = 0;
                let rows: Vec<Row> = (0..random.random_range(1..30))
                    .map(|round| {
                        sum += random.random_range(1..5000);
                        let accuracy = f64::from(random.random_range(0..4000)) / 1e4 + f64::from(round) * 0.02;
                        (random.random_bool(0.7).then_some(accuracy.min(1.0)), sum)
                    })
                    .collect();
                let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let cells: Vec<String> = rows.iter().map(|(value, _)| text(*value)).collect();
                let rows_of: Vec<_> =
                    cells.iter().zip(&rows).map(|(cell, (_, bits))| (cell.as_str(), *bits, 0)).collect();
                tables.push(run(operator, seed, &rows_of));
                plain.push((operator, seed, rows));
            }
        }
        if plain.iter().all(|(_, _, rows)| rows.iter().all(|(value, _)| value.is_none())) {
            continue;
        }
        let (target, limits) = (0.45, [2000, 20_000, 10_000_000]);
        let json = report(&tables, &budgets(target, &limits)).expect("there are values").json();
        let json: Value = serde_json::from_str(&json).expect("it is JSON");
        let rows = json["groups"].as_array().expect("there are groups");
        assert_eq!(rows.len(), operators.len());
        // Bits until the target, by operator and seed.
        let mut reached: BTreeMap<(&str, usize), (f64, f64)> = BTreeMap::new();
        for (operator, seed, rows) in &plain {
            for (round, (value, bits)) in rows.iter().enumerate().rev() {
                if value.unwrap_or(0.0) >= target {
                    reached.insert((*operator, *seed), (*bits as f64, round as f64 + 1.0));
                }
            }
        }
        let check = |row: &Value, name: &str, values: &[f64]| {
            for (end, wanted) in ["mean", "low", "high"].iter().zip(interval(values)) {
                let value = number(row, &format!("{name}_{end}"));
                // Our quantile of Student's t has an error of up to 2e-4.
                let slack =
                    value.zip(wanted).map_or(0.0, |(value, wanted)| (value - wanted).abs() / wanted.abs().max(1.0));
                assert!(value.is_some() == wanted.is_some() && slack < 2e-3, "{name}_{end}: {value:?} {wanted:?}");
                if *end == "mean" {
                    close(value, wanted, name);
                }
            }
        };
        let mut ends: Vec<(f64, Option<f64>)> = Vec::new();
        for row in rows {
            let name = row["group"].as_str().expect("a group has a name");
            let runs: Vec<_> = plain.iter().filter(|(operator, _, _)| *operator == name).collect();
            close(number(row, "seeds"), Some(runs.len() as f64), "seeds");
            let of = |value: &dyn Fn(&Row) -> bool| -> Vec<f64> {
                let last = |rows: &Vec<Row>| rows.iter().filter(|row| value(row)).filter_map(|row| row.0).next_back();
                runs.iter().filter_map(|(_, _, rows)| last(rows)).collect()
            };
            let finals = of(&|_| true);
            check(row, "final_accuracy", &finals);
            close(number(row, "final_accuracy_seeds"), Some(finals.len() as f64), "final seeds");
            for limit in limits {
                let within = of(&|row| row.1 <= limit);
                check(row, &format!("accuracy_within_{limit}_bits"), &within);
                close(number(row, &format!("accuracy_within_{limit}_bits_seeds")), Some(within.len() as f64), "within");
            }
            let mine: Vec<_> = reached.iter().filter(|((operator, _), _)| *operator == name).collect();
            close(number(row, "seeds_reached"), Some(mine.len() as f64), "reached");
            check(row, "bits_to_target", &mine.iter().map(|(_, at)| at.0).collect::<Vec<_>>());
            check(row, "rounds_to_target", &mine.iter().map(|(_, at)| at.1).collect::<Vec<_>>());
            let totals: Vec<f64> = runs.iter().map(|(_, _, rows)| rows[rows.len() - 1].1 as f64).collect();
            check(row, "bits_at_end", &totals);
            let ratios: Vec<f64> = mine
                .iter()
                .filter_map(|((_, seed), at)| Some(reached.get(&("identity", *seed))?.0.log2() - at.0.log2()))
                .collect();
            let ends_of_ratio = interval(&ratios).map(|log| log.map(f64::exp2));
            for (end, wanted) in ["mean", "low", "high"].iter().zip(ends_of_ratio) {
                let value = number(row, &format!("ratio_to_baseline_{end}"));
                let close = value.zip(wanted).is_none_or(|(value, wanted)| (value.ln() - wanted.ln()).abs() < 5e-3);
                assert!(value.is_some() == wanted.is_some() && close, "ratio {end}: {value:?} {wanted:?}");
            }
            let all = finals.len() == runs.len();
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            ends.push((mean(&totals), all.then(|| mean(&finals))));
        }
        for (row, end) in rows.iter().zip(&ends) {
            let beaten = ends.iter().any(|other| match (other.1, end.1) {
                (Some(theirs), Some(ours)) => {
                    (other.0 < end.0 && theirs >= ours) || (other.0 <= end.0 && theirs > ours)
                }
                _ => false,
            });
            assert_eq!(row["is_best"], Value::Bool(end.1.is_some() && !beaten));
        }
        // First those that all seeds reach, by bits.
        let place = |row: &_| {
            let is_partial = number(row, "seeds_reached") < number(row, "seeds");
            (is_partial, number(row, "bits_to_target_mean").unwrap_or(f64::INFINITY))
        };
        let order: Vec<(bool, f64)> = rows.iter().map(place).collect();
        assert!(order.is_sorted_by(|a, b| a <= b), "{order:?}");
    }
}

#[test]
fn all_formats_say_the_same() {
    let mut tables: Vec<Table> = Vec::new();
    for seed in 0..3 {
        tables.push(steps("identity", seed, 8_000_000, &["0.5", "0.8", "0.9"]));
        tables.push(steps("a \"b\" | c", seed, 80_000 * (seed as u64 + 1), &["0.5", "0.7", "0.92"]));
    }
    let report = report(&tables, &budgets(0.9, &[8_000_000, 123])).expect("there are values");
    let csv = report.csv();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().expect("there is a header").clone();
    let json: Value = serde_json::from_str(&report.json()).expect("it is JSON");
    assert_eq!((&json["runs"], &json["target_chosen"]), (&Value::from(6), &Value::from(false)));
    for (row, group) in reader.records().zip(json["groups"].as_array().expect("there are groups")) {
        let row = row.expect("every row fits the header");
        assert_eq!(group.as_object().map(serde_json::Map::len), Some(header.len()));
        for (name, cell) in header.iter().zip(&row) {
            match &group[name] {
                Value::Null => assert_eq!(cell, "", "{name}"),
                Value::String(text) => assert_eq!(cell, text, "{name}"),
                Value::Bool(is_best) => assert_eq!(cell, is_best.to_string(), "{name}"),
                other => close(cell.parse().ok(), other.as_f64(), name),
            }
        }
    }
    let wanted = ["group", "operator", "seeds", "seeds_diverged", "seeds_unfinished", "bits_counted"];
    assert!(header.iter().take(6).eq(wanted), "{header:?}");
    assert!(header.iter().any(|name| name == "accuracy_within_123_bits_low"));
    let text = Report { budgets: budgets(0.9, &[8_000_000, 80_000_000]).budgets, ..report.clone() }.text();
    assert!(text.lines().all(|line| line.chars().count() <= 80 && line.trim_end() == line), "{text}");
    assert!(report.markdown().contains("| a \"b\" \\| c | 3 | 92.00 | 60.0 kB ±74.5 | 3 | "), "{}", report.markdown());
    assert!(report.markdown().contains("\n|---|--:|"));
}
