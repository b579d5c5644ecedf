// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! PPP over a stream of octets: the octets that a packet takes there, and the fate of a packet that
//! bit errors hit.
//!
//! Source: RFC 1662 (HDLC-like framing: flag, address, control, protocol, FCS, octet stuffing);
//! Singh 2000, section 2.3.1 (7 octets of PPP, and PPP-Lite, whose FCS covers only a part). A bit error
//! in a flag, in address and control or in the protocol costs the packet: without them the receiving
//! end knows neither where it begins nor what it is. What an error in the packet itself does is up to
//! the FCS. An error that happens to make a flag or an escape of an octet of the packet is not modelled.

use airpath_core::{Bits, Escapes, Framing, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vj;
use crate::problem::Problem;

/// Part of a packet that its FCS covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FcsCoverage {
    /// All of it: PPP. A packet with an error is dropped.
    #[default]
    Whole,
    /// Its first octets, as many as `coverage` says: PPP-Lite. An error behind them goes on with the packet.
    Partial,
    /// Nothing: the FCS is ignored.
    Off,
}

/// Escapes of the octets of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "is neither \"counted\", \"none\" nor a share of octets such as 0.0078")]
pub enum Stuffing {
    /// The manner of finding them.
    Word(StuffingWord),
    /// Escapes for each octet of any packet. Random contents have 0.0078 with no control characters mapped, and
    /// 0.133 with all of them mapped.
    Share(Probability),
}

/// Manner of finding the escapes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StuffingWord {
    /// Counted in the contents of each packet. A packet without contents has the share of random contents.
    Counted,
    /// There are none.
    None,
}

impl Stuffing {
    /// Counted in the contents.
    pub const COUNTED: Stuffing = Stuffing::Word(StuffingWord::Counted);
    /// No escapes.
    pub const NONE: Stuffing = Stuffing::Word(StuffingWord::None);
}

/// Compression of headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeaderCompression {
    /// None.
    #[default]
    None,
    /// That of TCP/IP headers by Van Jacobson (RFC 1144).
    Vj,
}

/// Slots of RFC 1332 where nothing else is agreed on.
const SLOTS: u16 = 16;

/// PPP framing: `{ fcs = "partial", coverage = "40 B" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PppConfig {
    /// Flags of a packet: 1 where a flag ends one packet and begins the next, 2 where each packet has its own.
    #[schemars(range(min = 1, max = 2))]
    pub flags: u8,
    /// True if address and control are sent; they take 2 octets.
    pub address_control: bool,
    /// Octets of the protocol field, 1 if it is compressed.
    #[schemars(range(min = 1, max = 2))]
    pub protocol_octets: u8,
    /// Octets of the FCS: 2 or 4.
    #[schemars(range(min = 2, max = 4))]
    pub fcs_octets: u8,
    /// Part of a packet that the FCS covers.
    pub fcs: FcsCoverage,
    /// With `fcs = "partial"`: length of the beginning of the packet that the FCS covers, in whole octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Bits>,
    /// Escapes: counted, or a share of octets.
    pub stuffing: Stuffing,
    /// With `stuffing = "counted"`: control characters that are escaped, bit n for the octet n; 0xffffffff for all.
    pub accm: u32,
    /// Compression of headers.
    pub header_compression: HeaderCompression,
    /// With `header_compression = "vj"`: number of connections whose headers both ends remember (Max-Slot-Id of IPCP
    /// and 1).
    #[schemars(range(min = 1, max = 256))]
    pub max_slots: u16,
    /// With `header_compression = "vj"`: true if a packet of the same connection as the one before it does without
    /// the slot identifier (Comp-Slot-Id of IPCP).
    pub compress_slot_id: bool,
}

impl Default for PppConfig {
    fn default() -> PppConfig {
        PppConfig {
            flags: 1,
            address_control: true,
            protocol_octets: 2,
            fcs_octets: 2,
            fcs: FcsCoverage::Whole,
            coverage: None,
            stuffing: Stuffing::NONE,
            accm: 0,
            header_compression: HeaderCompression::None,
            max_slots: SLOTS,
            compress_slot_id: true,
        }
    }
}

impl PppConfig {
    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, message: String| problems.push(Problem::new(key, message));
        if !(1..=2).contains(&self.flags) {
            problem("flags", format!("is {}; a packet has 1 or 2", self.flags));
        }
        if !(1..=2).contains(&self.protocol_octets) {
            problem("protocol_octets", format!("is {}; the protocol field has 1 or 2", self.protocol_octets));
        }
        if self.fcs_octets != 2 && self.fcs_octets != 4 {
            problem("fcs_octets", format!("is {}; the FCS has 2 or 4", self.fcs_octets));
        }
        match (self.fcs, self.coverage) {
            (FcsCoverage::Partial, None) => {
                problem("coverage", "is missing: fcs = \"partial\" needs it, for example coverage = \"28 B\"".into());
            }
            (FcsCoverage::Whole | FcsCoverage::Off, Some(_)) => {
                problem("coverage", "has no meaning without fcs = \"partial\"".into());
            }
            (FcsCoverage::Partial, Some(coverage)) if coverage.get() % 8 != 0 => {
                problem("coverage", format!("is {coverage}; the FCS covers whole octets"));
            }
            _ => {}
        }
        if self.accm != 0 && !self.counts() {
            problem("accm", "has no meaning without stuffing = \"counted\"".into());
        }
        if !(1..=256).contains(&self.max_slots) {
            problem("max_slots", format!("is {}; there are from 1 to 256, and usually {SLOTS}", self.max_slots));
        }
        if self.header_compression == HeaderCompression::None {
            for (key, is_set) in [("max_slots", self.max_slots != SLOTS), ("compress_slot_id", !self.compress_slot_id)]
            {
                if is_set {
                    problem(key, "has no meaning without header_compression = \"vj\"".into());
                }
            }
        }
        problems
    }

    /// Compression of TCP/IP headers, if there is one.
    pub fn vj(&self) -> Option<vj::Options> {
        let options = vj::Options { slots: self.max_slots, compress_slot_id: self.compress_slot_id };
        (self.header_compression == HeaderCompression::Vj).then_some(options)
    }

    fn counts(&self) -> bool {
        self.stuffing == Stuffing::COUNTED
    }

    /// The framing for which escapes of packets are to be counted, if they are.
    pub fn framing(&self) -> Option<Framing> {
        let fcs_covers = self.coverage.map(|coverage| (coverage.get() / 8).min(u32::MAX.into()) as u32);
        self.counts().then_some(Framing {
            accm: self.accm,
            address_control: self.address_control,
            protocol_octets: self.protocol_octets,
            fcs_octets: self.fcs_octets,
            fcs_covers,
        })
    }

    /// Octets in front of a packet.
    pub fn front(&self) -> u32 {
        1 + 2 * u32::from(self.address_control) + u32::from(self.protocol_octets)
    }

    /// Octets behind a packet.
    pub fn back(&self) -> u32 {
        u32::from(self.fcs_octets) + u32::from(self.flags == 2)
    }

    /// Octets of `octets` of a packet with their escapes, of which `counted` were counted.
    pub fn stuffed(&self, octets: u32, counted: Escapes) -> u32 {
        let share = match (self.stuffing, counted.known()) {
            (Stuffing::COUNTED, Some(counted)) => return octets + u32::from(counted),
            (Stuffing::COUNTED, None) => Framing::share(self.accm),
            (Stuffing::Share(share), _) => share.get(),
            (Stuffing::Word(StuffingWord::None), _) => 0.0,
        };
        octets + (f64::from(octets) * share).ceil() as u32
    }

    /// Octets of `octets` of a packet with the fewest escapes that it may have.
    pub fn least_stuffed(&self, octets: u32) -> u32 {
        self.stuffed(octets, Escapes::new(0))
    }

    /// Escapes of a packet of which `header` has become `on_line`. Those of the FCS stay as they were counted.
    pub fn escapes_with(&self, counted: Escapes, header: &[u8], on_line: &[u8]) -> Escapes {
        match (self.framing(), counted.known()) {
            (Some(framing), Some(counted)) => {
                let rest = usize::from(counted).saturating_sub(framing.escapes_of(header));
                Escapes::new(rest + framing.escapes_of(on_line))
            }
            _ => counted,
        }
    }

    /// True if an error in the octet `place` behind a packet costs the packet.
    pub fn guards_back(&self, place: u32) -> bool {
        let in_fcs = place < u32::from(self.fcs_octets);
        !in_fcs || self.fcs != FcsCoverage::Off
    }

    /// True if an error in bit `bit` of the packet costs the packet.
    pub fn guards_packet(&self, bit: u32) -> bool {
        match self.fcs {
            FcsCoverage::Whole => true,
            FcsCoverage::Partial => u64::from(bit) < self.coverage.map_or(0, Bits::get),
            FcsCoverage::Off => false,
        }
    }
}
