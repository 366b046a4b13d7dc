//! One mechanism for every list of named parts: operators, coders, link rules, partitioners, models, methods, data sets.
//!
//! A part is a settings struct in a file of its own. Its room lists it in a slice of [`Entry`]s with [`entry!`](crate::entry),
//! which records the name, an example, the schema of the settings, how to build the part, and the text of the file, from which
//! `fedbits explain` and the tables of the README take the doc comment. Nothing else enumerates parts.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// What a settings struct says about itself.
pub trait Named {
    /// Name in a scenario, such as `top-k`.
    const NAME: &'static str;
    /// A valid example of its settings in TOML; empty if it has none that must be given.
    const EXAMPLE: &'static str = "";
    /// The number among its settings that trades bits for error, if there is one.
    const STRENGTH: Option<Strength> = None;
}

/// A numeric setting that trades bits for error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strength {
    /// Name of the setting.
    pub key: &'static str,
    /// The value with the most bits that makes sense.
    pub mildest: f64,
    /// The value with the fewest bits that makes sense.
    pub harshest: f64,
    /// Whether it takes whole numbers only.
    pub whole: bool,
    /// Other settings of the same meaning, of which only one may be given.
    pub instead_of: &'static [&'static str],
}

impl Strength {
    /// Number of steps from the mildest to the harshest value that a target is solved on.
    pub const STEPS: usize = 256;

    /// The value of a step: equal ratios from the mildest (0) to the harshest (`STEPS - 1`).
    pub fn value(&self, step: usize) -> toml::Value {
        let at = step as f64 / (Self::STEPS - 1) as f64;
        let value = libm::exp((1.0 - at) * libm::log(self.mildest) + at * libm::log(self.harshest));
        if self.whole { toml::Value::Integer(value.round() as i64) } else { toml::Value::Float(value) }
    }
}

/// A part that was built, together with its settings with every default filled in.
pub struct Built<P: ?Sized> {
    /// The part.
    pub part: Box<P>,
    /// Its resolved settings, as they are stored with the run.
    pub settings: toml::Table,
}

/// One line of a catalogue.
pub struct Entry<P: ?Sized + 'static> {
    /// Name in a scenario.
    pub name: &'static str,
    /// Name of the settings type.
    pub type_name: &'static str,
    /// A valid example of the settings in TOML.
    pub example: &'static str,
    /// The setting that trades bits for error.
    pub strength: Option<Strength>,
    /// Name of the module, which is the name of its file.
    pub module: &'static str,
    /// Text of the file.
    pub text: &'static str,
    /// JSON schema of the settings.
    pub schema: fn() -> Value,
    /// Builds the part from settings that satisfy the schema.
    pub build: fn(toml::Table) -> Result<Built<P>, String>,
}

impl<P: ?Sized> Entry<P> {
    /// The doc comment of the settings type, without the comment marks.
    pub fn doc(&self) -> String {
        doc_of(self.text, self.type_name)
    }

    /// The first sentence of the doc comment.
    pub fn summary(&self) -> String {
        self.doc().lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The part built from its own example.
    pub fn build_example(&self) -> Result<Built<P>, String> {
        (self.build)(toml::from_str(self.example).map_err(|error| error.to_string())?)
    }
}

/// Looks a name up in a catalogue.
pub fn find<P: ?Sized>(catalogue: &'static [Entry<P>], name: &str) -> Option<&'static Entry<P>> {
    catalogue.iter().find(|entry| entry.name == name)
}

/// The name nearest to `wanted`, if one is near enough to be worth suggesting.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let score = |name: &str| strsim::jaro_winkler(&wanted.to_lowercase(), name);
    names
        .into_iter()
        .map(|name| (score(name), name))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, name)| name)
}

/// JSON schema of a settings type, without references.
pub fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// Reads settings; a unit-like struct accepts the empty table.
pub fn read<T: DeserializeOwned>(settings: toml::Table) -> Result<T, String> {
    settings.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// Writes settings back with every default filled in.
pub fn write<T: Serialize>(settings: &T) -> toml::Table {
    toml::Table::try_from(settings).expect("settings structs are tables of plain values")
}

/// The lines `/// ..` that stand above `pub struct NAME` in a source text.
fn doc_of(text: &str, type_name: &str) -> String {
    let wanted = [format!("struct {type_name} {{"), format!("struct {type_name};"), format!("enum {type_name} {{")];
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(|line| wanted.iter().any(|wanted| line.contains(wanted.as_str()))) else {
        return String::new();
    };
    let is_attribute = |line: &str| {
        let line = line.trim_start();
        line.starts_with('#') || line.starts_with(')') || line.ends_with(',')
    };
    let mut doc = Vec::new();
    for line in lines[..at].iter().rev() {
        match line.trim_start().strip_prefix("///") {
            Some(comment) => doc.push(comment.strip_prefix(' ').unwrap_or(comment)),
            None if doc.is_empty() && is_attribute(line) => {}
            None => break,
        }
    }
    doc.reverse();
    doc.join("\n")
}

/// One line of a catalogue: `entry!(top_k::TopK)` for the type `TopK` in the file `top_k.rs` beside the catalogue.
#[macro_export]
macro_rules! entry {
    ($module:ident :: $type:ident) => {
        $crate::catalogue::Entry {
            name: <$module::$type as $crate::catalogue::Named>::NAME,
            type_name: stringify!($type),
            example: <$module::$type as $crate::catalogue::Named>::EXAMPLE,
            strength: <$module::$type as $crate::catalogue::Named>::STRENGTH,
            module: stringify!($module),
            text: include_str!(concat!(stringify!($module), ".rs")),
            schema: $crate::catalogue::schema_of::<$module::$type>,
            build: |settings| {
                let part: $module::$type = $crate::catalogue::read(settings)?;
                let settings = $crate::catalogue::write(&part);
                Ok($crate::catalogue::Built { part: Box::new(part), settings })
            },
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doc_comment_is_found_above_attributes() {
        let text = "/// Other.\npub struct Other;\n\n/// First line\n/// goes on.\n///\n/// # Bits\n/// `32 k`.\n#[derive(\n    Clone,\n)]\n#[serde(default)]\npub struct TopK {\n    ratio: f64,\n}";
        assert_eq!(doc_of(text, "TopK"), "First line\ngoes on.\n\n# Bits\n`32 k`.");
        assert_eq!(doc_of(text, "Other"), "Other.");
        assert_eq!(doc_of(text, "Missing"), "");
    }

    #[test]
    fn the_nearest_name_is_suggested_only_when_it_is_near() {
        let names = ["top-k", "rand-k", "qsgd"];
        assert_eq!(nearest("topk", names), Some("top-k"));
        assert_eq!(nearest("Top_k", names), Some("top-k"));
        assert_eq!(nearest("zzz", names), None);
    }
}
