//! Gaussian numbers by their address, the same to the bit on every machine.
//!
//! Each stream is a function of a key and a number, and each pair of its values a function of its place: a receiver
//! makes only what it needs. The work is plain 32-bit arithmetic in fixed order without branches, so that loops over
//! streams can be vectorised: integer hashing and the Box-Muller transform with polynomials in place of logarithm, sine
//! and cosine.

/// A stream of independent standard Gaussian values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    a: u32,
    b: u32,
}

impl Stream {
    /// The stream `number` under `key`.
    #[inline(always)]
    pub fn new(key: u64, number: u64) -> Self {
        // SplitMix64, started at the key.
        let mut word = key.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        Self { a: word as u32, b: (word >> 32) as u32 }
    }

    /// 32 random bits.
    #[inline(always)]
    fn bits(self, at: u32) -> u32 {
        // Wellons' "lowbias32"; the second half of the state enters in the middle, so that no two streams are shifts of
        // each other.
        let mut word = self.a.wrapping_add(at.wrapping_mul(0x9e37_79b9));
        word = (word ^ word >> 16).wrapping_mul(0x7feb_352d) ^ self.b;
        word = (word ^ word >> 15).wrapping_mul(0x846c_a68b);
        word ^ word >> 16
    }

    /// The values `2 i` and `2 i + 1`.
    #[inline(always)]
    pub fn pair(self, i: u32) -> [f32; 2] {
        let (first, second) = (self.bits(2 * i), self.bits(2 * i + 1));
        // From 2^-24 to 1, so radii reach 5.77.
        let uniform = ((first >> 8) as i32 + 1) as f32 * (1.0 / 16_777_216.0);
        let radius = (-2.0 * ln(uniform)).max(0.0).sqrt();
        // An angle from -pi/4 to pi/4 and three more bits, which turn it into all directions of the plane.
        let angle = ((second >> 8) as i32 - 0x0080_0000) as f32 + 0.5;
        let [sine, cosine] = sine_and_cosine(angle * (std::f32::consts::FRAC_PI_4 / 8_388_608.0));
        let (x, y) = if second & 1 == 0 { (cosine, sine) } else { (sine, cosine) };
        let signed = |value: f32, sign: u32| f32::from_bits((value * radius).to_bits() ^ sign << 31);
        [signed(x, second >> 1 & 1), signed(y, second >> 2 & 1)]
    }

    /// Fills `out` with the first values of the stream.
    pub fn fill(self, out: &mut [f32]) {
        for (i, pair) in (0..).zip(out.chunks_mut(2)) {
            pair.copy_from_slice(&self.pair(i)[..pair.len()]);
        }
    }
}

/// Natural logarithm of a normal positive float; polynomial of the Cephes library.
#[inline(always)]
fn ln(x: f32) -> f32 {
    // x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2).
    let exponent = (x.to_bits() as i32 - 0x3f35_04f3) >> 23;
    let f = f32::from_bits((x.to_bits() as i32 - (exponent << 23)) as u32) - 1.0;
    let square = f * f;
    let mut series = 7.037_683_6e-2;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_8e-1,
        -1.242_014_1e-1,
        1.424_932_2e-1,
        -1.666_805_7e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        series = series * f + coefficient;
    }
    exponent as f32 * std::f32::consts::LN_2 + (f + (series * f * square - 0.5 * square))
}

/// Sine and cosine of an angle from -pi/4 to pi/4; polynomials of the Cephes library.
#[inline(always)]
fn sine_and_cosine(angle: f32) -> [f32; 2] {
    let square = angle * angle;
    let sine = ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1) * square * angle + angle;
    let cosine =
        ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2) * square * square - 0.5 * square + 1.0;
    [sine, cosine]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_the_functions() {
        for i in 1..=100_000u32 {
            let x = i as f32 / 100_000.0;
            assert!((f64::from(ln(x)) - f64::from(x).ln()).abs() < 3e-7 * (1.0 - f64::from(x).ln()), "{x}");
            let angle = (x - 0.5) * std::f32::consts::FRAC_PI_2;
            let [sine, cosine] = sine_and_cosine(angle);
            assert!((f64::from(sine) - f64::from(angle).sin()).abs() < 1e-7, "{angle}");
            assert!((f64::from(cosine) - f64::from(angle).cos()).abs() < 1e-7, "{angle}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn moments_are_gaussian_along_and_across_streams() {
        let n = 200_000;
        let mut along = vec![0.0; n];
        Stream::new(5, 7).fill(&mut along);
        let across: Vec<f32> = (0..n as u64 / 2).flat_map(|number| Stream::new(5, number).pair(3)).collect();
        for values in [along, across] {
            let moment = |power: i32| values.iter().map(|&v| f64::from(v).powi(power)).sum::<f64>() / n as f64;
            // Standard errors: 0.0022, 0.0032, 0.0087, 0.022, 0.23.
            for (power, expected, tolerance) in
                [(1, 0.0, 0.009), (2, 1.0, 0.013), (3, 0.0, 0.035), (4, 3.0, 0.09), (6, 15.0, 0.95)]
            {
                assert!((moment(power) - expected).abs() < tolerance, "moment {power}: {}", moment(power));
            }
            let lag = |k: usize| (0..n - k).map(|i| f64::from(values[i] * values[i + k])).sum::<f64>() / n as f64;
            for k in 1..10 {
                assert!(lag(k).abs() < 0.009, "lag {k}: {}", lag(k));
            }
        }
    }

    #[test]
    fn values_are_stable_across_versions() {
        let mut values = [0.0; 4];
        Stream::new(1, 2).fill(&mut values);
        assert_eq!(values.map(f32::to_bits), [1064289212, 1044355734, 3196001323, 3203010457]);
    }
}
