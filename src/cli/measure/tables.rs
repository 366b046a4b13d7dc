//! Measurements as tables for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::Line;
use crate::{
    compress::bounds,
    lab::{is_unbiased, rates::Curve},
    units::thousands,
};

/// Four significant digits.
fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if !value.is_finite() => "-".to_owned(),
        value if value.abs() < 1e-4 || value.abs() >= 1e6 => format!("{value:.3e}"),
        value => {
            let digits = 3 - value.abs().log10().floor() as i32;
            format!("{value:.*}", digits.clamp(0, 8) as usize)
        }
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// A table whose columns but the first `left` are numbers.
fn aligned(header: Vec<String>, left: usize) -> Table {
    let mut table = Table::new();
    let columns = header.len();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    for column in left..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// One operator: what was measured by rows, the vectors side by side.
pub(super) fn one(entries: &[Line], draws: u32) -> String {
    let Some(first) = entries.first() else { return String::new() };
    let mut header = vec![String::new()];
    header.extend(entries.iter().map(|entry| entry.row.vector.clone()));
    let mut table = aligned(header, 1);
    let mut line = |name: &str, value: &dyn Fn(&Line) -> String| {
        let mut cells = vec![name.to_owned()];
        cells.extend(entries.iter().map(value));
        table.add_row(cells);
    };
    line("values", &|entry| thousands(entry.row.dimension));
    line("bits a value on the wire", &|entry| number(entry.measured.wire_bits));
    line("before padding", &|entry| number(entry.measured.payload_bits));
    line("of information", &|entry| number(entry.measured.information_bits));
    line("NMSE", &|entry| number(entry.measured.nmse));
    line("its standard error", &|entry| optional(entry.measured.nmse_standard_error));
    line("squared bias", &|entry| optional(entry.measured.bias));
    line("promised NMSE", &|entry| optional(entry.measured.class_bound()));
    line("least NMSE at these bits", &|entry| number(entry.measured.lower_bound()));
    line("efficiency", &|entry| optional(entry.measured.efficiency()));
    line("cost", &|entry| optional(entry.measured.cost()));
    line("encoding, million a second", &|entry| number(entry.measured.encode_million_per_second));
    line("decoding, million a second", &|entry| number(entry.measured.decode_million_per_second));
    let classes: Vec<String> = entries.iter().map(|entry| entry.measured.class.to_string()).collect();
    let class = match classes.iter().all(|class| *class == classes[0]) {
        true => classes[0].clone(),
        false => classes.join("; "),
    };
    let name = format!("{} {}", first.row.operator, first.row.settings);
    format!("{}\n{class}; {}\n\n{}\n\n{LEGEND}", name.trim_end(), drawn(draws), trimmed(&table))
}

const LEGEND: &str = "\
NMSE is the mean of |C(x)-x|^2/|x|^2. Least NMSE and efficiency (fewest bits
for this error over bits spent) hold for vectors without structure; structure
can beat them. Cost: bits a value and equivalent exact step of descent.
";

fn drawn(draws: u32) -> String {
    if draws == 1 { "one draw".to_owned() } else { format!("{} draws", thousands(u64::from(draws))) }
}

/// Lines without spaces at their ends.
fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn cells(entry: &Line) -> Vec<String> {
    let one = &entry.measured;
    vec![
        number(one.wire_bits),
        number(one.nmse),
        optional(one.nmse_standard_error),
        optional(one.efficiency()),
        optional(one.cost()),
        number(one.encode_million_per_second),
        number(one.decode_million_per_second),
    ]
}

const COLUMNS: [&str; 7] = ["bits", "NMSE", "+-", "efficiency", "cost", "encode", "decode"];

/// One row a value.
pub(super) fn sweep(entries: &[Line], key: &str, draws: u32) -> String {
    let Some(first) = entries.first() else { return String::new() };
    let several = entries.iter().any(|entry| entry.row.vector != first.row.vector);
    let mut header = vec![key.to_owned()];
    if several {
        header.push("vector".to_owned());
    }
    let left = header.len();
    header.extend(words(&COLUMNS));
    let mut table = aligned(header, left);
    for entry in entries {
        let mut row = vec![entry.label.split_once('=').map_or("", |(_, value)| value).to_owned()];
        if several {
            row.push(entry.row.vector.clone());
        }
        row.extend(cells(entry));
        table.add_row(row);
    }
    let on =
        if several { String::new() } else { format!(" on {} of {}", first.row.vector, thousands(first.row.dimension)) };
    format!("{}{on}; {}\n\n{}\n\n{SPEEDS}{LEGEND}", first.row.operator, drawn(draws), trimmed(&table))
}

const SPEEDS: &str = "Bits are bits a value on the wire; speeds are million values a second.\n";

/// Everything, for each vector the biased and the unbiased ones by themselves, best first.
pub(super) fn line_up(entries: &[Line], draws: u32) -> String {
    let mut vectors: Vec<(&str, u64)> = Vec::new();
    for entry in entries {
        let vector = (entry.row.vector.as_str(), entry.row.dimension);
        if !vectors.contains(&vector) {
            vectors.push(vector);
        }
    }
    let mut text = String::new();
    for (vector, dimension) in vectors {
        for unbiased in [false, true] {
            let is_here = |entry: &&Line| entry.row.vector == vector && entry.measured.is_unbiased() == unbiased;
            let mut chosen: Vec<&Line> = entries.iter().filter(is_here).collect();
            if chosen.is_empty() {
                continue;
            }
            // The share of the bound makes different bits comparable; what loses nothing stands last.
            let share = |entry: &Line| entry.measured.efficiency().unwrap_or(-1.0);
            chosen.sort_by(|a, b| share(b).total_cmp(&share(a)));
            let mut header = vec!["operator".to_owned()];
            header.extend(words(&COLUMNS));
            let mut table = aligned(header, 1);
            for entry in chosen {
                let mut row = vec![entry.label.trim_end().to_owned()];
                row.extend(cells(entry));
                table.add_row(row);
            }
            let kind = if unbiased { "unbiased" } else { "biased" };
            text += &format!("{kind}, best first, on {vector} of {}; {}\n", thousands(dimension), drawn(draws));
            text += &format!("{}\n\n", trimmed(&table));
        }
    }
    format!("{text}Best first by efficiency; `--rates` compares at equal bits.\n{SPEEDS}{LEGEND}")
}

/// Lanes at equal bits: the biased and the unbiased ones by themselves, best first; the vectors below each other in a row.
pub(super) fn ranking(curves: &[(&str, Vec<Curve>)], vectors: &[&str], rates: &[f64]) -> String {
    let mut text = String::new();
    for unbiased in [false, true] {
        let of_kind = |curves: &[Curve]| {
            curves.iter().find_map(|curve| curve.class).is_some_and(|class| is_unbiased(class) == unbiased)
        };
        let has_cell = |curves: &[Curve]| curves.iter().any(|curve| curve.cells.iter().any(Option::is_some));
        let mut chosen: Vec<&(&str, Vec<Curve>)> =
            curves.iter().filter(|(_, curves)| of_kind(curves) && has_cell(curves)).collect();
        if chosen.is_empty() {
            continue;
        }
        let best = best(&chosen);
        chosen.sort_by(|a, b| distance(&a.1, &best).total_cmp(&distance(&b.1, &best)));
        let mut header = words(&["operator", "vector"]);
        header.extend(rates.iter().map(f64::to_string));
        let mut table = aligned(header, 2);
        let mut bound = words(&["least of any operator", ""]);
        let least = if unbiased { bounds::unbiased } else { bounds::contractive };
        bound.extend(rates.iter().map(|&rate| number(least(rate))));
        table.add_row(bound);
        for (name, curves) in chosen {
            for (i, (curve, vector)) in curves.iter().zip(vectors).enumerate() {
                let mut row = vec![if i == 0 { (*name).to_owned() } else { String::new() }, (*vector).to_owned()];
                row.extend(curve.cells.iter().map(|cell| optional(*cell)));
                table.add_row(row);
            }
        }
        let kind = if unbiased { "unbiased" } else { "biased" };
        text += &format!("NMSE of {kind} operators at these bits a value, best first\n{}\n\n", trimmed(&table));
    }
    text + &others(curves, vectors)
}

/// The least error at every vector and rate.
fn best(curves: &[&(&str, Vec<Curve>)]) -> Vec<Vec<f64>> {
    let mut best: Vec<Vec<f64>> = curves[0].1.iter().map(|curve| vec![f64::INFINITY; curve.cells.len()]).collect();
    for (_, curves) in curves {
        for (best, curve) in best.iter_mut().zip(curves) {
            for (best, cell) in best.iter_mut().zip(&curve.cells) {
                *best = best.min(cell.unwrap_or(f64::INFINITY));
            }
        }
    }
    best
}

/// Mean over vectors and rates of the logarithm of the error over the least one.
fn distance(curves: &[Curve], best: &[Vec<f64>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (curve, best) in curves.iter().zip(best) {
        for (cell, best) in curve.cells.iter().zip(best) {
            if let Some(cell) = cell.filter(|_| *best > 0.0) {
                sum += (cell / best).ln();
                count += 1.0;
            }
        }
    }
    sum / f64::max(count, 1.0)
}

/// Operators of one rate that is none of those asked for.
fn others(curves: &[(&str, Vec<Curve>)], vectors: &[&str]) -> String {
    let mut table = aligned(words(&["operator", "vector", "bits", "NMSE"]), 2);
    let mut is_empty = true;
    for (name, curves) in curves {
        for (i, (curve, vector)) in curves.iter().zip(vectors).enumerate() {
            let Some((bits, nmse)) = curve.point.filter(|_| curve.cells.iter().all(Option::is_none)) else { continue };
            is_empty = false;
            let name = if i == 0 { (*name).to_owned() } else { String::new() };
            table.add_row([name, (*vector).to_owned(), number(bits), number(nmse)]);
        }
    }
    if is_empty {
        String::new()
    } else {
        format!("operators without a strength, at bits of their own\n{}\n\n", trimmed(&table))
    }
}
