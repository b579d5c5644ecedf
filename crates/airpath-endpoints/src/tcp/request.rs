// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests and responses: a client that asks and waits, and a server that answers.

use airpath_core::{Direction, Span, Time};
use airpath_tcp::{Connection, State};
use airpath_workload::kinds::Request;

use crate::record::Record;
use crate::report::RequestReport;
use crate::tcp::host::Application;

/// Stage of the client's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The next request may go out at this instant.
    Waiting(Time),
    /// A request is written, and its response is read.
    Asking { since: Time, response_left: u64 },
    /// All is done.
    Done,
}

/// Asks, waits for the response, thinks, and asks again.
pub(super) struct Client {
    left: u64,
    request_bytes: u64,
    response_bytes: u64,
    think: Span,
    stage: Stage,
    was_open: bool,
}

impl Client {
    pub(super) fn new(request: &Request) -> Client {
        Client {
            left: request.count.0,
            request_bytes: request.request.0,
            response_bytes: request.response.0,
            think: request.think,
            stage: Stage::Waiting(Time::ZERO),
            was_open: false,
        }
    }

    /// One step; whether there was one to take.
    fn step(&mut self, at: Time, connection: &mut Connection, record: &mut Record) -> bool {
        match self.stage {
            Stage::Waiting(until) if at >= until && connection.may_send() => {
                self.left -= 1;
                self.stage = Stage::Asking { since: at, response_left: self.response_bytes };
                connection.write(at, self.request_bytes);
                true
            }
            Stage::Asking { since, response_left } => {
                let taken = connection.read(at);
                let response_still = response_left.saturating_sub(taken);
                record.side(Direction::Downlink).delivered(at, taken);
                if response_still > 0 {
                    self.stage = Stage::Asking { since, response_left: response_still };
                    return taken > 0;
                }
                let report = record.requests.get_or_insert_with(RequestReport::default);
                report.completed += 1;
                report.durations_ns.push(at.since(since).nanos());
                if self.left > 0 {
                    self.stage = Stage::Waiting(at + self.think);
                } else {
                    self.stage = Stage::Done;
                    record.complete(at);
                    connection.close(at);
                }
                true
            }
            Stage::Waiting(_) | Stage::Done => false,
        }
    }
}

impl Application for Client {
    fn begin(&mut self, at: Time) {
        self.stage = Stage::Waiting(at);
    }

    fn work(&mut self, at: Time, connection: &mut Connection, record: &mut Record) -> bool {
        self.was_open |= connection.may_send();
        if connection.state() == State::Reset && self.stage != Stage::Done {
            record.failure = Some("the connection was reset".into());
            self.stage = Stage::Done;
        }
        self.step(at, connection, record)
    }

    fn next_deadline(&self) -> Option<Time> {
        match self.stage {
            // Before the connection stands there is nothing to wake up for.
            Stage::Waiting(until) if self.was_open => Some(until),
            _ => None,
        }
    }

    fn is_active(&self) -> bool {
        self.stage != Stage::Done
    }
}

/// Answers every request once it is there in full.
pub(super) struct Server {
    request_bytes: u64,
    response_bytes: u64,
    /// Bytes of the request that has begun to come.
    come: u64,
    closed: bool,
}

impl Server {
    pub(super) fn new(request: &Request) -> Server {
        Server { request_bytes: request.request.0, response_bytes: request.response.0, come: 0, closed: false }
    }
}

impl Application for Server {
    fn begin(&mut self, _: Time) {}

    fn work(&mut self, at: Time, connection: &mut Connection, record: &mut Record) -> bool {
        let taken = connection.read(at);
        record.side(Direction::Uplink).delivered(at, taken);
        self.come += taken;
        let owed = self.come / self.request_bytes * self.response_bytes;
        self.come %= self.request_bytes;
        if owed > 0 {
            connection.write(at, owed);
        }
        let worked = taken > 0;
        let closes = connection.is_closed_by_peer() && !self.closed;
        if closes {
            self.closed = true;
            connection.close(at);
        }
        worked || closes
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// It is there to answer.
    fn is_active(&self) -> bool {
        false
    }
}
