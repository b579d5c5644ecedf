// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Puts frames together and sees whether they are in time.

use std::collections::VecDeque;

use airpath_core::{Direction, Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::kinds::Media;

use crate::Context;
use crate::datagram::bytes_of;
use crate::ip::{self, HEADER_BYTES, Reception};
use crate::media::Session;
use crate::media::plan::Frame;
use crate::media::rtp::{self, Header};
use crate::record::Results;

/// Number of the latest frames that are still waited for: far more than any link reorders.
const FRAMES_WAITED_FOR: usize = 4_096;

/// Received parts of a frame.
struct Awaited {
    frame: Frame,
    /// The number of its first packet.
    first: u64,
    come: u32,
    damaged: bool,
}

/// The receiving end.
pub(super) struct Receiver {
    session: Session,
    direction: Direction,
    playout: Span,
    results: Results,
    start: Time,
    /// The latest frames, the first of which has the number `gone`.
    awaited: VecDeque<Awaited>,
    gone: u64,
    /// The number of the packet after the last awaited frame.
    planned: u64,
    /// The highest packet number that came.
    highest: u64,
}

impl Receiver {
    pub(super) fn new(session: Session, media: &Media, context: &Context) -> Receiver {
        context.results.record().media.get_or_insert_default().group = media.gop.0;
        Receiver {
            session,
            direction: media.from.sends(),
            playout: media.playout,
            results: context.results.clone(),
            start: Time::ZERO,
            awaited: VecDeque::new(),
            gone: 0,
            planned: 0,
            highest: 0,
        }
    }

    /// The number of the packet with this sequence number that is nearest to the highest that came.
    fn number(&self, sequence: u16) -> u64 {
        let ahead = sequence.wrapping_sub(self.highest as u16) as i16;
        self.highest.saturating_add_signed(i64::from(ahead))
    }

    /// The frame of packet `number`, as a place among the awaited ones.
    fn place(&mut self, number: u64) -> Option<usize> {
        while self.planned <= number {
            let frame = self.session.plan.frame(self.gone + self.awaited.len() as u64);
            self.awaited.push_back(Awaited { frame, first: self.planned, come: 0, damaged: false });
            self.planned += u64::from(frame.packets);
            if self.awaited.len() > FRAMES_WAITED_FOR {
                self.awaited.pop_front();
                self.gone += 1;
            }
        }
        self.awaited.partition_point(|awaited| awaited.first <= number).checked_sub(1)
    }

    /// Takes an RTP packet; whether it was one of ours.
    fn take(&mut self, at: Time, packet: &[u8], damaged: bool) -> bool {
        let Some(header) = Header::read(packet).filter(|header| header.source == self.session.source) else {
            return false;
        };
        let number = self.number(header.sequence);
        let Some(place) = self.place(number) else { return false };
        let awaited = &mut self.awaited[place];
        // A damaged header that nothing covers may say anything.
        if awaited.frame.timestamp != header.timestamp {
            return false;
        }
        self.highest = self.highest.max(number);
        awaited.come += 1;
        awaited.damaged |= damaged;
        if awaited.come == awaited.frame.packets {
            let on_time = at <= self.start + awaited.frame.offset + self.playout;
            let damaged = awaited.damaged;
            let frame = self.gone + place as u64;
            self.results.record().media.get_or_insert_default().complete(frame, on_time, damaged);
        }
        true
    }
}

impl Endpoint for Receiver {
    fn start(&mut self, at: Time, _: &mut Sent) {
        self.start = at;
    }

    fn receive(&mut self, at: Time, pdu: Pdu, _: &mut Sent) {
        let Some(bytes) = bytes_of(&pdu) else { return };
        let (verdict, packet) = ip::judge(&pdu, bytes, &self.session.route, self.session.protection);
        let fresh = self.results.record().side(self.direction).received(at, &pdu, verdict);
        if fresh && self.take(at, &packet, verdict == Reception::Damaged) {
            let bytes = u64::from(pdu.len) - (HEADER_BYTES + rtp::HEADER_BYTES) as u64;
            self.results.record().side(self.direction).delivered(at, bytes);
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
