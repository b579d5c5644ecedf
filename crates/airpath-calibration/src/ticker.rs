// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A machine from which packets leave by themselves, with which the loop is measured.

use airpath_core::draw::{DrawKey, DrawScope};
use airpath_core::{Command, CommandError, Cx, Direction, Item, Machine, Payload, Pdu, PortId, Seed, Span, Time};
use airpath_packet::checksum;
use bytes::Bytes;
use std::net::SocketAddrV4;

/// Least interval between two packets.
const LEAST_INTERVAL_NS: u64 = 1_000_000;
/// Greatest random addition to the interval, uniformly distributed, so that packets keep no step with the
/// machine's own ticks.
const SPREAD_NS: u64 = 3_000_000;
/// Payload of a packet, in bytes.
const PAYLOAD_BYTES: usize = 100;
const IP_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;
const UDP_PROTOCOL: u8 = 17;
const HOPS_TO_LIVE: u8 = 64;

/// Sends copies of one packet to the client, every 2.5 ms in the mean.
pub struct Ticker {
    packet: Bytes,
    key: DrawKey,
    step: u64,
    next: Time,
}

impl Ticker {
    /// Begins with the first packet one interval after the beginning of the run.
    pub fn new(packet: Bytes) -> Ticker {
        let scope = DrawScope { hop: "calibration", direction: Direction::Downlink, role: "ticker", instance: 0 };
        let mut ticker = Ticker { packet, key: DrawKey::new(Seed(1), &scope), step: 0, next: Time::ZERO };
        ticker.next = Time::ZERO + ticker.interval();
        ticker
    }

    fn interval(&mut self) -> Span {
        self.step += 1;
        Span::from_nanos(LEAST_INTERVAL_NS + self.key.below(self.step, 0, SPREAD_NS))
    }
}

impl Machine for Ticker {
    /// Discards packets of the endpoints.
    fn offer(&mut self, _: Time, _: PortId, _: Item, _: &mut Cx<'_>) {}

    fn control(&mut self, _: Time, _: &Command, _: &mut Cx<'_>) -> Result<(), CommandError> {
        Err(CommandError::Mismatch("it has no parameters".into()))
    }

    fn advance(&mut self, to: Time, cx: &mut Cx<'_>) {
        while self.next <= to {
            let pdu = Pdu {
                id: self.step,
                arrived: self.next,
                len: self.packet.len() as u32,
                header_len: (IP_HEADER_BYTES + UDP_HEADER_BYTES) as u16,
                payload: Payload::Whole(self.packet.clone()),
                ..Pdu::default()
            };
            cx.emit(self.next, PortId::CLIENT, Item::Pdu(pdu));
            let interval = self.interval();
            self.next += interval;
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        Some(self.next)
    }

    fn held(&self) -> u64 {
        0
    }

    fn never_idle(&self) -> bool {
        true
    }
}

/// A UDP datagram over IPv4 (RFC 768, RFC 791); without a checksum of its own, which IPv4 allows.
pub fn datagram(from: SocketAddrV4, to: SocketAddrV4) -> Bytes {
    let length = IP_HEADER_BYTES + UDP_HEADER_BYTES + PAYLOAD_BYTES;
    let mut packet = Vec::with_capacity(length);
    packet.extend([0x45, 0]);
    packet.extend((length as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, HOPS_TO_LIVE, UDP_PROTOCOL, 0, 0]);
    packet.extend(from.ip().octets());
    packet.extend(to.ip().octets());
    let header_checksum = checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&header_checksum.to_be_bytes());
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend(((UDP_HEADER_BYTES + PAYLOAD_BYTES) as u16).to_be_bytes());
    packet.resize(length, 0);
    packet.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Outputs;

    #[test]
    fn packets_leave_when_they_are_due_however_it_is_driven() {
        let emitted = |steps: u64| {
            let mut ticker = Ticker::new(Bytes::from_static(b"x"));
            let mut outputs = Outputs::default();
            for step in 1..=steps {
                ticker.advance(Time::from_nanos(1_000_000_000 / steps * step), &mut Cx::new(&mut outputs));
            }
            outputs.emissions.iter().map(|emission| emission.at).collect::<Vec<_>>()
        };
        assert_eq!(emitted(1), emitted(1000));
        assert!((350..450).contains(&emitted(1).len()), "{}", emitted(1).len());
    }

    #[test]
    fn the_header_is_whole() {
        let packet = datagram("10.0.0.1:5".parse().unwrap(), "10.0.0.2:6".parse().unwrap());
        assert_eq!(packet.len(), 128);
        assert_eq!(checksum::fold(checksum::sum(&packet[..20])), 0xffff);
        assert_eq!(&packet[20..28], [0, 5, 0, 6, 0, 108, 0, 0]);
    }
}
