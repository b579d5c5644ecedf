// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Random filter expressions against tcpdump's on the same random packets.

use std::io::Write;
use std::process::{Command, Stdio};

use airpath_packet::PacketFilter;

/// LINKTYPE_RAW.
const RAW_IP: u32 = 101;

struct Random(u64);

impl Random {
    fn next(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % below
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len() as u32) as usize]
    }
}

/// A packet of few protocols, addresses and ports, so that conditions meet some of them.
fn packet(random: &mut Random) -> Vec<u8> {
    let protocol = random.of(&[1_u8, 6, 17, 17, 6, 58, 47]);
    let mut transport = Vec::new();
    for _ in 0..2 {
        transport.extend(random.of(&[53_u16, 80, 443, 5_000, 5_004]).to_be_bytes());
    }
    let size = if protocol == 6 { 20 } else { 8 };
    transport.resize(size, 0);
    if protocol == 6 {
        transport[12] = 0x50;
        transport[13] = random.next(64) as u8;
    } else if protocol != 17 {
        transport[0] = random.of(&[0, 3, 8, 11, 128, 129, 135]);
    }
    transport.extend((0..random.next(60)).map(|byte| byte as u8));
    let mut bytes = Vec::new();
    if random.next(3) > 0 {
        bytes.extend([0x45, random.of(&[0, 0xb8, 3])]);
        bytes.extend((20 + transport.len() as u16).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(random.of(&[0_u16, 0x4000, 0, 0x2000, 0x00b9]).to_be_bytes());
        bytes.extend([random.of(&[1_u8, 64, 255]), protocol, 0, 0]);
        for _ in 0..2 {
            bytes.extend(random.of(&[[10, 0, 0, 1], [10, 0, 0, 2], [192, 168, 7, 9], [10, 1, 2, 3]]));
        }
    } else {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend((transport.len() as u16).to_be_bytes());
        bytes.extend([protocol, 64]);
        for _ in 0..2 {
            let last = random.of(&[1_u8, 2, 3]);
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
    }
    bytes.extend(transport);
    bytes
}

/// A filter in the part of the language that both have.
fn filter(random: &mut Random, depth: u32) -> String {
    if depth > 0 && random.next(2) == 0 {
        let (one, other) = (filter(random, depth - 1), filter(random, depth - 1));
        return match random.next(4) {
            0 => format!("({one}) and ({other})"),
            1 => format!("({one}) || {other}"),
            2 => format!("not ({one}) and {other}"),
            _ => format!("{one} or {other}"),
        };
    }
    let end = random.of(&["", "src ", "dst ", "src or dst ", "src and dst "]);
    match random.next(13) {
        0 => random.of(&["udp", "tcp", "icmp", "icmp6", "ip", "ip6"]).into(),
        1 => format!("{}{end}port {}", random.of(&["", "udp ", "tcp "]), random.of(&[53, 80, 443, 5_000])),
        2 => format!("{end}host {}", random.of(&["10.0.0.1", "192.168.7.9", "fd00::1", "fd00::3"])),
        3 => format!("{end}net {}", random.of(&["10.0.0.0/8", "10.0", "192.168.0.0 mask 255.255.0.0", "fd00::/64"])),
        4 => format!("{end}portrange {}", random.of(&["50-100", "5000-5010", "443-443"])),
        5 => format!("(ip and tcp[tcpflags] & {} != 0)", random.of(&["tcp-syn", "(tcp-syn|tcp-ack)", "tcp-push"])),
        6 => format!("ip[8] {} {}", random.of(&["=", "<", ">=", "!="]), random.of(&[1, 64, 255])),
        7 => format!("{} {}", random.of(&["less", "greater"]), random.of(&[40, 60, 80])),
        8 => format!("len {} {}", random.of(&["<=", ">", "=="]), random.of(&[48, 60, 70])),
        9 => format!("(ip and udp[4:2] - 8 {} 0)", random.of(&["=", ">"])),
        10 => format!("port {} or {}", random.of(&[53, 80]), random.of(&[443, 5_004])),
        11 => format!("ip proto {}", random.of(&[r"\udp", r"\tcp", "47"])),
        _ => "ip[0] & 0xf != 5 or ip[6:2] & 0x1fff = 0".into(),
    }
}

fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, RAW_IP] {
        file.extend(word.to_le_bytes());
    }
    for (number, packet) in packets.iter().enumerate() {
        for word in [number as u32, 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// Numbers of the packets that tcpdump's filter takes.
fn taken_by_tcpdump(file: &[u8], filter: &str) -> Vec<usize> {
    let mut child = Command::new("tcpdump")
        .args(["-r", "-", "-w", "-", filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = file.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("rejects all packets") {
        return Vec::new();
    }
    assert!(output.status.success(), "{filter}: {said}");
    let (mut taken, mut at) = (Vec::new(), 24);
    let word = |at: usize| u32::from_le_bytes(output.stdout[at..at + 4].try_into().unwrap()) as usize;
    while at + 16 <= output.stdout.len() {
        taken.push(word(at));
        at += 16 + word(at + 8);
    }
    taken
}

#[test]
fn filters_take_the_packets_that_tcpdump_takes() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("skipped: tcpdump is not installed");
        return;
    }
    let mut random = Random(7);
    let packets: Vec<Vec<u8>> = (0..400).map(|_| packet(&mut random)).collect();
    let file = pcap(&packets);
    let (mut some, mut all) = (0, 0);
    for _ in 0..120 {
        let text = filter(&mut random, 2);
        let filter: PacketFilter = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let taken: Vec<usize> = (0..packets.len())
            .filter(|number| filter.matches(&packets[*number], packets[*number].len() as u32))
            .collect();
        assert_eq!(taken, taken_by_tcpdump(&file, &text), "{text}");
        some += usize::from(!taken.is_empty() && taken.len() < packets.len());
        all += 1;
    }
    assert!(some * 2 > all, "only {some} of {all} filters tell packets apart");
}
