// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The crate `ppproto`, an independent client of PPP, against our end.

use std::net::Ipv4Addr;

use airpath_ppp::{Configuration, Endpoint};
use ppproto::Config;
use ppproto::pppos::{PPPoS, PPPoSAction};

struct Peer {
    ppp: PPPoS<'static>,
    received: Vec<u8>,
    packets: Vec<Vec<u8>>,
}

impl Peer {
    /// Gives `bytes` to the peer, and returns what it sends.
    fn exchange(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let (mut line, mut sent) = (Vec::new(), [0; 4096]);
        loop {
            let taken = self.ppp.consume(bytes, &mut self.received);
            bytes = &bytes[taken..];
            match self.ppp.poll(&mut sent, &mut self.received) {
                PPPoSAction::None if bytes.is_empty() => return line,
                PPPoSAction::None => {}
                PPPoSAction::Received(range) => self.packets.push(self.received[range].to_vec()),
                PPPoSAction::Transmit(length) => line.extend_from_slice(&sent[..length]),
            }
        }
    }
}

#[test]
fn independent_client_gets_its_addresses_and_packets_pass_both_ways() {
    let mut ours = Endpoint::new(Configuration {
        address: Some(Ipv4Addr::new(10, 9, 0, 1)),
        peer_address: Some(Ipv4Addr::new(10, 9, 0, 2)),
        name_servers: vec![Ipv4Addr::new(10, 9, 0, 53), Ipv4Addr::new(10, 9, 0, 54)],
        // It takes no protocol that it does not know, and has no IPV6CP.
        ipv6: false,
        ..Configuration::default()
    });
    let ppp = PPPoS::new(Config { username: b"", password: b"" });
    let mut peer = Peer { ppp, received: vec![0; 4096], packets: Vec::new() };
    peer.ppp.open().unwrap();
    ours.open(0);
    // It has no timers: our end must repeat what it did not hear.
    for now_ns in (0..30).map(|seconds| seconds * 1_000_000_000) {
        ours.advance(now_ns);
        for _ in 0..10 {
            let to_peer = std::mem::take(ours.line());
            ours.receive(now_ns, &peer.exchange(&to_peer));
        }
    }
    let status = peer.ppp.status().ipv4.expect("IPCP of the peer is open");
    assert_eq!(status.address, Some(Ipv4Addr::new(10, 9, 0, 2)));
    assert_eq!(status.peer_address, Some(Ipv4Addr::new(10, 9, 0, 1)));
    assert_eq!(status.dns_servers[0], Some(Ipv4Addr::new(10, 9, 0, 53)));
    assert!(ours.ipv4_open());

    let packet: Vec<u8> = (0..=255).map(|byte| if byte == 0 { 0x45 } else { byte }).collect();
    ours.send(&packet).unwrap();
    let to_peer = std::mem::take(ours.line());
    assert_eq!(peer.exchange(&to_peer), []);
    assert_eq!(peer.packets, std::slice::from_ref(&packet));

    let mut line = [0; 4096];
    let length = peer.ppp.send(&packet, &mut line).unwrap();
    ours.receive(0, &line[..length]);
    assert_eq!(ours.next_packet(), Some(packet));
    assert_eq!(ours.counters().bad_sequences, 0);
}
