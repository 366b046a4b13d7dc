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
    /// What is compressed as one part: the whole model, every layer, or groups of layers.
    pub(super) granularity: Granularity,
    /// Number of groups for `granularity = "groups"`, at least 1.
    #[schemars(range(min = 1))]
    pub(super) groups: u32,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self { link: "plain".into(), coder: "default".into(), granularity: Granularity::Model, groups: 2 }
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
