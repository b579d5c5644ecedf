// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Numbers with units as text: one parser and one printer for every quantity of a scenario.
//!
//! Parsing is exact: the decimal is scaled by the unit's integer factor, and what would not be a
//! whole number of the base unit is refused rather than rounded.

use std::fmt;

/// One unit of a quantity.
pub struct Unit {
    /// Spellings; the first is the one printed.
    pub names: &'static [&'static str],
    /// Number of base units in one of this unit.
    pub factor: u64,
    /// True if the printer may choose the unit.
    pub shown: bool,
}

/// Error of parsing a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; write for example {example}")]
pub struct QuantityError {
    reason: String,
    example: &'static str,
}

impl QuantityError {
    /// An error with a `reason` and an `example` of what would be right.
    pub fn new(reason: impl Into<String>, example: &'static str) -> QuantityError {
        QuantityError { reason: reason.into(), example }
    }

    /// The error for a quantity that may not be zero.
    pub fn zero(text: &str, what: &str, example: &'static str) -> QuantityError {
        QuantityError::new(format!("`{text}` is a {what} of zero"), example)
    }
}

/// Splits `text` into its number and its unit, both trimmed.
pub fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_digit() || matches!(c, '.' | '_' | '+' | '-')))
        .map_or(text.len(), |(index, _)| index);
    (text[..end].trim(), text[end..].trim())
}

/// Reads `text` as a decimal number with one of `units`; the result is in base units.
///
/// # Errors
/// When there is no number, no unit, an unknown unit, a negative number, a value that is not a
/// whole number of base units, or one that does not fit into 64 bits.
pub fn parse(text: &str, what: &str, units: &[Unit], example: &'static str) -> Result<u64, QuantityError> {
    let (number, name) = split(text);
    if number.is_empty() {
        return Err(QuantityError::new(format!("`{text}` is not a {what}: it does not begin with a number"), example));
    }
    if name.is_empty() {
        return Err(QuantityError::new(format!("`{text}` has no unit ({})", unit_list(units)), example));
    }
    let unit = units.iter().find(|unit| unit.names.contains(&name)).ok_or_else(|| {
        let near = crate::nearest::nearest(name, units.iter().flat_map(|unit| unit.names.iter().copied()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        QuantityError::new(format!("`{name}` is not a unit of {what} ({}){hint}", unit_list(units)), example)
    })?;
    scale(number, unit.factor)
        .map_err(|problem| QuantityError::new(format!("`{text}` is not a {what}: {problem}"), example))
}

fn unit_list(units: &[Unit]) -> String {
    units.iter().map(|unit| unit.names[0]).collect::<Vec<_>>().join(", ")
}

/// `number` times `factor`, exactly.
///
/// # Errors
/// A message when the number is malformed, negative, too large, or leaves a fraction.
pub fn scale(number: &str, factor: u64) -> Result<u64, String> {
    if number.starts_with('-') {
        return Err("it is negative".into());
    }
    let digits = number.trim_start_matches('+').replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if (whole.is_empty() && fraction.is_empty())
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return Err(format!("`{number}` is not a number"));
    }
    let fraction = fraction.trim_end_matches('0');
    let too_large = || "it is too large".to_string();
    let mantissa: u128 = format!("0{whole}{fraction}").parse().map_err(|_| too_large())?;
    let divisor = 10u128.checked_pow(fraction.len() as u32).ok_or("it has too many decimals")?;
    let product = mantissa.checked_mul(u128::from(factor)).ok_or_else(too_large)?;
    if !product.is_multiple_of(divisor) {
        return Err("it is finer than the smallest unit".into());
    }
    u64::try_from(product / divisor).map_err(|_| too_large())
}

/// Prints `value` (in base units) in the coarsest unit that leaves at most three decimals;
/// `zero_unit` is used for nought.
pub fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit], zero_unit: &str) -> fmt::Result {
    if value == 0 {
        return write!(f, "0 {zero_unit}");
    }
    for unit in units.iter().filter(|unit| unit.shown) {
        if value < unit.factor {
            continue;
        }
        let (whole, rest) = (value / unit.factor, value % unit.factor);
        if rest == 0 {
            return write!(f, "{whole} {}", unit.names[0]);
        }
        if unit.factor.is_multiple_of(1_000) && rest.is_multiple_of(unit.factor / 1_000) && unit.factor < 60_000_000_000
        {
            let thousandths = format!("{:03}", rest / (unit.factor / 1_000));
            return write!(f, "{whole}.{} {}", thousandths.trim_end_matches('0'), unit.names[0]);
        }
    }
    let last = units.iter().rev().find(|unit| unit.shown && unit.factor == 1);
    write!(f, "{value} {}", last.map_or(zero_unit, |unit| unit.names[0]))
}

/// The regular expression of a number with one of `units`.
pub(crate) fn pattern(units: &[Unit]) -> String {
    format!(r"^\s*{}\s*$", amount_pattern(units))
}

/// The same within a larger expression.
pub(crate) fn amount_pattern(units: &[Unit]) -> String {
    let names: Vec<&str> = units.iter().flat_map(|unit| unit.names).copied().collect();
    format!(r"[0-9_]*\.?[0-9]+\s*({})", names.join("|"))
}

/// Serde and JSON Schema for a type that is written as text (`FromStr` and `Display`).
macro_rules! text_serde {
    ($type:ty, $description:literal, $pattern:expr, $example:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::quantity::from_text(deserializer, $description)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                    "examples": [$example],
                })
            }
        }
    };
}
pub(crate) use text_serde;

/// Reads a quantity from text; a bare number is refused with a message that asks for the unit.
pub(crate) fn from_text<'de, D, T>(deserializer: D, description: &'static str) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: std::str::FromStr<Err = QuantityError>,
{
    struct Text<T>(&'static str, std::marker::PhantomData<T>);
    impl<T: std::str::FromStr<Err = QuantityError>> serde::de::Visitor<'_> for Text<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "text: {}", self.0)
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Text(description, std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use crate::length::Bits;
    use crate::rate::Rate;
    use crate::time::Span;

    #[test]
    fn quantities_are_exact() {
        assert_eq!("1.5 Mbit/s".parse::<Rate>().unwrap().bits_per_second(), 1_500_000);
        assert_eq!("0.1 s".parse::<Span>().unwrap().nanos(), 100_000_000);
        assert_eq!("13.5 bytes".parse::<Bits>().unwrap().get(), 108);
        assert_eq!("9_600bps".parse::<Rate>().unwrap().bits_per_second(), 9_600);
    }

    #[test]
    fn what_is_printed_reads_back_as_the_same() {
        for nanos in [0, 1, 999, 1_000, 1_500, 200_000_000, 1_234_567_891, 90_000_000_000, 61_000_000_000] {
            let span = Span::from_nanos(nanos);
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span, "{span}");
        }
        for bps in [1, 9_600, 12_000_000, 1_234_567, 2_500_000_000] {
            let rate = Rate::new(bps).unwrap();
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate, "{rate}");
        }
        assert_eq!(Rate::new(9_600).unwrap().to_string(), "9.6 kbit/s");
        assert_eq!(Span::from_millis(200).to_string(), "200 ms");
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_would_be_right() {
        let error = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert!(error("200").contains("has no unit"));
        assert!(error("200 mss").contains("did you mean `ms`"));
        assert!(error("-1 ms").contains("negative"));
        assert!(error("0.5 ns").contains("finer than the smallest unit"));
        assert!(error("fast").contains("does not begin with a number"));
        assert!(error("99999999999999 h").contains("too large"));
        assert!("0 bit/s".parse::<Rate>().unwrap_err().to_string().contains("zero"));
    }
}
