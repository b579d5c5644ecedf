// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A bulk transfer: a source and a sink.

use airpath_core::{Direction, End, Span, Time};
use smoltcp::socket::tcp::{Socket, State};

use crate::record::Results;
use crate::tcp::StopAfter;
use crate::tcp::host::Application;

/// Sends until everything is sent or the time is over, then closes or resets the connection.
pub(super) struct Source {
    left_bytes: u64,
    stop_after: StopAfter,
    stop: Time,
    was_open: bool,
    closed: bool,
    active: bool,
}

impl Source {
    pub(super) fn new(total_bytes: u64, stop_after: Option<Span>) -> Source {
        Source { left_bytes: total_bytes, stop_after, stop: Time::NEVER, was_open: false, closed: false, active: true }
    }
}

impl Application for Source {
    fn begin(&mut self, at: Time) {
        self.stop = self.stop_after.map_or(Time::NEVER, |span| at + span);
    }

    fn work(&mut self, at: Time, socket: &mut Socket<'static>, results: &Results) -> bool {
        if !self.active {
            return false;
        }
        if at >= self.stop {
            // What is still in its buffer would otherwise be sent after the time is over.
            socket.abort();
            self.active = false;
            return true;
        }
        self.was_open |= socket.may_send();
        let mut worked = false;
        while self.left_bytes > 0 && socket.can_send() {
            let left = usize::try_from(self.left_bytes).unwrap_or(usize::MAX);
            // The buffer holds zeros, and they are as good as anything.
            let Ok(written) = socket.send(|buffer| (buffer.len().min(left), buffer.len().min(left))) else { break };
            self.left_bytes -= written as u64;
            worked |= written > 0;
        }
        if self.left_bytes == 0 && !self.closed {
            self.closed = true;
            socket.close();
            worked = true;
        }
        let all_acknowledged = self.closed && socket.send_queue() == 0;
        if all_acknowledged {
            self.active = false;
        } else if self.was_open && !socket.may_send() && !self.closed {
            results.record().failure = Some("the connection was reset".into());
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
    active: bool,
}

impl Sink {
    pub(super) fn new(from: End, total_bytes: u64, stop_after: Option<Span>) -> Sink {
        Sink { direction: from.sends(), left_bytes: total_bytes, stop_after, stop: Time::NEVER, active: true }
    }
}

impl Application for Sink {
    fn begin(&mut self, at: Time) {
        self.stop = self.stop_after.map_or(Time::NEVER, |span| at + span);
    }

    fn work(&mut self, at: Time, socket: &mut Socket<'static>, results: &Results) -> bool {
        let mut taken = 0;
        while socket.can_recv() {
            let Ok(length) = socket.recv(|buffer| (buffer.len(), buffer.len())) else { break };
            taken += length as u64;
        }
        let mut record = results.record();
        if self.active {
            record.side(self.direction).delivered(at, taken);
            self.left_bytes = self.left_bytes.saturating_sub(taken);
            if self.left_bytes == 0 || at >= self.stop {
                record.complete(at);
                self.active = false;
            }
        }
        drop(record);
        // It has nothing to say, so it closes its direction once the other is closed.
        let closes = socket.state() == State::CloseWait;
        if closes {
            socket.close();
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
