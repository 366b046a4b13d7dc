//! Figures from CSV alone: read -> series -> chart -> scene -> file.
//!
//! [`read`] finds tables, a [`Question`] names the columns to show, [`chart`] makes lines with bands of them, and [`save`]
//! draws a [`Chart`] as SVG or PNG. The same CSV gives the same bytes. Settings that stand in a `scenario.toml` beside a
//! `rounds.csv` are columns of that table too: without them runs of different ratios could not be told apart.

mod chart;
mod diff;
mod draw;
mod file;
mod palette;
mod png;
mod question;
mod report;
mod scale;
mod scene;
mod series;
mod spread;
mod svg;
mod table;

pub use chart::{Axis, Chart, Line, Panel, Point};
pub use diff::{Cell, Diff, First, Rows, diff};
pub use draw::draw;
pub use file::{PlotError, save};
pub use question::{Bits, Figure, Log, Question};
pub use report::{Average, Group, Metric, Report, Request, report};
pub use scale::{Scale, Unit};
pub use scene::{Anchor, Scene, Shape};
pub use series::chart;
pub use spread::{Spread, student_t};
pub use table::{Kind, Table, read};
