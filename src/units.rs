//! Quantities with their units, for people.

/// A number of bits, shown in bytes and multiples of 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bits(pub u64);

impl std::fmt::Display for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 < 8_000 {
            return write!(f, "{} bits", self.0);
        }
        Bytes(self.0 / 8).fmt(f)
    }
}

/// A number of bytes, shown in multiples of 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut value = self.0 as f64;
        let mut units = ["B", "kB", "MB", "GB", "TB", "PB"].into_iter();
        let mut unit = units.next().expect("there is a first unit");
        for larger in units {
            if value < 999.95 {
                break;
            }
            (value, unit) = (value / 1000.0, larger);
        }
        if unit == "B" { write!(f, "{value} B") } else { write!(f, "{value:.1} {unit}") }
    }
}

/// A whole number with commas between its thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_well() {
        let shown: Vec<String> = [0, 7_999, 8_000, 6_374_720, 8_000_000_000_000].map(|n| Bits(n).to_string()).to_vec();
        assert_eq!(shown, ["0 bits", "7999 bits", "1.0 kB", "796.8 kB", "1.0 TB"]);
        assert_eq!(Bytes(999_960).to_string(), "1.0 MB");
        assert_eq!([thousands(0), thousands(999), thousands(1_663_370)], ["0", "999", "1,663,370"]);
    }
}
