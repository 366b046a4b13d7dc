//! Groups against each other: the bits of an uplink without compression over theirs, and which of them no other one
//! beats.

use super::{Average, Members, Metric, Spread};

/// The group without compression of the uplink that each group is compared with, and remarks.
///
/// It agrees with the group in every column that tells groups apart and is not of the uplink. Of several such groups
/// the one counts that sends plain floats, that is with the coder `fixed`.
pub(super) fn baselines(columns: &[String], groups: &[Members<'_>]) -> (Vec<Option<usize>>, Vec<String>) {
    let is_of_uplink = |column: &&str| column.starts_with("uplink.") || ["operator", "run"].contains(column);
    let outside: Vec<usize> = (0..columns.len()).filter(|&i| !is_of_uplink(&columns[i].as_str())).collect();
    let exact: Vec<usize> = (0..groups.len()).filter(|&j| groups[j].has_operator("identity")).collect();
    if exact.is_empty() {
        let note = "no group has the uplink operator `identity`, so there are no ratios to it".to_owned();
        return (vec![None; groups.len()], vec![note]);
    }
    let (mut alone, mut torn, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    for group in groups {
        let agrees = |&&j: &&usize| outside.iter().all(|&i| groups[j].values[i] == group.values[i]);
        let agreeing: Vec<usize> = exact.iter().filter(agrees).copied().collect();
        let plain: Vec<usize> = agreeing.iter().copied().filter(|&j| groups[j].has_coder("fixed")).collect();
        let one = match (agreeing.as_slice(), plain.as_slice()) {
            ([one], _) | (_, [one]) => Some(*one),
            ([], _) => {
                alone.push(format!("`{}`", group.name));
                None
            }
            _ => {
                torn.push(format!("`{}`", group.name));
                None
            }
        };
        found.push(one);
    }
    if !alone.is_empty() {
        let which = alone.join(", ");
        notes.push(format!("no group with uplink operator `identity` agrees in all else with {which}: no ratio"));
    }
    if !torn.is_empty() {
        let which = torn.join(", ");
        notes.push(format!("several groups with uplink operator `identity` agree in all else with {which}: no ratio"));
    }
    notes.extend(groups.iter().zip(&found).filter_map(|(group, one)| other_differences(group, &groups[(*one)?])));
    (found, notes)
}

/// Settings outside the uplink in which a group differs from its baseline although they do not tell groups apart.
fn other_differences(group: &Members<'_>, baseline: &Members<'_>) -> Option<String> {
    let (ours, theirs) = (&group.runs.first()?.table.settings, &baseline.runs.first()?.table.settings);
    // How long a run goes on, and what else it writes down, changes nothing in the bits until a target.
    let counts = |key: &&String| {
        let apart = ["uplink.", "stop.", "record."].iter().any(|section| key.starts_with(section));
        !apart && !["seed", "rounds"].contains(&key.as_str())
    };
    let mut keys: Vec<&String> = ours.keys().chain(theirs.keys()).filter(counts).collect();
    keys.retain(|key| ours.get(*key) != theirs.get(*key));
    keys.sort();
    keys.dedup();
    let shown: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let wanted = !shown.is_empty();
    wanted.then(|| format!("`{}` differs from `{}` also in {}", group.name, baseline.name, shown.join(", ")))
}

/// Bits of the baseline until the target over those of the group, seed by seed: geometric mean, and the interval of the
/// mean of the logarithms.
pub(super) fn ratio(group: &Members<'_>, baseline: &Members<'_>, metric: Metric, target: f64) -> Average {
    let logarithm = |run: &super::run::Run<'_>| {
        let other = baseline.runs.iter().find(|other| other.seed == run.seed)?;
        let (ours, theirs) = (run.reach(metric, target)?.bits, other.reach(metric, target)?.bits);
        (ours > 0 && theirs > 0).then(|| libm::log(theirs as f64 / ours as f64))
    };
    let Average { spread, seeds } = Average::of(group.runs.iter().map(logarithm));
    let back =
        |Spread { mean, low, high }| Spread { mean: libm::exp(mean), low: libm::exp(low), high: libm::exp(high) };
    Average { spread: spread.map(back), seeds }
}

/// Which points, of bits and value, no other one beats: none has at most their bits and at least their value, one of
/// them strictly.
pub(super) fn front(points: &[Option<(f64, f64)>], metric: Metric) -> Vec<bool> {
    let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && metric.reaches(a.1, b.1) && a != b;
    points.iter().map(|point| point.is_some_and(|b| !points.iter().flatten().any(|a| beats(*a, b)))).collect()
}
