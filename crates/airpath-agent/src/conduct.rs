// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The course of a workload at one end.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use airpath_live::clock::{monotonic_ns, realtime_ns};
use airpath_live::netlink::SockDiag;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use serde_json::json;

use crate::output::without_number;
use crate::parties::{LEADER, Parties};
use crate::program::Running;
use crate::record::{Lengths, OfProgram, Record};
use crate::specification::{End, Ready, Specification};
use crate::users::is_of;

/// From agreeing on t = 0 to t = 0: time for all ends to hear of it.
const LEAD_NS: u64 = 50_000_000;
/// Interval of looks for an event of which nobody tells.
const POLL_NS: u64 = 20_000_000;
/// Time limit for a program to end after a signal.
const STOP_NS: u64 = 2_000_000_000;
/// Time limit for what is left in the pipes of programs that have ended.
const LAST_OUTPUT_NS: u64 = 500_000_000;

/// Signals that end a workload.
const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// The programs of one end, of one user where there are several.
#[derive(Debug)]
pub struct Agent {
    specification: Specification,
    parties: Parties,
    /// The user; empty at the server's end, and where there is one only.
    user: String,
    programs: Vec<Running>,
    signals: SignalFd,
    /// Signals that were blocked when this process began, and are for programs.
    mask: SigSet,
    /// Listens at any port at the server's end until the ends agree: the engine starts the client's end then.
    waiting: Option<TcpListener>,
    /// Asks for the ports at which programs listen; opened when it is needed.
    sockets: Option<SockDiag>,
    epoch_ns: u64,
    epoch_unix_ns: u64,
    failure: String,
    interrupted: bool,
    /// True if another party may have said something since the last look.
    rung: bool,
}

impl Agent {
    /// Prepares, and starts nothing.
    ///
    /// # Errors
    /// No free descriptor, or no network at the server's end.
    pub fn new(specification: Specification) -> io::Result<Agent> {
        let mut mask = SigSet::empty();
        let heard: SigSet = ENDING.into_iter().chain([Signal::SIGCHLD]).collect();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&heard), Some(&mut mask))?;
        let signals = SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let is_server = specification.end == End::Server;
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let user = if is_server { String::new() } else { variable("AIRPATH_USER") };
        let users = variable("AIRPATH_USERS").parse().unwrap_or(1);
        let parties = Parties::new(&specification, variable("AIRPATH_USER_INDEX").parse().unwrap_or(0), users);
        let programs = specification
            .programs
            .iter()
            .filter(|program| is_server || is_of(program.user.as_deref(), &user))
            .map(|program| Running::new(program.clone(), &user))
            .collect();
        Ok(Agent {
            parties,
            user,
            programs,
            signals,
            mask,
            waiting: is_server.then(|| TcpListener::bind("0.0.0.0:0")).transpose()?,
            sockets: None,
            epoch_ns: 0,
            epoch_unix_ns: 0,
            failure: String::new(),
            interrupted: false,
            rung: true,
            specification,
        })
    }

    /// Notes why the workload cannot be run, unless something else was noted before.
    fn fail(&mut self, why: impl FnOnce() -> String) {
        if self.failure.is_empty() {
            self.failure = why();
        }
    }

    fn start(&mut self, number: usize) {
        self.programs[number].start(self.specification.output_limit_bytes, self.mask);
    }

    /// Starts what has to be ready before t = 0, and waits for it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn prepare(&mut self) -> io::Result<()> {
        let waiting: Vec<(usize, Ready)> = (0..)
            .zip(&self.programs)
            .filter_map(|(number, running)| Some((number, running.specification.ready.clone()?)))
            .collect();
        for (number, _) in &waiting {
            self.start(*number);
        }
        for (number, ready) in waiting {
            let until_ns = monotonic_ns().saturating_add(ready.within_ns);
            while !self.interrupted && self.programs[number].reason.is_empty() {
                let answer = self.is_ready(number, &ready);
                let now_ns = monotonic_ns();
                let running = &mut self.programs[number];
                match (answer, running.status) {
                    (Ok(Some(true)), _) => {
                        running.ready = true;
                        break;
                    }
                    (Err(error), _) => {
                        running.reason = format!("cannot be asked whether it is ready: {}", without_number(&error));
                    }
                    // Where there is no answer yet, its end says nothing: it may have been ready before.
                    (Ok(Some(false)), Some(status)) => running.reason = ended_before(status),
                    (_, status) if now_ns > until_ns => {
                        let late = || format!("was not ready within {} s", seconds(ready.within_ns));
                        running.reason = status.map_or_else(late, ended_before);
                    }
                    _ => self.turn(Some(now_ns + POLL_NS))?,
                }
            }
            let running = &self.programs[number];
            if !running.reason.is_empty() {
                self.failure = format!("{} {}", running.specification.name, running.reason);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells if a program that was started is ready; none until an answer is there.
    fn is_ready(&mut self, number: usize, ready: &Ready) -> io::Result<Option<bool>> {
        let running = &mut self.programs[number];
        match ready {
            Ready { port: Some(port), .. } => Ok(Some(self.listening_ports()?.contains(port))),
            Ready { command: Some(command), .. } => running.ask(command, self.mask, POLL_NS),
            _ if running.ready => Ok(Some(true)),
            _ => Ok(running.matcher.is_none().then_some(false)),
        }
    }

    /// The ports at which this network namespace listens.
    fn listening_ports(&mut self) -> io::Result<BTreeSet<u16>> {
        let sockets = match &mut self.sockets {
            Some(sockets) => sockets,
            none => none.insert(SockDiag::open()?),
        };
        Ok(sockets.servers()?.into_iter().map(|socket| socket.local.port()).collect())
    }

    /// Settles t = 0 with the other ends, if there are any.
    ///
    /// # Errors
    /// A folder that cannot be written; the kernel's.
    pub fn agree(&mut self) -> io::Result<()> {
        self.parties.say("ready", &json!({ "failure": self.failure }))?;
        let leads = self.parties.leads();
        let mut awaited: VecDeque<String> = match self.parties.others() {
            [] => VecDeque::new(),
            others if leads => others.to_vec().into(),
            _ => [LEADER.to_string()].into(),
        };
        if awaited.is_empty() {
            self.settle(monotonic_ns() + LEAD_NS);
            self.waiting = None;
            return Ok(());
        }
        let until_ns = monotonic_ns().saturating_add(self.specification.patience_ns);
        while let Some(party) = awaited.front().filter(|_| !self.interrupted).cloned() {
            if let Some(word) = self.parties.heard(if leads { "ready" } else { "epoch" }, &party) {
                if let Some(failure) = word["failure"].as_str().filter(|failure| !failure.is_empty()) {
                    self.fail(|| format!("at the {party}: {failure}"));
                    break;
                }
                if let Some(epoch_ns) = word["monotonic_ns"].as_u64().filter(|_| !leads) {
                    self.settle(epoch_ns);
                }
                awaited.pop_front();
                continue;
            }
            if monotonic_ns() > until_ns {
                self.fail(|| format!("the {party} did not get ready"));
                break;
            }
            let patience_ns = self.patience(Some(until_ns));
            self.turn(patience_ns)?;
        }
        if leads {
            self.settle(monotonic_ns() + LEAD_NS);
            self.parties.say("epoch", &json!({ "failure": self.failure, "monotonic_ns": self.epoch_ns }))?;
        }
        self.waiting = None;
        Ok(())
    }

    fn settle(&mut self, epoch_ns: u64) {
        self.epoch_ns = epoch_ns;
        self.epoch_unix_ns = (realtime_ns() + epoch_ns).saturating_sub(monotonic_ns());
    }

    /// Runs the programs by the timetable until those that are waited for have ended.
    ///
    /// # Errors
    /// A folder that cannot be written; the kernel's.
    pub fn work(&mut self) -> io::Result<()> {
        if !self.failure.is_empty() {
            return Ok(());
        }
        let mut todo: Vec<usize> = (0..self.programs.len())
            .filter(|number| self.programs[*number].process.is_none() && self.programs[*number].reason.is_empty())
            .collect();
        todo.sort_by_key(|number| self.programs[*number].specification.start_ns);
        let mut todo = VecDeque::from(todo);
        let mut busy = self.parties.others().to_vec();
        let mut said = false;
        while !self.interrupted {
            // Without a bell nobody tells that there is something to hear.
            let listens = std::mem::take(&mut self.rung) || self.parties.bell().is_none();
            if listens && self.parties.others().iter().any(|party| self.parties.heard("json", party).is_some()) {
                self.interrupted = !said; // another end was broken off
                return Ok(());
            }
            let now_ns = monotonic_ns();
            while let Some(number) = todo.pop_front_if(|number| self.starts_ns(*number) <= now_ns) {
                self.start(number);
            }
            let waits_for = |number: &usize| !self.programs[*number].specification.service;
            let is_done = self.programs.iter().all(|running| running.specification.service || running.is_over());
            if is_done && !todo.iter().any(waits_for) {
                if !said && !self.parties.others().is_empty() {
                    self.parties.say("done", &true)?;
                    said = true;
                }
                busy.retain(|party| self.parties.heard("done", party).is_none());
                if busy.is_empty() {
                    return Ok(());
                }
            }
            let limits = self.programs.iter().filter_map(Running::limit_ns);
            let due_ns = limits.chain(todo.front().map(|number| self.starts_ns(*number))).min();
            let until_ns = self.patience(due_ns);
            self.turn(until_ns)?;
        }
        Ok(())
    }

    fn starts_ns(&self, number: usize) -> u64 {
        self.epoch_ns.saturating_add(self.programs[number].specification.start_ns)
    }

    /// The time until which to wait where another party may have a word to say.
    fn patience(&self, until_ns: Option<u64>) -> Option<u64> {
        if self.parties.bell().is_some() {
            return until_ns;
        }
        let look_ns = monotonic_ns() + POLL_NS;
        Some(until_ns.map_or(look_ns, |until_ns| until_ns.min(look_ns)))
    }

    /// Waits until something happens, until `until_ns` at most, takes what programs have written, and looks after
    /// them.
    fn turn(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let timeout = until_ns.map(|until_ns| {
            let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
            TimeSpec::from(left)
        });
        let always: Vec<BorrowedFd<'_>> = [self.signals.as_fd()].into_iter().chain(self.parties.bell()).collect();
        let mut outputs: Vec<(usize, usize)> = Vec::new();
        let mut ends: Vec<PollFd<'_>> = always.iter().map(|end| PollFd::new(*end, PollFlags::POLLIN)).collect();
        for (number, running) in self.programs.iter().enumerate() {
            for (output, source) in running.sources() {
                outputs.push((number, output));
                ends.push(PollFd::new(source, PollFlags::POLLIN));
            }
        }
        let behind = self.programs.iter().filter_map(|running| running.matcher.as_ref()?.awaits_room());
        ends.extend(behind.map(|input| PollFd::new(input, PollFlags::POLLOUT)));
        match ppoll(&mut ends, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let happened: Vec<bool> = ends.iter().map(|end| end.any().unwrap_or(false)).collect();
        let (signalled, rung) = (happened[0], always.len() > 1 && happened[1]);
        let readable = happened[always.len()..].to_vec();
        drop(ends);
        if rung {
            self.parties.hear_bell();
            self.rung = true;
        }
        for matcher in self.programs.iter_mut().filter_map(|running| running.matcher.as_mut()) {
            matcher.catch_up();
        }
        for ((number, output), _) in outputs.into_iter().zip(readable).filter(|(_, is_readable)| *is_readable) {
            if let Some(failure) = self.programs[number].take(output) {
                self.fail(|| failure);
            }
        }
        if signalled {
            self.hear_signals()?;
        }
        self.stop_late()
    }

    fn hear_signals(&mut self) -> io::Result<()> {
        let mut ended = false;
        while let Some(signal) = self.signals.read_signal()? {
            if signal.ssi_signo == Signal::SIGCHLD as u32 {
                ended = true;
            } else {
                self.interrupted = true;
            }
        }
        if ended {
            let now_ns = monotonic_ns();
            for running in &mut self.programs {
                running.reap(now_ns);
            }
        }
        Ok(())
    }

    /// Stops the programs whose time is up.
    fn stop_late(&mut self) -> io::Result<()> {
        let now_ns = monotonic_ns();
        for number in 0..self.programs.len() {
            let running = &mut self.programs[number];
            if running.limit_ns().is_some_and(|limit_ns| limit_ns < now_ns) {
                let limit = seconds(running.specification.time_limit_ns);
                running.reason = format!("took longer than {limit} s and was stopped");
                self.stop(&[number])?;
            }
        }
        Ok(())
    }

    /// Stops programs and what they started: SIGTERM, and SIGKILL for those that stay.
    fn stop(&mut self, numbers: &[usize]) -> io::Result<()> {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            for number in numbers {
                self.programs[*number].signal(signal);
            }
            let until_ns = monotonic_ns() + STOP_NS;
            while numbers.iter().any(|number| self.programs[*number].active().is_some()) && monotonic_ns() < until_ns {
                self.turn(Some(until_ns))?;
            }
        }
        Ok(())
    }

    /// Stops what is left, takes the last output, and writes the record; returns the exit status.
    ///
    /// # Errors
    /// A record that cannot be written; the kernel's.
    pub fn finish(mut self) -> io::Result<i32> {
        for running in &mut self.programs {
            running.stop_asking();
        }
        let left: Vec<usize> =
            (0..self.programs.len()).filter(|number| self.programs[*number].active().is_some()).collect();
        for number in &left {
            let running = &mut self.programs[*number];
            if !running.specification.service && running.reason.is_empty() {
                running.reason = "was stopped with the workload".into();
            }
        }
        self.stop(&left)?;
        let until_ns = monotonic_ns() + LAST_OUTPUT_NS;
        let is_open = |agent: &Agent| {
            agent.programs.iter().flat_map(|running| &running.outputs).any(|output| output.source().is_some())
        };
        while is_open(&self) && monotonic_ns() < until_ns {
            self.turn(Some(until_ns))?;
        }
        let lengths: Vec<Lengths> = self
            .programs
            .iter_mut()
            .map(|running| {
                let mut closed = running.outputs.iter_mut().map(|output| output.close());
                Lengths { stdout: closed.next(), stderr: closed.next() }
            })
            .collect();
        let user = Some(self.user.as_str()).filter(|user| !user.is_empty());
        let programs: Vec<OfProgram<'_>> = self
            .programs
            .iter()
            .zip(lengths)
            .map(|(running, output)| OfProgram::new(running, output, self.specification.end, user, self.epoch_ns))
            .collect();
        let good = self.failure.is_empty() && programs.iter().all(|program| program.succeeded);
        let record = Record {
            end: self.specification.end.name(),
            user,
            epoch_unix_ns: self.epoch_unix_ns,
            failure: &self.failure,
            interrupted: self.interrupted,
            programs,
        };
        self.parties.say("json", &record)?;
        Ok(i32::from(!good))
    }
}

/// The failure of a program that was to be ready first.
fn ended_before(status: i32) -> String {
    format!("ended before it was ready, with status {status}")
}

/// A time in seconds with six significant digits at most.
fn seconds(time_ns: u64) -> String {
    let seconds = time_ns as f64 / 1e9;
    let digits = 5 - seconds.max(1e-9).log10().floor() as i32;
    let text = format!("{seconds:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
