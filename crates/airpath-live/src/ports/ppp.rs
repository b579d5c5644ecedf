// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A serial line or pseudo-terminal as a port: the peer speaks PPP.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use airpath_core::Span;
use airpath_ppp::{Configuration, Endpoint};
use bytes::BytesMut;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::termios::{BaudRate, ControlFlags, SetArg, cfmakeraw, cfsetspeed, tcgetattr, tcsetattr};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::offload::OffloadHeader;
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, LONGEST_PACKET_BYTES, Outgoing, ReadOutcome, Received, WriteOutcome,
    would_block,
};
use crate::error::{Attempting, LiveError, Result};

/// The engine's end of a serial line with PPP. Its descriptor is readable when
/// the line has bytes, takes bytes that wait, or a timer of PPP has run out.
#[derive(Debug)]
pub struct PppPort {
    line: Flock<File>,
    timer: TimerFd,
    events: Epoll,
    end: Endpoint,
    began: Instant,
    waits_for_line: bool,
}

impl PppPort {
    /// Opens the terminal `path`, sets `baud` (none: leaves its speed) and begins to negotiate.
    ///
    /// # Errors
    /// When it is no terminal, is in use, or cannot be opened or set.
    pub fn open(path: &Path, baud: Option<BaudRate>, configuration: Configuration) -> Result<Self> {
        let shown = path.display();
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => {
                        LiveError::Request(format!("{shown}: no such device; `ls /dev/ttyS* /dev/ttyUSB*` lists lines"))
                    }
                    Some(libc::EACCES | libc::EPERM) => LiveError::Forbidden(format!(
                        "{shown} cannot be opened ({error}): join the group that owns it, often `dialout`"
                    )),
                    Some(libc::EBUSY) => LiveError::Request(format!("{shown} is in use by another program")),
                    _ => LiveError::Request(format!("{shown} cannot be opened: {error}")),
                }
            })?;
        let mut modes = tcgetattr(&file).map_err(|error| {
            LiveError::Request(format!("{shown} is no terminal ({error}): give a serial line or a pseudo-terminal"))
        })?;
        let line = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| LiveError::Request(format!("{shown} is in use by another program, or is both ends")))?;
        cfmakeraw(&mut modes);
        modes.control_flags |= ControlFlags::CLOCAL | ControlFlags::CREAD;
        if let Some(baud) = baud {
            cfsetspeed(&mut modes, baud).map_err(io::Error::from).attempting(|| format!("set the speed of {shown}"))?;
        }
        tcsetattr(&*line, SetArg::TCSANOW, &modes)
            .map_err(io::Error::from)
            .attempting(|| format!("set the modes of {shown}"))?;
        let make = || -> nix::Result<(TimerFd, Epoll)> {
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
            let events = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            events.add(&*line, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
            events.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
            Ok((timer, events))
        };
        let (timer, events) = make().map_err(io::Error::from).attempting(|| format!("wait for {shown}"))?;
        let end = Endpoint::new(configuration);
        let began = Instant::now();
        let mut port = Self { line, timer, events, end, began, waits_for_line: false };
        port.end.open(0);
        port.settle().attempting(|| format!("write to {shown}"))?;
        Ok(port)
    }

    /// The end of PPP: its state, addresses and counters.
    pub fn end(&self) -> &Endpoint {
        &self.end
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Writes what waits for the line, and sets the timer.
    fn settle(&mut self) -> io::Result<()> {
        let waiting = self.end.line();
        while !waiting.is_empty() {
            match (&*self.line).write(waiting) {
                Ok(written) => drop(waiting.drain(..written)),
                Err(error) if would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let waits = !waiting.is_empty();
        if waits != self.waits_for_line {
            let flags = if waits { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
            self.events.modify(&*self.line, &mut EpollEvent::new(flags, 0))?;
            self.waits_for_line = waits;
        }
        match self.end.next_deadline_ns() {
            None => self.timer.unset()?,
            Some(deadline_ns) => {
                let left = Duration::from_nanos(deadline_ns.saturating_sub(self.now_ns()).max(1));
                self.timer.set(Expiration::OneShot(TimeSpec::from_duration(left)), TimerSetTimeFlags::empty())?;
            }
        }
        Ok(())
    }

    fn read_line(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        // A line that never pauses must not keep the loop from its other work.
        for _ in 0..16 {
            match (&*self.line).read(&mut bytes) {
                Ok(0) => return Err(hung_up()),
                Ok(read) => {
                    let now_ns = self.now_ns();
                    self.end.receive(now_ns, &bytes[..read]);
                }
                Err(error) if would_block(&error) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A pseudo-terminal whose other end is closed.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Err(hung_up()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn hung_up() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the serial line hung up")
}

impl Adapter for PppPort {
    fn label(&self) -> &'static str {
        "ppp"
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        self.read_line()?;
        let now_ns = self.now_ns();
        self.end.advance(now_ns);
        self.settle()?;
        let mut outcome = ReadOutcome::default();
        make_room(slab, LONGEST_PACKET_BYTES);
        while outcome.packets < limit && has_room(slab, LONGEST_PACKET_BYTES) {
            let Some(packet) = self.end.next_packet() else {
                outcome.exhausted = true;
                break;
            };
            slab.extend_from_slice(&packet);
            let bytes = slab.split_to(packet.len());
            out.push(Received { bytes, link_bytes: 0, stamp_realtime_ns: None, offload: OffloadHeader::default() });
            outcome.packets += 1;
        }
        Ok(outcome)
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        for packet in packets {
            let bytes: Vec<u8> = packet.parts.iter().flat_map(|part| part.iter().copied()).collect();
            // No kernel behind the line finishes checksums or cuts segments.
            if packet.offload != OffloadHeader::default() || self.end.send(&bytes).is_err() {
                outcome.refused += 1;
            }
            outcome.done += 1;
        }
        self.settle()?;
        Ok(outcome)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        let counters = self.end.counters();
        let damaged = counters.bad_sequences + counters.aborts + counters.runts + counters.giants + counters.malformed;
        Ok(DropsOutsideModel {
            before_engine: counters.overflows + counters.early,
            // Refused packets are told of where they are written.
            after_engine: 0,
            unreadable: damaged,
        })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        Ok(InterfaceChanges::default())
    }

    fn unread_limit(&self) -> Option<Span> {
        None
    }
}

impl AsFd for PppPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.0.as_fd()
    }
}

#[cfg(test)]
mod tests;
