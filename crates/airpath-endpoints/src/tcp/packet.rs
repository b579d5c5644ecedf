// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! IPv4 packets with TCP segments inside, and what a kernel makes of damaged ones.

use airpath_core::{Ecn, Pdu};
use airpath_packet::checksum;
use airpath_packet::protocol::TCP;
use airpath_tcp::Segment;
use bytes::Bytes;

use crate::ip::{IPV4_BYTES, Reception};
use crate::options::Route;

const VERSION_AND_LENGTH: u8 = 0x45;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const TIME_TO_LIVE: u8 = 64;

/// A packet: its bytes, the length of its headers, and its ECN field.
#[derive(Debug)]
pub(super) struct Packet {
    pub bytes: Bytes,
    pub header_bytes: u16,
    pub ecn: Ecn,
}

/// Packets of `segments`, whose bytes share one piece of memory. Their data is zeros.
pub(super) fn write(route: &Route, segments: &[Segment]) -> Vec<Packet> {
    let length = |segment: &Segment| IPV4_BYTES + segment.header_bytes() + segment.data_bytes as usize;
    let mut bytes = vec![0; segments.iter().map(length).sum()];
    let mut rest = bytes.as_mut_slice();
    for segment in segments {
        let (packet, after) = rest.split_at_mut(length(segment));
        write_one(route, segment, packet);
        rest = after;
    }
    let mut rest = Bytes::from(bytes);
    let packet = |segment: &Segment| Packet {
        bytes: rest.split_to(length(segment)),
        header_bytes: (IPV4_BYTES + segment.header_bytes()) as u16,
        ecn: ecn_of(segment),
    };
    segments.iter().map(packet).collect()
}

fn ecn_of(segment: &Segment) -> Ecn {
    if segment.ecn_capable { Ecn::Ect0 } else { Ecn::NotEct }
}

/// Writes a packet over zeros.
fn write_one(route: &Route, segment: &Segment, packet: &mut [u8]) {
    let length = packet.len();
    let (ip, transport) = packet.split_at_mut(IPV4_BYTES);
    ip[0] = VERSION_AND_LENGTH;
    ip[1] = ecn_of(segment) as u8;
    ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    ip[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    ip[8] = TIME_TO_LIVE;
    ip[9] = TCP;
    ip[12..16].copy_from_slice(&route.source.0.octets());
    ip[16..20].copy_from_slice(&route.destination.0.octets());
    let sum = checksum::checksum(ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let pseudo_header = checksum::pseudo_header_sum(&ip[12..20], transport.len(), TCP);
    // Zeros add nothing to the sum.
    let header = &mut transport[..segment.header_bytes()];
    segment.write(route.source.1, route.destination.1, header);
    let sum = !checksum::fold(pseudo_header + checksum::sum(header));
    header[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// Decision of a kernel about `pdu`, sent as `bytes`, after the link's damage to it; and its segment, if it takes it.
pub(super) fn read(pdu: &Pdu, bytes: &Bytes) -> (Reception, Option<Segment>) {
    let damaged;
    let (packet, reception) = match &pdu.damage {
        None => (bytes.as_ref(), Reception::Intact),
        Some(damage) => {
            let mut copy = bytes.to_vec();
            damage.apply(&mut copy);
            if copy.len() != bytes.len() || !has_good_checksums(&copy) {
                return (Reception::Rejected, None);
            }
            damaged = copy;
            (damaged.as_slice(), Reception::Damaged)
        }
    };
    let segment = packet.get(IPV4_BYTES..).and_then(|transport| Segment::read(transport).ok());
    match segment {
        None => (Reception::Rejected, None),
        Some(mut segment) => {
            segment.congestion_experienced = pdu.ecn == Ecn::Ce;
            segment.ecn_capable = pdu.ecn != Ecn::NotEct;
            (reception, Some(segment))
        }
    }
}

fn has_good_checksums(packet: &[u8]) -> bool {
    let Some((ip, transport)) = packet.split_at_checked(IPV4_BYTES) else { return false };
    let pseudo_header = checksum::pseudo_header_sum(&ip[12..20], transport.len(), TCP);
    checksum::checksum(ip) == 0 && checksum::fold(pseudo_header + checksum::sum(transport)) == 0xffff
}

#[cfg(test)]
mod tests {
    use airpath_core::{Damage, End};
    use airpath_tcp::Flags;

    use super::*;
    use crate::Options;

    #[test]
    fn packets_of_a_burst_are_whole_and_have_good_checksums() {
        let route = Route::new(End::Server, 0, &Options::default());
        let data = Segment {
            sequence: 7,
            flags: Flags::ACK,
            window: 500,
            data_bytes: 1_448,
            timestamps: Some((1, 2)),
            ecn_capable: true,
            ..Segment::default()
        };
        let bare = Segment { data_bytes: 0, ecn_capable: false, ..data };
        let packets = write(&route, &[data, bare, data]);
        assert_eq!(packets.iter().map(|packet| packet.bytes.len()).collect::<Vec<_>>(), [1_500, 52, 1_500]);
        for (packet, segment) in packets.iter().zip([data, bare, data]) {
            assert!(has_good_checksums(&packet.bytes));
            let pdu = Pdu { ecn: packet.ecn, ..Pdu::default() };
            assert_eq!(read(&pdu, &packet.bytes), (Reception::Intact, Some(segment)));
            let damage = Some(Box::new(Damage { flips: vec![200], truncated_to: None }));
            let damaged = Pdu { damage, ..Pdu::default() };
            assert_eq!(read(&damaged, &packet.bytes), (Reception::Rejected, None));
        }
    }
}
