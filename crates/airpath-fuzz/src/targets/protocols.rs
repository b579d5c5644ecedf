// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Contents of packets, one target for each protocol that is known by its contents, and frames of PPP. The first byte of
//! an input chooses ports and what carries the rest: a datagram or a segment, of IPv4 or IPv6, whole or cut off.

use airpath_packet::PacketFilter;
use airpath_packet::protocols::{Packet, Protocol, Sequences, Told, by_contents, describe, ppp};

const UDP: u8 = 17;
const TCP: u8 = 6;
const GRE: u8 = 47;
const PORTS: [u16; 4] = [53, 443, 80, 5_004];
/// Port of L2TP.
const TUNNELS: u16 = 1_701;

/// Contents of the protocol called `name`.
pub fn run(name: &str, input: &[u8]) {
    let (&mode, contents) = input.split_first().unwrap_or((&0, &[]));
    let protocol = by_contents().find(|protocol| protocol.name == name).expect("a protocol");
    let filter = PacketFilter::parse(name).expect("a word of filters");
    // As much as an IP packet holds.
    let contents = &contents[..contents.len().min(60_000)];
    let packet = wrapped(mode, contents);
    for kept in [packet.len(), packet.len() - contents.len() / 2, packet.len() - contents.len(), packet.len() / 2] {
        let packet = Packet::new(&packet[..kept], packet.len() as u32);
        judge(protocol, &packet);
        assert_eq!(filter.matches(packet.bytes, packet.length), (protocol.recognises)(&packet), "the word `{name}`");
    }
}

/// Promises of a recogniser and a printer about any packet.
fn judge(protocol: &Protocol, packet: &Packet<'_>) {
    let mut sequences = Sequences::default();
    let is_it = (protocol.recognises)(packet);
    let told = (protocol.prints)(packet, &mut sequences);
    // Of a message of DNS over TCP that goes on in another segment nothing is told.
    assert!(
        !is_it || told.is_some() || protocol.name == "dns",
        "{} is recognised, and nothing is said about it",
        protocol.name
    );
    if let Some(Told::Instead(text) | Told::Behind(text)) = told {
        is_line(&text);
    }
    is_line(&describe(packet.bytes, packet.length, &mut sequences));
}

/// A line is not empty, and tells a terminal nothing but text.
fn is_line(text: &str) {
    assert!(!text.is_empty());
    assert!(text.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{text:?}");
}

/// Frames of PPP.
pub fn run_ppp(input: &[u8]) {
    for kept in [input.len(), input.len() / 2] {
        let frame = &input[..kept];
        is_line(&ppp::describe_frame(frame, input.len() as u32, &mut Sequences::default()));
        if let Some(read) = ppp::Frame::read(frame) {
            assert!(read.contents.len() < frame.len() && read.protocol & 1 == 1);
            assert!(read.packet().is_none_or(|packet| packet.len() == read.contents.len()));
        }
    }
}

fn wrapped(mode: u8, contents: &[u8]) -> Vec<u8> {
    let protocol = match (mode & 1, mode & 16) {
        (0, _) => UDP,
        (_, 0) => TCP,
        _ => GRE,
    };
    let port = if mode & 16 == 0 { PORTS[usize::from(mode >> 1 & 3)] } else { TUNNELS };
    let mut upper = Vec::new();
    if protocol != GRE {
        upper.extend(40_000u16.to_be_bytes());
        upper.extend(port.to_be_bytes());
    }
    if protocol == UDP {
        upper.extend((8 + contents.len() as u16).to_be_bytes());
        upper.extend([0, 0]);
    } else if protocol == TCP {
        upper.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    }
    upper.extend(contents);
    let mut packet = Vec::new();
    if mode & 8 == 0 {
        packet.extend([0x45, 0]);
        packet.extend((20 + upper.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((upper.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend([0xfd; 32]);
    }
    packet.extend(upper);
    packet
}

/// Beginnings from which inputs of a protocol are made.
pub fn seeds(name: &str) -> Vec<(String, Vec<u8>)> {
    let all: &[(&str, &[u8])] = match name {
        "dns" => &[
            ("question", b"\0\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01"),
            ("answer", b"\0\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x01a\0\0\x10\0\x01\xc0\x0c\0\x10\0\x01\0\0\0\x09\0\x04\x03abc"),
            ("names", b"\0\0\x01\x80\0\0\0\0\x02\0\0\0\0\x01a\0\0\x05\0\x01\0\0\0\x09\0\x02\xc0\x0c\xc0\x0c\0\x0f\0\x01\0\0\0\x09\0\x05\0\x0a\x01m\0"),
            ("stream", b"\x01\0\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01"),
        ],
        "http" => &[
            ("request", b"\x05GET /index.html HTTP/1.1\r\nHost: example.org\r\n\r\n"),
            ("response", b"\x05HTTP/1.1 200 OK\r\nServer: \x1b[31mx\r\n\r\n"),
            ("put", b"\x0dPUT /\xff\x01 HTTP/1.1"),
        ],
        "quic" => &[
            ("initial", b"\x02\xc3\0\0\0\x01\x08abcdefgh\x04ijkl\0\x44\x9e"),
            ("negotiation", b"\x02\x80\0\0\0\0\x02ab\0\0\0\0\x01"),
            ("protected", b"\x02\x41abcdefghijkl"),
        ],
        "rtcp" => &[
            ("sender", b"\x06\x81\xc8\0\x0c\0\0\0\x01\x83\xaa\x7e\x80\0\0\0\0\0\0\0\x05\0\0\0\x06\0\0\0\x07\0\0\0\x02\x03\0\0\x04\0\0\0\x05\0\0\0\x06\0\0\0\x07\0\0\0\x08"),
            ("compound", b"\x06\x80\xc9\0\x01\0\0\0\x01\x81\xca\0\x03\0\0\0\x01\x01\x03a@b\0\0\0"),
        ],
        "rtp" => &[
            ("plain", b"\x06\x80\x60\0\x0d\0\0\x03\xe8\0\0\xab\xcdpayload"),
            ("marker", b"\x06\x91\xe0\0\x0e\0\0\x07\xd0\0\0\xab\xcd\0\0\0\x01\xbe\xde\0\x01\0\0\0\x05"),
        ],
        "tls" => &[
            ("hello", b"\x03\x16\x03\x01\0\x45\x01\0\0\x41\x03\x03\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\0\0\x02\x13\x01\x01\0\0\x14\0\0\0\x10\0\x0e\0\0\x0bexample.org"),
            ("data", b"\x03\x17\x03\x03\0\x05\x01\x02\x03\x04\x05"),
        ],
        "ppp-frames" => &[
            ("request", b"\xff\x03\xc0\x21\x01\x07\0\x0e\x01\x04\x05\xdc\x05\x06\x01\x02\x03\x04"),
            ("packet", b"\x21\x45\0\0\x1c\0\0\x40\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02\0\x08\0\0"),
            ("password", b"\xff\x03\xc0\x23\x01\x01\0\x0e\x04user\x04pass"),
            ("challenge", b"\xff\x03\xc2\x23\x01\x01\0\x0d\x04abcdpeer"),
        ],
        "ppp-tunnels" => &[
            ("gre", b"\x11\x30\x81\x88\x0b\0\x12\0\x18\0\0\0\x05\0\0\0\x03\xff\x03\xc0\x21\x01\x07\0\x0e\x01\x04\x05\xdc\x05\x06\x01\x02\x03\x04"),
            ("l2tp", b"\x10\x4a\x02\0\x1e\0\x07\0\x09\0\x01\0\x02\0\x02\0\0\xff\x03\xc0\x21\x09\x07\0\x08\x01\x02\x03\x04"),
        ],
        _ => &[],
    };
    all.iter().map(|(name, bytes)| ((*name).to_string(), bytes.to_vec())).collect()
}
