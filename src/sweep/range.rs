//! Ranges of numbers as text: `0..5`, `range(0, 10, 2)`, `linspace(0.1, 0.5, 5)`, `logspace(0.001, 0.1, 5)`.

use toml::Value;

/// Values of a range at most.
const MOST_VALUES: usize = 10_000;

/// The values of a range; `None` if the text is none. Whole values are integers, others are rounded to six significant digits.
///
/// - `a..b`: the whole numbers from `a` to below `b`.
/// - `range(a, b)`, `range(a, b, step)`: from `a` in equal steps, 1 unless given, to below `b`.
/// - `linspace(a, b, n)`: `n` values in equal steps from `a` to `b`, both of them included.
/// - `logspace(a, b, n)`: `n` values in equal ratios from `a` to `b`, both included; these are the values themselves, not exponents.
///
/// # Errors
/// If it looks like a range but has no values, too many, or other arguments than these.
pub fn parse(text: &str) -> Result<Option<Vec<Value>>, String> {
    let text = text.trim().trim_matches('"').trim();
    let whole = |text: &str| text.trim().parse::<i64>().ok();
    if text.contains("..=") {
        return Err(format!("`{text}`: a range `a..b` goes from a to below b; its end is not included"));
    }
    if let Some((from, to)) = text.split_once("..") {
        let (Some(from), Some(to)) = (whole(from), whole(to)) else { return Ok(None) };
        if from >= to {
            return Err(format!("the range {from}..{to} is empty; its end is not included"));
        }
        let count = usize::try_from(to.abs_diff(from)).unwrap_or(usize::MAX);
        return limited(text, count).map(|count| Some((0..count as i64).map(|i| Value::Integer(from + i)).collect()));
    }
    let Some((name, rest)) = text.split_once('(') else { return Ok(None) };
    let name = name.trim();
    if !["range", "linspace", "logspace"].contains(&name) {
        let is_call = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
        let message = format!("`{text}`: there is no range `{name}`, but `range`, `linspace`, `logspace` and `a..b`");
        return if is_call { Err(message) } else { Ok(None) };
    }
    let arguments = rest.trim_end().strip_suffix(')').ok_or_else(|| format!("`{text}` lacks its closing bracket"))?;
    let numbers: Vec<f64> = arguments
        .split(',')
        .map(|number| number.trim().parse::<f64>().ok().filter(|number| number.is_finite()))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("`{text}`: every argument is a number"))?;
    let values = match (name, numbers.as_slice()) {
        ("range", [from, to]) => steps(text, *from, *to, 1.0)?,
        ("range", [from, to, step]) => steps(text, *from, *to, *step)?,
        ("linspace", [from, to, n]) => spaced(text, *n, |share| from + share * (to - from))?,
        ("logspace", [from, to, n]) => {
            if *from <= 0.0 || *to <= 0.0 {
                return Err(format!("`{text}`: both ends are above 0; they are the values themselves, not exponents"));
            }
            spaced(text, *n, |share| from * libm::pow(to / from, share))?
        }
        ("range", _) => return Err(format!("`{text}`: `range` takes a start, an end and perhaps a step")),
        _ => return Err(format!("`{text}`: `{name}` takes both ends and the number of values")),
    };
    Ok(Some(values.into_iter().map(rounded).collect()))
}

fn limited(text: &str, count: usize) -> Result<usize, String> {
    match count {
        1..=MOST_VALUES => Ok(count),
        0 => Err(format!("`{text}` is empty")),
        _ => Err(format!("`{text}` has {count} values; at most {MOST_VALUES} are allowed")),
    }
}

fn steps(text: &str, from: f64, to: f64, step: f64) -> Result<Vec<f64>, String> {
    if step == 0.0 {
        return Err(format!("`{text}`: the step is not 0"));
    }
    // A step that misses the end by rounding does not count.
    let count = limited(text, ((to - from) / step - 1e-9).ceil().max(0.0) as usize)?;
    Ok((0..count).map(|i| from + i as f64 * step).collect())
}

fn spaced(text: &str, n: f64, at: impl Fn(f64) -> f64) -> Result<Vec<f64>, String> {
    if n.fract() != 0.0 || n < 1.0 {
        return Err(format!("`{text}`: the number of values is a whole number of at least 1"));
    }
    let n = limited(text, n as usize)?;
    Ok((0..n).map(|i| at(if n == 1 { 0.0 } else { i as f64 / (n - 1) as f64 })).collect())
}

fn rounded(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::Integer(value as i64);
    }
    let value: f64 = format!("{value:.5e}").parse().expect("a number was just written");
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::Integer(value as i64) } else { Value::Float(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        parse(text).expect("it is well-formed").expect("it is a range").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ranges_have_the_values_that_they_say() {
        assert_eq!(shown("0..3"), ["0", "1", "2"]);
        assert_eq!(shown("\"-1..1\""), ["-1", "0"]);
        assert_eq!(shown("range(1, 10, 4)"), ["1", "5", "9"]);
        assert_eq!(shown("range(0, 0.3, 0.1)"), ["0", "0.1", "0.2"]);
        assert_eq!(shown("range(3, 0, -1)"), ["3", "2", "1"]);
        assert_eq!(shown("linspace(0.1, 0.5, 5)"), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(shown("logspace(0.001, 0.1, 5)"), ["0.001", "0.00316228", "0.01", "0.0316228", "0.1"]);
        assert_eq!(shown("logspace(1, 1000, 4)"), ["1", "10", "100", "1000"]);
        assert_eq!(shown("linspace(2, 3, 1)"), ["2"]);
        assert_eq!(shown("range(1234567, 1234570)"), ["1234567", "1234568", "1234569"]);
    }

    #[test]
    fn other_text_is_no_range_and_bad_ranges_say_why() {
        for text in ["top-k", "0.5", "a..b", "{operator=\"sign\"}", "[1, 2]"] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
        for (text, reason) in [
            ("5..5", "is empty"),
            ("lin(1, 2, 3)", "there is no range `lin`"),
            ("0..=4", "its end is not included"),
            ("0..100000", "at most 10000"),
            ("range(1)", "takes a start"),
            ("range(1, 2, 0)", "the step is not 0"),
            ("range(2, 1)", "is empty"),
            ("linspace(1, 2)", "takes both ends"),
            ("linspace(1, 2, 2.5)", "whole number"),
            ("logspace(-3, -1, 5)", "not exponents"),
            ("logspace(1, 2, 3", "closing bracket"),
            ("logspace(1, x, 3)", "every argument is a number"),
        ] {
            let message = parse(text).expect_err(text);
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
