//! Scenario files, what they include and the overrides after them, merged into one tree that remembers where each value came from.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use miette::NamedSource;
use toml::de::{DeTable, DeValue};

use super::{Located, Mistake, Refusal};

/// Where a piece of text stands: index of its source and byte range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    source: usize,
    range: Range<usize>,
}

/// A value with its place and the place of its key.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    key: Place,
    place: Place,
}

/// A TOML value whose tables keep the order of the file.
#[derive(Clone, Debug)]
pub enum Value {
    /// A scalar: string, integer, float, boolean or date.
    Scalar(toml::Value),
    /// `[..]`
    Array(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<(String, Node)>),
}

impl Node {
    /// Looks a key up, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The entries of a table; empty for any other value.
    pub fn entries(&self) -> &[(String, Node)] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(toml::Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The same place with another value.
    pub fn with(&self, value: Value) -> Self {
        Self { value, ..self.clone() }
    }

    /// The value as TOML.
    pub fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Scalar(value) => value.clone(),
            Value::Array(items) => items.iter().map(Self::to_toml).collect::<Vec<_>>().into(),
            Value::Table(entries) => {
                entries.iter().map(|(key, node)| (key.clone(), node.to_toml())).collect::<toml::Table>().into()
            }
        }
    }

    fn follow(&self, path: &str) -> Option<&Node> {
        path.split('.').filter(|step| !step.is_empty()).try_fold(self, |node, step| match &node.value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => node.get(step),
        })
    }
}

/// A source text: a file, or one argument of the command line.
#[derive(Clone, Debug)]
struct Source {
    named: Arc<NamedSource<String>>,
    /// Folder that relative paths in this source start from.
    base: PathBuf,
}

/// One merged scenario before it is checked.
#[derive(Clone, Debug)]
pub struct Document {
    /// Path of the scenario file as the user gave it.
    pub path: PathBuf,
    root: Node,
    sources: Vec<Source>,
}

/// Keys by which a section names its part.
const SELECTORS: [&str; 2] = ["name", "operator"];

/// Syntax errors of one file that are shown.
const MAX_SYNTAX_ERRORS: usize = 5;

/// Deepest chain of includes; a longer one is a mistake.
const MAX_INCLUDES: usize = 16;

impl Document {
    /// Reads a scenario file, what it includes, and lays `overrides` of the form `a.b=c` over it.
    ///
    /// # Errors
    /// Every unreadable file, syntax error and malformed override, all at once.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, Refusal> {
        let mut document = Self::empty(path);
        let mut mistakes = Vec::new();
        document.include(path, None, &mut Vec::new(), &mut mistakes);
        for text in overrides {
            if let Err(mistake) = document.overlay(None, text) {
                mistakes.push(mistake);
            }
        }
        if mistakes.is_empty() { Ok(document) } else { Err(document.refuse(mistakes)) }
    }

    /// Parses a scenario from memory; relative paths start from the current folder.
    ///
    /// # Errors
    /// As [`Document::load`].
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, Refusal> {
        let mut document = Self::empty(Path::new(name));
        let mut mistakes = Vec::new();
        document.parse_source(name, text.to_owned(), Path::new(""), &mut Vec::new(), &mut mistakes);
        for text in overrides {
            if let Err(mistake) = document.overlay(None, text) {
                mistakes.push(mistake);
            }
        }
        if mistakes.is_empty() { Ok(document) } else { Err(document.refuse(mistakes)) }
    }

    /// A document of one section that names a part, from what stands on the command line: a name and settings `key=value`.
    ///
    /// # Errors
    /// Every malformed setting.
    pub fn of_section(section: &str, selector: &str, name: &str, settings: &[String]) -> Result<Self, Refusal> {
        let mut document = Self::empty(Path::new(""));
        let place = Place { source: 0, range: 0..name.len() };
        document
            .sources
            .push(Source { named: Arc::new(NamedSource::new("command line", name.to_owned())), base: PathBuf::new() });
        let node = |value| Node { value, key: place.clone(), place: place.clone() };
        let named = (selector.to_owned(), node(Value::Scalar(name.to_owned().into())));
        let entries = vec![(section.to_owned(), node(Value::Table(vec![named])))];
        document.root = node(Value::Table(entries));
        let mistakes: Vec<Mistake> =
            settings.iter().filter_map(|text| document.overlay(Some(section), text).err()).collect();
        if mistakes.is_empty() { Ok(document) } else { Err(document.refuse(mistakes)) }
    }

    /// A document without any key.
    pub fn empty(path: &Path) -> Self {
        let nowhere = Place { source: 0, range: 0..0 };
        let root = Node { value: Value::Table(Vec::new()), key: nowhere.clone(), place: nowhere };
        Self { path: path.to_owned(), root, sources: Vec::new() }
    }

    /// Removes a top-level key and hands out what stood there.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let Value::Table(entries) = &mut self.root.value else { return None };
        let at = entries.iter().position(|(name, _)| name == key)?;
        Some(entries.remove(at).1)
    }

    /// Lays a value over the tree at a dotted path; a table replaces what stood there as a whole.
    ///
    /// # Errors
    /// If a step of the path is no table.
    pub fn put(&mut self, path: &str, node: Node) -> Result<(), Mistake> {
        let steps: Vec<&str> = path.split('.').map(str::trim).collect();
        let key = node.key.clone();
        set(&mut self.root, &steps, node, &key).map_err(|step| {
            Mistake::new(path, format!("`{step}` is a single value, so `{path}` cannot stand below it"))
        })
    }

    /// Lays an override of the form `a.b=c` over the tree.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn lay(&mut self, text: &str) -> Result<(), Mistake> {
        self.overlay(None, text)
    }

    /// The question that the scenario answers: what stands behind `# Question:` in the comments of its file, up to a question mark or
    /// the end of the paragraph.
    pub fn question(&self) -> Option<String> {
        let text = self.sources.first()?.named.inner();
        let comments: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        let at = comments.iter().position(|line| line.starts_with("Question:"))?;
        let paragraph: Vec<&str> = comments[at..].iter().copied().take_while(|line| !line.is_empty()).collect();
        let paragraph = paragraph.join(" ");
        let question = paragraph.strip_prefix("Question:")?.trim();
        let end = question.find('?').map_or(question.len(), |at| at + 1);
        let mut letters = question[..end].chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect())
    }

    /// The whole tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The value at a dotted path.
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.root.follow(path)
    }

    /// A path value made absolute or relative to the current folder: one that stands in a file starts from the file's folder,
    /// one given on the command line from the current folder.
    pub fn resolve_path(&self, path: &str, value: &str) -> PathBuf {
        let base =
            self.get(path).and_then(|node| self.sources.get(node.place.source)).map(|source| source.base.as_path());
        base.unwrap_or(Path::new("")).join(value)
    }

    /// Turns mistakes into a report that points into the sources.
    pub fn refuse(&self, mistakes: impl IntoIterator<Item = Mistake>) -> Refusal {
        let mistakes = mistakes.into_iter().map(|mistake| self.locate(mistake)).collect();
        Refusal { scenario: self.path.display().to_string(), mistakes }
    }

    fn locate(&self, mistake: Mistake) -> Located {
        // The nearest key that exists: for a missing key, the section that lacks it.
        let mut path = mistake.path.as_str();
        let place = loop {
            match self.root.follow(path) {
                Some(_) if path.is_empty() => break None,
                Some(node) if mistake.at_key || path != mistake.path => break Some(&node.key),
                Some(node) => break Some(&node.place),
                None => path = path.rsplit_once('.').map_or("", |(parent, _)| parent),
            }
        };
        let source = place.and_then(|place| {
            let source = self.sources.get(place.source)?;
            Some((source.named.clone(), (place.range.start, place.range.len().max(1)).into()))
        });
        Located::new(mistake, source)
    }

    /// Reads a file and everything it includes; `from` is where the include stands.
    fn include(&mut self, path: &Path, from: Option<&str>, chain: &mut Vec<PathBuf>, mistakes: &mut Vec<Mistake>) {
        let shown = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let blame = |message: String| match from {
            Some(_) => Mistake::new("include", message),
            None => Mistake::new("", message),
        };
        if chain.contains(&shown) {
            return mistakes.push(blame(format!("`{}` includes itself", shown.display())));
        }
        if chain.len() >= MAX_INCLUDES {
            return mistakes.push(blame(format!("includes are nested more than {MAX_INCLUDES} deep")));
        }
        let text = match fs_err::read(path) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => return mistakes.push(blame(format!("`{}` is not UTF-8 text", shown.display()))),
            },
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.rsplit_once(": ").map_or(reason.as_str(), |(_, reason)| reason);
                let mistake = blame(format!("cannot read `{}`: {reason}", shown.display()));
                return mistakes.push(match from {
                    None if path.extension().is_none_or(|ending| ending != "toml") => {
                        mistake.help("a scenario is a file; an override has the form `key.path=value`")
                    }
                    _ => mistake,
                });
            }
        };
        chain.push(shown);
        let base = path.parent().unwrap_or(Path::new(""));
        self.parse_source(&path.display().to_string(), text, base, chain, mistakes);
        chain.pop();
    }

    fn parse_source(
        &mut self,
        name: &str,
        text: String,
        base: &Path,
        chain: &mut Vec<PathBuf>,
        mistakes: &mut Vec<Mistake>,
    ) {
        let source = self.sources.len();
        // A byte-order mark is what some editors on Windows put first; it is not part of the text.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        self.sources.push(Source { named: Arc::new(NamedSource::new(name, text.clone())), base: base.to_owned() });
        let (table, errors) = DeTable::parse_recoverable(&text);
        let place = Place { source, range: 0..0 };
        let mut own = match convert_table(table.get_ref(), source) {
            Ok(entries) => Node { value: Value::Table(entries), key: place.clone(), place },
            Err(mistake) => return mistakes.push(mistake),
        };
        // One stray character makes many errors; the first ones tell.
        for error in errors.into_iter().take(MAX_SYNTAX_ERRORS) {
            let range = error.span().unwrap_or(0..0);
            mistakes.push(self.syntax_mistake(source, error.message(), range));
        }
        if let Value::Table(entries) = &mut own.value
            && let Some(at) = entries.iter().position(|(key, _)| key == "include")
        {
            let (_, node) = entries.remove(at);
            // The key must be in the tree for mistakes about it to point at it.
            merge(&mut self.root, Node { value: Value::Table(vec![("include".into(), node.clone())]), ..own.clone() });
            match included_files(&node) {
                Some(files) => {
                    for file in files {
                        self.include(&base.join(&file), Some(&file), chain, mistakes);
                    }
                }
                None => mistakes.push(Mistake::new("include", "`include` wants a path or a list of paths")),
            }
            if mistakes.is_empty()
                && let Value::Table(entries) = &mut self.root.value
            {
                entries.retain(|(key, _)| key != "include");
            }
        }
        merge(&mut self.root, own);
    }

    /// A mistake at a place that has no key: syntax. It is kept in the tree under a name no file can use.
    fn syntax_mistake(&mut self, source: usize, message: &str, range: Range<usize>) -> Mistake {
        let path = format!("\u{0}{}", self.root.entries().len());
        let place = Place { source, range };
        let node = Node { value: Value::Scalar(false.into()), key: place.clone(), place };
        if let Value::Table(entries) = &mut self.root.value {
            entries.push((path.clone(), node));
        }
        Mistake::new(path, message.to_owned())
    }

    /// Lays one `a.b=c` over the tree, or over one section of it.
    fn overlay(&mut self, section: Option<&str>, text: &str) -> Result<(), Mistake> {
        let source = self.sources.len();
        let named = NamedSource::new("command line", text.to_owned());
        self.sources.push(Source { named: Arc::new(named), base: PathBuf::new() });
        let Some((path, value)) = text.split_once('=') else {
            let help = match section {
                None => "an override has the form `key.path=value`, such as `uplink.ratio=0.01`",
                Some(_) => "a setting has the form `key=value`, such as `ratio=0.01`",
            };
            return Err(self.syntax_mistake(source, "missing `=`", 0..text.len()).help(help));
        };
        let offset = path.len() + 1;
        let key = Place { source, range: 0..path.len() };
        let place = Place { source, range: offset..text.len() };
        let value = match DeValue::parse(value) {
            Ok(parsed) => {
                convert(parsed.get_ref(), source).map_err(|mistake| Mistake { path: path.into(), ..mistake })?
            }
            // A bare word is a string: `uplink.operator=top-k` needs no quotes inside the shell's.
            Err(_) if is_bare_word(value.trim()) => Value::Scalar(value.trim().to_owned().into()),
            Err(error) => {
                let message = format!("not a TOML value: {}", error.message());
                return Err(self.syntax_mistake(source, &message, place.range));
            }
        };
        let value = shifted(value, offset);
        let steps: Vec<&str> = section.into_iter().chain(path.trim().split('.').map(str::trim)).collect();
        if steps.iter().any(|step| step.is_empty()) {
            return Err(self.syntax_mistake(source, "a key path has an empty step", key.range));
        }
        set(&mut self.root, &steps, Node { value, key: key.clone(), place }, &key).map_err(|step| {
            let message = format!("`{step}` is a single value, so `{}` cannot stand below it", path.trim());
            self.syntax_mistake(source, &message, key.range.clone())
        })
    }
}

fn is_bare_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-./+:~ ".contains(c))
}

fn included_files(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => Some(vec![node.as_str()?.to_owned()]),
    }
}

/// Values of an override were parsed from behind its `=`: their places move by as much.
fn shifted(value: Value, by: usize) -> Value {
    let moved = |node: Node| {
        let shift = |place: Place| Place { range: place.range.start + by..place.range.end + by, ..place };
        Node { value: shifted(node.value, by), key: shift(node.key), place: shift(node.place) }
    };
    match value {
        Value::Scalar(scalar) => Value::Scalar(scalar),
        Value::Array(items) => Value::Array(items.into_iter().map(moved).collect()),
        Value::Table(entries) => Value::Table(entries.into_iter().map(|(key, node)| (key, moved(node))).collect()),
    }
}

fn convert_table(table: &DeTable<'_>, source: usize) -> Result<Vec<(String, Node)>, Mistake> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let node = Node {
            value: convert(value.get_ref(), source)
                .map_err(|mistake| Mistake { path: format!("{}.{}", key.get_ref(), mistake.path), ..mistake })?,
            key: Place { source, range: key.span() },
            place: Place { source, range: value.span() },
        };
        entries.push((key.get_ref().to_string(), node));
    }
    // `DeTable` sorts by key; people read from top to bottom.
    entries.sort_by_key(|(_, node)| node.key.range.start);
    Ok(entries)
}

fn convert(value: &DeValue<'_>, source: usize) -> Result<Value, Mistake> {
    Ok(match value {
        DeValue::String(text) => Value::Scalar(text.to_string().into()),
        DeValue::Integer(integer) => {
            let digits = integer.as_str().replace('_', "");
            let parsed = i64::from_str_radix(&digits, integer.radix());
            Value::Scalar(parsed.map_err(|_| Mistake::new("", format!("`{integer}` does not fit 64 bits")))?.into())
        }
        DeValue::Float(float) => {
            let parsed = float.as_str().replace('_', "").parse::<f64>();
            Value::Scalar(parsed.map_err(|_| Mistake::new("", format!("`{float}` is not a number")))?.into())
        }
        DeValue::Boolean(boolean) => Value::Scalar((*boolean).into()),
        DeValue::Datetime(datetime) => Value::Scalar((*datetime).into()),
        DeValue::Array(items) => {
            let mut nodes = Vec::new();
            for item in items {
                let place = Place { source, range: item.span() };
                nodes.push(Node { value: convert(item.get_ref(), source)?, key: place.clone(), place });
            }
            Value::Array(nodes)
        }
        DeValue::Table(table) => Value::Table(convert_table(table, source)?),
    })
}

/// Lays `over` on `under`: tables key by key, but a section that names its part replaces the one below as a whole.
fn merge(under: &mut Node, over: Node) {
    let names_a_part = SELECTORS.iter().any(|key| over.get(key).is_some());
    match (&mut under.value, over.value) {
        (Value::Table(below), Value::Table(entries)) if !names_a_part => {
            for (key, node) in entries {
                match below.iter_mut().find(|(name, _)| *name == key) {
                    Some((_, old)) => merge(old, node),
                    None => below.push((key, node)),
                }
            }
        }
        (_, value) => *under = Node { value, ..over },
    }
}

/// Sets the value at a path, making tables on the way; fails with the step that is no table.
fn set(node: &mut Node, steps: &[&str], value: Node, key: &Place) -> Result<(), String> {
    let (first, rest) = steps.split_first().expect("a path has at least one step");
    let Value::Table(entries) = &mut node.value else { return Err((*first).to_owned()) };
    let at = if let Some(at) = entries.iter().position(|(name, _)| name == first) {
        at
    } else {
        let table = Node { value: Value::Table(Vec::new()), key: key.clone(), place: key.clone() };
        entries.push(((*first).to_owned(), table));
        entries.len() - 1
    };
    if rest.is_empty() {
        entries[at].1 = value;
        return Ok(());
    }
    if !matches!(entries[at].1.value, Value::Table(_)) {
        return Err((*first).to_owned());
    }
    set(&mut entries[at].1, rest, value, key)
}
