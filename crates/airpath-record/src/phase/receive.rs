// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Receiving of a phase, and the word of it to a saturating sender.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use airpath_load::clock::monotonic_ns;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::shared::Shared;
use super::socket::{Came, PathSocket};
use crate::plan::MOST_PACKETS;
use crate::wire::datagram::{Datagram, Feedback};
use crate::wire::message::Arrival;

/// Distance of feedback, in ns.
const FEEDBACK_NS: u64 = 40_000_000;
/// Least silence after the sender's word that it has sent everything, after which missing packets are lost. The
/// word goes through the same queues as the packets.
const GRACE_NS: u64 = 1_000_000_000;
/// Longest such silence.
const LONGEST_GRACE_NS: u64 = 30_000_000_000;
/// Silence after which a receiver says where it is, for the translators of addresses on the path.
const HELLO_NS: u64 = 5_000_000_000;
/// Longest wait for anything, in ms: the end of a phase is noticed that soon.
const WAIT_MS: u64 = 20;

/// Role of the receiver in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// True if the other end sends packets.
    pub receives: bool,
    /// True if its sender wants feedback.
    pub feedback: bool,
    /// True if this end says where it is while it does not send.
    pub says_hello: bool,
}

/// An arrival and the time of sending that the packet itself tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The arrival.
    pub arrival: Arrival,
    /// Time of sending, by the sender's clock.
    pub sent_ns: u64,
}

/// State of what arrives.
#[derive(Debug, Default)]
struct Incoming {
    log: Vec<Stamped>,
    distinct: u32,
    seen: Vec<u64>,
    feedback: Feedback,
    last_ns: u64,
    longest_gap_ns: u64,
}

impl Incoming {
    fn take(&mut self, number: u32, sent_ns: u64, at_ns: u64, now_ns: u64) {
        if number >= MOST_PACKETS || self.log.len() >= 2 * MOST_PACKETS as usize {
            return;
        }
        let (word, bit) = ((number / 64) as usize, 1u64 << (number % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit == 0 {
            self.seen[word] |= bit;
            self.distinct += 1;
        }
        self.log.push(Stamped { arrival: Arrival { number, arrived_ns: at_ns }, sent_ns });
        if self.log.len() > 1 {
            self.longest_gap_ns = self.longest_gap_ns.max(now_ns.saturating_sub(self.last_ns));
        }
        self.last_ns = now_ns;
        self.feedback = Feedback {
            highest: self.feedback.highest.max(number),
            arrived: self.distinct,
            last_sent_ns: sent_ns,
            last_arrived_ns: at_ns,
            held_ns: 0,
        };
    }

    /// Silence after which nothing more is expected.
    fn grace_ns(&self) -> u64 {
        (4 * self.longest_gap_ns).clamp(GRACE_NS, LONGEST_GRACE_NS)
    }
}

/// Receives until everything has arrived that was sent, or nothing more comes; meanwhile takes the feedback for
/// this end's own sender.
///
/// # Errors
/// The socket's.
pub fn receive(socket: &PathSocket, shared: &Shared, role: Role) -> io::Result<Vec<Stamped>> {
    let mut incoming = Incoming::default();
    let (mut told_ns, mut told, mut hello_ns) = (0, 0, monotonic_ns());
    let mut expected_ns = None;
    loop {
        while let Some(came) = endure(socket.receive())? {
            take(socket, shared, &mut incoming, came)?;
        }
        let now_ns = monotonic_ns();
        if role.feedback && incoming.log.len() > told && now_ns >= told_ns + FEEDBACK_NS {
            (told_ns, told) = (now_ns, incoming.log.len());
            let held_ns = u32::try_from(now_ns.saturating_sub(incoming.last_ns)).unwrap_or(u32::MAX);
            let feedback = Feedback { held_ns, ..incoming.feedback };
            endure(socket.send(shared.number, Datagram::Feedback(feedback), 0).map(Some))?;
        }
        if role.says_hello && now_ns >= hello_ns + HELLO_NS {
            hello_ns = now_ns;
            endure(socket.send(shared.number, Datagram::Hello, 0).map(Some))?;
        }
        let complete = !role.receives
            || shared.expected().is_some_and(|expected| {
                let since_ns = incoming.last_ns.max(*expected_ns.get_or_insert(now_ns));
                incoming.distinct >= expected || now_ns >= since_ns + incoming.grace_ns()
            });
        if shared.abandoned() || (complete && !shared.sending()) {
            return Ok(incoming.log);
        }
        wait(socket)?;
    }
}

/// Answers hellos until `is_over`.
///
/// # Errors
/// The socket's.
pub fn answer(socket: &PathSocket, is_over: impl Fn() -> bool) -> io::Result<()> {
    while !is_over() {
        while let Some(came) = endure(socket.receive())? {
            if came.datagram == Datagram::Hello {
                endure(socket.send(came.phase, Datagram::Welcome, 0).map(Some))?;
            }
        }
        wait(socket)?;
    }
    Ok(())
}

fn wait(socket: &PathSocket) -> io::Result<()> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(WAIT_MS as u16)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Leaves out errors of a socket that concern an earlier datagram, or a lack of room.
fn endure<T>(outcome: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match outcome {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused)
                || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EINTR)) =>
        {
            Ok(None)
        }
        other => other,
    }
}

fn take(socket: &PathSocket, shared: &Shared, incoming: &mut Incoming, came: Came) -> io::Result<()> {
    match came.datagram {
        Datagram::Hello => {
            endure(socket.send(came.phase, Datagram::Welcome, 0).map(Some))?;
        }
        // What is late belongs to an earlier phase.
        _ if came.phase != shared.number => {}
        Datagram::Probe { number, sent_ns } => {
            incoming.take(number, sent_ns, came.at_ns, monotonic_ns());
            shared.arrived.store(incoming.distinct, Ordering::Relaxed);
        }
        Datagram::Feedback(feedback) => {
            shared.backlog().hear(socket.now_ns(), feedback);
            shared.wake();
        }
        Datagram::Welcome => {}
    }
    Ok(())
}
