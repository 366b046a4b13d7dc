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

/// Units of numbers of bits that people write, with the bits of each.
const BIT_UNITS: [(&str, u64); 7] = [
    ("bits", 1),
    ("B", 8),
    ("kB", 8_000),
    ("MB", 8_000_000),
    ("GB", 8_000_000_000),
    ("TB", 8_000_000_000_000),
    ("PB", 8_000_000_000_000_000),
];

impl Bits {
    /// The unit in which such a number is read best, and its bits.
    pub fn unit(self) -> (&'static str, u64) {
        let fits = |(name, bits): &&(&str, u64)| *name != "B" && self.0 >= *bits;
        *BIT_UNITS.iter().rev().find(fits).unwrap_or(&BIT_UNITS[0])
    }
}

/// A text that is no number of bits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no whole number of bits: allowed are numbers of bits or with a unit, `bits`, `B`, `kB`, `MB`, `GB`, `TB` or \
     `PB`, such as `800 bits` or `1.5 MB`, which is 1,500,000 bytes"
)]
pub struct NoBits(String);

impl std::str::FromStr for Bits {
    type Err = NoBits;

    /// Reads a number of bits, or one with a unit: `800`, `800 bits`, `10 kB`, `1.5MB`.
    fn from_str(text: &str) -> Result<Self, NoBits> {
        let wrong = || NoBits(text.to_owned());
        let end = text.trim_end().trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len();
        let (number, unit) = (text[..end].trim(), text[end..].trim());
        let (_, size) = BIT_UNITS.iter().find(|(name, _)| *name == unit || unit.is_empty()).ok_or_else(wrong)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || part.len() > 15 || !is_number(whole) || !is_number(part) || number.ends_with('.') {
            return Err(wrong());
        }
        let tens = 10_u128.pow(part.len() as u32);
        let digits: u128 = format!("{whole}{part}").parse().map_err(|_| wrong())?;
        let bits = digits.checked_mul(u128::from(*size)).filter(|bits| bits % tens == 0).ok_or_else(wrong)?;
        u64::try_from(bits / tens).map(Self).map_err(|_| wrong())
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
        assert_eq!([0, 7_999, 8_000, 8_000_000].map(|n| Bits(n).unit().0), ["bits", "bits", "kB", "MB"]);
        assert_eq!(Bytes(999_960).to_string(), "1.0 MB");
        assert_eq!([thousands(0), thousands(999), thousands(1_663_370)], ["0", "999", "1,663,370"]);
    }

    #[test]
    fn quantities_are_read() {
        let read = |text: &str| text.parse::<Bits>().map(|bits| bits.0);
        let bits = ["0", "800", "800 bits", "3B", "10 kB", "1MB", "2 GB", " 1.5 MB ", "0.125 B", "0.1 MB", "2000 PB"];
        let wanted =
            [0, 800, 800, 24, 80_000, 8_000_000, 16_000_000_000, 12_000_000, 1, 800_000, 16_000_000_000_000_000_000];
        assert_eq!(bits.map(read), wanted.map(Ok));
        for text in ["", "MB", "-1", "1.5", "0.1 B", "1 mb", "1 MiB", "1e6", "1. MB", ".5 MB", "1 M B", "3000 PB", "١"]
        {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("`800 bits` or `1.5 MB`"), "{error}");
        }
        assert_eq!(Bits(6_400_000).to_string().parse(), Ok(Bits(6_400_000)));
    }
}
