//! What points say when one points at them: their exact values.

use super::{Chart, Hint, Unit, draw::Mark, palette::Style};
use crate::units::{Bits, thousands};

/// So many hints at most: a page should stay small.
const MOST: usize = 240;
/// How near one must point, and how far two hints are apart at least.
const RADIUS: f64 = 9.0;
const DISTANCE: f64 = 7.0;

/// The hints of marked points. The ends of lines come first, and points too near to one that has a hint get none.
pub(super) fn hints(chart: &Chart, styles: &[Style], marks: &[Mark]) -> Vec<Hint> {
    let is_end = |i: usize| i == 0 || marks[i - 1].name != marks[i].name;
    let (ends, others): (Vec<usize>, Vec<usize>) = (0..marks.len()).partition(|i| is_end(*i));
    let order = [ends, others].concat();
    let mut distance = DISTANCE;
    let kept = loop {
        let kept = apart(marks, &order, distance);
        if kept.len() <= MOST {
            break kept;
        }
        distance *= 1.4;
    };
    let nearest = |i: usize| {
        let others = kept.iter().filter(|other| **other != i).map(|other| between(marks[i].at, marks[*other].at));
        others.fold(f64::INFINITY, f64::min)
    };
    let hint = |&i: &usize| {
        let Mark { at, name, .. } = marks[i];
        Hint { at, radius: RADIUS.min(0.5 * nearest(i)), colour: styles[name].colour, lines: lines(chart, &marks[i]) }
    };
    kept.iter().map(hint).collect()
}

/// Marks in the given order, without those that are too near to one before.
fn apart(marks: &[Mark], order: &[usize], distance: f64) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for i in order {
        if kept.iter().all(|other| between(marks[*i].at, marks[*other].at) >= distance) {
            kept.push(*i);
        }
    }
    kept
}

fn between(a: (f64, f64), b: (f64, f64)) -> f64 {
    libm::hypot(a.0 - b.0, a.1 - b.1)
}

fn lines(chart: &Chart, mark: &Mark) -> Vec<String> {
    let point = mark.point;
    let name = chart.names[mark.name].clone();
    let mut lines = vec![
        if name.is_empty() { chart.y.label.clone() } else { name },
        format!("{}: {}", chart.x.label, exact(chart.x.unit, point.x)),
        format!("{}: {}", chart.y.label, exact(chart.y.unit, point.y)),
    ];
    if point.low < point.high {
        lines.push(format!("band: {} to {}", exact(chart.y.unit, point.low), exact(chart.y.unit, point.high)));
    }
    lines
}

/// A value with its unit, to seven digits; whole numbers and bits to the last.
fn exact(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent => format!("{} %", plain(100.0 * value)),
        Unit::Seconds => format!("{} s", plain(value)),
        Unit::Bits if (100.0..1e18).contains(&value) => {
            let bits = value.round() as u64;
            let short = if bits < 8_000 { String::new() } else { format!(" ({})", Bits(bits)) };
            format!("{} bits{short}", thousands(bits))
        }
        Unit::Bits => format!("{} bits", plain(value)),
        Unit::Plain => plain(value),
    }
}

fn plain(value: f64) -> String {
    let size = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    if size.fract() == 0.0 && size < 1e15 {
        return format!("{sign}{}", thousands(size as u64));
    }
    let text = format!("{size:.6e}");
    let (digits, exponent) = text.split_once('e').expect("this format has an exponent");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    match exponent {
        -4..=6 => format!("{sign}{}", trimmed(&format!("{size:.*}", (6 - exponent) as usize))),
        _ => format!("{sign}{}e{exponent}", trimmed(digits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_exact() {
        let shown = [(Unit::Percent, 0.9735), (Unit::Percent, 0.1), (Unit::Bits, 798_560.0), (Unit::Bits, 64.5)]
            .map(|(unit, value)| exact(unit, value));
        assert_eq!(shown, ["97.35 %", "10 %", "798,560 bits (99.8 kB)", "64.5 bits"]);
        let shown = [1.3846298163, -0.5, 0.0, 1e-9, 12345678.5, 8.0, 0.01].map(plain);
        assert_eq!(shown, ["1.38463", "−0.5", "0", "1e-9", "1.234568e7", "8", "0.01"]);
        assert_eq!(exact(Unit::Seconds, 1.25), "1.25 s");
    }
}
