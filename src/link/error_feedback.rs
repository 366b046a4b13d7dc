//! Error feedback.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Need, Rule};
use crate::{
    catalogue::Named,
    vector::{add_scaled, difference},
};

/// Adds what earlier messages left out to the next one.
///
/// # Update
/// `u = e + v`; `m = C(u)`; `e = u - m`; the receiver uses `m`. The residual `e` is against the sender's own decoded message.
///
/// # Memory
/// One vector `e` at the sender, zero at first. It stays as it is while the sender is absent.
///
/// # Needs
/// A contractive operator; an unbiased one is scaled by `1 / (1 + omega)`.
///
/// # Source
/// Seide et al., *1-Bit SGD*, 2014; Karimireddy et al., *Error Feedback Fixes SignSGD*, 2019, algorithm 2. Differs from the source in:
/// nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorFeedback {}

impl Named for ErrorFeedback {
    const NAME: &'static str = "error-feedback";
}

impl Rule for ErrorFeedback {
    fn need(&self) -> Need {
        Need::Contractive
    }

    fn remembers(&self) -> bool {
        true
    }

    fn target(&self, target: &mut [f32], memory: &[f32]) {
        add_scaled(target, 1.0, memory);
    }

    fn sent(&self, target: &[f32], decoded: &[f32], memory: &mut [f32]) {
        difference(target, decoded, memory);
    }
}
