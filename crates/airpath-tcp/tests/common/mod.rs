// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Two connections with a line between them: a rate, a delay, a queue, and losses by number.

use std::collections::VecDeque;

use airpath_core::{Span, Time};
use airpath_tcp::{BufferSize, Config, CongestionControl, Connection, Segment, State};

/// Bytes of an IPv4 header.
const IP_BYTES: u64 = 20;

/// Settings that the tests vary little.
pub fn config(congestion_control: CongestionControl) -> Config {
    Config {
        congestion_control,
        maximum_segment_bytes: 1_460,
        receive_buffer: BufferSize::Automatic,
        nagle: true,
        timestamps: true,
        ecn: false,
        initial_sequence: 4_294_960_000,
        initial_timestamp: 77,
        give_up_after: Span::from_secs(900),
    }
}

/// A segment that was sent, and by which end.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    pub at: Time,
    pub by_sender: bool,
    pub segment: Segment,
}

/// Fate of a segment: its number among those of its direction from 0, and what it is.
pub type Fate<'a> = dyn FnMut(bool, u64, &Segment, Time) -> Verdict + 'a;

/// Decision about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passes,
    Lost,
    Marked,
    /// It arrives later by this.
    Late(Span),
}

/// A line between a sender, which opens the connection, and a receiver.
pub struct Line {
    pub rate_bits_per_second: u64,
    pub delay: Span,
    /// Segments that wait for their transmission at most.
    pub queue: usize,
    /// A time in which nothing is transmitted.
    pub stall: (Time, Time),
}

/// Result of a run.
pub struct Run {
    pub sender: Connection,
    pub receiver: Connection,
    pub passed: Vec<Passed>,
    /// Bytes that the receiving application has got, and when it got the last of them.
    pub got: u64,
    pub last: Time,
    pub now: Time,
}

impl Run {
    /// Times in nanoseconds at which the sender sent data, first byte (from 0) and length of it.
    pub fn data(&self) -> Vec<(u64, u64, u32)> {
        let first = self.passed.iter().find(|passed| passed.by_sender).unwrap().segment.sequence.wrapping_add(1);
        let data = self.passed.iter().filter(|passed| passed.by_sender && passed.segment.data_bytes > 0);
        data.map(|passed| {
            let segment = passed.segment;
            (passed.at.nanos(), u64::from(segment.sequence.wrapping_sub(first)), segment.data_bytes)
        })
        .collect()
    }
}

struct Direction {
    free: Time,
    starts: VecDeque<Time>,
    count: u64,
    arrivals: Vec<(Time, u64, Segment)>,
}

impl Direction {
    fn new() -> Direction {
        Direction { free: Time::ZERO, starts: VecDeque::new(), count: 0, arrivals: Vec::new() }
    }

    fn send(&mut self, line: &Line, now: Time, segment: &Segment, verdict: Verdict) {
        let number = self.count;
        self.count += 1;
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= line.queue {
            return;
        }
        let bits = (IP_BYTES + segment.header_bytes() as u64 + u64::from(segment.data_bytes)) * 8;
        let mut start = self.free.max(now);
        if start >= line.stall.0 {
            start = start.max(line.stall.1);
        }
        self.free = start + Span::from_nanos(bits * 1_000_000_000 / line.rate_bits_per_second);
        if start > now {
            self.starts.push_back(start);
        }
        let mut segment = *segment;
        let mut at = self.free + line.delay;
        match verdict {
            Verdict::Lost => return,
            Verdict::Marked => segment.congestion_experienced = true,
            Verdict::Late(span) => at += span,
            Verdict::Passes => {}
        }
        self.arrivals.push((at, number, segment));
    }

    fn next(&self) -> Option<(Time, u64)> {
        self.arrivals.iter().map(|(at, number, _)| (*at, *number)).min()
    }
}

/// Transfers `bytes` in one direction until the connection is closed at both ends, or until `last`.
pub fn transfer(line: &Line, configs: (Config, Config), bytes: u64, last: Time, fate: &mut Fate<'_>) -> Run {
    let mut run = Run {
        sender: Connection::new(configs.0),
        receiver: Connection::new(configs.1),
        passed: Vec::new(),
        got: 0,
        last: Time::ZERO,
        now: Time::ZERO,
    };
    let (mut forth, mut back) = (Direction::new(), Direction::new());
    run.receiver.listen();
    run.sender.connect(Time::ZERO);
    let (mut written, mut closed) = (false, false);
    loop {
        let now = run.now;
        if !written && run.sender.may_send() {
            written = true;
            run.sender.write(now, bytes);
            run.sender.close(now);
        }
        let read = run.receiver.read(now);
        if read > 0 {
            run.got += read;
            run.last = now;
        }
        if !closed && run.receiver.is_closed_by_peer() {
            closed = true;
            run.receiver.close(now);
        }
        for (by_sender, connection, direction) in
            [(true, &mut run.sender, &mut forth), (false, &mut run.receiver, &mut back)]
        {
            for segment in connection.take_segments() {
                let verdict = fate(by_sender, direction.count, &segment, now);
                direction.send(line, now, &segment, verdict);
                run.passed.push(Passed { at: now, by_sender, segment });
            }
        }
        let timers = [run.sender.next_deadline(), run.receiver.next_deadline()];
        let arrivals = [forth.next(), back.next()].map(|next| next.map(|(at, _)| at));
        let Some(next) = timers.into_iter().chain(arrivals).flatten().min() else { break };
        let done = [&run.sender, &run.receiver].iter().all(|end| matches!(end.state(), State::Finished));
        if next > last || done {
            break;
        }
        assert!(next >= now, "time runs backwards: {next:?} after {now:?}");
        run.now = next;
        for (connection, direction) in [(&mut run.receiver, &mut forth), (&mut run.sender, &mut back)] {
            while let Some((at, number)) = direction.next().filter(|(at, _)| *at <= next) {
                let place = direction.arrivals.iter().position(|arrival| (arrival.0, arrival.1) == (at, number));
                let (_, _, segment) = direction.arrivals.remove(place.unwrap());
                connection.receive(next, &segment);
            }
            connection.advance(next);
        }
    }
    run
}
