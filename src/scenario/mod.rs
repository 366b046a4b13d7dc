//! The experiment as plain data: scenario files with exact positions, includes, overrides, and every mistake at once.
//!
//! This room knows no operator and no method. It is told which sections there are and what may stand in them as [`Slot`]s:
//! names and JSON schemas, made from the catalogues by [`run::plan`](crate::run).

mod document;
mod mistake;
pub mod schema;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Schema;

pub use document::{Document, Node, Value};
pub use mistake::{Located, Mistake, Refusal};

use crate::catalogue::{nearest, schema_of};

/// A section of a scenario that names a part: `[uplink]` names an operator.
pub struct Slot {
    /// Name of the section.
    pub section: &'static str,
    /// Key in the section that names the part: `operator` or `name`.
    pub selector: &'static str,
    /// What `fedbits list` calls the parts.
    pub listing: &'static str,
    /// The part taken when the section or the key is absent; `None` if it must be named.
    pub default: Option<&'static str>,
    /// Schema of the keys that the section has whatever part is named.
    pub common: Schema,
    /// The parts: name and schema of their own keys.
    pub parts: Vec<(&'static str, Schema)>,
}

/// A section after its check.
#[derive(Clone, Debug)]
pub struct Section {
    /// The named part.
    pub name: String,
    /// The keys that do not depend on the part.
    pub common: toml::Table,
    /// The keys of the part.
    pub settings: toml::Table,
}

/// Keys outside every section.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct General {
    /// Everything random in a run follows from this number.
    #[schemars(range(min = 0, max = 9_007_199_254_740_992_u64))]
    pub seed: u64,
    /// Number of rounds.
    #[schemars(range(min = 1))]
    pub rounds: u32,
    /// The model is evaluated on the test set every so many rounds, and after the last one.
    #[schemars(range(min = 1))]
    pub evaluate_every: u32,
    /// When a run ends before its last round.
    pub stop: Stop,
    /// What is written beside `rounds.csv`.
    pub record: Record,
    /// How the run is carried out.
    #[serde(skip_serializing_if = "Carrying::is_default")]
    pub run: Carrying,
}

impl Default for General {
    fn default() -> Self {
        Self {
            seed: 0,
            rounds: 100,
            evaluate_every: 1,
            stop: Stop::default(),
            record: Record::default(),
            run: Carrying::default(),
        }
    }
}

/// When a run ends before its last round; whatever comes first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Stop once an evaluation reaches this test accuracy, in (0, 1].
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Stop once the squared distance of the model from the optimum, relative to that of the start, is at most this; for models
    /// whose optimum is known.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Stop after the round in which the bits of all links, both directions, reach this number.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bits: Option<u64>,
    /// Stop after the round in which the uplink bits reach this number.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_bits: Option<u64>,
    /// What happens when a client's update is not finite.
    pub non_finite: NonFinite,
}

/// What happens when a client's update holds NaN or an infinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NonFinite {
    /// The run ends as diverged; the message names round, client and layer.
    #[default]
    Stop,
    /// The client sends nothing this round and counts as selected but not reported.
    LeaveOut,
}

/// What is written beside `rounds.csv`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Write `clients.csv`: one row for every client in every round.
    pub clients: bool,
    /// Write `layers.csv`: bits and distortion of every part of the uplink in every round.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub layers: bool,
    /// Share of the clients' messages, in (0, 1], whose vectors are stored in `captures/` as they are given to the operator; at most
    /// 1000 of a run. Absent: none.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<f64>,
}

/// How a run is carried out: nothing here changes a result, and nothing here counts in the name of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Carrying {
    /// A checkpoint is written every so many rounds, and kept after the last one. Absent: every second, or less often if it would take
    /// more than 2 % of the time, and kept after the last round if it is smaller than 16 MB.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u32>,
}

impl Carrying {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A scenario after every check that needs no data: one entry per slot, `None` where the section has mistakes.
pub struct Checked {
    /// The keys outside the slots; defaults where there were mistakes.
    pub general: General,
    /// The sections in the order of the slots.
    pub sections: Vec<Option<Section>>,
}

/// Checks a document against the slots, adding every mistake.
pub fn check(document: &Document, slots: &[Slot], mistakes: &mut Vec<Mistake>) -> Checked {
    let general_schema = schema_of::<General>();
    let mut known: Vec<&str> = schema::properties(&general_schema).map(|(name, _)| name).collect();
    known.extend(slots.iter().map(|slot| slot.section));
    let mut general = toml::Table::new();
    for (key, node) in document.root().entries() {
        if slots.iter().any(|slot| slot.section == key) {
            continue;
        }
        match schema::properties(&general_schema).find(|(name, _)| name == key) {
            Some((_, of)) => {
                if let Some(value) = schema::check(node, key, of, mistakes) {
                    general.insert(key.clone(), value);
                }
            }
            None => mistakes.push(schema::unknown_key("", key, &known)),
        }
    }
    let sections = slots.iter().map(|slot| check_section(document, slot, mistakes)).collect();
    let general = general.try_into().expect("the check knows the keys, kinds and ranges of what it lets through");
    Checked { general, sections }
}

/// A setting as the cell of a table: text without quotes.
pub fn cell(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        // Thirty zeros are hard to read.
        toml::Value::Float(number) if number.abs() >= 1e9 || (*number != 0.0 && number.abs() < 1e-4) => {
            format!("{number:e}")
        }
        other => other.to_string(),
    }
}

/// The values of a scenario by dotted key; whatever is in a table is reached by its own key.
pub fn flat(table: &toml::Table) -> BTreeMap<String, toml::Value> {
    let mut values = BTreeMap::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => {
                values.extend(flat(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            other => {
                values.insert(key.clone(), other.clone());
            }
        }
    }
    values
}

/// Where a part stands: inside the settings of another part, and in a file whose lines a user can change.
#[derive(Clone, Copy)]
struct Place {
    is_inside: bool,
    is_file: bool,
}

/// Checks the section of one slot, adding every mistake.
pub fn check_section(document: &Document, slot: &Slot, mistakes: &mut Vec<Mistake>) -> Option<Section> {
    let is_file = !document.path.as_os_str().is_empty();
    check_part(document.get(slot.section), slot.section, slot, Place { is_inside: false, is_file }, mistakes)
}

/// Checks the part that stands at `path`: the one that a section names, or one inside the settings of another part, which has no
/// keys but its own and must be named.
fn check_part(
    node: Option<&Node>,
    path: &str,
    slot: &Slot,
    place: Place,
    mistakes: &mut Vec<Mistake>,
) -> Option<Section> {
    let Place { is_inside, is_file } = place;
    let before = mistakes.len();
    let (common, default) = if is_inside { (&Schema::Null, None) } else { (&slot.common, slot.default) };
    if let Some(node) = node
        && !matches!(node.value, Value::Table(_))
    {
        let message = if is_inside {
            format!(
                "`{path}` is a single value, but must be a table `{{ {} = \"..\" }}` with its settings",
                slot.selector
            )
        } else {
            format!("`{path}` is a single value, but must be a section `[{path}]`")
        };
        mistakes.push(Mistake::new(path, message).label(if is_inside { "not a table" } else { "not a section" }));
        return None;
    }
    let names: Vec<&str> = slot.parts.iter().map(|(name, _)| *name).collect();
    let named = node.and_then(|node| node.get(slot.selector));
    let full = format!("{path}.{}", slot.selector);
    let name = match (named, default) {
        (Some(node), _) => {
            if let Some(name) = node.as_str() {
                name
            } else {
                let message = format!("`{}` must be a name: {}", slot.selector, schema::list(&names));
                mistakes.push(Mistake::new(full, message));
                return None;
            }
        }
        (None, Some(default)) => default,
        (None, None) => {
            let message = format!("`{full}` is missing; it is one of {}", schema::list(&names));
            mistakes.push(Mistake::new(full, message).label(format!("lacks `{}`", slot.selector)));
            return None;
        }
    };
    let Some((_, own)) = slot.parts.iter().find(|(part, _)| *part == name) else {
        let message = format!("unknown {} `{name}`; there are {}", kind_of(slot), schema::list(&names));
        let mistake = Mistake::new(full, message).label("not in the catalogue");
        mistakes.push(match nearest(name, names) {
            Some(near) => mistake.help(format!("did you mean `{near}`?")),
            None => mistake.help(format!("`fedbits list {}` describes them", slot.listing)),
        });
        return None;
    };
    let mut section = Section { name: name.to_owned(), common: toml::Table::new(), settings: toml::Table::new() };
    let mut known = vec![slot.selector];
    known.extend(schema::properties(own).map(|(name, _)| name));
    known.extend(schema::properties(common).map(|(name, _)| name));
    for (key, node) in node.map(Node::entries).unwrap_or_default() {
        if key == slot.selector {
            continue;
        }
        let of = |of| schema::properties(of).find(|(name, _)| name == key).map(|(_, of)| of);
        let full = format!("{path}.{key}");
        if let Some(of) = of(common) {
            if let Some(value) = schema::check_in(Some(slot), node, &full, of, mistakes) {
                section.common.insert(key.clone(), value);
            }
        } else if let Some(of) = of(own) {
            if let Some(value) = schema::check_in(Some(slot), node, &full, of, mistakes) {
                section.settings.insert(key.clone(), value);
            }
        } else {
            mistakes.push(foreign_key(slot, path, name, key, &known, is_file));
        }
    }
    for required in own.get("required").and_then(Schema::as_array).into_iter().flatten().filter_map(Schema::as_str) {
        if node.is_none_or(|node| node.get(required).is_none()) {
            let of = &own["properties"][required];
            let message = format!("`{name}` needs `{required}`: {}", schema::allowed(of));
            let mistake = Mistake::new(format!("{path}.{required}"), message).label(format!("lacks `{required}`"));
            mistakes.push(mistake.help(format!("`fedbits explain {name}` lists all settings")));
        }
    }
    (mistakes.len() == before).then_some(section)
}

/// A key that the named part does not have; most often it is left over from another part.
fn foreign_key(slot: &Slot, path: &str, name: &str, key: &str, known: &[&str], is_file: bool) -> Mistake {
    let message = format!("`{name}` has no setting `{key}`");
    let mistake =
        Mistake::new(format!("{path}.{key}"), message).at_key().label(format!("`{name}` has no such setting"));
    let owner = slot.parts.iter().find(|(_, schema)| schema::properties(schema).any(|(name, _)| name == key));
    mistake.help(match (owner, nearest(key, known.iter().copied())) {
        (Some((owner, _)), _) if !is_file => format!("`{key}` belongs to `{owner}`"),
        (None, None) if !is_file => format!("`fedbits explain {name}` lists all settings"),
        (Some((owner, _)), _) => format!(
            "`{key}` belongs to `{owner}`; to replace the whole section write '{path}={{{}=\"{name}\"}}'",
            slot.selector
        ),
        (None, Some(near)) => format!("did you mean `{near}`? `fedbits explain {name}` lists all settings"),
        (None, None) => format!("`[{path}]` may have {}; `fedbits explain {name}` explains them", schema::list(known)),
    })
}

fn kind_of(slot: &Slot) -> &'static str {
    if slot.selector == "operator" {
        "operator"
    } else if slot.section == "data" {
        "data set"
    } else {
        slot.section
    }
}

/// JSON schema of a whole scenario file, for completion in editors. `fedbits check` is stricter: it knows which keys a part needs.
pub fn json_schema(slots: &[Slot]) -> Schema {
    let mut root = schema_of::<General>();
    root["title"] = "fedbits scenario".into();
    root["additionalProperties"] = false.into();
    let properties = root["properties"].as_object_mut().expect("a struct has properties");
    properties.insert("include".into(), serde_json::json!({ "description": "Scenario files laid under this one." }));
    let mut inside = serde_json::Map::new();
    let axes = serde_json::json!({ "type": "object", "description": "Axes of `fedbits sweep`: keys with lists of values or ranges." });
    properties.insert("sweep".into(), axes);
    for slot in slots {
        let mut parts = part_schemas(slot, &slot.common);
        if refer_to_parts(&mut parts) && !inside.contains_key(slot.selector) {
            let mut own = part_schemas(slot, &serde_json::json!({ "type": "object" }));
            refer_to_parts(&mut own);
            inside.insert(slot.selector.into(), serde_json::json!({ "anyOf": own }));
        }
        properties.insert(slot.section.into(), serde_json::json!({ "anyOf": parts }));
    }
    if !inside.is_empty() {
        root["$defs"] = inside.into();
    }
    let required: Vec<&str> = slots.iter().filter(|slot| slot.default.is_none()).map(|slot| slot.section).collect();
    // What a file lacks may stand in the files that it includes.
    root["anyOf"] = serde_json::json!([{ "required": required }, { "required": ["include"] }]);
    root
}

/// One schema for every part of a slot, with the keys of `common` beside its own.
fn part_schemas(slot: &Slot, common: &Schema) -> Schema {
    let one = |(name, own): &(&'static str, Schema)| {
        let mut part = common.clone();
        let mut of = own.get("properties").and_then(Schema::as_object).cloned().unwrap_or_default();
        of.extend(common.get("properties").and_then(Schema::as_object).cloned().unwrap_or_default());
        of.insert(slot.selector.into(), serde_json::json!({ "const": name }));
        part["title"] = (*name).into();
        part["description"] = own.get("description").cloned().unwrap_or_default();
        part["properties"] = of.into();
        part["additionalProperties"] = false.into();
        part
    };
    slot.parts.iter().map(one).collect()
}

/// Puts a reference to the list of parts in place of every `x-part`; whether there was one.
fn refer_to_parts(schema: &mut Schema) -> bool {
    match schema {
        Schema::Object(object) => match object.get("x-part").and_then(Schema::as_str) {
            Some(selector) => {
                let description = object.get("description").cloned().unwrap_or_default();
                *schema = serde_json::json!({ "$ref": format!("#/$defs/{selector}"), "description": description });
                true
            }
            None => object.values_mut().fold(false, |any, value| refer_to_parts(value) | any),
        },
        Schema::Array(items) => items.iter_mut().fold(false, |any, value| refer_to_parts(value) | any),
        _ => false,
    }
}
