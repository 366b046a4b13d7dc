//! `fedbits data`

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};

use super::{DONE, FAILED, Failure, WRONG_INPUT, print, refuse};
use crate::{
    catalogue::nearest,
    data::{self, DataError, Fetched, Origin, Progress, QMNIST, Remote, Status},
    units::Bytes,
};

/// List, fetch, verify and import data sets
#[derive(Args)]
pub struct Arguments {
    /// The data directory. Default: the environment variable FEDBITS_DATA, else `data`.
    #[arg(long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List data sets and whether their files are there
    List,
    /// Download a data set, unless it is there; every file is checked before it gets its name
    Fetch {
        /// Name of the data set.
        name: String,
    },
    /// Compare the files of data sets with their published digests
    Verify {
        /// Name of the data set; all if absent.
        name: Option<String>,
    },
    /// Copy the original files of a data set from a folder, after checking them
    Import {
        /// Name of the data set.
        name: String,
        /// Folder that holds the files.
        folder: PathBuf,
    },
    /// Build the class-balanced starter subset of CIFAR-10 from the complete data set
    Subset {
        /// Name of the complete data set: `cifar-10`.
        name: String,
    },
}

/// Everything that has files to fetch.
fn remotes() -> Vec<&'static Remote> {
    let sources = data::CATALOGUE.iter().filter_map(|entry| entry.build_example().ok());
    sources.filter_map(|source| source.part.remote()).chain([&QMNIST]).collect()
}

fn find(name: &str) -> Result<&'static Remote, Failure> {
    let remotes = remotes();
    let names: Vec<&str> = remotes.iter().map(|remote| remote.name).collect();
    remotes.iter().find(|remote| remote.name == name).copied().ok_or_else(|| {
        let near =
            nearest(name, names.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Failure::input(format!("no data set with files is called `{name}`, only {}{near}", names.join(", ")))
    })
}

pub(super) fn data(arguments: &Arguments) -> u8 {
    let directory = data::directory(arguments.directory.as_deref());
    let done = match &arguments.command {
        Command::List => {
            print(&list(&directory));
            return DONE;
        }
        Command::Verify { name } => return verify(name.as_deref(), &directory),
        Command::Fetch { name } => find(name).map(|remote| {
            let bar = bar();
            let fetched = data::fetch(remote, &directory, &mut |progress| show(bar.as_ref(), &progress));
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
            fetched
        }),
        Command::Import { name, folder } => find(name).map(|remote| data::import(remote, folder, &directory)),
        Command::Subset { name } => return subset(name, &directory),
    };
    match done {
        Err(failure) => refuse([failure.refusal]),
        Ok(Err(error)) => fail(error),
        Ok(Ok(fetched)) => {
            print(&fetched.iter().map(describe).collect::<String>());
            DONE
        }
    }
}

fn fail(error: DataError) -> u8 {
    let report = format!("{:?}", miette::Report::new(error));
    let _ = writeln!(std::io::stderr(), "{}", report.trim_end());
    FAILED
}

fn describe(file: &Fetched) -> String {
    let how = match &file.origin {
        Origin::Present => "was there".to_owned(),
        Origin::Address(address) => format!("from {address}"),
        Origin::Folder(folder) => format!("from {}", folder.display()),
    };
    let mut text = format!("{}: {how}\n", file.path.display());
    if let Some(aside) = &file.set_aside {
        text += &format!("  a file of that name with other content is now {}\n", aside.display());
    }
    text
}

fn list(directory: &Path) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["name", "files", "size", "state"]);
    for remote in remotes() {
        let status = data::verify(remote, directory);
        let right = status.iter().filter(|(_, status)| *status == Status::Right).count();
        let state = match right {
            n if n == status.len() => "complete".to_owned(),
            n => format!("{n} of {} original files", status.len()),
        };
        let bytes = remote.files.iter().map(|file| file.bytes).sum();
        table.add_row([remote.name.to_owned(), remote.files.len().to_string(), Bytes(bytes).to_string(), state]);
    }
    let shown = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    format!(
        "{}\n{table}\nData sets also load from other forms of their files, such as unpacked batches; `fedbits check` tells.\n",
        shown.display()
    )
}

fn verify(name: Option<&str>, directory: &Path) -> u8 {
    let chosen = match name.map(find).transpose() {
        Ok(one) => one.map_or_else(remotes, |one| vec![one]),
        Err(failure) => return refuse([failure.refusal]),
    };
    let (mut text, mut wrong) = (String::new(), false);
    for remote in chosen {
        for (file, status) in data::verify(remote, directory) {
            let state = match status {
                Status::Right => "right".to_owned(),
                Status::Missing => "missing".to_owned(),
                Status::Wrong(what) => format!("wrong: {what}"),
            };
            // What was never fetched is not wrong, unless it was asked for by name.
            wrong |= state.starts_with("wrong") || (name.is_some() && state == "missing");
            text += &format!("{}/{file}: {state}\n", remote.folder);
        }
    }
    print(&text);
    if wrong { WRONG_INPUT } else { DONE }
}

fn subset(name: &str, directory: &Path) -> u8 {
    let complete = data::CATALOGUE.iter().find(|entry| entry.name == name && name == "cifar-10");
    let Some(complete) = complete else {
        return refuse([Failure::input(format!("a subset can be built of `cifar-10`, not of `{name}`")).refusal]);
    };
    let source = complete.build_example().expect("examples are valid").part;
    match source.load(directory, 0).and_then(|dataset| data::write_starter(&dataset, directory)) {
        Ok(files) => {
            let lines: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            print(&format!("{}\n", lines.join("\n")));
            DONE
        }
        Err(error) => fail(error),
    }
}

fn bar() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new(0);
        let template = "{prefix} {wide_bar} {bytes}/{total_bytes} {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
        bar
    })
}

fn show(bar: Option<&ProgressBar>, progress: &Progress<'_>) {
    match bar {
        Some(bar) => {
            bar.set_prefix(progress.name.to_owned());
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        }
        // Elsewhere one line a file is enough.
        None if progress.done == 0 => {
            let _ = writeln!(std::io::stderr(), "{} from {}", progress.name, progress.address);
        }
        None => {}
    }
}
