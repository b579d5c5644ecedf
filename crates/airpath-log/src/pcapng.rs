//! The part of pcapng (draft-ietf-opsawg-pcapng) that Airpath writes and reads: one section, raw IP
//! interfaces, enhanced packet blocks with nanosecond stamps, packet ids and comments.
//!
//! Wireshark and tshark read these files; libpcap 1.10 (tcpdump) refuses a pcapng file with
//! two raw IP interfaces, and wants `editcap -F nsecpcap` first.

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
const PACKET_FLAGS: u16 = 2;
pub(crate) const PACKET_ID: u16 = 5;

/// A point at which packets are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Interface {
    /// From the endpoint into the link.
    Rx = 0,
    /// Out of the link to the endpoint.
    Tx = 1,
    /// Where the link dropped one of this endpoint's packets; only until the run has ended.
    Drop = 2,
}

impl Interface {
    /// Every point, in order of its number.
    pub const ALL: [Interface; 3] = [Interface::Rx, Interface::Tx, Interface::Drop];

    /// The interface's name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Interface::Rx => "rx",
            Interface::Tx => "tx",
            Interface::Drop => "drop",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Interface::Rx => "packets of the endpoint entering the link",
            Interface::Tx => "packets leaving the link for the endpoint",
            Interface::Drop => "headers of packets of the endpoint, when the link dropped them",
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
}

/// One packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct PacketBlock<'a> {
    /// Where it was seen.
    pub interface: Interface,
    /// When, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its length on the link in bytes.
    pub length: u32,
    /// The bytes kept of it.
    pub bytes: &'a [u8],
    /// Its PDU.
    pub pdu: Option<PduId>,
    /// What there is to say about it.
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

/// Writes the head of a capture at `port` with these interfaces.
pub fn write_head(out: &mut Vec<u8>, port: &str, snaplen: u32, interfaces: &[Interface]) {
    block(out, SECTION, |out| {
        out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&u64::MAX.to_le_bytes()); // section length: not given
        option(out, SECTION_APPLICATION, concat!("Airpath ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(out, OPTION_COMMENT, format!("the link's end at the {port}").as_bytes());
        option(out, OPTION_END, &[]);
    });
    for interface in interfaces {
        block(out, INTERFACE, |out| {
            out.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
            out.extend_from_slice(&0u16.to_le_bytes());
            // 0 means no limit.
            out.extend_from_slice(&(if snaplen == u32::MAX { 0 } else { snaplen }).to_le_bytes());
            option(out, INTERFACE_NAME, interface.name().as_bytes());
            option(out, INTERFACE_DESCRIPTION, interface.description().as_bytes());
            option(out, INTERFACE_RESOLUTION, &[9]);
            option(out, OPTION_END, &[]);
        });
    }
}

/// Writes one packet.
pub fn write_packet(out: &mut Vec<u8>, packet: &PacketBlock<'_>) {
    block(out, PACKET, |out| {
        out.extend_from_slice(&u32::from(packet.interface as u8).to_le_bytes());
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
