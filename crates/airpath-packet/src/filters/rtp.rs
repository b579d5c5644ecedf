// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RTP (RFC 3550): version 2, a payload type that is none of RTCP's (RFC 5761), and room for the header.

use super::{Packet, Protocol};

pub(super) const PROTOCOL: Protocol = Protocol { name: "rtp", recognises };

const HEADER_BYTES: usize = 12;
/// Values of the second octet that are packet types of RTCP.
const RTCP: std::ops::RangeInclusive<u8> = 192..=223;

/// The fields of an RTP header by which filters choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtp {
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Synchronisation source.
    pub ssrc: u32,
}

/// The RTP header of a packet, if it looks like RTP.
pub fn read(packet: &Packet<'_>) -> Option<Rtp> {
    let (ports, bytes) = packet.datagram()?;
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    // Ports below 1024 are of services that are not RTP, and whose contents may begin alike.
    let fits = header[0] >> 6 == 2 && !RTCP.contains(&header[1]) && ports.0 >= 1024 && ports.1 >= 1024;
    let ssrc = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    // Long headers of QUIC begin otherwise (RFC 9443), so that nothing is taken for both.
    fits.then_some(Rtp { payload_type: header[1] & 0x7f, ssrc })
}

fn recognises(packet: &Packet<'_>) -> bool {
    read(packet).is_some()
}
