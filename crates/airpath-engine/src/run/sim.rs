// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run in virtual time: a path, workloads in the process itself at its ends, and the files of a live
//! run.

mod pieces;
mod watch;

use std::num::NonZeroUsize;
use std::path::Path as Folder;
use std::sync::OnceLock;
use std::time::Instant;

use airpath_core::{End, PortId, Seed, Span, Time};
use airpath_endpoints::{FlowReport, Options, Pair, WorkloadOutcome, endpoints};
use airpath_log::manifest::{Status, WorkloadRun};
use airpath_log::{Clock, Level, Manifest, Snaplen, Summary};
use airpath_models::MachineConfig;
use airpath_scenario::Scenario;
use airpath_virtual::{Ended, FinishedMachine, MachineId, Until, World, WorldError};
use airpath_workload::{Kind, Workload};
use nix::sys::signal::Signal;

use super::files::KeptFiles;
use super::interrupt::Interrupt;
use super::manifest::Beginning;
use super::recording::{Recorded, Recording, START_UNIX_NS, finished};
use crate::error::{Failure, Result};
use crate::status;
use pieces::{ByWallClock, Pieces};
use watch::Watch;
/// The number of the first workload's packets; 0 is what a packet of nobody looks like.
const FIRST_FLOW: u32 = 1;

/// Everything that decides what a run in virtual time does, except for its seed.
#[derive(Clone, Debug)]
pub struct SimRequest {
    /// The scenario, for the record.
    pub scenario: Scenario,
    /// The machine that it describes.
    pub machine: MachineConfig,
    /// Workloads, each with the number of the user between whose ends it runs.
    pub workloads: Vec<(u16, Workload)>,
    /// Duration of the run; without it, until every workload is done.
    pub duration: Option<Span>,
    /// The MTU of both ends in bytes.
    pub mtu_bytes: u32,
    /// Level of recording.
    pub level: Level,
    /// Number of bytes of each packet.
    pub snaplen: Snaplen,
    /// True if single frames are recorded.
    pub frames: bool,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The run in five lines.
    pub summary: Summary,
    /// Result of each workload.
    pub flows: Vec<FlowReport>,
    /// Reason for the end.
    pub ended: Ended,
    /// Duration by its own clock.
    pub duration: Span,
    /// The signal that broke it off.
    pub interrupted: Option<Signal>,
}

impl Simulated {
    /// 0 if every workload did what it was to do. One that lasts as long as the run does that by
    /// lasting.
    pub fn status(&self) -> i32 {
        if let Some(signal) = self.interrupted {
            return status::of_signal(signal as i32);
        }
        if self.undone().next().is_some() { status::UNDONE } else { 0 }
    }

    /// The flows whose workload did not do what it was to do.
    pub fn undone(&self) -> impl Iterator<Item = &FlowReport> {
        self.flows.iter().filter(|flow| match &flow.outcome {
            WorkloadOutcome::Complete => false,
            WorkloadOutcome::Incomplete => self.ended != Ended::Time || flow.workload.is_bounded(),
            WorkloadOutcome::Failed(_) => true,
        })
    }
}

/// A request whose runs, one or many, differ in their seeds and folders alone.
#[derive(Debug)]
pub struct Simulation<'a> {
    request: &'a SimRequest,
    /// The manifest of a run that is about to begin but for its seed, made with the first one: most of it is the
    /// scenario as text, which takes longer than a short run.
    manifest: OnceLock<Manifest>,
}

impl<'a> Simulation<'a> {
    /// A simulation that has not run.
    pub fn new(request: &'a SimRequest) -> Simulation<'a> {
        Simulation { request, manifest: OnceLock::new() }
    }

    /// Carries it out with `seed`, and records it in `folder`, which exists; all runs have a folder, or none has. `tell`
    /// says whether a long run tells how far it is. A run that `interrupt` ends is complete until then.
    ///
    /// # Errors
    /// When a workload does not fit, time stands still, or a file cannot be made. A run that had begun is
    /// marked as failed.
    pub fn run(&self, seed: u64, folder: Option<&Folder>, tell: bool, interrupt: &Interrupt) -> Result<Simulated> {
        run_in(&mut ByWallClock::default(), self, seed, folder, tell, interrupt)
    }

    /// The manifest of a run that is about to begin, with copies of files in its folder.
    fn begin(&self, seed: u64, files: &KeptFiles) -> Manifest {
        let manifest = self.manifest.get_or_init(|| begin(self.request, files));
        Manifest { seed, ..manifest.clone() }
    }
}

/// Carries out a run in these pieces.
fn run_in(
    pieces: &mut dyn Pieces,
    simulation: &Simulation<'_>,
    seed: u64,
    folder: Option<&Folder>,
    tell: bool,
    interrupt: &Interrupt,
) -> Result<Simulated> {
    let request = simulation.request;
    let begun = Instant::now();
    // Filters look at bytes, recorded or not.
    let bytes = request.level >= Level::Events || !request.machine.filters().is_empty();
    let options = Options { bytes, mtu_bytes: request.mtu_bytes, ..Options::default() };
    let mut pairs = Vec::with_capacity(request.workloads.len());
    for (flow, (user, workload)) in (FIRST_FLOW..).zip(&request.workloads) {
        if let Kind::Saturate(saturate) = &workload.kind
            && request.machine.is_unlimited(usize::from(*user), saturate.from.sends())
        {
            return Err(Failure::usage(format!(
                "workload `{workload}`: a link without a rate cannot be saturated; set one, as with --rate '1 Mbit/s'"
            )));
        }
        let pair = endpoints(workload, flow, Seed(seed), &options)
            .map_err(|error| Failure::usage(format!("workload `{workload}`: {error}")))?;
        pairs.push((flow, *user, pair));
    }
    let manifest = simulation.begin(seed, &KeptFiles::keep(&request.scenario, folder)?);
    let recording = Recording::start(folder, &manifest, request.machine.keeps_links())?;
    write(&manifest, folder)?;
    let mut world = World::new();
    let machine = world.machine(request.machine.build(Seed(seed)), Watch::new(recording, tell));
    let mut results = Vec::with_capacity(pairs.len());
    for (flow, user, Pair { start, client, server, results: result }) in pairs {
        // The server is there when the client's first packet comes, also at the same instant.
        world.attach(flow, machine, PortId::of(user, End::Server), start, server);
        world.attach(flow, machine, PortId::of(user, End::Client), start, client);
        results.push(result);
    }
    let outcome = drive(&mut world, machine, request.duration, pieces, interrupt);
    let interrupted = outcome.as_ref().ok().copied().flatten();
    let Some(FinishedMachine { observer, counters, ending, .. }) = world.finish().pop() else {
        return Err(Failure::new(
            "internal error: the machine of a run in virtual time is missing; please report this",
        ));
    };
    let recording = observer.into_recording();
    let Some(ending) = ending.filter(|_| outcome.is_ok()) else {
        recording.abandon();
        write(&Manifest { status: Status::Failed, ..manifest }, folder)?;
        let reason = outcome.err().map_or_else(|| "it never ended".into(), |error| error.to_string());
        return Err(Failure::new(format!("the run cannot continue: {reason}")));
    };
    let duration = ending.at.since(Time::ZERO);
    let flows: Vec<FlowReport> = results.iter().map(|results| results.report()).collect();
    let Recorded { summary, results } = recording.finish(&counters, duration);
    let mut manifest = finished(manifest, results);
    if let Some(signal) = interrupted {
        manifest.settings.insert("interrupted_by".into(), signal.as_str().into());
    }
    for (workload, flow) in manifest.workloads.iter_mut().zip(&flows) {
        workload.report = serde_json::to_value(flow).ok();
    }
    write(&manifest, folder)?;
    let wall_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(Simulated { summary: summary.in_virtual_time(wall_ns), flows, ended: ending.why, duration, interrupted })
}

/// Runs `world` to its end, or until it is interrupted: in `pieces`, which change nothing.
fn drive(
    world: &mut World<Watch>,
    machine: MachineId,
    duration: Option<Span>,
    pieces: &mut dyn Pieces,
    interrupt: &Interrupt,
) -> std::result::Result<Option<Signal>, WorldError> {
    let last = duration.map_or(Time::NEVER, |duration| Time::ZERO + duration);
    let mut to = Time::ZERO;
    loop {
        to = Time::from_nanos(to.nanos().saturating_add(pieces.length().nanos())).min(last);
        let until = if duration.is_some() { Until::At(to) } else { Until::Done { latest: to } };
        let begun = Instant::now();
        world.run(until, NonZeroUsize::MIN)?;
        let over = duration.is_none() && world.ending(machine).is_some_and(|ending| ending.why != Ended::Time);
        if to == last || over {
            return Ok(None);
        }
        // Behind the first piece: a run that has not begun has no end, either.
        if let Some(signal) = interrupt.asked() {
            return Ok(Some(signal));
        }
        pieces.took(begun.elapsed());
    }
}

/// The manifest of a run that is about to begin, without its seed.
fn begin(request: &SimRequest, files: &KeptFiles) -> Manifest {
    let mut manifest = Beginning {
        scenario: &request.scenario,
        files,
        machine: &request.machine,
        clock: Clock::Virtual,
        seed: 0,
        level: request.level,
        snaplen: request.snaplen,
        frames: request.frames,
    }
    .manifest();
    manifest.start_unix_ns = START_UNIX_NS;
    manifest.settings.insert("mtu_bytes".into(), request.mtu_bytes.into());
    if let Some(duration) = request.duration {
        manifest.settings.insert("duration_ns".into(), duration.nanos().into());
    }
    manifest.workloads = request
        .workloads
        .iter()
        .map(|(_, workload)| WorkloadRun { workload: workload.to_string(), report: None })
        .collect();
    manifest
}

fn write(manifest: &Manifest, folder: Option<&Folder>) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    manifest.write(folder).map_err(Failure::log)
}

#[cfg(test)]
mod tests;
