//! A mean over seeds and how far it can be trusted.

/// Mean and band of the values of several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end of the band.
    pub high: f64,
}

impl Spread {
    /// The 95 % confidence interval of the mean; below three values their smallest and largest.
    ///
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n < 3 {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            return Some(Self { mean, low, high });
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let half = student_t(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt();
        Some(Self { mean, low: mean - half, high: mean + half })
    }
}

/// The 0.975 quantile of Student's t with `n` degrees of freedom, right to 2e-4; `n` = 0 counts as 1.
pub fn student_t(n: usize) -> f64 {
    const FIRST: [f64; 10] = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281];
    if let Some(exact) = FIRST.get(n.saturating_sub(1)) {
        return *exact;
    }
    // Cornish and Fisher's expansion around the normal quantile; the coefficients are their polynomials there.
    let v = 1.0 / n as f64;
    1.959_964 + v * (2.372_27 + v * (2.822_50 + v * 2.555_85))
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    use super::*;

    #[test]
    fn the_quantile_is_that_of_student() {
        for n in (1..60).chain([100, 1_000, 1_000_000]) {
            let exact = StudentsT::new(0.0, 1.0, n as f64).expect("valid").inverse_cdf(0.975);
            assert!((student_t(n) - exact).abs() < 2e-4, "{n}: {} instead of {exact}", student_t(n));
        }
    }

    #[test]
    fn bands_are_intervals_of_confidence_or_of_all_values() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[2.0]), Some(Spread { mean: 2.0, low: 2.0, high: 2.0 }));
        assert_eq!(Spread::of(&[1.0, 4.0]), Some(Spread { mean: 2.5, low: 1.0, high: 4.0 }));
        // Deviation 1, three values: 2 ± 4.3027 / sqrt(3).
        let three = Spread::of(&[1.0, 2.0, 3.0]).expect("there are values");
        assert!((three.high - 2.0 - 2.484_17).abs() < 1e-4 && (2.0 - three.low - 2.484_17).abs() < 1e-4);
        let equal = Spread::of(&[0.5; 5]).expect("there are values");
        assert_eq!((equal.low, equal.high), (0.5, 0.5));
    }
}
