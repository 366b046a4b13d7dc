//! A report for people, as text and Markdown, and for programs, as CSV and JSON.

use comfy_table::{CellAlignment, Table, presets};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Average, Bits, Group, Metric, Report, Spread};
use crate::units;

/// Columns of a terminal.
const WIDTH: usize = 80;

impl Report {
    /// What was asked, in a few sentences.
    pub fn summary(&self) -> Vec<String> {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (runs, groups) = (self.runs, self.groups.len());
        let way = match self.bits {
            Bits::Up => "from clients to the server",
            Bits::Down => "from the server to clients",
            Bits::Total => "both ways and between peers",
        };
        let round = match self.metric {
            Metric::Accuracy => "highest whole percent",
            Metric::Distance => "smallest power of ten",
        };
        let why = match self.is_chosen {
            true => format!(", chosen as the {round} that at least half of the groups reach with all their seeds"),
            false => String::new(),
        };
        vec![
            format!("{runs} run{} in {groups} group{}; bits are those {way}.", plural(runs), plural(groups)),
            format!("Target: {} {}{why}.", self.metric.name(), self.target_text()),
        ]
    }

    /// What the columns of the table mean, in a few sentences.
    pub fn legend(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut add = |text: &str| lines.push(text.to_owned());
        let most = self.groups.iter().map(|group| group.seeds).max().unwrap_or(1);
        let has_pairs = self.groups.iter().any(|group| group.averages().any(|average| average.seeds == 2));
        match (most, has_pairs) {
            (..=1, _) => {}
            (2, _) => add("±, a..b: from one of the two seeds to the other."),
            (_, false) => add("±, a..b: 95 % confidence of the mean over seeds (Student's t)."),
            (_, true) => add(
                "±, a..b: 95 % confidence of the mean over seeds (Student's t), for two seeds from one to the other.",
            ),
        }
        if self.is_partial() {
            add(
                "(k of n): the mean is over the k of n seeds that have a value; such groups come after those with all.",
            );
        }
        add("bits, rounds: at the end of the first evaluated round that reaches the target.");
        if self.groups.iter().any(|group| group.ratio.seeds > 0) {
            add("ratio: bits of `identity` until the target over those of the group, by seed; geometric mean.");
        }
        if !self.budgets.is_empty() {
            add(
                "at so many bits: the last evaluation that they pay for, - if none; a run that is over keeps its value.",
            );
        }
        let at_least = if self.metric == Metric::Accuracy { "at least its accuracy" } else { "at most its distance" };
        add(&format!("best: no other group ends with at most its bits and {at_least}, one of them strictly."));
        lines
    }

    /// The table for people: names of columns, and a row of cells for each group.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let has_ratio = self.groups.iter().any(|group| group.baseline.is_some());
        let what = if self.metric == Metric::Accuracy { "%" } else { "distance" };
        let mut header = ["group", "seeds"].map(str::to_owned).to_vec();
        header.extend([format!("{what} at end"), format!("bits to {}", self.target_text()), "rounds".to_owned()]);
        header.extend(has_ratio.then(|| "ratio".to_owned()));
        header.push("bits at end".to_owned());
        header.extend(self.budgets.iter().map(|budget| format!("{what} at {budget}").replace(".0 ", " ")));
        header.push("best".to_owned());
        let value = |average: &Average, group: &Group| average.text(group, "-", |spread| self.value(spread));
        let row = |group: &Group| {
            let mut cells = vec![group.name.clone(), group.seeds_text(), value(&group.last, group)];
            cells.push(group.bits_to_target.text(group, "never", bits));
            cells.push(group.rounds_to_target.text(group, "-", rounds));
            cells.extend(has_ratio.then(|| group.ratio.text(group, "-", ratio)));
            cells.push(group.total_bits.text(group, "-", bits));
            cells.extend(group.at_budgets.iter().map(|average| value(average, group)));
            cells.push(if group.is_pareto { "yes" } else { "" }.to_owned());
            cells
        };
        (header, self.groups.iter().map(row).collect())
    }

    /// For the terminal: where lines would be too long, intervals and more stand below their means.
    pub fn text(&self) -> String {
        const BREAKS: [&str; 6] = [" ±", " (", " to ", " at ", ", ", ".."];
        let (header, rows) = self.table();
        let mut table = String::new();
        for count in 0..=BREAKS.len() {
            let broken =
                |cells: &Vec<String>| cells.iter().map(|cell| broken(cell, &BREAKS[..count])).collect::<Vec<_>>();
            table = aligned(broken(&header), rows.iter().map(broken));
            if table.lines().all(|line| line.chars().count() <= WIDTH) {
                break;
            }
        }
        let lines =
            |sentences: Vec<String>| sentences.iter().flat_map(|text| wrapped(text)).collect::<Vec<_>>().join("\n");
        format!("{}\n\n{table}\n\n{}\n", lines(self.summary()), lines(self.legend()))
    }

    /// The same as Markdown.
    pub fn markdown(&self) -> String {
        let (header, rows) = self.table();
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = format!("|---|{}\n", "--:|".repeat(header.len() - 1));
        let table: String = rows.iter().map(|row| line(row)).collect();
        let (summary, legend) = (self.summary().join("\n"), self.legend().join("\n- "));
        format!("{summary}\n\n{}{rule}{table}\n- {legend}\n", line(&header))
    }

    /// One row a group.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for (i, group) in self.groups.iter().enumerate() {
            let fields = self.fields(group);
            let cell = |value: &Value| match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if i == 0 {
                writer.write_record(fields.iter().map(|(name, _)| name)).expect("memory can be written");
            }
            writer.write_record(fields.iter().map(|(_, value)| cell(value))).expect("rows have the same columns");
        }
        String::from_utf8(writer.into_inner().expect("memory can be written")).expect("cells are text")
    }

    /// The groups, with the columns of [`csv`](Self::csv) as names, and what holds for all of them.
    pub fn json(&self) -> String {
        let groups = self.groups.iter().map(|group| Ordered(self.fields(group))).collect();
        let document = Document { runs: self.runs, target_chosen: self.is_chosen, notes: &self.notes, groups };
        let text = serde_json::to_string_pretty(&document).expect("plain values are JSON");
        format!("{text}\n")
    }

    /// Everything of a group, by column; units stand in the names.
    fn fields(&self, group: &Group) -> Vec<(String, Value)> {
        let metric = self.metric.name();
        let way = match self.bits {
            Bits::Up => "up",
            Bits::Down => "down",
            Bits::Total => "total",
        };
        let mut fields = vec![("group".to_owned(), json!(group.name))];
        fields.extend(self.columns.iter().cloned().zip(group.values.iter().map(|value| json!(value))));
        let mut add = |name: &str, value: Value| fields.push((name.to_owned(), value));
        add("seeds", json!(group.seeds));
        add("seeds_diverged", json!(group.diverged));
        add("seeds_unfinished", json!(group.unfinished));
        add("bits_counted", json!(way));
        add(&format!("final_{metric}_seeds"), json!(group.last.seeds));
        group.last.fields(&format!("final_{metric}"), &mut add);
        add(&format!("target_{metric}"), json!(self.target));
        add("seeds_reached", json!(group.bits_to_target.seeds));
        group.bits_to_target.fields("bits_to_target", &mut add);
        group.rounds_to_target.fields("rounds_to_target", &mut add);
        add("baseline", json!(group.baseline));
        add("ratio_to_baseline_seeds", json!(group.ratio.seeds));
        group.ratio.fields("ratio_to_baseline", &mut add);
        group.total_bits.fields("bits_at_end", &mut add);
        for (budget, average) in self.budgets.iter().zip(&group.at_budgets) {
            let name = format!("{metric}_within_{}_bits", budget.0);
            add(&format!("{name}_seeds"), json!(average.seeds));
            average.fields(&name, &mut add);
        }
        add("is_best", json!(group.is_pareto));
        fields
    }

    /// Whether some mean is over some seeds only.
    fn is_partial(&self) -> bool {
        let is_some = |group: &Group| group.averages().any(|average| (1..group.seeds).contains(&average.seeds));
        self.groups.iter().any(is_some)
    }

    fn target_text(&self) -> String {
        match self.metric {
            // Digits that only the product has are cut off.
            Metric::Accuracy => format!("{} %", (self.target * 1e8).round() / 1e6),
            Metric::Distance => format!("{:e}", self.target),
        }
    }

    fn value(&self, spread: Spread) -> String {
        match self.metric {
            Metric::Accuracy => with_half(spread, "", |value| format!("{:.2}", 100.0 * value)),
            Metric::Distance => with_half(spread, "", |value| format!("{value:.2e}")),
        }
    }
}

impl Average {
    fn text(&self, group: &Group, none: &str, show: impl Fn(Spread) -> String) -> String {
        let part =
            if self.seeds < group.seeds { format!(" ({} of {})", self.seeds, group.seeds) } else { String::new() };
        self.spread.map_or(none.to_owned(), |spread| show(spread) + &part)
    }

    fn fields(&self, name: &str, add: &mut impl FnMut(&str, Value)) {
        let ends = self.spread.map(|spread| [spread.mean, spread.low, spread.high]);
        for (i, end) in ["mean", "low", "high"].iter().enumerate() {
            add(&format!("{name}_{end}"), json!(ends.map(|ends| ends[i])));
        }
    }
}

impl Group {
    /// Means over seeds that may lack some of them.
    fn averages(&self) -> impl Iterator<Item = &Average> {
        [&self.last, &self.bits_to_target, &self.ratio, &self.total_bits].into_iter().chain(&self.at_budgets)
    }

    fn seeds_text(&self) -> String {
        let mut parts = vec![self.seeds.to_string()];
        for (n, what) in [(self.diverged, "diverged"), (self.unfinished, "unfinished")] {
            parts.extend((n > 0).then(|| format!("{n} {what}")));
        }
        parts.join(", ")
    }
}

#[derive(Serialize)]
struct Document<'a> {
    runs: usize,
    target_chosen: bool,
    notes: &'a [String],
    groups: Vec<Ordered>,
}

/// Names and values that keep their order.
struct Ordered(Vec<(String, Value)>);

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A table whose first column is text and whose others are numbers; lines without spaces at their ends.
fn aligned(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    let columns = header.len();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for column in 1..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A sentence in lines of the terminal.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines
}

/// A cell with a new line at each of some marks: before those that belong to what follows, else after them.
fn broken(cell: &str, marks: &[&str]) -> String {
    marks.iter().fold(cell.to_owned(), |cell, mark| match *mark {
        ", " | " at " | ".." => cell.replace(mark, &format!("{}\n", mark.trim_end())),
        mark => cell.replace(mark, &mark.replacen(' ', "\n", 1)),
    })
}

/// A mean and half of its interval, if that can be seen.
fn with_half(spread: Spread, unit: &str, show: impl Fn(f64) -> String) -> String {
    let (mean, half) = (show(spread.mean), show((spread.high - spread.low) / 2.0));
    if half == show(0.0) { format!("{mean}{unit}") } else { format!("{mean}{unit} ±{half}") }
}

/// Bits in the unit of their mean.
fn bits(spread: Spread) -> String {
    let (unit, size) = units::Bits(spread.mean.round() as u64).unit();
    let scale = |value: f64| value / size as f64;
    let digits = if size == 1 { 0 } else { decimals(scale(spread.mean)) };
    with_half(spread, &format!(" {unit}"), |value| format!("{:.digits$}", scale(value)))
}

fn rounds(spread: Spread) -> String {
    let digits = usize::from(spread.low < spread.high);
    with_half(spread, "", |value| format!("{value:.digits$}"))
}

/// A geometric mean and its interval, which is not symmetric.
fn ratio(spread: Spread) -> String {
    let [mean, low, high] = [spread.mean, spread.low, spread.high].map(|value| format!("{value:.*}", decimals(value)));
    if low == high { mean } else { format!("{mean}, {low}..{high}") }
}

/// Digits after the point with which a number has three digits in all.
fn decimals(value: f64) -> usize {
    match value.abs() {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    }
}
