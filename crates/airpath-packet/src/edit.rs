// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Headers rewritten in place; every edit keeps the checksums that it touches correct.

use airpath_core::Ecn;

use crate::checksum;
use crate::headers::{Headers, IPV4_BYTES, IPV6_BYTES};

/// Bytes of the part of an IPv6 header that holds its traffic class.
const IPV6_CLASS_BYTES: usize = 2;

/// Number of bytes from the front of a packet that [`set_ecn`] reads and changes.
pub const ECN_EDIT_BYTES: usize = IPV4_BYTES;

/// The ECN field of an IP packet, of which the beginning is enough.
pub fn ecn_of(packet: &[u8]) -> Option<Ecn> {
    match packet.first()? >> 4 {
        4 if packet.len() >= IPV4_BYTES => Some(Ecn::of(packet[1])),
        6 if packet.len() >= IPV6_CLASS_BYTES => Some(Ecn::of(packet[1] >> 4)),
        _ => None,
    }
}

/// Sets the ECN field and corrects the IPv4 header checksum; the transport
/// checksum does not cover it. The beginning of a packet is enough. Returns
/// whether there was an IP header to edit.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> bool {
    if ecn_of(packet).is_none() {
        return false;
    }
    if packet[0] >> 4 == 4 {
        let before = u16::from_be_bytes([packet[0], packet[1]]);
        packet[1] = packet[1] & !3 | ecn as u8;
        let after = u16::from_be_bytes([packet[0], packet[1]]);
        update_ipv4_checksum(packet, before, after);
    } else {
        packet[1] = packet[1] & !0x30 | (ecn as u8) << 4;
    }
    true
}

/// Makes the IP header state `bytes` (which the caller then cuts the packet
/// to), with a correct IPv4 header checksum; the transport header stays as it
/// is, as after a link has lost a packet's tail. Returns whether that was
/// possible: there is an IP header, and it fits into `bytes`.
///
/// Left out, the kernel drops the packet for stating more than there is.
pub fn shorten(packet: &mut [u8], bytes: usize) -> bool {
    let Some(headers) = Headers::read(packet) else {
        return false;
    };
    if bytes < headers.ip_bytes || bytes > headers.stated_bytes {
        return false;
    }
    match headers.version {
        4 => {
            let before = u16::from_be_bytes([packet[2], packet[3]]);
            let after = bytes as u16;
            packet[2..4].copy_from_slice(&after.to_be_bytes());
            update_ipv4_checksum(packet, before, after);
        }
        _ => packet[4..6].copy_from_slice(&((bytes - IPV6_BYTES) as u16).to_be_bytes()),
    }
    true
}

fn update_ipv4_checksum(packet: &mut [u8], before: u16, after: u16) {
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let updated = checksum::update(checksum, before, after);
    packet[10..12].copy_from_slice(&updated.to_be_bytes());
}
