// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From packets read to PDUs offered.

use airpath_core::{Ecn, Escapes, FiveTuple, Matches, Origin, Payload, Pdu, PduId, Time};
use airpath_packet::Headers;
use airpath_packet::flow::flow_number;
use bytes::Bytes;

use super::{frame, layout};
use crate::packet_bytes::{ChecksumWork, Segmenter, complete_checksum};
use crate::ports::{Journey, OffloadHeader, Received};

/// A packet, or one of the segments of a super-packet, on its way to the machine.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Time of the offer.
    pub at: Time,
    /// Arrival, by the kernel's stamp.
    pub kernel_at: Option<Time>,
    /// Number of its port.
    pub side: u16,
    /// The packet, behind its link header if it has one.
    pub bytes: Bytes,
    /// Bytes of the link header.
    pub link_bytes: u8,
    /// Work that the sending kernel left to the device.
    pub offload: OffloadHeader,
    /// Contents of its headers; none of a frame that holds no IP packet.
    pub headers: Option<Headers>,
    /// Its record from the hops of other hosts.
    pub journey: Option<Box<Journey>>,
}

/// Fields of a packet's headers that all of its segments share.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    number: u32,
    tuple: FiveTuple,
    traffic_class: u8,
}

impl Arrival {
    /// A frame of a line, which is offered as it is.
    pub fn frame(received: Received, side: u16, at: Time) -> Arrival {
        let (bytes, offload) = (received.bytes.freeze(), OffloadHeader::default());
        Arrival { at, kernel_at: None, side, bytes, link_bytes: 0, offload, headers: None, journey: None }
    }

    /// Parses `received`, or returns it behind its link header if it is not IP without a link header that says so, contradicts
    /// itself, or is a super-packet that cannot be cut.
    pub fn read(received: Received, side: u16, at: Time, kernel_at: Option<Time>) -> Result<Arrival, Bytes> {
        let Received { bytes, link_bytes, mut offload, journey, .. } = received;
        let mut bytes = bytes.freeze();
        let link = usize::from(link_bytes);
        let headers = if frame::is_ip(&bytes, link_bytes) { Headers::read(&bytes[link..]) } else { None };
        if headers.is_none() && link_bytes == 0 {
            return Err(bytes);
        }
        if offload.is_super_packet() {
            if Segmenter::new(&bytes[link..], &offload, ChecksumWork::Leave).is_err() {
                return Err(bytes);
            }
            // Segments get headers of their own, by what the packet itself says.
            offload = OffloadHeader { header_bytes: 0, checksum_start: 0, checksum_offset: 0, ..offload };
        } else {
            offload.header_bytes = 0;
            if !layout::fits(&offload) {
                // Nothing is left to be said of a packet that is finished.
                let mut finished = bytes.to_vec();
                if !complete_checksum(&mut finished[link..], &mut offload) {
                    return Err(bytes);
                }
                bytes = finished.into();
            }
            if let Some(headers) = &headers {
                frame::cut_padding(&mut bytes, link, headers.stated_bytes);
            }
        }
        Ok(Arrival { at, kernel_at, side, bytes, link_bytes, offload, headers, journey })
    }

    /// The packet without its link header.
    pub fn packet(&self) -> &[u8] {
        &self.bytes[usize::from(self.link_bytes)..]
    }

    /// The link header; empty where the port has packets alone.
    pub fn link_header(&self) -> &[u8] {
        &self.bytes[..usize::from(self.link_bytes)]
    }

    /// Bytes of the network and transport headers.
    fn header_bytes(&self) -> usize {
        self.headers.as_ref().map_or(0, Headers::bytes)
    }

    /// Number of PDUs in it.
    pub fn segments(&self) -> u16 {
        if self.offload.is_super_packet() {
            let payload = self.packet().len().saturating_sub(self.header_bytes());
            payload.div_ceil(usize::from(self.offload.segment_bytes)).max(1) as u16
        } else {
            1
        }
    }

    /// The bytes of its first PDU, which is as long as any.
    pub fn first_bytes(&self) -> u32 {
        let whole = self.packet().len();
        if !self.offload.is_super_packet() {
            return whole as u32;
        }
        whole.min(self.header_bytes() + usize::from(self.offload.segment_bytes)) as u32
    }

    /// Header fields of all of its PDUs.
    pub fn flow(&self) -> Flow {
        let packet = self.packet();
        let (flow, tuple, traffic_class) = match &self.headers {
            Some(headers) => (headers.flow_hash(packet), headers.tuple(packet), headers.traffic_class),
            // The addresses in a frame of a line are nobody's to read.
            None if self.link_bytes == 0 => (0, FiveTuple::default(), 0),
            None => (frame::hash(self.link_header()), FiveTuple::default(), 0),
        };
        Flow { number: flow_number(flow), tuple, traffic_class }
    }

    /// Its PDU number `index`, of `flow`.
    pub fn pdu(&self, flow: &Flow, index: u16, id: PduId) -> Pdu {
        let header = self.header_bytes();
        let packet = self.packet();
        let (len, payload) = if self.offload.is_super_packet() {
            let segment = usize::from(self.offload.segment_bytes);
            let from = header + usize::from(index) * segment;
            (header + packet.len().saturating_sub(from).min(segment), self.segment(index))
        } else if self.offload.needs_checksum || self.link_bytes > 0 {
            (packet.len(), self.segment(index))
        } else {
            (packet.len(), Payload::Whole(self.bytes.clone()))
        };
        Pdu {
            id: self.journey.as_ref().map_or(id, |journey| journey.id),
            arrived: self.at,
            len: len as u32,
            header_len: header as u16,
            escapes: Escapes::UNKNOWN,
            matches: Matches::NONE,
            class: flow.traffic_class >> 2,
            ecn: Ecn::of(flow.traffic_class),
            origin: Origin::User,
            flow: flow.number,
            tuple: flow.tuple,
            copied: self.journey.as_ref().is_some_and(|journey| journey.copied),
            damage: self.journey.as_ref().and_then(|journey| journey.damage.clone()),
            headers: None,
            payload,
        }
    }

    /// Cuts it into finished segments, if it is a super-packet.
    pub fn segmenter(&self) -> Option<Segmenter<'_>> {
        let work = ChecksumWork::Complete;
        self.offload.is_super_packet().then(|| Segmenter::new(self.packet(), &self.offload, work).ok()).flatten()
    }

    fn segment(&self, index: u16) -> Payload {
        let layout = layout::pack(&self.offload, self.link_bytes);
        Payload::Segment { whole: self.bytes.clone(), index, layout }
    }
}

#[cfg(test)]
mod tests {
    use airpath_packet::checksum;
    use bytes::BytesMut;

    use super::*;
    use crate::engine_loop::egress::finished_bytes;
    use crate::packet_bytes::tcp_packet;
    use crate::ports::Segmentation;

    /// A packet whose checksum from `start` on is left to the device, and lies `offset` bytes behind it.
    fn received(start: u16, offset: u16) -> Received {
        let bytes = BytesMut::from(&tcp_packet(6, 0, 6000)[..]);
        let offload = OffloadHeader {
            needs_checksum: true,
            checksum_start: start,
            checksum_offset: offset,
            ..OffloadHeader::default()
        };
        Received { bytes, link_bytes: 0, stamp_realtime_ns: None, offload, journey: None }
    }

    fn finished(start: u16, offset: u16) -> (Pdu, Vec<u8>) {
        let arrival = Arrival::read(received(start, offset), 0, Time::ZERO, None).unwrap();
        let pdu = arrival.pdu(&arrival.flow(), 0, 1);
        let bytes = finished_bytes(&pdu);
        (pdu, bytes)
    }

    #[test]
    fn a_checksum_is_finished_where_the_sender_wants_it_however_far_that_is() {
        for (start, offset) in [(40, 16), (4095, 255), (4096, 16), (5000, 6), (40, 300), (40, 5000)] {
            let original = received(start, offset).bytes;
            let (_, bytes) = finished(start, offset);
            let (from, field) = (usize::from(start), usize::from(start + offset));
            assert_eq!(bytes.len(), original.len());
            let changed: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != original[*at]).collect();
            assert!(changed.iter().all(|at| (field..field + 2).contains(at)), "{start} {offset}: {changed:?}");
            let mut expected = original[from..].to_vec();
            let value = checksum::checksum(&expected).to_be_bytes();
            expected[usize::from(offset)..usize::from(offset) + 2].copy_from_slice(&value);
            assert_eq!(bytes[from..], expected, "{start} {offset}");
        }
        assert!(matches!(finished(5000, 6).0.payload, Payload::Whole(_)));
        assert!(matches!(finished(40, 16).0.payload, Payload::Segment { .. }));
    }

    #[test]
    fn segments_cut_once_are_those_of_their_pdus() {
        for (version, segmentation) in [(4, Segmentation::TcpV4), (6, Segmentation::TcpV6)] {
            let offload = OffloadHeader { segmentation, segment_bytes: 1000, ..received(40, 16).offload };
            let bytes = BytesMut::from(&tcp_packet(version, 0, 4500)[..]);
            let arrival = Arrival::read(Received { bytes, offload, ..received(40, 16) }, 0, Time::ZERO, None).unwrap();
            let (flow, segmenter) = (arrival.flow(), arrival.segmenter().unwrap());
            assert_eq!(arrival.segments(), 5);
            for index in 0..5 {
                let segment = segmenter.group(u32::from(index), u32::from(index) + 1);
                let whole = [segment.bytes(), &arrival.packet()[segment.payload.clone()]].concat();
                let pdu = arrival.pdu(&flow, index, 1);
                assert_eq!((finished_bytes(&pdu), pdu.len as usize), (whole.clone(), whole.len()));
                assert_eq!(usize::from(pdu.header_len), segment.bytes().len());
            }
        }
    }

    #[test]
    fn a_checksum_far_outside_the_packet_makes_it_malformed() {
        for (start, offset) in [(6060, 6), (65_535, 65_535), (40, 6100)] {
            assert!(Arrival::read(received(start, offset), 0, Time::ZERO, None).is_err(), "{start} {offset}");
        }
    }
}
