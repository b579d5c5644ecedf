// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cutting a super-packet into the packets that it represents. Only headers
//! are written; payloads stay where they are, as ranges of the original.

use std::ops::Range;

use airpath_core::limits::LONGEST_PACKET_BYTES;
use airpath_packet::protocol::{TCP, UDP};
use airpath_packet::{Headers, checksum};

use crate::ports::{OffloadHeader, Segmentation};

/// Longest IP and transport header that a super-packet may have, in bytes.
const LONGEST_HEADER_BYTES: usize = 256;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// Treatment of the transport checksums of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumWork {
    /// Compute them: the segment may be damaged, captured, or sent anywhere.
    Complete,
    /// Leave them to the receiver, as the sender left them to us: quicker, and
    /// allowed only for segments that stay unchanged.
    Leave,
}

/// A super-packet that this code cannot cut, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a GSO packet cannot be segmented: {0}")]
pub struct UnsupportedSuperPacket(pub &'static str);

/// The headers of one segment.
#[derive(Clone)]
pub struct SegmentHeader {
    bytes: [u8; LONGEST_HEADER_BYTES],
    length: usize,
    /// The segment's payload in the super-packet.
    pub payload: Range<usize>,
    /// Offload information for the receiving kernel.
    pub offload: OffloadHeader,
}

impl SegmentHeader {
    /// IP and transport header.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Length of the whole segment as an IP packet, in bytes.
    pub fn packet_bytes(&self) -> usize {
        self.length + self.payload.len()
    }
}

impl std::fmt::Debug for SegmentHeader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SegmentHeader")
            .field("bytes", &self.bytes())
            .field("payload", &self.payload)
            .field("offload", &self.offload)
            .finish()
    }
}

/// Yields the segments of one super-packet in order. A packet that is no
/// super-packet is its own only segment.
#[derive(Debug)]
pub struct Segmenter<'a> {
    packet: &'a [u8],
    headers: Headers,
    header_bytes: usize,
    segment_bytes: usize,
    work: ChecksumWork,
    segmentation: Segmentation,
    ecn: bool,
    /// UDP over IPv4 may go without a checksum.
    without_checksum: bool,
    next: usize,
    index: u32,
}

impl<'a> Segmenter<'a> {
    /// Begins to cut `packet` as `offload` says.
    ///
    /// # Errors
    /// When the packet is not what `offload` calls it, or its segments cannot
    /// be expressed.
    pub fn new(packet: &'a [u8], offload: &OffloadHeader, work: ChecksumWork) -> Result<Self, UnsupportedSuperPacket> {
        let headers = Headers::read(packet).ok_or(UnsupportedSuperPacket("no IP header"))?;
        let transport = headers.transport.ok_or(UnsupportedSuperPacket("no transport header"))?;
        let (version, protocol) = match offload.segmentation {
            Segmentation::TcpV4 => (4, TCP),
            Segmentation::TcpV6 => (6, TCP),
            Segmentation::Udp => (headers.version, UDP),
            Segmentation::None => return Err(UnsupportedSuperPacket("it is none")),
            Segmentation::Other(_) => return Err(UnsupportedSuperPacket("of an unknown kind")),
        };
        if headers.version != version || headers.protocol != protocol {
            return Err(UnsupportedSuperPacket("of another protocol than stated"));
        }
        let header_bytes = headers.bytes();
        if header_bytes > LONGEST_HEADER_BYTES {
            return Err(UnsupportedSuperPacket("its headers are too long"));
        }
        let segment_bytes = usize::from(offload.segment_bytes);
        if segment_bytes == 0 {
            return Err(UnsupportedSuperPacket("its segments are empty"));
        }
        if header_bytes + segment_bytes > LONGEST_PACKET_BYTES as usize {
            return Err(UnsupportedSuperPacket("its segments are too long"));
        }
        let field = headers.ip_bytes + transport.checksum_offset;
        let without_checksum = protocol == UDP && !offload.needs_checksum && packet[field..field + 2] == [0, 0];
        Ok(Self {
            packet,
            headers,
            header_bytes,
            segment_bytes,
            work,
            segmentation: offload.segmentation,
            ecn: offload.ecn,
            without_checksum,
            next: header_bytes,
            index: 0,
        })
    }

    /// Number of all segments.
    pub fn count_all(&self) -> usize {
        (self.packet.len() - self.header_bytes).div_ceil(self.segment_bytes).max(1)
    }

    /// The headers of the segments from `first` up to but not including `end` as one packet: a
    /// single segment, or a smaller super-packet that the receiving kernel takes as it took the
    /// whole one.
    pub fn group(&self, first: u32, end: u32) -> SegmentHeader {
        let place = |index: u32| (self.header_bytes + index as usize * self.segment_bytes).min(self.packet.len());
        let payload = place(first)..place(end);
        let mut group = self.write_header(&payload, first);
        if end - first > 1 {
            group.offload = OffloadHeader {
                segmentation: self.segmentation,
                ecn: self.ecn && first == 0,
                header_bytes: self.header_bytes as u16,
                segment_bytes: self.segment_bytes as u16,
                ..group.offload
            };
        }
        group
    }

    fn write_header(&self, payload: &Range<usize>, index: u32) -> SegmentHeader {
        let mut segment = SegmentHeader {
            bytes: [0; LONGEST_HEADER_BYTES],
            length: self.header_bytes,
            payload: payload.clone(),
            offload: OffloadHeader::default(),
        };
        let header = &mut segment.bytes[..self.header_bytes];
        header.copy_from_slice(&self.packet[..self.header_bytes]);
        let (ip, transport) = header.split_at_mut(self.headers.ip_bytes);
        let transport_bytes = transport.len() + payload.len();
        self.write_ip(ip, transport_bytes, index);
        match self.headers.protocol {
            TCP => self.write_tcp(transport, payload, index),
            _ => transport[4..6].copy_from_slice(&(transport_bytes as u16).to_be_bytes()),
        }
        if !self.without_checksum {
            segment.offload = self.write_checksum(transport, payload, transport_bytes);
        }
        segment
    }

    fn write_ip(&self, ip: &mut [u8], transport_bytes: usize, index: u32) {
        if self.headers.version == 6 {
            let stated = ip.len() - 40 + transport_bytes;
            ip[4..6].copy_from_slice(&(stated as u16).to_be_bytes());
            return;
        }
        let stated = ip.len() + transport_bytes;
        ip[2..4].copy_from_slice(&(stated as u16).to_be_bytes());
        let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip[10..12].copy_from_slice(&[0, 0]);
        let checksum = checksum::checksum(ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn write_tcp(&self, tcp: &mut [u8], payload: &Range<usize>, index: u32) {
        let offset = (payload.start - self.header_bytes) as u32;
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(offset);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if payload.end < self.packet.len() {
            tcp[13] &= !(TCP_FIN | TCP_PSH);
        }
        if index > 0 {
            tcp[13] &= !TCP_CWR;
        }
    }

    fn write_checksum(&self, transport: &mut [u8], payload: &Range<usize>, transport_bytes: usize) -> OffloadHeader {
        let at = if self.headers.protocol == TCP { 16 } else { 6 };
        let pseudo =
            checksum::pseudo_header_sum(self.headers.addresses(self.packet), transport_bytes, self.headers.protocol);
        if self.work == ChecksumWork::Leave {
            transport[at..at + 2].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
            return OffloadHeader {
                needs_checksum: true,
                checksum_start: self.headers.ip_bytes as u16,
                checksum_offset: at as u16,
                ..OffloadHeader::default()
            };
        }
        transport[at..at + 2].copy_from_slice(&[0, 0]);
        // The header's length is even, so the sums add up.
        let sum = pseudo + checksum::sum(transport) + checksum::sum(&self.packet[payload.start..payload.end]);
        let value = checksum::as_sent(!checksum::fold(sum));
        transport[at..at + 2].copy_from_slice(&value.to_be_bytes());
        OffloadHeader::default()
    }
}

impl Iterator for Segmenter<'_> {
    type Item = SegmentHeader;

    fn next(&mut self) -> Option<SegmentHeader> {
        // A header without payload is one segment still.
        if self.next >= self.packet.len() && self.index > 0 {
            return None;
        }
        let end = (self.next + self.segment_bytes).min(self.packet.len());
        let payload = self.next..end;
        let segment = self.write_header(&payload, self.index);
        self.next = end;
        self.index += 1;
        Some(segment)
    }
}

#[cfg(test)]
pub(super) mod tests;
