// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Filter expressions choose the packets that libpcap chooses, and errors show their place.

use std::io::Write;
use std::process::{Command, Stdio};

use airpath_packet::PacketFilter;
use airpath_packet::protocol::{ICMP, ICMPV6, TCP, UDP};
use proptest::prelude::*;

fn ipv4(protocol: u8, ends: [u8; 2], fragment: u16, contents: &[u8]) -> Vec<u8> {
    let length = (20 + contents.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, ends[0], 10, 0, 1, ends[1]];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet.extend(contents);
    packet
}

fn ipv6(protocol: u8, ends: [u8; 2], contents: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, contents.len() as u8, protocol, 64];
    for end in ends {
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    packet.extend(contents);
    packet
}

fn udp(ports: [u16; 2], contents: &[u8]) -> Vec<u8> {
    let words = [ports[0], ports[1], 8 + contents.len() as u16, 0];
    words.iter().flat_map(|word| word.to_be_bytes()).chain(contents.iter().copied()).collect()
}

fn tcp(ports: [u16; 2], flags: u8, contents: &[u8]) -> Vec<u8> {
    let mut segment: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    segment.extend(contents);
    segment
}

/// Packets of each protocol between few ends and ports, so that expressions match some of them.
fn packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (number, ports) in [[53, 40_000], [40_000, 53], [5000, 5001], [443, 80], [80, 53]].into_iter().enumerate() {
        let ends = [number as u8 + 1, number as u8 % 2 + 1];
        let contents = vec![0x80; number * 17];
        for flags in [2, 0x12, 0x10, 1, 4] {
            all.push(ipv4(TCP, ends, 0, &tcp(ports, flags, &contents)));
        }
        all.push(ipv4(UDP, ends, 0, &udp(ports, &contents)));
        all.push(ipv4(UDP, ends, 0x2000, &udp(ports, &contents)));
        all.push(ipv4(UDP, ends, 0x0010, &udp(ports, &contents)));
        all.push(ipv4(ICMP, ends, 0, &[8 * (number as u8 % 2), 0, 0, 0, 0, 0, 0, number as u8]));
        all.push(ipv4(132, ends, 0, &udp(ports, &contents)));
        all.push(ipv6(TCP, ends, &tcp(ports, 2, &contents)));
        all.push(ipv6(UDP, ends, &udp(ports, &contents)));
        all.push(ipv6(ICMPV6, ends, &[128, 0, 0, 0, 0, 0, 0, 0]));
    }
    all
}

/// A capture (pcap, link type raw) whose stamps are the numbers of the packets.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    for (number, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        bytes.extend([number as u32, 0, length, length].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(packet);
    }
    bytes
}

/// Numbers of the packets that tcpdump chooses; none where it refuses the expression.
fn chosen_by_tcpdump(capture: &[u8], expression: &str) -> Option<Vec<usize>> {
    let mut child = Command::new("tcpdump")
        .args(["-nn", "-tt", "-q", "-r", "-", expression])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It does not read where it refuses the expression.
    let _ = child.stdin.take().unwrap().write_all(capture);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let stamps = text.lines().filter_map(|line| line.split_once(".000000 ")?.0.parse().ok());
    output.status.success().then(|| stamps.collect())
}

const EXPRESSIONS: [&str; 50] = [
    "",
    "ip",
    "ip6",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "sctp",
    "not tcp",
    "udp and port 53",
    "udp port 53",
    "tcp src port 53",
    "dst port 53",
    "src or dst port 80",
    "src and dst port 53",
    "port 53 or 443",
    "not port 53",
    "host 10.0.0.1",
    "src 10.0.0.2",
    "dst host 10.0.1.1",
    "host 10.0.0.1 or 10.0.0.3",
    "net 10.0.0.0/24",
    "dst net 10.0.0.0/24",
    "net 10",
    "src net 10.0.1",
    "net 10.0.1.0 mask 255.255.255.0",
    "ip6 host fd00::1",
    "src fd00::2",
    "net fd00::/16",
    "ip host 10.0.0.4",
    "portrange 5000-5010",
    "udp portrange 50-100",
    "ip and tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "ip and tcp[13] = 2",
    "ip[8] < 65",
    "ip[6:2] & 0x1fff != 0",
    "less 60",
    "greater 60",
    "len > 60 and len <= 90",
    "icmp[icmptype] = icmp-echo",
    "icmp[0] == 8 || tcp",
    "(tcp or udp) && !(port 53)",
    "tcp or udp and port 53",
    "not tcp or not udp",
    "ip and udp[4:2] > 20",
    "ip and not tcp[13] & 16 != 0",
    "ip proto 17",
    "proto 6",
    "ip[2:2] - 20 = len - 20",
    "ip[9] * 2 + 1 == 35 and ip[0] & 0xf = 5",
];

#[test]
fn packets_are_chosen_as_by_libpcap() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("not compared with libpcap: tcpdump is not installed");
        return;
    }
    let packets = packets();
    let capture = capture(&packets);
    for expression in EXPRESSIONS {
        let filter = PacketFilter::parse(expression).unwrap_or_else(|error| panic!("{error}"));
        let ours: Vec<_> = (0..packets.len())
            .filter(|number| filter.matches(&packets[*number], packets[*number].len() as u32))
            .collect();
        assert_eq!(Some(&ours), chosen_by_tcpdump(&capture, expression).as_ref(), "{expression}");
    }
}

fn matches(expression: &str, packet: &[u8]) -> bool {
    PacketFilter::parse(expression).unwrap().matches(packet, packet.len() as u32)
}

#[test]
fn words_of_recognisers_choose_by_contents() {
    let over_udp = |ports, contents: &[u8]| ipv4(UDP, [1, 2], 0, &udp(ports, contents));
    let over_tcp = |contents: &[u8]| ipv6(TCP, [1, 2], &tcp([40_000, 443], 0x18, contents));
    let rtp = over_udp([5004, 5004], &[0x80, 0xe0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 1, 2, 3]);
    let rtcp = over_udp([5005, 5005], &[0x80, 200, 0, 1, 0, 0, 0, 9]);
    let quic = over_udp([40_000, 443], &[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    let short = over_udp([443, 40_000], &[0x41, 1, 2, 3]);
    let dns = over_udp([40_000, 53], &[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let http = over_tcp(b"GET / HTTP/1.1\r\n");
    let mut hello = vec![22, 3, 1, 0, 67, 1, 0, 0, 63, 3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0x13, 1, 1, 0, 0, 20, 0, 0, 0, 16, 0, 14, 0, 0, 11]);
    hello.extend(b"example.org");
    let tls = over_tcp(&hello);
    let lcp = [0xff, 3, 0xc0, 0x21, 9, 7, 0, 8, 1, 2, 3, 4];
    let in_gre = |flags: u8, frame: &[u8]| [&[flags, 1, 0x88, 0x0b, 0, 12, 0, 24, 0, 0, 0, 5], frame].concat();
    let ppp = ipv4(47, [1, 2], 0, &in_gre(0x30, &lcp));
    let all =
        [("rtp", &rtp), ("rtcp", &rtcp), ("quic", &quic), ("dns", &dns), ("http", &http), ("tls", &tls), ("ppp", &ppp)];
    for (word, _) in all {
        for (other, packet) in all {
            assert_eq!(matches(word, packet), word == other, "{word} of a packet of {other}");
        }
    }
    let reads_contents = |text| PacketFilter::parse(text).unwrap().reads_contents();
    assert!(reads_contents("udp and not (tcp or rtp)") && reads_contents("sni example.org"));
    assert!(!reads_contents("udp and not (tcp[13] = 2 or port 53)"));
    assert!(matches("ppp", &over_udp([1_701, 1_701], &[&[0, 2, 0, 7, 0, 9], &lcp[..]].concat())));
    // A control message, another port, an acknowledgement alone, other contents of GRE.
    let control = [0x80, 2, 0, 7, 0, 0, 0, 1, 0, 2, 0xc0, 0x21];
    assert!(!matches("ppp", &over_udp([1_701, 1_701], &control)));
    assert!(!matches("ppp", &over_udp([1_700, 1_702], &[&[0, 2, 0, 7, 0, 9], &lcp[..]].concat())));
    assert!(!matches("ppp", &ipv4(47, [1, 2], 0, &in_gre(0x30, &[]))));
    assert!(!matches("ppp", &ipv4(47, [1, 2], 0, &in_gre(0x10, &lcp))));
    assert!(matches("quic", &short));
    assert!(matches("rtp ssrc 9 and rtp payload-type 96", &rtp));
    assert!(!matches("rtp ssrc 8", &rtp) && !matches("rtp payload-type 0", &rtp));
    assert!(matches("sni Example.org", &tls) && !matches("sni example.com", &tls));
    assert!(!matches("sni example.org", &tls[..tls.len() - 1]), "the name is cut off");
}

#[test]
fn cut_packets_match_neither_a_test_nor_its_negation() {
    let packet = ipv4(UDP, [1, 2], 0, &udp([53, 53], &[]));
    for filter in ["port 53", "not port 53", "udp[4:2] = 8", "not udp[4:2] = 8"] {
        assert!(!PacketFilter::parse(filter).unwrap().matches(&packet[..20], 28), "{filter}");
    }
    assert!(PacketFilter::parse("udp and len = 28").unwrap().matches(&packet[..20], 28));
}

#[test]
fn errors_show_their_place() {
    let error = |text: &str| PacketFilter::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("udp and prot 53"),
        "the filter is wrong at character 9: `prot` is no condition; did you mean `port`?\n  udp and prot 53\n          ^"
    );
    assert!(error("udp or or").contains("`or` is no condition\n"), "the word itself is no better one");
    for (text, at, part) in [
        ("udp and", 8, "ends where"),
        ("(udp", 5, "`)` is missing"),
        ("udp)", 4, "never opened"),
        ("port 70000", 6, "0 to 65535"),
        ("tcp[13", 7, "`]` is missing"),
        ("tcp[13:3] = 1", 8, "1, 2 or 4"),
        ("tcp[13]", 8, "comparison"),
        ("host example.org", 6, "not looked up"),
        ("net 10.0.0.1/8", 14, "must be 0"),
        ("ip host ::1", 9, "other version"),
        ("icmp port 7", 6, "no ports"),
        ("len / 0 = 1 and ?", 17, "no word"),
        ("len/0 = 1", 5, "divides by zero"),
        ("len 7", 5, "comparison"),
        ("udp tcp", 5, "`and` or `or` is missing"),
    ] {
        let error = error(text);
        assert!(error.starts_with(&format!("the filter is wrong at character {at}: ")), "{text}: {error}");
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(error(&"(".repeat(100)).contains("64"));
    assert!(error(&"a".repeat(5000)).contains("at most 4096"));
}

proptest! {
    #[test]
    fn nothing_panics(text in "[ -~]{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..90), length: u32) {
        if let Ok(filter) = PacketFilter::parse(&text) {
            filter.matches(&bytes, length);
        }
        for filter in EXPRESSIONS.iter().chain(&["rtp", "rtcp", "quic", "dns", "http", "tls", "ppp", "sni a"]) {
            PacketFilter::parse(filter).unwrap().matches(&bytes, length);
        }
    }
}
