// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A sender of datagrams, and what all of them have in common.

use airpath_core::{Bits, Ecn, End, FiveTuple, Payload, Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::{Bytes, Count};

use crate::Context;
use crate::datagram::pace::Pace;
use crate::datagram::payload::fill;
use crate::error::EndpointError;
use crate::ip::{self, HEADER_BYTES, Protection};
use crate::options::Route;
use crate::record::Results;

/// A row of packets of one size.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    from: End,
    flow: u32,
    size: u32,
    protection: Protection,
    route: Route,
    /// The bytes of every packet: they do not differ, so that nothing depends on who wants them.
    bytes: bytes::Bytes,
    with_bytes: bool,
    sent: u64,
}

impl Stream {
    /// A stream of packets of `size` bytes, of the MTU without one.
    pub(crate) fn new(
        context: &Context,
        from: End,
        size: Option<u64>,
        protection: Protection,
    ) -> Result<Stream, EndpointError> {
        let size = context.options.packet_size("size", size)?;
        let route = Route::new(from, context.flow, &context.options);
        let key = context.key(from, "payload");
        Ok(Stream {
            from,
            flow: context.flow,
            size,
            protection,
            route,
            bytes: ip::write(&route, protection, Ecn::NotEct, 0, size as usize, |payload| fill(key, payload)),
            with_bytes: context.options.bytes,
            sent: 0,
        })
    }

    pub(crate) fn from(&self) -> End {
        self.from
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    pub(crate) fn bits(&self) -> Bits {
        Bits::from_bytes(u64::from(self.size))
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    pub(crate) fn protection(&self) -> Protection {
        self.protection
    }

    pub(crate) fn bytes(&self) -> &bytes::Bytes {
        &self.bytes
    }

    /// The next packet.
    pub(crate) fn packet(&mut self) -> Pdu {
        self.sent += 1;
        let tuple = self.route.tuple(self.protection.number());
        datagram(self.flow, tuple, self.size, HEADER_BYTES, self.with_bytes.then(|| self.bytes.clone()))
    }
}

/// The PDU of a datagram of `len` bytes in all.
pub(crate) fn datagram(flow: u32, tuple: FiveTuple, len: u32, header_len: usize, bytes: Option<bytes::Bytes>) -> Pdu {
    let payload = bytes.map_or(Payload::LengthOnly, Payload::Whole);
    Pdu { len, header_len: header_len as u16, flow, tuple, payload, ..Pdu::default() }
}

/// Limits of a stream, which ends at the first of these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    duration: Option<Span>,
    packets: u64,
    bytes: u64,
}

impl Limits {
    pub(crate) fn new(duration: Option<Span>, packets: Option<Count>, bytes: Option<Bytes>) -> Limits {
        Limits {
            duration,
            packets: packets.map_or(u64::MAX, |packets| packets.0),
            bytes: bytes.map_or(u64::MAX, |bytes| bytes.0),
        }
    }

    /// True if a packet may follow the `sent` of `size` bytes each at `offset` from the beginning.
    pub(crate) fn allow(&self, offset: Span, sent: u64, size: u32) -> bool {
        self.duration.is_none_or(|duration| offset < duration)
            && sent < self.packets
            && sent.saturating_mul(u64::from(size)) < self.bytes
    }
}

/// Sends a stream by a timetable.
pub(crate) struct Sender {
    stream: Stream,
    pace: Pace,
    limits: Limits,
    results: Results,
    start: Time,
    next: Option<Time>,
}

impl Sender {
    pub(crate) fn new(stream: Stream, pace: Pace, limits: Limits, context: &Context) -> Sender {
        Sender { stream, pace, limits, results: context.results.clone(), start: Time::ZERO, next: Some(Time::ZERO) }
    }

    fn plan(&mut self, next: Time) {
        let offset = next.since(self.start);
        self.next = self.limits.allow(offset, self.stream.sent(), self.stream.size()).then_some(next);
    }
}

impl Endpoint for Sender {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.start = at;
        let first = at + self.pace.first();
        self.plan(first);
        self.advance(at, out);
    }

    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}

    fn advance(&mut self, at: Time, out: &mut Sent) {
        while let Some(due) = self.next.filter(|due| *due <= at) {
            out.push(self.stream.packet());
            let mut record = self.results.record();
            record.side(self.stream.from().sends()).sent(self.stream.size());
            drop(record);
            let gap = self.pace.next(self.stream.bits());
            self.plan(due + gap);
        }
        if self.next.is_none() {
            self.results.record().complete(at);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next
    }

    fn progress(&self) -> Progress {
        if self.next.is_some() { Progress::Active } else { Progress::Done }
    }
}
