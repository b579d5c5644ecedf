// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Estimates of both directions, from a recording and its packets.

use serde::Serialize;

use crate::estimate::capacity::Course;
use crate::estimate::{Estimates, Material, direction};
use crate::recording::{Kind, Recording, Way};
use crate::records::Packets;

/// Length of an exchange of the comparison of clocks in bits, with IPv4 and UDP headers.
const EXCHANGE_BITS: f64 = 108.0 * 8.0;

/// Source of the difference between the delays of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Both ends have one clock: each delay is exact.
    SameClock,
    /// The clocks were compared over the path: the sum of both delays is exact, each is within the bound.
    Compared,
    /// The clocks were not compared: each direction has half of the round trip.
    Halved,
    /// One direction alone was recorded, and the clocks were not compared: the delay is not known.
    Unknown,
}

/// Estimates of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// From the recording host to `airpath recv`.
    pub uplink: Option<Estimates>,
    /// From `airpath recv` to the recording host.
    pub downlink: Option<Estimates>,
    /// Source of the difference between the delays of the two directions.
    pub delay_split: Split,
    /// Bound on the error of each delay in ns, if the clocks were compared.
    pub delay_bound_ns: Option<u64>,
}

impl Analysis {
    /// Estimates of a direction.
    pub fn of(&self, way: Way) -> Option<&Estimates> {
        match way {
            Way::Uplink => self.uplink.as_ref(),
            Way::Downlink => self.downlink.as_ref(),
        }
    }
}

/// Estimates a path from `recording`, whose parts have `packets`, in their order.
pub fn analyse(recording: &Recording, packets: &[Packets]) -> Analysis {
    let find = |way: Way, kind: Kind| {
        let place = recording.parts.iter().position(|part| part.direction == way && part.load == kind)?;
        packets.get(place)
    };
    let train = |way: Way| {
        let part = recording.parts.iter().find(|part| part.direction == way && part.load == Kind::Light);
        part.map_or(1, |part| part.train_packets)
    };
    let material = |way: Way| Material {
        saturating: find(way, Kind::Saturating),
        light: find(way, Kind::Light),
        train: train(way),
    };
    let any = |way: Way| recording.parts.iter().any(|part| part.direction == way);
    let estimate = |offset_ns: &dyn Fn(u64) -> i128| {
        Way::ALL.map(|way| {
            any(way).then(|| match way {
                Way::Uplink => direction(material(way), offset_ns),
                // The sender is the other host: its clock shows the offset more.
                Way::Downlink => direction(material(way), |sent_ns| -offset_ns(sent_ns)),
            })
        })
    };
    let plain = estimate(&|_| 0);
    let clocks = &recording.clocks;
    let (split, correction_ns) = match (clocks.same, clocks.estimates.is_empty(), &plain) {
        (true, ..) => (Split::SameClock, 0),
        (false, false, _) => (Split::Compared, asymmetry_ns(&plain)),
        (false, true, [Some(up), Some(down)]) => match (&up.delay, &down.delay) {
            // Half of the round trip each: the offset is half the difference.
            (Some(up), Some(down)) => {
                (Split::Halved, (i128::from(up.propagation_ns) - i128::from(down.propagation_ns)) / 2)
            }
            _ => (Split::Unknown, 0),
        },
        (false, true, _) => (Split::Unknown, 0),
    };
    let offset_ns = |at_ns: u64| match split {
        Split::SameClock => 0,
        Split::Compared => clocks.offset_ns(at_ns).unwrap_or(0) - correction_ns,
        Split::Halved | Split::Unknown => correction_ns,
    };
    let [mut uplink, mut downlink] = estimate(&offset_ns);
    if split == Split::Unknown {
        [&mut uplink, &mut downlink].into_iter().flatten().for_each(|estimates| estimates.delay = None);
    }
    Analysis { uplink, downlink, delay_split: split, delay_bound_ns: clocks.bound_ns() }
}

/// Error of the compared offset that comes from unequal times of transmission, in ns: half the difference.
fn asymmetry_ns(both: &[Option<Estimates>; 2]) -> i128 {
    let transmission_ns = |estimates: &Option<Estimates>| {
        let capacity = estimates.as_ref()?.capacity.as_ref()?;
        (capacity.course == Course::Constant).then(|| EXCHANGE_BITS * 1e9 / capacity.rate_bits_per_second)
    };
    match (transmission_ns(&both[0]), transmission_ns(&both[1])) {
        (Some(up), Some(down)) => ((up - down) / 2.0).round() as i128,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Clocks, FORMAT_VERSION, Part};
    use crate::wire::message::Arrival;

    /// Packets every 50 ms that take so long, received by a clock that is ahead of the sender's.
    fn light(transit_ns: i64, ahead_ns: i64) -> Packets {
        let sent: Vec<u64> = (0..100).map(|number| 10_000_000_000 + number * 50_000_000).collect();
        let arrivals: Vec<Arrival> = sent
            .iter()
            .enumerate()
            .map(|(number, sent)| Arrival {
                number: number as u32,
                arrived_ns: sent.saturating_add_signed(transit_ns + ahead_ns),
            })
            .collect();
        Packets::of(100, &sent, &arrivals)
    }

    fn recording(clocks: Clocks, ways: &[Way]) -> Recording {
        let part = |direction: &Way| Part {
            load: Kind::Light,
            direction: *direction,
            packet_bytes: 100,
            interval_ns: Some(50_000_000),
            train_packets: 1,
            file: String::new(),
            overflowed: 0,
            complete: true,
        };
        Recording {
            format_version: FORMAT_VERSION,
            airpath_version: String::new(),
            host: String::new(),
            peer: String::new(),
            began_unix_ns: 0,
            clocks,
            parts: ways.iter().map(part).collect(),
            warnings: Vec::new(),
        }
    }

    fn delays(analysis: &Analysis) -> [Option<i64>; 2] {
        Way::ALL.map(|way| Some(analysis.of(way)?.delay.as_ref()?.propagation_ns))
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn delays_are_told_apart_as_far_as_the_clocks_allow() {
        // 5 ms there and 45 ms back; the other clock is 7 s ahead.
        let ahead = 7_000 * MS;
        let packets = [light(5 * MS, ahead), light(45 * MS, -ahead)];
        let halved = analyse(&recording(Clocks::default(), &Way::ALL), &packets);
        assert_eq!((halved.delay_split, delays(&halved)), (Split::Halved, [Some(25 * MS), Some(25 * MS)]));
        let one = analyse(&recording(Clocks::default(), &[Way::Uplink]), &packets[..1]);
        assert_eq!((one.delay_split, delays(&one)), (Split::Unknown, [None, None]));
        let same = Clocks { same: true, ..Clocks::default() };
        let exact = analyse(&recording(same, &Way::ALL), &[light(5 * MS, 0), light(45 * MS, 0)]);
        assert_eq!((exact.delay_split, delays(&exact)), (Split::SameClock, [Some(5 * MS), Some(45 * MS)]));
        // Exchanges over the same path see half the round trip as well: 20 ms too little offset.
        let exchanges: Vec<_> = (0..20u64)
            .map(|number| {
                let origin_ns = 10_000_000_000 + number * 100_000_000;
                let receive_ns = origin_ns.saturating_add_signed(5 * MS + ahead);
                airpath_clocks::Exchange {
                    origin_ns,
                    receive_ns,
                    transmit_ns: receive_ns,
                    destination_ns: origin_ns + 50_000_000,
                    ..Default::default()
                }
            })
            .collect();
        let estimates = vec![airpath_clocks::Estimate::of(&exchanges).unwrap()];
        let compared = analyse(&recording(Clocks { same: false, estimates }, &Way::ALL), &packets);
        assert_eq!((compared.delay_split, delays(&compared)), (Split::Compared, [Some(25 * MS), Some(25 * MS)]));
        // The truth lies within the bound, 5 = 25 - 20.
        assert!((20_000_000..26_000_000).contains(&compared.delay_bound_ns.unwrap()), "{compared:?}");
    }
}
