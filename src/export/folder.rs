//! Folders that are made whole, and made anew only where nothing of a user's is lost.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use fs_err as fs;
use serde_json::{Value, json};

use super::{ExportError, MAKER, run::Run};
use crate::digest::sha256;

/// The file by which a folder of ours is known: it names its maker and the digest of all other files.
const MARK: &str = "export.json";

/// A folder in the making: beside the place where it will be, under another name.
pub(super) struct Folder {
    /// Where it is made.
    staging: PathBuf,
    /// Where it will be, without links and dots.
    out: PathBuf,
    /// Digests of its files, by path from the folder.
    files: BTreeMap<String, String>,
}

/// Makes a folder: all of it or nothing.
pub(super) fn make(
    out: &Path,
    runs: &[Run],
    force: bool,
    fill: impl FnOnce(&mut Folder) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    may_be_made(out, runs, force)?;
    let mut folder = Folder::begin(out)?;
    fill(&mut folder)?;
    folder.finish()
}

impl Folder {
    fn begin(out: &Path) -> Result<Self, ExportError> {
        let fail = |error: std::io::Error| ExportError::write(out, &error);
        let whole = std::path::absolute(out).map_err(fail)?;
        let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Err(ExportError::input(format!("`{}` is no name for a folder", out.display())));
        };
        fs::create_dir_all(parent).map_err(fail)?;
        let out = match whole.exists() {
            true => fs::canonicalize(&whole).map_err(fail)?,
            false => fs::canonicalize(parent).map_err(fail)?.join(name),
        };
        let staging = free(&out, |path| fs::create_dir(path)).map_err(fail)?;
        Ok(Self { staging, out, files: BTreeMap::new() })
    }

    /// Where the folder will be.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Writes a file; its path is from the folder, with `/`.
    pub fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let whole = self.staging.join(path);
        let fail = |error: std::io::Error| ExportError::write(&self.out.join(path), &error);
        fs::create_dir_all(whole.parent().expect("it is in the folder")).map_err(fail)?;
        fs::write(&whole, bytes).map_err(fail)?;
        self.files.insert(path.to_owned(), sha256(bytes));
        Ok(())
    }

    /// Makes a folder in it that may stay empty.
    pub fn folder(&mut self, path: &str) -> Result<(), ExportError> {
        let made = fs::create_dir_all(self.staging.join(path));
        made.map_err(|error| ExportError::write(&self.out.join(path), &error))
    }

    /// Marks the folder and puts it in its place.
    fn finish(self) -> Result<(), ExportError> {
        let fail = |error: std::io::Error| ExportError::write(&self.out, &error);
        let maker = format!("{MAKER} {}", env!("CARGO_PKG_VERSION"));
        let mark = json!({ "made_by": maker, "files": self.files.len(), "digest": digest(&self.files) });
        let mark = serde_json::to_string_pretty(&mark).expect("a JSON value is JSON") + "\n";
        fs::write(self.staging.join(MARK), mark).map_err(fail)?;
        if !self.out.exists() {
            return fs::rename(&self.staging, &self.out).map_err(fail);
        }
        let aside = free(&self.out, |path| fs::create_dir(path).and_then(|()| fs::remove_dir(path))).map_err(fail)?;
        fs::rename(&self.out, &aside).map_err(fail)?;
        if let Err(error) = fs::rename(&self.staging, &self.out) {
            fs::rename(&aside, &self.out).map_err(fail)?;
            return Err(fail(error));
        }
        fs::remove_dir_all(&aside).map_err(fail)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // After `finish` there is nothing there; after a failure this is the best that can be done.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// A path beside another for which `take` succeeds.
fn free(out: &Path, take: impl Fn(&Path) -> std::io::Result<()>) -> std::io::Result<PathBuf> {
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for n in 1.. {
        let path = out.with_file_name(format!(".{name}.fedbits-{n}"));
        match take(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("some number is free")
}

/// Refuses a place where something else is.
fn may_be_made(out: &Path, runs: &[Run], force: bool) -> Result<(), ExportError> {
    let shown = out.display();
    if !out.exists() {
        return Ok(());
    }
    if !out.is_dir() {
        return Err(ExportError::input(format!(
            "`{shown}` is a file: this format makes a folder; choose another name"
        )));
    }
    let unreadable = |error: std::io::Error| ExportError::input(error.to_string());
    let whole = fs::canonicalize(out).map_err(unreadable)?;
    let is_inside = |run: &&Run| fs::canonicalize(&run.table.path).is_ok_and(|path| path.starts_with(&whole));
    if let Some(run) = runs.iter().find(is_inside) {
        return Err(ExportError::input(format!(
            "`{shown}` holds `{}`, which is to be exported; choose another name",
            run.table.path.display()
        )));
    }
    let is_empty = fs::read_dir(out).map_err(unreadable)?.next().is_none();
    let mark = fs::read_to_string(out.join(MARK)).ok();
    let mark: Value = mark.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
    let is_ours = mark["made_by"].as_str().is_some_and(|maker| maker.starts_with(MAKER));
    if is_empty || is_ours && force {
        return Ok(());
    }
    if !is_ours {
        return Err(ExportError::input(format!(
            "`{shown}` is there and was not made by `{MAKER}`: such a folder is never replaced; choose another name"
        )));
    }
    let mut files = BTreeMap::new();
    gather(out, "", &mut files).map_err(unreadable)?;
    files.remove(MARK);
    if mark["digest"] != digest(&files) {
        return Err(ExportError::input(format!(
            "`{shown}` was made by `{MAKER}`, but has been changed since: choose another name, or --force makes it anew"
        )));
    }
    Ok(())
}

/// Digests of all files below a folder. A link is none that we made.
fn gather(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            gather(&entry.path(), &format!("{path}/"), files)?;
        } else {
            let digest = if kind.is_file() { sha256(&fs::read(entry.path())?) } else { String::new() };
            files.insert(path, digest);
        }
    }
    Ok(())
}

/// One digest of all files, from those of each.
fn digest(files: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = files.iter().map(|(path, digest)| format!("{digest} {path}\n")).collect();
    sha256(lines.concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> impl FnOnce(&mut Folder) -> Result<(), ExportError> {
        move |folder| {
            folder.folder("empty")?;
            folder.write("deep/file", text.as_bytes())
        }
    }

    fn refusal(out: &Path, force: bool) -> String {
        make(out, &[], force, fill("new")).expect_err("it is refused").to_string()
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_of_ours_is_made_anew_unless_it_was_changed() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("made/here");
        make(&out, &[], false, fill("old")).unwrap();
        assert_eq!(names(&out), ["deep", "empty", "export.json"]);
        make(&out, &[], false, fill("new")).unwrap();
        assert_eq!(fs::read_to_string(out.join("deep/file")).unwrap(), "new");
        fs::create_dir(out.join(".trash")).unwrap();
        make(&out, &[], false, fill("new")).unwrap();
        let changes: [fn(&Path); 3] = [
            |out| fs::write(out.join("deep/more"), "mine").unwrap(),
            |out| fs::write(out.join("deep/file"), "mine").unwrap(),
            |out| fs::remove_file(out.join("deep/file")).unwrap(),
        ];
        for change in changes {
            change(&out);
            assert!(refusal(&out, false).contains("changed since"));
            make(&out, &[], true, fill("new")).unwrap();
            assert_eq!(names(&out), ["deep", "empty", "export.json"]);
        }
        // Nothing is left beside it.
        assert_eq!(names(out.parent().unwrap()), ["here"]);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let place = tempfile::tempdir().unwrap();
        let (file, folder) = (place.path().join("file"), place.path().join("folder"));
        fs::write(&file, "mine").unwrap();
        fs::create_dir(&folder).unwrap();
        make(&folder, &[], false, fill("an empty folder may be used")).unwrap();
        fs::write(folder.join("export.json"), r#"{"made_by": "another"}"#).unwrap();
        for force in [false, true] {
            assert!(refusal(&file, force).contains("is a file"));
            assert!(refusal(&folder, force).contains("was not made by"));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        make(&out, &[], false, fill("old")).unwrap();
        let failed = make(&out, &[], false, |folder| {
            folder.write("half", b"")?;
            Err(ExportError::Write("the disk is full".to_owned()))
        });
        assert!(failed.is_err());
        assert_eq!(names(place.path()), ["out"]);
        assert_eq!(fs::read_to_string(out.join("deep/file")).unwrap(), "old");
    }
}
