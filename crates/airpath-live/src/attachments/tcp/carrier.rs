// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The thread that carries frames between a TAP device and the connection to the other host, and makes that
//! connection again when it breaks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

/// Attempts of this host to connect, which keep their interval however often frames wake the thread.
#[derive(Debug, Default)]
struct Attempts {
    last: Option<Instant>,
}

impl Attempts {
    /// Time until the next one at `now`.
    fn wait(&self, now: Instant) -> Duration {
        self.last.map_or(Duration::ZERO, |last| ATTEMPT.saturating_sub(now.saturating_duration_since(last)))
    }

    /// True if the next one is due at `now`, which it is then counted for.
    fn begin(&mut self, now: Instant) -> bool {
        let is_due = self.wait(now).is_zero();
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

impl Peer {
    /// A new connection, if there is one at present. This host waits for one for at most an attempt.
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
/// other host was there, which `came` says.
pub(super) fn carry(device: &File, peer: &Peer, alive: &OwnedFd, lost: &AtomicU64, came: &AtomicBool) {
    let mut connection: Option<Connection> = None;
    let mut room = vec![0; MOST_FRAME_BYTES];
    let mut attempts = Attempts::default();
    loop {
        if connection.is_none() && (matches!(peer, Peer::From(..)) || attempts.begin(Instant::now())) {
            connection = peer.connection().map(Connection::new);
            came.fetch_or(connection.is_some(), Ordering::Relaxed);
        }
        let pause = attempts.wait(Instant::now());
        let Ok(ready) = wait(device, peer, alive, connection.as_ref(), pause) else { return };
        if ready.ends {
            return;
        }
        if ready.device {
            take_frames(device, connection.as_mut(), &mut room, |frames| {
                lost.fetch_add(if came.load(Ordering::Relaxed) { frames } else { 0 }, Ordering::Relaxed);
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
            came.store(true, Ordering::Relaxed);
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

/// Waits for work; for at most `pause` where this host has to connect.
fn wait(
    device: &File,
    peer: &Peer,
    alive: &OwnedFd,
    connection: Option<&Connection>,
    pause: Duration,
) -> nix::Result<Ready> {
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
        // Whole milliseconds, and none too few.
        (None, Peer::At(_)) => PollTimeout::try_from(pause + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX),
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
pub(super) fn start(device: File, peer: Peer, lost: Arc<AtomicU64>, came: Arc<AtomicBool>) -> io::Result<OwnedFd> {
    let (alive, held) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    std::thread::Builder::new().name("tunnel".into()).spawn(move || carry(&device, &peer, &alive, &lost, &came))?;
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames wake the thread all the time, and the other host refuses at once.
    #[test]
    fn attempts_keep_their_interval_however_often_frames_come() {
        let begun = Instant::now();
        let mut attempts = Attempts::default();
        let made: Vec<u64> = (0..2_000).filter(|ms| attempts.begin(begun + Duration::from_millis(*ms))).collect();
        assert_eq!(made, [0, 500, 1_000, 1_500]);
        assert_eq!(attempts.wait(begun + Duration::from_millis(1_600)), Duration::from_millis(400));
    }

    /// A device that always has frames, a host that refuses: the thread dials at its interval, and takes the frames.
    #[test]
    fn a_host_that_refuses_is_not_dialled_for_each_frame() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (device, frames) = std::os::unix::net::UnixDatagram::pair().unwrap();
        device.set_nonblocking(true).unwrap();
        // Whoever connects is turned away at once.
        let counted = std::thread::spawn(move || {
            let mut attempts = 0;
            listener.set_nonblocking(true).unwrap();
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(900) {
                attempts += usize::from(listener.accept().is_ok());
                std::thread::sleep(Duration::from_millis(1));
            }
            attempts
        });
        let lost = Arc::new(AtomicU64::new(0));
        let alive =
            start(File::from(OwnedFd::from(device)), Peer::At(address), Arc::clone(&lost), Arc::default()).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(900) {
            let _ = frames.send(b"frame");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(alive);
        // At 0 and at 500 ms; a thread without a processor may make fewer.
        let attempts = counted.join().unwrap();
        assert!((1..=2).contains(&attempts), "{attempts}");
        assert!(lost.load(Ordering::Relaxed) > 0);
    }
}
