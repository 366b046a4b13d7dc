//! Rows of numbers with a target each: what regression models fit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rows of features and the target of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Number of features of a row.
    pub width: usize,
    /// `len() · width` values, row by row.
    pub features: Vec<f64>,
    /// One target a row: a number, or -1 and +1 for the two classes.
    pub targets: Vec<f64>,
}

impl Table {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The features of a row.
    pub fn row(&self, at: usize) -> &[f64] {
        &self.features[at * self.width..][..self.width]
    }

    /// Keeps the first rows.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.features.truncate(rows * self.width);
        self.targets.truncate(rows);
    }
}

/// How the columns of a table are scaled, each by itself; a column with one value only becomes 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Not at all.
    None,
    /// Its smallest value to -1 and its largest to +1.
    #[default]
    MinMax,
    /// To mean 0 and deviation 1 over all rows.
    Standard,
}

impl Scaling {
    pub(super) fn apply(self, table: &mut Table) {
        if self == Self::None {
            return;
        }
        for column in 0..table.width {
            let values = || table.features.iter().skip(column).step_by(table.width).copied();
            let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            let n = table.len() as f64;
            let mean = values().map(|v| v / n).sum::<f64>();
            let deviation = values().map(|v| (v - mean) * (v - mean) / n).sum::<f64>().sqrt();
            let scaled = |v: f64| match self {
                _ if low == high => 0.0,
                // Halves are taken first: the difference of two large values may be infinite.
                Self::MinMax => 2.0 * ((0.5 * v - 0.5 * low) / (0.5 * high - 0.5 * low)) - 1.0,
                _ => (v - mean) / deviation,
            };
            table.features.iter_mut().skip(column).step_by(table.width).for_each(|v| *v = scaled(*v));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(scaling: Scaling) -> Vec<f64> {
        let features = vec![1.0, 7.0, 2.0, 7.0, 5.0, 7.0, 4.0, 7.0];
        let mut table = Table { width: 2, features, targets: vec![0.0; 4] };
        scaling.apply(&mut table);
        assert_eq!(table.row(3), &table.features[6..]);
        table.features
    }

    #[test]
    fn columns_are_scaled_each_by_itself_and_constant_ones_vanish() {
        assert_eq!(scaled(Scaling::None), [1.0, 7.0, 2.0, 7.0, 5.0, 7.0, 4.0, 7.0]);
        assert_eq!(scaled(Scaling::MinMax), [-1.0, 0.0, -0.5, 0.0, 1.0, 0.0, 0.5, 0.0]);
        let standard = scaled(Scaling::Standard);
        let column: Vec<f64> = standard.iter().copied().step_by(2).collect();
        assert!(column.iter().sum::<f64>().abs() < 1e-15);
        assert!((column.iter().map(|v| v * v).sum::<f64>() - 4.0).abs() < 1e-14);
        assert!(standard.iter().skip(1).step_by(2).all(|v| *v == 0.0));
    }
}
