//! Dirichlet weights that are finite for every concentration, and redrawing with a limit.

use rand_distr::{Distribution, Gamma};

use crate::rng::unit_f64;

/// Logarithms of independent Gamma(shape, 1) variates.
///
/// They are `ln G + ln(U) / shape` with `G` from Gamma(shape + 1, 1), which has the law of `ln` Gamma(shape, 1) for
/// every positive shape. A variate itself would underflow to 0 for shapes below about 0.01, and a sum of zeros divides
/// 0 by 0.
pub fn log_gammas(shapes: impl Iterator<Item = f64>, generator: &mut impl rand::Rng) -> Vec<f64> {
    let mut draw = |shape: f64| {
        let gamma = Gamma::new(shape + 1.0, 1.0).expect("shapes are positive and finite");
        let log = libm::log(gamma.sample(generator));
        // In (0, 1], so that its logarithm is finite.
        let uniform = 1.0 - unit_f64(generator.next_u64());
        log + libm::log(uniform) / shape
    };
    shapes.map(&mut draw).collect()
}

/// `exp` of each logarithm after the largest was subtracted: the largest weight is 1, so the sum can be neither 0 nor
/// infinite.
pub fn from_logs(logs: &[f64]) -> Vec<f64> {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.iter().map(|log| if *log == f64::NEG_INFINITY { 0.0 } else { libm::exp(log - largest) }).collect()
}

/// Weights from the symmetric Dirichlet distribution over `n` places; they sum to one.
pub fn dirichlet(alpha: f64, n: usize, generator: &mut impl rand::Rng) -> Vec<f64> {
    let mut weights = from_logs(&log_gammas(std::iter::repeat_n(concentration(alpha), n), generator));
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= sum;
    }
    weights
}

/// A positive concentration within the limits that the arithmetic can represent.
///
/// Below the lower limit all weight lies in one place anyway; above the upper one weights differ by one in a million.
pub fn concentration(alpha: f64) -> f64 {
    alpha.clamp(1e-100, 1e12)
}

/// Draws that are tried before a split is repaired.
const DRAWS: usize = 1000;
/// Variates drawn in all those tries together, about a second of work.
const VARIATES: usize = 20_000_000;

/// The draw that [`redraw`] settled for.
#[derive(Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Number of the draw, from 0.
    pub number: u64,
    /// Draws that were tried.
    pub tried: usize,
    /// Whether its smallest client is large enough.
    pub enough: bool,
}

/// Tries draws 0, 1, 2, .. until the smallest client of one has at least `least` samples; `smallest` makes one draw.
///
/// There are at most 1000 tries, and fewer where one takes more than 20,000 variates, so the work is limited for any
/// demand. If none suffices, the first of those with the largest smallest client is returned.
pub fn redraw(variates: usize, least: usize, mut smallest: impl FnMut(u64) -> usize) -> Drawn {
    let limit = (VARIATES / variates.max(1)).clamp(1, DRAWS);
    let mut best = (0, 0);
    for number in 0..limit {
        let size = smallest(number as u64);
        if size >= least {
            return Drawn { number: number as u64, tried: number + 1, enough: true };
        }
        if size > best.0 {
            best = (size, number as u64);
        }
    }
    Drawn { number: best.1, tried: limit, enough: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Address, Purpose};

    /// Mean largest weight and mean total-variation distance to uniform over 10 places.
    fn means(alpha: f64, draws: usize) -> (f64, f64) {
        let mut generator = Address::new(1, Purpose::Partition).generator();
        let (mut largest, mut distance) = (0.0, 0.0);
        for _ in 0..draws {
            let weights = dirichlet(alpha, 10, &mut generator);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12 && weights.iter().all(|&w| w >= 0.0));
            largest += weights.iter().copied().fold(0.0, f64::max);
            distance += weights.iter().map(|w| (w - 0.1).abs()).sum::<f64>() / 2.0;
        }
        (largest / draws as f64, distance / draws as f64)
    }

    #[test]
    fn dirichlet_weights_have_the_known_means() {
        for (alpha, largest, distance) in [(0.1, 0.665, 0.711), (0.5, 0.380, 0.458), (1.0, 0.293, 0.349)] {
            let (got_largest, got_distance) = means(alpha, 20_000);
            assert!((got_largest - largest).abs() < 0.005, "alpha {alpha}: largest {got_largest}");
            assert!((got_distance - distance).abs() < 0.005, "alpha {alpha}: distance {got_distance}");
        }
    }

    #[test]
    fn extreme_concentrations_give_one_place_or_equal_weights() {
        for alpha in [1e-5, 1e-50, 1e-300, f64::MIN_POSITIVE] {
            assert!(means(alpha, 200).0 > 0.999, "alpha {alpha}");
        }
        for alpha in [1e9, 1e20, 1e300, f64::MAX] {
            assert!(means(alpha, 200).1 < 1e-3, "alpha {alpha}");
        }
    }

    #[test]
    fn weights_keep_their_values_across_versions() {
        let weights = dirichlet(0.5, 3, &mut Address::new(0, Purpose::Partition).generator());
        let digits = weights.iter().map(|w| format!("{w:.9}")).collect::<Vec<_>>();
        assert_eq!(digits, ["0.007788499", "0.096298824", "0.895912677"]);
    }

    #[test]
    fn redrawing_stops_at_the_first_success_or_at_the_limit() {
        let sizes = [3, 9, 4, 12, 20];
        assert_eq!(redraw(10, 10, |i| sizes[i as usize]), Drawn { number: 3, tried: 4, enough: true });
        assert_eq!(redraw(10, 10, |i| (i % 7) as usize), Drawn { number: 6, tried: 1000, enough: false });
        assert_eq!(redraw(VARIATES, 1, |_| 0), Drawn { number: 0, tried: 1, enough: false });
        assert_eq!(redraw(usize::MAX, 0, |_| 0), Drawn { number: 0, tried: 1, enough: true });
    }
}
