//! FedAvg.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Method, Node, Role, Setup, local_steps::LocalSteps};
use crate::{catalogue::Named, compress::Misfit, link::Link};

/// Federated averaging: clients train for some epochs and the server averages the changes.
///
/// # Update
/// Client `k`: `y = x`; for every batch `y -= eta grad f_k(y)`; `D_k = x - y`. Server: `x -= eta_g sum_k (n_k / n) D_k`, the sum over
/// the clients that reported and `n` their samples (with Bernoulli sampling: the expected number of samples of a round), or one of
/// the server optimisers on the average.
///
/// # Sent
/// Down: the model to every client of the round. Up: `D_k`, through the uplink's operator and rule.
///
/// # Memory
/// Client: none, but for the memory of its link and, with `momentum_memory = "keep"`, its momentum. Server: the model and the
/// vectors of its optimiser.
///
/// # Step size
/// `learning_rate` for the local steps, 0.1 by default; `server_learning_rate` for the server.
///
/// # Source
/// McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*, 2017, algorithm 1; server optimisers:
/// Reddi et al., *Adaptive Federated Optimization*, 2020. Differs from the source in: changes are averaged, not models, which is
/// the same but for the last bits.
///
/// # Reduces to
/// FedSGD with `local_epochs = 1` and `batch_size = "full"`; FedPAQ with an unbiased uplink operator.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fedavg {
    #[serde(flatten)]
    local: LocalSteps,
}

impl Named for Fedavg {
    const NAME: &'static str = "fedavg";
    const EXAMPLE: &'static str = "local_epochs = 5\nbatch_size = 10\nlearning_rate = 0.1";
}

impl Method for Fedavg {
    fn phases(&self) -> Vec<Role> {
        LocalSteps::phases()
    }

    fn node(&self, role: Role, setup: &Setup) -> Box<dyn Node> {
        self.local.node(role, setup, 0.0)
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
