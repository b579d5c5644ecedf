// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use super::*;

fn credentials(name: &str, password: &str) -> Credentials {
    Credentials { name: name.into(), password: password.into() }
}

/// An end that lets `mobile` in with the password `shared`, and names itself `gate`.
fn gate(method: Method) -> Authenticator {
    let mut gate = Authenticator::new(Authentication {
        demanded: Some(method),
        peers: vec![credentials("other", "x"), credentials("mobile", "shared")],
        challenger: b"gate".to_vec(),
        secret: [7; 16],
        ..Authentication::default()
    });
    gate.begin(0, None, Some(method));
    gate
}

fn mobile(method: Method, password: &str) -> Authenticator {
    let ours = Some(credentials("mobile", password));
    let mut mobile = Authenticator::new(Authentication { ours, ..Authentication::default() });
    mobile.begin(0, Some(method), None);
    mobile
}

/// Carries what `from` has to say to `to`; returns what that was.
fn carry(from: &mut Authenticator, to: &mut Authenticator) -> Vec<Vec<u8>> {
    let said = std::mem::take(&mut from.out);
    for (protocol, bytes) in &said {
        assert!(to.receive(0, *protocol, Packet::parse(bytes).unwrap()));
    }
    said.into_iter().map(|(_, bytes)| bytes).collect()
}

/// A response by hand: MD5 of the bytes 01 73 65 63 72 65 74 0a 0b 0c (`printf '\x01secret\x0a\x0b\x0c' | md5sum`).
#[test]
fn a_response_is_the_hash_of_identifier_password_and_challenge() {
    let hash = response(1, b"secret", &[0x0a, 0x0b, 0x0c]);
    let shown: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(shown, "3bc0df85069769453bc22cc94e967218");
}

#[test]
fn the_right_password_is_let_in_and_a_wrong_one_is_not() {
    for method in [Method::Pap, Method::Chap] {
        for (password, is_good) in [("shared", true), ("Shared", false), ("", false)] {
            let (mut gate, mut mobile) = (gate(method), mobile(method, password));
            assert!(!gate.is_done() && !mobile.is_done());
            carry(&mut gate, &mut mobile);
            carry(&mut mobile, &mut gate);
            carry(&mut gate, &mut mobile);
            assert_eq!((gate.is_done(), mobile.is_done()), (is_good, is_good), "{method:?} {password}");
            let denials = if is_good { [None; 2] } else { [Some(Denial::Peers), Some(Denial::Ours)] };
            assert_eq!([gate.take_denial(), mobile.take_denial()], denials);
            assert_eq!([gate.deadline_ns(), mobile.deadline_ns()], [None; 2]);
        }
    }
}

/// Layout of RFC 1334, section 2.2.1, and RFC 1994, section 4.1.
#[test]
fn packets_are_laid_out_as_in_the_documents() {
    let mut by_pap = mobile(Method::Pap, "pw");
    let (protocol, bytes) = by_pap.out.remove(0);
    assert_eq!((protocol, &bytes[..]), (0xc023, &b"\x01\x01\x00\x0e\x06mobile\x02pw"[..]));
    let mut gate = gate(Method::Chap);
    let (protocol, bytes) = gate.out.remove(0);
    assert_eq!((protocol, &bytes[..5], &bytes[21..]), (0xc223, &[1, 1, 0, 25, 16][..], &b"gate"[..]));
}

#[test]
fn lost_packets_are_sent_again_and_silence_is_denied() {
    let (mut gate, mut mobile) = (gate(Method::Chap), mobile(Method::Chap, "shared"));
    let first = gate.out.remove(0).1;
    gate.advance(RESTART_NS);
    let second = carry(&mut gate, &mut mobile).remove(0);
    assert!(first[1] != second[1] && first[5..21] != second[5..21], "each challenge is another");
    carry(&mut mobile, &mut gate);
    // The reply is lost: the response comes again, and is answered again.
    gate.out.clear();
    mobile.advance(RESTART_NS);
    carry(&mut mobile, &mut gate);
    carry(&mut gate, &mut mobile);
    assert!(gate.is_done() && mobile.is_done());
    for mut end in [self::gate(Method::Chap), self::gate(Method::Pap), self::mobile(Method::Pap, "shared")] {
        let mut said = 0;
        while let Some(at_ns) = end.deadline_ns() {
            assert!(at_ns <= 10 * RESTART_NS);
            end.advance(at_ns);
            said += std::mem::take(&mut end.out).len();
        }
        assert!(said <= 10 && end.take_denial().is_some());
    }
}

#[test]
fn packets_of_nobodys_protocol_and_cut_ones_change_nothing() {
    let mut gate = gate(Method::Chap);
    let challenge = Packet { code: CHALLENGE, identifier: 1, data: &[16, 1] };
    assert!(!gate.receive(0, CHAP, challenge) && !gate.receive(0, PAP, Packet { code: PAP_REQUEST, ..challenge }));
    for data in [&[][..], &[16], &[200, 1, 2], &[0]] {
        assert!(gate.receive(0, CHAP, Packet { code: RESPONSE, identifier: 99, data }));
        assert!(!gate.is_done() && gate.take_denial().is_none());
        let mut mobile = mobile(Method::Chap, "shared");
        assert!(mobile.receive(0, CHAP, Packet { code: CHALLENGE, identifier: 1, data }));
        assert!(mobile.out.is_empty());
    }
}
