// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Peers that refuse, repeat, loop or begin anew.

use super::tests::{SECOND_NS, opened, run, server};
use super::*;

const NAK: u8 = 3;
const REJECT: u8 = 4;

fn frame(protocol: u16, information: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    Framer::new(Fcs::Bits16).write(protocol, information, &mut line);
    line
}

/// Packets that wait for the line of `end`.
fn taken(end: &mut Endpoint) -> Vec<(u16, Vec<u8>)> {
    let mut deframer = Deframer::new(Fcs::Bits16, 2000);
    let line = std::mem::take(end.line());
    line.iter().filter_map(|byte| deframer.push(*byte)).map(Result::unwrap).collect()
}

fn packet(code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    Packet { code, identifier, data }.bytes()
}

/// The last Configure-Request among `packets`.
fn request(packets: &[(u16, Vec<u8>)], of: u16) -> Option<&[u8]> {
    packets.iter().rev().find(|(protocol, bytes)| *protocol == of && bytes[0] == 1).map(|(_, bytes)| &bytes[..])
}

/// Opens LCP with a peer that has no options.
fn open_lcp(end: &mut Endpoint, now_ns: u64) {
    let ours = taken(end);
    let asked = request(&ours, LCP).expect("a request").to_vec();
    end.receive(now_ns, &frame(LCP, &packet(2, asked[1], &asked[4..])));
    end.receive(now_ns, &frame(LCP, &packet(1, 1, &[])));
    assert_eq!(end.state(), State::Opened);
}

#[test]
fn peer_that_refuses_for_ever_is_asked_a_bounded_number_of_times() {
    for (code, option) in [(NAK, [3, 6, 192, 168, 1, 1]), (REJECT, [99, 6, 0, 0, 0, 0])] {
        let mut end = server();
        end.open(0);
        open_lcp(&mut end, 0);
        let mut requests = 0;
        let mut waiting = taken(&mut end);
        // As fast as the line can.
        while let Some(asked) = request(&waiting, IPCP) {
            requests += 1;
            assert!(requests < 100, "{code}");
            end.receive(1, &frame(IPCP, &packet(code, asked[1], &option)));
            waiting = taken(&mut end);
        }
        assert!(requests > 10 && end.ipv4_refused(), "{code}: {requests}");
        // Later it is asked again, which another peer may like.
        end.advance(20 * SECOND_NS);
        assert!(request(&taken(&mut end), IPCP).is_some());
    }
}

#[test]
fn open_line_that_has_become_a_loop_is_noticed_and_comes_back() {
    let mut ends = opened();
    let mut now_ns = SECOND_NS;
    while now_ns < 120 * SECOND_NS {
        for end in &mut ends {
            let back = std::mem::take(end.line());
            end.receive(now_ns, &back);
        }
        now_ns += SECOND_NS / 10;
        ends.iter_mut().for_each(|end| end.advance(now_ns));
    }
    assert!(ends.iter().all(|end| !end.ipv4_open()), "{:?}", ends.each_ref().map(Endpoint::state));
    run(&mut ends, now_ns, now_ns + 60 * SECOND_NS, |bytes| bytes);
    assert!(ends.iter().all(Endpoint::ipv4_open));
}

#[test]
fn peer_without_a_magic_number_opens_a_line_that_was_a_loop() {
    let mut end = server();
    end.open(0);
    for _ in 0..40 {
        let back = std::mem::take(end.line());
        end.receive(0, &back);
    }
    assert_eq!(end.down(), Some(LineDown::Loop));
    end.advance(11 * SECOND_NS);
    open_lcp(&mut end, 11 * SECOND_NS);
    assert_eq!(end.down(), None);
}

/// The peer may be another after a restart.
#[test]
fn what_a_peer_rejected_is_asked_for_again_after_a_restart() {
    let mut end = server();
    end.open(0);
    let first = taken(&mut end);
    let asked = request(&first, LCP).unwrap().to_vec();
    end.receive(0, &frame(LCP, &packet(REJECT, asked[1], &asked[4..])));
    let second = taken(&mut end);
    assert_eq!(request(&second, LCP).unwrap()[4..], []);
    end.restart(SECOND_NS);
    let third = taken(&mut end);
    assert_eq!(request(&third, LCP).unwrap()[4..], asked[4..]);
}

#[test]
fn echoes_carry_no_magic_number_that_the_peer_rejected_and_fit_its_mru() {
    let mut end = server();
    end.open(0);
    let asked = request(&taken(&mut end), LCP).unwrap().to_vec();
    end.receive(0, &frame(LCP, &packet(REJECT, asked[1], &asked[4..])));
    let asked = request(&taken(&mut end), LCP).unwrap().to_vec();
    end.receive(0, &frame(LCP, &packet(2, asked[1], &asked[4..])));
    end.receive(0, &frame(LCP, &packet(1, 1, &[1, 4, 0, 128])));
    taken(&mut end);
    end.receive(0, &frame(LCP, &packet(ECHO_REQUEST, 7, &[9; 600])));
    let (_, reply) = taken(&mut end).pop().unwrap();
    assert_eq!((reply[0], reply[1], reply.len()), (ECHO_REPLY, 7, 128));
    assert_eq!(reply[4..9], [0, 0, 0, 0, 9]);
}

/// A Protocol-Reject that noise made, or that came too early, does not end IPv4 for good.
#[test]
fn rejected_protocol_that_was_open_is_tried_again() {
    for protocol in [IPCP, IPV4] {
        let mut ends = opened();
        let [high, low] = protocol.to_be_bytes();
        ends[0].receive(SECOND_NS, &frame(LCP, &packet(PROTOCOL_REJECT, 1, &[high, low, 1, 1])));
        assert!(!ends[0].ipv4_open());
        run(&mut ends, SECOND_NS, 60 * SECOND_NS, |bytes| bytes);
        assert!(ends.iter().all(Endpoint::ipv4_open), "{protocol:#x}");
    }
}

#[test]
fn characters_that_the_line_inserts_are_removed_where_the_map_has_them() {
    let with_map = |magic_number| {
        let character_map = 0x000a_0000;
        Endpoint::new(Configuration { character_map, magic_number, ..Configuration::default() })
    };
    let mut ends = [with_map(5), with_map(6)];
    ends.iter_mut().for_each(|end| end.open(0));
    run(&mut ends, 0, 5 * SECOND_NS, |bytes| bytes.into_iter().flat_map(|byte| [byte, 0x11, 0x13]).collect());
    assert!(ends.iter().all(Endpoint::ipv6_open));
    ends[0].send(&[0x60, 0x11, 0x13, 1]).unwrap();
    run(&mut ends, 5 * SECOND_NS, 5 * SECOND_NS + 1, |bytes| bytes.into_iter().flat_map(|b| [b, 0x11]).collect());
    assert_eq!(ends[1].next_packet().as_deref(), Some(&[0x60, 0x11, 0x13, 1][..]));
    assert_eq!(ends[1].counters().bad_sequences, 0);
}

/// Beyond, a slow line would delay packets for minutes behind the link.
#[test]
fn few_packets_wait_for_a_line_and_control_packets_pass_them() {
    let mut ends = opened();
    let refused = (0..1000).find(|_| ends[0].send(&[0x45; 1400]).is_err());
    assert!(refused.is_some_and(|count| (5..40).contains(&count)), "{refused:?}");
    assert_eq!(ends[0].counters().overflows, 1);
    let before = ends[0].line().len();
    ends[0].receive(SECOND_NS, &frame(LCP, &packet(ECHO_REQUEST, 7, &[0, 0, 0, 1])));
    assert!(ends[0].line().len() > before);
}

#[test]
fn every_state_answers_a_terminate_request_and_opens_afterwards() {
    for prepare in 0..4 {
        let mut ends = opened();
        match prepare {
            0 => {}
            1 => ends[0].restart(SECOND_NS),
            2 => ends[0].receive(SECOND_NS, &frame(LCP, &packet(5, 1, &[]))),
            _ => ends[0].receive(SECOND_NS, &frame(LCP, &packet(1, 9, &[]))),
        }
        taken(&mut ends[0]);
        ends[0].receive(SECOND_NS, &frame(LCP, &packet(5, 77, b"bye")));
        let answers = taken(&mut ends[0]);
        assert!(answers.iter().any(|(of, bytes)| *of == LCP && bytes[..2] == [6, 77]), "{prepare}: {answers:?}");
        run(&mut ends, SECOND_NS, 120 * SECOND_NS, |bytes| bytes);
        assert!(ends.iter().all(Endpoint::ipv4_open), "{prepare}: {:?}", ends.each_ref().map(Endpoint::state));
    }
}
