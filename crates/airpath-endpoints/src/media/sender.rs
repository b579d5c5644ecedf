// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sends frames when they are captured.

use airpath_core::{Direction, Ecn, Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::kinds::Media;

use crate::Context;
use crate::datagram::datagram;
use crate::ip;
use crate::media::Session;
use crate::media::plan::Frame;
use crate::media::rtp::{HEADER_BYTES, Header};
use crate::record::Results;

/// The sending end.
pub(super) struct Sender {
    session: Session,
    flow: u32,
    direction: Direction,
    frames: u64,
    last: Time,
    stop_after: Option<Span>,
    results: Results,
    start: Time,
    started: bool,
    next: Option<(Time, Frame)>,
    number: u64,
    sequence: u16,
}

impl Sender {
    pub(super) fn new(session: Session, media: &Media, context: &Context) -> Sender {
        Sender {
            session,
            flow: context.flow,
            direction: media.from.sends(),
            frames: media.frames.map_or(u64::MAX, |frames| frames.0),
            last: Time::NEVER,
            stop_after: media.duration,
            results: context.results.clone(),
            start: Time::ZERO,
            started: false,
            next: None,
            number: 0,
            sequence: 0,
        }
    }

    fn plan(&mut self) {
        let frame = self.session.plan.frame(self.number);
        let due = self.start + frame.offset;
        self.next = (self.number < self.frames && due < self.last).then_some((due, frame));
    }

    fn send(&mut self, frame: &Frame, out: &mut Sent) {
        let results = self.results.clone();
        let mut record = results.record();
        let most = self.session.plan.payload_bytes();
        for index in 0..frame.packets {
            let payload_bytes = most.min(frame.bytes - index * most);
            let header = Header {
                marker: index + 1 == frame.packets,
                sequence: self.sequence,
                timestamp: frame.timestamp,
                source: self.session.source,
            };
            let header_bytes = ip::HEADER_BYTES + HEADER_BYTES;
            let len = header_bytes + payload_bytes as usize;
            let Session { route, protection, payload, .. } = &self.session;
            let bytes = ip::write(route, *protection, Ecn::NotEct, self.sequence, len, |place| {
                header.write(place);
                place[HEADER_BYTES..].copy_from_slice(&payload[..payload_bytes as usize]);
            });
            self.sequence = self.sequence.wrapping_add(1);
            record.side(self.direction).sent(len as u32);
            let tuple = route.tuple(protection.number());
            out.push(datagram(self.flow, tuple, len as u32, header_bytes, Some(bytes)));
        }
        record.media.get_or_insert_default().sent += 1;
    }
}

impl Endpoint for Sender {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.start = at;
        self.started = true;
        self.last = self.stop_after.map_or(Time::NEVER, |span| at + span);
        self.plan();
        self.advance(at, out);
    }

    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}

    fn advance(&mut self, at: Time, out: &mut Sent) {
        while let Some((_, frame)) = self.next.filter(|(due, _)| *due <= at) {
            self.send(&frame, out);
            self.number += 1;
            self.plan();
        }
        if self.next.is_none() {
            self.results.record().complete(at);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next.map(|(due, _)| due)
    }

    fn progress(&self) -> Progress {
        if self.started && self.next.is_none() { Progress::Done } else { Progress::Active }
    }
}
