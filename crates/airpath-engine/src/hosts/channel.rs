// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The connection to the other engine of a run. Two threads carry frames between it and a pair of local sockets, at
//! whose other end the loop has a port: the loop never waits for the connection, and shares no lock with anybody.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use airpath_core::{End, PduId};
use airpath_live::ports::{JoinedPort, Port};
use airpath_log::Distribution;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};

use super::carry::{Incoming, Shared, carry_out, lock, take_packets};
use super::clocks::Clocks;
use super::mouth::{Mouth, Said};
use super::tunnel::Tunnel;
use super::wire::Word;
use crate::error::{Failure, Result};

/// Room for packets that wait for the connection; the kernel grants less to ordinary users.
const BUFFER_BYTES: usize = 8 << 20;

/// Connection to the other engine of a run before the run is set up.
#[derive(Debug)]
pub struct Join {
    /// The end of this host's part of the path at which the other host is.
    pub end: End,
    /// The name of the other host.
    pub host: String,
    /// From the other engine.
    pub input: File,
    /// To the other engine.
    pub output: File,
    /// Names of the other host's hops; none at the far host.
    pub hops: Vec<String>,
    /// The number of the first packet that this host numbers.
    pub first_id: PduId,
    /// A tunnel by UDP for the packets.
    pub tunnel: Option<Tunnel>,
    /// Comparisons of the clocks so far; none at the far host, which does not ask.
    pub clocks: Option<Arc<Clocks>>,
}

/// The connection while a run goes on.
pub struct Channel {
    /// The end at which the other host is.
    pub end: End,
    /// The number of the first packet.
    pub first_id: PduId,
    /// Comparisons of the clocks.
    pub clocks: Option<Arc<Clocks>>,
    shared: Arc<Shared>,
    outgoing: OwnedFd,
    /// Names of the other host's hops; none at the far host.
    pub hops: Vec<String>,
    /// Requests, at the far host, or the answers to them.
    answers: Option<Receiver<Word>>,
}

impl Channel {
    /// Begins to carry frames; the port is the loop's.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(join: &Join) -> Result<(Channel, Port)> {
        let failed = |error: io::Error| Failure::new(format!("cannot join host `{}`: {error}", join.host));
        let pair = || socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC);
        let (near, far) = pair().map_err(|errno| failed(errno.into()))?;
        for socket in [&near, &far] {
            let forced = setsockopt(socket, sockopt::SndBufForce, &BUFFER_BYTES);
            forced.or_else(|_| setsockopt(socket, sockopt::SndBuf, &BUFFER_BYTES)).map_err(|e| failed(e.into()))?;
        }
        let gone = Arc::new(OnceLock::new());
        let (answer, answers) = channel();
        let news = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let shared = Arc::new(Shared {
            host: join.host.clone(),
            is_far: join.clocks.is_none(),
            gone: gone.clone(),
            inbox: Mutex::default(),
            news: news.map_err(|errno| failed(errno.into()))?,
            transit: Mutex::default(),
            ahead_ns: Mutex::new(join.clocks.as_ref().map_or(0, |clocks| clocks.ahead_ns())),
            answers: Mutex::new(answer),
        });
        let clone = |socket: &OwnedFd| socket.try_clone().map_err(failed);
        let (outgoing, port) = (clone(&near)?, JoinedPort::new(clone(&near)?, gone));
        let port = match &join.tunnel {
            Some(tunnel) => port.with_losses(tunnel.lost.clone()),
            None => port,
        };
        let (input, output) = (join.input.try_clone().map_err(failed)?, join.output.try_clone().map_err(failed)?);
        let incoming = Incoming {
            input,
            socket: clone(&far)?,
            mouth: Mouth(near),
            shared: shared.clone(),
            clocks: join.clocks.clone(),
        };
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(work).map_err(failed)
        };
        spawn("airpath-host-in", Box::new(move || incoming.run()))?;
        if let Some(tunnel) = join.tunnel.clone() {
            let (socket, shared) = (clone(&far)?, shared.clone());
            spawn("airpath-host-udp", Box::new(move || take_packets(&tunnel, &socket, &shared)))?;
        }
        let tunnel = join.tunnel.clone();
        spawn("airpath-host-out", Box::new(move || carry_out(&far, output, tunnel.as_ref())))?;
        if let Some(clocks) = join.clocks.clone() {
            let mouth = Mouth(clone(&outgoing)?);
            spawn("airpath-host-ask", Box::new(move || clocks.ask(&mouth)))?;
        }
        let channel = Channel {
            end: join.end,
            first_id: join.first_id,
            clocks: join.clocks.clone(),
            shared,
            outgoing,
            hops: join.hops.clone(),
            answers: Some(answers),
        };
        let port: Port = Box::new(port);
        Ok((channel, port))
    }

    /// A way to say words from any thread.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn mouth(&self) -> Result<Mouth> {
        let socket = self.outgoing.try_clone();
        socket.map(Mouth).map_err(|error| Failure::new(format!("cannot speak to host `{}`: {error}", self.host())))
    }

    /// Says `word`.
    pub fn say(&self, word: &Word) {
        if let Ok(mouth) = self.mouth() {
            mouth.say(word);
        }
    }

    /// The name of the other host.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// True at the host of the last hops.
    pub fn is_far(&self) -> bool {
        self.clocks.is_none()
    }

    /// Requests, at the far host, or the answers to them; once.
    pub fn take_answers(&mut self) -> Option<Receiver<Word>> {
        self.answers.take()
    }

    /// Readable when something was said, or the connection is gone.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.shared.news.as_fd()
    }

    /// Reason for the end of the connection, if it has ended.
    pub fn gone(&self) -> Option<&str> {
        self.shared.gone.get().map(String::as_str)
    }

    /// The next thing that was said, if there is one now.
    ///
    /// # Errors
    /// When the other engine failed, or the connection is gone and nothing is left.
    pub fn heard(&self) -> Result<Option<Said>> {
        let _ = self.shared.news.read();
        match lock(&self.shared.inbox).pop_front() {
            Some(said) => Ok(Some(said)),
            None => match self.gone() {
                Some(why) => Err(Failure::new(why.to_owned())),
                None => Ok(None),
            },
        }
    }

    /// Waits for the next thing that is said.
    ///
    /// # Errors
    /// As [`Channel::heard`], and where nothing comes in time.
    pub fn hear(&self, patience: Duration) -> Result<Said> {
        let begun = std::time::Instant::now();
        loop {
            if let Some(said) = self.heard()? {
                return Ok(said);
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(Failure::new(format!("host `{}` did not answer within {patience:?}", self.host())));
            }
            let mut ends = [PollFd::new(self.news(), PollFlags::POLLIN)];
            let _ = poll(&mut ends, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        }
    }

    /// Waits for the next word.
    ///
    /// # Errors
    /// As [`Channel::hear`], and where part of a file comes.
    pub fn hear_word(&self, patience: Duration) -> Result<Word> {
        match self.hear(patience)? {
            Said::Word(word) => Ok(*word),
            Said::Chunk(_) => Err(Failure::new(format!("host `{}` sent a file out of turn", self.host()))),
        }
    }

    /// Waits for the end of the connection.
    pub fn wait_for_end(&self, patience: Duration) {
        let begun = std::time::Instant::now();
        while self.gone().is_none() && begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Delays of packets from the other host so far.
    pub fn transit(&self) -> Distribution {
        lock(&self.shared.transit).distribution()
    }
}
