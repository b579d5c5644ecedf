// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets between two hosts as datagrams of UDP, beside the connection that carries everything else.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airpath_core::Time;
use airpath_live::clock;
use airpath_live::ports::joined::packet_bytes;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{MsgFlags, getsockopt, recv, sockopt};
use serde::{Deserialize, Serialize};

use super::locks::lock;
use super::receipts::{Receipts, Sum};
use crate::error::{Failure, Result};

/// Bytes before the packet: the word that both hosts know, and the number and total length of the packets before it.
const HEAD_BYTES: usize = 24;
/// Longest payload of a datagram of UDP over IPv4.
const LONGEST_BYTES: usize = 65_507;
/// Interval at which a waiting thread looks whether the run goes on.
const LOOK: Duration = Duration::from_secs(1);

/// A tunnel as one of the hosts is to make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Its own address.
    pub own: SocketAddr,
    /// The address of the other host.
    pub peer: SocketAddr,
    /// A word without which a datagram is none of this run.
    pub token: u64,
}

/// One end of a tunnel.
#[derive(Clone, Debug)]
pub struct Tunnel {
    socket: Arc<UdpSocket>,
    /// Bytes that may wait in the socket to be received.
    waiting_bytes: usize,
    token: u64,
    sent: Arc<Mutex<Sent>>,
    receipts: Arc<Mutex<Receipts>>,
    /// Readable when the account of receipts has changed by what the other host told.
    news: Arc<EventFd>,
    /// Packets that did not come.
    pub lost: Arc<AtomicU64>,
}

/// Packets sent, and those that the other host was told of.
#[derive(Debug, Default)]
struct Sent {
    sum: Sum,
    told: Sum,
}

impl Tunnel {
    /// Opens the end.
    ///
    /// # Errors
    /// When the address is not one of this host, or is in use.
    pub fn open(ends: &Ends) -> Result<Tunnel> {
        let open = || -> io::Result<(UdpSocket, usize)> {
            let socket = UdpSocket::bind(ends.own)?;
            socket.connect(ends.peer)?;
            // The kernel takes a datagram while the buffer is not full yet.
            let waiting_bytes = getsockopt(&socket, sockopt::RcvBuf)? + LONGEST_BYTES;
            Ok((socket, waiting_bytes))
        };
        let news = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(io::Error::from);
        let opened = open().and_then(|socket| Ok((socket, news?)));
        let ((socket, waiting_bytes), news) = opened.map_err(|error| {
            let Ends { own, peer, .. } = ends;
            Failure::new(format!(
                "cannot open the tunnel by UDP from {own} to {peer}: {error}; name an address of this host and a free port"
            ))
        })?;
        Ok(Tunnel {
            socket: Arc::new(socket),
            waiting_bytes,
            token: ends.token,
            sent: Arc::default(),
            receipts: Arc::default(),
            news: Arc::new(news),
            lost: Arc::default(),
        })
    }

    /// Sends `frame`, a packet. False if it is too long for a datagram.
    pub fn send(&self, frame: &[u8]) -> bool {
        let Some(bytes) = packet_bytes(frame).filter(|_| HEAD_BYTES + frame.len() <= LONGEST_BYTES) else {
            return false;
        };
        let mut sent = lock(&self.sent);
        let mut datagram = Vec::with_capacity(HEAD_BYTES + frame.len());
        for word in [self.token, sent.sum.packets, sent.sum.bytes] {
            datagram.extend_from_slice(&word.to_le_bytes());
        }
        datagram.extend_from_slice(frame);
        // What the kernel refuses did not come: the other host counts it.
        let _ = self.socket.send(&datagram);
        sent.sum = sent.sum.and(bytes);
        true
    }

    /// True if the other host has not been told of all that was sent.
    pub(super) fn has_untold(&self) -> bool {
        let sent = lock(&self.sent);
        sent.told != sent.sum
    }

    /// The sum that the other host is told of now.
    pub(super) fn tell(&self) -> Sum {
        let mut sent = lock(&self.sent);
        sent.told = sent.sum;
        sent.sum
    }

    /// The other host has told that it has sent `sum`.
    pub(super) fn told(&self, sum: Sum) {
        lock(&self.receipts).told(now(), sum);
        let _ = self.news.write(1);
    }

    /// Receives until `goes_on` says no; what comes is handed to `take`, and the sum of what is lost to `lose`.
    pub(super) fn receive(&self, goes_on: impl Fn() -> bool, take: impl FnMut(&mut [u8]), lose: impl FnMut(Sum)) {
        let source = |buffer: &mut [u8]| recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT);
        self.receive_from(source, goes_on, take, lose);
    }

    /// The same from `source`, which gives the next datagram, or EAGAIN.
    fn receive_from(
        &self,
        mut source: impl FnMut(&mut [u8]) -> nix::Result<usize>,
        goes_on: impl Fn() -> bool,
        mut take: impl FnMut(&mut [u8]),
        mut lose: impl FnMut(Sum),
    ) {
        let mut buffer = vec![0; LONGEST_BYTES];
        while goes_on() {
            self.wait();
            // What came by then is taken before anything is lost.
            let looked = now();
            let mut taken_bytes = 0;
            let drained = loop {
                if !goes_on() {
                    break false;
                }
                match source(&mut buffer) {
                    Ok(count) => {
                        self.take(&mut buffer[..count], &mut take);
                        // First in, first out: if datagrams come without end, these are all that were there.
                        taken_bytes += count.max(1);
                        if taken_bytes > self.waiting_bytes {
                            break true;
                        }
                    }
                    Err(Errno::EAGAIN) => break true,
                    // An error that an earlier datagram has brought about.
                    Err(_) => break false,
                }
            };
            let mut receipts = lock(&self.receipts);
            let lost = drained.then(|| receipts.give_up(looked)).flatten();
            self.lost.store(receipts.missing_packets(), Ordering::Relaxed);
            drop(receipts);
            if let Some(lost) = lost {
                lose(lost);
            }
        }
    }

    /// Waits for a datagram, for news, or for the time at which something is lost.
    fn wait(&self) {
        let left = lock(&self.receipts).deadline().map(|at| at.nanos().saturating_sub(now().nanos()));
        let left = left.map_or(LOOK, |left| Duration::from_millis(left.div_ceil(1_000_000)).min(LOOK));
        let mut ends =
            [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN), PollFd::new(self.news.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut ends, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        let _ = self.news.read();
    }

    fn take(&self, datagram: &mut [u8], take: &mut impl FnMut(&mut [u8])) {
        let Some((head, frame)) = datagram.split_at_mut_checked(HEAD_BYTES) else { return };
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let Some(bytes) = packet_bytes(frame).filter(|_| word(0) == self.token) else { return };
        if lock(&self.receipts).take(now(), Sum { packets: word(8), bytes: word(16) }, bytes) {
            take(frame);
        }
    }
}

/// The time of accounts.
fn now() -> Time {
    Time::from_nanos(clock::monotonic_ns())
}

#[cfg(test)]
mod tests {
    use airpath_core::Direction;
    use airpath_live::ports::joined::{JoinedPacket, Journey};

    use super::*;

    /// Two free addresses of this host.
    fn addresses() -> (SocketAddr, SocketAddr) {
        let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        (one.local_addr().unwrap(), other.local_addr().unwrap())
    }

    #[test]
    fn a_loss_is_told_though_datagrams_come_without_end() {
        let (own, peer) = addresses();
        let near = Tunnel::open(&Ends { own, peer, token: 7 }).unwrap();
        let far = Tunnel::open(&Ends { own: peer, peer: own, token: 7 }).unwrap();
        let mut frame = JoinedPacket::header(&Journey::default(), Direction::Uplink, 5).unwrap();
        frame.resize(frame.len() + 10, 1);
        // One that nobody takes: the socket is readable all the time.
        assert!(near.send(&frame));
        // The first packet does not come.
        let mut sent = Sum::default().and(10);
        let source = |buffer: &mut [u8]| {
            let words = [7, sent.packets, sent.bytes].map(u64::to_le_bytes);
            let datagram = [words.as_flattened(), &frame].concat();
            sent = sent.and(10);
            buffer[..datagram.len()].copy_from_slice(&datagram);
            Ok(datagram.len())
        };
        let begun = std::time::Instant::now();
        let lost = std::cell::Cell::new(None);
        let goes_on = || lost.get().is_none() && begun.elapsed() < Duration::from_secs(20);
        let mut came = 0;
        far.receive_from(source, goes_on, |_| came += 1, |sum| lost.set(Some(sum)));
        assert_eq!(lost.get(), Some(Sum { packets: 1, bytes: 10 }));
        assert_eq!(far.lost.load(Ordering::Relaxed), 1);
        assert_eq!(came, sent.packets - 1);
        assert_eq!(lock(&far.receipts).deadline(), None, "nothing is kept for the gap");
    }

    #[test]
    fn what_does_not_come_is_counted_and_what_is_strange_is_left() {
        let (own, peer) = addresses();
        let near = Tunnel::open(&Ends { own, peer, token: 7 }).unwrap();
        let far = Tunnel::open(&Ends { own: peer, peer: own, token: 7 }).unwrap();
        assert!(Tunnel::open(&Ends { own, peer, token: 7 }).is_err());
        let packet = |bytes: u8| {
            let mut frame = JoinedPacket::header(&Journey::default(), Direction::Uplink, 5).unwrap();
            frame.resize(frame.len() + usize::from(bytes), bytes);
            frame
        };
        assert!(near.send(&packet(1)));
        near.socket.send(b"strange").unwrap();
        near.socket.send(&[7; 80]).unwrap();
        // Two packets of 30 bytes in all that do not come, and another behind them, which comes twice.
        lock(&near.sent).sum = Sum { packets: 3, bytes: 31 };
        assert!(near.send(&packet(4)));
        lock(&near.sent).sum = Sum { packets: 3, bytes: 31 };
        assert!(near.send(&packet(4)));
        assert!(!near.send(&[&packet(4)[..], &vec![0; LONGEST_BYTES]].concat()));
        assert!(near.has_untold());
        let end = Sum { packets: 5, bytes: 135 };
        lock(&near.sent).sum = end;
        far.told(near.tell());
        assert!(!near.has_untold());
        let (came, lost) = (std::cell::RefCell::new(Vec::new()), std::cell::RefCell::new(Vec::new()));
        let is_all_known = || lost.borrow().iter().map(|sum: &Sum| sum.packets).max() == Some(3);
        far.receive(
            || !is_all_known(),
            |frame| came.borrow_mut().push(frame.to_vec()),
            |sum| lost.borrow_mut().push(sum),
        );
        assert_eq!(came.into_inner(), [packet(1), packet(4)]);
        assert_eq!(lost.into_inner().last(), Some(&Sum { packets: 3, bytes: 130 }));
        assert_eq!(far.lost.load(Ordering::Relaxed), 3);
    }
}
