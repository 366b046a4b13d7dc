//! The line-up: every operator of the catalogue with the settings that are compared.

use crate::{
    catalogue::{Entry, Strength, find},
    compress::{self, Operator},
    run::slots,
    scenario::{Section, schema::properties},
};

/// Settings of published comparisons beside the examples of the catalogue, in TOML; their strengths are swept.
const PUBLISHED: &[(&str, &str)] = &[
    ("weave", "basis = \"rotated\""),
    ("weave", "basis = \"original\""),
    ("weave", "basis = \"rotated\"\nunbiased = true"),
    ("top-k", "coder = \"fixed\""),
    ("top-k", "values = \"natural\""),
    ("rand-k", "scaled = false"),
    ("qsgd", "coder = \"elias-omega\""),
    ("qsgd", "bucket = 512\ncoder = \"elias-omega\""),
    ("qsgd", "norm = \"linf\"\nbucket = 512\ncoder = \"fixed\""),
    ("terngrad", "clip = 2.5"),
    ("natural-dithering", "coder = \"fixed\""),
    ("sparse-dithering", "coder = \"enumerative\""),
    ("sparse-dithering", "coder = \"stars-and-bars\""),
    ("random-vq", "unbiased = true"),
    ("drive", "scale = \"biased\""),
    ("eden", "scale = \"biased\""),
    ("weave", "basis = \"original\"\ncoder = \"adaptive\""),
    ("ecsq", "coder = \"mixture\""),
];

/// Strengths that are measured of a lane where no rates are asked for.
const POINTS: usize = 8;

/// An operator with settings, and the setting that trades its bits for error.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Operator and settings as they are typed, without the strength.
    pub name: String,
    section: Section,
    strength: Option<Strength>,
}

impl Lane {
    /// The lane of a section: what it says of the strength is set aside.
    pub fn new(section: Section) -> Self {
        let strength = find(compress::CATALOGUE, &section.name).and_then(|entry| entry.strength);
        Self::along(section, strength)
    }

    /// The lane of a section along another strength than that of its operator.
    fn along(mut section: Section, strength: Option<Strength>) -> Self {
        let has_aim = ["bits_per_coordinate", "target_error"].iter().any(|key| section.common.contains_key(*key));
        // A codec that solves its strength has none to sweep.
        let strength = strength.filter(|_| !has_aim);
        for key in strength.iter().flat_map(|strength| std::iter::once(&strength.key).chain(strength.instead_of)) {
            section.settings.remove(*key);
        }
        let given = section.settings.iter().chain(&section.common);
        let words = given.map(|(key, value)| format!(" {key}={}", super::plain(value)));
        let name = std::iter::once(section.name.clone()).chain(words).collect();
        Self { name, section, strength }
    }

    /// Whether there is a strength to sweep.
    pub fn has_strength(&self) -> bool {
        self.strength.is_some()
    }

    /// The section at a step of the strength; without a strength the same at every step.
    pub fn at(&self, step: usize) -> Section {
        let mut section = self.section.clone();
        if let Some(strength) = self.strength {
            section.settings.insert(strength.key.to_owned(), strength.value(step));
        }
        section
    }

    /// The sections along the lane, the mildest first.
    pub fn points(&self) -> Vec<Section> {
        let points = if self.has_strength() { POINTS } else { 1 };
        let step = |point: usize| point * (Strength::STEPS - 1) / (POINTS - 1);
        let mut sections: Vec<Section> = (0..points).map(|point| self.at(step(point))).collect();
        sections.dedup_by(|a, b| a.settings == b.settings);
        sections
    }
}

/// A section from settings in TOML.
fn section(entry: &Entry<dyn Operator>, settings: &str) -> Section {
    let slots = slots();
    let slot = slots.iter().find(|slot| slot.section == "uplink").expect("there is an uplink");
    let settings: toml::Table = settings.parse().expect("the settings are TOML");
    let is_common = |key: &str| properties(&slot.common).any(|(name, _)| name == key);
    let (common, settings) = settings.into_iter().partition(|(key, _)| is_common(key));
    Section { name: entry.name.to_owned(), common, settings }
}

/// Settings whose bits follow from another number than the strength of their operator.
const OTHER_STRENGTHS: &[(&str, &str, Strength)] = &[
    (
        "sparse-dithering",
        "kind = \"randomised\"",
        Strength { key: "omega", mildest: 0.005, harshest: 400.0, whole: false, instead_of: &["nu"] },
    ),
    ("eden", "scale = \"biased\"", EDEN_STEP),
    ("eden", "scale = \"unbiased\"", EDEN_STEP),
];

/// The grid of entropy-coded EDEN.
const EDEN_STEP: Strength = Strength { key: "step", mildest: 0.2, harshest: 5.5, whole: false, instead_of: &["bits"] };

/// Every operator with its example, and with its published settings.
pub fn lanes() -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for entry in compress::CATALOGUE {
        let published = PUBLISHED.iter().filter(|(name, _)| *name == entry.name).map(|(_, settings)| *settings);
        for settings in std::iter::once(entry.example).chain(published) {
            let lane = Lane::new(section(entry, settings));
            if lanes.iter().all(|other| other.name != lane.name) {
                lanes.push(lane);
            }
        }
    }
    for &(name, settings, strength) in OTHER_STRENGTHS {
        let entry = find(compress::CATALOGUE, name).expect("the operator is listed");
        let mut lane = Lane::along(section(entry, settings), Some(strength));
        lane.name = format!("{} {}", lane.name, strength.key);
        lanes.push(lane);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{lab::Subject, layout::Layout};

    #[test]
    fn every_operator_is_in_the_line_up_and_every_lane_can_be_built() {
        let lanes = lanes();
        for entry in compress::CATALOGUE {
            let own: Vec<&Lane> = lanes.iter().filter(|lane| lane.section.name == entry.name).collect();
            assert!(!own.is_empty());
            assert!(own.iter().all(|lane| lane.has_strength() == entry.strength.is_some()));
        }
        for (name, _) in PUBLISHED {
            assert!(find(compress::CATALOGUE, name).is_some(), "{name} is no operator");
        }
        for lane in &lanes {
            let built = lane.points().iter().filter(|s| Subject::new(s, Arc::new(Layout::flat(1000))).is_ok()).count();
            assert!(built > 0, "{} has no point", lane.name);
        }
    }

    #[test]
    fn the_strength_is_set_aside_and_swept_from_mild_to_harsh() {
        let entry = find(compress::CATALOGUE, "top-k").expect("the operator is listed");
        let lane = Lane::new(section(entry, "k = 3\ncoder = \"fixed\""));
        assert_eq!(lane.name, "top-k coder=fixed");
        let points = lane.points();
        assert_eq!(points.len(), POINTS);
        let ratio = |section: &Section| section.settings["ratio"].as_float().expect("a number");
        assert!((ratio(&points[0]) - 1.0).abs() < 1e-12 && (ratio(&points[7]) / 1e-5 - 1.0).abs() < 1e-9);
        assert!(points.iter().all(|section| !section.settings.contains_key("k")));
    }
}
