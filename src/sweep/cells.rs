//! From a scenario with axes to cells: one run each, told apart by what it computes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::axis::{self, Assignment, Axis};
use crate::{
    run::{DataCache, Plan},
    scenario::{self, Document, Mistake, Refusal},
};

/// Cells of a sweep at most.
const MOST_CELLS: usize = 100_000;

/// A scenario and what varies in it.
pub struct Sweep {
    base: Document,
    axes: Vec<Axis>,
    /// Overrides of the command line that are no axes; laid last.
    fixed: Vec<String>,
}

/// A cell that can run.
pub struct Cell {
    /// Its scenario.
    pub document: Document,
    /// Name of its scenario.
    pub scenario: String,
    /// Name of its run.
    pub run: String,
    /// What the axes are in it, for people, the seed apart.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// Its rounds.
    pub rounds: u32,
}

impl Cell {
    /// Folder of its run below a results folder.
    pub fn folder(&self, results: &Path) -> PathBuf {
        results.join(&self.scenario).join(&self.run)
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.label.is_empty() {
            true => write!(f, "seed {}", self.seed),
            false => write!(f, "{}, seed {}", self.label, self.seed),
        }
    }
}

/// All cells of a sweep.
pub struct Cells {
    /// Those that can run, in the order of the axes.
    pub cells: Vec<Cell>,
    /// Those that cannot, with their mistakes.
    pub invalid: Vec<(String, Refusal)>,
    /// Combinations that compute the same as an earlier one.
    pub repeated: usize,
    /// Dotted keys that the axes set, in their order.
    pub keys: Vec<String>,
}

impl Cells {
    /// The cells that cannot run, those with equal reasons together: what they are, and the mistakes of the first of them.
    pub fn reasons(&self) -> Vec<(Vec<&str>, &Refusal)> {
        let mut groups: Vec<(String, Vec<&str>, &Refusal)> = Vec::new();
        for (label, refusal) in &self.invalid {
            let reasons = refusal.reasons();
            match groups.iter_mut().find(|(other, ..)| *other == reasons) {
                Some((_, labels, _)) => labels.push(label),
                None => groups.push((reasons, vec![label], refusal)),
            }
        }
        groups.into_iter().map(|(_, labels, refusal)| (labels, refusal)).collect()
    }
}

impl Sweep {
    /// Reads the axes of a scenario and of the command line; an argument takes the place of an axis of the same key.
    ///
    /// # Errors
    /// Every mistake in the axes; what is wrong in the scenario itself is said of each cell.
    pub fn new(mut base: Document, arguments: &[String]) -> Result<Self, Refusal> {
        let mut mistakes = Vec::new();
        let section = base.take(axis::SECTION);
        let mut axes = section.as_ref().map_or_else(Vec::new, |section| axis::of_section(section, &mut mistakes));
        let mut fixed = Vec::new();
        for text in arguments {
            let key = text.split_once('=').map_or(text.as_str(), |(key, _)| key).trim();
            if let Some(joined) = axes.iter().find(|axis| axis.keys.len() > 1 && axis.keys.iter().any(|one| one == key))
            {
                let message = format!("`{text}`: `{key}` varies together with others: {}", joined.keys.join(", "));
                mistakes.push(Mistake::new("", message));
                continue;
            }
            axes.retain(|axis| axis.keys != [key]);
            axes.iter_mut().for_each(|axis| axis.forget(key));
            match axis::of_argument(text) {
                Ok(Some(axis)) => axes.push(axis),
                Ok(None) => fixed.push(text.clone()),
                Err(message) => mistakes.push(Mistake::new("", message)),
            }
        }
        let mut keys: Vec<&String> = axes.iter().flat_map(|axis| &axis.keys).collect();
        keys.sort();
        let twice = keys.iter().zip(keys.iter().skip(1)).find(|(key, next)| key == next);
        if let Some((key, _)) = twice {
            mistakes.push(Mistake::new(axis::SECTION, format!("`{key}` is in two axes")));
        }
        if mistakes.is_empty() && axes.is_empty() {
            let mistake = Mistake::new("", "nothing varies: there is no axis");
            mistakes.push(mistake.help(
                "axes stand in `[sweep]`, or on the command line with several values: `uplink.ratio=0.01,0.1` `seed=0..5`",
            ));
        }
        let count = axes.iter().fold(1usize, |count, axis| count.saturating_mul(axis.points.len()));
        if count > MOST_CELLS {
            mistakes.push(Mistake::new("", format!("the axes make {count} cells; at most {MOST_CELLS} are allowed")));
        }
        if mistakes.is_empty() {
            return Ok(Self { base, axes, fixed });
        }
        // Places of mistakes are found in the tree.
        if let Some(section) = section {
            base.put(axis::SECTION, section).expect("it stood there");
        }
        Err(base.refuse(mistakes))
    }

    /// Values along each axis, for people: `3 seeds x 25 of uplink`.
    pub fn shape(&self) -> String {
        let one = |axis: &Axis| format!("{} of {}", axis.points.len(), axis.keys.join(" and "));
        self.axes.iter().map(one).collect::<Vec<_>>().join(" x ")
    }

    /// Every combination, checked.
    pub fn cells(&self, cache: &mut DataCache) -> Cells {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            points = axis::product(&points, &axis.points);
        }
        let (mut cells, mut invalid, mut repeated) = (Vec::new(), Vec::new(), 0);
        let (mut keys, mut runs) = (Vec::new(), BTreeSet::new());
        for point in points {
            let mut document = self.base.clone();
            let laid = point.iter().try_for_each(|assignment| assignment.lay(&mut document));
            let laid = laid.and_then(|()| self.fixed.iter().try_for_each(|text| document.lay(text)));
            let mut own: Vec<String> = point.iter().flat_map(Assignment::keys).collect();
            own.retain(|key| {
                !self.fixed.iter().any(|text| text.split_once('=').is_some_and(|(fixed, _)| fixed == key))
            });
            own.dedup();
            keys.extend(own.iter().filter(|key| !keys.contains(*key)).cloned().collect::<Vec<_>>());
            let plan = match laid {
                Ok(()) => Plan::new(&document, cache),
                Err(mistake) => Err(document.refuse([mistake])),
            };
            match plan {
                Ok(plan) if runs.insert(plan.run.clone()) => cells.push(Cell {
                    label: label(&own, &plan),
                    scenario: plan.scenario,
                    run: plan.run,
                    seed: plan.general.seed,
                    rounds: plan.general.rounds,
                    document,
                }),
                Ok(_) => repeated += 1,
                Err(refusal) => invalid.push((point_label(&point), refusal)),
            }
        }
        Cells { cells, invalid, repeated, keys }
    }
}

/// What the keys of the axes are in a plan, the seed apart; a name speaks for itself.
fn label(keys: &[String], plan: &Plan) -> String {
    let settings = scenario::flat(&plan.resolved);
    let one = |key: &String| {
        let value = settings.get(key)?;
        let name = key.rsplit('.').next().unwrap_or(key);
        match value {
            toml::Value::String(text) if axis::names_a_part(name) || name == "link" => Some(text.clone()),
            other => Some(format!("{} {}", name.replace('_', " "), scenario::cell(other))),
        }
    };
    let mut keys: Vec<&String> = keys.iter().filter(|key| *key != "seed").collect();
    // Names first: they say what the numbers are of.
    keys.sort_by_key(|key| !axis::names_a_part(key.rsplit('.').next().unwrap_or(key)));
    keys.into_iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// What a combination puts, as overrides.
fn point_label(point: &[Assignment]) -> String {
    let one = |assignment: &Assignment| match assignment {
        Assignment::Value(key, node) => format!("{key}={}", node.to_toml()),
        Assignment::Text(text) => text.clone(),
    };
    point.iter().map(one).collect::<Vec<_>>().join(" ")
}
