// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Replay of captures: packets leave at the file's times, whatever its format.

use std::path::PathBuf;

use airpath_core::{Ecn, End, Payload, Seed, Time};
use airpath_endpoints::{Options, endpoints};
use airpath_workload::Workload;

use crate::common::{Run, link, run};

/// A file that goes when it is dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("airpath-endpoints-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A UDP packet of `len` bytes from 10.0.0.`from` to 10.0.0.`to`, with class 46 and ECT(0).
fn ipv4(from: u8, to: u8, len: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 46 << 2 | 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet.resize(usize::from(len), 0xaa);
    packet
}

/// A TCP packet over IPv6 with a header of 32 bytes.
fn ipv6(from: u8, to: u8) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 32, 6, 64];
    for last in [from, to] {
        packet.extend([0xfd; 15]);
        packet.push(last);
    }
    packet.resize(72, 0);
    packet[52] = 8 << 4;
    packet
}

/// Three packets: when in nanoseconds, and what.
fn packets() -> Vec<(u64, Vec<u8>)> {
    const BASE: u64 = 1_700_000_000_000_000_000;
    vec![
        (BASE + 999_999_000, ipv4(2, 1, 100)),
        (BASE + 1_000_000_000, ipv4(1, 2, 40)),
        (BASE + 3_500_001_000, ipv4(2, 1, 1_500)),
    ]
}

const OFFSETS: [u64; 3] = [0, 1_000, 2_500_002_000];

fn pcap(big: bool, nanoseconds: bool, link_type: u32, frame: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let magic: u32 = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = [&word(magic)[..], &half(2), &half(4), &word(0), &word(0), &word(65_535), &word(link_type)].concat();
    for (at, packet) in packets() {
        let frame = frame(&packet);
        let fraction = (at % 1_000_000_000) / if nanoseconds { 1 } else { 1_000 };
        let fields = [(at / 1_000_000_000) as u32, fraction as u32, frame.len() as u32, frame.len() as u32];
        file.extend(fields.into_iter().flat_map(word));
        file.extend(frame);
    }
    file
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = word(body.len() as u32 + 12);
    [&word(kind)[..], &length, &body, &length].concat()
}

fn pcapng(big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    // Raw IP with stamps in nanoseconds, after an interface in microseconds that nothing came from.
    let unused = [&half(1)[..], &half(0), &word(0)].concat();
    let interface =
        [&half(101)[..], &half(0), &word(0), &half(9), &half(1), &[9, 0, 0, 0], &half(0), &half(0)].concat();
    let mut file = [block(big, 0x0a0d_0d0a, &section), block(big, 1, &unused), block(big, 1, &interface)].concat();
    for (at, packet) in packets() {
        let length = word(packet.len() as u32);
        let body = [&word(1)[..], &word((at >> 32) as u32), &word(at as u32), &length, &length, &packet].concat();
        file.extend(block(big, 6, &body));
    }
    // Statistics, which are of no interest.
    file.extend(block(big, 5, &[0; 12]));
    file
}

fn replay(name: &str, bytes: &[u8], keys: &str, options: &Options) -> Run {
    let file = File::new(name, bytes);
    let text = format!("pcap file='{}' {keys}", file.0.display());
    run(link("", 1), &[&text], options, 1, Time::NEVER)
}

fn refusal(name: &str, bytes: &[u8], keys: &str) -> String {
    let file = File::new(name, bytes);
    let workload = Workload::parse(&format!("pcap file='{}' {keys}", file.0.display())).unwrap();
    endpoints(&workload, 0, Seed(1), &Options::default()).err().expect("a refusal").to_string()
}

#[test]
fn packets_leave_at_the_times_of_the_file_in_every_format() {
    let ethernet = |packet: &[u8]| [&[0; 12][..], &[8, 0], packet, &[0xee; 6]].concat();
    let vlan = |packet: &[u8]| [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0], packet].concat();
    let cooked = |packet: &[u8]| [&[0; 14][..], &[8, 0], packet].concat();
    let cooked2 = |packet: &[u8]| [&[8, 0][..], &[0; 18], packet].concat();
    let loopback = |packet: &[u8]| [&[2, 0, 0, 0][..], packet].concat();
    let files = [
        ("raw", pcap(false, true, 101, <[u8]>::to_vec)),
        ("big-endian", pcap(true, true, 101, <[u8]>::to_vec)),
        ("microseconds", pcap(false, false, 101, <[u8]>::to_vec)),
        ("ethernet", pcap(false, true, 1, ethernet)),
        ("vlan", pcap(true, false, 1, vlan)),
        ("cooked", pcap(false, true, 113, cooked)),
        ("cooked2", pcap(false, true, 276, cooked2)),
        ("loopback", pcap(false, true, 0, loopback)),
        ("pcapng", pcapng(false)),
        ("pcapng-big-endian", pcapng(true)),
    ];
    for (name, bytes) in files {
        let run = replay(name, &bytes, "start='1 s'", &Options::default());
        let expected: Vec<(u64, End, u32)> = OFFSETS
            .iter()
            .zip([(End::Client, 100), (End::Server, 40), (End::Client, 1_500)])
            .map(|(offset, (end, len))| (offset + 1_000_000_000, end, len))
            .collect();
        assert_eq!(run.trace(), expected, "{name}");
        let pdu = &run.sent[0].pdu;
        assert_eq!((pdu.class, pdu.ecn, pdu.header_len), (46, Ecn::Ect0, 28), "{name}");
        assert_eq!((pdu.tuple.protocol, pdu.tuple.source >> 8), (17, 10 << 16), "{name}");
        assert_eq!((pdu.tuple.source_port, pdu.tuple.destination_port), (0xaaaa, 0xaaaa), "{name}");
        let report = &run.reports[0];
        assert_eq!(report.end_ns, Some(1_000_000_000 + OFFSETS[2]), "{name}");
        assert_eq!(report.uplink.as_ref().unwrap().delivered_bytes, 1_600 - 56, "{name}");
    }
}

#[test]
fn the_client_is_who_it_is_said_to_be() {
    let bytes = pcap(false, true, 101, <[u8]>::to_vec);
    let ends = |keys: &str| {
        let run = replay(&keys.replace(['=', '.', ' '], "-"), &bytes, keys, &Options::default());
        run.sent.iter().map(|passed| passed.end).collect::<Vec<_>>()
    };
    use End::{Client, Server};
    assert_eq!(ends(""), [Client, Server, Client]);
    assert_eq!(ends("client=10.0.0.1"), [Server, Client, Server]);
    assert_eq!(ends("from=server"), [Server, Server, Server]);
    assert_eq!(ends("from=client packets=2"), [Client, Client]);
    assert_eq!(ends("from=client duration=2s"), [Client, Client]);
}

#[test]
fn bytes_are_those_of_the_capture_and_zeros_behind() {
    let options = Options { bytes: true, ..Options::default() };
    let mut bytes = pcap(false, true, 101, |packet| packet[..60.min(packet.len())].to_vec());
    let run = replay("snaplen", &bytes, "", &options);
    let Payload::Whole(first) = &run.sent[0].pdu.payload else { panic!() };
    assert_eq!((first.len(), &first[..60], &first[60..]), (100, &ipv4(2, 1, 100)[..60], &[0; 40][..]));
    // A record cut short is left out, and IPv6 is read as well.
    bytes.truncate(bytes.len() - 1);
    assert_eq!(replay("torn", &bytes, "", &options).sent.len(), 2);
    let run = replay("ipv6", &pcap(false, true, 101, |_| ipv6(2, 1)), "", &options);
    assert_eq!((run.sent[0].pdu.len, run.sent[0].pdu.header_len, run.sent[0].end), (72, 72, End::Client));
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let raw = pcap(false, true, 101, <[u8]>::to_vec);
    let arp = pcap(false, true, 1, |_| [&[0; 12][..], &[8, 6], &[0; 46]].concat());
    let large = pcap(false, true, 101, |_| ipv4(2, 1, 3_000));
    for (name, bytes, keys, part) in [
        ("nothing", &b"x"[..], "", "too short"),
        ("text", b"hello, world", "", "neither as pcap nor as pcapng"),
        ("arp", &arp, "", "no IP packet"),
        ("usb", &pcap(false, true, 189, <[u8]>::to_vec), "", "link type 189"),
        ("stranger", &raw, "client=10.0.0.9", "none of its 3 IP packets is sent by 10.0.0.9 or to it"),
        ("large", &large, "", "packet 1 (in order of time) has 3000 bytes, above the MTU of 1500"),
    ] {
        let message = refusal(name, bytes, keys);
        assert!(message.contains(part) && message.starts_with("file="), "{name}: {message}");
    }
    let workload = Workload::parse("pcap file=/nowhere/at.all").unwrap();
    let error = endpoints(&workload, 0, Seed(1), &Options::default()).err().unwrap().to_string();
    assert!(error.starts_with("file=/nowhere/at.all: No such file"), "{error}");
}

#[test]
fn a_damaged_capture_is_read_or_refused_and_never_a_panic() {
    let workload = |file: &File| Workload::parse(&format!("pcap file='{}'", file.0.display())).unwrap();
    let mut state = 1u64;
    let mut dice = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let (mut taken, mut refused) = (0, 0);
    for original in [pcap(true, false, 1, |packet| [&[0; 12][..], &[8, 0], packet].concat()), pcapng(false)] {
        for _ in 0..300 {
            let mut bytes = original.clone();
            // Mostly within the headers, where it matters.
            for _ in 0..1 + dice(4) {
                let at = dice(bytes.len().min(200));
                bytes[at] = dice(256) as u8;
            }
            bytes.truncate(bytes.len() - dice(3) * dice(200));
            let file = File::new("damaged", &bytes);
            match endpoints(&workload(&file), 0, Seed(1), &Options::default()) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(taken > 50 && refused > 50, "{taken} {refused}");
}
