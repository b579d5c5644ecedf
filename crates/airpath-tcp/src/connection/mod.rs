// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A connection: its opening and closing, and the two halves between them.

mod opening;

use airpath_core::{Span, Time};

use crate::congestion::CongestionControl;
use crate::receiver::{Arrival, BufferSize, Receiver};
use crate::rtt::INITIAL_TIMEOUT_MS;
use crate::segment::{Flags, MOST_SACK_BLOCKS, SackBlocks, Segment, TIMESTAMPS_BYTES};
use crate::sender::{Acknowledgement, CongestionState, Sender, SenderCounts, Transmission};
use crate::sequence::{Position, number, position};

const SACK_BASE_BYTES: u32 = 4;
const SACK_BLOCK_BYTES: u32 = 8;

/// Settings of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Congestion control of what it sends.
    pub congestion_control: CongestionControl,
    /// The largest segment that it takes and sends: data and options.
    pub maximum_segment_bytes: u16,
    /// The receive buffer.
    pub receive_buffer: BufferSize,
    /// True if small segments wait for the acknowledgement of others (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// True if its segments bear timestamps, as those of the other end do (RFC 7323).
    pub timestamps: bool,
    /// True if it asks for ECN (RFC 3168), or agrees to it.
    pub ecn: bool,
    /// The initial sequence number, and the clock of the timestamps at time 0.
    pub initial_sequence: u32,
    /// Clock of the timestamps at time 0.
    pub initial_timestamp: u32,
    /// Time without an answer after which it gives up.
    pub give_up_after: Span,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has happened.
    Closed,
    /// It waits for a SYN.
    Listening,
    /// It has sent a SYN.
    SynSent,
    /// It has answered a SYN.
    SynReceived,
    /// It is open, at least in one direction.
    Established,
    /// Both directions are closed.
    Finished,
    /// One of the ends has reset it.
    Reset,
    /// Nothing came from the other end for too long.
    GivenUp,
}

/// State of the sending half, as `ss -ti` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurements {
    /// The congestion window in segments.
    pub window: u64,
    /// The slow start threshold in segments; none before the first loss.
    pub threshold: Option<u64>,
    /// Segments under way.
    pub in_flight: u64,
    /// State of congestion.
    pub state: CongestionState,
    /// The smoothed round-trip time in microseconds.
    pub round_trip_us: Option<u64>,
    /// The least round-trip time in microseconds.
    pub least_round_trip_us: Option<u64>,
    /// The retransmission timeout in milliseconds.
    pub timeout_ms: u64,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    state: State,
    sender: Sender,
    receiver: Receiver,
    peer_initial: u32,
    peer_scale: u8,
    /// The clock of the other end to be echoed.
    recent_stamp: u32,
    last_echo: u32,
    opening_sent: Time,
    opening_due: Option<Time>,
    opening_timeouts: u32,
    opening_timeout_ms: u64,
    /// Time since which an answer is due.
    waiting_since: Option<Time>,
    echo_congestion: bool,
    saw_capable: bool,
    out: Vec<Segment>,
}

impl Connection {
    /// A connection that does nothing yet.
    pub fn new(config: Config) -> Connection {
        let stamps = if config.timestamps { TIMESTAMPS_BYTES } else { 0 };
        let segment = u32::from(config.maximum_segment_bytes).saturating_sub(stamps).max(8);
        Connection {
            sender: Sender::new(config.congestion_control, segment, config.nagle, config.initial_timestamp),
            receiver: Receiver::new(config.receive_buffer, u64::from(config.maximum_segment_bytes).max(8)),
            config,
            state: State::Closed,
            peer_initial: 0,
            peer_scale: 0,
            recent_stamp: 0,
            last_echo: 0,
            opening_sent: Time::ZERO,
            opening_due: None,
            opening_timeouts: 0,
            opening_timeout_ms: INITIAL_TIMEOUT_MS,
            waiting_since: None,
            echo_congestion: false,
            saw_capable: false,
            out: Vec::new(),
        }
    }

    /// Waits for the other end to open the connection.
    pub fn listen(&mut self) {
        self.state = State::Listening;
    }

    /// Opens the connection.
    pub fn connect(&mut self, now: Time) {
        self.state = State::SynSent;
        self.send_opening(now);
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// True if data may be written and goes out.
    pub fn may_send(&self) -> bool {
        self.state == State::Established
    }

    /// Takes `bytes` more to be sent, from now on or when the connection is open.
    pub fn write(&mut self, now: Time, bytes: u64) {
        let was_idle = self.sender.board.is_empty() && self.state == State::Established;
        if was_idle {
            self.sender.restart_after_idle(now);
        }
        self.sender.write(bytes);
        self.push(now);
    }

    /// Closes the direction of sending, after all that was written.
    pub fn close(&mut self, now: Time) {
        self.sender.close();
        self.push(now);
    }

    /// Resets the connection.
    pub fn abort(&mut self, now: Time) {
        if matches!(self.state, State::SynReceived | State::Established) {
            let segment = Segment { flags: Flags::RST.with(Flags::ACK), ..self.header(now, self.sender.next) };
            self.out.push(segment);
        }
        self.end(State::Reset);
    }

    /// Bytes written and not acknowledged.
    pub fn queued_bytes(&self) -> u64 {
        self.sender.queued()
    }

    /// True if the other end has closed its direction and all of that is there.
    pub fn is_closed_by_peer(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Reads all that is there; the number of bytes.
    pub fn read(&mut self, now: Time) -> u64 {
        let bytes = self.receiver.read(now);
        self.acknowledge_if_due(now);
        bytes
    }

    /// Numbers that the sending half has counted.
    pub fn counts(&self) -> SenderCounts {
        let mut counts = self.sender.counts;
        counts.retransmissions += u64::from(self.opening_timeouts);
        counts
    }

    /// State of the sending half.
    pub fn measurements(&self) -> Measurements {
        let threshold = self.sender.window.threshold;
        Measurements {
            window: self.sender.window.segments(),
            threshold: (threshold < crate::congestion::NO_THRESHOLD).then_some(threshold),
            in_flight: self.sender.board.in_flight(),
            state: self.sender.state,
            round_trip_us: self.sender.rtt.smoothed_us(),
            least_round_trip_us: self.sender.rtt.minimum_us(),
            timeout_ms: self.sender.rtt.timeout_ms(),
        }
    }

    /// True if something is to be sent.
    pub fn has_segments(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes what is to be sent, in order.
    pub fn take_segments(&mut self) -> std::vec::Drain<'_, Segment> {
        self.out.drain(..)
    }

    /// Time of the next timer.
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.is_alive() {
            return None;
        }
        let give_up = self.waiting_since.map(|since| since + self.config.give_up_after);
        let timers = [self.opening_due, self.sender.due(), self.receiver.acknowledger.due(), give_up];
        timers.into_iter().map(|due| due.unwrap_or(Time::NEVER)).fold(Time::NEVER, Time::min).finite()
    }

    /// Runs the timers due at or before `now`.
    pub fn advance(&mut self, now: Time) {
        if !self.is_alive() {
            return;
        }
        if self.waiting_since.is_some_and(|since| since + self.config.give_up_after <= now) {
            self.end(State::GivenUp);
            return;
        }
        if self.opening_due.is_some_and(|due| due <= now) {
            self.repeat_opening(now);
        }
        if self.sender.due().is_some_and(|due| due <= now) {
            self.sender.timer(now);
            self.flush(now);
        }
        self.receiver.acknowledger.advance(now);
        self.acknowledge_if_due(now);
    }

    fn is_alive(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived | State::Established)
    }

    fn end(&mut self, state: State) {
        self.state = state;
        self.waiting_since = None;
        self.opening_due = None;
    }

    /// Takes a segment that arrives.
    pub fn receive(&mut self, now: Time, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            if self.is_alive() {
                self.end(State::Reset);
            }
            return;
        }
        match self.state {
            State::Listening if segment.flags.has(Flags::SYN) => self.answer(now, segment),
            State::SynSent => self.opened(now, segment),
            State::SynReceived => self.confirmed(now, segment),
            State::Established => self.take(now, segment),
            // The last acknowledgement was lost.
            State::Finished if segment.flags.has(Flags::FIN) => self.acknowledge(now),
            _ => {}
        }
    }

    fn take(&mut self, now: Time, segment: &Segment) {
        if segment.flags.has(Flags::SYN) {
            // The acknowledgement of the answer was lost.
            self.acknowledge(now);
            return;
        }
        let near = self.receiver.next;
        let begin = position(self.peer_initial, segment.sequence, near);
        if let Some((value, _)) = segment.timestamps
            && begin <= self.receiver.buffer.acknowledged
        {
            self.recent_stamp = value;
        }
        let has_data = segment.data_bytes > 0 || segment.flags.has(Flags::FIN);
        if segment.flags.has(Flags::ACK) {
            self.take_acknowledgement(now, segment, begin, has_data);
        }
        if self.config.ecn {
            self.take_mark(segment, has_data);
        }
        if has_data {
            let echo = segment.timestamps.map(|(_, echo)| echo).filter(|echo| *echo != self.last_echo);
            if let Some(echo) = echo {
                self.last_echo = echo;
            }
            let arrival = Arrival {
                begin,
                bytes: u64::from(segment.data_bytes),
                fin: segment.flags.has(Flags::FIN),
                push: segment.flags.has(Flags::PSH),
                header_bytes: segment.header_bytes() as u64,
                echo_age_us: echo.map(|echo| u64::from(self.sender.stamp(now).wrapping_sub(echo)) * 1_000),
            };
            self.receiver.receive(now, &arrival);
        } else if begin < near {
            // A probe of the window.
            self.acknowledge(now);
        }
        self.push(now);
        self.receiver.acknowledger.set_timeout(self.sender.rtt.timeout_ms());
        self.receiver.check(now, self.sender.rtt.smoothed_times_8());
        self.acknowledge_if_due(now);
        self.finish_if_done();
    }

    fn take_acknowledgement(&mut self, now: Time, segment: &Segment, from: Position, has_data: bool) {
        let near = self.sender.unacknowledged;
        let initial = self.config.initial_sequence;
        let mut sack = [(0, 0); 4];
        let blocks = segment.sack.as_slice();
        for (place, (begin, end)) in sack.iter_mut().zip(blocks) {
            *place = (position(initial, *begin, near), position(initial, *end, near));
        }
        let acknowledgement = Acknowledgement {
            position: position(initial, segment.acknowledgement, near),
            from,
            window: u64::from(segment.window) << self.peer_scale,
            sack: &sack[..blocks.len()],
            echo: segment.timestamps.map(|(_, echo)| echo),
            has_data,
            congestion_echo: segment.flags.has(Flags::ECE),
        };
        let before = self.sender.unacknowledged;
        self.sender.acknowledge(now, &acknowledgement);
        if self.sender.unacknowledged > before {
            self.waiting_since = None;
        }
        self.flush(now);
    }

    /// RFC 3168, section 6.1.3.
    fn take_mark(&mut self, segment: &Segment, has_data: bool) {
        if segment.flags.has(Flags::CWR) {
            self.echo_congestion = false;
            if has_data {
                self.receiver.acknowledger.sender_reduced();
            }
        }
        if !has_data {
            return;
        }
        let window = self.receiver.buffer.window;
        if segment.congestion_experienced {
            if !self.echo_congestion {
                self.echo_congestion = true;
                self.receiver.acknowledger.congestion(window);
            }
            self.saw_capable = true;
        } else if segment.ecn_capable {
            self.saw_capable = true;
        } else if self.saw_capable {
            // It is probably sent again.
            self.receiver.acknowledger.congestion(window);
        }
    }

    fn finish_if_done(&mut self) {
        if self.sender.is_finished() && self.receiver.is_finished() && self.state == State::Established {
            self.end(State::Finished);
        }
    }

    /// Sends what may be sent.
    fn push(&mut self, now: Time) {
        if self.state == State::Established {
            let blocks = match self.receiver.block_count() {
                0 => 0,
                count => count.min(self.most_blocks()) as u32,
            };
            self.sender.extra_option_bytes = if blocks > 0 { SACK_BASE_BYTES + SACK_BLOCK_BYTES * blocks } else { 0 };
            self.sender.send_new(now);
            self.flush(now);
        }
    }

    /// Turns what the sender wants to be sent into segments.
    #[inline]
    fn flush(&mut self, now: Time) {
        if std::mem::take(&mut self.sender.window_probe) {
            let segment = self.header(now, self.sender.unacknowledged - 1);
            self.out.push(segment);
        }
        if !self.sender.out.is_empty() {
            self.flush_transmissions(now);
        }
    }

    #[inline(never)]
    fn flush_transmissions(&mut self, now: Time) {
        self.waiting_since.get_or_insert(now);
        for place in 0..self.sender.out.len() {
            let transmission = self.sender.out[place];
            let segment = self.segment(now, &transmission);
            self.out.push(segment);
        }
        self.sender.out.clear();
    }

    fn segment(&mut self, now: Time, transmission: &Transmission) -> Segment {
        let mut segment = self.header(now, transmission.begin);
        segment.data_bytes = transmission.bytes;
        if transmission.push {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        if transmission.fin {
            segment.flags = segment.flags.with(Flags::FIN);
        }
        if self.sender.ecn && transmission.bytes > 0 && !transmission.retransmission {
            segment.ecn_capable = true;
            if std::mem::take(&mut self.sender.announce_reduction) {
                segment.flags = segment.flags.with(Flags::CWR);
            }
        }
        self.receiver.acknowledger.data_sent(now);
        segment
    }

    /// A segment without data, which acknowledges.
    fn header(&mut self, now: Time, begin: Position) -> Segment {
        let mut sack = SackBlocks::default();
        let peer = self.peer_initial;
        if self.receiver.block_count() > 0 {
            self.receiver.blocks(self.most_blocks(), |begin, end| {
                sack.push(number(peer, begin), number(peer, end));
            });
        }
        let window = self.receiver.window();
        self.receiver.acknowledger.sent();
        let mut flags = Flags::ACK;
        if self.echo_congestion {
            flags = flags.with(Flags::ECE);
        }
        Segment {
            sequence: number(self.config.initial_sequence, begin),
            acknowledgement: number(peer, self.receiver.next),
            flags,
            window: (window >> self.receiver.buffer.scale).min(0xffff) as u16,
            timestamps: self.timestamps(now),
            sack,
            ..Segment::default()
        }
    }

    fn timestamps(&self, now: Time) -> Option<(u32, u32)> {
        self.config.timestamps.then(|| (self.sender.stamp(now), self.recent_stamp))
    }

    fn timestamps_bytes(&self) -> u32 {
        if self.config.timestamps { TIMESTAMPS_BYTES } else { 0 }
    }

    /// The most blocks of SACK for which a segment has room.
    fn most_blocks(&self) -> usize {
        let room = u32::from(self.config.maximum_segment_bytes);
        let room = room.saturating_sub(self.timestamps_bytes() + SACK_BASE_BYTES);
        let most = if self.config.timestamps { MOST_SACK_BLOCKS } else { MOST_SACK_BLOCKS + 1 };
        most.min((room / SACK_BLOCK_BYTES) as usize)
    }

    fn acknowledge_if_due(&mut self, now: Time) {
        if self.receiver.acknowledger.due_now && matches!(self.state, State::Established | State::Finished) {
            self.acknowledge(now);
        }
    }

    fn acknowledge(&mut self, now: Time) {
        let segment = self.header(now, self.sender.next);
        self.out.push(segment);
    }
}
