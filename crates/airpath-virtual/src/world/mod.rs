// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A world: many machines, what stands at their ports, and one order of events.
//!
//! At one instant a machine runs its own events, carries out commands, hands what it emitted to the
//! endpoints (or to the machine connected to the port), lets the endpoints' timers run, and takes what
//! was sent, in the order in which it was sent; this goes round until nothing more happens at that
//! instant. Machines that are connected with each other take turns in order of (time, number).
//! Machines that are not connected know nothing of each other: each such group is run to its end by
//! one of the threads, and nothing depends on which.

mod component;
mod deadlines;
mod node;
mod observer;

use std::num::NonZeroUsize;
use std::sync::Mutex;

use airpath_core::{Command, CommandError, Counters, Machine, PortId, Time};

use crate::{Endpoint, Progress};
use component::Component;
use node::{Attachment, Node};
pub use observer::{MachineEnd, Observer};

/// A machine of a world: their numbers count up from 0 in the order in which they joined.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MachineId(usize);

impl MachineId {
    /// Its number.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// End condition of a run, for each group of connected machines by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// An instant: everything due at or before it has been run.
    At(Time),
    /// Completion: no endpoint is active any more and the machines are empty, or `latest` is reached.
    Done {
        /// The run ends here at the latest; `Time::NEVER` for no such limit.
        latest: Time,
    },
}

/// Reason for the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The time given was reached.
    Time,
    /// No endpoint was active, and the machines were empty or will never be.
    Done,
    /// Deadlock: nothing was due although an endpoint was active, such as one that waits for a lost packet.
    Stalled,
}

/// Time and reason of the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// End time: everything due at or before it has been run.
    pub at: Time,
    /// Reason for the end.
    pub why: Ended,
}

/// Error that prevents a group of machines from running to the end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// A machine refused a command.
    #[error("machine {}: the command at {at:?} was refused: {error}", machine.0)]
    Command {
        /// The machine.
        machine: MachineId,
        /// Time of the command.
        at: Time,
        /// Error of the machine.
        error: CommandError,
    },
    /// A machine and its surroundings answer each other without any time passing.
    #[error(
        "machine {}: time does not pass beyond {at:?}: packets go back and forth without delay; give the link a rate \
         or a propagation delay",
        machine.0
    )]
    Standstill {
        /// The machine.
        machine: MachineId,
        /// Time at which the clock stopped.
        at: Time,
    },
}

/// An endpoint after the runs.
pub struct FinishedEndpoint {
    /// The flow whose packets it sent and received.
    pub flow: u32,
    /// The port at which it stood.
    pub port: PortId,
    /// Progress of the endpoint.
    pub progress: Progress,
    /// Since when it has not been active; none if it is, or never began.
    pub inactive_since: Option<Time>,
    /// The endpoint.
    pub endpoint: Box<dyn Endpoint>,
}

/// A machine after the runs.
pub struct FinishedMachine<O> {
    /// The machine's observer.
    pub observer: O,
    /// The machine's counters.
    pub counters: Counters,
    /// Packets still inside.
    pub held: u64,
    /// Packets that left through a port at which nobody waited for their flow.
    pub unclaimed: u64,
    /// Time and reason of the end of the last run; none if there was none.
    pub ending: Option<Ending>,
    /// Endpoints at the machine's ports, in the order of attachment.
    pub endpoints: Vec<FinishedEndpoint>,
}

/// Machines, endpoints and the connections between them.
pub struct World<O: Observer = ()> {
    nodes: Vec<Node<O>>,
    endings: Vec<Option<Ending>>,
}

impl<O: Observer> Default for World<O> {
    fn default() -> World<O> {
        World::new()
    }
}

impl<O: Observer> World<O> {
    /// An empty world.
    pub fn new() -> World<O> {
        World { nodes: Vec::new(), endings: Vec::new() }
    }

    /// Adds a machine, at the beginning of its run, with the observer that watches it.
    pub fn machine(&mut self, machine: Box<dyn Machine>, observer: O) -> MachineId {
        self.nodes.push(Node::new(machine, observer));
        self.endings.push(None);
        MachineId(self.nodes.len() - 1)
    }

    /// Puts `endpoint` at `port` of `machine`, where it begins its work at `start`. Its packets get the
    /// number `flow`, and it receives those that leave the port with that number: a workload is two
    /// endpoints with the same flow.
    ///
    /// # Panics
    /// When the port is connected to another machine, or another endpoint has the flow there.
    pub fn attach(&mut self, flow: u32, machine: MachineId, port: PortId, start: Time, endpoint: Box<dyn Endpoint>) {
        let node = &mut self.nodes[machine.0];
        let place = node.attachments.len();
        let state = node.port(port);
        assert!(state.wire.is_none(), "{port:?} of machine {} is connected to another machine", machine.0);
        match state.flows.binary_search_by_key(&flow, |(flow, _)| *flow) {
            Ok(_) => panic!("{port:?} of machine {} has an endpoint of flow {flow}", machine.0),
            Err(index) => state.flows.insert(index, (flow, place)),
        }
        let attachment = Attachment { flow, port, start, started: false, endpoint, active: true, inactive_since: None };
        node.attach(attachment);
    }

    /// Connects two ports of machines: what leaves one enters the other at the same instant.
    ///
    /// # Panics
    /// When something stands at one of the ports already, or they are the same.
    pub fn connect(&mut self, one: (MachineId, PortId), other: (MachineId, PortId)) {
        assert!(one != other, "a port cannot be connected to itself");
        for ((machine, port), to) in [(one, other), (other, one)] {
            let state = self.nodes[machine.0].port(port);
            assert!(
                state.wire.is_none() && state.flows.is_empty(),
                "something stands at {port:?} of machine {} already",
                machine.0
            );
            state.wire = Some((to.0.0, to.1));
        }
    }

    /// Has `machine` carry out `command` at `at`, behind earlier commands of the same instant. One for
    /// an instant that has been run is carried out at the beginning of the next run.
    pub fn command(&mut self, machine: MachineId, at: Time, command: Command) {
        let node = &mut self.nodes[machine.0];
        let at = at.max(node.now());
        node.command(at, command);
    }

    /// Runs until `until` with at most `threads` threads; a later run goes on from there. The results
    /// do not depend on the number of threads.
    ///
    /// # Errors
    /// When a machine refuses a command or time stands still for it. Machines that are not connected
    /// with it are run to their end all the same; of several errors it is the first machine's.
    ///
    /// # Panics
    /// When a machine or an endpoint breaks its contract.
    pub fn run(&mut self, until: Until, threads: NonZeroUsize) -> Result<(), WorldError> {
        let group_of = self.groups();
        let mut places = vec![0; self.nodes.len()];
        let mut components: Vec<Component<'_, O>> = Vec::new();
        for (id, node) in self.nodes.iter_mut().enumerate() {
            let group = group_of[id];
            if group == components.len() {
                components.push(Component { ids: Vec::new(), nodes: Vec::new(), outcome: None });
            }
            places[id] = components[group].nodes.len();
            components[group].ids.push(id);
            components[group].nodes.push(node);
        }
        let threads = threads.get().min(components.len());
        if threads <= 1 {
            components.iter_mut().for_each(|component| component.run(until, &places));
        } else {
            let next = Mutex::new(components.iter_mut());
            let work = || {
                while let Some(component) = next.lock().ok().and_then(|mut next| next.next()) {
                    component.run(until, &places);
                }
            };
            std::thread::scope(|scope| {
                (1..threads).for_each(|_| {
                    scope.spawn(work);
                });
                work();
            });
        }
        let mut first = Ok(());
        for Component { ids, outcome, .. } in components {
            match outcome {
                Some(Ok(ending)) => ids.iter().for_each(|id| self.endings[*id] = Some(ending)),
                Some(Err(error)) => first = first.and(Err(error)),
                None => {}
            }
        }
        first
    }

    /// Machines and endpoints after the run, in the order of the machines' numbers.
    pub fn finish(self) -> Vec<FinishedMachine<O>> {
        let finish = |(node, ending): (Node<O>, Option<Ending>)| {
            let endpoint = |attachment: Attachment| FinishedEndpoint {
                flow: attachment.flow,
                port: attachment.port,
                progress: attachment.endpoint.progress(),
                inactive_since: attachment.inactive_since,
                endpoint: attachment.endpoint,
            };
            FinishedMachine {
                held: node.machine.held(),
                observer: node.observer,
                counters: node.outputs.counters,
                unclaimed: node.unclaimed,
                ending,
                endpoints: node.attachments.into_iter().map(endpoint).collect(),
            }
        };
        self.nodes.into_iter().zip(self.endings).map(finish).collect()
    }

    /// Time and reason of the end of the last run for `machine`; nothing before it, or after an error.
    pub fn ending(&self, machine: MachineId) -> Option<Ending> {
        self.endings[machine.0]
    }

    /// The number of the group of connected machines to which each belongs; groups are numbered in
    /// the order of their first machines.
    fn groups(&self) -> Vec<usize> {
        const NONE: usize = usize::MAX;
        let mut group_of = vec![NONE; self.nodes.len()];
        let mut groups = 0;
        let mut reached = Vec::new();
        for first in 0..self.nodes.len() {
            if group_of[first] != NONE {
                continue;
            }
            group_of[first] = groups;
            reached.push(first);
            while let Some(machine) = reached.pop() {
                for (other, _) in self.nodes[machine].ports.iter().filter_map(|port| port.wire) {
                    if group_of[other] == NONE {
                        group_of[other] = groups;
                        reached.push(other);
                    }
                }
            }
            groups += 1;
        }
        group_of
    }
}
