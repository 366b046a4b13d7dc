//! One run, as its rows tell it.

use std::path::Path;

use csv::StringRecord;

use super::{super::table::Column, Metric, PlotError, Request, Table};
use crate::units;

/// An evaluated round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evaluation {
    pub round: u64,
    /// Bits of all rounds so far.
    pub bits: u64,
    pub value: f64,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run<'a> {
    pub table: &'a Table,
    pub seed: String,
    /// Operator of its uplink.
    pub operator: String,
    /// By round.
    pub evaluations: Vec<Evaluation>,
    /// Bits at its end.
    pub bits: u64,
    /// A value was not finite, which ended it.
    pub is_diverged: bool,
    /// Rounds are missing that its scenario asks for.
    pub is_unfinished: bool,
}

impl<'a> Run<'a> {
    pub fn new(table: &'a Table, metric: Metric, request: &Request) -> Result<Self, PlotError> {
        let shown = table.path.display();
        let column = |name: &str| {
            let missing = || PlotError::input(format!("`{shown}` has no column `{name}`, which a report needs"));
            table.column(name).ok_or_else(missing)
        };
        let (round, seed, measured) = (column("round")?, column("seed")?, column(metric.column())?);
        let parts = request.bits.columns().split('+').map(column).collect::<Result<Vec<_>, _>>()?;
        let mut run = Self {
            table,
            seed: table.rows.first().map_or("", |row| seed.cell(row)).to_owned(),
            operator: operator(table).to_owned(),
            evaluations: Vec::new(),
            bits: 0,
            is_diverged: false,
            is_unfinished: false,
        };
        let mut rows: Vec<(u64, &StringRecord)> = Vec::new();
        for row in &table.rows {
            rows.push((number(&table.path, "round", round, row)?, row));
        }
        rows.sort_by_key(|(round, _)| *round);
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(PlotError::input(format!("`{shown}` has round {} twice", pair[0].0)));
        }
        for (round, row) in &rows {
            run.bits = 0;
            for (column, name) in parts.iter().zip(request.bits.columns().split('+')) {
                run.bits = run.bits.saturating_add(number(&table.path, name, *column, row)?);
            }
            if !measured.cell(row).is_empty() {
                let value = number(&table.path, metric.column(), measured, row)?;
                run.evaluations.push(Evaluation { round: *round, bits: run.bits, value });
            }
        }
        if let Some((round, row)) = rows.last() {
            run.is_diverged = table.column("status").is_some_and(|status| status.cell(row) == "diverged");
            run.is_unfinished = !run.is_diverged && is_unfinished(table, *round, row);
        }
        Ok(run)
    }

    /// The first evaluation that reaches a target.
    pub fn reach(&self, metric: Metric, target: f64) -> Option<Evaluation> {
        self.evaluations.iter().copied().find(|evaluation| metric.reaches(evaluation.value, target))
    }

    /// The value of the last evaluation, if it is a number.
    pub fn last(&self) -> Option<f64> {
        self.evaluations.last().map(|evaluation| evaluation.value).filter(|value| value.is_finite())
    }

    /// The value of the last evaluation that so many bits pay for, if it is a number.
    pub fn within(&self, budget: units::Bits) -> Option<f64> {
        let paid = self.evaluations.iter().rfind(|evaluation| evaluation.bits <= budget.0);
        paid.map(|evaluation| evaluation.value).filter(|value| value.is_finite())
    }

    /// The value of the best evaluation.
    pub fn best(&self, metric: Metric) -> Option<f64> {
        let finite = self.evaluations.iter().map(|evaluation| evaluation.value).filter(|value| value.is_finite());
        finite.reduce(|best, value| if metric.reaches(value, best) { value } else { best })
    }
}

/// The operator of the uplink, which the column `operator` names as well.
fn operator(table: &Table) -> &str {
    let column = table.column("uplink.operator").or_else(|| table.column("operator"));
    column.zip(table.rows.first()).map_or("", |(column, row)| column.cell(row))
}

fn number<T: std::str::FromStr>(
    path: &Path,
    name: &str,
    column: Column<'_>,
    row: &StringRecord,
) -> Result<T, PlotError> {
    let cell = column.cell(row);
    let line = row.position().map_or(String::new(), |position| format!(", line {}", position.line()));
    let wrong = |_| {
        let allowed = if name.ends_with("bits") || name == "round" { "a whole number" } else { "a number" };
        PlotError::input(format!("`{}`{line}: `{cell}` stands in `{name}`, where {allowed} is allowed", path.display()))
    };
    cell.parse().map_err(wrong)
}

/// Whether a run ended before its last round for no reason that its scenario gives.
fn is_unfinished(table: &Table, round: u64, last: &StringRecord) -> bool {
    let setting = |name: &str| table.settings.get(name)?.parse::<f64>().ok();
    let sum = |names: &str| -> Option<f64> {
        names.split('+').map(|name| table.column(name)?.cell(last).parse::<f64>().ok()).sum()
    };
    let at_least = |stop: &str, names: &str| setting(stop).zip(sum(names)).is_some_and(|(stop, value)| value >= stop);
    let near = || setting("stop.distance").zip(sum(Metric::Distance.column())).is_some_and(|(stop, at)| at <= stop);
    setting("rounds").is_some_and(|rounds| (round as f64) < rounds)
        && !at_least("stop.accuracy", Metric::Accuracy.column())
        && !at_least("stop.uplink_bits", super::Bits::Up.columns())
        && !at_least("stop.total_bits", super::Bits::Total.columns())
        && !near()
}
