// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lines of the control socket while a link is driven; what is recorded of them gives the same link
//! again (law 6).

use std::sync::{Arc, LazyLock};

use airpath_core::{Command, Machine, PortId, Span};
use airpath_engine::inside::Request;
use airpath_models::PathConfig;
use airpath_scenario::{Running, Scenario};

use super::drive::Drive;
use super::hash;

/// A link with states, two hops, and something of most roles to set.
const SCENARIO: &str = include_str!("../../../../fuzz/control-link.toml");
const LINES: usize = 16;

static PARSED: LazyLock<(Scenario, PathConfig)> = LazyLock::new(|| {
    let scenario = Scenario::from_toml(SCENARIO, "control-link.toml").expect("the scenario of the control target");
    let config = scenario.paths().expect("a scenario that was accepted has paths").swap_remove(0).config;
    (scenario, config)
});

/// An order that was carried out, as the input log has it.
enum Recorded {
    State(String),
    Set(Vec<String>),
}

pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let seed = hash(input);
    let mut link = Link::new(seed);
    let mut recorded = Vec::new();
    for (number, line) in text.lines().take(LINES).enumerate() {
        link.carry_on(number);
        match Request::read(line) {
            Ok(request) => recorded.extend(link.carry_out(request).map(|order| (number, order))),
            Err(refusal) => assert!(!refusal.answer().to_string().is_empty()),
        }
    }
    link.carry_on(LINES);
    let mut again = Link::new(seed);
    let mut orders = recorded.into_iter().peekable();
    for number in 0..text.lines().take(LINES).count() {
        again.carry_on(number);
        if let Some((_, order)) = orders.next_if(|(of, _)| *of == number) {
            again.repeat(order);
        }
    }
    again.carry_on(LINES);
    assert_eq!(link.drive.counters(), again.drive.counters(), "what was recorded gives another run");
    assert_eq!(link.drive.machine().held(), again.drive.machine().held());
}

struct Link {
    drive: Drive,
    running: Running,
}

impl Link {
    fn new(seed: u64) -> Link {
        let (scenario, config) = &*PARSED;
        Link { drive: Drive::new(config, seed), running: Running::new(scenario) }
    }

    /// Traffic between orders.
    fn carry_on(&mut self, number: usize) {
        for packet in 0..3 {
            let port = if (number + packet).is_multiple_of(3) { PortId::SERVER } else { PortId::CLIENT };
            self.drive.offer(port, [1500, 40, 576][packet]);
        }
        self.drive.advance(self.drive.now() + Span::from_millis(20));
        self.drive.check_conservation();
    }

    /// Does what the control of a run does with a request.
    fn carry_out(&mut self, request: Request) -> Option<Recorded> {
        match request {
            Request::Describe {} | Request::Watch {} | Request::Verdict {} => None,
            Request::Get { parameter } => {
                let value = self.running.get(&parameter, |user| self.drive.machine().state_in_force(user));
                if let Err(report) = value {
                    assert!(!report.to_string().is_empty());
                }
                None
            }
            Request::State { name } => {
                let entered = self.drive.command(Command::EnterState(name.as_str().into()));
                entered.is_ok().then_some(Recorded::State(name))
            }
            Request::Set { parameter, value, mut parameters } => {
                parameters.extend(parameter.zip(value));
                if parameters.is_empty() {
                    return None;
                }
                let assignments = self.running.assignments(&parameters);
                self.set(&assignments).then_some(Recorded::Set(assignments))
            }
        }
    }

    fn set(&mut self, assignments: &[String]) -> bool {
        let Ok(mut settings) = self.running.set(assignments) else { return false };
        let Some((_, setting)) = settings.pop() else { return false };
        if self.drive.command(Command::Configure(Arc::new(setting))).is_err() {
            return false;
        }
        self.running.took_effect(|user| self.drive.machine().state_in_force(user));
        true
    }

    fn repeat(&mut self, order: Recorded) {
        match order {
            Recorded::State(name) => {
                self.drive.command(Command::EnterState(name.as_str().into())).expect("a state that was entered before");
            }
            Recorded::Set(assignments) => {
                assert!(self.set(&assignments), "a recorded setting is refused: {assignments:?}")
            }
        }
    }
}
