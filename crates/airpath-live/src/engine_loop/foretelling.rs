// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Naps through departures that are certain: the call that waits makes them.

use std::io;

use airpath_core::{Pdu, Time};

use super::EngineLoop;
use super::ahead::ForetoldPacket;
use crate::series;

impl EngineLoop {
    /// Defers the packets that are certain to leave while the loop naps, each until its time. Returns the time until
    /// which the loop may nap then, by CLOCK_MONOTONIC in ns: `wake_ns`, or later.
    ///
    /// # Errors
    /// A port that is gone, where the loop does not outlive its links.
    pub(super) fn send_ahead(&mut self, now_ns: u64, wake_ns: u64) -> io::Result<u64> {
        // What comes from now on may leave after that.
        let unread_ns = now_ns.saturating_add(self.may_leave_unread_ns());
        let until = self.time_of(unread_ns.min(self.later.next_ns().unwrap_or(u64::MAX))).min(self.plans.next_work());
        let mut limit = until;
        let mut foretold = std::mem::take(&mut self.foretold);
        foretold.clear();
        for (index, link) in self.links.iter().enumerate().filter(|(_, link)| !link.is_lost()) {
            let mut note =
                |at, port, pdu: &Pdu| foretold.push(ForetoldPacket { at, link: index, port, pdu: pdu.clone() });
            limit = limit.min(link.foresee(until, &mut note));
        }
        let limit = foretold.keep_before(limit);
        let mut last = None;
        for departure in foretold.departures() {
            let ForetoldPacket { at, link, .. } = departure[0];
            if last.replace(at) != Some(at) {
                series::defer_until(self.epoch_ns + at.nanos());
            }
            if let Err(error) = self.links[link].send_ahead(departure) {
                self.lose(link, error)?;
            }
        }
        self.foretold = foretold;
        // No packet leaves before `wake_ns`, so that none is there if the limit comes first.
        Ok(wake_ns.max(self.epoch_ns.saturating_add(limit.nanos())))
    }

    /// Notes when the packets that were deferred until later have been sent.
    pub(super) fn note_sent(&mut self) {
        let mut departures = self.foretold.departures().peekable();
        let (links, epoch_ns) = (&mut self.links, self.epoch_ns);
        series::take_sent_ns(|sent_ns| {
            let Some(at) = departures.peek().map(|departure| departure[0].at) else { return };
            while let Some(departure) = departures.next_if(|departure| departure[0].at == at) {
                links[departure[0].link].sent_ahead(at, Time::from_nanos(sent_ns.saturating_sub(epoch_ns)));
            }
        });
    }
}
