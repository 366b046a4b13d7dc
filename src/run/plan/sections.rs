//! The sections of a scenario: what may stand in them, from the catalogues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Entry, schema_of},
    compress::{self, Granularity},
    data::{self, Options},
    link, method,
    model::{self, Engine},
    partition,
    run::Participation,
    scenario::Slot,
    wire,
};

/// Keys of `[uplink]` and `[downlink]` beside those of the operator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LinkSettings {
    /// Memory rule of the link.
    pub(super) link: String,
    /// Coder of the messages; `default` is the one that the operator names.
    pub(super) coder: String,
    /// What is compressed as one part.
    pub(super) granularity: Grain,
    /// Number of groups for `granularity = "groups"`, at least 1; 2 if absent.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) groups: Option<u32>,
    /// Values of a part: at least for `granularity = "size"`, exactly for `"blocks"`; 65536 and 4096 if absent.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) part_values: Option<u32>,
    /// Instead of a strength: bits a value that no message may exceed, above 0; the mildest strength that keeps to it is taken,
    /// message by message, and said in its first 8 bits.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 64.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bits_per_coordinate: Option<f64>,
    /// Instead of a strength: relative squared error that no message may exceed, in (0, 1]; the harshest strength that keeps to it is
    /// taken, message by message, and said in its first 8 bits.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_error: Option<f64>,
}

/// What is compressed as one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Grain {
    /// The whole vector at once.
    #[default]
    Model,
    /// Every tensor by itself.
    Layer,
    /// Runs of neighbouring tensors, as many as `groups` says, of sizes as equal as whole tensors allow.
    Groups,
    /// Runs of neighbouring tensors, filled from the last one on until they hold `part_values`.
    Size,
    /// Runs of exactly `part_values` values, whatever tensor they belong to.
    Blocks,
}

impl LinkSettings {
    /// How vectors are cut, with what is absent filled in; or the keys that do not count for this granularity.
    pub(super) fn granularity(&mut self) -> Result<Granularity, Vec<(&'static str, String)>> {
        let mut idle = Vec::new();
        if self.groups.is_some() && self.granularity != Grain::Groups {
            idle.push(("groups", "`groups` counts only with `granularity = \"groups\"`".to_owned()));
        }
        if self.part_values.is_some() && !matches!(self.granularity, Grain::Size | Grain::Blocks) {
            let message = "`part_values` counts only with `granularity = \"size\"` or `\"blocks\"`".to_owned();
            idle.push(("part_values", message));
        }
        if !idle.is_empty() {
            return Err(idle);
        }
        Ok(match self.granularity {
            Grain::Model => Granularity::Model,
            Grain::Layer => Granularity::Layer,
            Grain::Groups => Granularity::Groups(*self.groups.get_or_insert(2) as usize),
            Grain::Size => Granularity::Size(*self.part_values.get_or_insert(65_536) as usize),
            Grain::Blocks => Granularity::Blocks(*self.part_values.get_or_insert(4096) as usize),
        })
    }
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            link: "plain".into(),
            coder: "default".into(),
            granularity: Grain::Model,
            groups: None,
            part_values: None,
            bits_per_coordinate: None,
            target_error: None,
        }
    }
}

/// Keys of `[partition]` beside those of the partitioner.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PartitionSettings {
    /// Number of clients. Absent: what the partitioner implies, else 100.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clients: Option<u32>,
}

/// Keys of `[model]` beside those of the architecture.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ModelSettings {
    /// What computes gradients: `auto` takes the fastest engine that can, `burn` the framework.
    pub(super) engine: Engine,
}

fn parts<P: ?Sized>(entries: &'static [Entry<P>]) -> Vec<(&'static str, serde_json::Value)> {
    entries.iter().map(|entry| (entry.name, (entry.schema)())).collect()
}

fn link_schema() -> serde_json::Value {
    let mut schema = schema_of::<LinkSettings>();
    let words = |words: Vec<&str>, description: &serde_json::Value| serde_json::json!({ "enum": words, "description": description });
    let rules = link::CATALOGUE.iter().map(|entry| entry.name).collect();
    let coders = std::iter::once("default").chain(wire::CATALOGUE.iter().map(|entry| entry.name)).collect();
    schema["properties"]["link"] = words(rules, &schema["properties"]["link"]);
    schema["properties"]["coder"] = words(coders, &schema["properties"]["coder"]);
    schema
}

/// Sections and the keys that name their parts, in the order of the slots.
pub(super) const SECTIONS: [(&str, &str); 6] = [
    ("data", "name"),
    ("partition", "name"),
    ("model", "name"),
    ("method", "name"),
    ("uplink", "operator"),
    ("downlink", "operator"),
];
pub(super) const DATA: usize = 0;
pub(super) const PARTITION: usize = 1;
pub(super) const MODEL: usize = 2;
pub(super) const METHOD: usize = 3;
pub(super) const UPLINK: usize = 4;
pub(super) const DOWNLINK: usize = 5;

/// The sections of a scenario, from the catalogues.
pub fn slots() -> Vec<Slot> {
    let slot = |at: usize, listing, default, common, parts| {
        let (section, selector) = SECTIONS[at];
        Slot { section, selector, listing, default, common, parts }
    };
    vec![
        slot(DATA, "data", None, schema_of::<Options>(), parts(data::CATALOGUE)),
        slot(PARTITION, "partitioners", Some("iid"), schema_of::<PartitionSettings>(), parts(partition::CATALOGUE)),
        slot(MODEL, "models", None, schema_of::<ModelSettings>(), parts(model::CATALOGUE)),
        slot(METHOD, "methods", Some("fedavg"), schema_of::<Participation>(), parts(method::CATALOGUE)),
        slot(UPLINK, "operators", Some("identity"), link_schema(), parts(compress::CATALOGUE)),
        slot(DOWNLINK, "operators", Some("identity"), link_schema(), parts(compress::CATALOGUE)),
    ]
}
