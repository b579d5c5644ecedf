// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Numbers as people read them.

/// `count` with a comma between thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `count` of things called `noun`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Three significant digits of `value` in the unit that leaves one to three of them before the point.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // What rounds to four digits belongs into the next unit.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 || value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// A length of time.
pub fn span(nanos: u64) -> String {
    scaled(nanos as f64, 1e3, &["ns", "us", "ms", "s"])
}

/// An amount of data.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1e3, &["B", "kB", "MB", "GB", "TB"])
}

/// A rate.
pub fn rate(bits: u64, nanos: u64) -> String {
    if nanos == 0 {
        return "-".into();
    }
    bit_rate(bits as f64 * 1e9 / nanos as f64)
}

/// A rate in bits per second.
pub fn bit_rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, 1e3, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// Ratio of `one` to `other`, which is above zero.
pub fn ratio(one: u64, other: u64) -> String {
    let ratio = one as f64 / other as f64;
    match ratio {
        _ if ratio >= 99.5 => count(ratio.round() as u64),
        _ if ratio >= 9.95 => format!("{ratio:.0}"),
        _ => format!("{ratio:.2}"),
    }
}

/// `part` of `whole` in percent.
pub fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    match share {
        _ if share >= 9.95 => format!("{share:.0} %"),
        _ if share >= 0.095 => format!("{share:.1} %"),
        _ if share >= 0.0005 => format!("{share:.3} %"),
        _ => "under 0.001 %".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "packet"), counted(2, "packet")], ["1 packet", "2 packets"]);
        assert_eq!(
            [span(0), span(999), span(12_345), span(214_300_000), span(999_700_000), span(170_500_000_000)],
            ["0 ns", "999 ns", "12.3 us", "214 ms", "1.00 s", "170 s"]
        );
        assert_eq!([bytes(40), bytes(102_400)], ["40 B", "102 kB"]);
        assert_eq!([ratio(1, 4), ratio(99, 10), ratio(123_456, 1)], ["0.25", "9.90", "123,456"]);
        assert_eq!(rate(9_600, 1_000_000_000), "9.60 kbit/s");
        assert_eq!([percent(1, 3), percent(1, 1_000), percent(1, 100_000)], ["33 %", "0.1 %", "0.001 %"]);
    }
}
