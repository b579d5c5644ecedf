// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Ethernet headers with their tags (IEEE 802.3, 802.1Q, 802.1ad).

/// EtherType of IPv4 (RFC 894).
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6 (RFC 2464).
pub const IPV6: u16 = 0x86dd;
/// EtherType of a tag of a customer's VLAN (IEEE 802.1Q).
pub const CUSTOMER_TAG: u16 = 0x8100;
/// EtherType of a tag of a provider's VLAN, the outer one of two (IEEE 802.1ad).
pub const PROVIDER_TAG: u16 = 0x88a8;

/// Length of a header without tags, in bytes: two addresses and the EtherType.
pub const UNTAGGED_BYTES: usize = 14;

const TAG_BYTES: usize = 4;

/// Header of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// EtherType behind all tags; below 1536 it is the length of an 802.3 frame.
    pub ether_type: u16,
    /// Number of tags.
    pub tags: usize,
}

impl EthernetHeader {
    /// The header at the start of `frame`; none if the frame ends within it.
    pub fn read(frame: &[u8]) -> Option<EthernetHeader> {
        let mut tags = 0;
        loop {
            let at = UNTAGGED_BYTES - 2 + TAG_BYTES * tags;
            let ether_type = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
            match ether_type {
                CUSTOMER_TAG | PROVIDER_TAG => tags += 1,
                _ => return Some(EthernetHeader { ether_type, tags }),
            }
        }
    }

    /// Length of the header with its tags, in bytes.
    pub fn bytes(self) -> usize {
        UNTAGGED_BYTES + TAG_BYTES * self.tags
    }

    /// True if an IP packet follows.
    pub fn is_ip(self) -> bool {
        is_ip(self.ether_type)
    }
}

/// True of the EtherTypes of IP packets.
pub fn is_ip(ether_type: u16) -> bool {
    matches!(ether_type, IPV4 | IPV6)
}
