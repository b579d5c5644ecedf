// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The network device of the TCP stack: packets in, packets out, and a count of what is sent twice.

use std::collections::VecDeque;

use bytes::Bytes;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{Ipv4Packet, TcpPacket};

/// Wire of the stack: its packets come from there and go there.
#[derive(Debug)]
pub(super) struct Wire {
    mtu_bytes: usize,
    pub received: VecDeque<Bytes>,
    /// Packets to send, with the length of their headers.
    pub sent: VecDeque<Outgoing>,
    /// The sequence number after the last one sent.
    next_sequence: Option<u32>,
    /// Segments with something that had been sent before.
    pub retransmitted: u64,
}

/// A packet that the stack sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub bytes: Vec<u8>,
    pub header_bytes: usize,
}

impl Wire {
    pub(super) fn new(mtu_bytes: usize) -> Wire {
        Wire { mtu_bytes, received: VecDeque::new(), sent: VecDeque::new(), next_sequence: None, retransmitted: 0 }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        let header_bytes = self.note(&bytes).unwrap_or(bytes.len());
        self.sent.push_back(Outgoing { bytes, header_bytes });
    }

    /// Looks at what is sent; the length of its headers.
    fn note(&mut self, bytes: &[u8]) -> Option<usize> {
        let ip = Ipv4Packet::new_checked(bytes).ok()?;
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        let begin = tcp.seq_number().0 as u32;
        let length = tcp.segment_len() as u32;
        if length > 0 {
            let end = begin.wrapping_add(length);
            match self.next_sequence {
                // Sequence numbers are compared around their wrap.
                Some(next) if (begin.wrapping_sub(next) as i32) < 0 => {
                    self.retransmitted += 1;
                    if (end.wrapping_sub(next) as i32) > 0 {
                        self.next_sequence = Some(end);
                    }
                }
                _ => self.next_sequence = Some(end),
            }
        }
        Some(usize::from(ip.header_len()) + usize::from(tcp.header_len()))
    }
}

pub(super) struct Incoming(Bytes);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

pub(super) struct Sending<'a>(&'a mut Wire);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut bytes = vec![0; length];
        let result = f(&mut bytes);
        self.0.send(bytes);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Incoming, Sending<'_>)> {
        let bytes = self.received.pop_front()?;
        Some((Incoming(bytes), Sending(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu_bytes;
        capabilities
    }
}
