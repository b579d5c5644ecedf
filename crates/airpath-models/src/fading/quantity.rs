// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Quantities of radio, in double precision: speeds, frequencies, distances, ratios in decibels.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use airpath_core::quantity::{QuantityError, split};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! quantities {
    (@list $last:literal) => { $last };
    (@list $first:literal, $( $rest:literal ),+) => { concat!($first, ", ", quantities!(@list $( $rest ),+)) };
    ($( $(#[$meta:meta])* $Name:ident($what:literal, $example:literal): $( $unit:literal = $factor:expr ),+; )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $Name(pub f64);

        impl FromStr for $Name {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<$Name, QuantityError> {
                let (number, unit) = split(text);
                let wrong = |reason: String| QuantityError::new(reason, $example);
                let units: &[(&str, f64)] = &[$( ($unit, $factor) ),+];
                let names = units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                if number.is_empty() {
                    return Err(wrong(format!(concat!("`{}` is not a ", $what, ": it does not begin with a number"), text)));
                }
                let (_, factor) = units
                    .iter()
                    .find(|(name, _)| *name == unit)
                    .ok_or_else(|| wrong(format!(concat!("`{}` is not a ", $what, ": its unit must be one of {}"), text, names)))?;
                match number.replace('_', "").parse::<f64>() {
                    Ok(number) if number.is_finite() => Ok($Name(number * factor)),
                    _ => Err(wrong(format!(concat!("`{}` is not a ", $what, ": it does not begin with a number"), text))),
                }
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let units: &[(&str, f64)] = &[$( ($unit, $factor) ),+];
                write!(f, "{} {}", self.0 / units[0].1, units[0].0)
            }
        }

        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$Name, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $Name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($Name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units = [$( $unit ),+].join("|");
                let description = concat!("A ", $what, " with its unit: ", quantities!(@list $( $unit ),+), ".");
                json_schema!({
                    "type": "string",
                    "description": description,
                    "pattern": format!(r"^\s*[-+]?[0-9_]*\.?[0-9]+\s*({units})\s*$"),
                    "examples": [$example],
                })
            }
        }
    )* };
}

quantities! {
    /// A speed, in metres per second.
    Speed("speed", "75 km/h"): "m/s" = 1.0, "km/h" = 1.0 / 3.6;
    /// A frequency, in hertz.
    Frequency("frequency", "1900 MHz"): "Hz" = 1.0, "kHz" = 1e3, "MHz" = 1e6, "GHz" = 1e9;
    /// A distance, in metres.
    Distance("distance", "2 m"): "m" = 1.0, "km" = 1e3;
    /// A ratio of powers, in decibels.
    Decibels("ratio in decibels", "16 dB"): "dB" = 1.0;
    /// A delay of an echo, or a time, in seconds.
    Seconds("time", "300 ns"): "s" = 1.0, "ms" = 1e-3, "us" = 1e-6, "ns" = 1e-9;
}

impl Decibels {
    /// The ratio of powers.
    pub fn ratio(self) -> f64 {
        libm::exp(self.0 * (std::f64::consts::LN_10 / 10.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_with_units_and_refused_without() {
        assert_eq!("36 km/h".parse::<Speed>().unwrap().0, 10.0);
        assert_eq!("-5.7 dB".parse::<Decibels>().unwrap().0, -5.7);
        assert_eq!(Frequency(200e3).to_string().parse::<Frequency>().unwrap(), Frequency(200e3));
        assert!((Decibels(16.0).ratio() - 39.810_717_055_349_73).abs() < 1e-12);
        for wrong in ["75", "75 mph", "km/h", "NaN km/h", ""] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }
}
