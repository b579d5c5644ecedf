//! The part of pcapng (draft-ietf-opsawg-pcapng) that Airpath writes and reads: one section, one raw
//! IP interface, enhanced packet blocks with nanosecond stamps, directions, packet ids and comments.
//!
//! One interface and no more, although packets are seen at three points: libpcap 1.10 (tcpdump)
//! takes a second raw IP interface for one of another link type, and refuses the file. The direction
//! in a packet's flags says where it was seen. Earlier files have an interface for each point, which
//! is still read.

use airpath_core::PduId;

pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
pub(crate) const PACKET: u32 = 6;
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Raw IP: the version is in the first four bits.
pub(crate) const LINKTYPE_RAW: u16 = 101;

pub(crate) const OPTION_END: u16 = 0;
pub(crate) const OPTION_COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
pub(crate) const INTERFACE_NAME: u16 = 2;
const INTERFACE_DESCRIPTION: u16 = 3;
pub(crate) const INTERFACE_RESOLUTION: u16 = 9;
pub(crate) const PACKET_FLAGS: u16 = 2;
pub(crate) const PACKET_ID: u16 = 5;

/// The name of the one interface.
pub(crate) const LINK: &str = "link";
const DESCRIPTION: &str = "inbound: packets from the endpoint that enter the link; outbound: packets that leave the \
    link to the endpoint; no direction: headers of the endpoint's packets that the link dropped";
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
    /// Its length on the link in bytes.
    pub length: u32,
    /// The bytes kept of it.
    pub bytes: &'a [u8],
    /// Its PDU.
    pub pdu: Option<PduId>,
    /// Comment on the packet.
    pub comment: Option<&'a str>,
}

fn padding(length: usize) -> usize {
    length.next_multiple_of(4) - length
}

pub(crate) fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(&[0; 3][..padding(value.len())]);
}

/// Writes a block around what `body` writes.
pub(crate) fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start + 4) as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
}

/// Writes the head of a capture at `port`.
pub fn write_head(out: &mut Vec<u8>, port: &str, snaplen: u32) {
    block(out, SECTION, |out| {
        out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&u64::MAX.to_le_bytes()); // section length: not given
        option(out, SECTION_APPLICATION, concat!("Airpath ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(out, OPTION_COMMENT, format!("the link's end at the {port}").as_bytes());
        option(out, OPTION_END, &[]);
    });
    block(out, INTERFACE, |out| {
        out.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        // 0 means no limit.
        out.extend_from_slice(&(if snaplen == u32::MAX { 0 } else { snaplen }).to_le_bytes());
        option(out, INTERFACE_NAME, LINK.as_bytes());
        option(out, INTERFACE_DESCRIPTION, DESCRIPTION.as_bytes());
        option(out, INTERFACE_RESOLUTION, &[9]);
        option(out, OPTION_END, &[]);
    });
}

/// Writes one packet.
pub fn write_packet(out: &mut Vec<u8>, packet: &PacketBlock<'_>) {
    block(out, PACKET, |out| {
        out.extend_from_slice(&0u32.to_le_bytes()); // the one interface
        out.extend_from_slice(&((packet.unix_ns >> 32) as u32).to_le_bytes());
        out.extend_from_slice(&(packet.unix_ns as u32).to_le_bytes());
        out.extend_from_slice(&(packet.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&packet.length.max(packet.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(packet.bytes);
        out.extend_from_slice(&[0; 3][..padding(packet.bytes.len())]);
        if let Some(comment) = packet.comment {
            option(out, OPTION_COMMENT, comment.as_bytes());
        }
        if let Some(flags) = packet.interface.flags() {
            option(out, PACKET_FLAGS, &flags.to_le_bytes());
        }
        if let Some(pdu) = packet.pdu {
            option(out, PACKET_ID, &pdu.to_le_bytes());
        }
        option(out, OPTION_END, &[]);
    });
}
