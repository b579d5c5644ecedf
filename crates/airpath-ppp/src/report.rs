// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Counters of an end, and reasons for which nothing passes.

use crate::authentication::Denial;

/// Frames and bytes of an end since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames read whole.
    pub frames_read: u64,
    /// Frames written.
    pub frames_written: u64,
    /// Frames with a wrong sequence.
    pub bad_sequences: u64,
    /// Frames that the peer gave up.
    pub aborts: u64,
    /// Frames too short for anything.
    pub runts: u64,
    /// Frames longer than we take.
    pub giants: u64,
    /// Frames without a valid protocol, and control packets of wrong length.
    pub malformed: u64,
    /// Packets before their protocol was open.
    pub early: u64,
    /// Packets and answers dropped as too much was waiting for the line.
    pub overflows: u64,
    /// Packets of the peer dropped as nobody read them.
    pub unread: u64,
    /// Times that LCP came up.
    pub openings: u64,
}

/// Reason for which an end has no line to its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineDown {
    /// Nothing was agreed yet.
    Negotiating,
    /// The peer ended it, or never answered; it is tried again later.
    GivenUp,
    /// The line brings back our own bytes.
    Loop,
    /// An authentication failed; it is tried again later.
    Denied(Denial),
    /// Closed on our side.
    Closed,
}

/// Reason for which a packet was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// Its protocol is not open.
    NotOpen,
    /// Longer than the peer takes.
    TooLong,
    /// Neither IPv4 nor IPv6.
    NoIp,
    /// Too much is waiting for the line.
    Full,
}
