// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! IPv4 packets with TCP segments inside, and what a kernel makes of damaged ones.

use airpath_core::{Ecn, FiveTuple, Payload, Pdu};
use airpath_packet::checksum;
use airpath_packet::protocol::TCP;
use airpath_tcp::{MOST_HEADER_BYTES, Segment};
use bytes::Bytes;

use crate::ip::{IPV4_BYTES, Reception};
use crate::options::Route;

const VERSION_AND_LENGTH: u8 = 0x45;
const DO_NOT_FRAGMENT: u16 = 0x4000;
const TIME_TO_LIVE: u8 = 64;
/// The most bytes of both headers.
const MOST_HEADERS_BYTES: usize = IPV4_BYTES + MOST_HEADER_BYTES;

/// The packet of `segment` as a PDU, whose data are zeros.
pub(super) fn write(route: &Route, flow: u32, tuple: FiveTuple, segment: &Segment) -> Pdu {
    let header_bytes = IPV4_BYTES + segment.header_bytes();
    let len = header_bytes as u32 + segment.data_bytes;
    let mut headers = [0; MOST_HEADERS_BYTES];
    let headers = &mut headers[..header_bytes];
    write_headers(route, segment, len as usize, headers);
    let payload = Payload::Padded(Bytes::copy_from_slice(headers));
    Pdu { len, header_len: header_bytes as u16, ecn: ecn_of(segment), flow, tuple, payload, ..Pdu::default() }
}

fn ecn_of(segment: &Segment) -> Ecn {
    if segment.ecn_capable { Ecn::Ect0 } else { Ecn::NotEct }
}

/// Writes the headers of a packet of `length` bytes in all over zeros.
fn write_headers(route: &Route, segment: &Segment, length: usize, headers: &mut [u8]) {
    let Some((ip, header)) = headers.split_first_chunk_mut::<IPV4_BYTES>() else { return };
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
    // The zeros behind the headers add nothing to the sum.
    let pseudo_header = checksum::pseudo_header_sum(&ip[12..20], length - IPV4_BYTES, TCP);
    segment.write(route.source.1, route.destination.1, header);
    let sum = !checksum::fold(pseudo_header + checksum::sum(header));
    header[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// Decision of a kernel about `pdu`, which begins with `headers` and goes on with zeros, after the link's damage to it;
/// and its segment, if it takes it.
pub(super) fn read(pdu: &Pdu, headers: &[u8]) -> (Reception, Option<Segment>) {
    let damaged;
    let (packet, reception) = match &pdu.damage {
        None => (headers, Reception::Intact),
        Some(damage) => {
            let mut copy = pdu.contents().into_owned();
            damage.apply(&mut copy);
            if copy.len() != pdu.len as usize || !has_good_checksums(&copy) {
                return (Reception::Rejected, None);
            }
            damaged = copy;
            (damaged.as_slice(), Reception::Damaged)
        }
    };
    let length = (pdu.len as usize).saturating_sub(IPV4_BYTES);
    let segment = packet.get(IPV4_BYTES..).and_then(|beginning| Segment::read_beginning(beginning, length).ok());
    match segment {
        None => (Reception::Rejected, None),
        Some(mut segment) => {
            segment.congestion_experienced = pdu.ecn == Ecn::Ce;
            segment.ecn_capable = pdu.ecn != Ecn::NotEct;
            (reception, Some(segment))
        }
    }
}

/// The headers of a packet that [`write`] made.
pub(super) fn bytes_of(pdu: &Pdu) -> Option<&Bytes> {
    match &pdu.payload {
        Payload::Padded(headers) => Some(headers),
        Payload::LengthOnly | Payload::Whole(_) | Payload::Segment { .. } => None,
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
    fn packets_have_good_checksums_and_damage_is_noticed_anywhere() {
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
        for (segment, len) in [(data, 1_500), (bare, 52)] {
            let pdu = write(&route, 7, route.tuple(TCP), &segment);
            assert_eq!((pdu.len, pdu.header_len, pdu.contents().len()), (len, 52, len as usize));
            assert!(has_good_checksums(&pdu.contents()));
            let headers = bytes_of(&pdu).unwrap();
            assert_eq!(read(&pdu, headers), (Reception::Intact, Some(segment)));
            // In the headers, in the last bit, and at the end.
            for (flips, truncated_to) in [(vec![200], None), (vec![len * 8 - 1], None), (vec![], Some(len - 1))] {
                let damage = Some(Box::new(Damage { flips, truncated_to }));
                let damaged = Pdu { damage, ..pdu.clone() };
                assert_eq!(read(&damaged, headers), (Reception::Rejected, None));
            }
        }
    }
}
