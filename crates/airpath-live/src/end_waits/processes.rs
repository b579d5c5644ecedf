// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The processes of a run, in `/proc`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};

use super::account::{Counters, Reading, TaskId};
use super::holds::{Held, Hold, LOOKS_BETWEEN};
use super::{Member, Party, Register};

/// The engine's own threads that carry packets between the server's end and ports of the host.
const RELAY_THREADS: &str = "host-port-";
/// Maximum depth of a process's parents that are looked up.
const DEEPEST: u32 = 64;

/// A known process.
#[derive(Clone, Debug)]
struct Process {
    member: Option<Member>,
    processors: u32,
    /// Number of the last pass over the processes that found it.
    pass: u64,
    ran_ns: u64,
    hold: Hold,
}

/// Finds the processes of a run and reads what the kernel says of them.
#[derive(Debug)]
pub(super) struct Processes {
    register: Register,
    /// This process in `/proc`, which may number processes otherwise than the run does.
    own: i32,
    /// Number of online processors: a process's mask names absent ones as well.
    online: u32,
    /// Index of the number inside the run among the numbers of a process.
    level: usize,
    known: HashMap<i32, Process>,
    relays: HashMap<i32, bool>,
    pass: u64,
    text: Vec<u8>,
    ended_processor_ns: u64,
}

impl Processes {
    /// # Errors
    /// When `/proc` is not there, or does not tell how long tasks wait.
    pub(super) fn new(register: Register) -> io::Result<Processes> {
        let own = fs::read_link("/proc/self")?.to_string_lossy().parse().map_err(io::Error::other)?;
        let status = Status::read(&fs::read_to_string("/proc/self/status")?);
        let level = status.numbers.len().saturating_sub(1);
        fs::read_to_string("/proc/self/schedstat")?;
        Ok(Processes {
            register,
            own,
            online: online_processors(&fs::read_to_string("/proc/stat")?),
            level,
            known: HashMap::new(),
            relays: HashMap::new(),
            pass: 0,
            text: Vec::new(),
            ended_processor_ns: 0,
        })
    }

    /// Reads every task of every process.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(super) fn read_all(&mut self) -> io::Result<Vec<Reading>> {
        self.pass += 1;
        let mut readings = Vec::new();
        for pid in numbers("/proc")? {
            self.read_process(pid, &mut readings);
        }
        let pass = self.pass;
        let mut ended_ns = 0;
        self.known.retain(|_, process| {
            let alive = process.pass == pass;
            ended_ns += if alive || process.member.is_none() { 0 } else { process.ran_ns };
            alive
        });
        self.ended_processor_ns += ended_ns;
        Ok(readings)
    }

    /// Reads every task of the process that is `pid` inside the run.
    pub(super) fn read_one(&mut self, pid: i32) -> Vec<Reading> {
        let mut readings = Vec::new();
        // Elsewhere numbers are others, and finding the process would take longer than it is worth.
        if self.level == 0 {
            self.read_process(pid, &mut readings);
        }
        readings
    }

    /// Processor time of processes that have ended, as far as it was seen.
    pub(super) fn ended_processor_ns(&self) -> u64 {
        self.ended_processor_ns
    }

    fn read_process(&mut self, pid: i32, readings: &mut Vec<Reading>) {
        if pid == self.own {
            self.read_relays(readings);
            return;
        }
        let member = self.member(pid, 0);
        let pass = self.pass;
        let Some(process) = self.known.get_mut(&pid) else { return };
        process.pass = pass;
        let processors = process.processors;
        let Some(member) = member else { return };
        let mut ran_ns = 0;
        for thread in numbers(&format!("/proc/{pid}/task")).unwrap_or_default() {
            let Some(counters) = self.counters((pid, thread)) else { continue };
            ran_ns += counters.ran_ns;
            readings.push(Reading { task: (pid, thread), member, processors, counters });
        }
        if let Some(process) = self.known.get_mut(&pid) {
            let has_run = ran_ns > process.ran_ns;
            process.ran_ns = process.ran_ns.max(ran_ns);
            // A look that is due at other times for other processes spreads what it costs.
            let is_due = (pass + u64::from(pid.unsigned_abs())).is_multiple_of(LOOKS_BETWEEN);
            if !has_run || is_due || process.hold != Hold::default() {
                let status = fs::read_to_string(format!("/proc/{pid}/status"));
                process.hold = status.map(|text| Status::read(&text).hold).unwrap_or_default();
            }
        }
    }

    /// The processes that somebody held at the last look.
    pub(super) fn held(&self) -> Vec<Held> {
        let held = self.known.values().filter(|process| process.hold != Hold::default());
        held.filter_map(|process| {
            let Hold { is_stopped, tracer } = process.hold;
            let tracer = tracer.map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default());
            let tracer = tracer.map(|name| name.trim().to_owned());
            Some(Held { member: process.member?, is_stopped, tracer })
        })
        .collect()
    }

    fn read_relays(&mut self, readings: &mut Vec<Reading>) {
        let own = self.own;
        let threads = numbers(&format!("/proc/{own}/task")).unwrap_or_default();
        self.relays.retain(|thread, _| threads.contains(thread));
        for thread in threads {
            let is_relay = *self.relays.entry(thread).or_insert_with(|| {
                let name = fs::read_to_string(format!("/proc/{own}/task/{thread}/comm")).unwrap_or_default();
                name.starts_with(RELAY_THREADS)
            });
            if is_relay && let Some(counters) = self.counters((own, thread)) {
                let member = Member { party: Party::Relay, link: None };
                readings.push(Reading { task: (own, thread), member, processors: u32::MAX, counters });
            }
        }
    }

    /// Party of a process, and its link: as registered, or as of its parent. What has lost its parent stays whose it
    /// was; what was never seen before that belongs to the leader of its session, or is the client's, of whichever
    /// link: only the client's command is started after the first look.
    fn member(&mut self, pid: i32, depth: u32) -> Option<Member> {
        if let Some(known) = self.known.get(&pid) {
            return known.member;
        }
        let status = Status::read(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?);
        let inside = status.numbers.get(self.level).copied();
        let leader = status.sessions.get(self.level).copied();
        let registered = |number: Option<i32>| number.and_then(|number| self.register.member(number));
        let orphan = Member { party: Party::Client, link: None };
        let member = match registered(inside) {
            Some(member) => Some(member),
            None if status.parent == self.own => Some(registered(leader).unwrap_or(orphan)),
            None if status.parent == 0 || depth > DEEPEST => None,
            None => self.member(status.parent, depth + 1),
        };
        let processors = status.processors.min(self.online);
        self.known.insert(pid, Process { member, processors, pass: self.pass, ran_ns: 0, hold: status.hold });
        member
    }

    fn counters(&mut self, (process, thread): TaskId) -> Option<Counters> {
        self.text.clear();
        File::open(format!("/proc/{process}/task/{thread}/schedstat")).ok()?.read_to_end(&mut self.text).ok()?;
        read_counters(std::str::from_utf8(&self.text).ok()?)
    }
}

/// Required fields of `/proc/PID/status`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    parent: i32,
    /// Its number in the namespace of `/proc` and in those below it, down to its own.
    numbers: Vec<i32>,
    /// The same of the leader of its session.
    sessions: Vec<i32>,
    processors: u32,
    hold: Hold,
}

impl Status {
    fn read(text: &str) -> Status {
        let mut status = Status { processors: u32::MAX, ..Status::default() };
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match key {
                "State" => {
                    status.hold.is_stopped = value.starts_with(['T', 't']);
                    // Only a tracer stops with a small letter, and one outside of this `/proc` has no number in it.
                    status.hold.tracer = value.starts_with('t').then_some(0);
                }
                "TracerPid" => {
                    let tracer = value.parse().ok().filter(|pid| *pid != 0);
                    status.hold.tracer = tracer.or(status.hold.tracer);
                }
                "PPid" => status.parent = value.parse().unwrap_or_default(),
                "NSpid" => status.numbers = words(value),
                "NSsid" => status.sessions = words(value),
                "Cpus_allowed" => {
                    status.processors = value.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum();
                }
                _ => {}
            }
        }
        status
    }
}

/// Number of processors in `/proc/stat`, which are the online ones.
fn online_processors(stat: &str) -> u32 {
    let numbers = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    numbers.filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit())).count().max(1) as u32
}

fn words(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Time on a processor, time waiting for one, how often one was given.
fn read_counters(text: &str) -> Option<Counters> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some(Counters { ran_ns: words.next()??, waited_ns: words.next()??, slices: words.next()?? })
}

/// The entries of a folder of `/proc` that are numbers.
fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(folder)?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_proc_are_read() {
        let text = "Name:\tsh\nPPid:\t41\nNSpid:\t4711\t9\nNSsid:\t4700\t3\nCpus_allowed:\tf,00000003\nCpus_allowed_list:\t0-1,32-35\n";
        let status = Status {
            parent: 41,
            numbers: vec![4711, 9],
            sessions: vec![4700, 3],
            processors: 6,
            hold: Hold::default(),
        };
        assert_eq!(Status::read(text), status);
        let hold = |text: &str| Status::read(text).hold;
        assert_eq!(hold("State:\tS (sleeping)\nTracerPid:\t0\n"), Hold::default());
        assert_eq!(hold("State:\tT (stopped)\nTracerPid:\t0\n"), Hold { is_stopped: true, tracer: None });
        assert_eq!(hold("State:\tR (running)\nTracerPid:\t7\n"), Hold { is_stopped: false, tracer: Some(7) });
        assert_eq!(hold("State:\tt (tracing stop)\nTracerPid:\t0\n"), Hold { is_stopped: true, tracer: Some(0) });
        assert_eq!(online_processors("cpu  9 9\ncpu0 4 4\ncpu1 5 5\nintr 7\n"), 2);
        assert_eq!(online_processors(""), 1);
        let counters = Counters { ran_ns: 120_034, waited_ns: 61_081, slices: 7 };
        assert_eq!(read_counters("120034 61081 7\n"), Some(counters));
        assert_eq!(read_counters("0 0\n"), None);
        assert_eq!(read_counters(""), None);
    }

    #[test]
    fn a_process_that_is_stopped_is_held_until_it_goes_on() {
        use nix::sys::signal::{Signal, kill};
        let register = Register::default();
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        register.enter(pid.as_raw(), Party::Client, 0);
        let mut processes = Processes::new(register).unwrap();
        let mut held_becomes = |wanted: bool| {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_secs() < 10 {
                processes.read_all().unwrap();
                if processes.held().iter().any(|held| held.is_stopped && held.tracer.is_none()) == wanted {
                    return true;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            false
        };
        let before = held_becomes(false);
        kill(pid, Signal::SIGSTOP).unwrap();
        let stopped = held_becomes(true);
        kill(pid, Signal::SIGCONT).unwrap();
        let after = held_becomes(false);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(before && stopped && after, "{before} {stopped} {after}");
    }

    #[test]
    fn this_process_and_its_children_are_told_apart() {
        let register = Register::default();
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        register.enter(child.id() as i32, Party::Server, 1);
        let mut processes = Processes::new(register).unwrap();
        let readings = processes.read_all().unwrap();
        let own = std::process::id() as i32;
        let of_child: Vec<_> = readings.iter().filter(|reading| reading.task.0 == child.id() as i32).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of_child.len(), 1);
        assert_eq!(of_child[0].member, Member { party: Party::Server, link: Some(1) });
        assert!(readings.iter().all(|reading| reading.task.0 != own), "{readings:?}");
        assert!(!processes.read_all().unwrap().iter().any(|reading| reading.task.0 == child.id() as i32));
    }
}
