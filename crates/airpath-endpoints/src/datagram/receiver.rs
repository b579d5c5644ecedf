// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiver of datagrams: takes what a kernel would take, and counts.

use airpath_core::{Direction, Payload, Pdu, Time};
use airpath_virtual::{Endpoint, Progress, Sent};
use bytes::Bytes;

use crate::Context;
use crate::datagram::sender::Stream;
use crate::ip::{self, HEADER_BYTES, Protection};
use crate::options::Route;
use crate::record::Results;

/// Receives a stream.
pub(crate) struct Receiver {
    direction: Direction,
    route: Route,
    protection: Protection,
    /// The bytes of every packet of the stream.
    bytes: Bytes,
    results: Results,
}

impl Receiver {
    pub(crate) fn new(stream: &Stream, context: &Context) -> Receiver {
        Receiver {
            direction: stream.from().sends(),
            route: *stream.route(),
            protection: stream.protection(),
            bytes: stream.bytes().clone(),
            results: context.results.clone(),
        }
    }
}

/// The bytes of a packet that an endpoint made.
pub(crate) fn bytes_of(pdu: &Pdu) -> Option<&Bytes> {
    match &pdu.payload {
        Payload::Whole(bytes) => Some(bytes),
        Payload::LengthOnly | Payload::Padded(_) | Payload::Segment { .. } => None,
    }
}

impl Endpoint for Receiver {
    fn start(&mut self, _: Time, _: &mut Sent) {}

    fn receive(&mut self, at: Time, pdu: Pdu, _: &mut Sent) {
        let (verdict, _) = ip::judge(&pdu, &self.bytes, &self.route, self.protection);
        let mut record = self.results.record();
        let side = record.side(self.direction);
        if side.received(at, &pdu, verdict) {
            side.delivered(at, u64::from(pdu.len) - HEADER_BYTES as u64);
        }
    }

    fn advance(&mut self, _: Time, _: &mut Sent) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// It waits for nothing in particular: what it does not get is lost.
    fn progress(&self) -> Progress {
        Progress::Done
    }
}
