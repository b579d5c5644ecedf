// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Runs of UDP datagrams that leave in one flush: handed to the kernel as one super-packet, which it cuts before any
//! program reads it.
//!
//! A datagram continues a run if the kernel, which counts up the identification of IPv4, would make of it what it is.
//! All are of one flow and one length, and their checksums are left to the receiver. Walking the stack once instead of
//! for each datagram saves most of the cost of small ones.

use airpath_packet::Headers;
use airpath_packet::checksum;

use crate::ports::{OffloadHeader, Segmentation};

const UDP: u8 = 17;
const UDP_BYTES: usize = 8;
/// IPv4 without options, and IPv6 without extensions.
const IP_BYTES: [(u8, usize); 2] = [(4, 20), (6, 40)];
/// Longest super-packet, in bytes.
const LONGEST_BYTES: usize = 65_535;
/// Number of datagrams in a run: what a sender may hand over at once.
const MOST: u32 = 64;

/// Length of the headers of a datagram that a run may begin or go on with.
pub(super) fn header_bytes(packet: &[u8], offload: &OffloadHeader) -> Option<usize> {
    let version = packet.first()? >> 4;
    let (_, ip_bytes) = *IP_BYTES.iter().find(|(number, _)| *number == version)?;
    let bytes = ip_bytes + UDP_BYTES;
    let is_whole_udp = match version {
        // Neither options nor a fragment.
        4 => packet.len() > bytes && packet[0] == 0x45 && packet[9] == UDP && packet[6] & 0x3f == 0 && packet[7] == 0,
        _ => packet.len() > bytes && packet[6] == UDP,
    };
    let is_unfinished = offload.needs_checksum
        && !offload.is_super_packet()
        && (usize::from(offload.checksum_start), offload.checksum_offset) == (ip_bytes, 6);
    (is_whole_udp && is_unfinished).then_some(bytes)
}

/// True if `packet` is what the kernel would make of the next datagram of a run of `count` that begins with `first`.
pub(super) fn continues(first: &[u8], count: u32, packet: &[u8], header_bytes: usize) -> bool {
    if packet.len() != first.len() || count >= MOST || first.len() * (count as usize + 1) > LONGEST_BYTES {
        return false;
    }
    if header_bytes == 40 + UDP_BYTES {
        return packet[..header_bytes] == first[..header_bytes];
    }
    let number = |packet: &[u8]| u16::from_be_bytes([packet[4], packet[5]]);
    // All but the identification and the checksum over it.
    number(packet) == number(first).wrapping_add(count as u16)
        && packet[..4] == first[..4]
        && packet[6..10] == first[6..10]
        && packet[12..header_bytes] == first[12..header_bytes]
}

/// Appends the headers of a run of `count` datagrams that begins with `first` to `out`, and returns what the kernel
/// has to do with it.
pub(super) fn write_header(first: &[u8], count: u32, header_bytes: usize, out: &mut Vec<u8>) -> Option<OffloadHeader> {
    let headers = Headers::read(first)?;
    let payload = first.len() - header_bytes;
    let ip_bytes = header_bytes - UDP_BYTES;
    let udp_bytes = UDP_BYTES + payload * count as usize;
    let start = out.len();
    out.extend_from_slice(&first[..header_bytes]);
    let header = &mut out[start..];
    if ip_bytes == 40 {
        header[4..6].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
    } else {
        header[2..4].copy_from_slice(&((ip_bytes + udp_bytes) as u16).to_be_bytes());
        header[10..12].copy_from_slice(&[0, 0]);
        let value = checksum::checksum(&header[..ip_bytes]);
        header[10..12].copy_from_slice(&value.to_be_bytes());
    }
    header[ip_bytes + 4..ip_bytes + 6].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
    let pseudo = checksum::pseudo_header_sum(headers.addresses(first), udp_bytes, UDP);
    header[ip_bytes + 6..ip_bytes + 8].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
    Some(OffloadHeader {
        needs_checksum: true,
        segmentation: Segmentation::Udp,
        ecn: false,
        header_bytes: header_bytes as u16,
        segment_bytes: payload as u16,
        checksum_start: ip_bytes as u16,
        checksum_offset: 6,
    })
}
