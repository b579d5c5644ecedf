// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Format of Airpath's captures (pcapng, by `airpath-packet`): one section, one interface (raw IP, or Ethernet where
//! ports have link headers), enhanced packet blocks with nanosecond stamps, directions, packet ids and comments.
//!
//! One interface and no more, although packets are seen at three points: libpcap 1.10 (tcpdump)
//! takes a second raw IP interface for one of another link type, and refuses the file. The direction
//! in a packet's flags says where it was seen. Earlier files have an interface for each point, which
//! is still read.

use airpath_core::PduId;
use airpath_packet::capture::pcapng::{
    INTERFACE_DESCRIPTION, INTERFACE_NAME, INTERFACE_RESOLUTION, LINKTYPE_ETHERNET, LINKTYPE_RAW, OPTION_COMMENT,
    PACKET_FLAGS, PACKET_ID, SECTION_APPLICATION,
};
use airpath_packet::capture::write::{interface, option, packet, section};

/// The name of the one interface.
pub(crate) const LINK: &str = "link";
const DESCRIPTION: &str = "inbound: packets of the endpoint entering the link; outbound: packets leaving the link for \
                           the endpoint; of no direction: headers of the endpoint's packets, when the link dropped them";
/// The bits of a packet's flags that hold its direction.
const DIRECTION_BITS: u32 = 0b11;

/// A point at which packets are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// From the endpoint into the link.
    Rx,
    /// Out of the link to the endpoint.
    Tx,
    /// Drop of one of this endpoint's packets by the link; only until the run has ended.
    Drop,
}

impl Interface {
    /// Every point.
    pub(crate) const ALL: [Interface; 3] = [Interface::Rx, Interface::Tx, Interface::Drop];

    /// The name of its interface in earlier files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Interface::Rx => "rx",
            Interface::Tx => "tx",
            Interface::Drop => "drop",
        }
    }

    /// Inbound (1) or outbound (2), in the flags word.
    const fn flags(self) -> Option<u32> {
        match self {
            Interface::Rx => Some(1),
            Interface::Tx => Some(2),
            Interface::Drop => None,
        }
    }

    /// The point of a packet with these flags; 0 where it has none.
    pub(crate) fn from_flags(flags: u32) -> Option<Interface> {
        match flags & DIRECTION_BITS {
            0 => Some(Interface::Drop),
            direction => Interface::ALL.into_iter().find(|interface| interface.flags() == Some(direction)),
        }
    }
}

/// One packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct PacketBlock<'a> {
    /// Interface of the packet.
    pub interface: Interface,
    /// Timestamp in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its length on the link in bytes, with its link header if it has one.
    pub length: u32,
    /// The bytes kept of it, of its link header first.
    pub bytes: &'a [u8],
    /// Its PDU.
    pub pdu: Option<PduId>,
    /// Comment on the packet.
    pub comment: Option<&'a str>,
}

/// Part of each packet in a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Most bytes of a packet; `u32::MAX` for all.
    pub snaplen: u32,
    /// True if packets have Ethernet headers.
    pub link_headers: bool,
}

/// Writes the head of a capture at `port`.
pub fn write_head(out: &mut Vec<u8>, port: &str, kept: Kept) {
    section(out, |out| {
        option(out, SECTION_APPLICATION, concat!("Airpath ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(out, OPTION_COMMENT, format!("the link's end at the {port}").as_bytes());
    });
    // 0 means no limit.
    let snaplen = if kept.snaplen == u32::MAX { 0 } else { kept.snaplen };
    let link_type = if kept.link_headers { LINKTYPE_ETHERNET } else { LINKTYPE_RAW };
    interface(out, link_type, snaplen, |out| {
        option(out, INTERFACE_NAME, LINK.as_bytes());
        option(out, INTERFACE_DESCRIPTION, DESCRIPTION.as_bytes());
        option(out, INTERFACE_RESOLUTION, &[9]);
    });
}

/// Writes one packet.
pub fn write_packet(out: &mut Vec<u8>, block: &PacketBlock<'_>) {
    // 0 is the number of the one interface.
    packet(out, 0, block.unix_ns, block.length, block.bytes, |out| {
        if let Some(comment) = block.comment {
            option(out, OPTION_COMMENT, comment.as_bytes());
        }
        if let Some(flags) = block.interface.flags() {
            option(out, PACKET_FLAGS, &flags.to_le_bytes());
        }
        if let Some(pdu) = block.pdu {
            option(out, PACKET_ID, &pdu.to_le_bytes());
        }
    });
}
