// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets to be printed: every message and field that the printers tell, and random values in them.

/// Random numbers (xorshift), the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

pub fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub fn ip4(protocol: u8, data: &[u8]) -> Vec<u8> {
    ip4_between(protocol, data, [1, 2], 0x4000)
}

/// Between 10.0.0.a and 10.0.0.b, with the word of flags and offset.
pub fn ip4_between(protocol: u8, data: &[u8], [from, to]: [u8; 2], place: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + data.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(place.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    packet.extend(data);
    packet
}

/// fd00::n.
pub fn address(last: u8) -> [u8; 16] {
    [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]
}

pub fn ip6(next: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    joined(&[&[0x60, 0, 0, 0], &length, &[next, 64], &address(1), &address(2), data])
}

pub fn udp(from: u16, to: u16, data: &[u8]) -> Vec<u8> {
    let length = (8 + data.len() as u16).to_be_bytes();
    joined(&[&from.to_be_bytes(), &to.to_be_bytes(), &length, &[0, 0], data])
}

pub struct Segment<'a> {
    pub ports: [u16; 2],
    pub numbers: [u32; 2],
    pub flags: u8,
    pub options: &'a [u8],
    pub data: &'a [u8],
}

impl Segment<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let mut segment = Vec::new();
        self.ports.iter().for_each(|port| segment.extend(port.to_be_bytes()));
        self.numbers.iter().for_each(|number| segment.extend(number.to_be_bytes()));
        segment.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags, 1, 0xf6, 0, 0, 0, 9]);
        joined(&[&segment, self.options, self.data])
    }
}

pub fn tcp(ports: [u16; 2], flags: u8, data: &[u8]) -> Vec<u8> {
    Segment { ports, numbers: [101, 500], flags, options: &[], data }.bytes()
}

/// A name of DNS.
fn name(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut name: Vec<u8> = labels.flat_map(|label| joined(&[&[label.len() as u8], label.as_bytes()])).collect();
    name.push(0);
    name
}

fn dns(flags: u16, counts: [u16; 4], rest: &[u8]) -> Vec<u8> {
    let mut message = vec![0x12, 0x34];
    message.extend(flags.to_be_bytes());
    counts.iter().for_each(|count| message.extend(count.to_be_bytes()));
    message.extend(rest);
    message
}

fn question(text: &str, kind: u16, class: u16) -> Vec<u8> {
    joined(&[&name(text), &kind.to_be_bytes(), &class.to_be_bytes()])
}

/// A record for the name at the beginning of the questions.
fn record(kind: u16, class: u16, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    joined(&[&[0xc0, 12], &kind.to_be_bytes(), &class.to_be_bytes(), &[0, 0, 0, 60], &length, data])
}

/// Messages of DNS, each with the port of the asked end.
pub fn dns_messages(random: &mut Random) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    for kind in 1..=260 {
        all.push((53, dns(0x0100, [1, 0, 0, 0], &question("example.org", kind, 1))));
    }
    for _ in 0..80 {
        let flags = random.next() as u16 & 0x7fff;
        let counts = [1, random.below(2) as u16, random.below(3) as u16, random.below(3) as u16];
        all.push((53, dns(flags, counts, &question("a.b.c", 1, [1, 3, 4, 255][random.below(4) as usize]))));
    }
    let asked = question("example.org", 1, 1);
    let records = [
        record(1, 1, &[93, 184, 216, 34]),
        record(28, 1, &address(9)),
        record(5, 1, &name("www.example.net")),
        record(2, 1, &[2, b'n', b's', 0xc0, 12]),
        record(12, 1, &name("p.q")),
        record(15, 1, &joined(&[&[0, 10], &name("mx.example.org")])),
        record(16, 1, b"\x05hello\x03a b"),
        record(33, 1, &joined(&[&[0, 1, 0, 2, 0, 80], &name("s.t")])),
        record(6, 1, &joined(&[&name("ns"), &name("host"), &[0; 20]])),
        record(43, 1, &[1, 2, 3, 4]),
        record(1, 3, &[1, 2, 3, 4]),
    ];
    for record in &records {
        all.push((53, dns(0x8180, [1, 1, 0, 0], &joined(&[&asked, record]))));
    }
    for _ in 0..60 {
        let count = 1 + random.below(4) as u16;
        let some: Vec<u8> = (0..count).flat_map(|_| records[random.below(11) as usize].clone()).collect();
        let flags = 0x8000 | random.next() as u16;
        all.push((53, dns(flags, [1, count, random.below(3) as u16, 1], &joined(&[&asked, &some]))));
    }
    all.push((53, dns(0x8183, [0, 0, 1, 0], &[])));
    all.push((5353, dns(0, [1, 0, 0, 0], &question("_http._tcp.local", 12, 0x8001))));
    all.push((5353, dns(0x8400, [1, 1, 0, 0], &joined(&[&asked, &record(1, 0x8001, &[10, 0, 0, 9])]))));
    all.push((53, dns(0x0100, [1, 0, 0, 0], &question("", 2, 1))));
    all.push((53, vec![1, 2]));
    all
}

/// Messages of ICMP: kinds and codes, about a datagram, a segment and others.
pub fn icmp() -> Vec<Vec<u8>> {
    let about = |protocol, data: &[u8]| ip4_between(protocol, data, [1, 7], 0);
    let datagram = about(17, &udp(4_000, 53, b"ab"));
    let others =
        [about(6, &tcp([4_000, 80], 2, b"")), about(1, &[8; 8]), about(136, &udp(1, 2, b"")), about(132, &[0; 8])];
    let message = |kind, code, rest: [u8; 4], inner: &[u8]| ip4(1, &joined(&[&[kind, code, 0, 0], &rest, inner]));
    let mut all: Vec<_> = (0..=16).map(|code| message(3, code, [0; 4], &datagram)).collect();
    all.extend(others.iter().flat_map(|inner| [2, 3].map(|code| message(3, code, [0; 4], inner))));
    all.push(message(3, 4, [0, 0, 5, 0], &datagram));
    for (kind, code) in [(0, 0), (4, 0), (5, 0), (5, 1), (5, 2), (5, 3), (5, 9), (8, 0), (10, 0), (11, 0), (11, 1)] {
        all.push(message(kind, code, [0, 9, 0, 3], &datagram));
    }
    for (kind, code) in [(11, 5), (12, 0), (12, 1), (13, 0), (15, 0), (16, 0), (17, 0), (40, 0), (42, 1), (255, 255)] {
        all.push(message(kind, code, [0, 9, 0, 3], &datagram));
    }
    all
}

/// Messages of ICMPv6, without those that tcpdump prints with a dump behind.
pub fn icmp6() -> Vec<Vec<u8>> {
    let datagram = ip6(17, &udp(4_000, 53, b"ab"));
    let segment = ip6(6, &tcp([4_000, 80], 2, b""));
    let message = |kind, code, rest: [u8; 4], data: &[u8]| ip6(58, &joined(&[&[kind, code, 0, 0], &rest, data]));
    let mut all: Vec<_> = (0..5).map(|code| message(1, code, [0; 4], &datagram)).collect();
    all.push(message(1, 4, [0; 4], &segment));
    all.push(message(2, 0, [0, 0, 5, 0], &datagram));
    all.extend((0..3).map(|code| message(3, code, [0; 4], &datagram)));
    all.extend((0..4).map(|code| message(4, code, [0, 0, 0, 9], &datagram)));
    all.extend([128, 129].map(|kind| message(kind, 0, [0, 1, 0, 2], b"abc")));
    all.extend([130, 131, 132].map(|kind| message(kind, 0, [0, 7, 0, 0], &address(7))));
    all.push(message(130, 0, [0; 4], &joined(&[&address(7), &[0; 4]])));
    all.push(message(133, 0, [0; 4], &[]));
    all.push(message(134, 0, [0; 4], &[0; 8]));
    all.extend([135, 136].map(|kind| message(kind, 0, [0; 4], &address(7))));
    all.push(message(137, 0, [0; 4], &joined(&[&address(7), &address(8)])));
    all.push(message(143, 0, [0, 0, 0, 1], &joined(&[&[4, 0, 0, 0], &address(9)])));
    all
}

/// Packets with extension headers of IPv6, and fragments of both versions.
pub fn extended() -> Vec<Vec<u8>> {
    let datagram = udp(5_000, 5_001, b"ab");
    let first = &udp(5_000, 5_001, &[7; 60])[..24];
    let fragment =
        |next, place: u16, data: &[u8]| ip6(44, &joined(&[&[next, 0], &place.to_be_bytes(), &[0, 0, 0, 77], data]));
    let routing = |kind, data: &[u8]| ip6(43, &joined(&[&[17, 2, kind, 1, 0, 0, 0, 0], &address(5), data]));
    let padding = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    vec![
        ip6(0, &joined(&[&[58, 0, 5, 2, 0, 0, 1, 0], &[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0], &address(9)])),
        ip6(0, &joined(&[&padding(17), &datagram])),
        ip6(60, &joined(&[&padding(17), &datagram])),
        ip6(0, &joined(&[&padding(60), &padding(6), &tcp([1, 2], 2, b"")])),
        fragment(17, 1, &datagram),
        fragment(17, 0, &datagram),
        fragment(17, 1, first),
        fragment(17, 1_448 | 1, b"abcdefgh"),
        fragment(17, 1_448, b"abcdefgh"),
        fragment(58, 1, &[128, 0, 0, 0, 0, 1, 0, 2]),
        routing(0, &datagram),
        routing(4, &datagram),
        ip6(59, b""),
        ip6(59, b"abcd"),
        ip6(253, &[0; 12]),
        ip4(253, &[0; 12]),
        ip4_between(17, &datagram, [1, 2], 0x2000),
        ip4_between(17, first, [1, 2], 0x2000),
        ip4_between(17, b"abcdefgh", [1, 2], 0x2010),
        ip4_between(6, b"abcdefgh", [1, 2], 0x0010),
        ip4_between(1, b"abcdefgh", [1, 2], 0x0010),
    ]
}
