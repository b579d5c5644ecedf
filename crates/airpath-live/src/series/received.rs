// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that the call which waits receives, too. Where frames were just sent, answers are mostly there when it
//! returns; a call of their own would cost as much as the wait.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use nix::errno::Errno;
use smallvec::SmallVec;

use super::Call;

/// Maximum number of sockets that one call receives from: the two ends of a link.
const ROOMS: usize = 2;
/// Maximum number of packets of a socket: about those that come while the frames of one call are sent.
const MESSAGES: usize = 32;
/// Number of packets that are asked for where none came before.
const FEW_MESSAGES: usize = 4;
/// Longer than any packet with its headers.
const MESSAGE_BYTES: usize = 66 << 10;
const CONTROL_BYTES: usize = 96;

thread_local! {
    /// Those of the loop that runs in this thread.
    static RECEIVED: RefCell<Received> = RefCell::default();
}

#[derive(Default)]
struct Received {
    rooms: [Room; ROOMS],
    /// Sockets whose packets have to stay in the kernel.
    left_alone: Vec<RawFd>,
}

/// Packets of one socket that were received and not yet taken.
#[derive(Default)]
struct Room {
    socket: RawFd,
    /// Never touched beyond what was received, so that the rest needs no memory.
    bytes: Vec<u8>,
    controls: Vec<[u8; CONTROL_BYTES]>,
    /// Filled anew before every call, as is the next.
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// Index of the first packet that was not taken.
    next: usize,
    count: usize,
    /// Number of packets that were asked for.
    asked: usize,
    /// Error of the socket, which tells it only once.
    error: Option<Errno>,
}

/// A packet with the kernel's headers and control messages.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its control messages.
    pub control: &'a [u8],
    /// True if it was longer.
    pub truncated: bool,
}

/// Packets that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Their number.
    pub count: usize,
    /// True if there may be more.
    pub has_more: bool,
}

impl Room {
    fn is_empty(&self) -> bool {
        self.next == self.count && self.error.is_none()
    }

    /// The call that fills it from `socket`.
    fn call(&mut self, socket: RawFd) -> Call {
        if self.bytes.is_empty() {
            self.bytes = vec![0; MESSAGES * MESSAGE_BYTES];
            self.controls = vec![[0; CONTROL_BYTES]; MESSAGES];
        }
        self.socket = socket;
        self.parts.clear();
        self.messages.clear();
        // Every message header has to be written beforehand.
        self.asked = (2 * self.count).clamp(FEW_MESSAGES, MESSAGES);
        for piece in self.bytes.chunks_exact_mut(MESSAGE_BYTES).take(self.asked) {
            self.parts.push(libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() });
        }
        for (part, control) in self.parts.iter_mut().zip(&mut self.controls) {
            // SAFETY: an all-zero message header is valid.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            self.messages.push(message);
        }
        let (at, length) = (self.messages.as_mut_ptr() as libc::c_long, self.asked as libc::c_long);
        Call::new(libc::SYS_recvmmsg, [socket.into(), at, length, libc::MSG_DONTWAIT.into(), 0])
    }

    fn settle(&mut self, outcome: nix::Result<usize>) {
        self.next = 0;
        (self.count, self.error) = match outcome {
            Ok(count) => (count.min(self.asked), None),
            // There was nothing, or the call was not made.
            Err(Errno::EAGAIN | Errno::EINTR) => (0, None),
            Err(error) => (0, Some(error)),
        };
    }

    fn message(&self, index: usize) -> Message<'_> {
        let message = &self.messages[index];
        let bytes = &self.bytes[index * MESSAGE_BYTES..][..(message.msg_len as usize).min(MESSAGE_BYTES)];
        let control = &self.controls[index][..message.msg_hdr.msg_controllen.min(CONTROL_BYTES)];
        Message { bytes, control, truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 }
    }
}

/// The calls that receive from `sockets`, `most` at most. What they fill stays where it is until [`settle`] is told
/// their outcomes.
pub(super) fn calls(sockets: impl Iterator<Item = RawFd>, most: usize) -> SmallVec<[Call; ROOMS]> {
    RECEIVED.with_borrow_mut(|received| {
        let Received { rooms, left_alone } = received;
        // What was not taken has to come first.
        if rooms.iter().any(|room| !room.is_empty()) {
            return SmallVec::new();
        }
        let mut chosen: SmallVec<[RawFd; ROOMS]> = SmallVec::new();
        for socket in sockets {
            if chosen.len() < most.min(ROOMS) && !chosen.contains(&socket) && !left_alone.contains(&socket) {
                chosen.push(socket);
            }
        }
        rooms.iter_mut().zip(chosen).map(|(room, socket)| room.call(socket)).collect()
    })
}

/// Notes the outcomes of the calls.
pub(super) fn settle<'a>(calls: impl Iterator<Item = &'a Call>) {
    RECEIVED.with_borrow_mut(|received| {
        received.rooms.iter_mut().zip(calls).for_each(|(room, call)| room.settle(call.outcome()));
    });
}

/// Hands up to `wanted` packets that were received from `socket` to `give`, each with its place among them; none if
/// nothing is there.
///
/// # Errors
/// The error that the socket told instead of a packet.
pub fn take(
    socket: BorrowedFd<'_>,
    wanted: usize,
    mut give: impl FnMut(usize, Message<'_>),
) -> Option<io::Result<Taken>> {
    RECEIVED.with_borrow_mut(|received| {
        let room = received.rooms.iter_mut().find(|room| room.socket == socket.as_raw_fd() && !room.is_empty())?;
        if let Some(error) = room.error.take() {
            return Some(Err(error.into()));
        }
        let count = wanted.min(room.count - room.next);
        for index in 0..count {
            give(index, room.message(room.next + index));
        }
        room.next += count;
        Some(Ok(Taken { count, has_more: room.next < room.count || room.count == room.asked }))
    })
}

/// True if something was received from any of `sockets` and not taken.
pub fn has_received(mut sockets: impl Iterator<Item = RawFd>) -> bool {
    RECEIVED.with_borrow(|received| {
        let Received { rooms, .. } = received;
        rooms.iter().any(|room| !room.is_empty())
            && sockets.any(|socket| rooms.iter().any(|room| room.socket == socket && !room.is_empty()))
    })
}

/// From now on calls that wait receive nothing from `socket` if it is to be left alone.
pub fn leave_alone(socket: BorrowedFd<'_>, alone: bool) {
    RECEIVED.with_borrow_mut(|received| {
        received.left_alone.retain(|other| *other != socket.as_raw_fd());
        if alone {
            received.left_alone.push(socket.as_raw_fd());
        }
    });
}

/// Forgets all packets and sockets of this thread.
pub fn forget_received() {
    RECEIVED.take();
}

/// Receives from `sockets` what a call that waits would.
#[cfg(test)]
pub fn receive_now(sockets: &[RawFd]) -> usize {
    let mut calls = calls(sockets.iter().copied(), ROOMS);
    for call in &mut calls {
        let [socket, at, length, flags, ..] = call.arguments;
        // SAFETY: the headers point at rooms, which stay where they are.
        let done = unsafe { libc::syscall(call.number, socket, at, length, flags, 0) };
        call.result = Errno::result(done).unwrap_or_else(|errno| -(errno as libc::c_long));
        // As the kernel of warp does.
        if call.result < 0 {
            break;
        }
    }
    settle(calls.iter());
    calls.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    fn taken(socket: impl AsFd, wanted: usize) -> Option<(Vec<Vec<u8>>, bool)> {
        let mut all = Vec::new();
        let taken = take(socket.as_fd(), wanted, |index, message| {
            assert_eq!((index, message.truncated, message.control), (all.len(), false, &[][..]));
            all.push(message.bytes.to_vec());
        })?;
        let Taken { count, has_more } = taken.unwrap();
        assert_eq!(count, all.len());
        Some((all, has_more))
    }

    #[test]
    fn packets_are_taken_once_and_in_order() {
        let ((one, its_end), (other, other_end)) = (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
        for text in ["a", "b", "c"] {
            its_end.send(text.as_bytes()).unwrap();
        }
        other_end.send(b"d").unwrap();
        let sockets = [one.as_raw_fd(), one.as_raw_fd(), other.as_raw_fd()];
        assert_eq!(receive_now(&sockets), 2);
        assert_eq!(taken(&one, 2), Some((vec![b"a".to_vec(), b"b".to_vec()], true)));
        assert_eq!(receive_now(&sockets), 0, "what was not taken comes first");
        assert!(has_received([one.as_raw_fd()].into_iter()) && has_received([other.as_raw_fd()].into_iter()));
        assert_eq!(taken(&one, 2), Some((vec![b"c".to_vec()], false)));
        assert_eq!((taken(&one, 2), taken(&other, 2)), (None, Some((vec![b"d".to_vec()], false))));
        assert!(!has_received(sockets.into_iter()));
        assert_eq!(receive_now(&sockets), 2);
    }

    #[test]
    fn a_socket_that_filled_the_room_may_have_more() {
        let (one, its_end) = UnixDatagram::pair().unwrap();
        // The more came before, the more is asked for.
        (0..3 * FEW_MESSAGES + 1).for_each(|_| assert_eq!(its_end.send(b"x").unwrap(), 1));
        for (count, has_more) in [(FEW_MESSAGES, true), (2 * FEW_MESSAGES, true), (1, false)] {
            receive_now(&[one.as_raw_fd()]);
            assert_eq!(taken(&one, 99), Some((vec![b"x".to_vec(); count], has_more)));
        }
    }

    #[test]
    fn nothing_is_received_where_nothing_came_or_from_what_is_left_alone() {
        let (one, _its_end) = UnixDatagram::pair().unwrap();
        let (other, other_end) = UnixDatagram::pair().unwrap();
        other_end.send(b"later").unwrap();
        // The first call fails, and the second is not made.
        assert_eq!(receive_now(&[one.as_raw_fd(), other.as_raw_fd()]), 2);
        assert_eq!((taken(&one, 1), taken(&other, 1)), (None, None));
        leave_alone(other.as_fd(), true);
        assert_eq!(receive_now(&[other.as_raw_fd()]), 0);
        leave_alone(other.as_fd(), false);
        assert_eq!(receive_now(&[other.as_raw_fd()]), 1);
        forget_received();
        assert_eq!(taken(&other, 1), None);
    }

    #[test]
    fn an_error_of_the_socket_is_told_once_to_whoever_takes() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        socket.connect(closed).unwrap();
        socket.send(b"nobody hears this").unwrap();
        receive_now(&[socket.as_raw_fd()]);
        assert!(has_received([socket.as_raw_fd()].into_iter()));
        let error = take(socket.as_fd(), 1, |_, _| panic!("there is no packet")).unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
        assert!(take(socket.as_fd(), 1, |_, _| ()).is_none());
    }
}
