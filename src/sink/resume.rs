//! Going on with a run that has stopped, and where a shorter one has ended.

use std::path::{Path, PathBuf};

use csv::StringRecord;
use fs_err as fs;
use serde_json::json;

use super::{
    State, StateError,
    folder::{
        CAPTURES, CHECKPOINTS, CLIENTS, Folder, LAYERS, MANIFEST, ROUNDS, SCENARIO, guard, manifest, manifest_of,
        scenario_of, scenario_text, unix_seconds, write_atomically,
    },
    table::{Rows, Table, read},
};
use crate::run::{Checkpoint, CheckpointError, Plan, differences_of};

/// Where a run goes on from.
pub struct Resumed {
    /// Its folder.
    pub folder: Folder,
    /// The checkpoint; none if it starts from its beginning.
    pub checkpoint: Option<Checkpoint>,
    /// The folder of the shorter run that it prolongs.
    pub from: Option<PathBuf>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// The last checkpoint that can be gone on from, if there is one.
#[derive(Default)]
struct Last {
    checkpoint: Option<Checkpoint>,
    /// Files of later ones.
    passed_over: Vec<PathBuf>,
    /// Why they are not used.
    notes: Vec<String>,
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
            if there["prolongs"].is_object() {
                own["prolongs"] = there["prolongs"].clone();
            }
        }
        let mut folder = Self::open(path, plan, there, Table::reopen)?;
        // Whoever was at work on it may have ended before the tables were ours.
        if let State::Ended(_) = State::of(path) {
            return Err(StateError::World(format!("the run in `{}` has ended meanwhile", path.display())));
        }
        let rows = folder.rounds.rows();
        if let Some(at) = rows.rows.iter().zip(1..).position(|(row, round)| rows.round(row) != round) {
            let found = rows.round(&rows.rows[at]);
            return Err(foreign(format!("`{ROUNDS}` has round {found} where round {} should be", at + 1)));
        }
        let Last { checkpoint, passed_over, notes } = folder.last_checkpoint(plan, &rows).map_err(foreign)?;
        let round = checkpoint.as_ref().map_or(0, Checkpoint::round);
        for path in passed_over {
            fs::remove_file(path)?;
        }
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
        Ok(Resumed { folder, checkpoint, from: None, notes })
    }

    /// The last checkpoint that the tables reach. Those that cannot be read are passed over.
    fn last_checkpoint(&self, plan: &Plan, rounds: &Rows) -> Result<Last, String> {
        let mut last = Last::default();
        for (shown, path) in CHECKPOINTS.map(|name| (name, self.path.join(name))) {
            if !path.exists() {
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| error.to_string())?;
            let why = match Checkpoint::from_bytes(&bytes) {
                Ok(checkpoint) if checkpoint.round() >= plan.general.rounds => None,
                Ok(checkpoint) => {
                    checkpoint.check(plan).map_err(|reason| format!("`{shown}`: {reason}"))?;
                    match self.ends_before(plan, rounds, checkpoint.round()) {
                        None => return Ok(Last { checkpoint: Some(checkpoint), ..last }),
                        Some(table) => Some(format!("`{table}` ends before its round {}", checkpoint.round())),
                    }
                }
                Err(CheckpointError::Damaged(reason)) => Some(reason),
                Err(CheckpointError::Foreign(reason)) => return Err(format!("`{shown}`: {reason}")),
            };
            last.notes.extend(why.map(|why| format!("`{}` is not used: {why}", path.display())));
            last.passed_over.push(path);
        }
        if !rounds.rows.is_empty() {
            last.notes.push(
                "without a checkpoint the run starts from its beginning; rows that stand are compared".to_owned(),
            );
        }
        Ok(last)
    }

    /// The table that lacks rows up to a round, if one does: clients and parts are counted against what the rounds say of them.
    fn ends_before(&self, plan: &Plan, rounds: &Rows, round: u32) -> Option<&'static str> {
        if rounds.rows.len() < round as usize {
            return Some(ROUNDS);
        }
        let settled = || rounds.rows.iter().take(round as usize);
        let number = |row: &StringRecord, name: &str| -> usize {
            rounds.column(name).and_then(|at| row.get(at)?.parse().ok()).unwrap_or(0)
        };
        let clients: usize = settled().map(|row| number(row, "clients_selected")).sum();
        let parts = plan.setup.uplink.codec.parts().len();
        let layers = parts * settled().filter(|row| number(row, "clients_reported") > 0).count();
        let lacks = |table: &Option<Table>, wanted: usize| {
            table.as_ref().is_some_and(|table| {
                let rows = table.rows();
                rows.rows.iter().filter(|row| rows.round(row) <= round).count() < wanted
            })
        };
        if lacks(&self.clients, clients) {
            return Some(CLIENTS);
        }
        lacks(&self.layers, layers).then_some(LAYERS)
    }

    /// Makes the folder of a run. Where a run beside it is equal but for its number of rounds and has kept a checkpoint, it goes on from
    /// there; that one stays as it is.
    ///
    /// # Errors
    /// If the folder exists or cannot be written.
    pub fn prolong_or_create(path: &Path, plan: &Plan, threads: usize) -> Result<Resumed, StateError> {
        let shorter = shorter(path, plan);
        let folder = Self::create(path, plan, threads)?;
        match shorter {
            Some((from, Some(checkpoint))) => folder.prolong(plan, from, checkpoint),
            Some((from, None)) => {
                let from = from.display();
                let note = format!("`{from}` is shorter, but has kept no checkpoint; `run.checkpoint_every` keeps one");
                Ok(Resumed { folder, checkpoint: None, from: None, notes: vec![note] })
            }
            None => Ok(Resumed { folder, checkpoint: None, from: None, notes: Vec::new() }),
        }
    }

    /// Fills the tables with the rounds of a shorter run up to its checkpoint.
    fn prolong(mut self, plan: &Plan, from: PathBuf, checkpoint: Checkpoint) -> Result<Resumed, StateError> {
        let round = checkpoint.round();
        let tables =
            [(ROUNDS, Some(&mut self.rounds)), (CLIENTS, self.clients.as_mut()), (LAYERS, self.layers.as_mut())];
        for (name, table) in tables {
            let Some(table) = table else { continue };
            let mut rows = read(&from.join(name))?;
            rows.prolong(&plan.run, round, plan.general.evaluate_every);
            table.copy(&rows)?;
            table.sync().map_err(StateError::World)?;
        }
        if plan.general.record.capture.is_some() {
            copy_captures(&from.join(CAPTURES), &self.path.join(CAPTURES))?;
        }
        let checkpoint = checkpoint.of(plan);
        write_atomically(&self.path.join(CHECKPOINTS[0]), &checkpoint.to_bytes())?;
        let run = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.manifest["prolongs"] = json!({ "run": run, "after_round": round });
        self.write_manifest()?;
        Ok(Resumed { folder: self, checkpoint: Some(checkpoint), from: Some(from), notes: Vec::new() })
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

/// The runs beside `path` that count, with the keys in which its scenario differs from the plan's and how.
fn neighbours(path: &Path, plan: &Plan, counts: impl Fn(&Path) -> bool) -> Vec<(PathBuf, Vec<(String, String)>)> {
    let entries = path.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten();
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|other| other != path && counts(other)).collect();
    folders.sort();
    let with_differences = |folder: PathBuf| {
        let differences = differences_of(&scenario_of(&folder).ok()?, &plan.resolved);
        Some((folder, differences))
    };
    folders.into_iter().filter_map(with_differences).collect()
}

/// Of the runs beside `path` that were stopped, the one most like the plan's, in words.
pub fn stopped_beside(path: &Path, plan: &Plan) -> Option<String> {
    let all = neighbours(path, plan, |_| true)
        .into_iter()
        .filter(|(folder, _)| matches!(State::of(folder), State::Stopped(_)));
    let (folder, differences) = all.min_by_key(|(_, differences)| differences.len())?;
    let texts: Vec<String> = differences.into_iter().map(|(_, text)| text).collect();
    let how = if texts.is_empty() { "its data or its version differ".to_owned() } else { texts.join("; ") };
    Some(format!("`{}` has stopped, but is another run: {how}", folder.display()))
}

/// Among the runs beside `path` that are equal to the plan's but for their number of rounds, the one that has come farthest, with its
/// checkpoint if it has one that serves.
fn shorter(path: &Path, plan: &Plan) -> Option<(PathBuf, Option<Checkpoint>)> {
    if plan.depends_on_rounds() {
        return None;
    }
    // The readable part of a name is the same for all of them: other folders need not be read.
    let readable = plan.run.rsplit_once('-').map_or(plan.run.as_str(), |(readable, _)| readable);
    let begins = |folder: &Path| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(readable));
    let mut found: Option<(PathBuf, Option<Checkpoint>)> = None;
    for (folder, differences) in neighbours(path, plan, begins) {
        if !matches!(differences.as_slice(), [(key, _)] if key == "rounds") {
            continue;
        }
        let rows = read(&folder.join(ROUNDS)).map_or(0, |rows| rows.rows.len() as u32);
        let checkpoints = CHECKPOINTS.iter().filter_map(|name| fs::read(folder.join(name)).ok());
        let serving = checkpoints
            .filter_map(|bytes| Checkpoint::from_bytes(&bytes).ok())
            .find(|checkpoint| checkpoint.round() <= rows && checkpoint.check(plan).is_ok());
        let round = |checkpoint: &Option<Checkpoint>| checkpoint.as_ref().map_or(0, Checkpoint::round);
        let is_shorter = (1..plan.general.rounds).contains(&rows);
        if (serving.is_some() || is_shorter) && found.as_ref().is_none_or(|(_, old)| round(old) < round(&serving)) {
            found = Some((folder, serving));
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
