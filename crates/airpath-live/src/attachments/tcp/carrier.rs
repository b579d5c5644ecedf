// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The thread that carries frames between a TAP device and the connection to the other host, and makes that
//! connection again when it breaks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use super::wire::{GREETING, MOST_FRAME_BYTES, Unframer, append};

/// Time for a connection to be made, and between two attempts.
const ATTEMPT: Duration = Duration::from_millis(500);
/// Silence after which the other host is asked whether it is there, in seconds.
const SILENCE_S: u32 = 5;
/// Time after which what nobody acknowledges ends a connection, in milliseconds.
const UNACKNOWLEDGED_MS: u32 = 10_000;
/// Bytes that wait for the connection before frames are left to the queue of the device.
const MOST_WAITING_BYTES: usize = 256 << 10;

/// The side that makes the connection.
#[derive(Debug)]
pub(super) enum Peer {
    /// This host, to an address of the other one.
    At(SocketAddr),
    /// The other host, from one of its addresses.
    From(TcpListener, Vec<IpAddr>),
}

impl Peer {
    /// A new connection, if there is one at present; waits for it only if there is nothing else to do.
    fn connection(&self) -> Option<TcpStream> {
        let stream = match self {
            Peer::At(address) => TcpStream::connect_timeout(address, ATTEMPT).ok()?,
            Peer::From(listener, hosts) => {
                let (stream, from) = listener.accept().ok()?;
                // Anybody else is turned away.
                hosts.contains(&from.ip().to_canonical()).then_some(stream)?
            }
        };
        prepare(&stream).ok()?;
        Some(stream)
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &SILENCE_S)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &1)?;
    setsockopt(stream, sockopt::TcpUserTimeout, &UNACKNOWLEDGED_MS)?;
    Ok(())
}

/// A connection, with what is under way on it.
struct Connection {
    stream: TcpStream,
    sending: Vec<u8>,
    sent: usize,
    receiving: Unframer,
}

impl Connection {
    fn new(stream: TcpStream) -> Connection {
        Connection { stream, sending: GREETING.to_vec(), sent: 0, receiving: Unframer::default() }
    }

    fn waiting_bytes(&self) -> usize {
        self.sending.len() - self.sent
    }

    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.sending.len() {
            match (&self.stream).write(&self.sending[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.sent += bytes,
                Err(error) if is_not_now(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.sending.drain(..self.sent);
        self.sent = 0;
        Ok(())
    }

    /// Hands what has come to the device.
    fn receive(&mut self, device: &File, room: &mut [u8], lost: &AtomicU64) -> io::Result<()> {
        let bytes = match (&self.stream).read(room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => bytes,
            Err(error) if is_not_now(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.receiving.push(&room[..bytes]);
        let foreign = |_| io::Error::from(io::ErrorKind::InvalidData);
        while let Some(frame) = self.receiving.next_frame().map_err(foreign)? {
            let mut device = device;
            if device.write(frame).is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Carries frames until the other end of `alive` is closed. `lost` counts frames that could not be carried once the
/// other host was there.
pub(super) fn carry(device: &File, peer: &Peer, alive: &OwnedFd, lost: &AtomicU64) {
    let (mut connection, mut was_connected): (Option<Connection>, bool) = (None, false);
    let mut room = vec![0; MOST_FRAME_BYTES];
    loop {
        if connection.is_none() {
            connection = peer.connection().map(Connection::new);
            was_connected |= connection.is_some();
        }
        let Ok(ready) = wait(device, peer, alive, connection.as_ref()) else { return };
        if ready.ends {
            return;
        }
        if ready.device {
            take_frames(device, connection.as_mut(), &mut room, |frames| {
                lost.fetch_add(if was_connected { frames } else { 0 }, Ordering::Relaxed);
            });
        }
        if let Some(open) = &mut connection {
            let done = match ready.incoming {
                true => open.receive(device, &mut room, lost),
                false => Ok(()),
            };
            if done.and_then(|()| open.send()).is_err() {
                connection = None;
            }
        }
        // The other host has begun anew, and has not seen the old connection end.
        if ready.caller
            && let Some(stream) = peer.connection()
        {
            connection = Some(Connection::new(stream));
            was_connected = true;
        }
    }
}

/// Takes the frames that wait at the device: for the connection, or to be thrown away and told.
fn take_frames(device: &File, connection: Option<&mut Connection>, room: &mut [u8], lost: impl FnOnce(u64)) {
    let (mut device, mut thrown) = (device, 0);
    match connection {
        Some(connection) => {
            while connection.waiting_bytes() < MOST_WAITING_BYTES
                && let Ok(bytes) = device.read(room)
            {
                append(&mut connection.sending, &room[..bytes]);
            }
        }
        None => {
            while device.read(room).is_ok() {
                thrown += 1;
            }
        }
    }
    lost(thrown);
}

/// Work that waits.
#[derive(Default)]
struct Ready {
    ends: bool,
    device: bool,
    incoming: bool,
    caller: bool,
}

fn wait(device: &File, peer: &Peer, alive: &OwnedFd, connection: Option<&Connection>) -> nix::Result<Ready> {
    let reads = PollFlags::POLLIN;
    let has_room = connection.is_none_or(|connection| connection.waiting_bytes() < MOST_WAITING_BYTES);
    let mut watched = vec![
        PollFd::new(alive.as_fd(), PollFlags::empty()),
        PollFd::new(device.as_fd(), if has_room { reads } else { PollFlags::empty() }),
    ];
    let stream = connection.map(|connection| {
        let sends = if connection.waiting_bytes() > 0 { PollFlags::POLLOUT } else { PollFlags::empty() };
        watched.push(PollFd::new(connection.stream.as_fd(), reads | sends));
        watched.len() - 1
    });
    let listener = match peer {
        Peer::From(listener, _) => {
            watched.push(PollFd::new(listener.as_fd(), reads));
            Some(watched.len() - 1)
        }
        Peer::At(_) => None,
    };
    let timeout = match (connection, peer) {
        (None, Peer::At(_)) => PollTimeout::try_from(ATTEMPT).unwrap_or(PollTimeout::MAX),
        _ => PollTimeout::NONE,
    };
    match poll(&mut watched, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno),
    }
    let happened = |index: usize| watched[index].revents().is_some_and(|events| !events.is_empty());
    Ok(Ready {
        ends: happened(0),
        device: happened(1),
        incoming: stream.is_some_and(happened),
        caller: listener.is_some_and(happened),
    })
}

/// Starts the thread; it ends when what is returned is closed.
///
/// # Errors
/// When the system refuses a pipe or a thread.
pub(super) fn start(device: File, peer: Peer, lost: Arc<AtomicU64>) -> io::Result<OwnedFd> {
    let (alive, held) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    std::thread::Builder::new().name("tunnel".into()).spawn(move || carry(&device, &peer, &alive, &lost))?;
    Ok(held)
}
