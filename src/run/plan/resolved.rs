//! The scenario with every default filled in, and the hash that names its run.

use std::{collections::BTreeSet, path::Path};

use super::RESULTS_VERSION;
use crate::{
    catalogue,
    digest::sha256,
    scenario::{General, flat},
};

/// Keys and sections that are no part of a run's identity: where files lie, and how the run is carried out.
const UNCOUNTED: [&str; 3] = ["data.directory", "partition.path", "run"];

/// The scenario with every default filled in, section by section.
pub(super) struct Resolved {
    table: toml::Table,
}

impl Resolved {
    pub(super) fn new(general: &General) -> Self {
        Self { table: catalogue::write(general) }
    }

    pub(super) fn add(&mut self, section: &str, settings: toml::Table) {
        let table = self.table.entry(section).or_insert_with(|| toml::Table::new().into());
        table.as_table_mut().expect("sections are tables").extend(settings);
    }

    /// A section as it stands.
    pub(super) fn section(&self, section: &str) -> toml::Table {
        self.table.get(section).and_then(toml::Value::as_table).cloned().unwrap_or_default()
    }

    pub(super) fn remove(&mut self, section: &str, key: &str) {
        if let Some(section) = self.table.get_mut(section).and_then(toml::Value::as_table_mut) {
            section.remove(key);
        }
    }

    /// The table, and eight hexadecimal digits of its hash together with the digests of what it names: where files lie does not
    /// count, only what is in them, nor how the run is carried out.
    pub(super) fn finish(self, digests: &[&str]) -> (toml::Table, String) {
        let mut counted = Self { table: self.table.clone() };
        for key in UNCOUNTED {
            match key.split_once('.') {
                Some((section, key)) => counted.remove(section, key),
                None => drop(counted.table.remove(key)),
            }
        }
        let text = toml::to_string(&counted.table).expect("tables of plain values are TOML");
        let text = format!("{RESULTS_VERSION}\n{}\n{text}", digests.join("\n"));
        (self.table, sha256(text.as_bytes())[..8].to_owned())
    }

    /// Replaces a path by where it leads from the root, so that the stored scenario works from any folder.
    pub(super) fn absolute(&mut self, section: &str, key: &str, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Some(value) = self.table.get_mut(section).and_then(|section| section.get_mut(key)) {
            *value = path.to_string_lossy().into_owned().into();
        }
    }
}

/// Keys in which two resolved scenarios differ, dotted, each with a sentence that says how; those that are no part of a run's
/// identity apart.
pub fn differences_of(there: &toml::Table, here: &toml::Table) -> Vec<(String, String)> {
    let (left, right) = (flat(there), flat(here));
    let counts = |key: &str| {
        !UNCOUNTED
            .iter()
            .any(|other| key.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).filter(|key| counts(key)).collect();
    let shown = |value: Option<&toml::Value>| value.map_or("absent".to_owned(), |value| format!("`{value}`"));
    keys.into_iter()
        .filter(|key| left.get(*key) != right.get(*key))
        .map(|key| (key.clone(), format!("`{key}` is {} there, {} here", shown(left.get(key)), shown(right.get(key)))))
        .collect()
}
