// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets as text, line by line against tcpdump's text of the same capture.

mod packets;

use std::io::Write as _;
use std::process::{Command, Stdio};

use airpath_packet::protocols::{Sequences, describe, ppp};
use packets::{Random, Segment, dns_messages, extended, icmp, icmp6, ip4, ip4_between, ip6, joined, tcp, udp};

const RAW: u32 = 101;
const PPP: u32 = 9;

/// The lines of tcpdump; none where it is not installed, or a version with other texts.
fn lines_of_tcpdump(link: u32, packets: &[Vec<u8>], options: &[&str]) -> Option<Vec<String>> {
    let version = Command::new("tcpdump").arg("--version").output().ok()?;
    let told = String::from_utf8_lossy(&[version.stdout, version.stderr].concat()).into_owned();
    if !told.contains("tcpdump version 4.99") {
        eprintln!("not compared: the texts are those of tcpdump 4.99, and this is {told}");
        return None;
    }
    let mut file: Vec<u8> =
        [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    for packet in packets {
        let length = packet.len() as u32;
        file.extend([0, 0, length, length].iter().flat_map(|word: &u32| word.to_le_bytes()));
        file.extend(packet);
    }
    let mut child = Command::new("tcpdump")
        .args(["-n", "-t", "-r", "-"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let writer = std::thread::spawn(move || input.write_all(&file));
    let output = child.wait_with_output().ok()?;
    writer.join().unwrap().unwrap();
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect();
    assert_eq!(lines.len(), packets.len(), "a line for each packet");
    Some(lines)
}

fn ours(packets: &[Vec<u8>]) -> Vec<String> {
    let mut sequences = Sequences::default();
    packets.iter().map(|packet| describe(packet, packet.len() as u32, &mut sequences)).collect()
}

#[test]
fn tunnels_within_tunnels_end_in_an_ellipsis() {
    let mut packet = ip4(59, &[]);
    for _ in 0..1000 {
        let frame = [&[0xff, 3, 0, 0x21][..], &packet].concat();
        packet = ip4(47, &[&[0x30, 1, 0x88, 0x0b, 0, 12, 0, 24, 0, 0, 0, 5][..], &frame].concat());
    }
    let text = describe(&packet, packet.len() as u32, &mut Sequences::default());
    assert_eq!(text.matches("GREv1").count(), 9, "{text}");
    assert!(text.contains('…'), "{text}");
}

/// Compares every line, and returns how many there were.
fn compare(packets: &[Vec<u8>], options: &[&str], is_same: impl Fn(&str, &str) -> bool) -> usize {
    compare_lines(&ours(packets), RAW, packets, options, is_same)
}

fn compare_lines(
    ours: &[String],
    link: u32,
    packets: &[Vec<u8>],
    options: &[&str],
    is_same: impl Fn(&str, &str) -> bool,
) -> usize {
    let Some(theirs) = lines_of_tcpdump(link, packets, options) else { return 0 };
    let different: Vec<String> = ours
        .iter()
        .zip(&theirs)
        .filter(|(ours, theirs)| !is_same(ours, theirs))
        .map(|(ours, theirs)| format!("\n  {ours}\nnot {theirs}"))
        .collect();
    assert!(different.is_empty(), "{} lines differ:{}", different.len(), different.concat());
    ours.len()
}

fn equal(ours: &str, theirs: &str) -> bool {
    ours == theirs
}

/// The beginning is tcpdump's, and more is told behind it.
fn longer(ours: &str, theirs: &str) -> bool {
    ours.strip_prefix(theirs).is_some_and(|more| more.starts_with(": "))
}

#[test]
fn segments_of_tcp() {
    let mut random = Random(11);
    let options: [&[u8]; 11] = [
        &[],
        &[1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6],
        &[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 1, 3, 3, 7],
        &[1, 1, 5, 10, 0, 0, 3, 0, 0, 0, 4, 0],
        &[1, 1, 5, 18, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0],
        &[34, 2, 1, 1],
        &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1],
        &[0, 0, 0, 0],
        &[77, 4, 1, 2],
        &[8, 4, 0, 1],
        &[5, 6, 1, 2, 3, 4, 1, 1],
    ];
    let mut packets = Vec::new();
    for _ in 0..400 {
        let length = [0, 0, 1, 30][random.below(4) as usize];
        let data = random.bytes(length);
        let ends = [[1, 2], [2, 1]][random.below(2) as usize];
        let ports = [1_000 + random.below(4) as u16, 1_002 + random.below(3) as u16];
        let ports = if ends == [1, 2] { ports } else { [ports[1], ports[0]] };
        let segment = Segment {
            ports,
            numbers: [random.next() as u32, random.next() as u32],
            flags: random.next() as u8,
            options: options[random.below(11) as usize],
            data: &data,
        };
        packets.push(match random.below(2) {
            0 => ip4_between(6, &segment.bytes(), ends, 0x4000),
            _ => ip6(6, &segment.bytes()),
        });
    }
    let mut short = tcp([1, 2], 2, b"abcd");
    short[12] = 0x30;
    packets.push(ip4(6, &short));
    short[12] = 0xf0;
    packets.push(ip4(6, &short));
    packets.push(ip4(6, &short[..12]));
    packets.push(ip4(6, &short[..3]));
    packets.push(ip6(6, &short[..3]));
    assert_ne!(compare(&packets, &[], equal), 1);
}

#[test]
fn datagrams() {
    let mut packets = Vec::new();
    for length in [0, 1, 12, 1_400] {
        let datagram = udp(5_000, 5_001, &vec![0x55; length]);
        packets.extend([ip4(17, &datagram), ip6(17, &datagram)]);
    }
    let mut wrong = udp(5_000, 5_001, b"abcd");
    for stated in [0, 7, 8, 9, 12, 13, 100] {
        wrong[5] = stated;
        packets.extend([ip4(17, &wrong), ip6(17, &wrong)]);
    }
    packets.extend([ip4(17, &wrong[..5]), ip4(17, &wrong[..2])]);
    let mut padded = ip4(17, &udp(5_000, 5_001, b"ab"));
    padded.extend(b"padding");
    packets.push(padded.clone());
    padded[3] = 200;
    packets.push(padded.clone());
    padded[3] = 10;
    packets.push(padded);
    let mut padded = ip6(17, &udp(5_000, 5_001, b"ab"));
    padded[5] = 99;
    packets.push(padded);
    compare(&packets, &[], equal);
}

#[test]
fn messages_of_icmp_and_extension_headers() {
    compare(&icmp(), &[], equal);
    compare(&icmp6(), &[], equal);
    compare(&extended(), &[], equal);
}

#[test]
fn messages_of_dns() {
    let messages = dns_messages(&mut Random(12));
    let over_udp = |(port, message): &(u16, Vec<u8>)| ip4(17, &udp(40_000, *port, message));
    compare(&messages.iter().map(over_udp).collect::<Vec<_>>(), &[], equal);
    let over_tcp = |(_, message): &(u16, Vec<u8>)| {
        let data = joined(&[&(message.len() as u16).to_be_bytes(), message]);
        ip4(6, &tcp([40_000, 53], 0x18, &data))
    };
    let packets: Vec<_> =
        messages.iter().filter(|(port, bytes)| *port == 53 && bytes.len() > 12).map(over_tcp).collect();
    compare(&packets, &[], equal);
}

#[test]
fn requests_of_http_and_what_is_told_behind_the_line_of_tcpdump() {
    let lines: [&[u8]; 8] = [
        b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhi",
        b"HTTP/1.0 404 Not Found\n",
        b"POST /a?b=c HTTP/1.1",
        b"DELETE /x HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
        b"random data\r\nmore",
        b"",
    ];
    let at = |port: u16| lines.iter().map(move |line| ip4(6, &tcp([40_000, port], 0x18, line))).collect::<Vec<_>>();
    for port in [80, 8_080] {
        compare(&at(port), &[], equal);
    }
    compare(&at(8_000)[..6], &[], longer);
    let hello = client_hello("example.org");
    let packets = [
        ip4(6, &tcp([40_000, 443], 0x18, &hello)),
        ip4(6, &tcp([40_000, 443], 0x18, &[23, 3, 3, 0, 5, 1, 2, 3, 4, 5])),
        ip4(17, &udp(50_000, 443, &joined(&[&[0xc3, 0, 0, 0, 1, 8], b"abcdefgh", &[4], b"ijkl", &[0, 0x44, 0x9e]]))),
        ip4(17, &udp(50_000, 443, &[0x41; 40])),
        ip6(17, &udp(443, 50_000, &[0x80, 0, 0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 1])),
    ];
    compare(&packets, &[], longer);
    let told = ours(&packets);
    assert!(told[0].ends_with(": TLS, ClientHello, server name example.org"), "{}", told[0]);
    assert!(told[1].ends_with(": TLS, application data"), "{}", told[1]);
    assert!(told[2].ends_with(": QUIC, initial, version 1, dcid 0x6162636465666768, scid 0x696a6b6c"), "{}", told[2]);
    assert!(told[3].ends_with(": QUIC, protected"), "{}", told[3]);
    assert!(told[4].ends_with(": QUIC, version negotiation, dcid 0x0102, scid 0x"), "{}", told[4]);
}

fn client_hello(name: &str) -> Vec<u8> {
    let length = name.len() as u16;
    let mut extension = vec![0, 0];
    for bytes in [length + 5, length + 3] {
        extension.extend(bytes.to_be_bytes());
    }
    extension.push(0);
    extension.extend(length.to_be_bytes());
    extension.extend(name.as_bytes());
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0x13, 1, 1, 0]);
    hello.extend((extension.len() as u16).to_be_bytes());
    hello.extend(extension);
    let mut record = vec![22, 3, 1];
    record.extend((hello.len() as u16 + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend((hello.len() as u16).to_be_bytes());
    record.extend(hello);
    record
}

#[test]
fn rtp_and_rtcp_as_with_options_of_tcpdump() {
    let mut random = Random(13);
    let packets: Vec<_> = (0..100)
        .map(|_| {
            let length = 12 + random.below(50) as usize;
            let mut rtp = random.bytes(length);
            rtp[0] = 0x80 | rtp[0] & 0x1f;
            // Neither RTCP nor H.261, of which tcpdump tells more.
            rtp[1] = (rtp[1] & 0x80) | ((rtp[1] & 0x7f) % 31);
            ip4(17, &udp(5_002, 5_004, &rtp))
        })
        .collect();
    compare(&packets, &["-T", "rtp"], equal);
    let packets: Vec<_> = (0..100)
        .map(|_| {
            let parts: Vec<u8> = (0..1 + random.below(3)).flat_map(|_| report(&mut random)).collect();
            ip4(17, &udp(5_003, 5_005, &parts))
        })
        .collect();
    compare(&packets, &["-T", "rtcp"], equal);
}

/// A packet of RTCP. Of several blocks tcpdump prints the first one as often.
fn report(random: &mut Random) -> Vec<u8> {
    let count = random.below(2) as u8;
    let kind = 200 + random.below(8) as u8;
    let bytes = match kind {
        200 => 24 + usize::from(count) * 24,
        201 => 4 + usize::from(count) * 24,
        _ => 4 + 4 * random.below(3) as usize,
    };
    joined(&[&[0x80 | count, kind, 0, (bytes / 4) as u8], &random.bytes(bytes)])
}

#[test]
fn udp_lite_is_told_where_tcpdump_has_a_number() {
    let packets = [ip4(136, &udp(5_000, 53_000, b"abcd")), ip6(136, &udp(5_000, 53_000, b"abcd"))];
    assert_eq!(
        ours(&packets),
        [
            "IP 10.0.0.1.5000 > 10.0.0.2.53000: UDP-Lite, coverage 12, length 4",
            "IP6 fd00::1.5000 > fd00::2.53000: UDP-Lite, coverage 12, length 4",
        ]
    );
    compare(&packets, &[], |_, theirs| theirs.contains("ip-proto-136 12"));
}

#[test]
fn frames_of_ppp() {
    let frame = |protocol: u16, data: &[u8]| joined(&[&[0xff, 3], &protocol.to_be_bytes(), data]);
    let coded = |code: u8, data: &[u8]| joined(&[&[code, 7, 0, 4 + data.len() as u8], data]);
    let datagram = udp(1_000, 2_000, b"a");
    let options = [1, 4, 5, 0xdc, 5, 6, 1, 2, 3, 4, 7, 2, 8, 2];
    let mut frames = vec![
        frame(0x21, &ip4(17, &datagram)),
        frame(0x57, &ip6(17, &datagram)),
        joined(&[&[0, 0x21], &ip4(17, &datagram)]),
        joined(&[&[0x21], &ip4(17, &datagram)]),
        joined(&[&[0xff, 3, 0x21], &ip4(17, &datagram)]),
        frame(0x8021, &coded(1, &[3, 6, 10, 0, 0, 1])),
        frame(0x8057, &coded(1, &[1, 10, 0, 1, 2, 3, 4, 5, 6, 7])),
        frame(0x80fd, &coded(1, &[26, 4, 0x78, 0])),
        frame(0xc023, &coded(1, b"\x04user\x04pass")),
        frame(0xc023, &coded(2, b"\x02ok")),
        frame(0xc223, &coded(1, b"\x04abcdpeer")),
        frame(0xc223, &coded(3, b"ok")),
        frame(0xc021, &[1, 2]),
        vec![0xff, 3],
    ];
    frames.extend((1..=15).map(|code| frame(0xc021, &coded(code, if code < 5 { &options } else { &options[..4] }))));
    let mut sequences = Sequences::default();
    let ours: Vec<_> =
        frames.iter().map(|frame| ppp::describe_frame(frame, frame.len() as u32, &mut sequences)).collect();
    compare_lines(&ours, PPP, &frames, &[], equal);
    let unknown = ppp::describe_frame(&frame(0x1235, b"abc"), 7, &mut sequences);
    assert_eq!(unknown, "PPP, protocol 0x1235, length 3");
}

#[test]
fn frames_of_ppp_in_tunnels() {
    let lcp = [0xff, 3, 0xc0, 0x21, 1, 7, 0, 14, 1, 4, 5, 0xdc, 5, 6, 1, 2, 3, 4];
    let inside = ip4(17, &udp(1_000, 2_000, b"a"));
    let frames =
        [lcp.to_vec(), lcp[2..].to_vec(), joined(&[&[0xff, 3, 0, 0x21], &inside]), joined(&[&[0x21], &inside])];
    let mut packets = Vec::new();
    for frame in &frames {
        let long = (frame.len() as u16).to_be_bytes();
        for (flags, numbers) in [([0x30, 1], &[0, 0, 0, 5][..]), ([0x30, 0x81], &[0, 0, 0, 5, 0, 0, 0, 3])] {
            let head = joined(&[&flags, &[0x88, 0x0b], &long, &[0, 24], numbers]);
            packets.extend([ip4(47, &joined(&[&head, frame])), ip6(47, &joined(&[&head, frame]))]);
        }
        for (flags, fields) in [
            ([0, 2], &[0, 7, 0, 9][..]),
            ([0x0a, 2], &[0, 7, 0, 9, 0, 1, 0, 2, 0, 2, 0, 0]),
            ([0x01, 2], &[0, 7, 0, 9]),
            ([0x40, 2], &[0, 60, 0, 7, 0, 9]),
        ] {
            // One that states its length has that one.
            let more =
                vec![0; if flags[0] == 0x40 { 60_usize.saturating_sub(2 + fields.len() + frame.len()) } else { 0 }];
            packets.push(ip4(17, &udp(1_701, 1_701, &joined(&[&flags, fields, frame, &more]))));
        }
    }
    let count = compare(&packets, &[], equal);
    assert!([0, packets.len()].contains(&count));
    assert!(ours(&packets).iter().all(|line| line.contains("LCP, Conf-Request") || line.contains("UDP, length 1")));
}

#[test]
fn no_beginning_of_a_packet_is_too_short() {
    let mut all = [icmp(), icmp6(), extended()].concat();
    all.extend(dns_messages(&mut Random(14)).iter().map(|(port, message)| ip4(17, &udp(9, *port, message))));
    all.push(ip4(6, &tcp([40_000, 443], 0x18, &client_hello("example.org"))));
    all.push(ip4(17, &udp(50_000, 443, &[0xc3, 0, 0, 0, 1, 2, 3, 4, 1, 5])));
    for packet in all {
        for kept in 0..packet.len() {
            let text = describe(&packet[..kept], packet.len() as u32, &mut Sequences::default());
            assert!(!text.is_empty());
            assert!(!ppp::describe_frame(&packet[..kept], kept as u32, &mut Sequences::default()).is_empty());
        }
    }
}
