// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Endpoints of a machine in virtual time: a protocol stack or a source of packets.
//!
//! An endpoint, like a machine, never reads a clock. At one instant a world runs, in this order:
//! the machine's own events; the arrival of what they emitted at the endpoints; the endpoints'
//! timers; and then it offers to the machine what the endpoints have sent, in the order in which
//! they sent it. This goes round until nothing more happens at that instant.

use airpath_core::{Pdu, Time};

/// One end of one workload.
pub trait Endpoint: Send {
    /// Begins its work at `at`; called once, before anything else.
    fn start(&mut self, at: Time, out: &mut Sent);

    /// Takes a packet that left the link at `at`, with its damage not yet applied to its bytes.
    fn receive(&mut self, at: Time, pdu: Pdu, out: &mut Sent);

    /// Runs every timer due at or before `at`.
    fn advance(&mut self, at: Time, out: &mut Sent);

    /// Time of the next timer; later than `t` after `advance(t)`, like a machine's.
    fn next_deadline(&self) -> Option<Time>;

    /// Progress of the endpoint.
    fn progress(&self) -> Progress;

    /// True if its progress is [`Progress::Active`]. A world asks after each call.
    fn is_active(&self) -> bool {
        self.progress() == Progress::Active
    }
}

/// Progress of an endpoint's work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It goes on. A run without a given duration lasts until no endpoint is active.
    Active,
    /// It has done what it was to do, though it still answers what it receives.
    Done,
    /// It cannot do it, and why.
    Failed(String),
}

/// Packets sent by an endpoint: they enter the link at the instant of the call, in this order.
#[derive(Debug, Default)]
pub struct Sent {
    packets: Vec<Pdu>,
}

impl Sent {
    /// Sends a packet; its identity and time of arrival are given by the world.
    pub fn push(&mut self, pdu: Pdu) {
        self.packets.push(pdu);
    }

    /// Takes what was sent since the last time, in order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Pdu> {
        self.packets.drain(..)
    }

    /// Turns the order round, so that the first one can be popped from the end.
    pub(crate) fn reverse(&mut self) {
        self.packets.reverse();
    }

    /// Takes the last packet.
    pub(crate) fn pop(&mut self) -> Option<Pdu> {
        self.packets.pop()
    }

    /// Number of packets sent since the last call.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True if nothing was sent since the last call.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}
