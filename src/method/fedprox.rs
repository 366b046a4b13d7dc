//! FedProx.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Method, Node, Role, Setup, local_steps::LocalSteps};
use crate::{catalogue::Named, compress::Misfit, link::Link};

/// FedAvg whose local steps are pulled back towards the received model.
///
/// # Update
/// As FedAvg with the local gradient `grad f_k(y) + mu (y - x)`.
///
/// # Sent
/// As FedAvg.
///
/// # Memory
/// As FedAvg.
///
/// # Step size
/// As FedAvg; `proximal` is usually 0.001, 0.01, 0.1 or 1.
///
/// # Source
/// Li et al., *Federated Optimization in Heterogeneous Networks*, 2018, algorithm 2. Differs from the source in: the local problem is
/// solved by a given number of epochs, not to a given accuracy.
///
/// # Reduces to
/// FedAvg with `proximal = 0`, bit for bit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fedprox {
    #[serde(flatten)]
    local: LocalSteps,
    /// Weight `mu` of the proximal term, at least 0; larger keeps clients closer to the received model.
    #[schemars(range(min = 0.0))]
    proximal: f64,
}

impl Default for Fedprox {
    fn default() -> Self {
        Self { local: LocalSteps::default(), proximal: 0.01 }
    }
}

impl Named for Fedprox {
    const NAME: &'static str = "fedprox";
    const EXAMPLE: &'static str = "proximal = 0.1";
}

impl Method for Fedprox {
    fn phases(&self) -> Vec<Role> {
        LocalSteps::phases()
    }

    fn node(&self, role: Role, setup: &Setup) -> Box<dyn Node> {
        self.local.node(role, setup, self.proximal)
    }

    fn depends_on_rounds(&self) -> bool {
        self.local.depends_on_rounds()
    }

    fn idle(&self) -> Vec<(&'static str, &'static str)> {
        self.local.idle()
    }

    fn check(&self, uplink: &Link, downlink: &Link) -> Result<(), (&'static str, Misfit)> {
        LocalSteps::check(uplink, downlink)
    }
}
