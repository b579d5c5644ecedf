// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;

use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

use super::super::line_news::{Listener, line_news};
use super::*;

const PATIENCE: Duration = Duration::from_secs(60);
const PACKET: [u8; 4] = [0x45, 0x7e, 0x11, 0x13];

fn configuration() -> Configuration {
    Configuration {
        address: Some(Ipv4Addr::new(10, 0, 0, 1)),
        peer_address: Some(Ipv4Addr::new(10, 0, 0, 2)),
        ..Configuration::default()
    }
}

fn port() -> (PppPort, Listener) {
    let (teller, listener) = line_news().unwrap();
    (PppPort::open(&LineSpec::Pseudo { link: None }, None, configuration(), teller).unwrap(), listener)
}

/// A peer at the other end of the line of a port.
struct Peer {
    terminal: File,
    end: Endpoint,
    began: Instant,
    draw: u64,
    /// One byte in so many is damaged, lost, or followed by another; 0 for none.
    noise_every: u64,
}

impl Peer {
    fn open(path: &str, noise_every: u64) -> Self {
        let options = &mut std::fs::OpenOptions::new();
        use std::os::unix::fs::OpenOptionsExt;
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let terminal = options.read(true).write(true).custom_flags(flags).open(path).unwrap();
        let mut modes = tcgetattr(&terminal).unwrap();
        cfmakeraw(&mut modes);
        tcsetattr(&terminal, SetArg::TCSANOW, &modes).unwrap();
        let mut end = Endpoint::new(Configuration { magic_number: 9, ..Configuration::default() });
        end.open(0);
        Self { terminal, end, began: Instant::now(), draw: 1, noise_every }
    }

    fn noise(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut noisy = Vec::new();
        for byte in bytes {
            let mut next = || {
                self.draw ^= self.draw << 13;
                self.draw ^= self.draw >> 7;
                self.draw ^= self.draw << 17;
                self.draw
            };
            match if self.noise_every > 0 && next() % self.noise_every == 0 { next() % 3 } else { 3 } {
                0 => noisy.push(byte ^ 1 << (next() % 8)),
                1 => {}
                2 => noisy.extend([*byte, next() as u8]),
                _ => noisy.push(*byte),
            }
        }
        noisy
    }

    fn turn(&mut self) {
        let mut bytes = [0; 4096];
        let now_ns = self.began.elapsed().as_nanos() as u64;
        while let Ok(read) = self.terminal.read(&mut bytes)
            && read > 0
        {
            let noisy = self.noise(&bytes[..read]);
            self.end.receive(now_ns, &noisy);
        }
        self.end.advance(now_ns);
        let line = std::mem::take(self.end.line());
        let noisy = self.noise(&line);
        let _ = self.terminal.write(&noisy);
    }
}

/// Runs both ends until `done`; packets that come to the port go back.
fn run_until(port: &mut PppPort, peer: &mut Peer, mut done: impl FnMut(&mut Peer) -> bool) {
    let (mut slab, mut packets) = (BytesMut::new(), Vec::new());
    let began = Instant::now();
    while !done(peer) {
        assert!(began.elapsed() < PATIENCE, "{:?} {:?}", port.end().state(), peer.end.state());
        peer.turn();
        port.read_batch(&mut slab, 10, &mut packets).unwrap();
        for packet in packets.drain(..) {
            let parts = [IoSlice::new(&packet.bytes)];
            let outgoing =
                Outgoing { link_header: &[], parts: &parts, offload: OffloadHeader::default(), journey: None };
            assert_eq!(port.write_batch(&[outgoing]).unwrap().done, 1);
        }
        thread::sleep(Duration::from_micros(200));
    }
}

fn echoed(peer: &mut Peer) -> bool {
    let _ = peer.end.send(&PACKET);
    peer.end.next_packet().is_some()
}

#[test]
fn peer_is_given_an_address_and_packets_pass_until_the_line_hangs_up() {
    let (mut port, listener) = port();
    let mut peer = Peer::open(port.name(), 0);
    let (teller, _unheard) = line_news().unwrap();
    run_until(&mut port, &mut peer, echoed);
    assert_eq!(peer.end.addresses(), (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1)));
    assert!(
        matches!(listener.next(), Some(LineNews::Opened { peer, mru_bytes: 1500, .. }) if peer.octets() == [10, 0, 0, 2])
    );
    assert_eq!(port.drops_outside_model().unwrap().unreadable, 0);
    drop(teller);

    drop(peer);
    let (mut slab, mut packets) = (BytesMut::new(), Vec::new());
    let name = port.name().to_owned();
    let mut last = None;
    let began = Instant::now();
    while last != Some(LineNews::HungUp(name.clone())) && began.elapsed() < PATIENCE {
        // It is no error of the loop: other links may go on.
        port.read_batch(&mut slab, 10, &mut packets).unwrap();
        last = listener.next().or(last);
    }
    assert_eq!(last, Some(LineNews::HungUp(name)));
    let parts = [IoSlice::new(&PACKET)];
    let outgoing = Outgoing { link_header: &[], parts: &parts, offload: OffloadHeader::default(), journey: None };
    assert_eq!(port.write_batch(&[outgoing]).unwrap(), WriteOutcome { done: 1, refused: 1, waits: false });
}

#[test]
fn peer_that_ends_ppp_is_no_loss_until_it_comes_back() {
    let (mut port, listener) = port();
    let mut peer = Peer::open(port.name(), 0);
    run_until(&mut port, &mut peer, echoed);
    let now_ns = peer.began.elapsed().as_nanos() as u64;
    peer.end.close(now_ns);
    let down = LineNews::Down("the peer has ended PPP".into());
    run_until(&mut port, &mut peer, |_| listener.next() == Some(down.clone()));
    assert_eq!(port.interface_changes().unwrap().downs, 0);

    let now_ns = peer.began.elapsed().as_nanos() as u64;
    peer.end.open(now_ns);
    run_until(&mut port, &mut peer, echoed);
    assert_eq!(port.interface_changes().unwrap().downs, 1);
    // One that negotiates anew never said goodbye.
    let now_ns = peer.began.elapsed().as_nanos() as u64;
    peer.end.restart(now_ns);
    let down = LineNews::Down("the peer negotiates anew".into());
    run_until(&mut port, &mut peer, |_| listener.next() == Some(down.clone()));
    assert_eq!(port.interface_changes().unwrap().downs, 2);
}

/// `stty` and the like open the line and close it again.
#[test]
fn pseudo_terminal_that_was_opened_and_closed_before_waits_for_a_peer() {
    let (mut port, _listener) = port();
    drop(Peer::open(port.name(), 0));
    let (mut slab, mut packets) = (BytesMut::new(), Vec::new());
    for _ in 0..5 {
        port.read_batch(&mut slab, 10, &mut packets).unwrap();
    }
    let mut peer = Peer::open(port.name(), 0);
    run_until(&mut port, &mut peer, echoed);
}

#[test]
fn line_opens_again_and_carries_packets_once_noise_has_ended() {
    let (mut port, _listener) = port();
    let mut peer = Peer::open(port.name(), 150);
    run_until(&mut port, &mut peer, |peer| {
        let _ = peer.end.send(&PACKET);
        let _ = peer.end.next_packet();
        peer.end.counters().frames_written > 100
    });
    peer.noise_every = 0;
    run_until(&mut port, &mut peer, echoed);
    assert!(port.counters().bad_sequences + peer.end.counters().bad_sequences > 0);
}

#[test]
fn checksums_that_a_kernel_left_to_the_device_are_finished() {
    let left =
        OffloadHeader { needs_checksum: true, checksum_start: 2, checksum_offset: 2, ..OffloadHeader::default() };
    let mut packet = [0x45, 0, 0x12, 0x34, 0, 0, 0xab, 0xcd];
    assert!(finish_checksum(&mut packet, &left));
    // The sum over it all is now that of a right checksum.
    assert_eq!(checksum::checksum(&packet[2..]), 0);
    assert!(!finish_checksum(&mut packet, &OffloadHeader { checksum_start: 7, ..left }));
    assert!(finish_checksum(&mut packet, &OffloadHeader::default()));
}

#[test]
fn what_is_no_line_is_refused_with_a_reason() {
    let busy = SerialLine::open(&LineSpec::Pseudo { link: None }, None).unwrap();
    let path = |path: &str| LineSpec::Device(Path::new(path).to_owned());
    let _first = SerialLine::open(&path(busy.name()), None).unwrap();
    for (line, reason) in
        [("/dev/airpath-no-such-line", "no such serial line"), ("/dev/null", "no terminal"), (busy.name(), "in use")]
    {
        let (teller, _listener) = line_news().unwrap();
        let refusal = PppPort::open(&path(line), None, configuration(), teller).unwrap_err().to_string();
        assert!(refusal.contains(reason), "{refusal}");
    }
}
