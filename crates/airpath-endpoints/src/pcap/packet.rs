// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! IP packets within frames of several kinds of links.

use std::net::IpAddr;

use airpath_core::{Ecn, FiveTuple};
use airpath_packet::Headers;
use airpath_packet::ethernet::{EthernetHeader, is_ip};

/// An IP packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Captured {
    /// Time of capture, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its length.
    pub len: u32,
    /// The bytes of its network and transport headers, as far as they are known.
    pub header_len: u16,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub class: u8,
    pub ecn: Ecn,
    /// Addresses, ports and protocol; fragments have no ports.
    pub tuple: FiveTuple,
    /// The captured bytes, from the IP header on.
    pub bytes: Vec<u8>,
}

/// Format of the captured packets, of libpcap's registry of link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    Raw,
    Ethernet,
    LinuxCooked,
    LinuxCooked2,
    /// Four bytes of a protocol family, in the byte order of the capturing host.
    Loopback,
}

impl LinkType {
    pub(super) fn new(number: u32) -> Result<LinkType, String> {
        match number {
            12 | 14 | 101 | 228 | 229 => Ok(LinkType::Raw),
            1 => Ok(LinkType::Ethernet),
            113 => Ok(LinkType::LinuxCooked),
            276 => Ok(LinkType::LinuxCooked2),
            0 | 108 => Ok(LinkType::Loopback),
            other => Err(format!(
                "its packets are of link type {other}; raw IP (101), Ethernet (1), Linux cooked (113, 276) and \
                 loopback (0) can be read"
            )),
        }
    }

    /// The length of the header before the IP packet; none for a frame of something else.
    fn header_bytes(self, frame: &[u8]) -> Option<usize> {
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        match self {
            LinkType::Raw => Some(0),
            LinkType::Loopback => Some(4),
            LinkType::LinuxCooked => is_ip(word(14)?).then_some(16),
            LinkType::LinuxCooked2 => is_ip(word(0)?).then_some(20),
            LinkType::Ethernet => {
                let header = EthernetHeader::read(frame)?;
                header.is_ip().then_some(header.bytes())
            }
        }
    }
}

impl Captured {
    /// The IP packet in `frame`; none where there is none.
    pub(super) fn read(unix_ns: u64, link_type: LinkType, frame: &[u8]) -> Option<Captured> {
        let bytes = frame.get(link_type.header_bytes(frame)?..)?;
        let (headers, own) = Headers::read_captured(bytes)?;
        let [source, destination] = headers.ends(own);
        Some(Captured {
            unix_ns,
            len: headers.stated_bytes as u32,
            header_len: headers.bytes().min(headers.stated_bytes) as u16,
            source,
            destination,
            class: headers.dscp(),
            ecn: Ecn::of(headers.traffic_class),
            tuple: headers.tuple(own),
            bytes: own.to_vec(),
        })
    }
}
