//! Small dense symmetric systems in 64 bits: Cholesky and Jacobi, in a fixed order of operations.

/// A square matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Square {
    pub(super) side: usize,
    pub(super) values: Vec<f64>,
}

impl Square {
    /// `diagonal` times the identity.
    pub(super) fn scaled_identity(side: usize, diagonal: f64) -> Self {
        let mut values = vec![0.0; side * side];
        values.iter_mut().step_by(side + 1).for_each(|v| *v = diagonal);
        Self { side, values }
    }

    /// Adds `w a a'` to the lower triangle, which is all that is read here.
    pub(super) fn add_outer(&mut self, w: f64, a: &[f64]) {
        for (i, row) in self.values.chunks_exact_mut(self.side).enumerate() {
            let factor = w * a[i];
            row[..=i].iter_mut().zip(a).for_each(|(v, a)| *v += factor * a);
        }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.side + j]
    }

    /// The solution of `self x = b` for a positive definite matrix; `None` if it is not.
    pub(super) fn solve(mut self, b: &[f64]) -> Option<Vec<f64>> {
        let n = self.side;
        // Cholesky: the lower triangle becomes L with L L' = self.
        for j in 0..n {
            let pivot = self.at(j, j) - (0..j).map(|k| self.at(j, k) * self.at(j, k)).sum::<f64>();
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let root = pivot.sqrt();
            self.values[j * n + j] = root;
            for i in j + 1..n {
                let v = self.at(i, j) - (0..j).map(|k| self.at(i, k) * self.at(j, k)).sum::<f64>();
                self.values[i * n + j] = v / root;
            }
        }
        let mut x = b.to_vec();
        for i in 0..n {
            let known: f64 = (0..i).map(|k| self.at(i, k) * x[k]).sum();
            x[i] = (x[i] - known) / self.at(i, i);
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| self.at(k, i) * x[k]).sum();
            x[i] = (x[i] - known) / self.at(i, i);
        }
        Some(x)
    }

    /// The smallest and the largest eigenvalue, by cyclic Jacobi rotations.
    pub(super) fn extreme_eigenvalues(mut self) -> (f64, f64) {
        let n = self.side;
        for i in 0..n {
            for j in 0..i {
                self.values[j * n + i] = self.at(i, j);
            }
        }
        for _ in 0..50 {
            let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| self.at(i, j).powi(2)).sum();
            let on: f64 = (0..n).map(|i| self.at(i, i).powi(2)).sum();
            if off <= 1e-28 * on {
                break;
            }
            for p in 0..n {
                for q in p + 1..n {
                    self.rotate(p, q);
                }
            }
        }
        let diagonal = (0..n).map(|i| self.at(i, i));
        diagonal.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    }

    /// The rotation that makes the entry `(p, q)` zero.
    fn rotate(&mut self, p: usize, q: usize) {
        let (n, apq) = (self.side, self.at(p, q));
        if apq == 0.0 {
            return;
        }
        let theta = (self.at(q, q) - self.at(p, p)) / (2.0 * apq);
        let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
        let c = 1.0 / (t * t + 1.0).sqrt();
        let s = t * c;
        for k in 0..n {
            let (a, b) = (self.at(k, p), self.at(k, q));
            (self.values[k * n + p], self.values[k * n + q]) = (c * a - s * b, s * a + c * b);
        }
        for k in 0..n {
            let (a, b) = (self.at(p, k), self.at(q, k));
            (self.values[p * n + k], self.values[q * n + k]) = (c * a - s * b, s * a + c * b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `4 I + sum a a'` for two vectors.
    fn matrix() -> Square {
        let mut matrix = Square::scaled_identity(3, 4.0);
        matrix.add_outer(1.0, &[1.0, 2.0, 2.0]);
        matrix.add_outer(0.5, &[2.0, 1.0, -2.0]);
        matrix
    }

    #[test]
    fn systems_are_solved() {
        // Both vectors have norm 3 and are orthogonal: (4 + 9) and (4 + 4.5) on them.
        let x = matrix().solve(&[1.0, 2.0, 2.0]).unwrap();
        for (x, expected) in x.iter().zip([1.0, 2.0, 2.0]) {
            assert!((x - expected / 13.0).abs() < 1e-15);
        }
        assert_eq!(Square::scaled_identity(2, 0.0).solve(&[1.0, 1.0]), None);
        assert_eq!(Square::scaled_identity(2, f64::NAN).solve(&[1.0, 1.0]), None);
    }

    #[test]
    fn eigenvalues_are_found() {
        let (low, high) = matrix().extreme_eigenvalues();
        assert!((low - 4.0).abs() < 1e-14 && (high - 13.0).abs() < 1e-14, "{low} {high}");
        assert_eq!(Square::scaled_identity(1, 7.0).extreme_eigenvalues(), (7.0, 7.0));
    }
}
