//! Figures from CSV alone: read -> series -> chart -> scene -> file.
//!
//! [`read`] finds tables, a [`Question`] names the columns to show, [`chart`] makes lines with bands of them, and
//! [`save`] draws a [`Chart`] as SVG or PNG; a [`page`] holds several of them with tables and text. The same CSV gives
//! the same bytes. Settings that stand in a `scenario.toml` beside a `rounds.csv`, or in the table of a sweep left of
//! the run, are columns too: without them runs of different ratios could not be told apart.

mod chart;
mod column;
mod diff;
mod draw;
mod file;
mod front;
mod group;
mod hint;
mod html;
mod names;
mod overview;
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
mod trace;

pub use chart::{Axis, Chart, Line, Panel, Point};
pub use diff::{Cell, Diff, First, Rows, diff};
pub use draw::draw;
pub use file::{PlotError, save, save_page};
pub use html::{Align, Block, Section, page};
pub use overview::{overview, question};
pub use question::{Bits, Figure, Log, Question};
pub use report::{Average, Group, Metric, Report, Request, report};
pub use scale::{Scale, Unit};
pub use scene::{Anchor, Colour, Hint, Scene, Shape};
pub use series::chart;
pub use spread::{Spread, student_t};
pub use table::{Kind, Table, read};
