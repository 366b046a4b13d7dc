//! A figure as plain data: what is drawn, not how.

use super::Unit;

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How to read it, such as what a band means; may be empty.
    pub subtitle: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// Names of the lines of all panels.
    pub names: Vec<String>,
    /// Which names belong together, such as the strengths of an operator: one number a name. Families differ in colour.
    pub families: Vec<usize>,
    /// The names whose points no other beats in both directions, where the figure asks for them.
    pub front: Vec<usize>,
    /// Name of the reference line, if there is one.
    pub reference: Option<String>,
    /// Panels of equal axes, at least one.
    pub panels: Vec<Panel>,
    /// Where the data come from: names of runs, names and digests of other files.
    pub sources: Vec<String>,
    /// What the reader of the command line should know and the figure does not say.
    pub notes: Vec<String>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name without unit.
    pub label: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// One pair of axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Its heading; empty if it is the only one.
    pub title: String,
    /// Lines.
    pub lines: Vec<Line>,
    /// The reference line, from left to right.
    pub reference: Vec<(f64, f64)>,
}

/// One line, or one piece of a line that is broken where it has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its place in [`Chart::names`].
    pub name: usize,
    /// Points in the order in which they are joined.
    pub points: Vec<Point>,
}

/// A value and its band; the band of a value without spread is the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end of the band.
    pub high: f64,
}
