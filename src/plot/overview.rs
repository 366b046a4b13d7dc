//! The page of some runs: what they came to, figures, what they share, where they ran.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use serde_json::Value;

use super::{Align, Block, Chart, Report, Section, Table, group::natural, page};

/// Values of one fact that are listed; more are counted.
const MOST_VALUES: usize = 4;

/// The question that all tables answer, if it is one and the same: what stands behind `# Question:` in their scenarios.
pub fn question(tables: &[Table]) -> Option<String> {
    let of = |table: &Table| -> Option<String> {
        let text = fs::read_to_string(table.folder()?.join("scenario.toml")).ok()?;
        let line = text.lines().next()?.strip_prefix("# Question:")?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    };
    let first = of(tables.first()?)?;
    tables.iter().all(|table| of(table).as_ref() == Some(&first)).then_some(first)
}

/// A page in HTML: the report, figures by their headings, the settings that runs share and those in which they differ, and what their
/// `run.json` say of the machine and the data.
pub fn overview(tables: &[Table], charts: Vec<(String, Chart)>, report: Option<&Report>) -> String {
    let mut sections = Vec::new();
    let mut add = |heading: &str, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            sections.push(Section { heading: heading.to_owned(), blocks });
        }
    };
    for (heading, chart) in charts {
        add(&heading, vec![Block::Chart(Box::new(chart))]);
    }
    if let Some(report) = report {
        let (columns, rows) = report.table();
        let side = |(i, name): (usize, String)| (name, if i == 0 { Align::Left } else { Align::Right });
        let table = Block::Table { columns: columns.into_iter().enumerate().map(side).collect(), rows };
        let text = |lines: Vec<String>| Block::Text(lines.join(" "));
        add("In figures", vec![text(report.summary()), table, text(report.legend())]);
    }
    add("Scenario", scenario(tables));
    add("Environment", environment(tables));
    let names: BTreeSet<String> = tables.iter().filter_map(|table| table.first("scenario")).collect();
    let title = if names.is_empty() { "fedbits".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") };
    page(&title, &question(tables).unwrap_or_default(), &sections)
}

/// What runs share, as it stands in a scenario, and what they differ in.
fn scenario(tables: &[Table]) -> Vec<Block> {
    let values = gathered(tables.iter().map(|table| table.settings.clone().into_iter().collect()));
    let is_shared = |values: &Vec<(String, usize)>| values.len() == 1 && values[0].1 == tables.len();
    let shared: Vec<String> = values
        .iter()
        .filter(|(_, values)| is_shared(values))
        .map(|(key, values)| format!("{key} = {}", values[0].0))
        .collect();
    let differing: Vec<(String, String)> = values
        .iter()
        .filter(|(_, values)| !is_shared(values))
        .map(|(key, values)| (key.clone(), listed(values)))
        .collect();
    let mut blocks = Vec::new();
    if !shared.is_empty() {
        blocks.push(Block::Verbatim(shared.join("\n")));
    }
    if !differing.is_empty() {
        blocks.extend([Block::Text("The runs differ in".to_owned()), Block::Pairs(differing)]);
    }
    blocks
}

/// What the runs' `run.json` say of the machine and the data.
fn environment(tables: &[Table]) -> Vec<Block> {
    const FACTS: [&str; 11] = [
        "fedbits_version",
        "results_version",
        "device",
        "engine",
        "threads",
        "parameters",
        "clients",
        "training_samples",
        "test_samples",
        "data_digest",
        "state",
    ];
    let facts = |table: &Table| -> Vec<(String, String)> {
        let text = table.folder().and_then(|folder| fs::read_to_string(folder.join("run.json")).ok());
        let manifest: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
        let shown = |value: &Value| match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect(),
            Value::Null => Vec::new(),
            other => vec![other.to_string()],
        };
        let named = |name: &&'static str| {
            shown(&manifest[*name]).into_iter().map(|value| (name.replace('_', " "), value)).collect::<Vec<_>>()
        };
        FACTS.iter().chain(&["notes"]).flat_map(named).collect()
    };
    let values = gathered(tables.iter().map(facts));
    let pairs = FACTS.iter().filter_map(|name| {
        let name = name.replace('_', " ");
        Some((name.clone(), listed(values.get(&name)?)))
    });
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.insert(0, ("runs".to_owned(), tables.len().to_string()));
    let notes = values.get("notes").into_iter().flatten().take(MOST_VALUES).map(|(note, _)| Block::Text(note.clone()));
    [Block::Pairs(pairs)].into_iter().chain(notes).collect()
}

/// Every value of every key, numbers by size, and how many runs have it.
fn gathered(runs: impl Iterator<Item = Vec<(String, String)>>) -> BTreeMap<String, Vec<(String, usize)>> {
    let mut all: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for (key, value) in runs.flatten() {
        let values = all.entry(key).or_default();
        match values.iter_mut().find(|(other, _)| *other == value) {
            Some((_, count)) => *count += 1,
            None => values.push((value, 1)),
        }
    }
    for values in all.values_mut() {
        values.sort_by(|(a, _), (b, _)| natural(std::slice::from_ref(a), std::slice::from_ref(b)));
    }
    all
}

fn listed(values: &[(String, usize)]) -> String {
    let shown: Vec<&str> = values.iter().take(MOST_VALUES).map(|(value, _)| value.as_str()).collect();
    let more =
        if values.len() > MOST_VALUES { format!(", and {} more", values.len() - MOST_VALUES) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
