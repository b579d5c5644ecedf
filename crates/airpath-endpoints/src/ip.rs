// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! IPv4 packets with UDP or UDP-Lite inside, and what a kernel makes of damaged ones.
//!
//! Sources: RFC 791, RFC 768, RFC 3828.

use airpath_core::{Ecn, Pdu};
use airpath_packet::{checksum, protocol};
use airpath_workload::UdpProtocol;
use airpath_workload::kinds::IP_AND_UDP_BYTES;
use bytes::Bytes;

use crate::options::Route;

pub(crate) const IPV4_BYTES: usize = 20;
/// Bytes of an IPv4 header and a UDP or UDP-Lite header.
pub(crate) const HEADER_BYTES: usize = IP_AND_UDP_BYTES as usize;
const UDP_BYTES: usize = HEADER_BYTES - IPV4_BYTES;
const VERSION_AND_LENGTH: u8 = 0x45;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const TIME_TO_LIVE: u8 = 64;

/// Checksum protection of a flow's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// UDP: everything is covered.
    Udp,
    /// UDP-Lite, with so many bytes covered from its header on; 0 for all.
    UdpLite(u16),
}

impl Protection {
    pub(crate) fn new(protocol: UdpProtocol, coverage: Option<u64>) -> Protection {
        match protocol {
            UdpProtocol::Udp => Protection::Udp,
            UdpProtocol::UdpLite => Protection::UdpLite(coverage.map_or(0, |bytes| bytes.min(0xffff) as u16)),
        }
    }

    /// The protocol's IANA number.
    pub(crate) fn number(self) -> u8 {
        match self {
            Protection::Udp => protocol::UDP,
            Protection::UdpLite(_) => protocol::UDP_LITE,
        }
    }

    /// Number of the `transport` bytes of a packet that are covered; a coverage beyond the packet's end is cut
    /// to it when it is sent.
    fn covered(self, transport: usize) -> usize {
        match self {
            Protection::Udp | Protection::UdpLite(0) => transport,
            Protection::UdpLite(covered) => usize::from(covered).min(transport),
        }
    }
}

/// Decision of a kernel about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// It is as it was sent.
    Intact,
    /// Its payload is damaged where no checksum covers it, and delivered.
    Damaged,
    /// A checksum or a length is wrong: it is dropped.
    Rejected,
}

/// Writes a packet of `len` bytes in all; `fill` writes its payload, which is zero before.
pub(crate) fn write(
    route: &Route,
    protection: Protection,
    ecn: Ecn,
    identification: u16,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Bytes {
    let mut packet = vec![0; len];
    let (ip, transport) = packet.split_at_mut(IPV4_BYTES);
    ip[0] = VERSION_AND_LENGTH;
    ip[1] = ecn as u8;
    ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&identification.to_be_bytes());
    ip[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    ip[8] = TIME_TO_LIVE;
    ip[9] = protection.number();
    ip[12..16].copy_from_slice(&route.source.0.octets());
    ip[16..20].copy_from_slice(&route.destination.0.octets());
    let header_checksum = checksum::checksum(ip);
    ip[10..12].copy_from_slice(&header_checksum.to_be_bytes());
    transport[0..2].copy_from_slice(&route.source.1.to_be_bytes());
    transport[2..4].copy_from_slice(&route.destination.1.to_be_bytes());
    let length = transport.len();
    let covered = protection.covered(length);
    let third_word = match protection {
        Protection::Udp => length as u16,
        Protection::UdpLite(0) => 0,
        Protection::UdpLite(_) => covered as u16,
    };
    transport[4..6].copy_from_slice(&third_word.to_be_bytes());
    fill(&mut transport[UDP_BYTES..]);
    let pseudo_header = checksum::pseudo_header_sum(&ip[12..20], length, protection.number());
    let value = checksum::as_sent(!checksum::fold(pseudo_header + checksum::sum(&transport[..covered])));
    transport[6..8].copy_from_slice(&value.to_be_bytes());
    packet.into()
}

/// True if a kernel would take `packet`, as far as its headers and checksums tell.
pub(crate) fn is_valid(packet: &[u8], route: &Route, protection: Protection) -> bool {
    let Some((ip, transport)) = packet.split_at_checked(IPV4_BYTES) else { return false };
    let word = |bytes: &[u8], at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let length = transport.len();
    if length < UDP_BYTES
        || ip[0] != VERSION_AND_LENGTH
        || word(ip, 2) != packet.len()
        || checksum::checksum(ip) != 0
        || ip[9] != protection.number()
        || ip[16..20] != route.destination.0.octets()
        || word(transport, 2) != usize::from(route.destination.1)
    {
        return false;
    }
    // A kernel believes what the packet says of its coverage.
    let covered = match (protection, word(transport, 4)) {
        (Protection::Udp, stated) if stated == length => length,
        (Protection::UdpLite(_), 0) => length,
        (Protection::UdpLite(_), stated) if (UDP_BYTES..=length).contains(&stated) => stated,
        _ => return false,
    };
    let pseudo_header = checksum::pseudo_header_sum(&ip[12..20], length, protection.number());
    checksum::fold(pseudo_header + checksum::sum(&transport[..covered])) == 0xffff
}

/// Decision of a kernel about `pdu`, sent as `bytes`, after the link's damage to it; and its payload, if it
/// takes it. A truncated packet is shorter than its header says, and never taken.
pub(crate) fn judge(pdu: &Pdu, bytes: &Bytes, route: &Route, protection: Protection) -> (Reception, Bytes) {
    let Some(damage) = &pdu.damage else { return (Reception::Intact, bytes.slice(HEADER_BYTES..)) };
    let mut packet = bytes.to_vec();
    damage.apply(&mut packet);
    match packet.len() == bytes.len() && is_valid(&packet, route, protection) {
        true => (Reception::Damaged, Bytes::from(packet).slice(HEADER_BYTES..)),
        false => (Reception::Rejected, Bytes::new()),
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Damage, End};

    use super::*;
    use crate::Options;

    fn route() -> Route {
        Route::new(End::Server, 3, &Options::default())
    }

    fn packet(protection: Protection, len: usize) -> Bytes {
        write(&route(), protection, Ecn::NotEct, 7, len, |payload| {
            payload.iter_mut().enumerate().for_each(|(i, b)| *b = i as u8)
        })
    }

    fn damaged(protection: Protection, flips: &[u32], truncated_to: Option<u32>) -> Reception {
        let bytes = packet(protection, 100);
        let damage = Damage { flips: flips.to_vec(), truncated_to };
        let pdu = Pdu { len: 100, damage: Some(Box::new(damage)), ..Pdu::default() };
        judge(&pdu, &bytes, &route(), protection).0
    }

    #[test]
    fn a_packet_is_what_the_standards_say() {
        // Checksums computed by another program, word by word in ones' complement.
        let bytes =
            write(&route(), Protection::Udp, Ecn::NotEct, 1, 30, |payload| payload.copy_from_slice(&[0xab, 0xcd]));
        let words: Vec<String> = bytes.chunks(2).map(|word| format!("{:02x}{:02x}", word[0], word[1])).collect();
        assert_eq!(words.join(" "), "4500 001e 0001 4000 4011 2632 0a4d 0001 0a4d 0002 138c c003 000a 6be0 abcd");
        assert!(is_valid(&bytes, &route(), Protection::Udp));
        assert!(!is_valid(&bytes, &Route::new(End::Client, 3, &Options::default()), Protection::Udp));
        let lite = write(&route(), Protection::UdpLite(8), Ecn::NotEct, 1, 30, |payload| {
            payload.copy_from_slice(&[0xab, 0xcd])
        });
        assert_eq!((lite[9], &lite[24..26]), (136, &[0, 8][..]));
        assert!(is_valid(&lite, &route(), Protection::UdpLite(8)));
    }

    #[test]
    fn every_flipped_bit_is_noticed_where_it_is_covered() {
        for (protection, covered) in [
            (Protection::Udp, 100),
            (Protection::UdpLite(0), 100),
            (Protection::UdpLite(8), 28),
            (Protection::UdpLite(20), 40),
        ] {
            for bit in 0..800 {
                let expected = if bit < covered * 8 { Reception::Rejected } else { Reception::Damaged };
                assert_eq!(damaged(protection, &[bit], None), expected, "{protection:?} bit {bit}");
            }
        }
        // Two flips make up for each other where words have different bits in the same column: the bytes
        // of the payload count up from 0, so that those at 0 and 2 do in the second bit from the end.
        let column = |byte: usize| (HEADER_BYTES + byte) as u32 * 8 + 6;
        assert_eq!(damaged(Protection::Udp, &[column(0), column(2)], None), Reception::Damaged);
        assert_eq!(damaged(Protection::Udp, &[column(0), column(4)], None), Reception::Rejected);
    }

    #[test]
    fn a_truncated_packet_is_never_taken() {
        for protection in [Protection::Udp, Protection::UdpLite(8)] {
            for left in [0, 19, 28, 99] {
                assert_eq!(damaged(protection, &[], Some(left)), Reception::Rejected);
            }
        }
    }

    #[test]
    fn a_coverage_beyond_the_packet_covers_the_packet() {
        let bytes = packet(Protection::UdpLite(500), 60);
        assert!(is_valid(&bytes, &route(), Protection::UdpLite(500)));
        let mut flipped = bytes.to_vec();
        flipped[59] ^= 1;
        assert!(!is_valid(&flipped, &route(), Protection::UdpLite(500)));
    }
}
