// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The processes of a stress.
#![allow(unsafe_code)]

use airpath_live::scheduling;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use super::{Kind, Work};
use crate::error::{Result, TimingError};

/// A stress that continues until this is dropped. To be started and kept by a thread that outlives it: the
/// kernel ends the processes with that thread.
#[derive(Debug)]
pub struct Stress {
    kind: &'static Kind,
    processes: Vec<Pid>,
}

impl Stress {
    /// Starts one process for each processor that this one may use.
    ///
    /// # Errors
    /// When a process or what it works on cannot be had.
    pub fn start(kind: &'static Kind) -> Result<Stress> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            TimingError::System(format!("cannot {what} for the load `{}`: {error}{}", kind.name, hint(kind)))
        };
        let processors = scheduling::allowed_processors().map_err(|error| cannot("list the processors", &error))?;
        // From here on, whatever was started ends when this is dropped.
        let mut stress = Stress { kind, processes: Vec::new() };
        for processor in processors {
            let work = (kind.prepare)().map_err(|error| cannot("prepare what is used", &error))?;
            let parent = getpid();
            // SAFETY: the child calls nothing that takes a lock or allocates (other threads of the parent
            // may have held one): it works with what was prepared, and leaves by _exit.
            match unsafe { fork() }.map_err(|errno| cannot("start a process", &errno))? {
                ForkResult::Parent { child } => stress.processes.push(child),
                ForkResult::Child => work_for_ever(work, parent, processor),
            }
        }
        Ok(stress)
    }

    /// Returns an error if a process of it has ended.
    ///
    /// # Errors
    /// The process's name and its end.
    pub fn check(&mut self) -> Result<()> {
        for index in 0..self.processes.len() {
            let why = match waitpid(self.processes[index], Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => continue,
                Ok(WaitStatus::Exited(_, errno)) => Errno::from_raw(errno).to_string(),
                Ok(status) => format!("{status:?}"),
                Err(errno) => errno.to_string(),
            };
            self.processes.remove(index);
            let name = self.kind.name;
            return Err(TimingError::System(format!(
                "a process of the load `{name}` ended: {why}; the series since are not under that load{}",
                hint(self.kind)
            )));
        }
        Ok(())
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        for process in &self.processes {
            let _ = kill(*process, Signal::SIGKILL);
        }
        for process in &self.processes {
            while waitpid(*process, None) == Err(Errno::EINTR) {}
        }
    }
}

fn hint(kind: &Kind) -> &'static str {
    if kind.name == "disk" { " (the folder is that of TMPDIR, or /tmp)" } else { "" }
}

/// The child: works until it is killed, or ends with the number of the error that stopped it.
fn work_for_ever(mut work: Box<dyn Work>, parent: Pid, processor: usize) -> ! {
    let dies_with_parent = prctl::set_pdeathsig(Signal::SIGKILL).is_ok();
    // The parent may be gone before that was in force. Stress anywhere else would still be some.
    let _ = scheduling::pin_to_processor(processor);
    let mut status = if dies_with_parent && getppid() == parent { 0 } else { libc::ESRCH };
    while status == 0 {
        if let Err(error) = work.step() {
            status = error.raw_os_error().unwrap_or(libc::EIO);
        }
    }
    // SAFETY: ends the process at once, without what the parent registered for its own exit.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::{KINDS, find};
    use std::time::{Duration, Instant};

    fn processor_ticks(process: Pid) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    #[test]
    fn every_stress_works_on_every_processor_and_ends() {
        for kind in KINDS {
            let mut stress = Stress::start(kind).unwrap();
            let processes = stress.processes.clone();
            assert_eq!(processes.len(), scheduling::allowed_processors().unwrap().len());
            let end = Instant::now() + Duration::from_secs(60);
            // A tick of processor time by each: a disk may make one wait for long.
            while processes.iter().any(|process| processor_ticks(*process) == 0) && Instant::now() < end {
                stress.check().unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(processes.iter().all(|process| processor_ticks(*process) > 0), "{}", kind.name);
            drop(stress);
            assert!(processes.iter().all(|process| kill(*process, None) == Err(Errno::ESRCH)), "{}", kind.name);
        }
    }

    #[test]
    fn a_stress_that_ended_is_noticed() {
        let mut stress = Stress::start(find("cpu").unwrap().unwrap()).unwrap();
        kill(stress.processes[0], Signal::SIGKILL).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let error = loop {
            match stress.check() {
                Err(error) => break error.to_string(),
                Ok(()) => assert!(Instant::now() < end, "the end of a process was not noticed"),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(error.contains("the load `cpu` ended"), "{error}");
    }

    #[test]
    fn stresses_are_known_by_name() {
        assert!(find("none").unwrap().is_none());
        let error = find("dsk").unwrap_err().to_string();
        assert!(error.contains("did you mean `disk`?") && error.contains("none, cpu, disk, network"), "{error}");
    }
}
