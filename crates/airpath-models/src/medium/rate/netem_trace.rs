// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The bandwidth models of netem-trace (the library of rattan), read from its JSON and expanded.
//!
//! `StaticBwConfig`, `NormalizedBwConfig`, `SawtoothBwConfig` and `RepeatedBwPatternConfig`, with its
//! defaults, bandwidths and durations in both its spellings (`{"gbps": 0, "bps": 12000000}` or
//! `"12Mbps"`, `{"secs": 1, "nanos": 0}` or `"1s"`). Noise is normal as there and depends on the
//! model's `seed` alone, but its numbers are our own: a run must not change with a release of
//! somebody else's generator. A pattern that repeats for ever does so only at the top.

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use serde_json::Value;

use super::curve::Point;
use super::rate_trace::{POINTS_LIMIT, RateTrace};

const DEFAULT_SEED: u64 = 42;
const SECOND_NS: u64 = 1_000_000_000;
const DEFAULT_BANDWIDTH: u64 = 12_000_000;

/// True if `value` is a model of netem-trace.
pub(super) fn is_one(value: &Value) -> bool {
    model(value).is_some_and(|(name, _)| name.contains("Bw") && name.ends_with("Config"))
}

fn model(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(name, fields)| (name.as_str(), fields))
}

/// The trace that a model describes.
pub(super) fn expand(value: &Value) -> Result<RateTrace, String> {
    let mut parts = Parts::default();
    let repeats = parts.model(value, true)?;
    RateTrace::new(parts.points, Some(parts.end_ns), repeats)
}

#[derive(Default)]
struct Parts {
    points: Vec<Point>,
    end_ns: u64,
    /// Number of samples that models have taken, of whatever rate.
    samples: u64,
}

impl Parts {
    /// Counts samples before they are taken: models of few words, and many of them, may ask for any number.
    fn sample(&mut self, samples: u64) -> Result<(), String> {
        self.samples = self.samples.saturating_add(samples);
        if self.samples > POINTS_LIMIT as u64 {
            return Err(format!("its models have more than {POINTS_LIMIT} steps together"));
        }
        Ok(())
    }

    fn push(&mut self, rate: u64, length_ns: u64) -> Result<(), String> {
        if length_ns == 0 {
            return Ok(());
        }
        if self.points.last().is_none_or(|last| last.rate != rate) {
            self.points.push(Point { at_ns: self.end_ns, rate });
        }
        self.end_ns = self.end_ns.checked_add(length_ns).ok_or("it lasts for more than 500 years")?;
        if self.points.len() > POINTS_LIMIT {
            return Err(format!("it expands to more than {POINTS_LIMIT} rates"));
        }
        Ok(())
    }

    /// Adds a model; whether it begins anew after its end.
    fn model(&mut self, value: &Value, top: bool) -> Result<bool, String> {
        let (name, fields) = model(value).ok_or("a model is an object with one key, such as `StaticBwConfig`")?;
        let fields = Fields { name, fields };
        match name {
            "StaticBwConfig" | "FixedBwConfig" => {
                self.push(fields.bandwidth("bw", DEFAULT_BANDWIDTH)?, fields.duration("duration", SECOND_NS)?)?;
            }
            "NormalizedBwConfig" => self.normalized(&fields)?,
            "SawtoothBwConfig" => self.sawtooth(&fields)?,
            "RepeatedBwPatternConfig" => return self.repeated(&fields, top),
            other => {
                return Err(format!(
                    "`{other}` is no model of bandwidth that is known (StaticBwConfig, NormalizedBwConfig, \
                     SawtoothBwConfig, RepeatedBwPatternConfig)"
                ));
            }
        }
        Ok(false)
    }

    fn repeated(&mut self, fields: &Fields<'_>, top: bool) -> Result<bool, String> {
        let pattern = fields.get("pattern").and_then(Value::as_array).filter(|pattern| !pattern.is_empty());
        let pattern = pattern.ok_or("the `pattern` of RepeatedBwPatternConfig is no list of models")?;
        let count = match fields.get("count") {
            None => 0,
            Some(count) => count.as_u64().ok_or("the `count` of RepeatedBwPatternConfig is no whole number")?,
        };
        if count == 0 && !top {
            return Err("a pattern within a pattern has the count 0 and would repeat for ever; give it a count".into());
        }
        let mut once = Parts { samples: self.samples, ..Parts::default() };
        for part in pattern {
            once.model(part, false)?;
        }
        self.samples = once.samples;
        if once.end_ns == 0 {
            return Err("a RepeatedBwPatternConfig lasts for no time at all".into());
        }
        let times = count.max(1);
        if let [Point { rate, .. }] = once.points[..] {
            let length_ns = once.end_ns.checked_mul(times).ok_or("it lasts for more than 500 years")?;
            self.push(rate, length_ns)?;
            return Ok(count == 0);
        }
        // The last rate of one time and the first of the next may be the same, and are one then.
        if (once.points.len() as u64 - 1).saturating_mul(times) > POINTS_LIMIT as u64 {
            return Err(format!(
                "a RepeatedBwPatternConfig has {} rates {times} times: it expands to more than {POINTS_LIMIT} rates",
                once.points.len()
            ));
        }
        for _ in 0..times {
            let ends = once.points.iter().skip(1).map(|next| next.at_ns).chain([once.end_ns]);
            for (point, end_ns) in once.points.iter().zip(ends) {
                self.push(point.rate, end_ns - point.at_ns)?;
            }
        }
        Ok(count == 0)
    }

    fn normalized(&mut self, fields: &Fields<'_>) -> Result<(), String> {
        let (mean, deviation) = (fields.bandwidth("mean", DEFAULT_BANDWIDTH)?, fields.bandwidth("std_dev", 0)?);
        let (least, most) = (fields.bandwidth("lower_bound", 0)?, fields.bandwidth("upper_bound", u64::MAX)?);
        let noise = Noise::new(fields)?;
        self.sample(fields.steps()?)?;
        fields
            .samples(|index, _| {
                // A cast from a floating-point number keeps to the range of the integer.
                let drawn = (mean as f64 + deviation as f64 * noise.draw(index)) as u64;
                drawn.max(least).min(most)
            })?
            .into_iter()
            .try_for_each(|(rate, length)| self.push(rate, length))
    }

    fn sawtooth(&mut self, fields: &Fields<'_>) -> Result<(), String> {
        let (bottom, top) = (fields.bandwidth("bottom", 0)?, fields.bandwidth("top", DEFAULT_BANDWIDTH)?);
        if bottom > top {
            return Err("the `bottom` of SawtoothBwConfig is above its `top`".into());
        }
        let interval = fields.duration("interval", SECOND_NS)?;
        if interval == 0 {
            return Err("the `interval` of SawtoothBwConfig is 0".into());
        }
        let duty = fields.get("duty_ratio").map_or(Some(0.5), Value::as_f64).filter(|duty| (0.0..=1.0).contains(duty));
        let duty = duty.ok_or("the `duty_ratio` of SawtoothBwConfig is no number from 0 to 1")?;
        let deviation = fields.bandwidth("std_dev", 0)? as f64;
        let highest = fields.bandwidth("upper_noise_bound", u64::MAX)? as f64;
        let lowest = -(fields.bandwidth("lower_noise_bound", u64::MAX)? as f64);
        let noise = Noise::new(fields)?;
        self.sample(fields.steps()?)?;
        let turn = interval as f64 * duty;
        let height = (top - bottom) as f64;
        fields
            .samples(|index, at_ns| {
                let x = (at_ns % interval) as f64;
                let base = if x < turn {
                    bottom as f64 + height * (x / turn)
                } else {
                    top as f64 - height * ((x - turn) / (interval as f64 - turn))
                };
                let offset =
                    if deviation == 0.0 { 0.0 } else { (deviation * noise.draw(index)).min(highest).max(lowest) };
                (libm::round(base) + offset) as u64
            })?
            .into_iter()
            .try_for_each(|(rate, length)| self.push(rate, length))
    }
}

/// Normal draws of a model's own.
struct Noise(DrawKey);

impl Noise {
    fn new(fields: &Fields<'_>) -> Result<Noise, String> {
        let seed = match fields.get("seed") {
            None => DEFAULT_SEED,
            Some(seed) => seed.as_u64().ok_or_else(|| format!("the `seed` of {} is no whole number", fields.name))?,
        };
        let scope = DrawScope { hop: "netem-trace", direction: Direction::Uplink, role: "noise", instance: 0 };
        Ok(Noise(DrawKey::new(Seed(seed), &scope)))
    }

    /// A standard normal draw (Box and Muller 1958).
    fn draw(&self, index: u64) -> f64 {
        let (radius, angle) = (self.0.unit(index, 0), self.0.unit(index, 1));
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * std::f64::consts::PI * angle)
    }
}

struct Fields<'a> {
    name: &'a str,
    fields: &'a Value,
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    /// Number of samples that such a model takes.
    fn steps(&self) -> Result<u64, String> {
        let (duration, step) = (self.duration("duration", SECOND_NS)?, self.duration("step", 1_000_000)?);
        Ok(duration.checked_div(step).unwrap_or(0))
    }

    /// The values of a model that samples `rate` (of the sample's number and time) every `step`.
    fn samples(&self, rate: impl Fn(u64, u64) -> u64) -> Result<Vec<(u64, u64)>, String> {
        let (duration, step) = (self.duration("duration", SECOND_NS)?, self.duration("step", 1_000_000)?);
        if step == 0 {
            return Err(format!("the `step` of {} is 0", self.name));
        }
        if duration / step > POINTS_LIMIT as u64 {
            return Err(format!("{} has more than {POINTS_LIMIT} steps", self.name));
        }
        let count = duration.div_ceil(step);
        Ok((0..count).map(|index| (rate(index, index * step), step.min(duration - index * step))).collect())
    }

    fn bandwidth(&self, key: &str, default: u64) -> Result<u64, String> {
        const UNITS: [(&str, u64); 5] =
            [("tbps", 1_000_000_000_000), ("gbps", 1_000_000_000), ("mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];
        let Some(value) = self.get(key) else { return Ok(default) };
        let parts = value.as_object().and_then(|object| {
            let part = |name: &str| object.get(name).map_or(Some(0), Value::as_u64);
            part("gbps")?.checked_mul(1_000_000_000)?.checked_add(part("bps")?)
        });
        parts.or_else(|| sum(value.as_str()?, &UNITS)).ok_or_else(|| self.wrong(key, "bandwidth", "\"12Mbps\""))
    }

    fn duration(&self, key: &str, default: u64) -> Result<u64, String> {
        const UNITS: [(&str, u64); 12] = [
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("s", SECOND_NS),
            ("sec", SECOND_NS),
            ("seconds", SECOND_NS),
            ("m", 60 * SECOND_NS),
            ("min", 60 * SECOND_NS),
            ("minutes", 60 * SECOND_NS),
            ("h", 3_600 * SECOND_NS),
            ("hours", 3_600 * SECOND_NS),
            ("days", 86_400 * SECOND_NS),
        ];
        let Some(value) = self.get(key) else { return Ok(default) };
        let parts = value.as_object().and_then(|object| {
            let part = |name: &str| object.get(name).map_or(Some(0), Value::as_u64);
            part("secs")?.checked_mul(SECOND_NS)?.checked_add(part("nanos")?)
        });
        parts.or_else(|| sum(value.as_str()?, &UNITS)).ok_or_else(|| self.wrong(key, "duration", "\"1s\""))
    }

    fn wrong(&self, key: &str, what: &str, example: &str) -> String {
        format!("the `{key}` of {} is no {what}; write for example {example}", self.name)
    }
}

/// A sum of numbers with units, such as `1m 30s`.
fn sum(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, behind) = (&rest[..end], rest[end..].trim_start());
        let end = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let unit = behind[..end].to_lowercase();
        let factor = units.iter().find(|(name, _)| *name == unit)?.1;
        total = total.checked_add(airpath_core::quantity::scale(number, factor).ok()?)?;
        rest = behind[end..].trim_start();
    }
    Some(total)
}
