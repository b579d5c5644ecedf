// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A source that keeps the link's queue from ever being empty.
//!
//! It measures how fast its packets arrive at the far end and sends twice as fast, with at most a
//! window of packets inside the link. So a queue with a limit is always full, and one without holds
//! the window less what the link has in transit; and no link is offered more than about twice what it
//! carries. What arrives is known at once, as no real sender would: this is a load, not a protocol.
//!
//! It begins with few packets inside, and two more for each that has arrived. When nothing arrives
//! for a second, or for as long as eight packets took before, what is inside counts as lost and it
//! begins again, with twice the patience until something does arrive: so a slow link is not flooded,
//! and a link that was interrupted is found again.

use std::collections::VecDeque;

use airpath_core::{Pdu, Span, Time};
use airpath_virtual::{Endpoint, Progress, Sent};

use crate::Context;
use crate::datagram::sender::{Limits, Stream};
use crate::record::Results;

/// The first packets, and those after a pause, are sent as if the link carried one in twice this.
const FIRST_INTERVAL: Span = Span::from_millis(1);
/// Number of packets that may be inside at first, and of additional ones for each that has arrived.
const FIRST_PACKETS: u64 = 10;
const MORE_PACKETS: u64 = 2;
/// Time without any arrival after which the source begins again.
const PATIENCE: Span = Span::from_secs(1);
/// The same, in intervals between arrivals.
const PATIENCE_INTERVALS: u64 = 8;
/// The interval is an average over about so many arrivals.
const SMOOTHING: u64 = 8;

/// Sends as fast as the link takes it.
pub(crate) struct Saturating {
    stream: Stream,
    limits: Limits,
    window: u64,
    results: Results,
    start: Time,
    next: Option<Time>,
    /// The time between arrivals, smoothed.
    arrival_interval_ns: u64,
    /// Send times of the packets that are inside.
    inside: VecDeque<Time>,
    /// Number of arrivals when it began (again).
    arrived_before: u64,
    patience: Span,
    /// Number of arrivals at the last look, and the time of their last change.
    arrived: u64,
    changed: Time,
}

impl Saturating {
    pub(crate) fn new(stream: Stream, limits: Limits, window: u64, context: &Context) -> Saturating {
        Saturating {
            stream,
            limits,
            window,
            results: context.results.clone(),
            start: Time::ZERO,
            next: Some(Time::ZERO),
            arrival_interval_ns: 2 * FIRST_INTERVAL.nanos(),
            inside: VecDeque::new(),
            arrived_before: 0,
            patience: PATIENCE,
            arrived: 0,
            changed: Time::ZERO,
        }
    }

    /// Looks at what has arrived; whether one more packet may be inside the link.
    fn has_room(&mut self, at: Time) -> bool {
        let mut record = self.results.record();
        let (arrived, latest) = record.side(self.stream.from().sends()).arrivals();
        drop(record);
        let fresh = arrived - self.arrived;
        if let Some(interval) = at.since(self.changed).nanos().checked_div(fresh) {
            let old = self.arrival_interval_ns * (SMOOTHING - 1);
            self.arrival_interval_ns = ((old + interval) / SMOOTHING).max(2);
            (self.arrived, self.changed) = (arrived, at);
            self.patience = PATIENCE.max(Span::from_nanos(PATIENCE_INTERVALS * self.arrival_interval_ns));
            // What was sent before something that has arrived has arrived too, or is lost.
            while self.inside.front().is_some_and(|sent| Some(*sent) <= latest) {
                self.inside.pop_front();
            }
        } else if at.since(self.changed) >= self.patience {
            self.inside.clear();
            (self.arrived_before, self.changed, self.patience) = (arrived, at, self.patience + self.patience);
        }
        let room = FIRST_PACKETS + MORE_PACKETS * (arrived - self.arrived_before);
        (self.inside.len() as u64) < room.min(self.window)
    }
}

impl Endpoint for Saturating {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.results.record().start = Some(at);
        self.start = at;
        self.changed = at;
        self.next = Some(at);
        self.advance(at, out);
    }

    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}

    fn advance(&mut self, at: Time, out: &mut Sent) {
        while let Some(due) = self.next.filter(|due| *due <= at) {
            if !self.limits.allow(due.since(self.start), self.stream.sent(), self.stream.size()) {
                self.next = None;
                self.results.record().complete(at);
                break;
            }
            if self.has_room(at) {
                self.inside.push_back(at);
                out.push(self.stream.packet());
                let mut record = self.results.record();
                record.side(self.stream.from().sends()).sent(self.stream.size());
            }
            self.next = Some(due + Span::from_nanos(self.arrival_interval_ns / 2));
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next
    }

    fn progress(&self) -> Progress {
        if self.next.is_some() { Progress::Active } else { Progress::Done }
    }
}
