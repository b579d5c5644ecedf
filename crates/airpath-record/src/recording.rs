// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A recording: phases with their files of packets, and the comparison of the clocks.

use airpath_clocks::Estimate;
use airpath_core::Direction;
use serde::{Deserialize, Serialize};

/// Version of the format of the file.
pub const FORMAT_VERSION: u32 = 1;

/// Load of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Saturating.
    Saturating,
    /// Light.
    Light,
}

impl Kind {
    /// The word in names of files.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Saturating => "saturating",
            Kind::Light => "light",
        }
    }
}

/// Direction of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the recording host to `airpath recv`.
    Uplink,
    /// From `airpath recv` to the recording host.
    Downlink,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::Uplink, Way::Downlink];

    /// The word in names of files and scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Uplink => Direction::Uplink.name(),
            Way::Downlink => Direction::Downlink.name(),
        }
    }
}

/// One direction of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Load.
    pub load: Kind,
    /// Direction.
    pub direction: Way,
    /// Length of each packet in bytes, IP and UDP headers included.
    pub packet_bytes: u32,
    /// Interval between packets of a light load, in ns.
    pub interval_ns: Option<u64>,
    /// Number of packets of each train of a light load.
    #[serde(default = "one")]
    pub train_packets: u32,
    /// Name of the file with the packets, within the folder.
    pub file: String,
    /// Packets for which the receiver's socket had no room.
    pub overflowed: u64,
    /// True if the phase came to its end; false if it was ended early.
    pub complete: bool,
}

/// A train of earlier recordings.
const fn one() -> u32 {
    1
}

/// Comparison of the two clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// True if both ends have the same clock: they are on one host, or a trusted source keeps both clocks.
    pub same: bool,
    /// Estimates of the other host's clock less this one's, in the order of time.
    pub estimates: Vec<Estimate>,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Version of Airpath that recorded.
    pub airpath_version: String,
    /// Name of the host with `airpath recv`, as it was called.
    pub host: String,
    /// Address and port of that host.
    pub peer: String,
    /// Begin of the recording in ns since 1970, by the clock of the recording host.
    pub began_unix_ns: u64,
    /// The clocks.
    pub clocks: Clocks,
    /// Directions of phases.
    pub parts: Vec<Part>,
    /// Remarks on the recording, a sentence each.
    pub warnings: Vec<String>,
}

impl Clocks {
    /// The other host's clock less this one's when this one shows `local_ns`; none where it is not known.
    pub fn offset_ns(&self, local_ns: u64) -> Option<i128> {
        if self.same {
            return Some(0);
        }
        let offset = |estimate: &Estimate| i128::from(estimate.offset_ns);
        let (first, last) = (self.estimates.first()?, self.estimates.last()?);
        let (from, to) = (i128::from(first.at_unix_ns), i128::from(last.at_unix_ns));
        if to <= from {
            return Some(offset(first));
        }
        Some(offset(first) + (offset(last) - offset(first)) * (i128::from(local_ns) - from) / (to - from))
    }

    /// Bound on the error of the offset in ns; none where the clocks were not compared.
    pub fn bound_ns(&self) -> Option<u64> {
        if self.same { Some(0) } else { self.estimates.iter().map(|estimate| estimate.bound_ns).max() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_between_two_comparisons_is_on_the_line() {
        let exchange = |origin_ns: u64, offset: u64| airpath_clocks::Exchange {
            origin_ns,
            receive_ns: origin_ns + offset + 5,
            transmit_ns: origin_ns + offset + 5,
            destination_ns: origin_ns + 10,
            ..Default::default()
        };
        let at = |from_ns: u64, offset: u64| {
            let exchanges: Vec<_> = (0..20).map(|number| exchange(from_ns + number * 1_000, offset)).collect();
            Estimate::of(&exchanges).unwrap()
        };
        let clocks = Clocks { same: false, estimates: vec![at(1_000_000_000, 500_000), at(3_000_000_000, 500_200)] };
        assert_eq!(clocks.offset_ns(clocks.estimates[0].at_unix_ns), Some(500_000));
        assert_eq!(clocks.offset_ns(clocks.estimates[0].at_unix_ns + 1_000_000_000), Some(500_100));
        assert!(clocks.bound_ns().unwrap() >= 5);
        assert_eq!(Clocks::default().offset_ns(7), None);
        assert_eq!(Clocks { same: true, ..Clocks::default() }.offset_ns(7), Some(0));
    }
}
