// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lengths in bits, limits of queues and buffers, probabilities and ratios.

use std::fmt;
use std::str::FromStr;

use crate::nearest::nearest;
use crate::quantity::{self, QuantityError, Unit};
use crate::time::{SPAN_UNITS, Span};

/// A number of bits. Lengths on a link are bits: radio frames need not be whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bits(u64);

impl Bits {
    /// No bits.
    pub const ZERO: Bits = Bits(0);

    /// `bits` bits.
    pub const fn new(bits: u64) -> Bits {
        Bits(bits)
    }

    /// The bits of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Bits {
        Bits(bytes * 8)
    }

    /// The number of bits.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl std::ops::Add for Bits {
    type Output = Bits;
    fn add(self, other: Bits) -> Bits {
        Bits(self.0 + other.0)
    }
}

/// Units a length may be written in.
pub const BITS_UNITS: &[Unit] = &[
    Unit { names: &["TB"], factor: 8_000_000_000_000, shown: false },
    Unit { names: &["GB"], factor: 8_000_000_000, shown: false },
    Unit { names: &["MB"], factor: 8_000_000, shown: false },
    Unit { names: &["kB"], factor: 8_000, shown: false },
    Unit { names: &["bytes", "byte", "B", "octets", "octet"], factor: 8, shown: true },
    Unit { names: &["bit", "bits"], factor: 1, shown: true },
];

impl FromStr for Bits {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Bits, QuantityError> {
        quantity::parse(text, "length", BITS_UNITS, "\"432 bit\" or \"54 bytes\"").map(Bits)
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit", self.0)
    }
}

quantity::text_serde!(
    Bits,
    "A length with its unit: bit, bytes, kB, MB, GB, TB.",
    quantity::pattern(BITS_UNITS),
    "432 bit"
);

/// Units that a number of whole bytes may be written in, the coarsest first.
pub const BYTES_UNITS: &[Unit] = &[
    Unit { names: &["TB"], factor: 1_000_000_000_000, shown: false },
    Unit { names: &["GB"], factor: 1_000_000_000, shown: false },
    Unit { names: &["MB"], factor: 1_000_000, shown: true },
    Unit { names: &["kB"], factor: 1_000, shown: true },
    Unit { names: &["bytes", "byte", "B", "octets", "octet"], factor: 1, shown: true },
];
const PACKETS_NAMES: &[&str] = &["packets", "packet", "pkts", "pkt"];
const FRAMES_NAMES: &[&str] = &["frames", "frame"];
const UNLIMITED: &str = "unlimited";

/// Capacity of a queue; each limit that is set applies.
///
/// Written as one or several parts joined by commas: `"7 packets"`, `"100 packets, 150 kB, 500 ms"`,
/// or `"unlimited"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueLimit {
    /// The most packets held.
    pub packets: Option<u32>,
    /// The most bytes held.
    pub bytes: Option<u64>,
    /// The longest time a packet may stay queued.
    pub age: Option<Span>,
}

/// Capacity of a link buffer, in one unit of the user's choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferLimit {
    /// No limit.
    Unlimited,
    /// At most so many packets.
    Packets(u32),
    /// At most so many frames.
    Frames(u32),
    /// At most so many bytes.
    Bytes(u64),
}

fn count(text: &str, names: &[&str]) -> Option<Result<u32, QuantityError>> {
    let (number, name) = quantity::split(text);
    names.contains(&name).then(|| {
        let example = "\"7 packets\"";
        let value = quantity::scale(number, 1)
            .map_err(|problem| QuantityError::new(format!("`{}` is not a limit: {problem}", text.trim()), example))?;
        match u32::try_from(value) {
            Ok(0) => Err(QuantityError::zero(text.trim(), "limit", example)),
            Ok(value) => Ok(value),
            Err(_) => Err(QuantityError::new(format!("`{}` is too large a limit", text.trim()), example)),
        }
    })
}

fn is_unit_of(text: &str, units: &[Unit]) -> bool {
    let (_, name) = quantity::split(text);
    units.iter().any(|unit| unit.names.contains(&name))
}

/// The limit that was probably meant by one with an unknown unit, as the end of a message.
fn meant(text: &str) -> String {
    let (number, name) = quantity::split(text);
    let units = BYTES_UNITS.iter().chain(SPAN_UNITS).flat_map(|unit| unit.names.iter().copied());
    let near = nearest(name, units.chain(PACKETS_NAMES.iter().copied())).filter(|_| !name.is_empty());
    near.map_or_else(String::new, |near| format!("; did you mean `{number} {near}`?"))
}

impl FromStr for QueueLimit {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<QueueLimit, QuantityError> {
        const EXAMPLE: &str = "\"7 packets\", \"64 kB\", \"500 ms\", or several joined by commas";
        let mut limit = QueueLimit::default();
        if text.trim() == UNLIMITED {
            return Ok(limit);
        }
        let twice = |part: &str| QuantityError::new(format!("`{}` limits the same thing twice", part.trim()), EXAMPLE);
        for part in text.split(',') {
            let repeated = if let Some(packets) = count(part, PACKETS_NAMES) {
                limit.packets.replace(packets?).is_some()
            } else if is_unit_of(part, BYTES_UNITS) {
                let bytes = quantity::parse(part, "limit", BYTES_UNITS, EXAMPLE)?;
                if bytes == 0 {
                    return Err(QuantityError::zero(part.trim(), "limit", EXAMPLE));
                }
                limit.bytes.replace(bytes).is_some()
            } else if is_unit_of(part, SPAN_UNITS) {
                limit.age.replace(part.parse()?).is_some()
            } else {
                return Err(QuantityError::new(
                    format!(
                        "`{}` is not a queue limit (packets, bytes, kB, MB, GB, a time, or unlimited){}",
                        part.trim(),
                        meant(part)
                    ),
                    EXAMPLE,
                ));
            };
            if repeated {
                return Err(twice(part));
            }
        }
        Ok(limit)
    }
}

struct ShowBytes(u64);
impl fmt::Display for ShowBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::show(f, self.0, BYTES_UNITS, "bytes")
    }
}

fn plural(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.packets.map(|packets| plural(packets, "packet")));
        parts.extend(self.bytes.map(|bytes| ShowBytes(bytes).to_string()));
        parts.extend(self.age.map(|age| age.to_string()));
        if parts.is_empty() {
            parts.push(UNLIMITED.into());
        }
        f.write_str(&parts.join(", "))
    }
}

quantity::text_serde!(
    QueueLimit,
    "Capacity of a queue: packets, bytes (kB, MB), a time, several joined by commas, or unlimited.",
    r"^.+$",
    "7 packets"
);

impl FromStr for BufferLimit {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<BufferLimit, QuantityError> {
        const EXAMPLE: &str = "\"4 packets\", \"64 frames\" or \"2 kB\"";
        if text.trim() == UNLIMITED {
            return Ok(BufferLimit::Unlimited);
        }
        if let Some(packets) = count(text, PACKETS_NAMES) {
            return packets.map(BufferLimit::Packets);
        }
        if let Some(frames) = count(text, FRAMES_NAMES) {
            return frames.map(BufferLimit::Frames);
        }
        match quantity::parse(text, "buffer size in packets, frames or bytes", BYTES_UNITS, EXAMPLE)? {
            0 => Err(QuantityError::zero(text, "buffer size", EXAMPLE)),
            bytes => Ok(BufferLimit::Bytes(bytes)),
        }
    }
}

impl fmt::Display for BufferLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BufferLimit::Unlimited => f.write_str(UNLIMITED),
            BufferLimit::Packets(packets) => f.write_str(&plural(packets, "packet")),
            BufferLimit::Frames(frames) => f.write_str(&plural(frames, "frame")),
            BufferLimit::Bytes(bytes) => ShowBytes(bytes).fmt(f),
        }
    }
}

quantity::text_serde!(
    BufferLimit,
    "Capacity of a link buffer: packets, frames, bytes (kB, MB), or unlimited.",
    r"^.+$",
    "4 packets"
);

/// Parts in a million million: the exact form of probabilities and ratios.
const PARTS: u64 = 1_000_000_000_000;

/// Units that a share may be written in, as parts in a million million.
pub const SHARE_UNITS: &[Unit] = &[Unit { names: &["%"], factor: PARTS / 100, shown: true }];

/// The number of a share, and how many parts one of it is; a bare number is a fraction.
fn split_share(text: &str) -> (&str, u64) {
    let text = text.trim();
    let unit = |unit: &Unit| unit.names.iter().find_map(|name| Some((text.strip_suffix(name)?.trim(), unit.factor)));
    SHARE_UNITS.iter().find_map(unit).unwrap_or((text, PARTS))
}

/// A probability, kept exactly as written to twelve decimals; a number (0.01) or text ("1%").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(PARTS);

    /// The probability nearest to `value`; `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&value).then(|| Probability((value * PARTS as f64).round() as u64))
    }

    /// The probability as a number from 0 to 1.
    pub fn get(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }

    /// The probability of the contrary.
    pub fn complement(self) -> Probability {
        Probability(PARTS - self.0)
    }

    /// The probability of either of two things that exclude each other; `None` above 1.
    pub fn checked_add(self, other: Probability) -> Option<Probability> {
        self.0.checked_add(other.0).filter(|parts| *parts <= PARTS).map(Probability)
    }

    /// The number of values of a uniform 64-bit draw that mean "yes": a draw below it is a hit.
    /// 2^64 for certainty.
    pub fn threshold(self) -> u128 {
        (u128::from(self.0) << 64) / u128::from(PARTS)
    }

    /// True if a uniform 64-bit draw is below [`Probability::threshold`], computed without the division: a
    /// whole number is below the quotient rounded down exactly if its successor times the divisor is at most
    /// the dividend.
    #[inline]
    pub fn is_hit_by(self, draw: u64) -> bool {
        (u128::from(draw) + 1) * u128::from(PARTS) <= u128::from(self.0) << 64
    }
}

const PROBABILITY_EXAMPLE: &str = "0.01 or \"1%\"";

impl FromStr for Probability {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Probability, QuantityError> {
        let (number, factor) = split_share(text);
        let parts = if let Some((mantissa, exponent)) = number.split_once(['e', 'E']) {
            let value: f64 = format!("{mantissa}e{exponent}")
                .parse()
                .map_err(|_| QuantityError::new(format!("`{text}` is not a probability"), PROBABILITY_EXAMPLE))?;
            if !(0.0..=1.0).contains(&value) {
                return Err(QuantityError::new(format!("`{text}` is not between 0 and 1"), PROBABILITY_EXAMPLE));
            }
            (value * factor as f64).round() as u64
        } else {
            quantity::scale(number, factor).map_err(|problem| {
                QuantityError::new(format!("`{text}` is not a probability: {problem}"), PROBABILITY_EXAMPLE)
            })?
        };
        if parts > PARTS {
            return Err(QuantityError::new(format!("`{text}` is not between 0 and 1"), PROBABILITY_EXAMPLE));
        }
        Ok(Probability(parts))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl serde::Serialize for Probability {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.get())
    }
}

impl<'de> serde::Deserialize<'de> for Probability {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Probability, D::Error> {
        number_or_text(deserializer, "a probability: a number from 0 to 1, or a percentage such as \"1%\"")
    }
}

impl schemars::JsonSchema for Probability {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Probability".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A probability: a number from 0 to 1, or a percentage.",
            "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": r"^\s*[0-9_]*\.?[0-9]+\s*%\s*$"}],
            "examples": [0.01, "1%"],
        })
    }
}

/// A positive factor kept exactly to twelve decimals, such as a compression ratio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ratio(u64);

impl Ratio {
    /// Leaves lengths as they are.
    pub const ONE: Ratio = Ratio(PARTS);

    /// `bits` times the ratio, rounded up to a whole bit.
    pub fn of(self, bits: Bits) -> Bits {
        if self == Ratio::ONE {
            return bits;
        }
        Bits((u128::from(bits.get()) * u128::from(self.0)).div_ceil(u128::from(PARTS)) as u64)
    }

    /// The ratio as a number.
    pub fn get(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }
}

impl Default for Ratio {
    fn default() -> Ratio {
        Ratio::ONE
    }
}

impl FromStr for Ratio {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Ratio, QuantityError> {
        const EXAMPLE: &str = "0.5 (halves the length) or \"50%\"";
        let (number, factor) = split_share(text);
        match quantity::scale(number, factor) {
            Ok(0) => Err(QuantityError::zero(text, "ratio", EXAMPLE)),
            Ok(parts) if parts > 1_000 * PARTS => Err(QuantityError::new(format!("`{text}` is above 1000"), EXAMPLE)),
            Ok(parts) => Ok(Ratio(parts)),
            Err(problem) => Err(QuantityError::new(format!("`{text}` is not a ratio: {problem}"), EXAMPLE)),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl serde::Serialize for Ratio {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.get())
    }
}

impl<'de> serde::Deserialize<'de> for Ratio {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ratio, D::Error> {
        number_or_text(deserializer, "a ratio: a number above 0, or a percentage such as \"50%\"")
    }
}

impl schemars::JsonSchema for Ratio {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ratio".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A factor above 0: a number, or a percentage.",
            "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1000}, {"type": "string", "pattern": r"^\s*[0-9_]*\.?[0-9]+\s*%\s*$"}],
            "examples": [0.5],
        })
    }
}

/// Accepts a TOML number or text and hands its decimal digits to `FromStr`, so that 0.1 means
/// exactly a tenth.
struct NumberOrText<T>(&'static str, std::marker::PhantomData<T>);

fn number_or_text<'de, D, T>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr<Err = QuantityError>,
{
    deserializer.deserialize_any(NumberOrText(expected, std::marker::PhantomData))
}

impl<T: FromStr<Err = QuantityError>> serde::de::Visitor<'_> for NumberOrText<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        // Display of f64 never uses an exponent and gives the shortest decimal that reads back.
        number.to_string().parse().map_err(E::custom)
    }
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_and_print() {
        let limit: QueueLimit = "100 packets, 150 kB, 500 ms".parse().unwrap();
        assert_eq!(limit, QueueLimit { packets: Some(100), bytes: Some(150_000), age: Some(Span::from_millis(500)) });
        assert_eq!(limit.to_string(), "100 packets, 150 kB, 500 ms");
        assert_eq!("unlimited".parse::<QueueLimit>().unwrap(), QueueLimit::default());
        assert_eq!("1 packet".parse::<BufferLimit>().unwrap().to_string(), "1 packet");
        assert_eq!("8 frames".parse::<BufferLimit>().unwrap(), BufferLimit::Frames(8));
        assert_eq!("1500 bytes".parse::<BufferLimit>().unwrap(), BufferLimit::Bytes(1_500));
        for bad in ["7", "0 packets", "1.5 packets", "5 packets, 6 packets", "7 potatoes", ""] {
            assert!(bad.parse::<QueueLimit>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_unit_of_bytes_is_eight_times_the_same_of_bits() {
        for bytes in BYTES_UNITS {
            let bits = BITS_UNITS.iter().find(|unit| unit.names == bytes.names).unwrap();
            assert_eq!(bits.factor, 8 * bytes.factor);
        }
        assert_eq!("1 GB".parse::<Bits>().unwrap(), Bits::from_bytes(1_000_000_000));
        assert_eq!("2 octets".parse::<BufferLimit>().unwrap(), BufferLimit::Bytes(2));
        assert_eq!("3 GB".parse::<BufferLimit>().unwrap().to_string(), "3000 MB");
    }

    #[test]
    fn probabilities_are_exact_decimals() {
        assert_eq!("1%".parse::<Probability>().unwrap(), "0.01".parse().unwrap());
        assert_eq!("1e-3".parse::<Probability>().unwrap(), "0.001".parse().unwrap());
        assert_eq!(Probability::ONE.threshold(), 1u128 << 64);
        let third: Probability = "0.3".parse().unwrap();
        assert_eq!(third.checked_add(third.complement()), Some(Probability::ONE));
        assert_eq!(third.complement().checked_add(third.complement()), None);
        assert_eq!("0.5".parse::<Probability>().unwrap().threshold(), 1u128 << 63);
        for parts in [0, 1, 7, PARTS / 3, PARTS / 2, PARTS - 1, PARTS] {
            let (probability, threshold) = (Probability(parts), Probability(parts).threshold());
            let around = [threshold.saturating_sub(1), threshold, threshold + 1, 0, u128::from(u64::MAX)];
            for draw in around.into_iter().filter_map(|draw| u64::try_from(draw).ok()) {
                assert_eq!(probability.is_hit_by(draw), u128::from(draw) < threshold, "{parts} {draw}");
            }
        }
        for bad in ["1.1", "-0.1", "101%", "often", "2e0"] {
            assert!(bad.parse::<Probability>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ratios_round_up_to_a_bit() {
        let half: Ratio = "0.5".parse().unwrap();
        assert_eq!(half.of(Bits::new(3)).get(), 2);
        assert_eq!("1.1".parse::<Ratio>().unwrap().of(Bits::new(100)).get(), 110);
        assert!("0".parse::<Ratio>().is_err());
    }
}
