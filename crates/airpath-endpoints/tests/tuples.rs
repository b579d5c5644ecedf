// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Every packet says between whom it travels, and its bytes say the same.

use airpath_core::FiveTuple;
use airpath_endpoints::Options;

use crate::common::{self, Run, link, run, seconds};

/// The tuple as the bytes of an IPv4 packet have it, by RFC 791 and the ports that TCP, UDP and
/// UDP-Lite have at the same place.
fn parsed(packet: &[u8]) -> FiveTuple {
    let long = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    let word = |at: usize| u16::from_be_bytes(packet[at..at + 2].try_into().unwrap());
    assert_eq!(packet[0], 0x45);
    FiveTuple {
        source: long(12),
        destination: long(16),
        source_port: word(20),
        destination_port: word(22),
        protocol: packet[9],
    }
}

#[test]
fn tuples_are_those_of_the_bytes() {
    let kinds = [
        ("tcp bytes=50kB", 6),
        ("request count=3 response=2kB", 6),
        ("quic bytes=50kB", 17),
        ("cbr from=client size=200B interval=10ms packets=5", 17),
        ("cbr from=server size=200B interval=10ms packets=5 protocol=udp-lite coverage=8B", 136),
        ("saturate from=server packets=5", 17),
        ("media bitrate=1Mbit/s frames=4", 17),
    ];
    let texts = kinds.map(|(text, _)| text);
    let options = Options { bytes: true, ..Options::default() };
    let run = run(link("10 Mbit/s,5 ms", 1), &texts, &options, 1, seconds(20.0));
    let mut seen = [0; 7];
    for passed in &run.sent {
        let bytes = passed.pdu.contents();
        let flow = passed.pdu.flow as usize;
        assert_eq!(passed.pdu.tuple, parsed(&bytes), "{}", kinds[flow].0);
        assert_eq!(passed.pdu.tuple.protocol, kinds[flow].1);
        seen[flow] += 1;
    }
    assert!(seen.iter().all(|packets| *packets >= 4), "{seen:?}");
    // Without bytes they are the same.
    let bare = common::run(link("10 Mbit/s,5 ms", 1), &texts, &Options::default(), 1, seconds(20.0));
    let tuples = |run: &Run| run.sent.iter().map(|passed| passed.pdu.tuple).collect::<Vec<_>>();
    assert_eq!(tuples(&bare), tuples(&run));
}
