// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests and responses: a client that asks and waits, and a server that answers.

use airpath_core::{Direction, Span, Time};
use airpath_workload::kinds::Request;
use smoltcp::socket::tcp::{Socket, State};

use crate::record::Results;
use crate::report::RequestReport;
use crate::tcp::host::Application;

/// Writes up to `left` bytes; how many are left then.
fn write(socket: &mut Socket<'static>, left: u64) -> u64 {
    let mut left = left;
    while left > 0 && socket.can_send() {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        match socket.send(|buffer| (buffer.len().min(most), buffer.len().min(most))) {
            Ok(written) if written > 0 => left -= written as u64,
            _ => break,
        }
    }
    left
}

/// Reads all there is.
fn read(socket: &mut Socket<'static>) -> u64 {
    let mut taken = 0;
    while socket.can_recv() {
        match socket.recv(|buffer| (buffer.len(), buffer.len())) {
            Ok(length) => taken += length as u64,
            Err(_) => break,
        }
    }
    taken
}

/// Stage of the client's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The next request may go out at this instant.
    Waiting(Time),
    /// A request is being written, and then its response read.
    Asking { since: Time, request_left: u64, response_left: u64 },
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
    fn step(&mut self, at: Time, socket: &mut Socket<'static>, results: &Results) -> bool {
        match self.stage {
            Stage::Waiting(until) if at >= until && socket.may_send() => {
                self.left -= 1;
                let (request_left, response_left) = (self.request_bytes, self.response_bytes);
                self.stage = Stage::Asking { since: at, request_left, response_left };
                true
            }
            Stage::Asking { since, request_left, response_left } => {
                let request_still = write(socket, request_left);
                let taken = read(socket);
                let response_still = response_left.saturating_sub(taken);
                let mut record = results.record();
                record.side(Direction::Downlink).delivered(at, taken);
                if response_still > 0 {
                    self.stage = Stage::Asking { since, request_left: request_still, response_left: response_still };
                    return request_still < request_left || taken > 0;
                }
                let report = record.requests.get_or_insert_with(RequestReport::default);
                report.completed += 1;
                report.durations_ns.push(at.since(since).nanos());
                if self.left > 0 {
                    self.stage = Stage::Waiting(at + self.think);
                } else {
                    self.stage = Stage::Done;
                    record.complete(at);
                    socket.close();
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

    fn work(&mut self, at: Time, socket: &mut Socket<'static>, results: &Results) -> bool {
        self.was_open |= socket.may_send();
        if self.was_open && !socket.may_send() && self.stage != Stage::Done {
            results.record().failure = Some("the connection was reset".into());
            self.stage = Stage::Done;
        }
        self.step(at, socket, results)
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
    /// Bytes of responses that are not written yet.
    owed: u64,
}

impl Server {
    pub(super) fn new(request: &Request) -> Server {
        Server { request_bytes: request.request.0, response_bytes: request.response.0, come: 0, owed: 0 }
    }
}

impl Application for Server {
    fn begin(&mut self, _: Time) {}

    fn work(&mut self, at: Time, socket: &mut Socket<'static>, results: &Results) -> bool {
        let taken = read(socket);
        results.record().side(Direction::Uplink).delivered(at, taken);
        self.come += taken;
        self.owed += self.come / self.request_bytes * self.response_bytes;
        self.come %= self.request_bytes;
        let owed = write(socket, self.owed);
        let worked = taken > 0 || owed < self.owed;
        self.owed = owed;
        let closes = socket.state() == State::CloseWait && self.owed == 0;
        if closes {
            socket.close();
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
