// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocol data units as a machine sees them.

use std::borrow::Cow;

use bytes::Bytes;

use crate::framing::Escapes;
use crate::header_bytes::HeaderBytes;
use crate::length::Bits;
use crate::matches::Matches;
use crate::time::Time;

/// The direction of traffic on a link.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Direction {
    /// From the client (the mobile end) to the server (the fixed end).
    Uplink = 0,
    /// From the server to the client.
    Downlink = 1,
}

impl Direction {
    /// Both directions, uplink first.
    pub const ALL: [Direction; 2] = [Direction::Uplink, Direction::Downlink];

    /// The word used in scenarios and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Uplink => "uplink",
            Direction::Downlink => "downlink",
        }
    }

    /// The other direction.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Uplink => Direction::Downlink,
            Direction::Downlink => Direction::Uplink,
        }
    }
}

/// A PDU's identity: unique within a run, in order of arrival at the machine.
pub type PduId = u64;

/// Identities of virtual packets begin here, far above those of endpoints' packets, and stay below
/// 2^53, so that they are exact in JSON.
const FIRST_BACKGROUND: PduId = 1 << 52;
/// Bits for the number of a packet within its load; above them is the number of the load.
const BACKGROUND_NUMBER_BITS: u32 = 40;

/// The identity of packet `number` of background load number `load` (below 4096), both from 0.
pub const fn background_id(load: u16, number: u64) -> PduId {
    FIRST_BACKGROUND | (load as u64) << BACKGROUND_NUMBER_BITS | number
}

/// The number of the load and of the packet behind the identity of a virtual packet; none for others.
pub const fn background_number(id: PduId) -> Option<(u16, u64)> {
    let load = id >> BACKGROUND_NUMBER_BITS;
    let first = FIRST_BACKGROUND >> BACKGROUND_NUMBER_BITS;
    if load < first || load >= 2 * first {
        return None;
    }
    Some(((load - first) as u16, id & ((1 << BACKGROUND_NUMBER_BITS) - 1)))
}

/// The ECN field (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Every code point, by its number.
    pub const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    /// The ECN field of a traffic class: its two lowest bits.
    pub const fn of(traffic_class: u8) -> Ecn {
        Ecn::ALL[(traffic_class & 3) as usize]
    }
}

/// Origin of a PDU; origins are counted apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Origin {
    /// An endpoint's packet.
    #[default]
    User = 0,
    /// A virtual packet of a background load.
    Background = 1,
    /// A frame that link entities send each other: an acknowledgement, a status report.
    Control = 2,
}

impl Origin {
    /// Every origin, by its number.
    pub const ALL: [Origin; 3] = [Origin::User, Origin::Background, Origin::Control];

    /// The word used in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::User => "user",
            Origin::Background => "background",
            Origin::Control => "control",
        }
    }
}

/// Between whom a PDU travels, for those who tell flows apart. All zero where it is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FiveTuple {
    /// The source address: an IPv4 address as it is, an IPv6 address folded by [`FiveTuple::fold`].
    pub source: u32,
    /// The destination address, likewise.
    pub destination: u32,
    /// The source port; 0 where the protocol has none.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// The protocol above IP, by its IANA number.
    pub protocol: u8,
}

impl FiveTuple {
    /// An address in 32 bits. Two IPv6 addresses may share a value; with random addresses one pair
    /// in four billion does.
    pub fn fold(address: std::net::IpAddr) -> u32 {
        match address {
            std::net::IpAddr::V4(address) => address.to_bits(),
            std::net::IpAddr::V6(address) => address.octets().iter().fold(0x811c_9dc5, |hash: u32, byte| {
                // FNV-1a (RFC 9923).
                (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
            }),
        }
    }
}

/// Damage by a link to the bits of a PDU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Damage {
    /// Positions of flipped bits, ascending; bit 0 is the most significant bit of the first byte.
    pub flips: Vec<u32>,
    /// The length in bytes that is left of a truncated PDU.
    pub truncated_to: Option<u32>,
}

/// No damage.
pub static UNDAMAGED: Damage = Damage { flips: Vec::new(), truncated_to: None };

impl Damage {
    /// Flips the bits at `positions` (in any order); a bit flipped twice is whole again.
    pub fn flip(&mut self, positions: &[u32]) {
        for position in positions {
            match self.flips.binary_search(position) {
                Ok(index) => {
                    self.flips.remove(index);
                }
                Err(index) => self.flips.insert(index, *position),
            }
        }
    }

    /// True if the PDU is undamaged.
    pub fn is_none(&self) -> bool {
        self.flips.is_empty() && self.truncated_to.is_none()
    }

    /// Applies the damage to the packet's bytes.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        for position in &self.flips {
            if let Some(byte) = bytes.get_mut(*position as usize / 8) {
                *byte ^= 0x80 >> (position % 8);
            }
        }
        if let Some(length) = self.truncated_to {
            bytes.truncate(length as usize);
        }
    }
}

/// The bytes of a PDU, if it has any.
#[derive(Clone, Debug, Default)]
pub enum Payload {
    /// None: only the length is modelled.
    #[default]
    LengthOnly,
    /// The whole packet.
    Whole(Bytes),
    /// Its headers, of [`Pdu::header_len`] bytes; all bytes behind them are zeros, and take no memory.
    Padded(Bytes),
    /// A packet with unfinished checksums, or one segment of a super-packet that the kernel handed
    /// over in one read; a port knows how to finish it.
    Segment {
        /// The packet as read.
        whole: Bytes,
        /// Index of the segment, from 0.
        index: u16,
        /// Pending work on the bytes, in the ports' own encoding.
        layout: u64,
    },
}

/// A protocol data unit.
#[derive(Clone, Debug, Default)]
pub struct Pdu {
    /// Its identity in the run.
    pub id: PduId,
    /// Time of arrival at the machine.
    pub arrived: Time,
    /// Its IP length in bytes.
    pub len: u32,
    /// The bytes of its network and transport headers.
    pub header_len: u16,
    /// Its escapes in HDLC-like framing, where the machine wants them counted ([`crate::Machine::wants_escapes`]).
    pub escapes: Escapes,
    /// Answers of the machine's filters, where it has some ([`crate::Machine::wants_filters`]).
    pub matches: Matches,
    /// Its traffic class (the DSCP of an IP packet).
    pub class: u8,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Origin of the traffic.
    pub origin: Origin,
    /// Its flow: a hash of the five-tuple, or a number given by a generator.
    pub flow: u32,
    /// Between whom it travels.
    pub tuple: FiveTuple,
    /// True if the link has copied the PDU, so that several PDUs of its identity may leave. Set in all of them.
    pub copied: bool,
    /// Damage by the link to the PDU's bits.
    pub damage: Option<Box<Damage>>,
    /// Its headers, where the machine wants them ([`crate::Machine::wants_headers`]) and they are known.
    pub headers: Option<Box<HeaderBytes>>,
    /// Its bytes.
    pub payload: Payload,
}

impl Pdu {
    /// Its length in bits.
    pub fn bits(&self) -> Bits {
        Bits::from_bytes(u64::from(self.len))
    }

    /// Its bytes in one piece, as far as an endpoint in the process made them; empty where nobody knows them.
    pub fn contents(&self) -> Cow<'_, [u8]> {
        match &self.payload {
            Payload::Whole(bytes) => Cow::Borrowed(bytes),
            Payload::Padded(headers) => {
                let mut bytes = headers.to_vec();
                bytes.resize(headers.len().max(self.len as usize), 0);
                Cow::Owned(bytes)
            }
            Payload::LengthOnly | Payload::Segment { .. } => Cow::Borrowed(&[]),
        }
    }

    /// Flips bits, keeping an undamaged PDU free of an allocation.
    pub fn flip(&mut self, positions: &[u32]) {
        if positions.is_empty() {
            return;
        }
        let mut damage = self.damage.take().unwrap_or_default();
        damage.flip(positions);
        self.damage = (!damage.is_none()).then_some(damage);
    }
}

impl Pdu {
    /// Cuts the PDU to `bytes`, if it is longer; flipped bits behind the cut are gone with it. Its
    /// `len` stays: the network was charged for all of it. Whether it was longer.
    pub fn truncate(&mut self, bytes: u32) -> bool {
        let now = self.damage.as_ref().and_then(|damage| damage.truncated_to).unwrap_or(self.len);
        if bytes >= now {
            return false;
        }
        let damage = self.damage.get_or_insert_default();
        damage.truncated_to = Some(bytes);
        damage.flips.retain(|position| *position < bytes.saturating_mul(8));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_packets_have_identities_of_their_own() {
        assert_eq!(background_number(background_id(7, 12_345)), Some((7, 12_345)));
        assert_eq!(background_number(background_id(4_095, (1 << 40) - 1)), Some((4_095, (1 << 40) - 1)));
        assert!(background_id(4_095, (1 << 40) - 1) < 1 << 53);
        assert_eq!([0, 1, (1 << 52) - 1, 1 << 53, PduId::MAX].map(background_number), [None; 5]);
    }

    #[test]
    fn zeros_behind_headers_are_part_of_the_contents() {
        let pdu = Pdu { len: 4, header_len: 2, payload: Payload::Padded(vec![7, 8].into()), ..Pdu::default() };
        assert_eq!(&*pdu.contents(), [7, 8, 0, 0]);
        assert!(Pdu { len: 4, ..Pdu::default() }.contents().is_empty());
    }

    #[test]
    fn damage_flips_real_bits_and_cancels_itself() {
        let mut pdu = Pdu { len: 2, ..Pdu::default() };
        pdu.flip(&[9, 0]);
        let mut bytes = vec![0, 0];
        pdu.damage.as_ref().unwrap().apply(&mut bytes);
        assert_eq!(bytes, [0x80, 0x40]);
        pdu.flip(&[0, 9]);
        assert!(pdu.damage.is_none());
    }

    #[test]
    fn a_cut_takes_the_flipped_bits_behind_it_and_never_lengthens() {
        let mut pdu = Pdu { len: 4, ..Pdu::default() };
        assert!(!pdu.truncate(4));
        assert!(pdu.damage.is_none());
        pdu.flip(&[3, 15, 16, 31]);
        assert!(pdu.truncate(2));
        assert!(!pdu.truncate(3));
        assert_eq!(pdu.damage.as_deref(), Some(&Damage { flips: vec![3, 15], truncated_to: Some(2) }));
        assert_eq!(pdu.len, 4);
    }
}
