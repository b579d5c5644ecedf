// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A UDP socket whose datagrams the kernel stamps (SO_TIMESTAMPING, in software): arrivals as the
//! driver hands them up, departures as it takes them.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv6RecvPacketInfo, Timestamping};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, sendmsg, setsockopt,
};
use nix::sys::time::TimeSpec;

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its length in bytes.
    pub length: usize,
    /// Address of the sender.
    pub from: SocketAddr,
    /// The address of this host to which it was sent, where the socket has many.
    pub to: Option<nix::libc::in6_pktinfo>,
    /// The kernel's receive time, in ns since 1970.
    pub kernel_ns: Option<u64>,
}

/// The socket; it does not block.
#[derive(Debug)]
pub struct StampedSocket {
    socket: UdpSocket,
}

impl StampedSocket {
    /// Asks the kernel for stamps of what goes through `socket`; where it refuses there are none.
    ///
    /// # Errors
    /// When the socket cannot be made not to block.
    pub fn new(socket: UdpSocket) -> io::Result<StampedSocket> {
        StampedSocket::with(
            socket,
            TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY,
        )
    }

    /// The same for arrivals alone: nobody needs to fetch stamps of departures, which take room from arrivals.
    ///
    /// # Errors
    /// When the socket cannot be made not to block.
    pub fn of_arrivals(socket: UdpSocket) -> io::Result<StampedSocket> {
        StampedSocket::with(socket, TimestampingFlag::empty())
    }

    fn with(socket: UdpSocket, departures: TimestampingFlag) -> io::Result<StampedSocket> {
        socket.set_nonblocking(true)?;
        let flags =
            TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE | departures;
        // Without stamps of the kernel the program's own do: they only widen the bound.
        let _ = setsockopt(&socket, Timestamping, &flags);
        if socket.local_addr()?.is_ipv6() {
            let _ = setsockopt(&socket, Ipv6RecvPacketInfo, &true);
        }
        Ok(StampedSocket { socket })
    }

    /// The socket itself.
    pub fn inner(&self) -> &UdpSocket {
        &self.socket
    }

    /// Its address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next datagram, if one is there.
    ///
    /// # Errors
    /// The kernel's, such as that the port at the other end is closed.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        let mut control = nix::cmsg_space!(nix::sys::socket::Timestamps, nix::libc::in6_pktinfo);
        let mut parts = [IoSliceMut::new(buffer)];
        let message = match recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::MSG_TRUNC,
        ) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let from = message.address.as_ref().and_then(socket_address).unwrap_or(SocketAddr::from(([0; 4], 0)));
        let (mut kernel_ns, mut to) = (None, None);
        for part in message.cmsgs()? {
            match part {
                ControlMessageOwned::ScmTimestampsns(stamps) => kernel_ns = nanoseconds(stamps.system),
                ControlMessageOwned::Ipv6PacketInfo(info) => to = Some(info),
                _ => {}
            }
        }
        Ok(Some(Arrival { length: message.bytes, from, to, kernel_ns }))
    }

    /// Sends `bytes`: to the other end of a connected socket, or to `to` from the address at which
    /// `answered` came in.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, bytes: &[u8], to: Option<SocketAddr>, answered: Option<&Arrival>) -> io::Result<()> {
        let address = to.map(SockaddrStorage::from);
        let from = answered.and_then(|arrival| arrival.to).map(|mut info| {
            // A link-local address is at one interface alone; any other finds its own way out.
            if !Ipv6Addr::from(info.ipi6_addr.s6_addr).is_unicast_link_local() {
                info.ipi6_ifindex = 0;
            }
            info
        });
        let control: Vec<ControlMessage<'_>> = from.iter().map(ControlMessage::Ipv6PacketInfo).collect();
        sendmsg(self.socket.as_raw_fd(), &[IoSlice::new(bytes)], &control, MsgFlags::empty(), address.as_ref())?;
        Ok(())
    }

    /// Departure times of datagrams: the number of each among those sent, and the time in ns since 1970.
    /// Numbers begin at 0 and wrap around.
    pub fn departures(&self) -> Vec<(u32, u64)> {
        let mut departures = Vec::new();
        let mut control = nix::cmsg_space!(
            nix::sys::socket::Timestamps,
            nix::libc::sock_extended_err,
            nix::libc::sockaddr_in6,
            [u8; 64]
        );
        // Bounded: the error queue may also hold what is no stamp.
        for _ in 0..1_000 {
            let mut bytes = [0; 256];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let Ok(message) =
                recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, Some(&mut control), flags)
            else {
                break;
            };
            let (mut number, mut stamp) = (None, None);
            for part in message.cmsgs().into_iter().flatten() {
                match part {
                    ControlMessageOwned::ScmTimestampsns(stamps) => stamp = nanoseconds(stamps.system),
                    ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)
                        if i32::from(error.ee_origin) == i32::from(nix::libc::SO_EE_ORIGIN_TIMESTAMPING) =>
                    {
                        number = Some(error.ee_data);
                    }
                    _ => {}
                }
            }
            departures.extend(number.zip(stamp));
        }
        departures
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A stamp in ns since 1970; none where the kernel gave none.
fn nanoseconds(stamp: TimeSpec) -> Option<u64> {
    let seconds = u64::try_from(stamp.tv_sec()).ok().filter(|seconds| *seconds > 0)?;
    Some(seconds * 1_000_000_000 + stamp.tv_nsec() as u64)
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from(std::net::SocketAddrV4::from(*v4)));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from(std::net::SocketAddrV6::from(*v6))))
}

/// An address as people write it: IPv4 also where it came through a socket of IPv6.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => SocketAddr::new(address.ip().to_canonical(), address.port()),
        _ => address,
    }
}
