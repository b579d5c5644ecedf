// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A link as it is seen from outside, during its run and after it.

use std::io;

use airpath_core::{End, Span, Time};
use airpath_log::{Delays, Recorder};

use super::super::measure::LinkMeasurements;
use super::super::stamps::ClockReport;
use super::LiveLink;
use crate::ports::Port;

/// One that is so far behind in the middle of a run does not catch up by itself.
const HOPELESSLY_BEHIND: Span = Span::from_secs(1);

impl LiveLink {
    /// Measurements up to now.
    pub fn look(&mut self, now: Time) -> LinkLook {
        let mut measurements = self.measurements.clone();
        let behind = now.since(self.driven_to);
        if self.unfinished.is_some() && behind > HOPELESSLY_BEHIND {
            measurements.unfinished = behind;
        }
        LinkLook {
            at: now,
            measurements,
            counters: self.outputs.counters.clone(),
            losses: PortLosses::read(&mut self.ports),
            stamped: self.has_kernel_stamps(),
            demoted: None,
            clock: ClockReport::default(),
            epoch_ns: 0,
            reads_unwatched: false,
        }
    }

    /// Ends the run: what the counters and the measurements say, how many packets are still inside,
    /// and the recorder, to be finished.
    pub fn finish(self) -> FinishedLink {
        let held = self.machine.held();
        FinishedLink {
            ended: self.driven_to,
            counters: self.outputs.counters,
            measurements: self.measurements,
            delays: self.delays,
            held,
            recorder: self.recorder,
            ports: self.ports,
            lost: self.lost,
        }
    }
}

/// Measurements of a link up to an instant.
#[derive(Debug)]
pub struct LinkLook {
    /// The instant, in run time.
    pub at: Time,
    /// Measurements of the loop.
    pub measurements: LinkMeasurements,
    /// Counters of the machine.
    pub counters: airpath_core::Counters,
    /// Losses of the ports.
    pub losses: PortLosses,
    /// True if packets bear the kernel's stamps.
    pub stamped: bool,
    /// Time at which the loop lost its real-time priority, in run time.
    pub demoted: Option<Time>,
    /// Observations of the wall clock.
    pub clock: ClockReport,
    /// Start of the run, by CLOCK_MONOTONIC in ns.
    pub epoch_ns: u64,
    /// Packets bear no stamps, and the kernel does not tell how long the loop waited for a processor.
    pub reads_unwatched: bool,
}

impl LinkLook {
    /// The first steps of the wall clock, in run time.
    pub fn clock_steps(&self) -> impl Iterator<Item = (Time, i64)> + '_ {
        let epoch_ns = self.epoch_ns;
        let in_run = move |noticed_ns: u64| Time::from_nanos(noticed_ns.saturating_sub(epoch_ns));
        self.clock.steps.iter().map(move |step| (in_run(step.noticed_ns), step.by_ns))
    }
}

/// Losses of the ports of a link outside the model.
#[derive(Debug, Default)]
pub struct PortLosses {
    /// Packets that the kernel lost between the endpoints and the engine.
    pub drops: u64,
    /// Frames that were no IP packets.
    pub not_ip: u64,
    /// Frames longer than the link takes.
    pub too_long: u64,
    /// Counters that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl PortLosses {
    /// Reads the counters of the ports.
    pub fn read(ports: &mut [Port]) -> PortLosses {
        let mut losses = PortLosses::default();
        for (port, end) in ports.iter_mut().zip(End::ALL.into_iter().cycle()) {
            losses.not_ip += port.not_ip();
            losses.too_long += port.too_long();
            match port.drops_outside_model() {
                Ok(drops) => losses.drops += drops.total(),
                Err(error) => {
                    losses.unreadable.push(format!("kernel packet losses at the {end}'s end ({error})"));
                }
            }
        }
        losses
    }
}

/// A link after its run.
pub struct FinishedLink {
    /// Instant through which the machine was run: the end of its trace.
    pub ended: Time,
    /// Counters of the machine.
    pub counters: airpath_core::Counters,
    /// Measurements of the loop.
    pub measurements: LinkMeasurements,
    /// One-way delays of each user; none where there is only one.
    pub delays: Vec<Delays>,
    /// Packets still in the machine.
    pub held: u64,
    /// The recorder.
    pub recorder: Recorder,
    /// The ports, for the kernel's counters.
    pub ports: Vec<Port>,
    /// The error that ended it before the end of the run.
    pub lost: Option<io::Error>,
}
