// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Machines that are connected with one another, directly or through others, and so share one order
//! of events: by time, and at one instant by the machines' numbers.

use airpath_core::{Span, Time};

use super::deadlines::Deadlines;
use super::node::{HandOver, Node};
use super::{Ended, Ending, MachineEnd, MachineId, Observer, Until, WorldError};

/// Time after which packets that machines hold, while no endpoint expects anything, are taken to stay there:
/// longer than any entity repeats and reconnects.
const HELD_FOR_GOOD: Span = Span::from_secs(3_600);

/// A group of connected machines during one run.
pub(super) struct Component<'a, O> {
    /// The machines' numbers in the world, ascending, and the machines.
    pub ids: Vec<usize>,
    pub nodes: Vec<&'a mut Node<O>>,
    /// Result of the run.
    pub outcome: Option<Result<Ending, WorldError>>,
}

impl<O: Observer> Component<'_, O> {
    /// Runs until the end; `places` are the places of the world's machines within their components.
    pub(super) fn run(&mut self, until: Until, places: &[usize]) {
        let ended = self.drive(until, places);
        if let Ok(ending) = ended {
            self.nodes.iter_mut().for_each(|node| node.settle(ending.at));
            for node in &mut self.nodes {
                let (counters, held) = (&node.outputs.counters, node.machine.held());
                node.observer.end(&MachineEnd { ending, counters, held });
            }
        }
        self.outcome = Some(ended);
    }

    fn drive(&mut self, until: Until, places: &[usize]) -> Result<Ending, WorldError> {
        let mut deadlines = Deadlines::new(self.nodes.len());
        for (place, node) in self.nodes.iter_mut().enumerate() {
            node.prepare();
            deadlines.set(place, node.due());
        }
        let mut active: usize = self.nodes.iter().map(|node| node.active).sum();
        let mut outbox: Vec<HandOver> = Vec::new();
        // Where a machine never rests, silence does not come of itself.
        let never_idle = self.nodes.iter().any(|node| node.machine.never_idle());
        let mut now = self.nodes.iter().map(|node| node.now()).max().unwrap_or(Time::ZERO);
        let (last, until_done) = match until {
            Until::At(last) => (last, false),
            Until::Done { latest } => (latest, true),
        };
        loop {
            let (at, place) = deadlines.first();
            // Whether the work is done can be told between two instants only.
            if at > now && until_done && active == 0 && self.held() == 0 {
                return Ok(Ending { at: now, why: Ended::Done });
            }
            if at > now && until_done && never_idle && !self.expects_something(place) {
                let since = self.nodes.iter_mut().map(|node| node.held_since(at)).max();
                // What a machine has held for so long stays there, whatever the machine does about it.
                if self.held() == 0 || since.is_some_and(|since| at.since(since) > HELD_FOR_GOOD) {
                    return Ok(Ending { at: now, why: Ended::Stalled });
                }
            }
            if at == Time::NEVER && (until_done || last == Time::NEVER) {
                let why = if active == 0 { Ended::Done } else { Ended::Stalled };
                return Ok(Ending { at: now, why });
            }
            if at > last {
                return Ok(Ending { at: last.max(now), why: Ended::Time });
            }
            now = at;
            let node = &mut self.nodes[place];
            let before = node.active;
            let outcome = node.round(at, &mut outbox);
            outcome.map_err(|error| error.of_machine(MachineId(self.ids[place])))?;
            active = active + node.active - before;
            deadlines.set(place, node.due());
            if !outbox.is_empty() {
                for HandOver { to, port, item } in outbox.drain(..) {
                    let place = places[to];
                    self.nodes[place].take(at, port, item);
                    deadlines.set(place, at);
                }
            }
        }
    }

    /// True if an endpoint will do something by itself; the node at `likely` is asked first.
    fn expects_something(&self, likely: usize) -> bool {
        self.nodes[likely].expects_something() || self.nodes.iter().any(|node| node.expects_something())
    }

    fn held(&self) -> u64 {
        self.nodes.iter().map(|node| node.machine.held()).sum()
    }
}
