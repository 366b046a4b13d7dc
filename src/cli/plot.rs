//! `fedbits plot`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{DONE, print, refuse_plot};
use crate::plot::{self, Bits, Chart, Figure, Log, PlotError, Question, Request, Table};

/// Draw figures from CSV: accuracy against bits, operators against their bounds, or any two columns
#[derive(Args)]
pub struct Arguments {
    /// Tables: `rounds.csv` files, folders with runs in them, CSV of the operator laboratory, or any CSV with --x and --y.
    ///
    /// Runs that differ in their seed alone become one line, their mean, with a band: the 95 % confidence interval of the mean
    /// (Student's t), below three seeds from the smallest value to the largest.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Which figure. Default: all that the tables can answer; with --out the first of them.
    #[arg(long, value_name = "NAME")]
    figure: Option<FigureName>,
    /// Whose bits the axis to the right counts.
    #[arg(long, value_name = "WAY", default_value = "up")]
    bits: Way,
    /// Column to the right, or a sum such as `uplink_bits+downlink_bits`. Settings of runs are columns too: `uplink.ratio`, or `ratio`.
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,
    /// Column upwards, or a sum.
    #[arg(long, value_name = "COLUMN")]
    y: Option<String>,
    /// Columns that tell lines apart. Default: the settings in which runs differ, the seed apart.
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    group: Option<Vec<String>>,
    /// Columns that tell panels apart.
    #[arg(long, value_name = "COLUMN,..", value_delimiter = ',')]
    facet: Option<Vec<String>>,
    /// Only the last value of every run.
    #[arg(long)]
    last: bool,
    /// Axes that are logarithmic. Default: as the figure asks.
    #[arg(long, value_name = "AXES")]
    log: Option<Axes>,
    /// Heading.
    #[arg(long)]
    title: Option<String>,
    /// Width and height in pixels; a PNG has twice as many each way.
    #[arg(long, value_name = "WxH", value_parser = parse_size)]
    size: Option<(u32, u32)>,
    /// Files to write, by their endings; may be given several times. An `.html` is one page of all figures, with the report, the settings
    /// and the environment. Default: `figures/<figure>.svg` and `.png` and `figures/report.html`, in the first path if that is a folder,
    /// else beside it.
    #[arg(long, value_name = "FILE.svg|FILE.png|FILE.html")]
    out: Vec<PathBuf>,
    /// Overwrite files that are no figures of `fedbits plot`.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Way {
    /// From clients to the server
    Up,
    /// From the server to clients
    Down,
    /// Both, and between peers
    Total,
}

#[derive(Clone, Copy, ValueEnum)]
enum Axes {
    X,
    Y,
    Xy,
    None,
}

#[derive(Clone, Copy)]
struct FigureName(Figure);

impl ValueEnum for FigureName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [FigureName; Figure::ALL.len()] = {
            let mut all = [FigureName(Figure::AccuracyBits); Figure::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = FigureName(Figure::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()).help(self.0.summary()))
    }
}

fn parse_size(text: &str) -> Result<(u32, u32), String> {
    let side = |text: &str| text.parse::<u32>().ok().filter(|side| (200..=8000).contains(side));
    let sides = text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    sides.ok_or_else(|| "width and height are whole numbers of pixels from 200 to 8000, such as 760x460".to_owned())
}

pub(super) fn plot(arguments: &Arguments) -> u8 {
    match make(arguments) {
        Ok(text) => {
            print(&text);
            DONE
        }
        Err(error) => refuse_plot(error),
    }
}

fn make(arguments: &Arguments) -> Result<String, PlotError> {
    let (tables, notes) = plot::read(&arguments.paths)?;
    let charts = charts(arguments, &tables)?;
    if charts.is_empty() {
        return Err(PlotError::NoValues(
            "the tables answer no figure of their own: name columns with --x and --y".to_owned(),
        ));
    }
    let mut notes: Vec<&String> = notes.iter().chain(charts.iter().flat_map(|(_, chart)| &chart.notes)).collect();
    notes.sort();
    notes.dedup();
    for note in notes {
        tracing::warn!("{note}");
    }
    let folder = folder(&arguments.paths[0]);
    let is_page = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "html");
    let (pages, figures): (Vec<PathBuf>, Vec<PathBuf>) = arguments.out.iter().cloned().partition(is_page);
    let mut text = String::new();
    let mut draw = |chart: &Chart, file: &Path| {
        // A figure that stands alone says what it answers.
        let title = arguments.title.clone().or_else(|| plot::question(&tables)).unwrap_or_else(|| chart.title.clone());
        plot::save(&Chart { title, ..chart.clone() }, arguments.size, file, arguments.force)?;
        text += &format!("{}\n", file.display());
        Ok::<_, PlotError>(())
    };
    if let Some((_, chart)) = charts.first() {
        figures.iter().try_for_each(|file| draw(chart, file))?;
    }
    if arguments.out.is_empty() {
        for (name, chart) in &charts {
            ["svg", "png"].iter().try_for_each(|ending| draw(chart, &folder.join(format!("{name}.{ending}"))))?;
        }
    }
    let by_default =
        arguments.out.is_empty() && arguments.figure.is_none() && arguments.x.is_none() && arguments.y.is_none();
    let default = by_default.then(|| folder.join("report.html"));
    let pages: Vec<PathBuf> = pages.into_iter().chain(default).collect();
    if !pages.is_empty() {
        let page = page(arguments, &tables, charts);
        for file in pages {
            plot::save_page(&page, &file, arguments.force)?;
            text += &format!("{}\n", file.display());
        }
    }
    Ok(text)
}

/// One page of everything.
fn page(arguments: &Arguments, tables: &[Table], charts: Vec<(String, Chart)>) -> String {
    let heading = |name: String| {
        let figure = Figure::ALL.into_iter().find(|figure| figure.name() == name);
        figure.map_or(name, |figure| figure.heading().to_owned())
    };
    let request = Request { bits: bits(arguments.bits), group: arguments.group.clone(), ..Request::default() };
    // Tables without accuracies have figures, but no report.
    let report = plot::report(tables, &request).ok();
    plot::overview(tables, charts.into_iter().map(|(name, chart)| (heading(name), chart)).collect(), report.as_ref())
}

/// What counts as bits.
pub(super) fn bits(way: Way) -> Bits {
    match way {
        Way::Up => Bits::Up,
        Way::Down => Bits::Down,
        Way::Total => Bits::Total,
    }
}

/// Where figures go unless told otherwise.
fn folder(first: &Path) -> PathBuf {
    let beside = if first.is_dir() { Some(first) } else { first.parent() };
    beside.unwrap_or(Path::new("")).join("figures")
}

/// The charts that are asked for, by name.
fn charts(arguments: &Arguments, tables: &[Table]) -> Result<Vec<(String, Chart)>, PlotError> {
    let kind = tables[0].kind;
    let suiting: Vec<Figure> = Figure::ALL.into_iter().filter(|figure| figure.suits(kind)).collect();
    let bits = bits(arguments.bits);
    let ask = |figure: Figure| adapt(figure.question(bits, tables), arguments);
    let one = |name: String, question: &Question| Ok(vec![(name, plot::chart(tables, question)?)]);
    let own = arguments.x.is_some() || arguments.y.is_some();
    if let Some(FigureName(figure)) = arguments.figure {
        return one(figure.name().to_owned(), &ask(figure));
    }
    if own || suiting.is_empty() {
        let question = suiting.first().map_or_else(
            || adapt(Question::default(), arguments),
            |first| {
                let mut question = first.question(bits, tables);
                // Axes of one's own are linear, and have no bound that belongs to another column.
                question.log.x &= arguments.x.is_none();
                question.log.y &= arguments.y.is_none();
                if arguments.y.is_some() {
                    (question.deviation, question.reference) = (None, None);
                }
                adapt(question, arguments)
            },
        );
        if question.x.is_empty() || question.y.is_empty() {
            let columns = tables[0].columns.join(", ");
            return Err(PlotError::Input(format!(
                "`{}` is neither a table of rounds nor of the laboratory: name its columns with --x and --y; it has {columns}",
                tables[0].path.display()
            )));
        }
        let name = format!("{}-{}", question.y, question.x);
        return one(name, &question);
    }
    let mut charts = Vec::new();
    let mut reason = None;
    for figure in suiting {
        // Only the question that every table of the kind can answer must have an answer.
        match plot::chart(tables, &ask(figure)) {
            // Ends of runs that do not differ in the setting to the right say nothing.
            Ok(chart) if figure == Figure::Final && !has_lines(&chart) => {}
            Ok(chart) => charts.push((figure.name().to_owned(), chart)),
            Err(PlotError::TooManyLines(message)) => {
                tracing::warn!("no figure `{}`: {message}", figure.name());
                reason = reason.or(Some(PlotError::TooManyLines(message)));
            }
            Err(error) => reason = reason.or(Some(error)),
        }
    }
    if let Some(reason) = reason.filter(|_| charts.is_empty()) {
        return Err(reason);
    }
    Ok(charts)
}

fn has_lines(chart: &Chart) -> bool {
    chart.panels.iter().any(|panel| panel.lines.iter().any(|line| line.points.len() > 1))
}

/// Lays what the user asks over a question.
fn adapt(question: Question, arguments: &Arguments) -> Question {
    let log = match arguments.log {
        None => question.log,
        Some(axes) => Log { x: matches!(axes, Axes::X | Axes::Xy), y: matches!(axes, Axes::Y | Axes::Xy) },
    };
    Question {
        x: arguments.x.clone().unwrap_or(question.x),
        y: arguments.y.clone().unwrap_or(question.y),
        group: arguments.group.clone().or(question.group),
        facet: arguments.facet.clone().unwrap_or(question.facet),
        title: arguments.title.clone().or(question.title),
        last: question.last || arguments.last,
        log,
        ..question
    }
}
