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
use account::{Account, Reading};
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

/// Party of a process, and the link that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its party.
    pub party: Party,
    /// Number of its link; none if it is on the way of every link's packets.
    pub link: Option<usize>,
}

impl Member {
    fn is_of(self, link: usize) -> bool {
        self.link.is_none_or(|own| own == link)
    }
}

/// Says which process is whose: the first of each party, by its id inside the run. Its children, and
/// theirs, are of the same party.
#[derive(Clone, Debug, Default)]
pub struct Register(Arc<Mutex<HashMap<i32, Member>>>);

impl Register {
    /// Process `pid` and everything that it starts is of `party` at the link of this number.
    pub fn enter(&self, pid: i32, party: Party, link: usize) {
        let member = Member { party, link: Some(link) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, member);
    }

    fn member(&self, pid: i32) -> Option<Member> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&pid).copied()
    }
}

/// Waits and holds of the commands of each link.
pub type Measured = Vec<(Waits, Holds)>;

/// Message to the thread.
enum Word {
    /// This process is about to be reaped: read its last numbers first.
    Reaping(i32, Sender<()>),
}

/// The thread that takes samples. Dropping it ends it.
#[derive(Debug)]
pub struct EndWaits {
    words: Option<Sender<Word>>,
    thread: Option<JoinHandle<io::Result<Measured>>>,
}

impl EndWaits {
    /// Begins to measure at so many links. What was waited before does not count.
    ///
    /// # Errors
    /// When the kernel does not tell how long tasks wait, or has no thread left.
    pub fn start(register: Register, links: usize) -> io::Result<EndWaits> {
        let reaped_before_ns = reaped_processor_ns();
        let accounts = (0..links).map(|_| (Account::default(), HoldAccount::default())).collect();
        let mut sampler = Sampler { processes: Processes::new(register)?, accounts, held_from_ns: None };
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
            let reaped_ns = reaped_processor_ns() - reaped_before_ns;
            // Of whose commands the kernel does not tell.
            let unseen_processor_ns = reaped_ns.saturating_sub(sampler.processes.ended_processor_ns());
            let sampler_processor_ns = clock::thread_processor_ns();
            let measured = |(waits, holds): (Account, HoldAccount)| {
                (Waits { unseen_processor_ns, sampler_processor_ns, ..waits.finish() }, holds.finish())
            };
            Ok(sampler.accounts.into_iter().map(measured).collect())
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

    /// Takes a last sample and says what was measured at each link.
    ///
    /// # Errors
    /// When the kernel stopped telling.
    pub fn finish(mut self) -> io::Result<Measured> {
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
    /// Of each link: its commands and those of others wait for each other as programs of strangers do.
    accounts: Vec<(Account, HoldAccount)>,
    /// From the beginning on, the time of the last look for holds.
    held_from_ns: Option<u64>,
}

impl Sampler {
    fn begin(&mut self) {
        self.accounts.iter_mut().for_each(|(waits, _)| waits.begin());
        self.held_from_ns = Some(clock::monotonic_ns());
    }

    fn sample(&mut self) -> io::Result<()> {
        let at_ns = clock::monotonic_ns();
        let readings = self.processes.read_all()?;
        let readings = of_links(readings, self.accounts.len());
        for ((waits, _), readings) in self.accounts.iter_mut().zip(&readings) {
            waits.sample(at_ns, readings);
        }
        if let Some(last_ns) = &mut self.held_from_ns {
            let held = self.processes.held();
            for (link, (_, holds)) in self.accounts.iter_mut().enumerate() {
                let held: Vec<_> = held.iter().filter(|held| held.member.is_of(link)).cloned().collect();
                holds.sample(at_ns.saturating_sub(*last_ns), &held);
            }
            *last_ns = at_ns;
        }
        Ok(())
    }

    fn sample_one(&mut self, pid: i32) {
        let readings = self.processes.read_one(pid);
        let Some(member) = readings.first().map(|reading| reading.member) else { return };
        let at_ns = clock::monotonic_ns();
        let accounts = self.accounts.iter_mut().enumerate().filter(|(link, _)| member.is_of(*link));
        accounts.for_each(|(_, (waits, _))| waits.add(at_ns, &readings));
    }
}

/// The readings of each link.
fn of_links(readings: Vec<Reading>, links: usize) -> Vec<Vec<Reading>> {
    let mut dealt = vec![Vec::new(); links];
    for reading in readings {
        match reading.member.link {
            Some(link) => dealt[link].push(reading),
            None => dealt.iter_mut().for_each(|of_link| of_link.push(reading)),
        }
    }
    dealt
}

/// Processor time of all descendants that were reaped, in ns.
fn reaped_processor_ns() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0 };
    u64::try_from(usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()).unwrap_or_default()
}
