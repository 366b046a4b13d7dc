//! Operators inside operators.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{CATALOGUE, Misfit, Operator, Part, Unfit};
use crate::{
    catalogue::{find, nearest},
    layout::{Layer, Layout},
    payload::{Kind, Payload},
};

/// An operator with its settings, as the setting of another one: `{ operator = "qsgd", levels = 7 }`.
#[derive(Clone)]
pub struct Nested {
    /// Its name in the catalogue.
    name: &'static str,
    /// Its settings with every default filled in.
    settings: toml::Table,
    /// The operator.
    pub operator: Arc<dyn Operator>,
}

/// Operators stand inside each other at most so deep; their random streams are told apart that far.
const DEEPEST: usize = 3;

/// Number of operators on the way to the innermost one.
fn depth(settings: &toml::Table) -> usize {
    let inside = settings.values().filter_map(toml::Value::as_table).filter(|table| table.contains_key("operator"));
    1 + inside.map(depth).max().unwrap_or(0)
}

impl Nested {
    fn new(mut settings: toml::Table) -> Result<Self, String> {
        let Some(toml::Value::String(name)) = settings.remove("operator") else {
            return Err("an operator inside another one is named by `operator`".to_owned());
        };
        let Some(entry) = find(CATALOGUE, &name) else {
            let near = nearest(&name, CATALOGUE.iter().map(|entry| entry.name));
            return Err(format!(
                "unknown operator `{name}`{}",
                near.map_or(String::new(), |near| { format!("; did you mean `{near}`?") })
            ));
        };
        let built = (entry.build)(settings)?;
        Ok(Self { name: entry.name, settings: built.settings, operator: Arc::from(built.part) })
    }

    /// Checks the operator inside against the longest part; `key` is the setting that holds it.
    pub fn check(&self, key: &'static str, longest: usize) -> Result<(), Misfit> {
        if depth(&self.settings) > DEEPEST {
            let message = format!("operators may stand inside each other {DEEPEST} deep; this is deeper");
            return Err(Misfit { key, message });
        }
        let inside = |misfit: Misfit| Misfit { key, message: format!("`{}`: {}", self.name, misfit.message) };
        self.operator.check(longest).map_err(inside)
    }

    /// Compresses `x` and restores it: what to send, and what it stands for.
    pub fn try_out(&self, x: &[f32], part: &Part<'_>, warm: &mut Vec<f32>) -> Result<(Payload, Vec<f32>), Unfit> {
        let mut payload = Payload::default();
        self.operator.compress(x, part, warm, &mut payload)?;
        let mut restored = vec![0.0; x.len()];
        self.operator.restore(&mut payload.source(), part, &mut restored).expect("a sender can read its own payload");
        Ok((payload, restored))
    }
}

/// The part as the `k`-th operator inside sees it, with other random streams.
pub fn inside<'a>(part: &Part<'a>, k: u8) -> Part<'a> {
    Part { streams: part.streams.inner(k), ..*part }
}

/// The one layer of `n` values that have lost their shape.
pub fn flat(n: usize) -> Vec<Layer> {
    Layout::flat(n).layers().to_vec()
}

/// The kinds in `a` and `b`.
pub fn union(a: &'static [Kind], b: &'static [Kind]) -> &'static [Kind] {
    // There are few such lists; each is made once and kept.
    static KNOWN: Mutex<Vec<&'static [Kind]>> = Mutex::new(Vec::new());
    if b.iter().all(|kind| a.contains(kind)) {
        return a;
    }
    let mut both = a.to_vec();
    both.extend(b.iter().filter(|kind| !a.contains(kind)));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(list) = known.iter().find(|list| **list == both) {
        return list;
    }
    let list: &'static [Kind] = both.leak();
    known.push(list);
    list
}

/// A coder for what two operators send: the one that both name, or the one that writes everything.
pub fn common_coder(a: &Nested, b: &Nested) -> &'static str {
    let (a, b) = (a.operator.default_coder(), b.operator.default_coder());
    if a == b { a } else { "adaptive" }
}

impl fmt::Debug for Nested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = toml::Table::new();
        table.insert("operator".to_owned(), self.name.into());
        table.extend(self.settings.clone());
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Nested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(toml::Table::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for Nested {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Nested".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        // Whoever checks it knows the parts: listing them here would have to list what stands inside them, too.
        json_schema!({ "type": "object", "x-part": "operator" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Nested, String> {
        Nested::new(toml::from_str(text).expect("TOML"))
    }

    #[test]
    fn it_is_written_back_with_every_default() {
        let nested = read("operator = \"qsgd\"\nlevels = 3").expect("valid");
        let table = toml::Table::try_from(&nested).expect("a table");
        assert_eq!(table, toml::from_str("operator = \"qsgd\"\nlevels = 3\nnorm = \"l2\"").expect("TOML"));
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_the_reason() {
        let reason = |text| read(text).expect_err("it is wrong");
        assert!(reason("operator = \"topk\"").contains("did you mean `top-k`?"));
        assert!(reason("levels = 3").contains("`operator`"));
        assert!(reason("operator = \"sign\"\nlevels = 3").contains("levels"));
        let misfit = read("operator = \"top-k\"\nk = 9").expect("valid").check("of", 5).expect_err("too large");
        assert_eq!(misfit.key, "of");
        assert_eq!(misfit.message, "`top-k`: `k` is 9, but the longest part of the vector has 5 values");
        let mut deep = "{ operator = \"sign\" }".to_owned();
        for level in 1..=3 {
            let nested = read(&format!("operator = \"rotated\"\nof = {deep}")).expect("valid");
            assert_eq!(nested.check("of", 5).is_ok(), level < 3, "{level}");
            deep = format!("{{ operator = \"rotated\", of = {deep} }}");
        }
    }

    #[test]
    fn lists_of_kinds_are_made_once() {
        let both = union(&[Kind::Floats, Kind::Signs], &[Kind::Signs, Kind::Levels]);
        assert_eq!(both, [Kind::Floats, Kind::Signs, Kind::Levels]);
        assert!(std::ptr::eq(both, union(&[Kind::Floats, Kind::Signs], &[Kind::Levels])));
    }
}
