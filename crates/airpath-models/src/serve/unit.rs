// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The unit in which exchanges are charged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Nominal, Outcome};

/// Unit in which exchanges are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceUnit {
    /// An exchange, however long it is: the packet slot of Eckhardt and Steenkiste 2002, section 7.
    #[default]
    Packet,
    /// The time of an exchange, and the bits that arrive in it.
    AirTime,
}

/// Counts effort and outcome of exchanges, both in exchanges of the nominal length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    unit: ServiceUnit,
    nominal: Nominal,
}

/// Effort and outcome of an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Service {
    /// Time of the medium, or exchanges.
    pub effort: f64,
    /// Bits that arrived, or packets.
    pub outcome: f64,
}

impl Meter {
    pub fn new(unit: ServiceUnit, nominal: Nominal) -> Meter {
        Meter { unit, nominal }
    }

    /// Effort and outcome of an exchange. One of the nominal length that arrives is 1 and 1 in each unit.
    pub fn of(&self, outcome: &Outcome) -> Service {
        match self.unit {
            ServiceUnit::Packet => {
                let share = f64::from(outcome.arrived) / f64::from(outcome.frames.max(1));
                Service { effort: 1.0, outcome: share }
            }
            ServiceUnit::AirTime => Service {
                effort: outcome.air.nanos() as f64 / self.nominal.exchange.nanos() as f64,
                outcome: outcome.arrived_bits.get() as f64 / self.nominal.frame.get() as f64,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Bits, Span};

    use super::*;

    #[test]
    fn a_nominal_exchange_is_one_in_each_unit() {
        let nominal = Nominal { frame: Bits::from_bytes(1275), exchange: Span::from_micros(12_750) };
        assert_eq!(nominal.capacity(), 800_000.0);
        let whole = Outcome { air: nominal.exchange, frames: 1, arrived: 1, arrived_bits: nominal.frame };
        // One block: 255 bytes in 1.02 + 7.65 ms.
        let short = Outcome { air: Span::from_micros(8670), arrived_bits: Bits::from_bytes(255), ..whole };
        let lost = Outcome { arrived: 0, arrived_bits: Bits::ZERO, ..whole };
        for unit in [ServiceUnit::Packet, ServiceUnit::AirTime] {
            let meter = Meter::new(unit, nominal);
            assert_eq!(meter.of(&whole), Service { effort: 1.0, outcome: 1.0 });
            assert_eq!(meter.of(&lost), Service { effort: 1.0, outcome: 0.0 });
        }
        assert_eq!(Meter::new(ServiceUnit::Packet, nominal).of(&short), Service { effort: 1.0, outcome: 1.0 });
        assert_eq!(Meter::new(ServiceUnit::AirTime, nominal).of(&short), Service { effort: 0.68, outcome: 0.2 });
        let both = Outcome { frames: 2, ..whole };
        assert_eq!(Meter::new(ServiceUnit::Packet, nominal).of(&both).outcome, 0.5);
    }
}
