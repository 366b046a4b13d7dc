//! Checks a tree of values against a JSON schema and finds every mistake, not just the first.
//!
//! The schemas are derived from the settings structs, so a range, a list of allowed words or a default is written once: beside
//! the field. Only the part of JSON Schema that those derivations produce is understood; anything else is a bug and asserts.

use serde_json::Value as Schema;

use super::{Mistake, Place, Slot, check_part, document::Node, document::Value};
use crate::catalogue::nearest;

/// Checks `node` at `path` and returns its value with numbers in the form that the schema asks for: `1e3` where a whole number is
/// wanted is 1000. Mistakes are added to `mistakes`; a value with a mistake is left out of its table.
pub fn check(node: &Node, path: &str, schema: &Schema, mistakes: &mut Vec<Mistake>) -> Option<toml::Value> {
    check_in(None, node, path, schema, mistakes)
}

/// The same for a value of a section: where the schema says `x-part`, one of the section's parts stands with its settings.
pub(super) fn check_in(
    slot: Option<&Slot>,
    node: &Node,
    path: &str,
    schema: &Schema,
    mistakes: &mut Vec<Mistake>,
) -> Option<toml::Value> {
    if let (Some(slot), Some(_)) = (slot, schema.get("x-part")) {
        let part = check_part(Some(node), path, slot, Place { is_inside: true, is_file: false }, mistakes)?;
        let mut table = part.settings;
        table.insert(slot.selector.to_owned(), part.name.into());
        return Some(toml::Value::Table(table));
    }
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Schema::as_array) {
        return check_choices(slot, node, path, choices, mistakes);
    }
    if let Some(words) = schema.get("enum").and_then(Schema::as_array) {
        let choices: Vec<Schema> = words.iter().map(|word| serde_json::json!({ "const": word })).collect();
        return check_choices(slot, node, path, &choices, mistakes);
    }
    if let Some(constant) = schema.get("const") {
        return check_choices(slot, node, path, &[serde_json::json!({ "const": constant })], mistakes);
    }
    let kinds = kinds(schema);
    match &node.value {
        Value::Table(_) if kinds.contains(&"object") => {
            Some(toml::Value::Table(check_table(slot, node, path, schema, mistakes)))
        }
        Value::Array(items) if kinds.contains(&"array") => {
            let of = schema.get("items").unwrap_or(&Schema::Bool(true));
            let checked =
                items.iter().enumerate().map(|(i, item)| check_in(slot, item, &format!("{path}.{i}"), of, mistakes));
            let checked: Vec<_> = checked.collect();
            check_length(items.len(), path, schema, mistakes);
            checked.into_iter().collect::<Option<Vec<_>>>().map(toml::Value::Array)
        }
        Value::Scalar(scalar) => check_scalar(scalar, path, schema, &kinds, mistakes),
        _ if kinds.is_empty() => Some(plain(node)),
        _ => {
            mistakes.push(wrong_kind(path, found(&node.value), &kinds));
            None
        }
    }
}

/// The value as it stands, without a check.
pub fn plain(node: &Node) -> toml::Value {
    match &node.value {
        Value::Scalar(scalar) => scalar.clone(),
        Value::Array(items) => toml::Value::Array(items.iter().map(plain).collect()),
        Value::Table(entries) => {
            toml::Value::Table(entries.iter().map(|(key, node)| (key.clone(), plain(node))).collect())
        }
    }
}

/// Names of the properties of an object schema.
pub fn properties(schema: &Schema) -> impl Iterator<Item = (&str, &Schema)> {
    schema.get("properties").and_then(Schema::as_object).into_iter().flatten().map(|(name, of)| (name.as_str(), of))
}

/// What a schema allows, in words: `a whole number, at least 1`.
pub fn allowed(schema: &Schema) -> String {
    if let Some(selector) = schema.get("x-part").and_then(Schema::as_str) {
        return format!("a table with `{selector} = \"..\"` and its settings");
    }
    if let Some(words) = words(schema) {
        return format!("one of {}", list(&words));
    }
    if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Schema::as_array) {
        let choices: Vec<String> = choices.iter().filter(|choice| kinds(choice) != ["null"]).map(allowed).collect();
        return choices.join(", or ");
    }
    if let Some(constant) = schema.get("const").and_then(Schema::as_str) {
        return format!("`{constant}`");
    }
    let kinds = kinds(schema);
    let kind = kinds.iter().filter(|kind| **kind != "null").map(|kind| in_words(kind)).collect::<Vec<_>>().join(" or ");
    match range(schema, given) {
        Some(range) => format!("{kind} {range}"),
        None if kind.is_empty() => "any value".to_owned(),
        None => kind,
    }
}

/// The unknown keys of a table, each with the nearest known name; `known` in the order in which they are listed to the user.
pub fn unknown_key(path: &str, key: &str, known: &[&str]) -> Mistake {
    let section = if path.is_empty() { "a scenario".to_owned() } else { format!("`{path}`") };
    let full = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let mistake = Mistake::new(full, format!("unknown key `{key}`")).at_key().label("no such key");
    mistake.help(match nearest(key, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("{section} has {}", list(known)),
    })
}

/// The words of a list, each in backticks.
pub fn list(words: &[&str]) -> String {
    match words {
        [] => "no settings".to_owned(),
        words => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
    }
}

fn check_table(
    slot: Option<&Slot>,
    node: &Node,
    path: &str,
    schema: &Schema,
    mistakes: &mut Vec<Mistake>,
) -> toml::Table {
    let known: Vec<&str> = properties(schema).map(|(name, _)| name).collect();
    let mut table = toml::Table::new();
    for (key, value) in node.entries() {
        match schema.get("properties").and_then(|properties| properties.get(key)) {
            Some(of) => {
                let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if let Some(value) = check_in(slot, value, &full, of, mistakes) {
                    table.insert(key.clone(), value);
                }
            }
            None if schema.get("additionalProperties") == Some(&Schema::Bool(false)) => {
                mistakes.push(unknown_key(path, key, &known));
            }
            None => drop(table.insert(key.clone(), plain(value))),
        }
    }
    for required in schema.get("required").and_then(Schema::as_array).into_iter().flatten() {
        let name = required.as_str().expect("`required` lists names");
        if node.get(name).is_none() {
            let of = schema.get("properties").and_then(|properties| properties.get(name)).unwrap_or(&Schema::Null);
            let full = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let message = format!("`{name}` is missing; it wants {}", allowed(of));
            mistakes.push(Mistake::new(full, message).label(format!("lacks `{name}`")));
        }
    }
    table
}

fn check_scalar(
    scalar: &toml::Value,
    path: &str,
    schema: &Schema,
    kinds: &[&str],
    mistakes: &mut Vec<Mistake>,
) -> Option<toml::Value> {
    use toml::Value as T;
    if kinds.is_empty() {
        return Some(scalar.clone());
    }
    let wanted = |kind: &str| kinds.contains(&kind);
    let value = match scalar {
        T::Integer(integer) if wanted("integer") => T::Integer(*integer),
        T::Integer(integer) if wanted("number") => T::Float(*integer as f64),
        T::Float(float) if wanted("number") => T::Float(*float),
        // A whole number may be written as `1e3` or `10.0`, as people do.
        T::Float(float) if wanted("integer") && float.fract() == 0.0 && float.abs() < 9e15 => T::Integer(*float as i64),
        T::String(_) if wanted("string") => scalar.clone(),
        T::Boolean(_) if wanted("boolean") => scalar.clone(),
        other => {
            mistakes.push(wrong_kind(path, found(&Value::Scalar(other.clone())), kinds));
            return None;
        }
    };
    let number = match value {
        T::Integer(integer) => integer as f64,
        T::Float(float) => float,
        _ => return Some(value),
    };
    let key = last_step(path);
    if !number.is_finite() {
        mistakes.push(Mistake::new(path, format!("`{key}` is {number}, not a finite number")).label("not finite"));
        return None;
    }
    let inside = bound(schema, "minimum").is_none_or(|least| number >= least)
        && bound(schema, "maximum").is_none_or(|most| number <= most)
        && bound(schema, "exclusiveMinimum").is_none_or(|least| number > least)
        && bound(schema, "exclusiveMaximum").is_none_or(|most| number < most);
    if !inside {
        let range = range(schema, bound).unwrap_or_default();
        mistakes.push(Mistake::new(path, format!("`{key}` is {scalar}, but must be {range}")).label("out of range"));
        return None;
    }
    Some(value)
}

fn check_length(length: usize, path: &str, schema: &Schema, mistakes: &mut Vec<Mistake>) {
    let bound = |name: &str| schema.get(name).and_then(Schema::as_u64);
    if bound("minItems").is_some_and(|least| (length as u64) < least) {
        let key = last_step(path);
        mistakes.push(Mistake::new(path, format!("`{key}` is a list of {length}, but needs more entries")));
    }
}

fn check_choices(
    slot: Option<&Slot>,
    node: &Node,
    path: &str,
    choices: &[Schema],
    mistakes: &mut Vec<Mistake>,
) -> Option<toml::Value> {
    let scalar_equals = |constant: &Schema| match (&node.value, constant) {
        (Value::Scalar(toml::Value::String(text)), Schema::String(constant)) => text == constant,
        (Value::Scalar(toml::Value::Integer(value)), Schema::Number(constant)) => constant.as_i64() == Some(*value),
        _ => false,
    };
    let mut nearest_mistakes = None;
    for choice in choices {
        if let Some(constant) = choice.get("const") {
            if scalar_equals(constant) {
                return Some(plain(node));
            }
            continue;
        }
        let mut own = Vec::new();
        let value = check_in(slot, node, path, choice, &mut own);
        if own.is_empty() && value.is_some() {
            return value;
        }
        // A choice of the right kind whose range is missed explains better than the list of all choices.
        if kind_matches(&node.value, &kinds(choice)) {
            nearest_mistakes = Some(own);
        }
    }
    if let Some(own) = nearest_mistakes {
        mistakes.extend(own);
        return None;
    }
    let all = Schema::Object([("anyOf".to_owned(), Schema::Array(choices.to_vec()))].into_iter().collect());
    let key = last_step(path);
    let mut mistake = Mistake::new(path, format!("`{key}` is {}, but must be {}", shown(node), allowed(&all)));
    if let (Some(words), Some(text)) = (words(&all), node.as_str()) {
        mistake = mistake.label("not allowed");
        if let Some(name) = nearest(text, words) {
            mistake = mistake.help(format!("did you mean `{name}`?"));
        }
    }
    mistakes.push(mistake);
    None
}

fn kind_matches(value: &Value, kinds: &[&str]) -> bool {
    let kind = match value {
        Value::Table(_) => "object",
        Value::Array(_) => "array",
        Value::Scalar(toml::Value::String(_)) => "string",
        Value::Scalar(toml::Value::Boolean(_)) => "boolean",
        Value::Scalar(toml::Value::Integer(_) | toml::Value::Float(_)) => "integer",
        Value::Scalar(_) => return false,
    };
    kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"))
}

fn shown(node: &Node) -> String {
    match &node.value {
        Value::Scalar(toml::Value::String(text)) => format!("`{text}`"),
        Value::Scalar(scalar) => format!("`{scalar}`"),
        value => found(value).to_owned(),
    }
}

fn last_step(path: &str) -> &str {
    path.rsplit('.').find(|step| step.parse::<usize>().is_err()).unwrap_or(path)
}

fn kinds(schema: &Schema) -> Vec<&str> {
    match schema.get("type") {
        Some(Schema::String(kind)) => vec![kind],
        Some(Schema::Array(kinds)) => kinds.iter().filter_map(Schema::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The words of a schema that is a plain list of words.
fn words(schema: &Schema) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Schema::as_array) {
        return words.iter().map(Schema::as_str).collect();
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Schema::as_array)?;
    choices.iter().map(|choice| choice.get("const").and_then(Schema::as_str)).collect()
}

/// A bound that is given.
fn given(schema: &Schema, name: &str) -> Option<f64> {
    schema.get(name).and_then(Schema::as_f64)
}

/// A bound that is given, or the one that the width of a number implies.
fn bound(schema: &Schema, name: &str) -> Option<f64> {
    let implied = match (schema.get("format").and_then(Schema::as_str), name) {
        (Some("uint8" | "uint16" | "uint32" | "uint64"), "minimum") => Some(0.0),
        (Some("uint8"), "maximum") => Some(f64::from(u8::MAX)),
        (Some("uint16"), "maximum") => Some(f64::from(u16::MAX)),
        (Some("uint32"), "maximum") => Some(f64::from(u32::MAX)),
        // Whole numbers beyond 2^53 are not all floats; none of our settings needs them.
        (Some("uint64"), "maximum") => Some(9_007_199_254_740_992.0),
        _ => None,
    };
    given(schema, name).or(implied)
}

/// The range of a number in words, from bounds as `bound` finds them.
fn range(schema: &Schema, bound: impl Fn(&Schema, &str) -> Option<f64>) -> Option<String> {
    let in_words = |name, words| bound(schema, name).map(|value| format!("{words} {}", plain_number(value)));
    let least = in_words("exclusiveMinimum", "greater than").or(in_words("minimum", "at least"));
    let most = in_words("maximum", "at most").or(in_words("exclusiveMaximum", "less than"));
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} and {most}")),
        (least, most) => least.or(most),
    }
}

/// A bound as a person would write it.
fn plain_number(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-4..1e16).contains(&value.abs());
    if is_plain { value.to_string() } else { format!("{value:e}") }
}

fn in_words(kind: &str) -> &str {
    match kind {
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a string",
        "boolean" => "`true` or `false`",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Table(_) => "a table",
        Value::Array(_) => "a list",
        Value::Scalar(scalar) => match scalar {
            toml::Value::String(_) => "a string",
            toml::Value::Integer(_) => "a whole number",
            toml::Value::Float(_) => "a decimal number",
            toml::Value::Boolean(_) => "a truth value",
            _ => "a date",
        },
    }
}

fn wrong_kind(path: &str, found: &str, kinds: &[&str]) -> Mistake {
    let key = last_step(path);
    let wanted = kinds.iter().filter(|kind| **kind != "null").map(|kind| in_words(kind)).collect::<Vec<_>>();
    let message = format!("`{key}` is {found}, but must be {}", wanted.join(" or "));
    Mistake::new(path, message).label(format!("{found} here"))
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;
    use serde_json::json;

    fn mistakes_of(text: &str, schema: &Schema) -> (Option<toml::Value>, Vec<String>) {
        let document = Document::parse("test.toml", text, &[]).expect("the syntax is right");
        let mut mistakes = Vec::new();
        let value = check(document.root(), "", schema, &mut mistakes);
        (value, mistakes.into_iter().map(|mistake| format!("{}: {}", mistake.path, mistake.message)).collect())
    }

    fn schema() -> Schema {
        json!({
            "type": "object", "additionalProperties": false, "required": ["rounds"],
            "properties": {
                "rounds": { "type": "integer", "minimum": 1 },
                "rate": { "type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1 },
                "mode": { "oneOf": [{ "const": "uniform" }, { "const": "all" }] },
                "size": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "full" }] },
            }
        })
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let (value, mistakes) = mistakes_of("rounds = 1e2\nrate = 1\nmode = 'all'\nsize = 'full'", &schema());
        assert_eq!(mistakes, Vec::<String>::new());
        let table = value.expect("no mistakes");
        assert_eq!(table["rounds"].as_integer(), Some(100));
        assert_eq!(table["rate"].as_float(), Some(1.0));
    }

    #[test]
    fn every_mistake_is_found_at_once() {
        let text = "ronds = 3\nrate = -0.1\nmode = 'unifrom'\nsize = 0";
        let (_, mistakes) = mistakes_of(text, &schema());
        assert_eq!(
            mistakes,
            [
                "ronds: unknown key `ronds`",
                "rate: `rate` is -0.1, but must be greater than 0 and at most 1",
                "mode: `mode` is `unifrom`, but must be one of `uniform`, `all`",
                "size: `size` is 0, but must be at least 1",
                "rounds: `rounds` is missing; it wants a whole number at least 1",
            ]
        );
    }

    #[test]
    fn wrong_types_and_non_finite_numbers_are_refused() {
        let (_, mistakes) = mistakes_of("rounds = 'ten'\nrate = nan\nmode = 3\nsize = [1]", &schema());
        assert_eq!(
            mistakes,
            [
                "rounds: `rounds` is a string, but must be a whole number",
                "rate: `rate` is NaN, not a finite number",
                "mode: `mode` is `3`, but must be one of `uniform`, `all`",
                "size: `size` is a list, but must be a whole number at least 1, or `full`",
            ]
        );
        let (_, mistakes) = mistakes_of("rounds = 1.5", &schema());
        assert_eq!(mistakes, ["rounds: `rounds` is a decimal number, but must be a whole number"]);
    }
}
