//! Convex losses of a linear prediction: what a model is that fits the rows of a table.

/// `f(x) = mean_i l(a_i x, b_i) + lambda/2 |x|^2` over rows `a_i` with targets `b_i`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regression {
    /// `l`.
    pub loss: Loss,
    /// `lambda`, greater than 0.
    pub regularisation: f64,
}

/// The loss of a prediction `p` for a target `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// `(p - b)^2 / 2`.
    Squares,
    /// `ln(1 + exp(-b p))` for targets -1 and +1.
    Logistic,
}

impl Loss {
    /// The loss.
    pub fn value(self, prediction: f64, target: f64) -> f64 {
        match self {
            Self::Squares => 0.5 * (prediction - target) * (prediction - target),
            Self::Logistic => {
                let margin = target * prediction;
                libm::log1p(libm::exp(-margin.abs())) + (-margin).max(0.0)
            }
        }
    }

    /// Its derivative by the prediction.
    pub fn slope(self, prediction: f64, target: f64) -> f64 {
        match self {
            Self::Squares => prediction - target,
            Self::Logistic => -target / (1.0 + libm::exp(target * prediction)),
        }
    }

    /// Its second derivative by the prediction.
    pub fn curvature(self, prediction: f64, target: f64) -> f64 {
        match self {
            Self::Squares => 1.0,
            Self::Logistic => {
                let slope = self.slope(prediction, target).abs();
                slope * (1.0 - slope)
            }
        }
    }

    /// The largest second derivative.
    pub fn largest_curvature(self) -> f64 {
        match self {
            Self::Squares => 1.0,
            Self::Logistic => 0.25,
        }
    }

    /// Whether targets are two classes, so that predictions can be right or wrong.
    pub fn classifies(self) -> bool {
        self == Self::Logistic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_loss() {
        for loss in [Loss::Squares, Loss::Logistic] {
            for (p, b) in [(0.3, 1.0), (-1.7, 1.0), (2.0, -1.0), (0.0, -1.0)] {
                let h = 1e-5;
                let slope = (loss.value(p + h, b) - loss.value(p - h, b)) / (2.0 * h);
                assert!((loss.slope(p, b) - slope).abs() < 1e-9);
                let curvature = (loss.slope(p + h, b) - loss.slope(p - h, b)) / (2.0 * h);
                assert!((loss.curvature(p, b) - curvature).abs() < 1e-9);
                assert!(loss.curvature(p, b) <= loss.largest_curvature());
            }
        }
    }

    #[test]
    fn the_logistic_loss_is_finite_for_every_margin() {
        assert_eq!(Loss::Logistic.value(1e300, -1.0), 1e300);
        assert_eq!(Loss::Logistic.value(1e300, 1.0), 0.0);
        assert_eq!(Loss::Logistic.slope(-1e300, 1.0), -1.0);
        assert_eq!(Loss::Logistic.slope(1e300, 1.0), 0.0);
        assert_eq!(Loss::Logistic.value(0.0, 1.0), std::f64::consts::LN_2);
    }
}
