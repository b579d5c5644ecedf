//! From packets read to PDUs offered.

use airpath_core::{Ecn, Origin, Payload, Pdu, PduId, Time};
use bytes::Bytes;

use super::layout;
use crate::packet_bytes::{ChecksumWork, Headers, Segmenter, flow_number};
use crate::ports::{OffloadHeader, Received};

/// A packet, or one of the segments of a super-packet, on its way to the machine.
#[derive(Debug)]
pub struct Arrival {
    /// When it is offered.
    pub at: Time,
    /// When it arrived, by the kernel's stamp.
    pub kernel_at: Option<Time>,
    /// Which port: 0 the client's, 1 the server's.
    pub side: u8,
    /// The packet.
    pub bytes: Bytes,
    /// What is unfinished in it.
    pub offload: OffloadHeader,
    /// What its headers say.
    pub headers: Headers,
}

impl Arrival {
    /// What `received` is, or the packet back if it is not IP, contradicts itself, or is a
    /// super-packet that cannot be cut.
    pub fn read(received: Received, side: u8, at: Time, kernel_at: Option<Time>) -> Result<Arrival, Bytes> {
        let bytes = received.bytes.freeze();
        let offload = received.offload;
        let Some(headers) = Headers::read(&bytes) else { return Err(bytes) };
        if offload.is_super_packet() && Segmenter::new(&bytes, &offload, ChecksumWork::Leave).is_err() {
            return Err(bytes);
        }
        Ok(Arrival { at, kernel_at, side, bytes, offload, headers })
    }

    /// How many PDUs it is.
    pub fn segments(&self) -> u16 {
        if self.offload.is_super_packet() {
            let payload = self.bytes.len().saturating_sub(self.headers.bytes());
            payload.div_ceil(usize::from(self.offload.segment_bytes)).max(1) as u16
        } else {
            1
        }
    }

    /// The bytes of its first PDU, which is as long as any.
    pub fn first_bytes(&self) -> u32 {
        let whole = self.bytes.len();
        if !self.offload.is_super_packet() {
            return whole as u32;
        }
        whole.min(self.headers.bytes() + usize::from(self.offload.segment_bytes)) as u32
    }

    /// Its PDU number `index`.
    pub fn pdu(&self, index: u16, id: PduId) -> Pdu {
        let header = self.headers.bytes();
        let (len, payload) = if self.offload.is_super_packet() {
            let segment = usize::from(self.offload.segment_bytes);
            let from = header + usize::from(index) * segment;
            (header + self.bytes.len().saturating_sub(from).min(segment), self.segment(index))
        } else if self.offload.needs_checksum {
            (self.bytes.len(), self.segment(index))
        } else {
            (self.bytes.len(), Payload::Whole(self.bytes.clone()))
        };
        let flow = self.headers.flow_hash(&self.bytes);
        Pdu {
            id,
            arrived: self.at,
            len: len as u32,
            header_len: header as u16,
            class: self.headers.dscp(),
            ecn: Ecn::of(self.headers.traffic_class),
            origin: Origin::User,
            flow: flow_number(flow),
            tuple: self.headers.tuple(&self.bytes),
            copied: false,
            damage: None,
            payload,
        }
    }

    fn segment(&self, index: u16) -> Payload {
        Payload::Segment { whole: self.bytes.clone(), index, layout: layout::pack(&self.offload) }
    }
}
