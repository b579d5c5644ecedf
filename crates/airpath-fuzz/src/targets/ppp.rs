// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A serial line with PPP: the first byte chooses how the rest comes. Either the bytes are the line's, or they are cut
//! into frames with right sequences, so that changes reach the options and the automaton. Afterwards the end must
//! still negotiate with a peer of its kind, once the line has been up anew (a peer may have said that it knows no IPCP).
//! Or they are noise on the line between two ends, which must open again by themselves.

use std::net::Ipv4Addr;

use airpath_ppp::{Authentication, Configuration, Credentials, Endpoint, Fcs, Framer, Method};

const PROTOCOLS: [u16; 6] = [0xc021, 0x8021, 0x8057, 0x0021, 0xc023, 0xc223];
const SECOND_NS: u64 = 1_000_000_000;

pub fn run(input: &[u8]) {
    let (&mode, bytes) = input.split_first().unwrap_or((&0, &[]));
    let mut ends = [end(1, Some(Ipv4Addr::new(10, 0, 0, 1)), mode), end(2, None, mode)];
    ends.iter_mut().for_each(|end| end.open(0));
    if mode & 1 == 1 {
        exchange(&mut ends, 0, SECOND_NS);
    }
    let mut now_ns = SECOND_NS;
    if mode & 4 == 4 {
        let mut noise = Noise { script: bytes, passes: 0 };
        exchange_by(&mut ends, now_ns, now_ns + 100 * SECOND_NS, |line| noise.damage(line));
        exchange(&mut ends, now_ns + 100 * SECOND_NS, now_ns + 300 * SECOND_NS);
        for end in &ends {
            assert!(end.ipv4_open(), "not open after noise: {:?}, {:?}", end.state(), end.down());
        }
        return;
    }
    if mode & 2 == 0 {
        ends[0].receive(now_ns, bytes);
    } else {
        // A frame: a byte for its protocol, one for its length, and its contents.
        let mut rest = bytes;
        while let [protocol, length, contents @ ..] = rest {
            let (information, behind) = contents.split_at(contents.len().min(usize::from(*length)));
            let mut line = Vec::new();
            Framer::new(Fcs::Bits16).write(PROTOCOLS[usize::from(*protocol) % PROTOCOLS.len()], information, &mut line);
            ends[0].receive(now_ns, &line);
            now_ns += SECOND_NS / 10;
            rest = behind;
        }
    }
    assert!(ends[0].line().len() < 1 << 20, "{} bytes wait for the line", ends[0].line().len());
    exchange(&mut ends, now_ns, now_ns + 200 * SECOND_NS);
    now_ns += 200 * SECOND_NS;
    ends.iter_mut().for_each(|end| end.restart(now_ns));
    exchange(&mut ends, now_ns, now_ns + 100 * SECOND_NS);
    for end in &ends {
        assert!(end.ipv4_open(), "no addresses after the input: {:?}, {:?}", end.state(), end.down());
    }
}

/// The first end demands the name of the second one, and may have long sequences, as bits of `mode` say.
fn end(magic_number: u32, address: Option<Ipv4Addr>, mode: u8) -> Endpoint {
    let peer_address = address.map(|_| Ipv4Addr::new(10, 0, 0, 2));
    let peers = vec![Credentials { name: b"mobile".to_vec(), password: b"s3cret".to_vec() }];
    let demanded = match (address.is_some(), mode >> 3 & 3) {
        (true, 1) => Some(Method::Pap),
        (true, 2) => Some(Method::Chap),
        _ => None,
    };
    let authentication = Authentication { ours: peers.first().cloned(), demanded, peers, ..Authentication::default() };
    let long_sequences = mode & 32 == 32;
    Endpoint::new(Configuration {
        address,
        peer_address,
        magic_number,
        authentication,
        long_sequences,
        ..Configuration::default()
    })
}

/// Noise by a script: each byte says how many bytes pass, and what happens to the next one.
struct Noise<'a> {
    script: &'a [u8],
    passes: u8,
}

impl Noise<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.script.split_first() else { return 0 };
        self.script = rest;
        *first
    }

    fn damage(&mut self, line: Vec<u8>) -> Vec<u8> {
        let mut noisy = Vec::with_capacity(line.len());
        for byte in line {
            if self.passes > 0 || self.script.is_empty() {
                self.passes = self.passes.saturating_sub(1);
                noisy.push(byte);
                continue;
            }
            let step = self.next();
            self.passes = step >> 2;
            match step & 3 {
                0 => noisy.push(byte ^ self.next()),
                1 => {}
                2 => noisy.extend([byte, self.next()]),
                _ => noisy.extend([byte, 0x7d, 0x7e]),
            }
        }
        noisy
    }
}

/// Carries bytes to and fro; time goes on when nothing is left to carry.
fn exchange(ends: &mut [Endpoint; 2], now_ns: u64, until_ns: u64) {
    exchange_by(ends, now_ns, until_ns, |line| line);
}

fn exchange_by(ends: &mut [Endpoint; 2], mut now_ns: u64, until_ns: u64, mut carry: impl FnMut(Vec<u8>) -> Vec<u8>) {
    while now_ns < until_ns {
        for sender in 0..2 {
            let bytes = carry(std::mem::take(ends[sender].line()));
            ends[1 - sender].receive(now_ns, &bytes);
        }
        if ends.iter_mut().all(|end| end.line().is_empty()) {
            let next_ns = ends.iter().filter_map(Endpoint::next_deadline_ns).min().unwrap_or(until_ns);
            now_ns = next_ns.clamp(now_ns + 1, until_ns.max(now_ns + 1));
            ends.iter_mut().for_each(|end| end.advance(now_ns));
        }
    }
}
