// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A bulk transfer: a source and a sink.

use airpath_core::{Direction, End, Span, Time};
use airpath_tcp::{Connection, State};

use crate::record::Record;
use crate::tcp::StopAfter;
use crate::tcp::host::Application;

/// Sends until everything is sent or the time is over, then closes or resets the connection.
pub(super) struct Source {
    total_bytes: u64,
    stop_after: StopAfter,
    stop: Time,
    written: bool,
    active: bool,
}

impl Source {
    pub(super) fn new(total_bytes: u64, stop_after: Option<Span>) -> Source {
        Source { total_bytes, stop_after, stop: Time::NEVER, written: false, active: true }
    }
}

impl Application for Source {
    fn begin(&mut self, at: Time) {
        self.stop = self.stop_after.map_or(Time::NEVER, |span| at + span);
    }

    fn work(&mut self, at: Time, connection: &mut Connection, record: &mut Record) -> bool {
        if !self.active {
            return false;
        }
        if at >= self.stop {
            // What is still in its buffer would otherwise be sent after the time is over.
            connection.abort(at);
            self.active = false;
            return true;
        }
        let mut worked = false;
        if !self.written && connection.may_send() {
            // The connection takes all of it, and sends it as it can.
            self.written = true;
            connection.write(at, self.total_bytes);
            if self.total_bytes < u64::MAX {
                connection.close(at);
            }
            worked = true;
        }
        if self.written && connection.queued_bytes() == 0 {
            self.active = false;
        } else if connection.state() == State::Reset {
            record.failure = Some("the connection was reset".into());
            self.active = false;
        }
        worked
    }

    fn next_deadline(&self) -> Option<Time> {
        self.stop.finite().filter(|_| self.active)
    }

    fn is_active(&self) -> bool {
        self.active
    }
}

/// Takes everything until the connection is closed or the time is over.
pub(super) struct Sink {
    direction: Direction,
    left_bytes: u64,
    stop_after: StopAfter,
    stop: Time,
    closed: bool,
    active: bool,
}

impl Sink {
    pub(super) fn new(from: End, total_bytes: u64, stop_after: Option<Span>) -> Sink {
        Sink {
            direction: from.sends(),
            left_bytes: total_bytes,
            stop_after,
            stop: Time::NEVER,
            closed: false,
            active: true,
        }
    }
}

impl Application for Sink {
    fn begin(&mut self, at: Time) {
        self.stop = self.stop_after.map_or(Time::NEVER, |span| at + span);
    }

    fn work(&mut self, at: Time, connection: &mut Connection, record: &mut Record) -> bool {
        let taken = connection.read(at);
        if self.active {
            record.side(self.direction).delivered(at, taken);
            self.left_bytes = self.left_bytes.saturating_sub(taken);
            if self.left_bytes == 0 || at >= self.stop {
                record.complete(at);
                self.active = false;
            }
        }
        // It has nothing to say, so it closes its direction once the other is closed.
        let closes = connection.is_closed_by_peer() && !self.closed;
        if closes {
            self.closed = true;
            connection.close(at);
        }
        taken > 0 || closes
    }

    fn next_deadline(&self) -> Option<Time> {
        self.stop.finite().filter(|_| self.active)
    }

    fn is_active(&self) -> bool {
        self.active
    }
}
