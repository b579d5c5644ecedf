// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One TCP flow as fast as it goes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_live::clock;
use airpath_log::Level;
use airpath_models::LinkConfig;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, socket, sockopt};

use super::{Options, ports, ports_and_levels};
use crate::report::{Table, Target, short};
use crate::testbed::{BareVeth, Emulation, Failure, Link, NetworkEnd, Setting, port_name};

const CHUNK_BYTES: usize = 256 << 10;
/// TCP congestion control of the flow: the default of most kernels. With BBR, the default of some, a round depends on how
/// long BBR takes the path for faster than it is.
pub(super) const CONGESTION_CONTROL: &str = "cubic";
/// Slow start and cold caches.
const SKIP_SECONDS: f64 = 0.3;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = format!("one TCP flow ({CONGESTION_CONTROL}) without a rate limit, MTU 1500, goodput at the receiver");
    let columns = ["between the ends", "log", "Gbit/s", "loop core %", "lost outside"];
    let mut table = Table::new("stream", title, &columns);
    let seconds = options.seconds(4.0);
    let bare = goodput(BareVeth::create()?.ends(), seconds)?;
    table.row(["bare veth pair".to_owned(), "-".to_owned(), short(bare)]);
    table.figure("TCP goodput", "bare veth pair", bare, "Gbit/s", None);
    let pass = ports().into_iter().map(|port| (Link::Pass, port, Level::Counters));
    let model = ports_and_levels().into_iter().map(|(port, level)| (Link::hop(LinkConfig::default()), port, level));
    for (link, port, level) in pass.chain(model) {
        let setting = Setting::new(port, level);
        let emulation = Emulation::start(&link, setting)?;
        let rate = goodput(emulation.ends(0), seconds)?;
        let outcome = emulation.stop()?;
        let is_model = matches!(link, Link::Hop(_));
        let what = format!("{}, {}", if is_model { "link" } else { "pass-through" }, port_name(port));
        let complete = if outcome.log_complete { "" } else { " (incomplete)" };
        let costs = [short(rate), short(outcome.core_percent()), outcome.lost_outside.to_string()];
        table.row([what.clone(), format!("{level}{complete}")].into_iter().chain(costs));
        let target = (is_model && level == Level::Counters).then_some(Target::AtLeast(2.5));
        table.figure("TCP goodput", format!("{what}, {level}"), rate, "Gbit/s", target);
    }
    Ok(table)
}

/// A connection to `target`. The congestion control is chosen before: BBR leaves a connection paced that it has begun.
fn connect(target: SocketAddr) -> io::Result<TcpStream> {
    let family = if target.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &CONGESTION_CONTROL.into()).map_err(|errno| {
        io::Error::other(format!("this kernel has no TCP congestion control `{CONGESTION_CONTROL}`: {errno}"))
    })?;
    nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(target))?;
    Ok(TcpStream::from(socket))
}

/// Goodput of a TCP connection from the client to the server, in Gbit/s.
pub(super) fn goodput([client, server]: [NetworkEnd<'_>; 2], seconds: f64) -> Result<f64, Failure> {
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let listener = server.run(move || TcpListener::bind(any))?;
    let target = SocketAddr::new(server.address, listener.local_addr()?.port());
    let mut sending = client.run(move || connect(target))?;
    let (mut receiving, _) = listener.accept()?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let chunk = vec![0x5a; CHUNK_BYTES];
            while !done.load(Ordering::Relaxed) {
                if sending.write_all(&chunk).is_err() {
                    break;
                }
            }
            let _ = sending.shutdown(std::net::Shutdown::Both);
        });
        let mut buffer = vec![0; CHUNK_BYTES];
        let start_ns = clock::monotonic_ns();
        let (mut counted, mut from_ns, mut bytes) = (false, start_ns, 0);
        let rate = loop {
            let count = receiving.read(&mut buffer)?;
            let now_ns = clock::monotonic_ns();
            bytes += count;
            if !counted && (now_ns - start_ns) as f64 > SKIP_SECONDS * 1e9 {
                (counted, from_ns, bytes) = (true, now_ns, 0);
            }
            let elapsed_ns = (now_ns - from_ns) as f64;
            if count == 0 || counted && elapsed_ns > seconds * 1e9 {
                break bytes as f64 * 8.0 / elapsed_ns;
            }
        };
        done.store(true, Ordering::Relaxed);
        drop(receiving);
        let _ = sender.join();
        Ok(rate)
    })
}
