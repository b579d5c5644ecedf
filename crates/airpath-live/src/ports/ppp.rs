// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A serial line or pseudo-terminal as a port: the peer speaks PPP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use airpath_core::Span;
use airpath_packet::checksum;
use airpath_ppp::{Configuration, Counters, Denial, Endpoint, LineDown, State};
use bytes::BytesMut;
use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::line_news::{LineNews, Teller};
use super::offload::OffloadHeader;
use super::serial::{Baud, LineSpec, SerialLine};
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, LONGEST_PACKET_BYTES, Outgoing, ReadOutcome, Received, WriteOutcome,
};
use crate::error::{Attempting, Result};

/// Interval of looks at a pseudo-terminal whose other end is closed.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Number of bytes after which the line is written to before a batch of packets has ended.
const WRITE_EVERY_BYTES: usize = 8 * 1024;

/// The engine's end of a serial line with PPP. Its descriptor is readable when the line has bytes, takes bytes that
/// wait, or a timer of PPP has run out.
#[derive(Debug)]
pub struct PppPort {
    line: SerialLine,
    timer: TimerFd,
    end: Endpoint,
    began: Instant,
    teller: Teller,
    told: Told,
    /// The line hung up, and does not come back.
    is_gone: bool,
    /// Time at which a pseudo-terminal is looked at again whose other end is closed.
    look_again_ns: Option<u64>,
    /// Counters when packets passed for the first time: what a device prints before that was meant for nobody.
    before: Option<Counters>,
    /// Number of times that the line went down after it was up, and was missed.
    downs: u64,
    /// The peer has ended PPP, and packets have not passed since. That is the end of its part, and no loss, unless it
    /// comes back.
    peer_left: bool,
}

/// State that the run knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Open { ipv6: bool },
    Down(Option<LineDown>),
}

impl PppPort {
    /// Opens the line at `baud` (none: at the speed that it has) and begins to negotiate; `teller` tells what comes of
    /// it.
    ///
    /// # Errors
    /// When the line is no terminal, is in use, or cannot be opened or set.
    pub fn open(spec: &LineSpec, baud: Option<Baud>, configuration: Configuration, teller: Teller) -> Result<Self> {
        let line = SerialLine::open(spec, baud)?;
        let make = || -> nix::Result<TimerFd> {
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
            line.events().add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
            Ok(timer)
        };
        let timer = make().attempting(|| format!("wait for {}", line.name()))?;
        let mut port = Self {
            line,
            timer,
            end: Endpoint::new(configuration),
            began: Instant::now(),
            teller,
            told: Told::Nothing,
            is_gone: false,
            look_again_ns: None,
            before: None,
            downs: 0,
            peer_left: false,
        };
        port.end.open(0);
        port.settle().attempting(|| format!("write to {}", port.line.name()))?;
        Ok(port)
    }

    /// The end of PPP: its state, addresses and counters.
    pub fn end(&self) -> &Endpoint {
        &self.end
    }

    /// Name of the line: the path at which a peer finds it.
    pub fn name(&self) -> &str {
        self.line.name()
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Writes what waits for the line, sets the timer, and tells of changes.
    fn settle(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(self.end.line());
        if !self.is_gone && self.look_again_ns.is_none() {
            self.line.queue(&bytes);
            match self.line.write() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.hang_up()?,
                other => other?,
            }
        }
        self.note_changes();
        let deadline_ns = self.end.next_deadline_ns().filter(|_| !self.is_gone);
        match deadline_ns.into_iter().chain(self.look_again_ns).min() {
            None => self.timer.unset()?,
            Some(deadline_ns) => {
                let left = Duration::from_nanos(deadline_ns.saturating_sub(self.now_ns()).max(1));
                self.timer.set(Expiration::OneShot(TimeSpec::from_duration(left)), TimerSetTimeFlags::empty())?;
            }
        }
        Ok(())
    }

    /// The line hung up. A pseudo-terminal that no peer has used yet waits for one.
    fn hang_up(&mut self) -> io::Result<()> {
        self.line.forget();
        self.line.watch(false)?;
        if self.line.is_pseudo() && self.before.is_none() {
            self.look_again_ns = Some(self.now_ns() + LOOK_AGAIN.as_nanos() as u64);
            return Ok(());
        }
        self.is_gone = true;
        self.teller.tell(LineNews::HungUp(self.line.name().to_owned()));
        Ok(())
    }

    fn read_line(&mut self) -> io::Result<()> {
        let now_ns = self.now_ns();
        if self.is_gone || self.look_again_ns.is_some_and(|at| at > now_ns) {
            return Ok(());
        }
        let end = &mut self.end;
        match self.line.read(|bytes| end.receive(now_ns, bytes)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.hang_up(),
            Err(error) => Err(error),
            Ok(()) if self.look_again_ns.take().is_some() => {
                // Somebody has opened the other end.
                self.line.watch(true)?;
                self.end.restart(now_ns);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn note_changes(&mut self) {
        let end = &self.end;
        let now = match end.down() {
            None if end.ipv4_open() => Told::Open { ipv6: end.ipv6_open() },
            // Addresses are being negotiated.
            None if !end.ipv4_refused() => return self.note_loss(),
            other => Told::Down(other),
        };
        if now == self.told {
            return;
        }
        match now {
            Told::Open { ipv6 } => {
                self.before.get_or_insert(end.counters());
                self.downs += u64::from(std::mem::take(&mut self.peer_left));
                let (_, peer) = end.addresses();
                self.teller.tell(LineNews::Opened { peer, mru_bytes: end.peer_mru_bytes(), ipv6 });
            }
            Told::Down(Some(LineDown::Negotiating | LineDown::Closed)) => return self.note_loss(),
            Told::Down(why) => {
                self.note_loss();
                self.teller.tell(match why {
                    None => LineNews::Refused("the peer refuses IPv4: it rejects IPCP, or every address".into()),
                    Some(LineDown::Denied(Denial::Ours)) => {
                        LineNews::Denied("the peer does not take our name and password".into())
                    }
                    Some(LineDown::Denied(Denial::Peers)) => LineNews::Denied(
                        "the peer does not say who it is, or its name and password are not among the `secrets`".into(),
                    ),
                    Some(LineDown::Loop) => {
                        LineNews::Down("the line brings back our own bytes: something echoes them".into())
                    }
                    _ => LineNews::Down("the peer does not answer, or has ended PPP".into()),
                });
            }
            Told::Nothing => {}
        }
        self.told = now;
    }

    /// Notes that a line is no longer open; what comes of it is told later.
    fn note_loss(&mut self) {
        if matches!(self.told, Told::Open { .. }) {
            self.told = Told::Nothing;
            self.peer_left = matches!(self.end.state(), State::Stopping | State::Stopped);
            self.downs += u64::from(!self.peer_left);
            let why = if self.peer_left { "the peer has ended PPP" } else { "the peer negotiates anew" };
            self.teller.tell(LineNews::Down(why.into()));
        }
    }

    /// Counters since packets passed for the first time.
    fn counters(&self) -> Counters {
        let (now, before) = (self.end.counters(), self.before.unwrap_or_default());
        Counters {
            bad_sequences: now.bad_sequences - before.bad_sequences,
            aborts: now.aborts - before.aborts,
            runts: now.runts - before.runts,
            giants: now.giants - before.giants,
            malformed: now.malformed - before.malformed,
            early: now.early - before.early,
            unread: now.unread - before.unread,
            ..now
        }
    }
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
            out.push(Received {
                bytes,
                link_bytes: 0,
                stamp_realtime_ns: None,
                offload: OffloadHeader::default(),
                journey: None,
            });
            outcome.packets += 1;
        }
        Ok(outcome)
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        let mut bytes = Vec::new();
        for packet in packets {
            bytes.clear();
            packet.parts.iter().for_each(|part| bytes.extend_from_slice(part));
            // What waits for the line is one queue, in two places.
            let is_full = self.line.waiting_bytes() > Endpoint::BEFORE_A_PACKET_BYTES;
            let is_whole = finish_checksum(&mut bytes, &packet.offload);
            if self.is_gone || is_full || !is_whole || self.end.send(&bytes).is_err() {
                outcome.refused += 1;
            }
            outcome.done += 1;
            if self.end.line().len() > WRITE_EVERY_BYTES {
                self.settle()?;
            }
        }
        self.settle()?;
        Ok(outcome)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        let counters = self.counters();
        let damaged = counters.bad_sequences + counters.aborts + counters.runts + counters.giants + counters.malformed;
        Ok(DropsOutsideModel {
            before_engine: counters.early + counters.unread,
            // Packets that the line did not take are told of where they are written.
            after_engine: 0,
            unreadable: damaged,
        })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        Ok(InterfaceChanges { downs: self.downs, queues: Vec::new() })
    }

    fn unread_limit(&self) -> Option<Span> {
        None
    }

    fn is_line(&self) -> bool {
        true
    }
}

/// Finishes a checksum that the sending kernel left to the device: behind the line is no kernel that would. False for
/// what nobody can finish: super-packets, which a session with a line does not have, and places outside the packet.
fn finish_checksum(packet: &mut [u8], offload: &OffloadHeader) -> bool {
    let (start, offset) = (usize::from(offload.checksum_start), usize::from(offload.checksum_offset));
    !offload.is_super_packet() && (!offload.needs_checksum || checksum::finish(packet, start, offset))
}

impl AsFd for PppPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for PppPort {
    /// Ends PPP in order, so that the peer does not wait for echoes.
    fn drop(&mut self) {
        if !self.is_gone && self.look_again_ns.is_none() {
            self.end.close(self.now_ns());
            let bytes = std::mem::take(self.end.line());
            self.line.forget();
            self.line.queue(&bytes);
            let _ = self.line.write();
        }
    }
}

#[cfg(test)]
mod tests;
