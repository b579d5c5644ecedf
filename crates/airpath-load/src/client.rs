// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The client: connects, asks, and works.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock::monotonic_ns;
use crate::error::{LoadError, Result};
use crate::plan::{Datagrams, Extent, Plan, Transport, Work};
use crate::progress::Progress;
use crate::protocol::{Header, Record, unexpected};
use crate::report::{Endpoints, ProgressObserver, Report};
use crate::sockets::{self, TcpOptions};
use crate::streams::{self, Side, Stream};

/// Carries out `plan` with the server at `port` of `host` (a name or an address).
///
/// # Errors
/// When the plan makes no sense, nobody answers, or the transfer breaks off.
pub fn send(host: &str, port: u16, plan: &Plan, observer: &mut dyn ProgressObserver) -> Result<Report> {
    check(plan)?;
    let addresses = resolve(host, port)?;
    let before_ns = monotonic_ns();
    let mut ready = Vec::new();
    for index in 0..plan.parallel {
        ready.push(prepare(host, &addresses, plan, index)?);
    }
    let connecting_ns = monotonic_ns() - before_ns;
    let endpoints: Vec<Endpoints> = ready.iter().map(|stream| stream.endpoints).collect();
    observer.connected(&endpoints);
    let mss_bytes = ready.first().map_or(0, |stream| sockets::mss_bytes(&stream.connection));
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (streams, intervals) = streams::run(&ready, plan.interval, observer)?;
    let sends = !plan.reverse;
    Ok(Report { plan: plan.clone(), sends, began, connecting_ns, mss_bytes, streams, intervals })
}

/// Header of one connection of `plan`.
fn header(plan: &Plan, index: u32, client_port: u16) -> Header {
    Header {
        work: plan.work,
        reverse: plan.reverse,
        no_delay: plan.no_delay,
        parallel: plan.parallel,
        index,
        client_port,
        congestion_control: plan.congestion_control.clone().filter(|_| plan.reverse),
    }
}

fn check(plan: &Plan) -> Result<()> {
    let bad = |message: String| Err(LoadError::request(message));
    if plan.parallel == 0 {
        return bad("--parallel must be at least 1".into());
    }
    match plan.work {
        Work::Bulk(Extent::Bytes(bytes)) => {
            let least = header(plan, plan.parallel - 1, 0).encode().len() as u64;
            if bytes < least {
                return bad(format!(
                    "{bytes} bytes are too few, because they include the header of the transfer; send at least {least}"
                ));
            }
        }
        Work::Requests { request_bytes, response_bytes, count } => {
            if request_bytes == 0 || response_bytes == 0 || count == 0 {
                return bad("request size, response size and count must be at least 1".into());
            }
            if plan.reverse {
                return bad("requests go from the client to the server; leave --reverse out".into());
            }
        }
        Work::Datagrams(Datagrams { length_bytes, transport, rate_bits_per_second, .. }) => {
            if !(Datagrams::LEAST_LENGTH_BYTES..=65_507).contains(&length_bytes) || rate_bits_per_second == 0 {
                return bad(format!(
                    "datagrams need {} to 65507 bytes and a rate above zero; change --length or --rate",
                    Datagrams::LEAST_LENGTH_BYTES
                ));
            }
            if let Transport::UdpLite { coverage_bytes: 1..8 } = transport {
                return bad("the checksum of UDP-Lite covers at least its 8-byte header; --coverage is 0 for the \
                    whole datagram, or at least 8"
                    .into());
            }
        }
        Work::Bulk(Extent::Time(_)) => {}
    }
    Ok(())
}

fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(LoadError::new(format!("the name `{host}` has no address"))),
        Err(error) => Err(LoadError::new(format!(
            "the name `{host}` is not known ({error})\n  \
             Behind a link the other end is `server`; elsewhere use a name or an address that `getent hosts {host}` resolves."
        ))),
    }
}

fn prepare(host: &str, addresses: &[SocketAddr], plan: &Plan, index: u32) -> Result<Stream> {
    let options = TcpOptions {
        congestion_control: plan.congestion_control.as_deref().filter(|_| !plan.reverse),
        mss_bytes: plan.mss_bytes,
        no_delay: plan.no_delay,
    };
    let connection = connect(host, addresses, options)?;
    let peer = sockets::tcp_endpoints(&connection).map_err(|error| LoadError::midway(host, 0, &error))?;
    let mut stream = Stream {
        end: Side::Client,
        endpoints: peer,
        connection,
        datagrams: None,
        header: header(plan, index, 0),
        header_bytes: 0,
        progress: Progress::default(),
    };
    if let Work::Datagrams(datagrams) = plan.work {
        agree(&mut stream, datagrams.transport)?;
    }
    Ok(stream)
}

/// Tells the server the port for datagrams, and hears the server's.
fn agree(stream: &mut Stream, transport: Transport) -> Result<()> {
    let Endpoints { local, remote, .. } = stream.endpoints;
    let socket = sockets::datagram_socket(local.ip(), transport).map_err(|error| no_socket(transport, &error))?;
    let midway = |error: io::Error| LoadError::midway(remote, 0, &error);
    stream.header.client_port = socket.local_addr().map_err(midway)?.port();
    (&stream.connection).write_all(&stream.header.encode()).map_err(midway)?;
    let port = match Record::read(&mut &stream.connection).map_err(midway)?.0 {
        Record::Accepted(port) => port,
        other => return Err(midway(unexpected(other))),
    };
    socket.connect(SocketAddr::new(remote.ip(), port)).map_err(midway)?;
    stream.endpoints = Endpoints {
        socket: socket.as_raw_fd(),
        local: SocketAddr::new(local.ip(), stream.header.client_port),
        remote: SocketAddr::new(remote.ip(), port),
    };
    stream.datagrams = Some(socket);
    Ok(())
}

/// Error for a missing socket for datagrams.
pub(crate) fn no_socket(transport: Transport, error: &io::Error) -> LoadError {
    match (transport, error.raw_os_error()) {
        (Transport::UdpLite { .. }, Some(libc::EPROTONOSUPPORT)) => {
            LoadError::new("this kernel has no UDP-Lite (removed in Linux 7.1)\n  Use UDP, or an older kernel.")
        }
        _ => LoadError::new(format!("cannot open a socket for datagrams: {error}")),
    }
}

/// Connects to `port` of `host` (a name or an address) for what is no load.
///
/// # Errors
/// When the name is not known, or nobody answers.
pub fn reach(host: &str, port: u16) -> Result<TcpStream> {
    connect(host, &resolve(host, port)?, TcpOptions::default())
}

fn connect(host: &str, addresses: &[SocketAddr], options: TcpOptions<'_>) -> Result<TcpStream> {
    let mut last = None;
    for address in addresses {
        match sockets::connect_tcp(*address, options) {
            Ok(connection) => return Ok(connection),
            Err(error) => last = Some((*address, error)),
        }
    }
    let Some((address, error)) = last else { return Err(LoadError::new(format!("`{host}` has no address"))) };
    Err(explain(host, address, &error, options))
}

fn explain(host: &str, address: SocketAddr, error: &io::Error, options: TcpOptions<'_>) -> LoadError {
    let port = address.port();
    let place = if host.parse::<IpAddr>().is_ok() { address.to_string() } else { format!("{host} ({address})") };
    match (error.raw_os_error(), options.congestion_control) {
        (Some(libc::ENOENT | libc::EPERM), Some(name)) => LoadError::request(no_congestion_control(name, error)),
        (Some(libc::EINVAL), _) if options.mss_bytes.is_some() => LoadError::request(format!(
            "the kernel rejects the segment size of --mss ({error}); it accepts 88 to \
                32767"
        )),
        (Some(libc::ECONNREFUSED), _) => LoadError::new(format!(
            "{place} refuses the connection: no program listens there\n  Start `airpath recv --port {port}` at that \
             end first (behind a link: airpath exec --server 'airpath recv --once' -- …)."
        )),
        (Some(libc::ENETUNREACH | libc::EHOSTUNREACH), _) => LoadError::new(format!(
            "no route to {place} ({error})\n  See `ip route get {}`; behind a link only `server` can be reached, \
             unless the run has --internet.",
            address.ip()
        )),
        (Some(libc::ETIMEDOUT), _) => LoadError::new(format!(
            "{place} does not answer\n  The link may lose all packets, or a firewall may drop packets to port {port}."
        )),
        _ => LoadError::new(format!("cannot connect to {place}: {error}")),
    }
}

/// Error for an unavailable congestion control.
pub(crate) fn no_congestion_control(name: &str, error: &io::Error) -> String {
    let (has, allows) = ("net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_allowed_congestion_control");
    match error.raw_os_error() {
        Some(libc::EPERM) => format!(
            "this user may not use the congestion control `{name}` ({allows} lists the permitted ones)\n  \
             Behind a link, set it for the whole run: airpath exec --cc {name}."
        ),
        _ => format!("the kernel has no congestion control `{name}`; {has} lists the available ones"),
    }
}
