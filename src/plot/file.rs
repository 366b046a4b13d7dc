//! Charts as files, and what can go wrong on the way to them.

use std::{io::Write, path::Path};

use serde_json::json;

use super::{Chart, draw, png::png, svg::svg};

/// The program that made a figure; a file that holds this text may be made anew.
pub(super) const MAKER: &str = concat!("fedbits plot ", env!("CARGO_PKG_VERSION"));

/// A figure that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    /// The input or the question is wrong.
    #[error("{0}")]
    Input(String),
    /// The question is right, but the tables hold no value that answers it.
    #[error("{0}")]
    NoValues(String),
    /// The question is right, but the figure would have more lines than can be told apart.
    #[error("{0}")]
    TooManyLines(String),
    /// A file cannot be written.
    #[error("{0}")]
    Write(String),
}

impl PlotError {
    pub(super) fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }
}

/// Draws a chart into a file, `.svg` or `.png`, of so many pixels; the size fits the chart if none is given.
///
/// A figure that this program made is made anew; anything else is overwritten only by `force`.
///
/// # Errors
/// If the ending is another, if something else is there, or if the file cannot be written.
pub fn save(chart: &Chart, size: Option<(u32, u32)>, path: &Path, force: bool) -> Result<(), PlotError> {
    check_free(path, force)?;
    let shown = path.display();
    let about = json!({ "made_by": MAKER, "sources": chart.sources }).to_string();
    let scene = draw(chart, size);
    let bytes = match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => svg(&scene, &chart.title, &about).into_bytes(),
        Some("png") => png(&scene, &chart.title, &about)
            .map_err(|reason| PlotError::Write(format!("cannot draw `{shown}`: {reason}")))?,
        _ => return Err(PlotError::input(format!("`{shown}` ends in none of `.svg`, `.png` and `.html`"))),
    };
    write(path, &bytes)
}

/// Writes a page as a whole, over one that this program made; over anything else only by `force`.
///
/// # Errors
/// If something else is there, or if the file cannot be written.
pub fn save_page(page: &str, path: &Path, force: bool) -> Result<(), PlotError> {
    check_free(path, force)?;
    write(path, page.as_bytes())
}

fn check_free(path: &Path, force: bool) -> Result<(), PlotError> {
    if path.exists() && !force && !is_ours(path) {
        return Err(PlotError::input(format!(
            "`{}` is there and was not made by `fedbits plot`: it is not overwritten; choose another name, or --force",
            path.display()
        )));
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PlotError> {
    let fail = |error: std::io::Error| PlotError::Write(format!("cannot write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs_err::create_dir_all(folder).map_err(fail)?;
    }
    let mut file = atomic_write_file::AtomicWriteFile::open(path).map_err(fail)?;
    file.write_all(bytes).and_then(|()| file.commit()).map_err(fail)
}

/// Whether this program made a figure, of whatever version.
fn is_ours(path: &Path) -> bool {
    let wanted = b"fedbits plot ";
    fs_err::read(path).is_ok_and(|bytes| bytes.windows(wanted.len()).any(|window| window == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_anew_over_a_page_of_ours_and_over_nothing_else() {
        let place = tempfile::tempdir().expect("a folder can be made");
        let path = place.path().join("deep/report.html");
        let page = super::super::page("a", "", &[]);
        save_page(&page, &path, false).unwrap();
        save_page(&page, &path, false).unwrap();
        fs_err::write(&path, "<p>by hand</p>").unwrap();
        let error = save_page(&page, &path, false).unwrap_err();
        assert!(matches!(&error, PlotError::Input(text) if text.contains("--force")), "{error}");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "<p>by hand</p>");
        save_page(&page, &path, true).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), page);
    }
}
