// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RTP (RFC 3550): version 2, a payload type that is none of RTCP's (RFC 5761), and room for the header. The text is
//! that of `tcpdump -T rtp`.

use super::{Packet, Protocol, Sequences, Told};

pub(super) const PROTOCOL: Protocol = Protocol { name: "rtp", number: None, recognises, prints };

const HEADER_BYTES: usize = 12;
const UDP_BYTES: u32 = 8;
/// Values of the second octet that are packet types of RTCP.
const RTCP: std::ops::RangeInclusive<u8> = 192..=223;

/// Fields of an RTP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtp {
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Synchronisation source.
    pub ssrc: u32,
    /// Sequence number.
    pub sequence: u16,
    /// Time stamp in ticks of the payload's clock.
    pub timestamp: u32,
    /// Marker bit.
    pub marker: bool,
    /// True with a header extension.
    pub extension: bool,
}

/// The RTP header of a packet, if it looks like RTP.
pub fn read(packet: &Packet<'_>) -> Option<Rtp> {
    let (ports, bytes) = packet.datagram()?;
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    // Ports below 1024 are of services that are not RTP, and whose contents may begin alike.
    let fits = header[0] >> 6 == 2 && !RTCP.contains(&header[1]) && ports.0 >= 1024 && ports.1 >= 1024;
    let long = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    // Long headers of QUIC begin otherwise (RFC 9443), so that nothing is taken for both.
    fits.then(|| Rtp {
        payload_type: header[1] & 0x7f,
        ssrc: long(8),
        sequence: u16::from_be_bytes([header[2], header[3]]),
        timestamp: long(4),
        marker: header[1] & 0x80 != 0,
        extension: header[0] & 0x10 != 0,
    })
}

fn recognises(packet: &Packet<'_>) -> bool {
    read(packet).is_some()
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    let rtp = read(packet)?;
    let payload = packet.upper_length().saturating_sub(UDP_BYTES + HEADER_BYTES as u32);
    let extension = if rtp.extension { "+" } else { "" };
    let marker = if rtp.marker { "*" } else { "" };
    let Rtp { payload_type, sequence, timestamp, .. } = rtp;
    Some(Told::Instead(format!("udp/rtp {payload} c{payload_type} {extension}{marker} {sequence} {timestamp}")))
}
