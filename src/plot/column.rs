//! Columns of tables as the values of an axis.

use csv::StringRecord;

use super::{
    Axis, PlotError, Table, Unit,
    table::{Column, resolve},
};

/// A sum of columns; mostly one.
pub(super) struct Sum {
    pub parts: Vec<String>,
}

impl Sum {
    pub fn new(tables: &[Table], text: &str) -> Result<Self, PlotError> {
        let parts = text.split('+').map(|name| resolve(tables, name.trim())).collect::<Result<Vec<_>, _>>()?;
        for name in &parts {
            let mut cells =
                tables.iter().filter_map(|table| Some((table, table.column(name)?))).flat_map(|(table, column)| {
                    table.rows.iter().map(move |row| column.cell(row)).filter(|cell| !cell.is_empty())
                });
            let first = cells.next();
            if let Some(cell) =
                first.filter(|cell| cell.parse::<f64>().is_err() && cells.all(|cell| cell.parse::<f64>().is_err()))
            {
                return Err(PlotError::input(format!("column `{name}` holds no numbers, but for example `{cell}`")));
            }
        }
        Ok(Self { parts })
    }

    pub fn columns<'a>(&self, table: &'a Table) -> Option<Vec<Column<'a>>> {
        self.parts.iter().map(|name| table.column(name)).collect()
    }

    /// Whether these are settings of runs, not columns that change from row to row.
    pub fn is_setting(&self, tables: &[Table]) -> bool {
        self.parts.iter().all(|name| tables.iter().any(|table| table.settings.contains_key(name)))
    }

    pub fn axis(&self, log: bool) -> Axis {
        let known = match self.parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["cumulative_uplink_bits"] => Some("uplink traffic"),
            ["cumulative_downlink_bits"] => Some("downlink traffic"),
            ["cumulative_uplink_bits", "cumulative_downlink_bits", "cumulative_peer_bits"] => Some("total traffic"),
            ["simulated_seconds"] => Some("simulated time"),
            ["nmse"] => Some("normalised squared error"),
            _ => None,
        };
        let plain = |name: &String| {
            let name =
                ["_bits", "_seconds"].iter().fold(name.as_str(), |name, unit| name.strip_suffix(unit).unwrap_or(name));
            name.replace(['_', '.'], " ")
        };
        let label = known.map_or_else(|| self.parts.iter().map(plain).collect::<Vec<_>>().join(" + "), str::to_owned);
        let all_end = |ending: &str| self.parts.iter().all(|name| name.ends_with(ending));
        let unit = if all_end("_bits") {
            Unit::Bits
        } else if all_end("accuracy") {
            Unit::Percent
        } else if all_end("_seconds") {
            Unit::Seconds
        } else {
            Unit::Plain
        };
        Axis { label, unit, log }
    }
}

/// The sum of the cells of a row, if all of them are numbers; not finite if one of them is not.
pub(super) fn value(columns: &[Column<'_>], row: &StringRecord) -> Option<f64> {
    columns.iter().try_fold(0.0, |sum, column| Some(sum + column.cell(row).parse::<f64>().ok()?))
}

pub(super) fn finite(columns: &[Column<'_>], row: &StringRecord) -> Option<f64> {
    value(columns, row).filter(|value| value.is_finite())
}
