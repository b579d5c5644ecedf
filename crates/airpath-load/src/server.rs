// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The server: takes connections and does what each asks for.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::client::{no_congestion_control, no_socket};
use crate::error::{LoadError, Result};
use crate::plan::{Plan, Work};
use crate::progress::Progress;
use crate::protocol::{Header, Opening, Record};
use crate::report::{Endpoints, Report};
use crate::sockets::{self, KeepAlive, TcpOptions};
use crate::streams::{self, Side, Stream};

/// The port of `airpath recv`, and of iperf3.
pub const DEFAULT_PORT: u16 = 5201;

/// Maximum number of parallel connections: several clients with as many streams as they may have.
const MOST_CONNECTIONS: usize = 512;
/// Maximum time for a client's header, over the slowest of links.
const HEADER_LIMIT: Duration = Duration::from_secs(60);
/// Probes of a client that has said nothing yet.
const WHILE_WAITING: KeepAlive =
    KeepAlive { idle: Duration::from_secs(1), interval: Duration::from_secs(1), probes: 60 };
/// Pause of the server where the system has no room for another connection.
const SHORTAGE_WAIT: Duration = Duration::from_millis(100);

/// True if there will be room again once other connections have ended.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// A connection from which everything must have come by a time.
struct Hurried<'a> {
    connection: &'a TcpStream,
    until: Instant,
}

impl<'a> Hurried<'a> {
    fn new(connection: &'a TcpStream, limit: Duration) -> Hurried<'a> {
        Hurried { connection, until: Instant::now() + limit }
    }
}

impl io::Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.connection.set_read_timeout(Some(left))?;
        (&mut &*self.connection).read(buffer)
    }
}

/// Serves a recording: the connection behind its opening, and the version of the protocol that the client speaks.
pub type Recordings = Box<dyn Fn(&TcpStream, u64) -> Result<()> + Send + Sync>;

/// A socket that listens.
pub struct Server {
    listener: TcpListener,
    under_way: AtomicUsize,
    recordings: Option<Recordings>,
}

impl Server {
    /// Listens on `port` (0 means any free one) of `address`, or of every address.
    ///
    /// # Errors
    /// When the port is in use or not allowed, or the address is not this host's.
    pub fn bind(address: Option<IpAddr>, port: u16) -> Result<Server> {
        let listener = sockets::listen(address, port).map_err(|error| {
            let place = address.map_or_else(String::new, |address| format!(" of {address}"));
            LoadError::new(match error.raw_os_error() {
                Some(libc::EADDRINUSE) => format!(
                    "port {port}{place} is in use by another program\n  \
                     Choose another with --port at both ends, or stop that program (`ss -tlnp` names it)."
                ),
                Some(libc::EACCES) => {
                    format!("port {port} needs root; choose one from 1024 on with --port at both ends")
                }
                Some(libc::EADDRNOTAVAIL) => {
                    format!("this host has no address{place}; `ip address` lists the valid ones")
                }
                _ => format!("cannot listen on port {port}{place}: {error}"),
            })
        })?;
        Ok(Server { listener, under_way: AtomicUsize::new(0), recordings: None })
    }

    /// Serves recordings of the path too; without this they are refused.
    #[must_use]
    pub fn with_recordings(self, recordings: Recordings) -> Server {
        Server { recordings: Some(recordings), ..self }
    }

    /// Listening address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Number of active streams.
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Serves every client that comes, several at a time; with `once`, the first client with all of
    /// its streams. `ended` is told of every stream that has ended, and how.
    ///
    /// # Errors
    /// When no connection can be accepted any more.
    pub fn serve(&self, once: bool, interval: Option<Duration>, ended: &(dyn Fn(Result<Report>) + Sync)) -> Result<()> {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            // With `once`: how many more streams of the client are to come.
            let mut expected: Option<u32> = None;
            // Told once, until a connection is taken again.
            let told = Cell::new(false);
            let tell = |about: String| {
                if !told.replace(true) {
                    ended(Err(LoadError::new(about)));
                }
            };
            while expected != Some(0) {
                let (connection, peer) = match self.listener.accept() {
                    Ok((connection, peer)) => (connection, sockets::plain(peer)),
                    // A client that has gone before it was let in is none.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ECONNABORTED)) => continue,
                    Err(error) if is_shortage(&error) => {
                        tell(format!(
                            "cannot accept more connections now: {error}; waiting until others have ended\n  \
                             `ulimit -n` prints the limit of open files."
                        ));
                        std::thread::sleep(SHORTAGE_WAIT);
                        continue;
                    }
                    Err(error) => return Err(LoadError::new(format!("cannot accept connections: {error}"))),
                };
                if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
                    tell(format!("{peer} was rejected: there are already {MOST_CONNECTIONS} connections"));
                    continue;
                }
                let read = move |connection: &TcpStream| {
                    // The client's first word may be lost with each repetition, in a burst that only packets end.
                    let midway = |error| LoadError::midway(peer, 0, &error);
                    WHILE_WAITING.set(connection).map_err(midway)?;
                    let head = Opening::read(&mut Hurried::new(connection, HEADER_LIMIT)).map_err(midway)?;
                    KeepAlive::end(connection).map_err(midway)?;
                    let idle = Some(sockets::IDLE);
                    let limited = connection.set_read_timeout(idle).and_then(|()| connection.set_write_timeout(idle));
                    limited.map_err(midway)?;
                    Ok(head)
                };
                let begin = |work: Box<dyn FnOnce() -> Option<Result<Report>> + Send>| {
                    open.fetch_add(1, Ordering::Relaxed);
                    let open = &open;
                    let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                        // Told before it counts as ended: whoever is told may be slow.
                        work().into_iter().for_each(ended);
                        open.fetch_sub(1, Ordering::Relaxed);
                    });
                    spawned.map(drop).inspect_err(|_| {
                        open.fetch_sub(1, Ordering::Relaxed);
                    })
                };
                let begun = if once {
                    match read(&connection) {
                        Ok(head) => {
                            let streams = match &head {
                                Opening::Load(header, _) => header.parallel.max(1),
                                Opening::Recording(_) => 1,
                            };
                            expected = Some(expected.unwrap_or(streams) - 1);
                            begin(Box::new(move || self.work(connection, head, interval)))
                        }
                        Err(error) => {
                            ended(Err(error));
                            Ok(())
                        }
                    }
                } else {
                    begin(Box::new(move || match read(&connection) {
                        Ok(head) => self.work(connection, head, interval),
                        Err(error) => Some(Err(error)),
                    }))
                };
                match begun {
                    Ok(()) => told.set(false),
                    Err(error) => ended(Err(LoadError::new(format!("{peer} was rejected: no thread: {error}")))),
                }
            }
            Ok(())
        })
    }

    /// Does what the head of `connection` asks for. A recording has no report.
    fn work(&self, connection: TcpStream, opening: Opening, interval: Option<Duration>) -> Option<Result<Report>> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let outcome = match opening {
            Opening::Load(header, bytes) => Some(session(connection, header, bytes, interval)),
            Opening::Recording(version) => match &self.recordings {
                Some(serve) => serve(&connection, version).err().map(Err),
                None => Some(Err(LoadError::new("a client asked for a recording, which this server does not serve"))),
            },
        };
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        outcome
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// One stream from its header to its end.
fn session(connection: TcpStream, header: Header, header_bytes: usize, interval: Option<Duration>) -> Result<Report> {
    let endpoints = sockets::tcp_endpoints(&connection).map_err(|error| LoadError::midway("the client", 0, &error))?;
    let midway = |error: io::Error| LoadError::midway(endpoints.remote, 0, &error);
    let progress = Progress::default();
    let mut stream =
        Stream { end: Side::Server, endpoints, connection, datagrams: None, header, header_bytes, progress };
    if let Err(error) = ready(&mut stream) {
        Record::Refused(error.to_string()).write(&mut &stream.connection).map_err(midway)?;
        return Err(error);
    }
    let Header { work, reverse, no_delay, ref congestion_control, .. } = stream.header;
    let plan = Plan {
        work,
        reverse,
        congestion_control: congestion_control.clone(),
        mss_bytes: None,
        no_delay,
        parallel: 1,
        interval,
    };
    let sends = stream.sends();
    let mss_bytes = sockets::mss_bytes(&stream.connection);
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (streams, intervals) = streams::run(&[stream], interval, &mut ())?;
    Ok(Report { plan, sends, began, connecting_ns: 0, mss_bytes, streams, intervals })
}

/// Makes the sockets as the client asked.
fn ready(stream: &mut Stream) -> Result<()> {
    let Endpoints { local, remote, .. } = stream.endpoints;
    let name = stream.header.congestion_control.as_deref();
    let options = TcpOptions { congestion_control: name, mss_bytes: None, no_delay: stream.header.no_delay };
    sockets::set_tcp(&stream.connection, options)
        .map_err(|error| LoadError::new(no_congestion_control(name.unwrap_or_default(), &error)))?;
    let Work::Datagrams(plan) = stream.header.work else { return Ok(()) };
    let midway = |error: io::Error| LoadError::midway(remote, 0, &error);
    let socket =
        sockets::datagram_socket(local.ip(), plan.transport).map_err(|error| no_socket(plan.transport, &error))?;
    let remote = SocketAddr::new(remote.ip(), stream.header.client_port);
    socket.connect(remote).map_err(midway)?;
    let port = socket.local_addr().map_err(midway)?.port();
    stream.endpoints = Endpoints { socket: socket.as_raw_fd(), local: SocketAddr::new(local.ip(), port), remote };
    stream.datagrams = Some(socket);
    Record::Accepted(port).write(&mut &stream.connection).map_err(midway)
}
