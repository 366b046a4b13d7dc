//! Axes: from values to places, and the ticks in between.

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers.
    Plain,
    /// Shares, shown in percent.
    Percent,
    /// Bits, shown as bits up to 8,000 and beyond in bytes and multiples of 1,000.
    Bits,
    /// Seconds.
    Seconds,
}

/// One axis with its ends and ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    log: bool,
    /// Ends, as logarithms if logarithmic.
    from: f64,
    to: f64,
    /// Ticks with a label.
    pub ticks: Vec<(f64, String)>,
    /// Ticks without.
    pub minor: Vec<f64>,
    /// Unit of all labels, for the name of the axis; empty if there is none, or if each label has its own.
    pub unit: &'static str,
}

impl Scale {
    /// The scale that shows all of `values`, with about `wanted` ticks at most. A logarithmic one leaves out what is not above zero.
    pub fn new(unit: Unit, log: bool, values: impl Iterator<Item = f64>, wanted: usize) -> Self {
        let place = |value: f64| if log { libm::log10(value) } else { value };
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        // Beyond these there would be no room for the difference of two values.
        for value in values.filter(|value| value.abs() < 1e300).map(place).filter(|value| value.is_finite()) {
            (from, to) = (from.min(value), to.max(value));
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        (from, to) = if log { pad_log(from, to) } else { pad(unit, from, to) };
        let mut scale = Self { log, from, to, ticks: Vec::new(), minor: Vec::new(), unit: "" };
        if log {
            scale.log_ticks(unit, wanted);
        } else {
            scale.linear_ticks(unit, wanted);
        }
        scale
    }

    /// The place of a value: 0 at the low end, 1 at the high end.
    pub fn place(&self, value: f64) -> f64 {
        let value = if self.log { libm::log10(value.max(f64::MIN_POSITIVE)) } else { value };
        (value - self.from) / (self.to - self.from)
    }

    fn linear_ticks(&mut self, unit: Unit, wanted: usize) {
        let (factor, name) = match unit {
            Unit::Plain => (1.0, ""),
            Unit::Percent => (0.01, "%"),
            Unit::Seconds => (1.0, "s"),
            Unit::Bits => bits_unit(self.to),
        };
        self.unit = name;
        self.ticks = even_ticks(self.from / factor, self.to / factor, wanted)
            .into_iter()
            .map(|(value, label)| (value * factor, label))
            .collect();
    }

    fn log_ticks(&mut self, unit: Unit, wanted: usize) {
        let in_bytes = unit == Unit::Bits && self.to > libm::log10(8_000.0);
        let factor = match unit {
            Unit::Bits if in_bytes => 8.0,
            Unit::Percent => 0.01,
            _ => 1.0,
        };
        self.unit = match unit {
            Unit::Bits if !in_bytes => "bits",
            Unit::Percent => "%",
            Unit::Seconds => "s",
            _ => "",
        };
        let shift = libm::log10(factor);
        let (from, to) = (self.from - shift, self.to - shift);
        let decades = (from.floor() as i32)..=(to.ceil() as i32);
        let inside = |exponent: i32, digit: u8| {
            let at = f64::from(exponent) + libm::log10(f64::from(digit));
            (from - 1e-9..=to + 1e-9).contains(&at)
        };
        let all = |digits: &'static [u8]| -> Vec<(i32, u8)> {
            let of = move |exponent| digits.iter().map(move |digit| (exponent, *digit));
            decades.clone().flat_map(of).filter(|(exponent, digit)| inside(*exponent, *digit)).collect()
        };
        let value = |(exponent, digit): (i32, u8)| f64::from(digit) * decade(exponent) * factor;
        let label =
            |(exponent, digit): (i32, u8)| if in_bytes { bytes(exponent, digit) } else { power(exponent, digit) };
        let (every, fine, coarse) = (all(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), all(&[1, 2, 5]), all(&[1]));
        let chosen = match coarse.len() <= 3 && fine.len() <= wanted.max(2) {
            // Bytes carry their unit in every label, and even steps below would not.
            true if in_bytes && fine.len() < 3 && every.len() <= wanted.max(3) => every,
            true => fine,
            false => coarse,
        };
        if chosen.len() < 2 {
            // Less than a decade: even steps serve better.
            let (factor, name) = if in_bytes { bits_unit(libm::pow(10.0, self.to)) } else { (factor, self.unit) };
            self.unit = name;
            let ends = [self.from, self.to].map(|end| libm::pow(10.0, end) / factor);
            let ticks = even_ticks(ends[0], ends[1], wanted);
            self.ticks = ticks.into_iter().map(|(value, label)| (value * factor, label)).collect();
            return;
        }
        let stride = chosen.len().div_ceil(wanted.max(2)) as i32;
        let (labelled, bare): (Vec<_>, Vec<_>) =
            chosen.into_iter().partition(|(exponent, _)| exponent.rem_euclid(stride) == 0);
        self.ticks = labelled.into_iter().map(|tick| (value(tick), label(tick))).collect();
        self.minor = match stride {
            1 if to - from <= 8.0 => all(&[2, 3, 4, 5, 6, 7, 8, 9]).into_iter().map(value).collect(),
            _ => bare.into_iter().map(value).collect(),
        };
    }
}

/// Linear ends with room for markers; values from near zero start at zero.
fn pad(unit: Unit, from: f64, to: f64) -> (f64, f64) {
    let width = if to > from { to - from } else { from.abs().max(1e-9) * 0.2 };
    let low = if from >= 0.0 && from <= 0.3 * to { 0.0 } else { from - 0.05 * width };
    let high = if to <= 0.0 && to > -1e-300 && from < 0.0 { 0.0 } else { to + 0.05 * width };
    match unit {
        // Nothing is above 100 %; an axis that comes near shows it.
        Unit::Percent if to <= 1.0 => (low.max(0.0), if low == 0.0 && high > 0.9 { 1.0 } else { high.min(1.0) }),
        _ => (low, high),
    }
}

fn pad_log(from: f64, to: f64) -> (f64, f64) {
    let room = (0.04 * (to - from)).max(0.04);
    (from - room, to + room)
}

/// The unit in which so many bits are shown, as bits, and its name.
fn bits_unit(largest: f64) -> (f64, &'static str) {
    let units = [(8e15, "PB"), (8e12, "TB"), (8e9, "GB"), (8e6, "MB"), (8e3, "kB")];
    units.into_iter().find(|(factor, _)| largest >= *factor).unwrap_or((1.0, "bits"))
}

/// Ticks at even steps of 1, 2 or 5 times a power of ten.
fn even_ticks(from: f64, to: f64, wanted: usize) -> Vec<(f64, String)> {
    let rough = (to - from) / wanted.max(2) as f64;
    let exponent = libm::floor(libm::log10(rough)) as i32;
    let digit = [1u8, 2, 5].into_iter().find(|digit| f64::from(*digit) * decade(exponent) >= rough * (1.0 - 1e-9));
    let (exponent, digit) = digit.map_or((exponent + 1, 1), |digit| (exponent, digit));
    let step = f64::from(digit) * decade(exponent);
    let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
    let largest = from.abs().max(to.abs());
    let label = |i: i64| {
        let value = i as f64 * step;
        if i != 0 && (largest >= 1e7 || exponent < -5) {
            // The digits of `i` times `digit` are the digits of the value.
            return scientific(i * i64::from(digit), exponent);
        }
        format!("{value:.*}", usize::try_from(-exponent).unwrap_or(0)).replace('-', "−")
    };
    (first..=last).map(|i| (i as f64 * step, label(i))).collect()
}

/// Digits times a power of ten, with one digit before the point.
fn scientific(digits: i64, exponent: i32) -> String {
    let text = digits.unsigned_abs().to_string();
    let (head, tail) = text.split_at(1);
    let exponent = exponent + tail.len() as i32;
    let tail = tail.trim_end_matches('0');
    let point = if tail.is_empty() { "" } else { "." };
    let sign = if digits < 0 { "−" } else { "" };
    format!("{sign}{head}{point}{tail}×10{}", raised(exponent))
}

/// A digit times a power of ten.
fn power(exponent: i32, digit: u8) -> String {
    match (exponent, digit) {
        (-3..=-1, _) => format!("{:.*}", exponent.unsigned_abs() as usize, f64::from(digit) * decade(exponent)),
        (0..=4, _) => format!("{:.0}", f64::from(digit) * decade(exponent)),
        (_, 1) => format!("10{}", raised(exponent)),
        _ => format!("{digit}×10{}", raised(exponent)),
    }
}

/// So many bytes, in the largest unit that leaves a whole number where there is one.
fn bytes(exponent: i32, digit: u8) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = exponent.div_euclid(3).clamp(0, 5);
    let rest = exponent - 3 * unit;
    format!("{} {}", power(rest, digit), units[unit as usize])
}

fn raised(exponent: i32) -> String {
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits = exponent.unsigned_abs().to_string();
    let signs = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    sign.chars().chain(digits.bytes().map(|digit| signs[usize::from(digit - b'0')])).collect()
}

/// A power of ten, the same on every machine.
fn decade(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: Unit, log: bool, values: &[f64], wanted: usize) -> (Vec<String>, &'static str) {
        let scale = Scale::new(unit, log, values.iter().copied(), wanted);
        (scale.ticks.into_iter().map(|(_, label)| label).collect(), scale.unit)
    }

    #[test]
    fn linear_ticks_are_round_and_name_their_unit_once() {
        assert_eq!(labels(Unit::Percent, false, &[0.1, 0.97], 6).0, ["0", "20", "40", "60", "80", "100"]);
        let (ticks, unit) = labels(Unit::Bits, false, &[0.0, 48e6], 7);
        assert_eq!((ticks.join(" ").as_str(), unit), ("0 1 2 3 4 5 6", "MB"));
        assert_eq!(labels(Unit::Bits, false, &[0.0, 4000.0], 4).1, "bits");
        assert_eq!(labels(Unit::Plain, false, &[-0.02, 0.03], 6).0, ["−0.02", "−0.01", "0.00", "0.01", "0.02", "0.03"]);
        assert_eq!(labels(Unit::Plain, false, &[0.0, 3e7], 4).0, ["0", "1×10⁷", "2×10⁷", "3×10⁷"]);
        assert!(labels(Unit::Plain, false, &[5.0], 4).0.contains(&"5.00".to_owned()));
        assert!(!labels(Unit::Plain, false, &[], 4).0.is_empty());
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_shares_of_one() {
        assert_eq!(labels(Unit::Bits, true, &[8e4, 4e9], 8).0, ["10 kB", "100 kB", "1 MB", "10 MB", "100 MB"]);
        assert_eq!(
            labels(Unit::Bits, true, &[100.0, 4000.0], 8),
            (["100", "200", "500", "1000", "2000"].map(str::to_owned).to_vec(), "bits")
        );
        assert_eq!(
            labels(Unit::Bits, true, &[8.0 * 3.2e8, 8.0 * 6.1e8], 8).0,
            ["300 MB", "400 MB", "500 MB", "600 MB"]
        );
        assert_eq!(labels(Unit::Bits, true, &[8.0 * 5.6e8], 4), (["550", "600"].map(str::to_owned).to_vec(), "MB"));
        assert_eq!(labels(Unit::Plain, true, &[1e-5, 1.0], 6).0, ["10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(Unit::Plain, true, &[1e-24, 1.0], 4).0, ["10⁻²¹", "10⁻¹⁴", "10⁻⁷", "1"]);
        assert_eq!(labels(Unit::Plain, true, &[0.0, -3.0, 2.0, 50.0], 6).0, ["2", "5", "10", "20", "50"]);
    }

    #[test]
    fn places_run_from_end_to_end() {
        let scale = Scale::new(Unit::Plain, true, [1.0, 100.0].into_iter(), 5);
        assert!((scale.place(10.0) - 0.5).abs() < 1e-12);
        assert!(scale.place(0.5) < 0.0 && scale.place(200.0) > 1.0);
        assert_eq!(scientific(-25, -8), "−2.5×10⁻⁷");
    }
}
