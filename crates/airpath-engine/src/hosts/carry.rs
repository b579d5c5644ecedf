// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The threads that carry frames between the ports of the loop and a connection to another engine.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use airpath_core::{Credit, Direction, Span};
use airpath_live::clock;
use airpath_live::ports::credit::JoinedCredit;
use airpath_live::ports::joined::{PACKET, note_receipt};
use airpath_log::histogram::Histogram;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{MsgFlags, recv, send};

use super::clocks::Clocks;
use super::locks::lock;
use super::mouth::{Mouth, PREPARATION, SILENCE, Said};
use super::patient::Patient;
use super::ssh::signal_of_ssh;
use super::ssh_log;
use super::tallies::{Counts, CreditAccount, Tally};
use super::tunnel::Tunnel;
use super::wire::{self, Frame, LONGEST_FRAME_BYTES, Word};

/// Number of words and parts of files that wait for whom they are for.
const INBOX: usize = 64;
/// Least time between two tallies of the packets that went through a tunnel.
const TALLY: Duration = Duration::from_millis(20);

/// State of all connections of a path.
pub(super) struct Group {
    /// Reason for the end of the first connection that has ended.
    pub(super) gone: Arc<OnceLock<String>>,
    /// Readable when something was said on any path, or a connection is gone.
    pub(super) news: Arc<EventFd>,
    /// Sockets behind the loop's ports: without one of the hosts the path is cut.
    pub(super) ports: Mutex<Vec<OwnedFd>>,
}

impl Group {
    /// A connection has ended: the loop's ports go, and everybody is woken.
    fn end(&self, why: &str) {
        let _ = self.gone.set(why.to_owned());
        for port in lock(&self.ports).iter() {
            let _ = nix::sys::socket::shutdown(port.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        }
        let _ = self.news.write(1);
    }
}

/// Words and parts of files that nobody has heard yet: so few that memory is bounded, whatever the other engine says.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<VecDeque<Said>>,
    taken: Condvar,
}

impl Inbox {
    /// Puts `said` in, once there is room.
    fn put(&self, said: Said) {
        let waiting = lock(&self.waiting);
        let full = |waiting: &mut VecDeque<Said>| waiting.len() >= INBOX;
        let mut waiting = self.taken.wait_while(waiting, full).unwrap_or_else(std::sync::PoisonError::into_inner);
        waiting.push_back(said);
    }

    /// Takes the next one out.
    pub(super) fn take(&self) -> Option<Said> {
        let said = lock(&self.waiting).pop_front();
        self.taken.notify_one();
        said
    }
}

/// State of one connection that threads share, apart from the packets' path.
pub(super) struct Shared {
    pub(super) host: String,
    /// True if the connection is one of `ssh`.
    pub(super) by_ssh: bool,
    /// Messages of `ssh`.
    pub(super) ssh_log: Option<File>,
    pub(super) group: Arc<Group>,
    /// Reason for the end of this connection.
    pub(super) gone: OnceLock<String>,
    pub(super) inbox: Inbox,
    pub(super) answers: Mutex<SyncSender<Word>>,
}

/// The network between a port of this engine and the host behind it.
#[derive(Default)]
pub(super) struct Network {
    transit: Mutex<Histogram>,
    /// CLOCK_REALTIME of this host less that of the other.
    pub(super) ahead_ns: AtomicI64,
}

impl Network {
    /// Counts a packet that left at `sent_ns` by the other host's clock and came at `now_ns` by this one's.
    fn note_transit(&self, sent_ns: u64, now_ns: u64) {
        let ahead_ns = i128::from(self.ahead_ns.load(Ordering::Relaxed));
        let transit_ns = i128::from(now_ns) - i128::from(sent_ns) - ahead_ns;
        lock(&self.transit).record(Span::from_nanos(u64::try_from(transit_ns).unwrap_or(0)));
    }

    /// Delays of packets so far.
    pub(super) fn transit(&self) -> airpath_log::Distribution {
        lock(&self.transit).distribution()
    }
}

/// The way into a port of the loop.
pub(super) struct Entrance {
    /// The socket at whose other end the port is.
    pub(super) socket: OwnedFd,
    pub(super) network: Arc<Network>,
    /// The tunnel through which packets come, if there is one.
    pub(super) tunnel: Option<Tunnel>,
    /// Credits of the hop behind.
    pub(super) credits: Mutex<CreditAccount>,
}

impl Entrance {
    /// Stamps a packet or a credit and hands it to the port; notes a tally.
    fn take_in(&self, bytes: &mut [u8]) {
        let now_ns = clock::realtime_ns();
        if let Some(sent_ns) = note_receipt(bytes, now_ns) {
            self.network.note_transit(sent_ns, now_ns);
            self.hand_over(bytes);
        } else if let Some(told) = JoinedCredit::read(bytes) {
            // One after the other, as the last word holds.
            let mut credits = lock(&self.credits);
            let credit = credits.heard(told.credit);
            self.credit(told.direction, now_ns, credit);
        } else {
            match Tally::read(bytes) {
                Some(Tally::Sent(counts)) => {
                    if let Some(tunnel) = &self.tunnel {
                        tunnel.told(counts.sum());
                    }
                }
                Some(Tally::Lost(counts)) => {
                    let mut credits = lock(&self.credits);
                    if let Some(credit) = credits.lost(counts.sum()) {
                        self.credit(counts.direction, now_ns, credit);
                    }
                }
                None => {}
            }
        }
    }

    fn credit(&self, direction: Direction, received_realtime_ns: u64, credit: Credit) {
        self.hand_over(&JoinedCredit { direction, received_realtime_ns, credit }.to_bytes());
    }

    fn hand_over(&self, bytes: &[u8]) {
        // A port that is gone tells its loop why.
        while let Err(nix::errno::Errno::EINTR) = send(self.socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {}
    }
}

/// A connection's way out, which several threads use.
pub(super) type Output = Arc<Mutex<File>>;

/// Way of packets that come.
pub(super) enum Way {
    /// To a port of the loop.
    Port(Arc<Entrance>),
    /// To the next host, over another connection.
    Onwards(Output),
}

/// The thread that hears the other engine.
pub(super) struct Incoming {
    pub(super) input: File,
    /// The ways of packets, by direction.
    pub(super) ways: [Option<Way>; 2],
    pub(super) mouth: Mouth,
    pub(super) shared: Arc<Shared>,
    pub(super) clocks: Option<Arc<Clocks>>,
    /// The networks before this host and behind it, at a far host.
    pub(super) networks: [Arc<Network>; 2],
}

impl Incoming {
    /// Hears until the connection ends.
    pub(super) fn run(mut self) {
        let why = self.hear();
        // The other engine's own word about its failure comes first.
        let _ = self.shared.gone.set(why.clone());
        *lock(&self.shared.answers) = sync_channel(1).0;
        self.mouth.shut();
        self.shared.group.end(&why);
    }

    /// Hears until the connection ends; why it did.
    fn hear(&mut self) -> String {
        let host = self.shared.host.clone();
        // The near engine speaks to nobody until all hosts are prepared.
        let first = if self.clocks.is_none() { PREPARATION } else { SILENCE };
        let input = match self.input.try_clone() {
            Ok(input) => Patient::new(input, first),
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
            reader.get_mut().set_patience(SILENCE);
            if let Some(direction) = wire::direction_of(&bytes) {
                if let Err(why) = self.carry(direction, &mut bytes) {
                    return why;
                }
                continue;
            }
            let now_ns = clock::realtime_ns();
            match wire::parse(&bytes) {
                Ok(Frame::Word(word)) => match *word {
                    Word::Failed { message } => return format!("host `{host}`: {message}"),
                    word => self.hear_word(word, now_ns),
                },
                Ok(Frame::Chunk(bytes)) => self.pass_on(Said::Chunk(bytes.to_vec())),
                Ok(Frame::Status(status)) => return ended(&self.shared, status),
                Ok(Frame::Packet(_) | Frame::Credit(_) | Frame::Tally(_)) => {}
                Err(what) => return format!("host `{host}`: it sent {what}"),
            }
        }
    }

    /// Takes a packet, a credit or a tally to where it goes. Where a loop, or the next connection, is behind, that holds
    /// the other engine's packets up, which their delay tells.
    fn carry(&self, direction: Direction, bytes: &mut [u8]) -> Result<(), String> {
        match &self.ways[direction as usize] {
            Some(Way::Port(entrance)) => {
                entrance.take_in(bytes);
                Ok(())
            }
            Some(Way::Onwards(output)) => {
                // What goes wrong there, the thread that hears that host tells.
                let _ = wire::write_frame(&mut *lock(output), bytes);
                Ok(())
            }
            None => Err(format!("host `{}`: it sent packets the wrong way", self.shared.host)),
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
                if let Some(clocks) = &self.clocks {
                    clocks.told(number, receive_ns, transmit_ns, ahead_ns, now_ns);
                }
            }
            Word::Offset { before_ns, behind_ns } => {
                for (network, ahead_ns) in self.networks.iter().zip([before_ns, behind_ns]) {
                    network.ahead_ns.store(ahead_ns, Ordering::Relaxed);
                }
            }
            // Whoever asks waits for the answer; more than that nobody reads.
            Word::Ask { .. } | Word::Accepted { .. } | Word::Answered { .. } => {
                drop(lock(&self.shared.answers).try_send(word))
            }
            word => self.pass_on(Said::Word(Box::new(word))),
        }
    }

    fn pass_on(&self, said: Said) {
        self.shared.inbox.put(said);
        let _ = self.shared.group.news.write(1);
    }
}

/// Reason for the end of a connection, by the exit status of `ssh`, or of the engine where that is on this host.
fn ended(shared: &Shared, status: u8) -> String {
    let Shared { host, by_ssh, ssh_log: log, .. } = shared;
    if let Some(signal) = signal_of_ssh(status).filter(|_| *by_ssh) {
        let reason = ssh_log::reason(log.as_ref());
        return format!("host `{host}`: signal {signal} ended ssh on this host, and with it the connection{reason}");
    }
    match status {
        255 => format!("host `{host}`: ssh lost the connection{}", ssh_log::reason(log.as_ref())),
        125 => format!("host `{host}`: the engine there was killed or failed; its message, if it left one, is above"),
        137 => format!("host `{host}`: the engine there was killed"),
        status if status > 128 => format!("host `{host}`: signal {} ended the engine there", status - 128),
        status => format!("host `{host}`: the engine there ended with exit status {status} in the middle of the run"),
    }
}

/// The thread that takes packets out of a tunnel. What is lost there is told to the other engine through `mouth`, in
/// `direction`.
pub(super) fn take_packets(
    tunnel: &Tunnel,
    entrance: &Entrance,
    (mouth, direction): (&Mouth, Direction),
    group: &Group,
) {
    let goes_on = || group.gone.get().is_none();
    let tell = |lost| mouth.send(&Tally::Lost(Counts::of(direction, lost)).to_bytes());
    tunnel.receive(goes_on, |frame| entrance.take_in(frame), tell);
}

/// The thread that speaks to the other engine: what anybody sends to `socket` goes out in order, packets through the
/// tunnel if there is one, in the direction beside it.
pub(super) fn carry_out(socket: &OwnedFd, output: &Output, tunnel: Option<(&Tunnel, Direction)>) {
    let mut buffer = vec![0; LONGEST_FRAME_BYTES];
    let mut told = Instant::now();
    loop {
        // The last packets before a pause: without a word nobody would know that these are lost.
        if let Some((tunnel, direction)) = tunnel.filter(|(tunnel, _)| tunnel.has_untold())
            && !is_readable_within(socket, TALLY.saturating_sub(told.elapsed()))
        {
            told = Instant::now();
            let tally = Tally::Sent(Counts::of(direction, tunnel.tell()));
            if wire::write_frame(&mut *lock(output), &tally.to_bytes()).is_err() {
                return;
            }
        }
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(0) => return,
            Ok(count) => {
                let frame = &buffer[..count];
                if frame[0] == PACKET && tunnel.is_some_and(|(tunnel, _)| tunnel.send(frame)) {
                    continue;
                }
                if wire::write_frame(&mut *lock(output), frame).is_err() {
                    // The thread that hears finds the end of the connection and tells why.
                    return;
                }
            }
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// True if something is to be read from `socket` within `time`; false at once where there is no time left.
fn is_readable_within(socket: &OwnedFd, time: Duration) -> bool {
    let mut ends = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let time = Duration::from_millis(time.as_nanos().div_ceil(1_000_000) as u64);
    !time.is_zero()
        && poll(&mut ends, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_ssh_is_not_that_of_the_engine() {
        let shared = |by_ssh| Shared {
            host: "lab2".into(),
            by_ssh,
            ssh_log: None,
            group: Arc::new(Group {
                gone: Arc::default(),
                news: Arc::new(EventFd::new().unwrap()),
                ports: Mutex::default(),
            }),
            gone: OnceLock::new(),
            inbox: Inbox::default(),
            answers: Mutex::new(sync_channel(1).0),
        };
        for (by_ssh, status, told) in [
            (true, 137, "host `lab2`: signal 9 ended ssh on this host"),
            (true, 143, "host `lab2`: signal 15 ended ssh on this host"),
            (true, 255, "host `lab2`: ssh lost the connection"),
            (true, 125, "host `lab2`: the engine there was killed or failed"),
            (false, 137, "host `lab2`: the engine there was killed"),
            (false, 143, "host `lab2`: signal 15 ended the engine there"),
        ] {
            let message = ended(&shared(by_ssh), status);
            assert!(message.starts_with(told), "{message}");
        }
    }
}
