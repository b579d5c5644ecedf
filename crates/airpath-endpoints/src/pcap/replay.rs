// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sends the packets of one end, and counts those of the other.

use std::collections::VecDeque;

use airpath_core::{End, Payload, Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};

use crate::Context;
use crate::ip::Reception;
use crate::pcap::packet::Captured;
use crate::record::Results;

/// A packet to send.
pub(super) struct Arrival {
    offset: Span,
    pdu: Pdu,
}

impl Arrival {
    pub(super) fn new(offset: Span, packet: &Captured, context: &Context) -> Arrival {
        let payload = match context.options.bytes {
            false => Payload::LengthOnly,
            true => {
                let mut bytes = packet.bytes.clone();
                bytes.resize(packet.len as usize, 0);
                Payload::Whole(bytes.into())
            }
        };
        let Captured { len, header_len, class, ecn, tuple, .. } = *packet;
        let flow = context.flow;
        Arrival { offset, pdu: Pdu { len, header_len, class, ecn, flow, tuple, payload, ..Pdu::default() } }
    }

    pub(super) fn offset(&self) -> Span {
        self.offset
    }
}

/// One end of a replayed capture.
pub(super) struct Replay {
    end: End,
    left: VecDeque<Arrival>,
    ends_last: bool,
    results: Results,
    start: Time,
}

impl Replay {
    /// The end that sends `arrivals`; with `ends_last`, the flow is over when it has sent the last.
    pub(super) fn new(end: End, arrivals: Vec<Arrival>, ends_last: bool, context: &Context) -> Replay {
        Replay { end, left: arrivals.into(), ends_last, results: context.results.clone(), start: Time::ZERO }
    }
}

impl Endpoint for Replay {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.start = at;
        self.advance(at, out);
    }

    fn receive(&mut self, at: Time, pdu: Pdu, _: &mut Sent) {
        let verdict = match &pdu.damage {
            None => Reception::Intact,
            Some(damage) if damage.truncated_to.is_some() => Reception::Rejected,
            Some(_) => Reception::Damaged,
        };
        let mut record = self.results.record();
        let side = record.side(self.end.other().sends());
        if side.received(at, &pdu, verdict) {
            side.delivered(at, u64::from(pdu.len.saturating_sub(u32::from(pdu.header_len))));
        }
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        let start = self.start;
        let mut record = self.results.record();
        while let Some(arrival) = self.left.pop_front_if(|arrival| start + arrival.offset <= at) {
            record.side(self.end.sends()).sent(arrival.pdu.len);
            out.push(arrival.pdu);
        }
        if self.ends_last && self.left.is_empty() {
            record.complete(at);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.left.front().map(|arrival| self.start + arrival.offset)
    }

    fn progress(&self) -> Progress {
        if self.left.is_empty() { Progress::Done } else { Progress::Active }
    }
}
