//! Logistic regression.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Architecture, Loss, Network, Regression};
use crate::catalogue::Named;

/// Logistic regression on a table of two classes, with a quadratic penalty and a known minimiser.
///
/// # Layers
/// One weight a feature, no bias; all start at 0. Breast-Cancer: 10 parameters.
///
/// # Loss
/// `1/m sum_i ln(1 + exp(-b_i a_i x)) + lambda/2 |x|^2` over the `m` rows of a batch, `b_i` -1 or +1, in 64 bits.
/// `test_loss` is its value over all rows that clients hold, `test_accuracy` the share of rows of the table on the right
/// side, `distance_to_optimum` the squared distance from the minimiser. `fedbits check` says how smooth it is.
///
/// # Source
/// Cox, *The Regression Analysis of Binary Sequences*, 1958.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogisticRegression {
    /// Weight `lambda` of the penalty, greater than 0; higher is easier to optimise.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1e30))]
    pub regularisation: f64,
}

impl Default for LogisticRegression {
    fn default() -> Self {
        Self { regularisation: 0.01 }
    }
}

impl Named for LogisticRegression {
    const NAME: &'static str = "logistic-regression";
    const EXAMPLE: &'static str = "regularisation = 0.01";
}

impl Architecture for LogisticRegression {
    fn network(&self, _shape: [usize; 3], _classes: usize) -> Result<Box<dyn Network>, String> {
        Err("`logistic-regression` fits the rows of a table, such as those of `libsvm`, and no images".to_owned())
    }

    fn regression(&self) -> Option<Regression> {
        Some(Regression { loss: Loss::Logistic, regularisation: self.regularisation })
    }
}
