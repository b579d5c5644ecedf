// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Random traffic, and the scenarios that it goes through.

use std::path::PathBuf;

use airpath_core::{Machine, Pdu, PortId, Seed, Span, Time};
use airpath_models::{Path, PathConfig};
use airpath_scenario::{Scenario, profiles};
use airpath_virtual::{Endpoint, MachineId, Observer, Progress, Sent, World};

/// Sends bursts of packets of any size at any time, and answers some of those that come. Its choices
/// (xorshift64*) have nothing in common with the draws of models.
pub struct Chatter {
    state: u64,
    left: u32,
    /// The mean time between bursts.
    pause: Span,
    next: Option<Time>,
}

impl Chatter {
    pub fn new(seed: u64, packets: u32, pause: Span) -> Box<Chatter> {
        Box::new(Chatter { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, left: packets, pause, next: None })
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % bound
    }

    fn say(&mut self, out: &mut Sent) {
        if self.left > 0 {
            self.left -= 1;
            let len = [40, 1500, 20 + self.below(1_481) as u32][self.below(3) as usize];
            let header_len = [0, 20, 40][self.below(3) as usize].min(len) as u16;
            out.push(Pdu { len, header_len, ..Pdu::default() });
        }
    }
}

impl Endpoint for Chatter {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.advance(at, out);
    }
    fn receive(&mut self, _: Time, pdu: Pdu, out: &mut Sent) {
        // What has happened to a packet shows in what follows.
        if self.below(4) == 0 || pdu.damage.is_some() {
            self.say(out);
        }
    }
    fn advance(&mut self, at: Time, out: &mut Sent) {
        for _ in 0..=self.below(8) {
            self.say(out);
        }
        // Some pauses end when those of others do.
        let step = [self.pause.nanos(), 1 + self.below(2 * self.pause.nanos())][self.below(2) as usize];
        self.next = (self.left > 0).then(|| at + Span::from_nanos(step));
    }
    fn next_deadline(&self) -> Option<Time> {
        self.next
    }
    fn progress(&self) -> Progress {
        if self.left > 0 { Progress::Active } else { Progress::Done }
    }
}

/// Every built-in profile, every scenario of a study, and those that the documentation shows.
pub fn scenarios() -> Vec<(String, PathConfig)> {
    let mut texts: Vec<(String, String)> =
        profiles().iter().map(|profile| (profile.name.to_string(), profile.text.to_string())).collect();
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = Vec::new();
    for study in std::fs::read_dir(root.join("studies")).unwrap() {
        for file in std::fs::read_dir(study.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("scenario"))
                && file.extension().is_some_and(|extension| extension == "toml")
            {
                files.push(file);
            }
        }
    }
    files.sort();
    texts.extend(files.iter().map(|file| (file.display().to_string(), std::fs::read_to_string(file).unwrap())));
    let mut pages = vec![root.join("docs/scenario.md")];
    pages.extend(std::fs::read_dir(root.join("docs/scenario")).unwrap().map(|page| page.unwrap().path()));
    pages.sort();
    for file in pages {
        let page = std::fs::read_to_string(&file).unwrap();
        let shown = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for (index, text) in shown.filter(|text| text.contains("[[hops]]")).enumerate() {
            texts.push((format!("{}, {}", file.display(), index + 1), text.to_string()));
        }
    }
    let mut all = Vec::new();
    for (name, text) in texts {
        let scenario = Scenario::from_toml(&text, &name).unwrap_or_else(|report| panic!("{report}"));
        all.extend(scenario.paths().unwrap().into_iter().map(|path| (name.clone(), path.config)));
    }
    all
}

pub fn machine_of(config: &PathConfig, seed: u64) -> Box<dyn Machine> {
    Box::new(Path::new(config, Seed(seed)))
}

/// The workloads between two ends: flow, packets of each end, pause, start.
pub const WORKLOADS: [(u32, u32, Span, Time); 2] =
    [(1, 120, Span::from_millis(40), Time::ZERO), (2, 30, Span::from_millis(700), Time::from_nanos(1_000_000))];

/// The seed of one end of a workload.
pub fn seed_of(seed: u64, flow: u32, end: usize) -> u64 {
    seed ^ u64::from(flow) << 32 ^ (end as u64) << 40
}

/// Two workloads on the way from a port of one machine to a port of another, or of the same.
pub fn attach_chatter<O: Observer>(
    world: &mut World<O>,
    from: (MachineId, PortId),
    to: (MachineId, PortId),
    seed: u64,
) {
    for (flow, packets, pause, start) in WORKLOADS {
        for (end, (machine, port)) in [from, to].into_iter().enumerate() {
            let endpoint = Chatter::new(seed_of(seed, flow, end), packets, pause);
            world.attach(flow, machine, port, start, endpoint);
        }
    }
}
