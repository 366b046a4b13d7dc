//! Ridge regression.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Architecture, Loss, Network, Regression};
use crate::catalogue::Named;

/// Ridge regression on a table: linear least squares with a quadratic penalty and a known minimiser.
///
/// # Layers
/// One weight a feature, no bias; all start at 0. Body-Fat: 14 parameters.
///
/// # Loss
/// `1/(2 m) sum_i (a_i x - b_i)^2 + lambda/2 |x|^2` over the `m` rows of a batch, in 64 bits. `test_loss` is its value over
/// all rows that clients hold, `distance_to_optimum` the squared distance from the minimiser. `fedbits check` says how
/// smooth it is.
///
/// # Source
/// Hoerl and Kennard, *Ridge Regression: Biased Estimation for Nonorthogonal Problems*, 1970.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RidgeRegression {
    /// Weight `lambda` of the penalty, greater than 0; higher is easier to optimise.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1e30))]
    pub regularisation: f64,
}

impl Default for RidgeRegression {
    fn default() -> Self {
        Self { regularisation: 0.01 }
    }
}

impl Named for RidgeRegression {
    const NAME: &'static str = "ridge-regression";
    const EXAMPLE: &'static str = "regularisation = 0.01";
}

impl Architecture for RidgeRegression {
    fn network(&self, _shape: [usize; 3], _classes: usize) -> Result<Box<dyn Network>, String> {
        Err("`ridge-regression` fits the rows of a table, such as those of `libsvm`, and no images".to_owned())
    }

    fn regression(&self) -> Option<Regression> {
        Some(Regression { loss: Loss::Squares, regularisation: self.regularisation })
    }
}
