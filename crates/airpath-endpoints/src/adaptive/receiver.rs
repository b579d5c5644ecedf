// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Puts frames together, sees whether they are in time, and reports to the sender.

use std::collections::VecDeque;

use airpath_core::{Direction, Ecn, Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};
use airpath_workload::kinds::AdaptiveMedia;

use super::Session;
use super::nada::{Arrival, DELTA, Observer};
use super::packet::{FEEDBACK_BYTES, Feedback, HEADER_BYTES, Header, Stamp};
use crate::Context;
use crate::datagram::{bytes_of, datagram};
use crate::ip::{self, Protection, Reception};
use crate::record::Results;

/// Number of the latest frames that are still waited for: far more than any link reorders.
const FRAMES_WAITED_FOR: usize = 4_096;
/// Time without packets after which reports stop until the next one.
const SILENCE: Span = Span::from_secs(1);

/// Received parts of a frame.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    frame: u32,
    come: u16,
}

/// The receiving end.
pub(super) struct Receiver {
    session: Session,
    flow: u32,
    direction: Direction,
    results: Results,
    start: Time,
    observer: Observer,
    /// The latest frames of which something came, by number.
    awaited: VecDeque<Awaited>,
    /// The highest packet number that came.
    highest: u64,
    /// The latest packet: its stamp, and when it came.
    latest: Option<(Stamp, Time)>,
    report_at: Option<Time>,
    reports: u32,
}

impl Receiver {
    pub(super) fn new(session: Session, media: &AdaptiveMedia, context: &Context) -> Receiver {
        context.results.record().media.get_or_insert_default().group = 1;
        Receiver {
            session,
            flow: context.flow,
            direction: media.from.sends(),
            results: context.results.clone(),
            start: Time::ZERO,
            observer: Observer::default(),
            awaited: VecDeque::new(),
            highest: 0,
            latest: None,
            report_at: None,
            reports: 0,
        }
    }

    /// The number of the packet with this sequence number that is nearest to the highest that came.
    fn number(&self, sequence: u16) -> u64 {
        let ahead = sequence.wrapping_sub(self.highest as u16) as i16;
        self.highest.saturating_add_signed(i64::from(ahead))
    }

    /// Counts a part of a frame; whether the frame is complete.
    fn part(&mut self, header: &Header) -> bool {
        let place = self.awaited.partition_point(|awaited| awaited.frame < header.frame);
        if self.awaited.get(place).is_none_or(|awaited| awaited.frame != header.frame) {
            self.awaited.insert(place, Awaited { frame: header.frame, come: 0 });
        }
        self.awaited[place].come += 1;
        let is_complete = self.awaited[place].come == header.packets;
        if self.awaited.len() > FRAMES_WAITED_FOR {
            self.awaited.pop_front();
        }
        is_complete
    }

    fn take(&mut self, at: Time, header: &Header, pdu: &Pdu) {
        let number = self.number(header.sequence);
        self.highest = self.highest.max(number);
        let delay = header.sent.until(at);
        let marked = pdu.ecn == Ecn::Ce;
        self.observer.arrive(Arrival { at, number, delay, bytes: pdu.len, marked });
        self.latest = Some((header.sent, at));
        self.report_at.get_or_insert(at + DELTA);
        if self.part(header) {
            let due = self.start + self.session.offset(u64::from(header.frame)) + self.session.playout;
            let mut record = self.results.record();
            record.media.get_or_insert_default().complete(u64::from(header.frame), at <= due, false);
        }
    }

    fn report(&mut self, at: Time, out: &mut Sent) {
        let Some((latest, came)) = self.latest.filter(|(_, came)| at.since(*came) < SILENCE) else {
            self.report_at = None;
            return;
        };
        self.report_at = Some(at + DELTA);
        let Some(signal) = self.observer.signal(at) else { return };
        let feedback =
            Feedback { source: self.session.source, number: self.reports, signal, latest, held: at.since(came) };
        let len = ip::HEADER_BYTES + FEEDBACK_BYTES;
        let route = self.session.route.reversed();
        let identification = self.reports as u16;
        let bytes = ip::write(&route, Protection::Udp, Ecn::NotEct, identification, len, |packet| {
            feedback.write(packet);
        });
        self.reports += 1;
        self.results.record().side(self.direction.opposite()).sent(len as u32);
        let tuple = route.tuple(Protection::Udp.number());
        out.push(datagram(self.flow, tuple, len as u32, ip::HEADER_BYTES, Some(bytes)));
    }
}

impl Endpoint for Receiver {
    fn start(&mut self, at: Time, _: &mut Sent) {
        self.start = at;
    }

    fn receive(&mut self, at: Time, pdu: Pdu, _: &mut Sent) {
        let Some(bytes) = bytes_of(&pdu) else { return };
        let (verdict, packet) = ip::judge(&pdu, bytes, &self.session.route, Protection::Udp);
        let is_fresh = self.results.record().side(self.direction).received(at, &pdu, verdict);
        if !is_fresh || verdict != Reception::Intact {
            return;
        }
        if let Some(header) = Header::read(&packet).filter(|header| header.source == self.session.source) {
            let bytes = u64::from(pdu.len) - (ip::HEADER_BYTES + HEADER_BYTES) as u64;
            self.results.record().side(self.direction).delivered(at, bytes);
            self.take(at, &header, &pdu);
        }
    }

    fn advance(&mut self, at: Time, out: &mut Sent) {
        while let Some(due) = self.report_at.filter(|due| *due <= at) {
            self.report(due, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.report_at
    }

    /// It waits for nothing in particular: what it does not get is lost.
    fn progress(&self) -> Progress {
        Progress::Done
    }
}
