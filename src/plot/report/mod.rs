//! Runs in figures: what each group of them came to, and the bits that it took.

mod compare;
mod run;
mod show;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, collections::BTreeMap};

use self::run::Run;
use super::{
    Bits, Kind, PlotError, Spread, Table,
    group::{differences, names, natural, repetition},
    table::resolve,
};
use crate::units;

/// What is measured of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Share of the test samples that are classified correctly; more is better.
    Accuracy,
    /// Squared distance to the optimum, relative to that of the start; less is better.
    Distance,
}

/// What a report is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Default: the accuracy, or the distance if no run has accuracies.
    pub metric: Option<Metric>,
    /// Value to reach. Default: the strictest whole percent, for distances power of ten, that at least half of the
    /// groups reach with all their seeds.
    pub target: Option<f64>,
    /// Which bits count.
    pub bits: Bits,
    /// Numbers of bits; what they pay for is asked.
    pub budgets: Vec<units::Bits>,
    /// Columns that tell groups apart. Default: the settings in which runs differ, the seed apart.
    pub group: Option<Vec<String>>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What is measured.
    pub metric: Metric,
    /// Value to reach.
    pub target: f64,
    /// Whether the target was chosen here, not by the request.
    pub is_chosen: bool,
    /// Which bits count.
    pub bits: Bits,
    /// Budgets of the request.
    pub budgets: Vec<units::Bits>,
    /// Columns that tell groups apart.
    pub columns: Vec<String>,
    /// Number of runs.
    pub runs: usize,
    /// By mean bits until the target; those that never reach it last, the best of them first.
    pub groups: Vec<Group>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Runs that differ in their seed alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Values of the columns that tell groups apart.
    pub values: Vec<String>,
    /// Number of seeds.
    pub seeds: usize,
    /// How many runs diverged.
    pub diverged: usize,
    /// How many runs lack rounds that their scenario asks for.
    pub unfinished: usize,
    /// Value of the last evaluation; a run that ends without a finite one has none.
    pub last: Average,
    /// Bits until the end of the first evaluated round that reaches the target.
    pub bits_to_target: Average,
    /// That round.
    pub rounds_to_target: Average,
    /// The group that sends the same without compression.
    pub baseline: Option<String>,
    /// Its bits until the target over those of this group, over pairs of one seed: geometric mean.
    pub ratio: Average,
    /// Bits at the end.
    pub total_bits: Average,
    /// Value of the last evaluation within each budget.
    pub at_budgets: Vec<Average>,
    /// Whether no other group has at most the bits at the end and at least the value, by the means, one of them
    /// strictly. Groups with a run that has no value stand outside.
    pub is_pareto: bool,
}

/// A mean over the seeds that have a value, and how many these are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    /// Mean and interval; `None` if no seed has a value.
    pub spread: Option<Spread>,
    /// Number of seeds with a value.
    pub seeds: usize,
}

/// A group while it is made.
struct Members<'a> {
    name: String,
    values: Vec<String>,
    runs: Vec<Run<'a>>,
}

impl Metric {
    /// Its column.
    pub fn column(self) -> &'static str {
        match self {
            Self::Accuracy => "test_accuracy",
            Self::Distance => "distance_to_optimum",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Distance => "distance",
        }
    }

    /// Whether a value is at least as good as another one.
    pub fn reaches(self, value: f64, target: f64) -> bool {
        match self {
            Self::Accuracy => value >= target,
            Self::Distance => value <= target,
        }
    }

    /// The default of tables.
    fn of(tables: &[Table]) -> Self {
        let has = |metric: Self| {
            let cells = |table: &Table| {
                let column = table.column(metric.column());
                column.is_some_and(|column| table.rows.iter().any(|row| !column.cell(row).is_empty()))
            };
            tables.iter().any(cells)
        };
        if !has(Self::Accuracy) && has(Self::Distance) { Self::Distance } else { Self::Accuracy }
    }

    /// Targets that may be chosen, the strictest first: literals, not products that would miss them by a rounding.
    fn round_targets(self) -> Vec<f64> {
        match self {
            Self::Accuracy => (0..=100).rev().map(|percent| f64::from(percent) / 100.0).collect(),
            Self::Distance => (-30..=3).map(|power| format!("1e{power}").parse().expect("it is a number")).collect(),
        }
    }

    fn check(self, target: f64) -> Result<(), PlotError> {
        match self {
            Self::Accuracy if !(target > 0.0 && target <= 1.0) => Err(PlotError::input(format!(
                "the target {target} is no accuracy: shares above 0 and up to 1 are allowed, such as 0.97 for 97 %"
            ))),
            Self::Distance if !(target > 0.0 && target.is_finite()) => Err(PlotError::input(format!(
                "the target {target} is no distance: numbers above 0 are allowed, such as 1e-4"
            ))),
            _ => Ok(()),
        }
    }
}

impl Average {
    fn of(values: impl Iterator<Item = Option<f64>>) -> Self {
        let values: Vec<f64> = values.flatten().collect();
        Self { spread: Spread::of(&values), seeds: values.len() }
    }

    /// The mean, if any seed has a value.
    pub fn mean(&self) -> Option<f64> {
        self.spread.map(|spread| spread.mean)
    }
}

impl Members<'_> {
    fn has_operator(&self, operator: &str) -> bool {
        self.runs.iter().all(|run| run.operator == operator)
    }

    fn has_coder(&self, coder: &str) -> bool {
        self.runs.iter().all(|run| run.table.settings.get("uplink.coder").is_some_and(|name| name == coder))
    }

    /// The worst over the seeds of the best value of each; `None` if a seed has none.
    fn sure(&self, metric: Metric) -> Option<f64> {
        let best = self.runs.iter().map(|run| run.best(metric)).collect::<Option<Vec<f64>>>()?;
        best.into_iter().reduce(|worst, value| if metric.reaches(worst, value) { value } else { worst })
    }

    fn group(&self, metric: Metric, target: f64, budgets: &[units::Bits], baseline: Option<&Self>) -> Group {
        let over = |value: &dyn Fn(&Run<'_>) -> Option<f64>| Average::of(self.runs.iter().map(value));
        Group {
            name: self.name.clone(),
            values: self.values.clone(),
            seeds: self.runs.len(),
            diverged: self.runs.iter().filter(|run| run.is_diverged).count(),
            unfinished: self.runs.iter().filter(|run| run.is_unfinished).count(),
            last: over(&|run| run.last()),
            bits_to_target: over(&|run| Some(run.reach(metric, target)?.bits as f64)),
            rounds_to_target: over(&|run| Some(run.reach(metric, target)?.round as f64)),
            baseline: baseline.map(|baseline| baseline.name.clone()),
            ratio: baseline.map_or(Average::default(), |other| compare::ratio(self, other, metric, target)),
            total_bits: over(&|run| Some(run.bits as f64)),
            at_budgets: budgets.iter().map(|budget| over(&|run| run.within(*budget))).collect(),
            is_pareto: false,
        }
    }
}

/// Puts runs into figures.
///
/// # Errors
/// If the tables are no rounds, a column is missing or holds no numbers, the target is none, or none can be chosen.
pub fn report(tables: &[Table], request: &Request) -> Result<Report, PlotError> {
    if let Some(other) = tables.iter().find(|table| table.kind != Kind::Rounds) {
        return Err(PlotError::input(format!(
            "`{}` holds {}: a report is made of `rounds.csv`, the rounds of runs",
            other.path.display(),
            other.kind
        )));
    }
    let tables = one_a_run(tables);
    let metric = request.metric.unwrap_or_else(|| Metric::of(&tables));
    resolve(&tables, metric.column())?;
    let columns = match &request.group {
        Some(names) => names.iter().map(|name| resolve(&tables, name)).collect::<Result<Vec<_>, _>>()?,
        None => differences(&tables, &[]),
    };
    let mut notes = Vec::new();
    let members = members(&tables, &columns, metric, request, &mut notes)?;
    if members.iter().all(|group| group.runs.iter().all(|run| run.evaluations.is_empty())) {
        return Err(PlotError::NoValues(format!("no row has a value in `{}`", metric.column())));
    }
    let target = match request.target {
        Some(target) => metric.check(target).map(|()| target)?,
        None => choose(&members, metric)?,
    };
    let (baselines, more) = compare::baselines(&columns, &members);
    notes.extend(more);
    let of = |(group, one): (&Members<'_>, &Option<usize>)| {
        group.group(metric, target, &request.budgets, one.map(|one| &members[one]))
    };
    let mut groups: Vec<Group> = members.iter().zip(&baselines).map(of).collect();
    let ends: Vec<_> = groups.iter().map(Group::end).collect();
    let front = compare::front(&ends, metric);
    groups.iter_mut().zip(front).for_each(|(group, is_pareto)| group.is_pareto = is_pareto);
    groups.sort_by(|a, b| order(a, b, metric));
    let runs = members.iter().map(|group| group.runs.len()).sum();
    let (bits, budgets) = (request.bits, request.budgets.clone());
    Ok(Report { metric, target, is_chosen: request.target.is_none(), bits, budgets, columns, runs, groups, notes })
}

impl Group {
    /// Bits and value at the end, if every run has one.
    fn end(&self) -> Option<(f64, f64)> {
        self.total_bits.mean().zip(self.last.mean().filter(|_| self.last.seeds == self.seeds))
    }
}

/// Tables with one run each: a file may hold several.
fn one_a_run(tables: &[Table]) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    for table in tables {
        let first = all.len();
        let of = |row| ["run", "seed"].map(|name| table.column(name).map_or("", |column| column.cell(row)).to_owned());
        let mut keys: Vec<[String; 2]> = Vec::new();
        for row in &table.rows {
            let key = of(row);
            let at = keys.iter().position(|other| *other == key).unwrap_or_else(|| {
                all.push(Table { rows: Vec::new(), source: key[0].clone(), ..table.clone() });
                keys.push(key);
                keys.len() - 1
            });
            all[first + at].rows.push(row.clone());
        }
    }
    all
}

/// The runs by their groups. The same seed of the same group counts once: it would make the interval too narrow.
fn members<'a>(
    tables: &'a [Table],
    columns: &[String],
    metric: Metric,
    request: &Request,
    notes: &mut Vec<String>,
) -> Result<Vec<Members<'a>>, PlotError> {
    let mut groups: BTreeMap<Vec<String>, Vec<Run<'a>>> = BTreeMap::new();
    for table in tables {
        let Some(row) = table.rows.first() else { continue };
        let cell = |name: &String| table.column(name).map_or("", |column| column.cell(row)).to_owned();
        let run = Run::new(table, metric, request)?;
        let runs = groups.entry(columns.iter().map(cell).collect()).or_default();
        match runs.iter().find(|other| other.seed == run.seed) {
            Some(other) => notes.push(repetition(other.table, run.table)?),
            None => runs.push(run),
        }
    }
    let mut rows: Vec<&[String]> = groups.keys().map(Vec::as_slice).collect();
    rows.sort_by(|a, b| natural(a, b));
    let mut names = names(columns, &rows).into_iter();
    let rows: Vec<Vec<String>> = rows.into_iter().map(<[String]>::to_vec).collect();
    let of = |values: Vec<String>| {
        let runs = groups.remove(&values).expect("every key has runs");
        let name = names.next().filter(|name| !name.is_empty()).unwrap_or_else(|| runs[0].operator.clone());
        Members { name, values, runs }
    };
    Ok(rows.into_iter().map(of).collect())
}

/// The strictest round target that at least half of the groups reach with all their seeds.
fn choose(groups: &[Members<'_>], metric: Metric) -> Result<f64, PlotError> {
    let sure: Vec<f64> = groups.iter().filter_map(|group| group.sure(metric)).collect();
    let suits = |target: &f64| 2 * sure.iter().filter(|value| metric.reaches(**value, *target)).count() >= groups.len();
    metric.round_targets().into_iter().find(suits).ok_or_else(|| {
        PlotError::NoValues(format!(
            "fewer than half of the {} groups have values in `{}` for all their seeds: choose a target with --target",
            groups.len(),
            metric.column()
        ))
    })
}

/// Groups whose seeds all reach the target first, then by bits until then, then by what is reached.
fn order(a: &Group, b: &Group, metric: Metric) -> Ordering {
    let bits = |group: &Group| group.bits_to_target.mean().unwrap_or(f64::INFINITY);
    let worth = |group: &Group| {
        let value = group.last.mean();
        match metric {
            Metric::Accuracy => value.map_or(f64::INFINITY, |value| -value),
            Metric::Distance => value.unwrap_or(f64::INFINITY),
        }
    };
    // Fewer bits are no merit where only some seeds got there.
    let misses = |group: &Group| group.bits_to_target.seeds < group.seeds;
    misses(a).cmp(&misses(b)).then(bits(a).total_cmp(&bits(b))).then(worth(a).total_cmp(&worth(b)))
}
