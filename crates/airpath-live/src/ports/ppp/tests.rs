// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use std::fs::read_link;
use std::io::IoSlice;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;

use super::*;

fn configuration() -> Configuration {
    Configuration {
        address: Some(Ipv4Addr::new(10, 0, 0, 1)),
        peer_address: Some(Ipv4Addr::new(10, 0, 0, 2)),
        ..Configuration::default()
    }
}

/// A pseudo-terminal: its master, and the path of the other end.
fn terminal() -> (File, File, PathBuf) {
    let pair = openpty(None, None).unwrap();
    let path = read_link(format!("/proc/self/fd/{}", pair.slave.as_raw_fd())).unwrap();
    fcntl(&pair.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    (pair.master.into(), pair.slave.into(), path)
}

#[test]
fn peer_is_given_an_address_and_packets_pass_until_the_line_hangs_up() {
    let (mut master, slave, path) = terminal();
    let mut port = PppPort::open(&path, Some(BaudRate::B115200), configuration()).unwrap();
    drop(slave);
    let refusal = PppPort::open(&path, None, configuration()).unwrap_err().to_string();
    assert!(refusal.contains("in use"), "{refusal}");

    let mut peer = Endpoint::new(Configuration { magic_number: 9, ..Configuration::default() });
    peer.open(0);
    let (mut slab, mut packets) = (BytesMut::new(), Vec::new());
    let sent = [0x45, 0x7e, 0x11, 0x13];
    let mut back = None;
    let began = Instant::now();
    while back.is_none() && began.elapsed() < Duration::from_secs(30) {
        let mut bytes = [0; 4096];
        if let Ok(read) = master.read(&mut bytes) {
            peer.receive(began.elapsed().as_nanos() as u64, &bytes[..read]);
        }
        peer.advance(began.elapsed().as_nanos() as u64);
        master.write_all(&std::mem::take(peer.line())).unwrap();
        port.read_batch(&mut slab, 10, &mut packets).unwrap();
        if packets.is_empty() {
            let _ = peer.send(&sent);
        } else {
            let parts = [IoSlice::new(&packets[0].bytes)];
            let outgoing = Outgoing { link_header: &[], parts: &parts, offload: OffloadHeader::default() };
            assert_eq!(port.write_batch(&[outgoing]).unwrap().done, 1);
        }
        back = peer.next_packet();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(back.as_deref(), Some(&sent[..]));
    assert_eq!(peer.addresses(), (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(port.drops_outside_model().unwrap().unreadable, 0);

    drop(master);
    let error = port.read_batch(&mut slab, 10, &mut packets).unwrap_err();
    assert!(error.to_string().contains("hung up"), "{error}");
}

#[test]
fn what_is_no_line_is_refused_with_a_reason() {
    for (path, reason) in [("/dev/airpath-no-such-line", "no such device"), ("/dev/null", "no terminal")] {
        let refusal = PppPort::open(Path::new(path), None, configuration()).unwrap_err().to_string();
        assert!(refusal.contains(reason), "{refusal}");
    }
}
