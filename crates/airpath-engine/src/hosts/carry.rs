// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The threads that carry frames between the loop's port and the connection to the other engine.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use airpath_core::Span;
use airpath_live::clock;
use airpath_live::ports::joined::{PACKET, note_receipt};
use airpath_log::histogram::Histogram;
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{MsgFlags, recv, send};

use super::clocks::Clocks;
use super::mouth::{Mouth, SILENCE, Said};
use super::patient::Patient;
use super::tunnel::Tunnel;
use super::wire::{self, Frame, LONGEST_FRAME_BYTES, Word};

/// State that threads share, apart from the packets' path.
pub(super) struct Shared {
    pub(super) host: String,
    pub(super) is_far: bool,
    pub(super) gone: Arc<OnceLock<String>>,
    pub(super) inbox: Mutex<VecDeque<Said>>,
    pub(super) news: EventFd,
    pub(super) transit: Mutex<Histogram>,
    /// CLOCK_REALTIME of the far host less that of the near one.
    pub(super) ahead_ns: Mutex<i64>,
    pub(super) answers: Mutex<Sender<Word>>,
}

impl Shared {
    /// Counts a packet that left at `sent_ns` by the other host's clock and came at `now_ns` by this one's.
    fn note_transit(&self, sent_ns: u64, now_ns: u64) {
        let ahead_ns = i128::from(*lock(&self.ahead_ns));
        // What comes from the far host bears its clock.
        let ahead_ns = if self.is_far { ahead_ns } else { -ahead_ns };
        let transit_ns = i128::from(now_ns) - i128::from(sent_ns) - ahead_ns;
        lock(&self.transit).record(Span::from_nanos(u64::try_from(transit_ns).unwrap_or(0)));
    }
}

/// The content of a lock, whatever a thread that held it did.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The thread that hears the other engine.
pub(super) struct Incoming {
    pub(super) input: File,
    /// The loop's port is at its other end.
    pub(super) socket: OwnedFd,
    pub(super) mouth: Mouth,
    pub(super) shared: Arc<Shared>,
    pub(super) clocks: Option<Arc<Clocks>>,
}

impl Incoming {
    /// Hears until the connection ends.
    pub(super) fn run(mut self) {
        let why = self.hear();
        // The other engine's own word about its failure comes first.
        let _ = self.shared.gone.set(why);
        let _ = self.shared.news.write(1);
        *lock(&self.shared.answers) = channel().0;
        let _ = nix::sys::socket::shutdown(self.socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
    }

    /// Hears until the connection ends; why it did.
    fn hear(&mut self) -> String {
        let host = self.shared.host.clone();
        let input = match self.input.try_clone() {
            Ok(input) => Patient::new(input, SILENCE),
            Err(error) => return format!("host `{host}`: {error}"),
        };
        let mut reader = io::BufReader::with_capacity(1 << 18, input);
        loop {
            let mut bytes = match wire::read_frame(&mut reader) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    return format!("host `{host}`: the engine there ended without a word, or the connection did");
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return format!(
                        "host `{host}`: no word for {} s; is the network between the hosts cut?",
                        SILENCE.as_secs()
                    );
                }
                Err(error) => return format!("host `{host}`: the connection broke: {error}"),
            };
            let now_ns = clock::realtime_ns();
            if let Some(sent_ns) = note_receipt(&mut bytes, now_ns) {
                self.shared.note_transit(sent_ns, now_ns);
                // A loop that is behind holds the other engine's packets up, which their delay tells.
                if send(self.socket.as_raw_fd(), &bytes, MsgFlags::MSG_NOSIGNAL).is_err() {
                    return format!("the link at host `{host}` has no port any more");
                }
                continue;
            }
            match wire::parse(&bytes) {
                Ok(Frame::Word(word)) => match *word {
                    Word::Failed { message } => return format!("host `{host}`: {message}"),
                    word => self.hear_word(word, now_ns),
                },
                Ok(Frame::Chunk(bytes)) => self.pass_on(Said::Chunk(bytes.to_vec())),
                Ok(Frame::Status(status)) => return ended(&host, status),
                Ok(Frame::Packet(_)) => {}
                Err(what) => return format!("host `{host}`: it sent {what}"),
            }
        }
    }

    fn hear_word(&self, word: Word, now_ns: u64) {
        match word {
            Word::Probe { number } => {
                let transmit_ns = clock::realtime_ns();
                let ahead_ns = transmit_ns as i64 - clock::monotonic_ns() as i64;
                self.mouth.say(&Word::Told { number, receive_ns: now_ns, transmit_ns, ahead_ns });
            }
            Word::Told { number, receive_ns, transmit_ns, ahead_ns } => {
                if let Some(clocks) = &self.clocks
                    && let Some(offset_ns) = clocks.told(number, receive_ns, transmit_ns, ahead_ns, now_ns)
                {
                    *lock(&self.shared.ahead_ns) = offset_ns;
                    self.mouth.say(&Word::Offset { ahead_ns: offset_ns });
                }
            }
            Word::Offset { ahead_ns } => *lock(&self.shared.ahead_ns) = ahead_ns,
            Word::Ask { .. } | Word::Accepted { .. } | Word::Answered { .. } => {
                drop(lock(&self.shared.answers).send(word))
            }
            word => self.pass_on(Said::Word(Box::new(word))),
        }
    }

    fn pass_on(&self, said: Said) {
        lock(&self.shared.inbox).push_back(said);
        let _ = self.shared.news.write(1);
    }
}

/// Reason for the end of a connection, by the exit status of `ssh`.
fn ended(host: &str, status: u8) -> String {
    match status {
        255 => format!("host `{host}`: ssh lost the connection (its message is above)"),
        125 => format!("host `{host}`: the engine there was killed, or failed (its message is above)"),
        137 => format!("host `{host}`: the engine there was killed"),
        status if status > 128 => format!("host `{host}`: signal {} ended the engine there", status - 128),
        status => format!("host `{host}`: the engine there ended with exit status {status} in the middle of the run"),
    }
}

/// The thread that takes packets out of a tunnel.
pub(super) fn take_packets(tunnel: &Tunnel, socket: &OwnedFd, shared: &Shared) {
    let goes_on = || shared.gone.get().is_none();
    tunnel.receive(goes_on, |frame| {
        let now_ns = clock::realtime_ns();
        if let Some(sent_ns) = note_receipt(frame, now_ns) {
            shared.note_transit(sent_ns, now_ns);
            let _ = send(socket.as_raw_fd(), frame, MsgFlags::MSG_NOSIGNAL);
        }
    });
}

/// The thread that speaks to the other engine: what anybody sends to `socket` goes out in order, packets through the
/// tunnel if there is one.
pub(super) fn carry_out(socket: &OwnedFd, mut output: File, tunnel: Option<&Tunnel>) {
    let mut buffer = vec![0; LONGEST_FRAME_BYTES];
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(0) => return,
            Ok(count) => {
                let frame = &buffer[..count];
                if frame[0] == PACKET && tunnel.is_some_and(|tunnel| tunnel.send(frame)) {
                    continue;
                }
                if wire::write_frame(&mut output, frame).is_err() {
                    // The thread that hears finds the end of the connection and tells why.
                    return;
                }
            }
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}
