// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Writing of packets that leave a link, and the record of them.

use std::io;

use airpath_core::{Item, LogLevel, PortId, Signal, Time, UNDAMAGED};
use airpath_log::Packet;

use super::super::egress;
use super::LiveLink;

impl LiveLink {
    /// Records what the machine did, and writes what left it.
    pub(super) fn record(&mut self, clock: impl Fn() -> Time) -> io::Result<()> {
        if !self.outputs.links.is_empty() {
            self.recorder.links(&self.outputs.links);
            self.outputs.links.clear();
        }
        if !self.outputs.events.is_empty() {
            self.recorder.events(&self.outputs.events);
            self.outputs.events.clear();
        }
        if self.outputs.emissions.is_empty() { Ok(()) } else { self.emit(clock) }
    }

    pub(super) fn emit(&mut self, clock: impl Fn() -> Time) -> io::Result<()> {
        self.closed_until = self.driven_to + self.together_within;
        let sent_ahead = self.ahead.emitted(&self.outputs.emissions)?;
        self.has_passed |= !sent_ahead.is_empty();
        for emission in self.outputs.emissions.iter().skip(sent_ahead.len()) {
            let port = usize::from(emission.port.0);
            match &emission.item {
                Item::Pdu(pdu) if self.ports[port].joined().is_some() => {
                    self.egress[port].push_onwards(pdu, self.journeys.onwards(pdu));
                }
                Item::Pdu(pdu) => self.egress[port].push(pdu, emission.at, self.together_within),
                Item::Signal(Signal::Credit(credit)) => self.credits.give(emission.port, *credit),
            }
        }
        for (port, credit) in self.credits.given() {
            self.ports[usize::from(port.0)].give_credit(credit)?;
            self.has_waiting = true;
        }
        let keeps_packets = self.recorder.machine_level() >= LogLevel::Events;
        // In captures a packet is older than the answer to it, which may come before the write returns.
        let leaving = if keeps_packets { clock() } else { Time::ZERO };
        self.flush()?;
        let emitted = clock();
        self.last_emission = emitted;
        let mut sent_ahead = sent_ahead.into_iter();
        for emission in self.outputs.emissions.drain(..) {
            let Item::Pdu(pdu) = emission.item else { continue };
            let (leaving, emitted) = sent_ahead.next().map_or((leaving, emitted), |sent| (sent, sent));
            let to = emission.port.end();
            let (direction, from) = (to.other().sends(), PortId::of(emission.port.user(), to.other()));
            let entered = self.journeys.entered(&pdu);
            let least_transit = || self.machine.least_transit_of(pdu.arrived, from, pdu.len);
            if let Some(delays) = self.delays.get_mut(usize::from(from.user())) {
                delays.emitted(direction, entered, emission.at);
            }
            self.measurements.timings.emitted(direction, entered, emission.at, emitted, least_transit);
            if keeps_packets && egress::is_changed(&pdu) {
                let bytes = egress::damaged_bytes(&pdu);
                let packet = Packet::whole(&bytes, pdu.header_len);
                let damage = pdu.damage.as_deref().unwrap_or(&UNDAMAGED);
                self.recorder.emitted_changed(pdu.id, emission.port, leaving, packet, damage);
            } else {
                self.recorder.emitted(pdu.id, emission.port, leaving);
            }
        }
        Ok(())
    }

    /// Writes the packets that were collected.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for (egress, port) in self.egress.iter_mut().zip(&mut self.ports) {
            if !egress.is_empty() {
                self.has_passed = true;
                let flushed = egress.flush(port)?;
                self.measurements.refused += flushed.refused;
                self.measurements.not_taken += flushed.not_taken;
                self.has_waiting |= flushed.waits;
            }
        }
        Ok(())
    }
}
