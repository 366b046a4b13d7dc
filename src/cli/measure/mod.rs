//! `fedbits measure`

mod progress;
mod tables;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use fs_err::File;
use ndarray::ArrayView1;
use ndarray_npy::ViewNpyExt;

use super::{DONE, FAILED, Failure, complain, print, refuse};
use crate::{
    catalogue::{Strength, nearest},
    lab::{
        Measurement, Row, Subject,
        line_up::{Lane, lanes},
        plain,
        rates::{Bench, Curve, curve},
        vectors,
    },
    layout::Layout,
    run::slots,
    scenario::{Document, Refusal, Section, check_section, schema::properties},
    vector::{first_non_finite, norm_squared},
};
use progress::Progress;

/// Measure operators: bits, error, bias and speed of real messages, beside the bounds
///
/// Every vector is encoded to bytes and decoded from them, so many times. `measure top-k ratio=0.01` measures one operator with the
/// settings that `[uplink]` may have; `--sweep` one row a value; `--all` every operator along its strength; `--rates` ranks them at equal
/// bits.
#[derive(Args)]
pub struct Arguments {
    /// An operator, and settings of `[uplink]` in the form `key=value`: `qsgd levels=7 coder=fixed granularity=layer`.
    #[arg(value_name = "OPERATOR|KEY=VALUE")]
    operator: Vec<String>,
    /// What is compressed: `gaussian`, `laplace`, `student-t`, `sparse`, `one-hot`, or a file `*.npy` of 32- or 64-bit floats; may
    /// be given several times.
    #[arg(long = "vector", value_name = "NAME|FILE.npy", default_value = "gaussian")]
    vectors: Vec<String>,
    /// Length of the vectors that come from no file.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    dimension: u32,
    /// Shapes of the layers that a vector is cut into, such as `200x784,200`. Default: one layer.
    #[arg(long, value_name = "SHAPES")]
    shape: Option<String>,
    /// Messages a measurement, each with its own random streams.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    draws: u32,
    /// The coder; the same as the setting `coder`.
    #[arg(long, value_name = "CODER")]
    coder: Option<String>,
    /// Seed of the random streams.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// One measurement a value: `key=v1,v2,..`, or `key=from..to:count` with equal ratios.
    #[arg(long, value_name = "KEY=VALUES", conflicts_with_all = ["all", "rates"])]
    sweep: Option<String>,
    /// Every operator of the catalogue, best first.
    #[arg(long)]
    all: bool,
    /// Rank at these bits a value, interpolated along the strength of each operator; of every operator, unless one is given.
    #[arg(long, value_name = "BITS,..", value_delimiter = ',', num_args = 1)]
    rates: Vec<f64>,
    /// Write every measurement to this new file.
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Overwrite that file.
    #[arg(long, requires = "csv")]
    force: bool,
}

/// A vector to measure on.
struct Vector {
    name: String,
    x: Vec<f32>,
    layout: Arc<Layout>,
}

/// A measurement with its place in the tables.
struct Line {
    row: Row,
    measured: Measurement,
    /// What changes from row to row.
    label: String,
}

/// Why the command ends: its exit code, everything said.
struct Ended(u8);

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self(refuse([failure.refusal]))
    }
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Self(refuse([refusal]))
    }
}

pub(super) fn measure(arguments: &Arguments) -> u8 {
    match work(arguments) {
        Ok(text) => {
            print(&text);
            DONE
        }
        Err(Ended(code)) => code,
    }
}

fn work(arguments: &Arguments) -> Result<String, Ended> {
    let (operator, settings) = match arguments.operator.split_first() {
        Some((operator, _)) if operator.contains('=') => {
            return Err(Failure::input(format!("`{operator}` stands where the name of an operator belongs")).into());
        }
        Some((operator, settings)) => (Some(operator.as_str()), settings),
        None => (None, &[][..]),
    };
    let mut settings = settings.to_vec();
    settings.extend(arguments.coder.iter().map(|coder| format!("coder={coder}")));
    let ranked = !arguments.rates.is_empty();
    match operator {
        None if !arguments.all && !ranked => {
            let message = "no operator is named; `--all` measures every one, `fedbits list operators` lists them";
            return Err(Failure::input(message).into());
        }
        None if !settings.is_empty() => {
            return Err(Failure::input("settings belong to an operator, and none is named").into());
        }
        Some(_) if arguments.all => {
            return Err(Failure::input("`--all` measures every operator; name none beside it").into());
        }
        _ => {}
    }
    if let Some(rate) = arguments.rates.iter().find(|rate| !(**rate > 0.0 && rate.is_finite())) {
        return Err(Failure::input(format!("`--rates` has {rate}, but bits must be greater than 0")).into());
    }
    let (sections, document) = match operator {
        Some(operator) => sections(arguments, operator, &settings)?,
        None => (Vec::new(), None),
    };
    let vectors = arguments.vectors.iter().map(|name| vector(arguments, name)).collect::<Result<Vec<_>, _>>()?;
    // Settings are built for every vector before any is measured.
    for (label, section) in &sections {
        for vector in &vectors {
            subject(section, vector, document.as_ref(), label)?;
        }
    }
    let mut file = Csv::create(arguments)?;
    if ranked {
        let all = || sections.iter().map(|(_, section)| Lane::new(section.clone())).collect();
        let lanes = if operator.is_none() { lanes() } else { all() };
        return rank(arguments, &lanes, &vectors, &mut file);
    }
    if operator.is_none() {
        return line_up(arguments, &vectors, &mut file);
    }
    let mut entries = Vec::new();
    let mut progress = Progress::new(sections.len() * vectors.len());
    for (label, section) in &sections {
        for vector in &vectors {
            progress.step(&format!("{} {label}", section.name));
            let subject = subject(section, vector, document.as_ref(), label)?;
            let measured = subject.measure(&vector.x, arguments.draws, arguments.seed);
            let measured = measured.map_err(|reason| Failure::input(format!("`{}`: {reason}", vector.name)))?;
            let row = Row::new(&subject, &vector.name, vector.x.len(), &measured);
            file.write(&row)?;
            entries.push(Line { row, measured, label: label.clone() });
        }
    }
    progress.finish();
    Ok(match &arguments.sweep {
        None => tables::one(&entries, arguments.draws),
        Some(sweep) => tables::sweep(&entries, sweep.split('=').next().unwrap_or(sweep), arguments.draws),
    })
}

fn subject(section: &Section, vector: &Vector, document: Option<&Document>, label: &str) -> Result<Subject, Ended> {
    Subject::new(section, vector.layout.clone()).map_err(|mistakes| {
        if let Some(document) = document {
            return document.refuse(mistakes).into();
        }
        // Of a sweep, the value tells which one it was.
        let messages: Vec<String> = mistakes.into_iter().map(|mistake| mistake.message).collect();
        Failure::input(format!("{label}: {}", messages.join("; "))).into()
    })
}

/// What the command line describes: one section, or one for each value of the sweep with the value as its label. With one section
/// the document that mistakes point into.
type Sections = (Vec<(String, Section)>, Option<Document>);

fn sections(arguments: &Arguments, operator: &str, settings: &[String]) -> Result<Sections, Ended> {
    let mut slots = slots();
    let at = slots.iter().position(|slot| slot.section == "uplink").expect("there is an uplink");
    let slot = slots.swap_remove(at);
    let section = |settings: &[String]| -> Result<(Section, Document), Refusal> {
        let document = Document::of_section(slot.section, slot.selector, operator, settings)?;
        let mut mistakes = Vec::new();
        match check_section(&document, &slot, &mut mistakes) {
            Some(section) if mistakes.is_empty() => Ok((section, document)),
            _ => Err(document.refuse(mistakes)),
        }
    };
    let Some(sweep) = &arguments.sweep else {
        let (mut section, document) = section(settings)?;
        if arguments.rates.is_empty() {
            return Ok((vec![(String::new(), section)], Some(document)));
        }
        // The strength is swept, so one that is missing is no mistake.
        section.settings = Lane::new(section.clone()).at(Strength::STEPS / 2).settings;
        return Ok((vec![(String::new(), section)], Some(document)));
    };
    let is_whole = |key: &str| {
        let own = slot.parts.iter().filter(|(name, _)| *name == operator).flat_map(|(_, schema)| properties(schema));
        let of = own.chain(properties(&slot.common)).find(|(name, _)| *name == key).map(|(_, of)| of.to_string());
        of.is_some_and(|of| of.contains("\"integer\"") && !of.contains("\"number\""))
    };
    let (key, values) = sweep_values(sweep, is_whole).map_err(Failure::input)?;
    let mut sections = Vec::new();
    for value in values {
        let mut settings = settings.to_vec();
        settings.push(format!("{key}={value}"));
        sections.push((format!("{key}={value}"), section(&settings)?.0));
    }
    Ok((sections, None))
}

/// Key and values of `key=v1,v2` or `key=from..to:count`.
fn sweep_values(sweep: &str, is_whole: impl Fn(&str) -> bool) -> Result<(&str, Vec<String>), String> {
    let wrong = || format!("`--sweep {sweep}` has not the form `key=v1,v2,..` or `key=from..to:count`");
    let (key, values) = sweep.split_once('=').ok_or_else(wrong)?;
    if key.is_empty() || values.is_empty() {
        return Err(wrong());
    }
    let Some((from, rest)) = values.split_once("..") else {
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        return if values.iter().any(String::is_empty) { Err(wrong()) } else { Ok((key, values)) };
    };
    let (to, count) = rest.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    let (Some(from), Some(to)) = (number(from), number(to)) else {
        return Err(format!("`--sweep {sweep}`: the ends of a range with equal ratios must be greater than 0"));
    };
    let count = count.trim().parse::<usize>().ok().filter(|count| (2..=1000).contains(count));
    let count = count.ok_or_else(|| format!("`--sweep {sweep}`: the count must be at least 2 and at most 1000"))?;
    let value = |i: usize| {
        let at = i as f64 / (count - 1) as f64;
        let value = libm::exp((1.0 - at) * libm::log(from) + at * libm::log(to));
        plain(&if is_whole(key) { toml::Value::Integer(value.round() as i64) } else { toml::Value::Float(value) })
    };
    let mut values: Vec<String> = (0..count).map(value).collect();
    values.dedup();
    Ok((key, values))
}

fn vector(arguments: &Arguments, name: &str) -> Result<Vector, Failure> {
    let is_file = Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"));
    let x = if is_file {
        read_npy(Path::new(name)).map_err(Failure::input)?
    } else {
        vectors::named(name, arguments.dimension as usize).ok_or_else(|| {
            let near = nearest(name, vectors::NAMES).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let names = vectors::NAMES.join(", ");
            Failure::input(format!("there is no vector `{name}`, only {names} and files `*.npy`{near}"))
        })?
    };
    if let Some(at) = first_non_finite(&x) {
        return Err(Failure::input(format!("value {at} of `{name}` is {}", x[at])));
    }
    if norm_squared(&x) == 0.0 {
        return Err(Failure::input(format!("every value of `{name}` is zero, so there is no relative error")));
    }
    let layout = match &arguments.shape {
        None => Layout::flat(x.len()),
        Some(shape) => layout(shape, x.len()).map_err(|reason| Failure::input(format!("`{name}`: {reason}")))?,
    };
    Ok(Vector { name: name.to_owned(), x, layout: Arc::new(layout) })
}

/// Layers of the shapes `200x784,200`, which together hold `n` values.
fn layout(shapes: &str, n: usize) -> Result<Layout, String> {
    let wrong = || format!("`--shape {shapes}` has not the form `200x784,200`, all numbers at least 1");
    let side = |text: &str| text.trim().parse::<usize>().ok().filter(|side| (1..=1 << 32).contains(side));
    let shape = |text: &str| text.split('x').map(side).collect::<Option<Vec<usize>>>();
    let shapes: Vec<Vec<usize>> = shapes.split(',').map(shape).collect::<Option<_>>().ok_or_else(wrong)?;
    let product = |shape: &Vec<usize>| shape.iter().try_fold(1usize, |all, &side| all.checked_mul(side));
    let held = shapes.iter().try_fold(0usize, |sum, shape| sum.checked_add(product(shape)?));
    match held {
        Some(held) if held == n => Ok(Layout::new((1..).zip(shapes).map(|(i, shape)| (format!("layer{i}"), shape)))),
        held => {
            let held = held.map_or("too many".to_owned(), |held| held.to_string());
            Err(format!("the shapes hold {held} values, but the vector has {n}"))
        }
    }
}

/// A vector from a file of NumPy.
fn read_npy(path: &Path) -> Result<Vec<f32>, String> {
    let bytes = fs_err::read(path).map_err(|error| error.to_string())?;
    let single = ArrayView1::<f32>::view_npy(&bytes).map(|x| x.to_vec());
    let read = single.or_else(|reason| {
        // What the other kind has to say counts only if it can be read.
        let double = ArrayView1::<f64>::view_npy(&bytes);
        double.map(|x| x.iter().map(|&value| value as f32).collect()).map_err(|_| reason)
    });
    let x: Vec<f32> = read.map_err(|reason| {
        format!("`{}` is no vector of 32- or 64-bit floats as NumPy saves it: {reason}", path.display())
    })?;
    if x.is_empty() { Err(format!("`{}` holds no value", path.display())) } else { Ok(x) }
}

/// The file of measurements; nothing without `--csv`.
struct Csv(Option<csv::Writer<File>>);

impl Csv {
    fn create(arguments: &Arguments) -> Result<Self, Ended> {
        let Some(path) = &arguments.csv else { return Ok(Self(None)) };
        if path.exists() && !arguments.force {
            let message = format!("`{}` is there already; `--force` overwrites it", path.display());
            return Err(Failure::input(message).into());
        }
        let file = if arguments.force { File::create(path) } else { File::create_new(path) };
        let file = file.map_err(|error| Self::cannot(&error.to_string()))?;
        Ok(Self(Some(csv::Writer::from_writer(file))))
    }

    /// Hands every row to the system at once: a long measurement that is stopped leaves what it has.
    fn write(&mut self, row: &Row) -> Result<(), Ended> {
        let Some(writer) = &mut self.0 else { return Ok(()) };
        let written = writer.serialize(row).and_then(|()| Ok(writer.flush()?));
        written.map_err(|error| Self::cannot(&format!("cannot write the measurements: {error}")))
    }

    fn cannot(message: &str) -> Ended {
        complain(message);
        Ended(FAILED)
    }
}

/// Every operator along its strength.
fn line_up(arguments: &Arguments, vectors: &[Vector], file: &mut Csv) -> Result<String, Ended> {
    let lanes = lanes();
    let points: Vec<Section> = lanes.iter().flat_map(Lane::points).collect();
    let mut progress = Progress::new(points.len() * vectors.len());
    let mut entries = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for section in &points {
        for vector in vectors {
            progress.step(&section.name);
            let measured = Subject::new(section, vector.layout.clone())
                .map_err(|mistakes| mistakes.into_iter().map(|mistake| mistake.message).collect::<Vec<_>>().join("; "))
                .and_then(|subject| {
                    let measured = subject.measure(&vector.x, arguments.draws, arguments.seed);
                    measured.map(|measured| (subject, measured)).map_err(|reason| reason.to_string())
                });
            match measured {
                Ok((subject, measured)) => {
                    let row = Row::new(&subject, &vector.name, vector.x.len(), &measured);
                    file.write(&row)?;
                    let label = format!("{} {}", row.operator, row.settings);
                    entries.push(Line { row, measured, label });
                }
                Err(reason) => {
                    let given: Vec<String> =
                        section.settings.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
                    left_out.push(format!("{} {} on {}: {reason}", section.name, given.join(" "), vector.name));
                }
            }
        }
    }
    progress.finish();
    left_out.iter().for_each(|reason| tracing::warn!("not measured: {reason}"));
    Ok(tables::line_up(&entries, arguments.draws))
}

/// Ranks lanes at equal bits.
fn rank(arguments: &Arguments, lanes: &[Lane], vectors: &[Vector], file: &mut Csv) -> Result<String, Ended> {
    let mut progress = Progress::new(lanes.len() * vectors.len());
    let mut curves: Vec<(&str, Vec<Curve>)> = Vec::new();
    for lane in lanes {
        let mut of_lane = Vec::new();
        for vector in vectors {
            progress.step(&lane.name);
            let bench = Bench {
                vector: &vector.name,
                x: &vector.x,
                layout: &vector.layout,
                draws: arguments.draws,
                seed: arguments.seed,
            };
            let curve = curve(lane, &bench, &arguments.rates);
            for row in &curve.rows {
                file.write(row)?;
            }
            if let Some(reason) = &curve.reason {
                tracing::warn!("not measured: {} on {}: {reason}", lane.name, vector.name);
            }
            of_lane.push(curve);
        }
        curves.push((&lane.name, of_lane));
    }
    progress.finish();
    let names: Vec<&str> = vectors.iter().map(|vector| vector.name.as_str()).collect();
    Ok(tables::ranking(&curves, &names, &arguments.rates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_lists_or_ranges_with_equal_ratios() {
        let values =
            |sweep: &str, whole| sweep_values(sweep, |_| whole).map(|(key, values)| format!("{key}: {values:?}"));
        assert_eq!(values("ratio=0.1, 0.2", false).unwrap(), "ratio: [\"0.1\", \"0.2\"]");
        assert_eq!(values("ratio=0.001..0.1:3", false).unwrap(), "ratio: [\"0.001\", \"0.01\", \"0.1\"]");
        assert_eq!(values("levels=1..4:7", true).unwrap(), "levels: [\"1\", \"2\", \"3\", \"4\"]");
        for wrong in
            ["ratio", "=1", "ratio=", "ratio=1,,2", "ratio=1..2", "ratio=0..1:3", "ratio=1..2:1", "ratio=a..b:3"]
        {
            assert!(values(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shapes_must_hold_the_vector() {
        let layers = layout("2x3,4", 10).expect("they hold ten");
        assert_eq!(layers.layers()[0].shape, [2, 3]);
        assert_eq!(layers.layers()[1].range, 6..10);
        assert!(layout("2x3", 10).unwrap_err().contains("hold 6 values, but the vector has 10"));
        for wrong in ["", "2x", "0x3", "a", "4294967296x4294967296"] {
            assert!(layout(wrong, 10).is_err(), "{wrong}");
        }
    }
}
