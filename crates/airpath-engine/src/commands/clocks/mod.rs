// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The clocks of several hosts: `airpath timing sync` and `airpath timing correct`.

pub mod correct;
mod status;
pub mod sync;

/// Nanoseconds as people read them, with a sign.
fn signed(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "+" };
    let magnitude = nanoseconds.unsigned_abs();
    match magnitude {
        0..1_000 => format!("{sign}{magnitude} ns"),
        1_000..1_000_000 => format!("{sign}{:.3} us", magnitude as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{sign}{:.6} ms", magnitude as f64 / 1e6),
        _ => format!("{sign}{}.{:09} s", magnitude / 1_000_000_000, magnitude % 1_000_000_000),
    }
}

/// Nanoseconds as people read them.
fn unsigned(nanoseconds: u64) -> String {
    signed(i64::try_from(nanoseconds).unwrap_or(i64::MAX))[1..].to_owned()
}

/// A number of parts per million with its sign.
fn ppm(value: f64) -> String {
    format!("{value:+.3}")
}

/// Seconds since 1970.
fn unix(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!(signed(-5), "-5 ns");
        assert_eq!(signed(12_345), "+12.345 us");
        assert_eq!(unsigned(20_000_001), "20.000001 ms");
        assert_eq!(signed(-3_000_000_001), "-3.000000001 s");
        assert_eq!((ppm(-0.5), unix(1_000_000_007)), ("-0.500".into(), "1.000000007".into()));
    }
}
