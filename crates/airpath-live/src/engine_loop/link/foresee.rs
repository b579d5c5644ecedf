// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets of a link that are handed to the kernel before they are due.

use std::io;

use airpath_core::{Pdu, PortId, Span, Time};

use super::super::ahead::ForetoldPacket;
use super::LiveLink;

impl LiveLink {
    /// Hands the packets that are certain to leave by `until` to `foretell`, in order, and returns an instant before
    /// which nothing else leaves. Of a link whose ports send at once nothing is foretold, nor while there is other work.
    pub fn foresee(&self, until: Time, foretell: &mut dyn FnMut(Time, PortId, &Pdu)) -> Time {
        let is_busy = self.unfinished.is_some() || self.has_waiting || self.held_back.has_any();
        if is_busy || !self.ahead.is_empty() || !self.ports.iter().all(|port| port.defers_writes()) {
            return self.next_emission;
        }
        self.machine.foresee(until, foretell)
    }

    /// Hands `packets`, which leave at one instant, to the kernel.
    ///
    /// # Errors
    /// A port that is gone.
    pub fn send_ahead(&mut self, packets: &[ForetoldPacket]) -> io::Result<()> {
        for packet in packets {
            self.egress[usize::from(packet.port.0)].push(&packet.pdu, packet.at, Span::ZERO);
            self.ahead.push(packet);
        }
        self.flush()
    }

    /// The kernel has sent the packets due at `at` at `sent`.
    pub fn sent_ahead(&mut self, at: Time, sent: Time) {
        self.ahead.sent(at, sent);
    }

    /// Time at which a command that came at `received` takes effect: what was handed to the kernel leaves as foretold.
    pub fn effective(&self, received: Time) -> Time {
        received.max(self.ahead.until().unwrap_or(Time::ZERO))
    }
}
