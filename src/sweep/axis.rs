//! Axes of a sweep: what varies, and the values that it takes.
//!
//! In a scenario they stand in `[sweep]`: a list of values, a range as text, or a list of tables that replace a section as a whole;
//! inside such a table `axis.key = [..]` varies one of its keys. A key that joins several by commas varies them together. On the
//! command line an axis is `key=a,b,c` or `key=` with a range; a value in brackets is one value.

use super::range;
use crate::scenario::{Document, Mistake, Node, Value};

/// Section of a scenario that holds the axes.
pub const SECTION: &str = "sweep";

/// Key of a table among the values of an axis under which its own keys vary.
const INNER: &str = "axis";

/// What one value of an axis puts where.
#[derive(Clone, Debug)]
pub enum Assignment {
    /// A value from a file, at a dotted key.
    Value(String, Node),
    /// An override from the command line.
    Text(String),
}

impl Assignment {
    /// Lays it over a document.
    ///
    /// # Errors
    /// If there is no such place.
    pub fn lay(&self, document: &mut Document) -> Result<(), Mistake> {
        match self {
            Self::Value(key, node) => document.put(key, node.clone()),
            Self::Text(text) => document.lay(text),
        }
    }

    /// Dotted keys of the single values that it puts.
    pub fn keys(&self) -> Vec<String> {
        match self {
            Self::Value(key, node) => leaves(key, &node.to_toml()),
            Self::Text(text) => {
                let (key, value) = text.split_once('=').unwrap_or((text, ""));
                let value = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
                leaves(key.trim(), value.as_ref().and_then(|table| table.get("value")).unwrap_or(&false.into()))
            }
        }
    }
}

/// Keys of the single values in a value, the one that names a part first.
fn leaves(key: &str, value: &toml::Value) -> Vec<String> {
    let toml::Value::Table(table) = value else { return vec![key.to_owned()] };
    let mut entries: Vec<(&String, &toml::Value)> = table.iter().collect();
    entries.sort_by_key(|(inner, _)| !names_a_part(inner));
    entries.into_iter().flat_map(|(inner, value)| leaves(&format!("{key}.{inner}"), value)).collect()
}

/// Whether a key, without what stands before its last dot, names a part of a section.
pub(super) fn names_a_part(key: &str) -> bool {
    ["operator", "name"].contains(&key)
}

/// Something that varies.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The keys that vary together, mostly one.
    pub keys: Vec<String>,
    /// What each of its values puts.
    pub points: Vec<Vec<Assignment>>,
}

impl Axis {
    /// Leaves out what varies a key inside of tables: something else varies it.
    pub fn forget(&mut self, key: &str) {
        let is_it = |assignment: &Assignment| matches!(assignment, Assignment::Value(other, _) if other == key);
        for point in &mut self.points {
            // The first one puts the table itself.
            let mut first = true;
            point.retain(|assignment| std::mem::take(&mut first) || !is_it(assignment));
        }
        let mut seen = std::collections::BTreeSet::new();
        self.points.retain(|point| seen.insert(format!("{point:?}")));
    }
}

/// The axes of the section `[sweep]`, in the order of the file.
pub fn of_section(section: &Node, mistakes: &mut Vec<Mistake>) -> Vec<Axis> {
    let mut axes = Vec::new();
    let before = mistakes.len();
    if matches!(section.value, Value::Table(_)) {
        collect("", SECTION, section, &mut axes, mistakes);
    } else {
        mistakes.push(Mistake::new(SECTION, format!("`{SECTION}` must be a section `[{SECTION}]` of axes")));
    }
    if axes.is_empty() && mistakes.len() == before {
        let mistake = Mistake::new(SECTION, format!("`[{SECTION}]` names no axis"));
        mistakes.push(mistake.help("an axis is a key with its values, such as `\"uplink.ratio\" = [0.01, 0.1]`"));
    }
    axes
}

/// Adds the axes of a table; `prefix` stands before its keys, and `path` is where it stands in the scenario.
fn collect(prefix: &str, path: &str, table: &Node, axes: &mut Vec<Axis>, mistakes: &mut Vec<Mistake>) {
    for (name, node) in table.entries() {
        let here = format!("{path}.{name}");
        let full = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        if matches!(node.value, Value::Table(_)) {
            collect(&full(name), &here, node, axes, mistakes);
            continue;
        }
        let keys: Vec<String> = name.split(',').map(|key| full(key.trim())).collect();
        match points(&keys, node) {
            Ok(points) => axes.push(Axis { keys, points }),
            Err(message) => {
                let example = "values stand in a list, such as [0.01, 0.1], or as a range: \"0..5\", \"range(1, 10, 2)\", \
                               \"linspace(0.1, 0.5, 5)\", \"logspace(0.001, 0.1, 5)\"";
                mistakes.push(Mistake::new(here, message).help(example));
            }
        }
    }
}

fn points(keys: &[String], node: &Node) -> Result<Vec<Vec<Assignment>>, String> {
    let values: Vec<Node> = match (&node.value, node.as_str()) {
        (Value::Array(items), _) => items.clone(),
        (_, Some(text)) => match range::parse(text)? {
            Some(values) => values.into_iter().map(|value| node.with(Value::Scalar(value))).collect(),
            None => return Err(format!("`{text}` is one value, not an axis")),
        },
        _ => return Err("this is one value, not an axis".to_owned()),
    };
    if values.is_empty() {
        return Err("this axis has no value".to_owned());
    }
    let mut points = Vec::new();
    for value in &values {
        if let [key] = keys {
            points.extend(variants(key, value)?);
        } else {
            points.push(together(keys, value)?);
        }
    }
    Ok(points)
}

/// One value of several keys that vary together.
fn together(keys: &[String], value: &Node) -> Result<Vec<Assignment>, String> {
    match &value.value {
        Value::Array(items) if items.len() == keys.len() => {
            Ok(keys.iter().zip(items).map(|(key, item)| Assignment::Value(key.clone(), item.clone())).collect())
        }
        _ => Err(format!("`{}` vary together: every value is a list of {}", keys.join("` and `"), keys.len())),
    }
}

/// What one value of an axis stands for: itself, or a table for every combination of the keys that vary inside.
fn variants(key: &str, value: &Node) -> Result<Vec<Vec<Assignment>>, String> {
    let Some(inner) = value.get(INNER) else { return Ok(vec![vec![Assignment::Value(key.to_owned(), value.clone())]]) };
    let outer: Vec<(String, Node)> = value.entries().iter().filter(|(name, _)| name != INNER).cloned().collect();
    let mut points = vec![vec![Assignment::Value(key.to_owned(), value.with(Value::Table(outer)))]];
    if !matches!(inner.value, Value::Table(_)) {
        return Err(format!("`{INNER}` wants keys with lists, such as `{INNER}.ratio = [0.01, 0.1]`"));
    }
    for (name, values) in inner.entries() {
        let varying =
            self::points(&[format!("{key}.{name}")], values).map_err(|reason| format!("`{name}`: {reason}"))?;
        points = product(&points, &varying);
    }
    Ok(points)
}

/// Every combination of two lists of assignments, the second varying faster.
pub fn product(slow: &[Vec<Assignment>], fast: &[Vec<Assignment>]) -> Vec<Vec<Assignment>> {
    slow.iter().flat_map(|a| fast.iter().map(|b| [&a[..], &b[..]].concat())).collect()
}

/// An argument of the command line: an axis if it has several values, else `None` for a plain override.
///
/// # Errors
/// If it looks like an axis and is none.
pub fn of_argument(text: &str) -> Result<Option<Axis>, String> {
    let Some((key, value)) = text.split_once('=') else { return Ok(None) };
    let (key, parts) = (key.trim().to_owned(), split(value));
    let (mut values, mut is_range) = (Vec::new(), false);
    for part in &parts {
        match range::parse(part)? {
            Some(of_range) => {
                is_range = true;
                values.extend(of_range.iter().map(ToString::to_string));
            }
            None if parts.len() > 1 && part.trim().is_empty() => {
                return Err(format!("`{text}`: there is no value beside one of the commas"));
            }
            None => values.push(part.clone()),
        }
    }
    if values.len() < 2 && !is_range {
        return Ok(None);
    }
    let points = values.iter().map(|value| vec![Assignment::Text(format!("{key}={value}"))]).collect();
    Ok(Some(Axis { keys: vec![key], points }))
}

/// Whether an argument of the command line has several values.
pub fn is_axis(text: &str) -> bool {
    !matches!(of_argument(text), Ok(None))
}

/// The values between commas that stand in no brackets and no quotes.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quote) = (vec![String::new()], 0, None);
    for c in text.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is a first part").push(c);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(text: &str) -> Result<Vec<Axis>, Vec<String>> {
        let mut document = Document::parse("sweep.toml", text, &[]).expect("the syntax is right");
        let section = document.take(SECTION).expect("there are axes");
        assert!(document.get(SECTION).is_none());
        let mut mistakes = Vec::new();
        let axes = of_section(&section, &mut mistakes);
        if mistakes.is_empty() {
            Ok(axes)
        } else {
            Err(mistakes.into_iter().map(|m| format!("{}: {}", m.path, m.message)).collect())
        }
    }

    fn shown(axis: &Axis) -> Vec<String> {
        let one = |assignment: &Assignment| match assignment {
            Assignment::Value(key, node) => format!("{key}={}", node.to_toml()),
            Assignment::Text(text) => text.clone(),
        };
        axis.points.iter().map(|point| point.iter().map(one).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn lists_ranges_and_dotted_keys_are_axes() {
        let text = "[sweep]\nseed = \"0..3\"\n\"uplink.ratio\" = [0.01, 0.1]\nmethod.batch_size = [1, \"full\"]\n";
        let axes = axes(text).expect("they are axes");
        assert_eq!(shown(&axes[0]), ["seed=0", "seed=1", "seed=2"]);
        assert_eq!(shown(&axes[1]), ["uplink.ratio=0.01", "uplink.ratio=0.1"]);
        assert_eq!(shown(&axes[2]), ["method.batch_size=1", "method.batch_size=\"full\""]);
    }

    #[test]
    fn whole_operators_are_one_axis_and_their_own_keys_vary_inside() {
        let text =
            "[[sweep.uplink]]\noperator = \"top-k\"\naxis.ratio = [0.01, 0.1]\n[[sweep.uplink]]\noperator = \"sign\"\n";
        let axes = axes(text).expect("they are axes");
        assert_eq!(
            shown(&axes[0]),
            [
                "uplink={ operator = \"top-k\" } uplink.ratio=0.01",
                "uplink={ operator = \"top-k\" } uplink.ratio=0.1",
                "uplink={ operator = \"sign\" }"
            ]
        );
        assert_eq!(
            axes[0].points[0].iter().flat_map(Assignment::keys).collect::<Vec<_>>(),
            ["uplink.operator", "uplink.ratio"]
        );
    }

    #[test]
    fn what_varies_a_key_inside_gives_way_to_what_varies_it_outside() {
        let text =
            "[[sweep.uplink]]\noperator = \"top-k\"\naxis.ratio = [0.01, 0.1]\n[[sweep.uplink]]\noperator = \"sign\"\n";
        let mut axis = axes(text).expect("they are axes").remove(0);
        axis.forget("uplink.ratio");
        assert_eq!(shown(&axis), ["uplink={ operator = \"top-k\" }", "uplink={ operator = \"sign\" }"]);
    }

    #[test]
    fn keys_joined_by_commas_vary_together() {
        let text = "[sweep]\n\"uplink.ratio, method.learning_rate\" = [[0.01, 0.1], [0.1, 0.05]]\n";
        let both = axes(text).expect("they are axes");
        assert_eq!(both[0].keys, ["uplink.ratio", "method.learning_rate"]);
        assert_eq!(shown(&both[0])[1], "uplink.ratio=0.1 method.learning_rate=0.05");
        let wrong = axes("[sweep]\n\"uplink.ratio, seed\" = [[0.01, 0, 3]]\n").expect_err("three values for two keys");
        assert!(wrong[0].contains("every value is a list of 2"), "{wrong:?}");
    }

    #[test]
    fn one_value_is_no_axis_and_every_mistake_is_named() {
        let wrong = axes("[sweep]\nseed = 3\nrounds = \"many\"\n\"uplink.ratio\" = []\n").expect_err("none is an axis");
        assert_eq!(
            wrong,
            [
                "sweep.seed: this is one value, not an axis",
                "sweep.rounds: `many` is one value, not an axis",
                "sweep.uplink.ratio: this axis has no value"
            ]
        );
        assert!(axes("[sweep]\n").expect_err("it is empty")[0].contains("names no axis"));
    }

    #[test]
    fn on_the_command_line_commas_make_an_axis_and_brackets_a_value() {
        let shown = |text: &str| of_argument(text).expect("it is well-formed").map(|axis| shown(&axis));
        assert_eq!(shown("uplink.ratio=0.1,0.2"), Some(vec!["uplink.ratio=0.1".into(), "uplink.ratio=0.2".into()]));
        assert_eq!(shown("seed=0..2"), Some(vec!["seed=0".into(), "seed=1".into()]));
        assert_eq!(shown("model.hidden=[20,10]"), None);
        assert_eq!(shown("model.hidden=[20,10],[5]").map(|values| values.len()), Some(2));
        assert_eq!(
            shown("uplink={operator=\"top-k\",ratio=0.1},{operator=\"sign\"}").map(|values| values.len()),
            Some(2)
        );
        assert_eq!(shown("rounds=3"), None);
        assert_eq!(shown("seed=0..2,7").map(|values| values.concat()), Some("seed=0seed=1seed=7".to_owned()));
        assert!(of_argument("method.learning_rate=0.1,").expect_err("a value is missing").contains("no value beside"));
        assert!(of_argument("seed=lin(0, 1, 2)").expect_err("there is no such range").contains("linspace"));
        assert!(of_argument("seed=0..=2").expect_err("the end is not included").contains("its end is not included"));
    }
}
