// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The round trip over an idle link, measured by pings in virtual time.

use airpath_core::{Item, LogLevel, Pdu, PortId, Seed, Span, Time};
use airpath_models::MachineConfig;
use airpath_virtual::{Input, VirtualDriver};

/// Bytes of a ping as `ping` sends it over IPv4: 20 of IP, 8 of ICMP, 56 of data.
const PING_BYTES: u32 = 84;
/// Number of pings, each over a link of its own.
const PINGS: u64 = 11;
/// Time of the ping: the link has been idle since 0.
const SENT: Time = Time::from_nanos(1_000_000_000);
/// Time after which a ping is lost.
const PATIENCE: Time = Time::from_nanos(61_000_000_000);

/// The median round trip of a ping over the link while nothing else uses it, as rounded as a person wants it; none
/// where most pings are lost.
pub fn idle_round_trip(machine: &MachineConfig) -> Option<Span> {
    let mut times_ns: Vec<u64> = (0..PINGS).map(|seed| ping(machine, seed).map_or(u64::MAX, Span::nanos)).collect();
    times_ns.sort_unstable();
    let median_ns = times_ns[times_ns.len() / 2];
    (median_ns != u64::MAX).then(|| rounded(median_ns))
}

/// One round trip of a ping over a new link.
fn ping(machine: &MachineConfig, seed: u64) -> Option<Span> {
    let mut driver = VirtualDriver::new(machine.build(Seed(seed)), LogLevel::Counters);
    let packet = |id| Item::Pdu(Pdu { id, len: PING_BYTES, header_len: 28, ..Pdu::default() });
    driver.input(SENT, Input::Offer(PortId::CLIENT, packet(1))).ok()?;
    while let Some(due) = driver.next_deadline().filter(|due| *due <= PATIENCE) {
        driver.advance(due);
        let emissions = std::mem::take(&mut driver.outputs_mut().emissions);
        for emission in emissions {
            match emission.port {
                PortId::SERVER => driver.input(driver.now(), Input::Offer(PortId::SERVER, packet(2))).ok()?,
                _ => return Some(emission.at.since(SENT)),
            }
        }
    }
    None
}

/// A time rounded to three digits.
fn rounded(nanoseconds: u64) -> Span {
    let mut step = 1;
    while nanoseconds / step >= 1_000 {
        step *= 10;
    }
    Span::from_nanos((nanoseconds + step / 2) / step * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_scenario::Scenario;

    fn round_trip(toml: &str) -> Option<Span> {
        let scenario = Scenario::from_toml(toml, "test").unwrap();
        idle_round_trip(&crate::link::machine(&scenario).unwrap())
    }

    #[test]
    fn delay_transmission_and_allocation_are_in_it() {
        // 84 bytes at 84 kbit/s are 8 ms.
        let link = "[[hops]]\nname = \"radio\"\n[hops.link]\npropagation = \"30 ms\"\nrate = \"84 kbit/s\"\n";
        assert_eq!(round_trip(link), Some(Span::from_millis(76)));
        let allocated = format!("{link}[hops.uplink]\nallocation_delay = \"100 ms\"\n");
        assert_eq!(round_trip(&allocated), Some(Span::from_millis(176)));
        let dead = format!("{link}errors = {{ type = \"bernoulli\", per = \"packet\", probability = 1.0 }}\n");
        assert_eq!(round_trip(&dead), None);
    }

    #[test]
    fn three_digits_are_left() {
        assert_eq!(rounded(1_120_499_999), Span::from_millis(1_120));
        assert_eq!(rounded(999), Span::from_nanos(999));
    }
}
