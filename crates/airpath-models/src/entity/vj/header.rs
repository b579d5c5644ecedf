// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The header of a TCP segment in an IPv4 packet.

use std::ops::Range;

use airpath_core::Pdu;
use airpath_packet::checksum::checksum;
use airpath_packet::edit::set_ecn;
use airpath_packet::protocol::TCP;

use crate::line_header::Octets;

/// Octets of the shortest header.
pub const LEAST_OCTETS: u32 = 40;
/// Octets of the longest header, with all options of IP and TCP.
pub const MOST_OCTETS: u32 = 120;

/// Octets of an IP header without options.
const IP_OCTETS: usize = 20;
const TCP_OCTETS: usize = 20;

/// Octet of the type of service.
pub const TYPE_OF_SERVICE: usize = 1;
/// Octets of the total length.
pub const TOTAL_LENGTH: Range<usize> = 2..4;
/// Octets of the identification.
pub const IDENTIFICATION: Range<usize> = 4..6;
/// Octets of flags and fragment offset.
pub const FRAGMENT: Range<usize> = 6..8;
/// Octet of the time to live.
pub const TIME_TO_LIVE: usize = 8;
/// Octet of the protocol above IP.
pub const PROTOCOL: usize = 9;
/// Octets of the IP checksum.
pub const IP_CHECKSUM: Range<usize> = 10..12;
/// Octets of both addresses.
pub const ADDRESSES: Range<usize> = 12..20;

/// Octets of TCP, counted from where its header begins.
pub mod tcp {
    use std::ops::Range;

    /// Octets of both ports.
    pub const PORTS: Range<usize> = 0..4;
    /// Octets of the sequence number.
    pub const SEQUENCE: Range<usize> = 4..8;
    /// Octets of the acknowledgement number.
    pub const ACKNOWLEDGEMENT: Range<usize> = 8..12;
    /// Octet of the data offset and reserved bits.
    pub const OFFSET: usize = 12;
    /// Octet of the flags.
    pub const FLAGS: usize = 13;
    /// Octets of the window.
    pub const WINDOW: Range<usize> = 14..16;
    /// Octets of the checksum.
    pub const CHECKSUM: Range<usize> = 16..18;
    /// Octets of the urgent pointer.
    pub const URGENT: Range<usize> = 18..20;
    /// Octet at which options begin.
    pub const OPTIONS: usize = 20;

    /// Flag URG.
    pub const URG: u8 = 0x20;
    /// Flag ACK.
    pub const ACK: u8 = 0x10;
    /// Flag PSH.
    pub const PSH: u8 = 0x08;
    /// Flags RST, SYN and FIN.
    pub const RST_SYN_FIN: u8 = 0x07;
}

/// A TCP/IP header, as long as it says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    octets: Octets,
    /// Octet at which TCP begins.
    tcp: usize,
}

impl Header {
    /// The header at the beginning of `octets`, by its own lengths; none if it is not whole.
    pub fn of(octets: &[u8]) -> Option<Header> {
        let tcp = usize::from(octets.first()? & 15) * 4;
        let offset = usize::from(octets.get(tcp + tcp::OFFSET)? >> 4) * 4;
        if tcp < IP_OCTETS || offset < TCP_OCTETS {
            return None;
        }
        Some(Header { octets: octets.get(..tcp + offset)?.into(), tcp })
    }

    /// Its octets of IP in this range.
    pub fn ip(&self, range: Range<usize>) -> &[u8] {
        &self.octets[range]
    }

    /// Its options of IP.
    pub fn ip_options(&self) -> &[u8] {
        &self.octets[IP_OCTETS..self.tcp]
    }

    /// Its octets of TCP in this range.
    pub fn tcp(&self, range: Range<usize>) -> &[u8] {
        &self.octets[self.tcp + range.start..self.tcp + range.end]
    }

    /// Its options of TCP.
    pub fn tcp_options(&self) -> &[u8] {
        &self.octets[self.tcp + tcp::OPTIONS..]
    }

    /// Octet `place` of TCP.
    pub fn tcp_octet(&self, place: usize) -> u8 {
        self.octets[self.tcp + place]
    }

    /// Octet `place` of TCP, to be changed; not that of the data offset.
    pub fn tcp_octet_mut(&mut self, place: usize) -> &mut u8 {
        &mut self.octets[self.tcp + place]
    }

    /// A field of 16 bits of IP.
    pub fn ip_word(&self, range: Range<usize>) -> u16 {
        self.ip(range).try_into().map_or(0, u16::from_be_bytes)
    }

    /// A field of 16 bits of TCP.
    pub fn tcp_word(&self, range: Range<usize>) -> u16 {
        self.tcp(range).try_into().map_or(0, u16::from_be_bytes)
    }

    /// A field of 32 bits of TCP.
    pub fn tcp_long(&self, range: Range<usize>) -> u32 {
        self.tcp(range).try_into().map_or(0, u32::from_be_bytes)
    }

    /// Sets a field of IP.
    pub fn set_ip(&mut self, range: Range<usize>, value: &[u8]) {
        self.octets[range].copy_from_slice(value);
    }

    /// Sets a field of TCP.
    pub fn set_tcp(&mut self, range: Range<usize>, value: &[u8]) {
        self.octets[self.tcp + range.start..self.tcp + range.end].copy_from_slice(value);
    }

    /// Octets of data behind it, by the total length that it states; modulo 2^32, as the sample code counts.
    pub fn data(&self) -> u32 {
        u32::from(self.ip_word(TOTAL_LENGTH)).wrapping_sub(self.octets.len() as u32)
    }

    /// The IP checksum that it should have.
    pub fn right_checksum(&self) -> [u8; 2] {
        let mut ip: Octets = self.octets[..self.tcp].into();
        ip[IP_CHECKSUM].fill(0);
        checksum(&ip).to_be_bytes()
    }

    /// True if it may stand at the front of a packet of `octets` whose headers a link rebuilds.
    fn fits(&self, octets: u32) -> bool {
        let fragment = self.ip_word(FRAGMENT) & 0x3fff;
        self.octets[0] >> 4 == 4
            && self.octets[PROTOCOL] == TCP
            && fragment == 0
            && u32::from(self.ip_word(TOTAL_LENGTH)) == octets
            && self.octets.len() as u32 <= octets
            && self.ip(IP_CHECKSUM) == self.right_checksum()
    }
}

impl std::ops::Deref for Header {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.octets
    }
}

/// The TCP/IP header with which `pdu` enters a link, with the mark and the damage that it has met before; none of a
/// packet that goes as regular IP.
pub fn entered(pdu: &Pdu) -> Option<Header> {
    let headers = pdu.headers.as_ref()?;
    let damage = pdu.damage.as_deref();
    if damage.is_some_and(|damage| damage.truncated_to.is_some()) {
        return None;
    }
    let mut octets: Octets = headers.bytes().into();
    set_ecn(&mut octets, pdu.ecn);
    for flip in damage.iter().flat_map(|damage| &damage.flips) {
        if let Some(octet) = octets.get_mut(*flip as usize / 8) {
            *octet ^= 0x80 >> (flip % 8);
        }
    }
    Header::of(&octets).filter(|header| header.fits(pdu.len))
}
