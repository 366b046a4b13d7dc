//! Going on with a run that has stopped, and where a shorter one has ended.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::json;

use super::{
    State, StateError,
    folder::{
        CAPTURES, CHECKPOINTS, CLIENTS, Folder, LAYERS, MANIFEST, ROUNDS, SCENARIO, guard, manifest, manifest_of,
        scenario_of, scenario_text, unix_seconds, write_atomically,
    },
    table::{Table, read},
};
use crate::run::{Checkpoint, CheckpointError, Plan, differences_of};

/// Where a run goes on from.
pub struct Resumed {
    /// Its folder.
    pub folder: Folder,
    /// The checkpoint; none if it starts from its beginning.
    pub checkpoint: Option<Checkpoint>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Folder {
    /// Opens the folder of a run that was stopped, to go on with it from its last checkpoint that can be read, or from the beginning.
    /// What stands in its tables stays; rows that come again are compared with it.
    ///
    /// # Errors
    /// If what is in it belongs to another scenario, other data or another version of the program, if another process is at work on
    /// it, or if it cannot be read or written.
    pub fn reopen(path: &Path, plan: &Plan, threads: usize) -> Result<Resumed, StateError> {
        let foreign = |reason: String| {
            let shown = path.display();
            StateError::Foreign(format!(
                "`{shown}` cannot be gone on with: {reason}; --force runs it anew in another folder"
            ))
        };
        let _guard = guard(path);
        let scenario = path.join(SCENARIO);
        if scenario.exists() {
            let there = scenario_of(path).map_err(foreign)?;
            let differences = differences_of(&there, &plan.resolved);
            if !differences.is_empty() {
                let texts: Vec<String> = differences.into_iter().map(|(_, text)| text).collect();
                return Err(foreign(texts.join("; ")));
            }
        }
        let mut own = manifest(plan, threads);
        let there = manifest_of(path);
        if there.is_object() {
            own["started_unix_seconds"] = there["started_unix_seconds"].clone();
            own["resumed"] = there["resumed"].clone();
        }
        let mut folder = Self::open(path, plan, there, Table::reopen)?;
        let rows = folder.rounds.rows();
        if let Some(at) = rows.rows.iter().zip(1..).position(|(row, round)| rows.round(row) != round) {
            let found = rows.round(&rows.rows[at]);
            return Err(foreign(format!("`{ROUNDS}` has round {found} where round {} should be", at + 1)));
        }
        let (checkpoint, notes) = folder.last_checkpoint(plan, rows.rows.len() as u32).map_err(foreign)?;
        let round = checkpoint.as_ref().map_or(0, Checkpoint::round);
        for table in [Some(&mut folder.rounds), folder.clients.as_mut(), folder.layers.as_mut()].into_iter().flatten() {
            table.settle(round)?;
        }
        remove_leftovers(path)?;
        if !scenario.exists() {
            write_atomically(&scenario, scenario_text(plan).as_bytes())?;
        }
        let resumed = json!({ "after_round": round, "threads": threads, "unix_seconds": unix_seconds() });
        match own["resumed"].as_array_mut() {
            Some(all) => all.push(resumed),
            None => own["resumed"] = json!([resumed]),
        }
        folder.manifest = own;
        folder.write_manifest()?;
        Ok(Resumed { folder, checkpoint, notes })
    }

    /// The last checkpoint that the first `rows` rounds reach, and why not a later one. Checkpoints that cannot be read are passed over.
    fn last_checkpoint(&self, plan: &Plan, rows: u32) -> Result<(Option<Checkpoint>, Vec<String>), String> {
        let mut notes = Vec::new();
        for name in CHECKPOINTS {
            let path = self.path.join(name);
            let Ok(bytes) = fs::read(&path) else { continue };
            let checkpoint = match Checkpoint::from_bytes(&bytes) {
                Ok(checkpoint) => checkpoint,
                Err(CheckpointError::Damaged(reason)) => {
                    notes.push(format!("`{}` is not used: {reason}", path.display()));
                    continue;
                }
                Err(CheckpointError::Foreign(reason)) => return Err(format!("`{name}`: {reason}")),
            };
            let round = checkpoint.round();
            if round >= plan.general.rounds {
                continue;
            }
            checkpoint.check(plan).map_err(|reason| format!("`{name}`: {reason}"))?;
            if round > rows {
                notes.push(format!("`{}` is not used: `{ROUNDS}` ends before its round {round}", path.display()));
                continue;
            }
            return Ok((Some(checkpoint), notes));
        }
        if rows > 0 {
            notes.push(
                "without a checkpoint the run starts from its beginning; rows that stand are compared".to_owned(),
            );
        }
        Ok((None, notes))
    }

    /// Makes the folder of a run, which goes on where a shorter one has stopped if there is one: see [`Folder::prolong`].
    ///
    /// # Errors
    /// If the folder exists or cannot be written.
    pub fn prolong_or_create(path: &Path, plan: &Plan, threads: usize) -> Result<Resumed, StateError> {
        if let Some(resumed) = Self::prolong(path, plan, threads)? {
            return Ok(resumed);
        }
        Ok(Resumed { folder: Self::create(path, plan, threads)?, checkpoint: None, notes: Vec::new() })
    }

    /// Makes the folder of a run that goes on where one with fewer rounds, and equal otherwise, has stopped or ended; that one stays as
    /// it is. `None` if there is no such run beside `path`, or none with a checkpoint.
    ///
    /// # Errors
    /// If the folder exists or cannot be written.
    pub fn prolong(path: &Path, plan: &Plan, threads: usize) -> Result<Option<Resumed>, StateError> {
        let Some((shorter, checkpoint)) = longest_shorter(path, plan) else { return Ok(None) };
        let mut folder = Self::create(path, plan, threads)?;
        let round = checkpoint.round();
        let run = path.file_name().unwrap_or_default().to_string_lossy();
        let tables =
            [(ROUNDS, Some(&mut folder.rounds)), (CLIENTS, folder.clients.as_mut()), (LAYERS, folder.layers.as_mut())];
        for (name, table) in tables {
            let Some(table) = table else { continue };
            let mut rows = read(&shorter.join(name))?;
            rows.prolong(&run, round, plan.general.evaluate_every);
            table.copy(&rows)?;
            table.sync().map_err(StateError::World)?;
        }
        if plan.general.record.capture.is_some() {
            copy_captures(&shorter.join(CAPTURES), &path.join(CAPTURES))?;
        }
        let checkpoint = checkpoint.of(plan);
        write_atomically(&path.join(CHECKPOINTS[0]), &checkpoint.to_bytes())?;
        let from = shorter.file_name().unwrap_or_default().to_string_lossy().into_owned();
        folder.manifest["prolongs"] = json!({ "run": from, "after_round": round });
        folder.write_manifest()?;
        let notes = vec![format!("goes on after round {round} of `{}`, which stays as it is", shorter.display())];
        Ok(Some(Resumed { folder, checkpoint: Some(checkpoint), notes }))
    }
}

/// Removes what a kill in the middle of an atomic write leaves: hidden files that have not got their names.
fn remove_leftovers(path: &Path) -> std::io::Result<()> {
    let names: Vec<String> = [SCENARIO, MANIFEST]
        .iter()
        .chain(&CHECKPOINTS)
        .map(|name| format!(".{name}."))
        .chain([".round-".to_owned()])
        .collect();
    for folder in [path.to_owned(), path.join(CAPTURES)].into_iter().filter(|folder| folder.exists()) {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if names.iter().any(|unnamed| name.starts_with(unnamed)) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// Every run beside `path`, with the keys in which its scenario differs from the plan's and how.
fn neighbours(path: &Path, plan: &Plan) -> Vec<(PathBuf, Vec<(String, String)>)> {
    let entries = path.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten();
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|other| other != path).collect();
    folders.sort();
    let with_differences = |folder: PathBuf| {
        let differences = differences_of(&scenario_of(&folder).ok()?, &plan.resolved);
        Some((folder, differences))
    };
    folders.into_iter().filter_map(with_differences).collect()
}

/// Of the runs beside `path` that were stopped, the one most like the plan's, in words.
pub fn stopped_beside(path: &Path, plan: &Plan) -> Option<String> {
    let all = neighbours(path, plan).into_iter().filter(|(folder, _)| matches!(State::of(folder), State::Stopped(_)));
    let (folder, differences) = all.min_by_key(|(_, differences)| differences.len())?;
    let texts: Vec<String> = differences.into_iter().map(|(_, text)| text).collect();
    let how = if texts.is_empty() { "its data or its version differ".to_owned() } else { texts.join("; ") };
    Some(format!("`{}` has stopped, but is another run: {how}", folder.display()))
}

/// Among the runs beside `path` that are equal to the plan's but for fewer rounds, the one that has come farthest, with its checkpoint.
fn longest_shorter(path: &Path, plan: &Plan) -> Option<(PathBuf, Checkpoint)> {
    if plan.depends_on_rounds() {
        return None;
    }
    let mut found: Option<(PathBuf, Checkpoint)> = None;
    for (folder, differences) in neighbours(path, plan) {
        if differences.iter().any(|(key, _)| key != "rounds") {
            continue;
        }
        let rows = read(&folder.join(ROUNDS)).map_or(0, |rows| rows.rows.len() as u32);
        let checkpoints = CHECKPOINTS.iter().filter_map(|name| fs::read(folder.join(name)).ok());
        let usable = checkpoints
            .filter_map(|bytes| Checkpoint::from_bytes(&bytes).ok())
            .find(|checkpoint| checkpoint.round() <= rows && checkpoint.check(plan).is_ok());
        if let Some(checkpoint) = usable.filter(|new| found.as_ref().is_none_or(|(_, old)| old.round() < new.round())) {
            found = Some((folder, checkpoint));
        }
    }
    found
}

fn copy_captures(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
