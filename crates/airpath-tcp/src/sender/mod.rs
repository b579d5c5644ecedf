// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending half: what it knows, and what it offers to a connection.
//!
//! - `acknowledge.rs`: what an acknowledgement says, `news.rs` in words;
//! - `state.rs`: open, disorder, reduction, recovery and loss, and the ways between them;
//! - `rack.rs`: losses by time (RFC 8985);
//! - `transmit.rs`: sending;
//! - `timers.rs`: probes and timeouts.

mod acknowledge;
mod news;
mod rack;
mod state;
mod timers;
mod transmit;

use airpath_core::Time;

use crate::clock::{fires, milliseconds};
use crate::congestion::{CongestionControl, Window};
use crate::rtt::RoundTrip;
use crate::scoreboard::Scoreboard;
use crate::sequence::Position;

pub(crate) use acknowledge::Acknowledgement;
use rack::Rack;

/// Degree of reordering that is taken for normal, in segments.
const USUAL_REORDERING: u64 = 3;
/// The greatest degree of reordering.
const MOST_REORDERING: u64 = 300;

/// State of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CongestionState {
    /// Nothing is wrong.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// The window falls after a mark of congestion (RFC 3168).
    Reduction,
    /// The window falls after a loss, and lost segments are sent again.
    Recovery,
    /// A timeout has taken everything for lost.
    Loss,
}

/// Purpose of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    None,
    Retransmission,
    Reordering,
    Probe,
    Persist,
}

/// Segment that the sender wants to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub begin: Position,
    /// Bytes of data.
    pub bytes: u32,
    pub fin: bool,
    pub push: bool,
    pub retransmission: bool,
}

/// Numbers that a sender counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Segments sent once more.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Probes of the tail (RFC 8985).
    pub probes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// Reductions of the window taken back.
    pub undone: u64,
    /// Timeouts that were spurious by F-RTO (RFC 5682).
    pub spurious_timeouts: u64,
    /// Segments that the other end has got.
    pub delivered: u64,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    pub counts: SenderCounts,
    pub window: Window,
    pub rtt: RoundTrip,
    pub board: Scoreboard,
    pub state: CongestionState,
    /// First position that is not acknowledged.
    pub unacknowledged: Position,
    /// First position that was never sent.
    pub next: Position,
    /// Position after what the application has written.
    written: Position,
    closing: bool,
    nagle: bool,
    /// Bytes of data of a full segment.
    segment_bytes: u32,
    /// Bytes of options beyond the usual in a segment with data.
    pub extra_option_bytes: u32,
    pub out: Vec<Transmission>,

    /// The receiver's window: its end, size and greatest size so far.
    receive_window: u64,
    greatest_receive_window: u64,
    window_update_from: Position,

    // Loss recovery.
    rack: Rack,
    recent_sacks: [(Position, Position); 4],
    reordering: u64,
    reordering_seen: bool,
    /// End of what was sent when the state began.
    high: Position,
    /// Begin of what a reduction that may be taken back concerns, and retransmissions that are not yet known as vain.
    undo_from: Option<Position>,
    undo_retransmissions: Option<u64>,
    /// Clock (of the timestamps) at the first retransmission of a recovery.
    first_retransmission: Option<u32>,
    prior_threshold: u64,
    prior_window: u64,
    /// PRR: delivered and sent since the reduction began (RFC 6937).
    reduction_delivered: u64,
    reduction_sent: u64,
    forward_rto: bool,
    consecutive_timeouts: u32,
    duplicates_reported: u64,

    // Tail loss probe.
    probe_end: Option<Position>,
    probe_retransmits: bool,

    // Use of the window.
    limited_by_window: bool,
    most_out: u64,
    usage_end: Position,
    window_used: u64,
    window_used_ms: u64,
    last_sent_ms: u64,
    last_sent: Option<Time>,
    small_end: Position,

    // Marks of congestion.
    pub ecn: bool,
    pub announce_reduction: bool,

    timer: Timer,
    due: Option<Time>,
    persist_backoff: u32,
    /// A segment without data is wanted that asks for the receiver's window.
    pub window_probe: bool,
    /// Clock of the timestamps at time 0.
    stamp_offset: u32,
    latest_echo: Option<u32>,
}

impl Sender {
    pub(crate) fn new(control: CongestionControl, segment_bytes: u32, nagle: bool, stamp_offset: u32) -> Sender {
        Sender {
            counts: SenderCounts::default(),
            window: Window::new(control),
            rtt: RoundTrip::new(),
            board: Scoreboard::default(),
            state: CongestionState::Open,
            unacknowledged: 1,
            next: 1,
            written: 1,
            closing: false,
            nagle,
            segment_bytes,
            extra_option_bytes: 0,
            out: Vec::new(),
            receive_window: 0,
            greatest_receive_window: 0,
            window_update_from: 0,
            rack: Rack::default(),
            recent_sacks: [(0, 0); 4],
            reordering: USUAL_REORDERING,
            reordering_seen: false,
            high: 1,
            undo_from: None,
            undo_retransmissions: None,
            first_retransmission: None,
            prior_threshold: 0,
            prior_window: 0,
            reduction_delivered: 0,
            reduction_sent: 0,
            forward_rto: false,
            consecutive_timeouts: 0,
            duplicates_reported: 0,
            probe_end: None,
            probe_retransmits: false,
            limited_by_window: false,
            most_out: 0,
            usage_end: 0,
            window_used: 0,
            window_used_ms: 0,
            last_sent_ms: 0,
            last_sent: None,
            small_end: 0,
            ecn: false,
            announce_reduction: false,
            timer: Timer::None,
            due: None,
            persist_backoff: 0,
            window_probe: false,
            stamp_offset,
            latest_echo: None,
        }
    }

    /// Takes what the opening of the connection told: the receiver's window and segment, and a round-trip time.
    pub(crate) fn open(&mut self, now: Time, window: u64, segment_bytes: u32, round_trip_us: Option<u64>) {
        self.receive_window = window;
        self.greatest_receive_window = window;
        self.segment_bytes = self.segment_bytes.min(segment_bytes);
        self.counts.delivered = 1;
        self.window_used_ms = milliseconds(now);
        if let Some(round_trip) = round_trip_us {
            self.rtt.measure_minimum(now, round_trip);
            self.rtt.measure(round_trip, self.unacknowledged, self.next);
        }
        self.rack.forget_duplicates();
    }

    /// Takes `bytes` more to send.
    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.written = self.written.saturating_add(bytes);
        }
    }

    /// Sends FIN after all that was written.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// The position after all that is to be sent, FIN included.
    pub(crate) fn end(&self) -> Position {
        self.written.saturating_add(u64::from(self.closing))
    }

    /// Bytes that the application has written and that are not acknowledged.
    pub(crate) fn queued(&self) -> u64 {
        self.written.saturating_sub(self.unacknowledged)
    }

    /// True if FIN was sent and acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.closing && self.unacknowledged == self.end()
    }

    /// Time at which the timer fires.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The clock of the timestamps (RFC 7323), in milliseconds.
    pub(crate) fn stamp(&self, at: Time) -> u32 {
        self.stamp_offset.wrapping_add(milliseconds(at) as u32)
    }

    /// End of the window of the receiver.
    fn window_end(&self) -> Position {
        self.unacknowledged + self.receive_window
    }

    /// Bytes of data in a full segment: no more than half of the receiver's greatest window.
    fn full_bytes(&self) -> u64 {
        let half = if self.greatest_receive_window > 536 {
            self.greatest_receive_window / 2
        } else {
            self.greatest_receive_window
        };
        let bytes = u64::from(self.segment_bytes.saturating_sub(self.extra_option_bytes).max(1));
        if half > 0 { bytes.min(half.max(48)) } else { bytes }
    }

    fn in_reduction(&self) -> bool {
        matches!(self.state, CongestionState::Reduction | CongestionState::Recovery)
    }

    fn arm(&mut self, timer: Timer, now: Time, ticks: u64) {
        self.timer = timer;
        self.due = Some(fires(now, ticks));
    }

    fn disarm(&mut self) {
        self.timer = Timer::None;
        self.due = None;
    }

    fn echo_before(&self, stamp: u32) -> bool {
        self.latest_echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0)
    }
}
