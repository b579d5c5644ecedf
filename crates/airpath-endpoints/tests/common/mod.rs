// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A small loop that joins one machine with workloads, and links to run them over.
#![allow(dead_code)] // The examples use parts of it.

use airpath_core::{End, Item, LogLevel, Machine, Pdu, PortId, Seed, Time};
use airpath_endpoints::{FlowReport, Options, Pair, endpoints};
use airpath_models::Path;
use airpath_scenario::{PlainOptions, Scenario};
use airpath_virtual::{Endpoint, Input, Progress, Sent, VirtualDriver};
use airpath_workload::Workload;

/// A packet that passed one end of the link.
#[derive(Clone, Debug)]
pub struct Passed {
    pub at: Time,
    pub end: End,
    pub pdu: Pdu,
}

/// Times in nanoseconds, ends and lengths of everything sent: what has to repeat.
pub type Trace = Vec<(u64, End, u32)>;

/// Result of a run.
pub struct Run {
    pub reports: Vec<FlowReport>,
    /// Packets that the ends sent, and packets that they got, in order.
    pub sent: Vec<Passed>,
    pub got: Vec<Passed>,
    /// End of the run.
    pub end: Time,
    /// Maximum number of packets inside.
    pub most_held: u64,
}

impl Run {
    /// Send times of the packets of `end`, in nanoseconds.
    pub fn sending_times(&self, end: End) -> Vec<u64> {
        self.sent.iter().filter(|passed| passed.end == end).map(|passed| passed.at.nanos()).collect()
    }

    /// Arrival times of packets at `end`, in nanoseconds.
    pub fn arrival_times(&self, end: End) -> Vec<u64> {
        self.got.iter().filter(|passed| passed.end == end).map(|passed| passed.at.nanos()).collect()
    }

    /// Part of the result that has to repeat.
    pub fn trace(&self) -> Trace {
        self.sent.iter().map(|passed| (passed.at.nanos(), passed.end, passed.pdu.len)).collect()
    }
}

/// The link of a scenario.
pub fn scenario(text: &str, seed: u64) -> Box<dyn Machine> {
    let scenario = Scenario::from_toml(text, "test").unwrap_or_else(|error| panic!("{error}"));
    Box::new(Path::new(&scenario.paths().unwrap()[0].config, Seed(seed)))
}

/// A link with `rate,delay,queue,loss`, any of which may be empty.
pub fn link(plain: &str, seed: u64) -> Box<dyn Machine> {
    let mut parts = plain.split(',').map(|part| Some(part.trim().to_string()).filter(|part| !part.is_empty()));
    let mut next = || parts.next().flatten();
    let options = PlainOptions { rate: next(), delay: next(), queue: next(), loss: next(), ..PlainOptions::default() };
    let mut scenario = Scenario::transparent();
    scenario.apply_plain(&options).unwrap_or_else(|error| panic!("{error}"));
    Box::new(Path::new(&scenario.paths().unwrap()[0].config, Seed(seed)))
}

pub fn seconds(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}

struct Attached {
    end: End,
    flow: u32,
    start: Time,
    started: bool,
    endpoint: Box<dyn Endpoint>,
}

/// Runs `workloads` over `machine` until all is done and nothing is inside, or until `last`.
pub fn run(machine: Box<dyn Machine>, workloads: &[&str], options: &Options, seed: u64, last: Time) -> Run {
    drive(machine, workloads, options, seed, last, false)
}

/// The same, with endpoints woken up whenever anything happens.
pub fn run_nudged(machine: Box<dyn Machine>, workloads: &[&str], options: &Options, seed: u64, last: Time) -> Run {
    drive(machine, workloads, options, seed, last, true)
}

fn drive(machine: Box<dyn Machine>, workloads: &[&str], options: &Options, seed: u64, last: Time, nudge: bool) -> Run {
    let mut attached = Vec::new();
    let mut results = Vec::new();
    for (flow, text) in workloads.iter().enumerate() {
        let workload = Workload::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let pair = endpoints(&workload, flow as u32, Seed(seed), options).unwrap_or_else(|error| panic!("{error}"));
        let Pair { start, client, server, results: handle } = pair;
        for (end, endpoint) in [(End::Client, client), (End::Server, server)] {
            attached.push(Attached { end, flow: flow as u32, start, started: false, endpoint });
        }
        results.push(handle);
    }
    let mut driver = VirtualDriver::new(machine, LogLevel::Counters);
    let mut run = Run { reports: Vec::new(), sent: Vec::new(), got: Vec::new(), end: Time::ZERO, most_held: 0 };
    let mut id = 0;
    loop {
        let timers =
            attached.iter().filter_map(|it| if it.started { it.endpoint.next_deadline() } else { Some(it.start) });
        let Some(now) = timers.chain(driver.next_deadline()).min().filter(|now| *now <= last) else { break };
        let idle = attached.iter().all(|it| it.started && it.endpoint.progress() != Progress::Active);
        if idle && driver.machine().held() == 0 && now > run.end {
            break;
        }
        run.end = now;
        driver.advance(now);
        let mut sent: Vec<(End, u32, Sent)> = Vec::new();
        for emission in driver.outputs_mut().emissions.drain(..) {
            let Item::Pdu(pdu) = emission.item else { continue };
            let end = if emission.port == PortId::CLIENT { End::Client } else { End::Server };
            run.got.push(Passed { at: emission.at, end, pdu: pdu.clone() });
            let to = attached.iter_mut().find(|it| it.end == end && it.flow == pdu.flow).expect("a flow's endpoint");
            let mut out = Sent::default();
            to.endpoint.receive(now, pdu, &mut out);
            sent.push((end, to.flow, out));
        }
        for it in &mut attached {
            let mut out = Sent::default();
            if !it.started && it.start <= now {
                it.started = true;
                it.endpoint.start(now, &mut out);
            }
            if it.started && (nudge || it.endpoint.next_deadline().is_some_and(|due| due <= now)) {
                it.endpoint.advance(now, &mut out);
                let next = it.endpoint.next_deadline();
                assert!(next.is_none_or(|next| next > now), "due at {next:?} after advancing to {now:?}");
            }
            sent.push((it.end, it.flow, out));
        }
        for (end, flow, mut out) in sent {
            for mut pdu in out.drain() {
                (pdu.id, pdu.arrived, pdu.flow) = (id, now, flow);
                id += 1;
                run.sent.push(Passed { at: now, end, pdu: pdu.clone() });
                driver.input(now, Input::Offer(end.port(), Item::Pdu(pdu))).unwrap();
            }
        }
        run.most_held = run.most_held.max(driver.machine().held());
    }
    run.reports = results.iter().map(|handle| handle.report()).collect();
    run
}
