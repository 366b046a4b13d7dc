//! No memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Need, Rule};
use crate::catalogue::Named;

/// Sends `C(v)` and remembers nothing.
///
/// # Update
/// `m = C(v)`; the receiver uses `m`.
///
/// # Memory
/// None at either end.
///
/// # Needs
/// Any operator.
///
/// # Source
/// Alistarh et al., *QSGD*, 2017.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plain {}

impl Named for Plain {
    const NAME: &'static str = "plain";
}

impl Rule for Plain {
    fn need(&self) -> Need {
        Need::Any
    }

    fn remembers(&self) -> bool {
        false
    }

    fn target(&self, _target: &mut [f32], _memory: &[f32]) {}

    fn sent(&self, _target: &[f32], _decoded: &[f32], _memory: &mut [f32]) {}
}
