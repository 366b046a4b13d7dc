//! The command line: one file a subcommand.

mod check;
mod data;
mod diff;
mod explain;
mod export;
mod list;
mod measure;
mod merge;
mod partition;
mod plot;
mod report;
mod run;
mod schema;
mod sweep;
mod tables;
mod verify;

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use tables::markdown;

use crate::{
    plot::PlotError,
    scenario::{Document, Mistake, Refusal},
    sink::Mode,
    sweep::{SECTION, is_axis},
};

/// How much accuracy does a transmitted bit buy?
///
/// fedbits simulates federated learning with compressed communication: a scenario file goes in, many clients train on
/// partitioned data, every message is really encoded and decoded, and accuracy against transmitted bits comes out as CSV.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Sweep(sweep::Arguments),
    Merge(merge::Arguments),
    Verify(verify::Arguments),
    Plot(plot::Arguments),
    Report(report::Arguments),
    Diff(diff::Arguments),
    Export(export::Arguments),
    Check(check::Arguments),
    Measure(measure::Arguments),
    Partition(partition::Arguments),
    Data(data::Arguments),
    List(list::Arguments),
    Explain(explain::Arguments),
    Schema(schema::Arguments),
}

/// Scenario files and what is laid over them.
#[derive(Args)]
struct Scenarios {
    /// Scenario files, and overrides of the form `key.path=value` that are laid over each of them.
    ///
    /// The value is TOML; a bare word is a string: `uplink.ratio=0.01`, `uplink.coder=golomb`. A table replaces a whole section:
    /// 'uplink={operator="identity"}'.
    #[arg(required = true, value_name = "SCENARIO|KEY=VALUE", allow_negative_numbers = true)]
    arguments: Vec<String>,
}

impl Scenarios {
    /// The files and the overrides; an argument with `=` that is no file is an override.
    fn split(&self) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
        let is_override = |argument: &&String| argument.contains('=') && !Path::new(argument.as_str()).exists();
        let (overrides, files): (Vec<&String>, Vec<&String>) = self.arguments.iter().partition(is_override);
        if files.is_empty() {
            return Err(Failure::input("no scenario file is given, only overrides"));
        }
        Ok((files.into_iter().map(PathBuf::from).collect(), overrides.into_iter().cloned().collect()))
    }

    /// The documents, in order.
    fn load(&self, more: &[String]) -> Result<Vec<Document>, Vec<Refusal>> {
        let (files, mut overrides) = self.split().map_err(|failure| vec![failure.refusal])?;
        overrides.extend_from_slice(more);
        if let Some(text) = overrides.iter().find(|text| is_axis(text)) {
            let seeds = if text.trim_start().starts_with("seed") { "; --seeds runs several seeds" } else { "" };
            let message = format!("`{text}` has several values: `fedbits sweep` takes them{seeds}");
            return Err(vec![Failure::input(message).refusal]);
        }
        let one = |file: &PathBuf| {
            let document = Document::load(file, &overrides)?;
            if document.get(SECTION).is_none() {
                return Ok(document);
            }
            let message = "this scenario stands for many runs";
            let help = format!("`fedbits sweep {}` runs them, and with --dry-run shows them", file.display());
            Err(document.refuse([Mistake::new(SECTION, message).at_key().label("its axes").help(help)]))
        };
        let loaded: Vec<_> = files.iter().map(one).collect();
        if loaded.iter().all(Result::is_ok) {
            return Ok(loaded.into_iter().filter_map(Result::ok).collect());
        }
        Err(loaded.into_iter().filter_map(Result::err).collect())
    }
}

/// A mistake on the command line itself.
struct Failure {
    refusal: Refusal,
}

impl Failure {
    fn input(message: impl Into<String>) -> Self {
        let mistake = Mistake::new("", message.into());
        let mistakes = vec![crate::scenario::Located::new(mistake, None)];
        Self { refusal: Refusal { scenario: String::new(), mistakes } }
    }
}

/// How progress is shown.
#[derive(Args)]
struct ProgressArguments {
    /// Progress on the standard error: a bar, plain lines, or nothing. `auto` is a bar on a terminal and lines elsewhere.
    #[arg(long, value_name = "MODE", default_value = "auto")]
    progress: ProgressMode,
    /// No progress: the same as `--progress none`.
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ProgressMode {
    Auto,
    Bar,
    Lines,
    None,
}

impl ProgressArguments {
    fn mode(&self) -> Mode {
        match self.progress {
            _ if self.quiet => Mode::Silent,
            ProgressMode::Auto => Mode::fitting(),
            ProgressMode::Bar => Mode::Bar,
            ProgressMode::Lines => Mode::Lines,
            ProgressMode::None => Mode::Silent,
        }
    }
}

/// The command did what it was asked to.
const DONE: u8 = 0;
/// A run failed or diverged.
const FAILED: u8 = 1;
/// The input is wrong.
const WRONG_INPUT: u8 = 2;
/// A sweep ended, but not every cell of it ended well.
const CELLS_FAILED: u8 = 3;
/// Two things that should be equal differ.
const MISMATCH: u8 = 4;
/// The user interrupted a run.
const INTERRUPTED: u8 = 130;

/// A flag that Ctrl-C and SIGTERM set; a second signal ends the process at once: rows are whole.
fn interruption() -> Arc<AtomicBool> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = interrupt.clone();
    let mut first: Option<Instant> = None;
    let handler = ctrlc::set_handler(move || {
        flag.store(true, Ordering::SeqCst);
        // Some programs send a signal twice. A second one that a person sends comes later.
        if first.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(1) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    });
    if let Err(error) = handler {
        tracing::warn!("Ctrl-C will end the process at once: {error}");
    }
    interrupt
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    install_messages();
    let code = match cli.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::Export(arguments) => export::export(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Measure(arguments) => measure::measure(&arguments),
        Command::Partition(arguments) => partition::partition(&arguments),
        Command::Data(arguments) => data::data(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Schema(_) => schema::schema(),
    };
    ExitCode::from(code)
}

/// Warnings and remarks go to the standard error, one line each.
fn install_messages() {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .without_time()
        .with_target(false)
        .finish();
    // Only a second call in the same process can fail, and then the first one holds.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes to the standard output. A reader that has gone away (`| head`) ends the process quietly.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written {
        let quiet = error.kind() == std::io::ErrorKind::BrokenPipe;
        if !quiet {
            complain(&format!("cannot write to the standard output: {error}"));
        }
        std::process::exit(if quiet { 0 } else { i32::from(FAILED) });
    }
}

/// Writes one error to the standard error.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "error: {message}");
}

/// Says why tables answer no question.
fn refuse_plot(error: PlotError) -> u8 {
    match error {
        PlotError::Write(message) => {
            complain(&message);
            FAILED
        }
        PlotError::Input(message) | PlotError::NoValues(message) | PlotError::TooManyLines(message) => {
            refuse([Failure::input(message).refusal])
        }
    }
}

/// Writes every refusal to the standard error.
fn refuse(refusals: impl IntoIterator<Item = Refusal>) -> u8 {
    for refusal in refusals {
        let report = format!("{:?}", miette::Report::new(refusal));
        let _ = writeln!(std::io::stderr(), "{}\n", report.trim_end());
    }
    WRONG_INPUT
}
