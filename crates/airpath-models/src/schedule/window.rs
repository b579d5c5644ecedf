// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Windows of averages, and averages by bearer that decay over slots.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use airpath_core::Span;
use airpath_core::quantity::{QuantityError, split};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::problem::Problem;

const EXAMPLE: &str = "1000 slots";

/// Most slots of a window.
const MOST_SLOTS: f64 = 1e12;

/// A window of an average: `"1000 slots"`, or a time such as `"1 s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A number of slots.
    Slots(u64),
    /// A time.
    Time(Span),
}

impl Window {
    /// Problems of the window under the key `window`.
    pub(super) fn problems(self) -> Vec<Problem> {
        self.problems_of("window")
    }

    /// Problems of the window under `key`.
    pub(crate) fn problems_of(self, key: &str) -> Vec<Problem> {
        let fits = match self {
            Window::Slots(slots) => slots >= 1 && slots as f64 <= MOST_SLOTS,
            Window::Time(time) => time > Span::ZERO,
        };
        if fits {
            return Vec::new();
        }
        vec![Problem::new(key, format!("is {self}; it must be longer than 0 and at most {MOST_SLOTS:e} slots"))]
    }

    /// Number of slots, at least one.
    fn slots(self, slots_per_second: u32) -> f64 {
        match self {
            Window::Slots(slots) => slots as f64,
            Window::Time(time) => (time.as_secs_f64() * f64::from(slots_per_second)).max(1.0),
        }
    }
}

impl FromStr for Window {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Window, QuantityError> {
        let (number, unit) = split(text);
        if !matches!(unit, "slot" | "slots") {
            let wrong =
                |error| QuantityError::new(format!("`{text}` is no number of slots, and no time: {error}"), EXAMPLE);
            return text.parse().map(Window::Time).map_err(wrong);
        }
        let slots = number.replace('_', "").parse();
        slots.map(Window::Slots).map_err(|_| QuantityError::new(format!("`{number}` is not a whole number"), EXAMPLE))
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::Slots(1) => write!(f, "1 slot"),
            Window::Slots(slots) => write!(f, "{slots} slots"),
            Window::Time(time) => write!(f, "{time}"),
        }
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Window, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Window {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A number of slots, or a time.",
            "pattern": r"^\s*[0-9_]*\.?[0-9]+\s*(slots?|h|min|s|ms|us|µs|μs|ns)\s*$",
            "examples": [EXAMPLE, "1 s"],
        })
    }
}

/// Exponentially weighted averages by bearer: T(n) = (1 − 1/W) T(n − 1) + x(n) / W in slot n, with W in slots.
#[derive(Clone, Debug)]
pub(super) struct Averages {
    keep: f64,
    values: Vec<f64>,
    /// Slot of the last update.
    slot: u64,
}

impl Averages {
    pub fn new(window: Window, slots_per_second: u32, bearers: usize) -> Averages {
        let keep = 1.0 - 1.0 / window.slots(slots_per_second);
        Averages { keep, values: vec![0.0; bearers], slot: 0 }
    }

    /// Lets the averages decay until slot `number`, whatever the number of slots in between.
    pub fn decay(&mut self, number: u64) {
        let passed = number - self.slot;
        self.slot = number;
        if passed > 0 {
            let keep = if passed == 1 { self.keep } else { libm::pow(self.keep, passed as f64) };
            self.values.iter_mut().for_each(|value| *value *= keep);
        }
    }

    /// Adds `x` of the present slot to the average of `bearer`.
    pub fn add(&mut self, bearer: u16, x: f64) {
        self.values[usize::from(bearer)] += x * (1.0 - self.keep);
    }

    pub fn of(&self, bearer: u16) -> f64 {
        self.values[usize::from(bearer)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_with_their_unit_and_printed_as_they_are_read() {
        for text in ["1 slot", "1000 slots", "1.7 s"] {
            assert_eq!(text.parse::<Window>().unwrap().to_string(), text);
        }
        for wrong in ["1000", "1.5 slots", "-1 slots", "slots", "1 h ago"] {
            assert!(wrong.parse::<Window>().is_err(), "{wrong}");
        }
        assert_eq!("0 slots".parse::<Window>().unwrap().problems().len(), 1);
    }

    #[test]
    fn averages_by_hand() {
        // W = 4: 100 in slot 1 leaves 25; three slots later 25 · 0.75³ = 10.546875; 40 more add 10.
        let mut averages = Averages::new("0.4 s".parse().unwrap(), 10, 2);
        averages.decay(1);
        averages.add(1, 100.0);
        assert_eq!([averages.of(0), averages.of(1)], [0.0, 25.0]);
        averages.decay(4);
        averages.add(1, 40.0);
        assert!((averages.of(1) - 20.546_875).abs() < 1e-12);
        averages.decay(u64::MAX);
        assert_eq!(averages.of(1), 0.0);
    }
}
