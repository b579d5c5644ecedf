// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Observers of the machine of a run in virtual time: the log, and the user who waits.

use std::time::{Duration, Instant};

use airpath_core::{Command, Emission, Event, EventKinds, LinkRecord, LogLevel, Pdu, PortId, Time};
use airpath_log::show;
use airpath_virtual::Observer;

use crate::run::recording::Recording;
use crate::terminal::say;

/// Time for which a run is silent, at first and between two messages.
const SILENT: Duration = Duration::from_secs(2);
/// Number of turns between two looks at the wall clock, as a power of two.
const TURNS: u64 = 1 << 14;

/// Records a machine, and tells how far a long run is.
pub struct Watch {
    recording: Recording,
    tell: bool,
    turns: u64,
    next_word: Instant,
}

impl Watch {
    /// A watch that records into `recording`, and tells how far the run is if `tell` is set.
    pub fn new(recording: Recording, tell: bool) -> Watch {
        Watch { recording, tell, turns: 0, next_word: Instant::now() + SILENT }
    }

    /// The log, to be ended.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    #[cold]
    fn look(&mut self, at: Time) {
        let now = Instant::now();
        if now >= self.next_word {
            self.next_word = now + SILENT;
            say!("airpath: {} of virtual time so far", show::span(at.nanos()));
        }
    }
}

impl Observer for Watch {
    fn level(&self) -> LogLevel {
        self.recording.machine_level()
    }

    fn leaves_out(&self) -> EventKinds {
        self.recording.leaves_out()
    }

    fn offered(&mut self, at: Time, port: PortId, pdu: &Pdu) {
        self.recording.offered(at, port, pdu);
    }

    fn commanded(&mut self, at: Time, command: &Command) {
        if let Command::EnterState(name) = command {
            self.recording.commanded(at, &serde_json::json!({ "enter_state": &**name }).to_string());
        }
    }

    fn keeps_links(&self) -> bool {
        self.recording.keeps_links()
    }

    fn links(&mut self, links: &[LinkRecord]) {
        self.recording.links(links);
    }

    fn events(&mut self, events: &[Event]) {
        self.recording.events(events);
    }

    fn emitted(&mut self, emission: &Emission) {
        self.recording.emitted(emission);
    }

    fn turn(&mut self, at: Time) {
        self.turns += 1;
        if self.tell && self.turns.is_multiple_of(TURNS) {
            self.look(at);
        }
    }
}
