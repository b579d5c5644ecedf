// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The connections to the other engines of a run. Threads carry frames between them and pairs of local sockets, at
//! whose other ends the loop has ports: the loop never waits for a connection, and shares no lock with anybody.
//!
//! The near host has a connection to each of the others. Packets between two of these pass through it, unless a tunnel
//! joins them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use airpath_core::{Credit, Direction, End, PduId};
use airpath_live::ports::{JoinedPort, Port};
use airpath_log::Distribution;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};

use super::carry::{Entrance, Group, Inbox, Incoming, Network, Output, Shared, Way, carry_out, take_packets};
use super::clocks::Clocks;
use super::locks::lock;
use super::mouth::{Mouth, Said};
use super::tallies::CreditAccount;
use super::tunnel::Tunnel;
use super::wire::Word;
use crate::error::{Failure, Result};

/// Room for packets that wait for the connection; the kernel grants less to ordinary users.
const BUFFER_BYTES: usize = 8 << 20;
/// Number of requests, or answers to them, that wait.
const ANSWERS: usize = 64;
/// Interval between questions for the time.
const INTERVAL: Duration = Duration::from_millis(250);
/// Number of packets of other parts of a path begin at multiples of this.
const IDS_OF_PART: u32 = 48;

/// Connection to another engine of a run before the run is set up.
#[derive(Debug)]
pub struct Join {
    /// The name of the part of the path there.
    pub host: String,
    /// From the other engine.
    pub input: File,
    /// To the other engine.
    pub output: File,
    /// Names of the other host's hops; none at a far host.
    pub hops: Vec<String>,
    /// Comparisons of the clocks so far; none at a far host, which does not ask.
    pub clocks: Option<Arc<Clocks>>,
    /// True if the connection is one of `ssh`.
    pub by_ssh: bool,
    /// Messages of `ssh`.
    pub ssh_log: Option<File>,
}

/// An end of this host's part of the path behind which the path goes on.
#[derive(Debug)]
pub struct Border {
    /// The end.
    pub end: End,
    /// A tunnel by UDP for the packets.
    pub tunnel: Option<Tunnel>,
    /// Credit of the hop behind it at t = 0.
    pub credit: Credit,
}

/// A connection while a run goes on.
pub struct Channel {
    /// Comparisons of the clocks.
    pub clocks: Option<Arc<Clocks>>,
    shared: Arc<Shared>,
    outgoing: OwnedFd,
    /// Names of the other host's hops; none at a far host.
    pub hops: Vec<String>,
    /// Requests, at a far host, or the answers to them.
    answers: Option<Receiver<Word>>,
    /// True once the other engine was told that its results came.
    is_taken: AtomicBool,
}

/// All connections of a path while a run goes on: at the near host in the order of the path, at a far one that to
/// the near host.
pub struct Channels {
    /// The connections.
    pub all: Vec<Channel>,
    /// The number of the first packet.
    pub first_id: PduId,
    group: Arc<Group>,
    /// The networks at the client's end of this host's part, and at the server's.
    networks: [Arc<Network>; 2],
    stopped: Arc<AtomicBool>,
}

/// The connections of a path, and the ports behind which it goes on, each with its end.
pub type Started = (Channels, Vec<(End, Port)>);

/// A pair of local sockets that keep datagrams apart.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    for socket in [&near, &far] {
        let forced = setsockopt(socket, sockopt::SndBufForce, &BUFFER_BYTES);
        forced.or_else(|_| setsockopt(socket, sockopt::SndBuf, &BUFFER_BYTES))?;
    }
    Ok((near, far))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

impl Channels {
    /// Begins to carry frames, where this host has part `number` of the path. The ports are the loop's.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(joins: &[Join], borders: &[Border], number: u16) -> Result<Started> {
        let mut started = Channels::start_all(&[(joins, borders)], number)?;
        started.pop().ok_or_else(|| Failure::new("there is no path to join"))
    }

    /// The same for several paths, each with the connections and borders of its own: the loss of a host ends its path,
    /// and no other.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start_all(paths: &[(&[Join], &[Border])], number: u16) -> Result<Vec<Started>> {
        let names = paths.iter().flat_map(|(joins, _)| joins.iter().map(|join| join.host.as_str()));
        let names: Vec<&str> = names.collect();
        let news = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(io::Error::from);
        news.map(Arc::new)
            .and_then(|news| {
                let group = || Group { gone: Arc::default(), news: Arc::clone(&news), ports: Mutex::default() };
                let start = |(joins, borders): &(&[Join], &[Border])| {
                    Channels::try_to_start(joins, borders, number, &Arc::new(group()))
                };
                paths.iter().map(start).collect()
            })
            .map_err(|error| Failure::new(format!("cannot join host `{}`: {error}", names.join("`, `"))))
    }

    fn try_to_start(joins: &[Join], borders: &[Border], number: u16, group: &Arc<Group>) -> io::Result<Started> {
        let networks: [Arc<Network>; 2] = Default::default();
        let outputs = joins
            .iter()
            .map(|join| Ok(Arc::new(Mutex::new(join.output.try_clone()?))))
            .collect::<io::Result<Vec<Output>>>()?;
        let mut ports: Vec<(End, Port)> = Vec::new();
        // Where packets go that come to this host's part, by direction.
        let mut to_ports: [Option<Way>; 2] = [None, None];
        for Border { end, tunnel, credit } in borders {
            let (near, far) = pair()?;
            let network = networks[end.port().0 as usize].clone();
            let port = JoinedPort::new(near.try_clone()?, *end, group.gone.clone()).with_credit(*credit);
            let port = match tunnel {
                Some(tunnel) => port.with_losses(tunnel.lost.clone()),
                None => port,
            };
            ports.push((*end, Box::new(port)));
            lock(&group.ports).push(far.try_clone()?);
            let entrance = Arc::new(Entrance {
                socket: far.try_clone()?,
                network,
                tunnel: tunnel.clone(),
                credits: Mutex::new(CreditAccount::new(*credit)),
            });
            let outwards = end.other().sends();
            if let Some(tunnel) = tunnel.clone() {
                let (entrance, mouth, group) = (entrance.clone(), Mouth(near), group.clone());
                spawn("airpath-host-udp", move || take_packets(&tunnel, &entrance, (&mouth, outwards), &group))?;
            }
            to_ports[end.sends() as usize] = Some(Way::Port(entrance));
            // The first connection is that to the neighbour, or to the near host, which passes packets on.
            let Some(output) = outputs.first().cloned() else { continue };
            let tunnel = tunnel.clone();
            spawn("airpath-host-out", move || {
                carry_out(&far, &output, tunnel.as_ref().map(|tunnel| (tunnel, outwards)));
            })?;
        }
        let mut all = Vec::new();
        for (index, join) in joins.iter().enumerate() {
            let onwards = |index: Option<usize>| {
                index.and_then(|index| outputs.get(index)).map(|output| Way::Onwards(output.clone()))
            };
            let mut ways = [None, None];
            if join.clocks.is_none() {
                ways = std::mem::take(&mut to_ports);
            } else {
                ways[Direction::Uplink as usize] = onwards(Some(index + 1));
                ways[Direction::Downlink as usize] = match index {
                    0 => to_ports[Direction::Downlink as usize].take(),
                    _ => onwards(Some(index - 1)),
                };
            }
            let (near, far) = pair()?;
            let (answer, answers) = sync_channel(ANSWERS);
            let shared = Arc::new(Shared {
                host: join.host.clone(),
                by_ssh: join.by_ssh,
                ssh_log: join.ssh_log.as_ref().map(File::try_clone).transpose()?,
                group: group.clone(),
                gone: OnceLock::new(),
                inbox: Inbox::default(),
                answers: Mutex::new(answer),
            });
            let incoming = Incoming {
                input: join.input.try_clone()?,
                ways,
                mouth: Mouth(near.try_clone()?),
                shared: shared.clone(),
                clocks: join.clocks.clone(),
                networks: networks.clone(),
            };
            spawn("airpath-host-in", move || incoming.run())?;
            let output = outputs[index].clone();
            spawn("airpath-host-say", move || carry_out(&far, &output, None))?;
            all.push(Channel {
                clocks: join.clocks.clone(),
                shared,
                outgoing: near,
                hops: join.hops.clone(),
                answers: Some(answers),
                is_taken: AtomicBool::new(false),
            });
        }
        let stopped = Arc::new(AtomicBool::new(false));
        let clocks: Vec<Arc<Clocks>> = joins.iter().filter_map(|join| join.clocks.clone()).collect();
        if !clocks.is_empty() {
            let mouths = all.iter().map(|channel| Ok(Mouth(channel.outgoing.try_clone()?)));
            let mouths: Vec<Mouth> = mouths.collect::<io::Result<_>>()?;
            let (network, stopped) = (networks[End::Server.port().0 as usize].clone(), stopped.clone());
            spawn("airpath-host-ask", move || ask(&clocks, &mouths, &network, &stopped))?;
        }
        // Each part numbers what it makes itself: the first packets, copies, background loads.
        let first_id = (PduId::from(number) << IDS_OF_PART).max(1);
        Ok((Channels { all, first_id, group: group.clone(), networks, stopped }, ports))
    }

    /// True at a host of later hops.
    pub fn is_far(&self) -> bool {
        self.all.iter().all(|channel| channel.clocks.is_none())
    }

    /// Readable when something was said on any path of the run, or a connection is gone.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.group.news.as_fd()
    }

    /// Reason for the end of a connection, if one has ended.
    pub fn gone(&self) -> Option<&str> {
        self.group.gone.get().map(String::as_str)
    }

    /// Delays of packets that came to this host's part at `end` so far.
    pub fn transit(&self, end: End) -> Distribution {
        self.networks[end.port().0 as usize].transit()
    }

    /// Ends the questions for the time.
    pub fn stop_asking(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Waits for the ends of the connections to engines whose results came, no longer than `until`. A thread of this
    /// process still has to pass that on: an engine that does not hear it keeps its folder.
    pub fn wait_for_ends(&self, until: Instant) {
        let taken = self.all.iter().filter(|channel| channel.is_taken.load(Ordering::Relaxed));
        taken.for_each(|channel| channel.wait_for_end(until.saturating_duration_since(Instant::now())));
    }
}

/// The thread that asks all hosts for the time until the run has ended, and tells each how its clock differs from those
/// of its neighbours on the path; `network` is that behind this host.
fn ask(clocks: &[Arc<Clocks>], mouths: &[Mouth], network: &Network, stopped: &AtomicBool) {
    while !stopped.load(Ordering::Relaxed) {
        let ahead: Vec<i64> = std::iter::once(0).chain(clocks.iter().map(|clocks| clocks.ahead_ns())).collect();
        let less = |one: usize, other: usize| match (ahead.get(one), ahead.get(other)) {
            (Some(one), Some(other)) => one.saturating_sub(*other),
            _ => 0,
        };
        network.ahead_ns.store(less(0, 1), Ordering::Relaxed);
        for (number, (clocks, mouth)) in (1..).zip(clocks.iter().zip(mouths)) {
            mouth.say(&Word::Offset { before_ns: less(number, number - 1), behind_ns: less(number, number + 1) });
            mouth.say(&clocks.question());
        }
        std::thread::sleep(INTERVAL);
    }
}

impl Channel {
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

    /// Tells the other engine that its results came, on which it ends.
    pub fn say_taken(&self) {
        self.say(&Word::Taken {});
        self.is_taken.store(true, Ordering::Relaxed);
    }

    /// The name of the part of the path at the other host.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// Requests, at a far host, or the answers to them; once.
    pub fn take_answers(&mut self) -> Option<Receiver<Word>> {
        self.answers.take()
    }

    /// Reason for the end of the connection, if it has ended.
    fn gone(&self) -> Option<&str> {
        self.shared.gone.get().map(String::as_str)
    }

    /// The next thing that was said, if there is one now.
    ///
    /// # Errors
    /// When the other engine failed, or the connection is gone and nothing is left.
    pub fn heard(&self) -> Result<Option<Said>> {
        let _ = self.shared.group.news.read();
        // What was said before the end is in the inbox by the time the end is known.
        let gone = self.gone();
        match (self.shared.inbox.take(), gone) {
            (Some(said), _) => Ok(Some(said)),
            (None, Some(why)) => Err(Failure::new(why.to_owned())),
            (None, None) => Ok(None),
        }
    }

    /// Waits for the next thing that is said.
    ///
    /// # Errors
    /// As [`Channel::heard`], and where nothing comes in time.
    pub fn hear(&self, patience: Duration) -> Result<Said> {
        let begun = Instant::now();
        loop {
            if let Some(said) = self.heard()? {
                return Ok(said);
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(Failure::new(format!("host `{}` did not answer within {patience:?}", self.host())));
            }
            let mut ends = [PollFd::new(self.shared.group.news.as_fd(), PollFlags::POLLIN)];
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
        let begun = Instant::now();
        while self.gone().is_none() && begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::wire::{Frame, parse, read_frame};

    /// A join with another engine, and the other engine's ends of the connection.
    fn join(host: &str) -> (Join, [File; 2]) {
        let pipe = || nix::unistd::pipe().map(|(reader, writer)| (File::from(reader), File::from(writer))).unwrap();
        let ((input, to_us), (from_us, output)) = (pipe(), pipe());
        let host = host.to_owned();
        (Join { host, input, output, hops: Vec::new(), clocks: None, by_ssh: false, ssh_log: None }, [from_us, to_us])
    }

    #[test]
    fn an_engine_whose_results_came_has_heard_so_before_this_one_ends() {
        let patience = Duration::from_secs(30);
        let (done, [mut from_us, to_us]) = join("done");
        let (silent, _ends) = join("silent");
        let (channels, _) = Channels::start(&[done, silent], &[], 0).unwrap();
        let has_heard = Arc::new(AtomicBool::new(false));
        let heard = has_heard.clone();
        let other = std::thread::spawn(move || {
            let frame = read_frame(&mut from_us).unwrap().unwrap();
            assert!(matches!(parse(&frame), Ok(Frame::Word(word)) if matches!(*word, Word::Taken {})));
            std::thread::sleep(Duration::from_millis(50));
            heard.store(true, Ordering::Relaxed);
            drop(to_us);
        });
        channels.all[0].say_taken();
        let until = Instant::now() + patience;
        channels.wait_for_ends(until);
        assert!(has_heard.load(Ordering::Relaxed));
        assert!(Instant::now() < until, "it waited for the other engine, too");
        other.join().unwrap();
    }
}
