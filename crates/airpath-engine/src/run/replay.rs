// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Playing a recorded run again: its input log through the same scenario with the same seed, in
//! virtual time, with packets that have a length only. The machine is a function of these three, so
//! its trace must be the recorded one: every event, the positions of all flipped bits, and the length that is
//! left of each packet that was cut short.

mod compare;
mod recorded;

use std::collections::VecDeque;
use std::path::Path as Folder;
use std::time::{Duration, Instant};

use airpath_core::{Command, EventKind, Item, LinkRecord, LogLevel, Machine, Outputs, Pdu, Seed, Span, Time};
use airpath_log::tables::events::{EventCells, EventColumns, Left};
use airpath_log::tables::links::{LinkCells, LinkColumns};
use airpath_log::{Clock, Level, Manifest, Places, Snaplen};
use airpath_scenario::{HERE, Running, Scenario};
use airpath_virtual::{DriveError, Input, VirtualDriver};

pub use compare::Difference;
use compare::difference;
use recorded::{Events, Inputs, Links, RecordedInput, What};

use super::files::KeptFiles;
use super::manifest::Beginning;
use super::recording::{Recording, START_UNIX_NS, finished};
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::link::{machine, usage};
use crate::terminal::say;

/// Time for which a replay is silent.
const SILENT: Duration = Duration::from_secs(2);

/// Outcome of a replay.
#[derive(Debug)]
pub struct ReplayOutcome {
    /// Number of identical events, from the first on.
    pub events: u64,
    /// Number of deliveries of damaged packets among them.
    pub damaged_packets: u64,
    /// Number of identical records of link entities; none if the run has no log of them.
    pub links: Option<u64>,
    /// True if the log has the positions of flipped bits; without them only their numbers were compared.
    pub has_positions: bool,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
    /// The time of the run.
    pub duration: Span,
    /// Duration of the replay.
    pub took: Duration,
}

/// Plays the run in `folder` again and compares, up to the first difference. With `out`, the replay is
/// written there as a run of its own, to its end.
///
/// # Errors
/// When the folder holds no run that can be replayed, or a log cannot be read or written.
pub fn replay(folder: &Folder, out: Option<&Folder>) -> Result<ReplayOutcome> {
    let begun = Instant::now();
    let manifest = recorded::manifest(folder)?;
    let origin = folder.join(airpath_log::files::MANIFEST).display().to_string();
    let scenario = Scenario::from_toml(&manifest.scenario_toml, &origin).map_err(usage)?;
    if manifest.clock == Clock::Live && scenario.placement().map_err(usage)?.is_some() {
        let part = folder.join(HOSTS).join(HERE);
        return Err(Failure::new(format!(
            "this run was on several hosts, and the network between them is not part of the model; replay its parts, as in \
             airpath replay {}",
            part.display()
        )));
    }
    let machine = machine(&scenario)?;
    let duration = recorded::duration(&manifest);
    let beginning = |files: &KeptFiles| {
        let beginning = Beginning {
            scenario: &scenario,
            files,
            machine: &machine,
            clock: Clock::Virtual,
            seed: manifest.seed,
            level: Level::Events,
            snaplen: Snaplen::default(),
            frames: manifest.frames,
        };
        beginning.manifest()
    };
    let copy = out.map(|out| Copy::start(out, &scenario, beginning, machine.keeps_links())).transpose()?;
    let mut driver = VirtualDriver::new(machine.build(Seed(manifest.seed)), LogLevel::Events);
    let places = manifest.places();
    let mut trace = Trace {
        events: Events::open(folder)?,
        columns: EventColumns::new(&places),
        links: Links::open(folder, &manifest)?.map(|links| (links, LinkColumns::new(&places))),
        places,
        same_links: 0,
        emissions: VecDeque::new(),
        same: 0,
        damaged_packets: 0,
        difference: None,
        copy,
        next_word: begun + SILENT,
    };
    let outputs = driver.outputs_mut();
    (outputs.leaves_out, outputs.keeps_links) = (manifest.leaves_out(), machine.keeps_links() && manifest.frames);
    let mut running = Running::new(&scenario);
    let inputs = Inputs::open(folder, &manifest)?.with_escapes(machine.counts_escapes())?;
    let inputs = inputs.with_filters(!machine.filters().is_empty())?;
    for input in inputs.with_headers(machine.reads_headers()) {
        let RecordedInput { at, what, json } = input?;
        // In steps, so that no more than one step's events are in memory.
        trace.advance(&mut driver, at)?;
        if trace.is_over() {
            break;
        }
        let (input, is_set) = match what {
            What::Input(input) => (input, false),
            What::Set(assignments) => {
                let settings = running.set(&assignments).map_err(usage)?;
                (Input::Command(Command::Configure(machine.settings(settings))), true)
            }
        };
        if let Some(Copy { recording, .. }) = &mut trace.copy {
            match &input {
                Input::Offer(port, Item::Pdu(pdu)) => recording.offered(at, *port, pdu),
                Input::Offer(..) | Input::Command(_) => recording.commanded(at, &json),
            }
        }
        driver.input(at, input).map_err(|error| refused(folder, &error))?;
        if is_set {
            running.took_effect(|user| driver.machine().state_in_force(user));
        }
        trace.harvest(driver.outputs_mut())?;
    }
    trace.advance(&mut driver, Time::ZERO + duration)?;
    trace.end()?;
    let has_positions = trace.events.has_flipped_bits();
    let Trace { same, same_links, links, damaged_packets, difference, copy, .. } = trace;
    let links = links.map(|_| same_links);
    if let Some(Copy { recording, manifest, folder }) = copy {
        let recorded = recording.finish(driver.counters(), duration);
        write(&finished(manifest, recorded.results), folder)?;
    }
    Ok(ReplayOutcome {
        events: same,
        damaged_packets,
        links,
        has_positions,
        difference,
        duration,
        took: begun.elapsed(),
    })
}

/// No run can have recorded an input that the machine refuses.
fn refused(folder: &Folder, error: &DriveError) -> Failure {
    let path = folder.join(airpath_log::files::INPUT);
    Failure::usage(format!("{} does not fit the scenario in run.json: {error}; record the run again", path.display()))
}

fn write(manifest: &Manifest, folder: &Folder) -> Result<()> {
    manifest.write(folder).map_err(Failure::log)
}

/// The replay, written as a run of its own.
struct Copy<'a> {
    recording: Recording,
    manifest: Manifest,
    folder: &'a Folder,
}

impl Copy<'_> {
    fn start<'a>(
        folder: &'a Folder,
        scenario: &Scenario,
        beginning: impl FnOnce(&KeptFiles) -> Manifest,
        keeps_links: bool,
    ) -> Result<Copy<'a>> {
        airpath_log::folder::create(folder).map_err(Failure::log)?;
        let mut manifest = beginning(&KeptFiles::keep(scenario, Some(folder))?);
        manifest.start_unix_ns = START_UNIX_NS;
        let recording = Recording::start(Some(folder), &manifest, keeps_links)?;
        write(&manifest, folder)?;
        Ok(Copy { recording, manifest, folder })
    }
}

/// The trace of the replay beside the recorded one.
struct Trace<'a> {
    events: Events,
    /// Rows that the log would have of the replay's events.
    columns: EventColumns,
    /// The recorded link log and the rows that it would have of the replay, if the run has one.
    links: Option<(Links, LinkColumns)>,
    places: Places,
    same_links: u64,
    /// Packets that left the machine and have not been met by their deliveries.
    emissions: VecDeque<Pdu>,
    same: u64,
    damaged_packets: u64,
    difference: Option<Difference>,
    copy: Option<Copy<'a>>,
    next_word: Instant,
}

impl Trace<'_> {
    /// Nothing is left to find out.
    fn is_over(&self) -> bool {
        self.difference.is_some() && self.copy.is_none()
    }

    /// Runs `driver` through everything due at or before `to`, one deadline after the other.
    fn advance(&mut self, driver: &mut VirtualDriver<Box<dyn Machine>>, to: Time) -> Result<()> {
        while let Some(due) = driver.next_deadline().filter(|due| *due <= to && !self.is_over()) {
            driver.advance(due);
            self.harvest(driver.outputs_mut())?;
        }
        Ok(())
    }

    /// Takes what the machine has left behind and compares it.
    fn harvest(&mut self, outputs: &mut Outputs) -> Result<()> {
        if let Some(Copy { recording, .. }) = &mut self.copy {
            recording.links(&outputs.links);
            recording.events(&outputs.events);
            outputs.emissions.iter().for_each(|emission| recording.emitted(emission));
        }
        self.compare_links(&mut outputs.links)?;
        for emission in outputs.emissions.drain(..) {
            if let Item::Pdu(pdu) = emission.item {
                self.emissions.push_back(pdu);
            }
        }
        for event in outputs.events.drain(..) {
            let delivered = (event.kind == EventKind::Delivered).then(|| self.emissions.pop_front()).flatten();
            if self.difference.is_some() {
                continue;
            }
            let damage = delivered.as_ref().and_then(|pdu| pdu.damage.as_deref());
            let flips = damage.filter(|_| self.events.has_flipped_bits()).map(|damage| damage.flips.as_slice());
            let kept_bytes = damage.filter(|_| self.events.has_kept_bytes()).and_then(|damage| damage.truncated_to);
            let left = damage.map(|_| Left { at_ns: event.at.nanos(), flips: flips.unwrap_or_default(), kept_bytes });
            let replayed = self.columns.preview(EventCells::new(&event, left, &self.places));
            self.difference = difference(self.same, self.events.next()?, Some(replayed));
            if self.difference.is_none() {
                self.same += 1;
                self.damaged_packets += u64::from(damage.is_some());
                self.tell_progress();
            }
        }
        Ok(())
    }

    /// Compares records of link entities, where the run has a log of them.
    fn compare_links(&mut self, records: &mut Vec<LinkRecord>) -> Result<()> {
        let Some((recorded, columns)) = &mut self.links else {
            records.clear();
            return Ok(());
        };
        for record in records.drain(..) {
            if self.difference.is_none() {
                let replayed = columns.preview(LinkCells::new(&record, &self.places));
                self.difference = difference(self.same_links, recorded.next()?, Some(replayed));
                self.same_links += u64::from(self.difference.is_none());
            }
        }
        Ok(())
    }

    /// The recorded trace must be at its end, too.
    fn end(&mut self) -> Result<()> {
        if let Some((recorded, _)) = self.links.as_mut().filter(|_| self.difference.is_none()) {
            self.difference = difference(self.same_links, recorded.next()?, None);
        }
        if self.difference.is_none() {
            self.difference = difference(self.same, self.events.next()?, None);
        }
        Ok(())
    }

    fn tell_progress(&mut self) {
        if self.same.is_multiple_of(1 << 14) && Instant::now() >= self.next_word {
            self.next_word += SILENT;
            say!("airpath: {} identical events so far", airpath_log::show::count(self.same));
        }
    }
}
