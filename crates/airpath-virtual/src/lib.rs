// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The virtual driver: runs a machine in logical time, as fast as the processor allows.
//!
//! It does what the live driver does with the wall clock left out: it offers inputs at the times
//! they bear, advances the machine to its deadlines in between, and hands on what the machine left
//! behind. Nothing depends on the processor's speed, so the same inputs give the same outputs.
//!
//! [`VirtualDriver::run`] plays inputs that are known beforehand (a generated workload, the input
//! log of another run). A [`World`] runs any number of machines together with endpoints that answer to
//! what they receive.

mod endpoint;
mod world;

use airpath_core::{Command, CommandError, Counters, Cx, Item, LogLevel, Machine, Outputs, Pdu, PortId, Time};

pub use endpoint::{Endpoint, Progress, Sent};
pub use world::{
    Ended, Ending, FinishedEndpoint, FinishedMachine, MachineEnd, MachineId, Observer, Until, World, WorldError,
};

/// External input of a machine.
#[derive(Debug)]
pub enum Input {
    /// An item that comes in through a port.
    Offer(PortId, Item),
    /// A change of parameters.
    Command(Command),
}

/// An input and the time at which it comes.
#[derive(Debug)]
pub struct TimedInput {
    /// Time of the input.
    pub at: Time,
    /// The input.
    pub input: Input,
}

impl TimedInput {
    /// A packet that comes in through `port` at `at`.
    pub fn packet(at: Time, port: PortId, pdu: Pdu) -> TimedInput {
        TimedInput { at, input: Input::Offer(port, Item::Pdu(pdu)) }
    }

    /// A command carried out at `at`.
    pub fn command(at: Time, command: Command) -> TimedInput {
        TimedInput { at, input: Input::Command(command) }
    }
}

/// End condition of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveUntil {
    /// End of the inputs, with nothing due any more. A machine that always has something due (one with a load
    /// of its own) never gets there.
    Idle,
    /// An instant: everything due at or before it is run; later inputs are not taken.
    At(Time),
}

/// Reason for refusing an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// Time would run backwards.
    #[error("an input at {at:?} comes after the run has reached {now:?}: inputs must be in order of time")]
    Backwards {
        /// The input's time.
        at: Time,
        /// The time already reached.
        now: Time,
    },
    /// The machine refused a command.
    #[error("the command at {at:?} was refused: {error}")]
    Command {
        /// The command's time.
        at: Time,
        /// Error of the machine.
        error: CommandError,
    },
}

/// A machine, what it has left behind, and the time it has reached.
pub struct VirtualDriver<M: Machine = Box<dyn Machine>> {
    machine: M,
    outputs: Outputs,
    now: Time,
}

impl<M: Machine> VirtualDriver<M> {
    /// A driver of `machine`, at the beginning of a run.
    pub fn new(machine: M, level: LogLevel) -> VirtualDriver<M> {
        VirtualDriver { machine, outputs: Outputs { level, ..Outputs::default() }, now: Time::ZERO }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The time reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Output of the machine that nobody has taken yet.
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// The same, to take emissions and events from.
    pub fn outputs_mut(&mut self) -> &mut Outputs {
        &mut self.outputs
    }

    /// Counters since the run began.
    pub fn counters(&self) -> &Counters {
        &self.outputs.counters
    }

    /// Time of the next internal event.
    pub fn next_deadline(&self) -> Option<Time> {
        self.machine.next_deadline()
    }

    /// Hands `input` to the machine at `at`; everything due until then is run first.
    ///
    /// # Errors
    /// When `at` is before the time reached, or the machine refuses a command.
    pub fn input(&mut self, at: Time, input: Input) -> Result<(), DriveError> {
        if at < self.now {
            return Err(DriveError::Backwards { at, now: self.now });
        }
        self.now = at;
        let mut cx = Cx::new(&mut self.outputs);
        match input {
            Input::Offer(port, item) => self.machine.offer(at, port, item, &mut cx),
            Input::Command(command) => {
                self.machine.control(at, &command, &mut cx).map_err(|error| DriveError::Command { at, error })?;
            }
        }
        Ok(())
    }

    /// Runs everything due at or before `to`; a time already reached changes nothing.
    ///
    /// # Panics
    /// When the machine still has something due at `to` afterwards: a bug in the machine, which
    /// would keep any driver busy for ever.
    pub fn advance(&mut self, to: Time) {
        let to = to.max(self.now);
        self.machine.advance(to, &mut Cx::new(&mut self.outputs));
        self.now = to;
        let next = self.machine.next_deadline();
        assert!(next.is_none_or(|next| next > to), "after advancing to {to:?} something is due at {next:?}");
    }

    /// Plays `inputs`, which are in order of time, until `end`. `sink` sees what the machine left
    /// behind after every step, and may take emissions and events; what it leaves accumulates.
    ///
    /// # Errors
    /// When inputs are out of order, or the machine refuses a command; what came before has been run.
    pub fn run(
        &mut self,
        inputs: impl IntoIterator<Item = TimedInput>,
        end: DriveUntil,
        mut sink: impl FnMut(&mut Outputs),
    ) -> Result<(), DriveError> {
        let last = match end {
            DriveUntil::Idle => Time::NEVER,
            DriveUntil::At(last) => last,
        };
        for TimedInput { at, input } in inputs {
            if at > last {
                break;
            }
            self.input(at, input)?;
            sink(&mut self.outputs);
        }
        while let Some(due) = self.machine.next_deadline().filter(|due| *due <= last) {
            // What the last input caused may be due at once.
            self.advance(due);
            sink(&mut self.outputs);
        }
        if let DriveUntil::At(last) = end {
            self.now = self.now.max(last);
        }
        Ok(())
    }
}
