// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The log of a run in virtual time: what goes into a machine and comes out of it, in the files of a
//! live run. Nothing is lost and nothing is late: where the writer is behind, the run waits.

use std::path::Path as Folder;

use airpath_core::{
    Counters, Emission, Event, EventKinds, Item, LinkRecord, LogLevel, Payload, Pdu, PortId, Span, Time, UNDAMAGED,
};
use airpath_log::batch::BatchSize;
use airpath_log::manifest::{LogResults, Results, Status, TimingResults, counters};
use airpath_log::recorder::RingSize;
use airpath_log::verdict::{Measurements, judge};
use airpath_log::writer::WriterOptions;
use airpath_log::{
    Delays, LatenessBound, Manifest, Offered, Overflow, Packet, Places, Recorder, Summary, Timings, Writer,
};
use airpath_packet::edit::{ecn_of, set_ecn};

use crate::error::{Failure, Result};

/// Start of every run in virtual time, for the stamps of its captures: 2000-01-01 00:00 UTC. A constant, so
/// that equal runs leave equal files; not 0, which is what an unknown time looks like.
pub const START_UNIX_NS: u64 = 946_684_800_000_000_000;
/// The most bytes of an IP packet.
const MOST_BYTES: usize = 0xffff;
/// The ring between a recorder and the writer for which it may wait: no longer than the caches, since each run touches
/// its own anew.
const RING: RingSize =
    RingSize { batches: 4, batch: BatchSize { events: 2_048, inputs: 1_024, arena_bytes: 128 << 10 } };

/// Records a machine in virtual time.
pub struct Recording {
    recorder: Recorder,
    writer: Writer,
    timings: Timings,
    /// Users and their hops.
    places: Places,
    /// Delays of each named user.
    delays: Vec<Delays>,
    changed: Vec<u8>,
}

/// Summary of a finished recording.
pub struct Recorded {
    /// The run in five lines.
    pub summary: Summary,
    /// Results for the manifest.
    pub results: Results,
}

impl Recording {
    /// Begins to record into `folder`, which exists, what `manifest` says; without a folder nothing but
    /// delays is kept. With `keeps_links` there is a log of link entities, unless frames are left out.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn start(folder: Option<&Folder>, manifest: &Manifest, keeps_links: bool) -> Result<Recording> {
        let places = manifest.places();
        let folder = folder.unwrap_or(Folder::new(""));
        let options = WriterOptions {
            snaplen: manifest.snaplen,
            overflow: Overflow::Wait,
            touched: false,
            links: keeps_links && manifest.frames,
            leaves_out: manifest.leaves_out(),
            ring: RING,
            ..WriterOptions::of(folder, manifest.log_level, places.clone())
        };
        let (recorder, writer) = Writer::start(&options).map_err(Failure::log)?;
        writer.set_start(START_UNIX_NS);
        Ok(Recording {
            recorder,
            writer,
            timings: Timings::growing(LatenessBound::absolute(Span::ZERO)),
            delays: vec![Delays::growing(); places.named_users().len()],
            places,
            changed: Vec::new(),
        })
    }

    /// Level at which the machine has to record.
    pub fn machine_level(&self) -> LogLevel {
        self.recorder.machine_level()
    }

    /// Kinds of events that the machine is to leave out.
    pub fn leaves_out(&self) -> EventKinds {
        self.recorder.leaves_out()
    }

    /// Records a packet that is about to be offered.
    pub fn offered(&mut self, at: Time, port: PortId, pdu: &Pdu) {
        let packet = match &pdu.headers {
            // A replay has no more.
            Some(headers) if bytes_of(pdu).is_empty() => Packet { header: headers.bytes(), ..Packet::default() },
            _ => match &pdu.payload {
                Payload::Padded(headers) => Packet { header: headers, rest: zeros(pdu), ..Packet::default() },
                _ => Packet::whole(bytes_of(pdu), pdu.header_len),
            },
        };
        self.recorder.offered(&Offered { at, port, pdu, packet, read_at: None, kernel_at: None });
    }

    /// Records a command that is about to be carried out, in the JSON of the input log.
    pub fn commanded(&mut self, at: Time, json: &str) {
        self.recorder.command(at, json);
    }

    /// True if records of link entities are kept.
    pub fn keeps_links(&self) -> bool {
        self.recorder.keeps_links()
    }

    /// Records what link entities did since the last call; before [`Recording::events`].
    pub fn links(&mut self, links: &[LinkRecord]) {
        self.recorder.links(links);
    }

    /// Records what the machine has recorded since the last call.
    pub fn events(&mut self, events: &[Event]) {
        self.recorder.events(events);
    }

    /// Records what left the machine, after its delivery has been given to [`Recording::events`].
    pub fn emitted(&mut self, emission: &Emission) {
        let Item::Pdu(pdu) = &emission.item else { return };
        let direction = emission.port.end().other().sends();
        if let Some(delays) = self.delays.get_mut(usize::from(emission.port.user())) {
            delays.emitted(direction, pdu.arrived, emission.at);
        }
        self.timings.emitted(direction, pdu.arrived, emission.at, emission.at, || Span::ZERO);
        let bytes = bytes_of(pdu);
        let is_marked = ecn_of(bytes).is_some_and(|ecn| ecn != pdu.ecn);
        if pdu.damage.is_none() && !is_marked {
            return self.recorder.emitted(pdu.id, emission.port, emission.at);
        }
        self.changed.clear();
        self.changed.extend_from_slice(&pdu.contents());
        if is_marked {
            set_ecn(&mut self.changed, pdu.ecn);
        }
        if let Some(damage) = &pdu.damage {
            damage.apply(&mut self.changed);
        }
        let damage = pdu.damage.as_deref().unwrap_or(&UNDAMAGED);
        let packet = Packet::whole(&self.changed, pdu.header_len);
        self.recorder.emitted_changed(pdu.id, emission.port, emission.at, packet, damage);
    }

    /// Ends the log of a run that took `duration`, and judges it.
    pub fn finish(self, machine: &Counters, duration: Span) -> Recorded {
        let lost = self.recorder.finish(Time::ZERO + duration);
        let log = LogResults::new(lost, self.writer.finish());
        let measured = Measurements {
            log_incomplete: log.files.incomplete.clone(),
            offered: self.timings.lateness().count,
            ..Measurements::of(&self.timings, duration)
        };
        let verdict = judge(&measured);
        let summary = Summary::new(machine, &self.timings, duration, verdict.clone()).with_users(
            machine,
            &self.places,
            &self.delays,
            duration,
        );
        let timings = TimingResults::from(&self.timings);
        let results = Results {
            duration_ns: duration.nanos(),
            counters: counters(machine, &self.places),
            timings,
            log,
            machine: None,
            live_loop: None,
            wall_clock: None,
            ends: None,
            verdict,
        };
        Recorded { summary, results }
    }

    /// Ends the log of a run that failed.
    pub fn abandon(self) {
        drop(self.recorder);
        self.writer.finish();
    }
}

/// Marks `manifest` as that of a finished run with these results.
pub fn finished(manifest: Manifest, results: Results) -> Manifest {
    Manifest { status: Status::Finished, results: Some(results), ..manifest }
}

/// The zeros behind the headers of a padded packet.
fn zeros(pdu: &Pdu) -> &'static [u8] {
    static ZEROS: [u8; MOST_BYTES] = [0; MOST_BYTES];
    &ZEROS[..(pdu.len as usize).saturating_sub(usize::from(pdu.header_len)).min(MOST_BYTES)]
}

/// The bytes of a packet in virtual time, without zeros behind padded headers; none where only the length is modelled.
fn bytes_of(pdu: &Pdu) -> &[u8] {
    match &pdu.payload {
        Payload::Whole(bytes) | Payload::Padded(bytes) => bytes,
        // A segment is how a kernel hands over packets; endpoints in the process make whole ones.
        Payload::LengthOnly | Payload::Segment { .. } => &[],
    }
}
