//! What tells runs apart, and what lines are called by it.

use std::{cmp::Ordering, collections::BTreeSet};

use super::{Kind, PlotError, Table, table::last_part};

/// Settings, or else columns, in which tables of rounds differ and which are needed to tell them apart.
pub(super) fn differences(tables: &[Table], shown: &[String]) -> Vec<String> {
    if tables.iter().all(|table| table.kind == Kind::Other) {
        return Vec::new();
    }
    let has_settings = tables.iter().all(|table| !table.settings.is_empty() || !table.axes().is_empty());
    let mut candidates: Vec<&str> = Vec::new();
    if has_settings {
        candidates = tables.iter().flat_map(|table| table.settings.keys().map(String::as_str)).collect();
        candidates
            .sort_by_key(|key| (last_part(key) != "operator", last_part(key) != "name", !key.contains('.'), *key));
        candidates.dedup();
    } else {
        candidates.extend(["operator", "method", "scenario"]);
    }
    candidates.retain(|name| *name != "seed" && shown.iter().all(|other| other != name));
    let cell = |table: &Table, name: &str| -> String {
        let first = table.column(name).zip(table.rows.first()).map(|(column, row)| column.cell(row).to_owned());
        first.unwrap_or_default()
    };
    // Which tables are told apart so far; a column that does not tell more of them apart would only make names longer.
    let mut classes: Vec<Vec<String>> = vec![Vec::new(); tables.len()];
    let count = |classes: &[Vec<String>]| classes.iter().collect::<BTreeSet<_>>().len();
    let mut chosen = Vec::new();
    let mut try_column = |name: &str, classes: &mut Vec<Vec<String>>| {
        let mut finer = classes.clone();
        for (class, table) in finer.iter_mut().zip(tables) {
            class.push(cell(table, name));
        }
        if count(&finer) > count(classes) {
            *classes = finer;
            chosen.push(name.to_owned());
        }
    };
    for name in candidates {
        try_column(name, &mut classes);
    }
    if !has_settings {
        // Two runs of one seed that nothing else tells apart are no repetitions that could be averaged.
        let seeds: Vec<_> =
            tables.iter().zip(&classes).map(|(table, class)| (class.clone(), cell(table, "seed"))).collect();
        let repeated = seeds.iter().enumerate().any(|(i, seed)| seeds[..i].contains(seed));
        if repeated {
            try_column("run", &mut classes);
        }
    }
    chosen
}

/// A remark on a run that repeats another one of the same seed and settings, of which only the first counts.
///
/// # Errors
/// If their settings differ: then they are no repetitions, and a group of both would average what does not belong together.
pub(super) fn repetition(first: &Table, second: &Table) -> Result<String, PlotError> {
    let keys: BTreeSet<&String> =
        first.settings.keys().chain(second.settings.keys()).filter(|key| *key != "seed").collect();
    let differ: Vec<String> = keys
        .into_iter()
        .filter(|key| first.settings.get(*key) != second.settings.get(*key))
        .map(|key| format!("`{key}`"))
        .collect();
    if differ.is_empty() {
        return Ok(format!("`{}` repeats `{}`, which alone counts", shown(second), shown(first)));
    }
    Err(PlotError::input(format!(
        "runs of one seed that differ in {} would count as one group: name one of these with --group too, or leave out --group",
        differ.join(", ")
    )))
}

/// A run by its file, or in a file of several by its name.
fn shown(table: &Table) -> String {
    if table.axes().is_empty() { table.path.display().to_string() } else { table.source.clone() }
}

/// Names of groups from the values of their columns.
pub(super) fn names(columns: &[String], rows: &[&[String]]) -> Vec<String> {
    let name = |row: &&[String]| {
        let part = |(column, value): (&String, &String)| {
            let clash = columns.iter().filter(|other| last_part(other) == last_part(column)).count() > 1;
            // The uplink is what one speaks of unless said otherwise.
            let label = match clash && !column.starts_with("uplink.") {
                true => column.replace(['.', '_'], " "),
                false => last_part(column).replace('_', " "),
            };
            let speaks = value.parse::<f64>().is_err() && value.parse::<bool>().is_err();
            match (value.is_empty(), speaks && (!clash || column.starts_with("uplink."))) {
                (true, _) => None,
                (_, true) => Some(value.clone()),
                _ => Some(format!("{label} {value}")),
            }
        };
        columns.iter().zip(row.iter()).filter_map(part).collect::<Vec<_>>().join(", ")
    };
    rows.iter().map(name).collect()
}

/// Nothing first, then numbers by size, then other text by its letters.
pub(super) fn natural(a: &[String], b: &[String]) -> Ordering {
    let number = |text: &String| text.parse::<f64>().ok();
    let order = |(a, b): (&String, &String)| match (number(a), number(b)) {
        (Some(x), Some(y)) => x.total_cmp(&y),
        (Some(_), None) if !b.is_empty() => Ordering::Less,
        (None, Some(_)) if !a.is_empty() => Ordering::Greater,
        _ => a.cmp(b),
    };
    a.iter().zip(b).map(order).fold(Ordering::Equal, Ordering::then)
}

/// Which names belong together, numbered in their order: rows that differ in numbers alone, such as the strengths of an
/// operator.
pub(super) fn families(rows: &[&[String]]) -> Vec<usize> {
    let columns = rows.first().map_or(0, |row| row.len());
    let is_number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
    let words: Vec<usize> = (0..columns).filter(|&i| !rows.iter().all(|row| is_number(&row[i]))).collect();
    let keys = rows.iter().map(|row| words.iter().map(|&i| &row[i]).collect::<Vec<_>>());
    let (mut seen, mut families): (Vec<Vec<&String>>, Vec<usize>) = Default::default();
    for key in keys {
        let family = seen.iter().position(|other| *other == key).unwrap_or(seen.len());
        families.push(family);
        if family == seen.len() {
            seen.push(key);
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_by_what_tells_them_apart() {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let named = |columns: &[&str], row: &[&str]| names(&text(columns), &[&text(row)]).remove(0);
        assert_eq!(named(&["uplink.operator", "uplink.ratio"], &["top-k", "0.01"]), "top-k, ratio 0.01");
        assert_eq!(named(&["uplink.operator", "uplink.ratio"], &["sign", ""]), "sign");
        assert_eq!(named(&["uplink.operator", "downlink.operator"], &["sign", "qsgd"]), "sign, downlink operator qsgd");
        assert_eq!(named(&["method.local_epochs"], &["5"]), "local epochs 5");
        assert_eq!(natural(&text(&["0.5"]), &text(&["10"])), Ordering::Less);
    }

    #[test]
    fn order_and_families_follow_numbers_and_words() {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut words = ["auto", "10", "", "9", "1a", "NaN"].map(|word| text(&[word]));
        words.sort_by(|a, b| natural(a, b));
        assert_eq!(words.concat(), ["", "9", "10", "NaN", "1a", "auto"]);
        let rows = [["qsgd", "", "3"], ["qsgd", "", "7"], ["sign", "", ""], ["top-k", "0.1", ""]].map(|row| text(&row));
        assert_eq!(families(&rows.each_ref().map(Vec::as_slice)), [0, 0, 1, 2]);
        let ratios = [["0.1"], ["0.2"]].map(|row| text(&row));
        assert_eq!(families(&ratios.each_ref().map(Vec::as_slice)), [0, 0]);
    }
}
