// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;
use crate::authentication::{Authentication, Credentials, Method};

pub(super) const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn server() -> Endpoint {
    Endpoint::new(Configuration {
        address: Some(Ipv4Addr::new(10, 0, 0, 1)),
        peer_address: Some(Ipv4Addr::new(10, 0, 0, 2)),
        magic_number: 77,
        ..Configuration::default()
    })
}

fn client() -> Endpoint {
    Endpoint::new(Configuration { magic_number: 99, ..Configuration::default() })
}

/// Two ends and what the line does to their bytes.
pub(super) fn run(ends: &mut [Endpoint; 2], from_ns: u64, to_ns: u64, mut damage: impl FnMut(Vec<u8>) -> Vec<u8>) {
    let mut now_ns = from_ns;
    while now_ns < to_ns {
        for sender in 0..2 {
            let bytes = damage(std::mem::take(ends[sender].line()));
            ends[1 - sender].receive(now_ns, &bytes);
        }
        if ends.iter_mut().all(|end| end.line().is_empty()) {
            let next = ends.iter().filter_map(Endpoint::next_deadline_ns).min().unwrap_or(to_ns);
            now_ns = next.max(now_ns + 1_000_000).min(to_ns);
            ends.iter_mut().for_each(|end| end.advance(now_ns));
        }
    }
}

pub(super) fn opened() -> [Endpoint; 2] {
    let mut ends = [server(), client()];
    ends.iter_mut().for_each(|end| end.open(0));
    run(&mut ends, 0, SECOND_NS, |bytes| bytes);
    ends
}

#[test]
fn client_is_given_an_address_and_packets_pass() {
    let mut ends = opened();
    assert_eq!(ends[1].addresses(), (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(ends[0].addresses(), (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
    assert_eq!(ends[0].interface_identifiers(), Some((0x0200_0000_0000_004d, 0x0200_0000_0000_0063)));
    for packet in [&[0x45, 1, 0x7e, 0x7d][..], &[0x60, 9]] {
        ends[1].send(packet).unwrap();
        run(&mut ends, SECOND_NS, SECOND_NS + 1, |bytes| bytes);
        assert_eq!(ends[0].next_packet().as_deref(), Some(packet));
    }
    assert_eq!(ends[1].send(&[0x45; 1501]), Err(NotSent::TooLong));
    assert_eq!(ends[1].send(&[0x15]), Err(NotSent::NoIp));
}

/// Ends of which the first demands `method` of the second.
fn authenticating(method: Method, password: &str) -> [Endpoint; 2] {
    let credentials = |password: &str| Credentials { name: b"mobile".to_vec(), password: password.into() };
    let demands = Authentication {
        demanded: Some(method),
        peers: vec![credentials("shared")],
        challenger: b"gate".to_vec(),
        ..Authentication::default()
    };
    let says = Authentication { ours: Some(credentials(password)), ..Authentication::default() };
    let end = |magic_number, authentication| {
        Endpoint::new(Configuration { magic_number, authentication, long_sequences: true, ..Configuration::default() })
    };
    let mut ends = [end(77, demands), end(99, says)];
    ends.iter_mut().for_each(|end| end.open(0));
    ends
}

#[test]
fn network_protocols_begin_once_the_peer_is_known() {
    for method in [Method::Pap, Method::Chap] {
        let mut ends = authenticating(method, "shared");
        run(&mut ends, 0, SECOND_NS, |bytes| bytes);
        assert!(ends.iter().all(|end| end.ipv6_open() && end.down().is_none()), "{method:?}");
        let mut ends = authenticating(method, "wrong");
        run(&mut ends, 0, 2 * SECOND_NS, |bytes| bytes);
        assert_eq!(ends[0].down(), Some(LineDown::Denied(Denial::Peers)), "{method:?}");
        assert_eq!(ends[1].down(), Some(LineDown::Denied(Denial::Ours)), "{method:?}");
        // It is tried again, at the pace of a line that was given up.
        let before = ends[0].counters().openings;
        run(&mut ends, 2 * SECOND_NS, 62 * SECOND_NS, |bytes| bytes);
        let attempts = ends[0].counters().openings - before;
        assert!((1..=8).contains(&attempts), "{method:?}: {attempts}");
        assert!(ends.iter().all(|end| !end.ipv6_open()));
    }
}

#[test]
fn a_peer_that_says_nothing_of_itself_is_not_let_in() {
    let mut ends = authenticating(Method::Chap, "shared");
    ends[1] = client();
    ends[1].open(0);
    run(&mut ends, 0, 2 * SECOND_NS, |bytes| bytes);
    assert_eq!(ends[0].down(), Some(LineDown::Denied(Denial::Peers)));
    assert!(ends.iter().all(|end| !end.ipv4_open() && !end.ipv6_open()));
}

/// RFC 1570, section 2.1: the sequence is negotiated for each direction by itself, for all but LCP.
#[test]
fn sequences_of_32_bits_are_written_where_the_peer_asks_for_them() {
    for wants in [[true, true], [true, false], [false, true]] {
        let mut ends = [server(), client()];
        for (end, wants) in ends.iter_mut().zip(wants) {
            end.lcp.options.wants_long_sequences = wants;
            end.open(0);
        }
        run(&mut ends, 0, SECOND_NS, |bytes| bytes);
        for (sender, is_long) in [(0, wants[1]), (1, wants[0])] {
            ends[sender].send(&[0x45, 1, 2, 3]).unwrap();
            let line = std::mem::take(ends[sender].line());
            let mut deframer = Deframer::new(if is_long { Fcs::Bits32 } else { Fcs::Bits16 }, 1500);
            let frames: Vec<_> = line.iter().filter_map(|byte| deframer.push(*byte)).collect();
            assert_eq!(frames, [Ok((IPV4, vec![0x45, 1, 2, 3]))], "{wants:?}");
            ends[1 - sender].receive(SECOND_NS, &line);
            assert_eq!(ends[1 - sender].next_packet().as_deref(), Some(&[0x45, 1, 2, 3][..]));
        }
        // One of them begins anew, and is understood.
        ends[1].restart(SECOND_NS);
        run(&mut ends, SECOND_NS, 3 * SECOND_NS, |bytes| bytes);
        assert!(ends.iter().all(|end| end.ipv4_open()), "{wants:?}");
    }
}

#[test]
fn closed_end_terminates_in_order() {
    let mut ends = opened();
    ends[0].close(SECOND_NS);
    run(&mut ends, SECOND_NS, 6 * SECOND_NS, |bytes| bytes);
    assert_eq!(ends[0].state(), State::Closed);
    assert!(!ends[0].ipv4_open() && !ends[1].ipv4_open());
}

#[test]
fn silent_line_is_given_up_and_comes_back() {
    let mut ends = opened();
    run(&mut ends, SECOND_NS, 200 * SECOND_NS, |_| Vec::new());
    assert!(ends.iter().all(|end| end.down().is_some()));
    run(&mut ends, 200 * SECOND_NS, 250 * SECOND_NS, |bytes| bytes);
    assert!(ends.iter().all(|end| end.ipv4_open() && end.ipv6_open()));
}

/// LCP may stay open while noise hits IPCP alone.
#[test]
fn addresses_are_negotiated_again_after_ipcp_gave_up() {
    let mut ends = opened();
    let mut line = Vec::new();
    Framer::new(Fcs::Bits16).write(IPCP, &[5, 1, 0, 4], &mut line);
    ends[0].receive(SECOND_NS, &line);
    assert!(!ends[0].ipv4_open());
    run(&mut ends, SECOND_NS, 40 * SECOND_NS, |bytes| bytes);
    assert!(ends.iter().all(Endpoint::ipv4_open));
}

#[test]
fn line_that_brings_back_our_bytes_is_called_a_loop() {
    let mut end = server();
    end.open(0);
    for _ in 0..40 {
        let bytes = std::mem::take(end.line());
        end.receive(0, &bytes);
    }
    assert_eq!(end.down(), Some(LineDown::Loop));
}

#[test]
fn unknown_protocols_and_codes_are_rejected() {
    let mut ends = opened();
    for (protocol, information, code) in
        [(0x80fd, &[1, 1, 0, 4][..], PROTOCOL_REJECT), (LCP, &[99, 5, 0, 4], 7), (IPCP, &[99, 5, 0, 4], 7)]
    {
        let mut line = Vec::new();
        Framer::new(Fcs::Bits16).write(protocol, information, &mut line);
        ends[0].receive(SECOND_NS, &line);
        let mut deframer = Deframer::new(Fcs::Bits16, 1500);
        let answers: Vec<_> = std::mem::take(ends[0].line()).iter().filter_map(|byte| deframer.push(*byte)).collect();
        assert_eq!(answers.len(), 1, "{protocol:#x}");
        assert_eq!(answers[0].as_ref().unwrap().1[0], code);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Noise of any kind leaves neither a wedged end nor unbounded memory.
    #[test]
    fn ends_negotiate_again_after_noise(
        seed in any::<u64>(), every in 3_u64..200, flood in 0_usize..3000, first in any::<bool>(),
    ) {
        let mut ends = if first { let mut ends = [server(), client()]; ends.iter_mut().for_each(|end| end.open(0)); ends }
            else { opened() };
        let mut state = seed | 1;
        let mut draw = move || { state ^= state << 13; state ^= state >> 7; state ^= state << 17; state };
        run(&mut ends, SECOND_NS, 60 * SECOND_NS, |bytes| {
            let mut noisy = vec![0x7e; if draw() % 50 == 0 { flood } else { 0 }];
            for byte in bytes {
                match if draw() % every == 0 { draw() % 3 } else { 3 } {
                    0 => noisy.push(byte ^ 1 << (draw() % 8)),
                    1 => {}
                    2 => noisy.extend([byte, draw() as u8]),
                    _ => noisy.push(byte),
                }
            }
            noisy
        });
        run(&mut ends, 60 * SECOND_NS, 240 * SECOND_NS, |bytes| bytes);
        prop_assert!(ends.iter().all(|end| end.ipv4_open() && end.ipv6_open()), "{:?}", ends.each_ref().map(Endpoint::state));
    }

    #[test]
    fn any_bytes_are_borne(bytes in proptest::collection::vec(any::<u8>(), 0..4000), framed in any::<bool>()) {
        let mut end = server();
        end.open(0);
        let mut line = bytes.clone();
        if framed {
            line.clear();
            for (place, part) in bytes.chunks(9).enumerate() {
                let protocol = [LCP, IPCP, IPV6CP, IPV4][place % 4];
                let length = part.len() as u8;
                let mut packet = part.to_vec();
                if place % 3 > 0 && packet.len() >= 4 {
                    packet[0] %= 13;
                    packet[2..4].copy_from_slice(&[0, length]);
                }
                Framer::new(Fcs::Bits16).write(protocol, &packet, &mut line);
            }
        }
        end.receive(5, &line);
        end.advance(100 * SECOND_NS);
        prop_assert!(end.line().len() <= WAITING_BYTES + 8192);
    }
}
