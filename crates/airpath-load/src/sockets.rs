// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sockets: made, set, and asked for their state.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, connect, getsockopt, setsockopt, socket,
    sockopt,
};

use crate::plan::Transport;
use crate::report::{Endpoints, TcpSample};

const UDPLITE_SEND_CSCOV: libc::c_int = 10;
const UDPLITE_RECV_CSCOV: libc::c_int = 11;
/// Receive buffer that a receiver of datagrams asks the kernel for, in bytes; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// Maximum wait of one end for the other in the middle of a load: longer than TCP itself goes on trying to
/// deliver (924 s), so that no link is given up that TCP has not given up.
pub const IDLE: Duration = Duration::from_secs(1000);

/// Options of `send` for a TCP socket.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpOptions<'a> {
    /// Congestion control.
    pub congestion_control: Option<&'a str>,
    /// Largest segment in bytes.
    pub mss_bytes: Option<u32>,
    /// TCP_NODELAY.
    pub no_delay: bool,
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// An address as people write it: IPv4 stays IPv4 on a socket of both families.
pub fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Connects, with the options in force from the first segment.
///
/// # Errors
/// The kernel's.
pub fn connect_tcp(to: SocketAddr, options: TcpOptions<'_>) -> io::Result<TcpStream> {
    let socket = socket(family(to.ip()), SockType::Stream, SockFlag::SOCK_CLOEXEC, SockProtocol::Tcp)?;
    set_tcp(&socket, options)?;
    loop {
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Sets what `options` ask for.
///
/// # Errors
/// The kernel's: [`io::ErrorKind::NotFound`] or [`io::ErrorKind::PermissionDenied`] for a congestion control
/// that it does not have or does not allow.
pub fn set_tcp(socket: &impl AsFd, options: TcpOptions<'_>) -> io::Result<()> {
    if let Some(name) = options.congestion_control {
        setsockopt(socket, sockopt::TcpCongestion, &OsString::from(name))?;
    }
    if let Some(bytes) = options.mss_bytes {
        setsockopt(socket, sockopt::TcpMaxSeg, &bytes)?;
    }
    if options.no_delay {
        setsockopt(socket, sockopt::TcpNoDelay, &true)?;
    }
    Ok(())
}

/// Lets no more than `bytes` wait in a TCP socket that have not been sent yet.
///
/// # Errors
/// The kernel's.
pub fn limit_unsent(socket: &TcpStream, bytes: u32) -> io::Result<()> {
    set_number(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as libc::c_int)
}

/// Signs of life of the peer: asked for when nothing has come for `idle`, and every `interval` from then on. After
/// `probes` without an answer the connection fails.
#[derive(Clone, Copy, Debug)]
pub struct KeepAlive {
    /// Time without a word of the peer until the first probe; whole seconds count.
    pub idle: Duration,
    /// Time between probes; whole seconds count.
    pub interval: Duration,
    /// Number of probes.
    pub probes: u32,
}

impl KeepAlive {
    /// Has the kernel ask the peer of `socket`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set(self, socket: &TcpStream) -> io::Result<()> {
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1);
        setsockopt(socket, sockopt::TcpKeepIdle, &seconds(self.idle))?;
        setsockopt(socket, sockopt::TcpKeepInterval, &seconds(self.interval))?;
        setsockopt(socket, sockopt::TcpKeepCount, &self.probes)?;
        Ok(setsockopt(socket, sockopt::KeepAlive, &true)?)
    }

    /// Has the kernel ask no more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(socket: &TcpStream) -> io::Result<()> {
        Ok(setsockopt(socket, sockopt::KeepAlive, &false)?)
    }
}

/// Listens on `port` of `address`, or of every address of either family.
///
/// # Errors
/// The kernel's.
pub fn listen(address: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    match address {
        Some(address) => TcpListener::bind((address, port)),
        // A socket of IPv6 takes IPv4 as well, unless the system has no IPv6.
        None => TcpListener::bind((IpAddr::from([0u16; 8]), port)).or_else(|error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => TcpListener::bind((IpAddr::from([0u8; 4]), port)),
            _ => Err(error),
        }),
    }
}

/// The largest segment of a connection in bytes.
pub fn mss_bytes(socket: &TcpStream) -> u32 {
    getsockopt(socket, sockopt::TcpMaxSeg).unwrap_or(0)
}

/// The congestion control in force.
pub fn congestion_control(socket: &TcpStream) -> String {
    let name = getsockopt(socket, sockopt::TcpCongestion).unwrap_or_default();
    name.to_string_lossy().trim_end_matches('\0').to_string()
}

/// The state of a TCP sender.
pub fn tcp_sample(socket: &TcpStream) -> Option<TcpSample> {
    // SAFETY: the structure is numbers only, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the structure and its length live over the call; an older kernel fills in less of it.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length)
    };
    (done == 0).then(|| TcpSample {
        retransmits: u64::from(info.tcpi_total_retrans),
        acknowledged_bytes: info.tcpi_bytes_acked,
        congestion_window_bytes: u64::from(info.tcpi_snd_cwnd) * u64::from(info.tcpi_snd_mss),
        send_window_bytes: u64::from(info.tcpi_snd_wnd),
        rtt_us: u64::from(info.tcpi_rtt),
        rtt_variation_us: u64::from(info.tcpi_rttvar),
        path_mtu_bytes: u64::from(info.tcpi_pmtu),
    })
}

/// The ends of a connected TCP socket.
///
/// # Errors
/// When it is not connected any more.
pub fn tcp_endpoints(socket: &TcpStream) -> io::Result<Endpoints> {
    Ok(Endpoints { socket: socket.as_raw_fd(), local: plain(socket.local_addr()?), remote: plain(socket.peer_addr()?) })
}

/// A socket for datagrams at a free port of `local`.
///
/// # Errors
/// The kernel's: `EPROTONOSUPPORT` where it has no UDP-Lite.
pub fn datagram_socket(local: IpAddr, transport: Transport) -> io::Result<UdpSocket> {
    let domain = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let protocol = match transport {
        Transport::Udp => libc::IPPROTO_UDP,
        Transport::UdpLite { .. } => libc::IPPROTO_UDPLITE,
    };
    // SAFETY: numbers only; the result is checked before it becomes an owned descriptor.
    let socket = unsafe {
        let number = Errno::result(libc::socket(domain, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, protocol))?;
        OwnedFd::from_raw_fd(number)
    };
    // Less than asked for is no error: what the kernel then drops is counted as lost.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES);
    if let Transport::UdpLite { coverage_bytes } = transport {
        for option in [UDPLITE_SEND_CSCOV, UDPLITE_RECV_CSCOV] {
            set_number(socket.as_raw_fd(), libc::IPPROTO_UDPLITE, option, libc::c_int::from(coverage_bytes))?;
        }
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(local, 0)))?;
    Ok(socket.into())
}

fn set_number(socket: libc::c_int, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value lives over the call, and its length is its own.
    let done = unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), length) };
    Ok(Errno::result(done).map(drop)?)
}
