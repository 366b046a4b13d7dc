//! Vectors to measure on, by name.

use crate::compress::vectors;

/// Names of the vectors that need no file.
pub const NAMES: [&str; 5] = ["gaussian", "laplace", "student-t", "sparse", "one-hot"];

/// The vector of a name, with `n >= 1` values.
///
/// `gaussian`, `laplace` and `student-t` (four degrees of freedom) are the quantiles of these distributions, shuffled.
/// `sparse` has one value in a hundred, at least one, from the Gaussian quantiles of that number, at shuffled places; the rest are
/// zero. `one-hot` is 1 in the middle and else zero.
pub fn named(name: &str, n: usize) -> Option<Vec<f32>> {
    Some(match name {
        "gaussian" => vectors::g(n),
        "laplace" => vectors::l(n),
        "student-t" => vectors::t(n),
        "sparse" => sparse(n),
        "one-hot" => (0..n).map(|i| f32::from(u8::from(i == n / 2))).collect(),
        _ => return None,
    })
}

fn sparse(n: usize) -> Vec<f32> {
    // An even number of quantiles has no zero in its middle.
    let wanted = (n / 100).next_multiple_of(2).max(2);
    let values = vectors::g(wanted);
    vectors::order(n).into_iter().map(|place| values.get(place).copied().unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_vector_of_every_length_that_is_not_zero() {
        for name in NAMES {
            for n in [1, 2, 3, 100, 10_000] {
                let x = named(name, n).expect("the name is listed");
                assert_eq!(x.len(), n);
                let is_median = n == 1 && ["gaussian", "laplace", "student-t"].contains(&name);
                assert!(is_median || x.iter().any(|&value| value != 0.0), "{name} of {n}");
            }
        }
        assert_eq!(named("gausian", 3), None);
        assert_eq!(named("sparse", 10_000).unwrap().iter().filter(|&&value| value != 0.0).count(), 100);
        assert_eq!(named("one-hot", 4).unwrap(), [0.0, 0.0, 1.0, 0.0]);
    }
}
