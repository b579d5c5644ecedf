// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Waiting and holding of the commands at both ends and of relays on the packets' way: a thread of ordinary
//! priority samples `/proc/PID/task/*/schedstat` and `/proc/PID/status` of all of them. It needs no right, and
//! nothing waits for it.

mod account;
mod holds;
mod processes;

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airpath_log::{Holds, Waits};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::clock;
use account::Account;
use holds::HoldAccount;
use processes::Processes;

/// Sampling interval where samples cost little.
const INTERVAL: Duration = Duration::from_millis(20);
/// A sample may take one in so many instants: with many processes samples are rarer.
const SHARE_OF_A_CORE: u32 = 100;
/// They are never rarer than that.
const LONGEST_INTERVAL: Duration = Duration::from_millis(500);

/// Party that a process belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// The client's command started it.
    Client,
    /// The server's command started it.
    Server,
    /// It carries packets between the server's end and the host.
    Relay,
}

/// Says which process is whose: the first of each party, by its id inside the run. Its children, and
/// theirs, are of the same party.
#[derive(Clone, Debug, Default)]
pub struct Register(Arc<Mutex<HashMap<i32, Party>>>);

impl Register {
    /// Process `pid` and everything that it starts is of `party`.
    pub fn enter(&self, pid: i32, party: Party) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, party);
    }

    fn party(&self, pid: i32) -> Option<Party> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&pid).copied()
    }
}

/// Message to the thread.
enum Word {
    /// This process is about to be reaped: read its last numbers first.
    Reaping(i32, Sender<()>),
}

/// The thread that takes samples. Dropping it ends it.
#[derive(Debug)]
pub struct EndWaits {
    words: Option<Sender<Word>>,
    thread: Option<JoinHandle<io::Result<(Waits, Holds)>>>,
}

impl EndWaits {
    /// Begins to measure. What was waited before does not count.
    ///
    /// # Errors
    /// When the kernel does not tell how long tasks wait, or has no thread left.
    pub fn start(register: Register) -> io::Result<EndWaits> {
        let reaped_before_ns = reaped_processor_ns();
        let mut sampler = Sampler { processes: Processes::new(register)?, account: Account::default(), holds: None };
        sampler.sample()?;
        sampler.begin();
        let (words, heard) = channel();
        let work = move || {
            let mut last_cost = Duration::ZERO;
            loop {
                let wait = (last_cost * SHARE_OF_A_CORE).clamp(INTERVAL, LONGEST_INTERVAL);
                let reaping = match heard.recv_timeout(wait) {
                    Ok(Word::Reaping(pid, done)) => Some((pid, done)),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                let begun_ns = clock::thread_processor_ns();
                match reaping {
                    Some((pid, done)) => {
                        sampler.sample_one(pid);
                        let _ = done.send(());
                    }
                    None => {
                        sampler.sample()?;
                        last_cost = Duration::from_nanos(clock::thread_processor_ns() - begun_ns);
                    }
                }
            }
            sampler.sample()?;
            let mut waits = sampler.account.finish();
            let reaped_ns = reaped_processor_ns() - reaped_before_ns;
            waits.unseen_processor_ns = reaped_ns.saturating_sub(sampler.processes.ended_processor_ns());
            waits.sampler_processor_ns = clock::thread_processor_ns();
            Ok((waits, sampler.holds.map(|(holds, _)| holds.finish()).unwrap_or_default()))
        };
        let thread = std::thread::Builder::new().name("end-waits".into()).spawn(work)?;
        Ok(EndWaits { words: Some(words), thread: Some(thread) })
    }

    /// Reads the last numbers of a process that has ended and is about to be reaped.
    pub fn reaping(&self, pid: i32) {
        let (done, answered) = channel();
        if let Some(words) = &self.words
            && words.send(Word::Reaping(pid, done)).is_ok()
        {
            // The process stays until it is reaped; a thread that has failed drops the word.
            let _ = answered.recv_timeout(LONGEST_INTERVAL);
        }
    }

    /// Takes a last sample and says what was measured.
    ///
    /// # Errors
    /// When the kernel stopped telling.
    pub fn finish(mut self) -> io::Result<(Waits, Holds)> {
        self.words = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(measured)) => measured,
            _ => Err(io::Error::other("the thread that samples waiting has failed")),
        }
    }
}

impl Drop for EndWaits {
    fn drop(&mut self) {
        self.words = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Sampler {
    processes: Processes,
    account: Account,
    /// From the beginning on, with the time of the last look.
    holds: Option<(HoldAccount, u64)>,
}

impl Sampler {
    fn begin(&mut self) {
        self.account.begin();
        self.holds = Some((HoldAccount::default(), clock::monotonic_ns()));
    }

    fn sample(&mut self) -> io::Result<()> {
        let at_ns = clock::monotonic_ns();
        let readings = self.processes.read_all()?;
        self.account.sample(at_ns, &readings);
        if let Some((holds, last_ns)) = &mut self.holds {
            holds.sample(at_ns.saturating_sub(*last_ns), &self.processes.held());
            *last_ns = at_ns;
        }
        Ok(())
    }

    fn sample_one(&mut self, pid: i32) {
        let readings = self.processes.read_one(pid);
        self.account.add(clock::monotonic_ns(), &readings);
    }
}

/// Processor time of all descendants that were reaped, in ns.
fn reaped_processor_ns() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0 };
    u64::try_from(usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()).unwrap_or_default()
}
