// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP for virtual time: an endpoint that behaves as that of Linux, without sockets and clocks.
//!
//! A [`Connection`] is one end. It is told the time and what arrives, in nanoseconds of virtual time, and leaves
//! [`Segment`]s to be sent; it never reads a clock or a random number. Data has lengths and no contents.
//!
//! What it has:
//!
//! - SACK (RFC 2018) with the scoreboard of RFC 6675, and reports of duplicates (RFC 2883);
//! - losses by time and probes of the tail: RACK-TLP (RFC 8985), with the reordering window that adapts;
//! - proportional rate reduction (RFC 6937), as in Linux with the slow start bound of RFC 9937 where nothing is lost
//!   any more;
//! - Reno (RFC 5681) and CUBIC (RFC 9438) with HyStart (Ha and Rhee 2011), an initial window of 10 (RFC 6928), and
//!   windows that do not grow unless used (RFC 7661);
//! - timeouts (RFC 6298) of at least 200 ms, F-RTO (RFC 5682), reductions taken back by timestamps (RFC 3522) and by
//!   reports of duplicates (RFC 3708);
//! - timestamps and window scaling (RFC 7323), a receive buffer that grows, delayed acknowledgements as those of Linux;
//! - ECN (RFC 3168) on request.
//!
//! Timers are as coarse as those of Linux with 1000 ticks a second, and segments leave in bursts of the size that
//! segmentation offload has there. Both ends are such connections: SACK and window scaling are always on.
//! There is no pacing, no keep-alive, no urgent data, no Fast Open, no path MTU discovery, and no state TIME-WAIT.
//!
//! It is code of our own, because no maintained crate had what it takes: smoltcp has neither SACK nor RACK, and those
//! with both are parts of kernels, or bound to sockets and clocks.

mod clock;
mod congestion;
mod connection;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod sequence;

pub use congestion::CongestionControl;
pub use connection::{Config, Connection, Measurements, State};
pub use receiver::BufferSize;
pub use segment::{Flags, MOST_HEADER_BYTES, SackBlocks, Segment, SegmentError};
pub use sender::{CongestionState, SenderCounts};
