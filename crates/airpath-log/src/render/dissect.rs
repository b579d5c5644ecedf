// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Headers as text, in tcpdump's manner: IPv4 and IPv6 with TCP, UDP, UDP-Lite, ICMP and ICMPv6.

use airpath_packet::protocol::{ICMP, ICMPV6, TCP, UDP, UDP_LITE};
use airpath_packet::{Fragment, Headers};

use super::dissect_icmp::{icmp, icmp6};
use super::dissect_tcp::tcp;
use super::sequence::Sequences;
use super::transport::{Transport, u16_at};

/// Describes the packet of `length` bytes that begins with `header`, of which any part may be
/// missing. `sequences` remembers where the sequence numbers of each connection began.
pub fn describe(header: &[u8], length: u32, sequences: &mut Sequences) -> String {
    match (Headers::read_beginning(header), header.first().map(|first| first >> 4)) {
        (Some(headers), _) => ip(&headers, header, length, sequences),
        (None, Some(4)) => format!("IP [|ip], length {length}"),
        (None, Some(6)) => format!("IP6 [|ip6], length {length}"),
        (None, _) => format!("not an IP packet, length {length}"),
    }
}

fn ip(headers: &Headers, header: &[u8], length: u32, sequences: &mut Sequences) -> String {
    let [from, to] = headers.ends(header);
    let transport = Transport {
        from,
        to,
        bytes: header.get(headers.ip_bytes..).unwrap_or_default(),
        length: length.saturating_sub(headers.ip_bytes as u32),
    };
    match headers.fragment {
        Some(Fragment { offset, more }) if offset > 0 => {
            let (name, more) = (name(headers.protocol), if more { "+" } else { "" });
            format!("{}: {name}, fragment {}@{offset}{more}", transport.ends(None), transport.length)
        }
        _ => upper(headers.protocol, &transport, sequences),
    }
}

fn name(protocol: u8) -> String {
    match protocol {
        ICMP => "ICMP".into(),
        TCP => "TCP".into(),
        UDP => "UDP".into(),
        ICMPV6 => "ICMP6".into(),
        UDP_LITE => "UDP-Lite".into(),
        other => format!("protocol {other}"),
    }
}

fn upper(protocol: u8, transport: &Transport<'_>, sequences: &mut Sequences) -> String {
    let described = match protocol {
        TCP => tcp(transport, sequences),
        UDP => transport.ports().map(|ports| {
            format!("{}: UDP, length {}", transport.ends(Some(ports)), transport.length.saturating_sub(8))
        }),
        UDP_LITE => udp_lite(transport),
        ICMP => icmp(transport),
        ICMPV6 => icmp6(transport),
        _ => None,
    };
    described.unwrap_or_else(|| {
        // The brackets say that bytes are missing; without them the protocol is one we do not know.
        let known = [TCP, UDP, UDP_LITE, ICMP, ICMPV6].contains(&protocol);
        let name = if known { format!("[|{}]", name(protocol).to_lowercase()) } else { name(protocol) };
        format!("{}: {name}, length {}", transport.ends(None), transport.length)
    })
}

fn udp_lite(transport: &Transport<'_>) -> Option<String> {
    let ports = transport.ports()?;
    let coverage = match u16_at(transport.bytes, 4)? {
        0 => "all".into(),
        bytes => bytes.to_string(),
    };
    let length = transport.length.saturating_sub(8);
    Some(format!("{}: UDP-Lite, coverage {coverage}, length {length}", transport.ends(Some(ports))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4_packet(protocol: u8, transport: &[u8]) -> Vec<u8> {
        let total = (20 + transport.len()) as u16;
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        packet.extend(transport);
        packet
    }

    fn ipv6_packet(next: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, transport.len() as u8, next, 64];
        for last in [1, 2] {
            packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend(transport);
        packet
    }

    fn shown(packet: &[u8]) -> String {
        describe(packet, packet.len() as u32, &mut Sequences::default())
    }

    #[test]
    fn datagrams() {
        let udp = [0x13, 0x88, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4];
        assert_eq!(shown(&ipv4_packet(17, &udp)), "IP 10.0.0.1.5000 > 10.0.0.2.53: UDP, length 4");
        assert_eq!(shown(&ipv6_packet(17, &udp)), "IP6 fd00::1.5000 > fd00::2.53: UDP, length 4");
        let lite = [0x13, 0x88, 0, 53, 0, 8, 0, 0, 1, 2, 3, 4];
        assert_eq!(shown(&ipv4_packet(136, &lite)), "IP 10.0.0.1.5000 > 10.0.0.2.53: UDP-Lite, coverage 8, length 4");
        assert_eq!(shown(&ipv4_packet(132, &[0; 12])), "IP 10.0.0.1 > 10.0.0.2: protocol 132, length 12");
    }

    #[test]
    fn extension_headers_and_fragments() {
        let mut options = vec![17, 0, 1, 4, 0, 0, 0, 0];
        options.extend([0x13, 0x88, 0, 53, 0, 8, 0, 0]);
        assert_eq!(shown(&ipv6_packet(0, &options)), "IP6 fd00::1.5000 > fd00::2.53: UDP, length 0");
        let fragment = [17, 0, 0x05, 0xa9, 0, 0, 0, 1, 9, 9];
        assert_eq!(shown(&ipv6_packet(44, &fragment)), "IP6 fd00::1 > fd00::2: UDP, fragment 2@1448+");
        let mut packet = ipv4_packet(17, &[0; 30]);
        packet[6..8].copy_from_slice(&[0x00, 0xb9]);
        assert_eq!(shown(&packet), "IP 10.0.0.1 > 10.0.0.2: UDP, fragment 30@1480");
    }

    #[test]
    fn no_length_of_what_was_captured_is_too_short() {
        let packets = [
            ipv4_packet(6, &[0x50; 40]),
            ipv4_packet(17, &[0; 20]),
            ipv4_packet(1, &[3; 40]),
            ipv4_packet(136, &[0; 20]),
            ipv6_packet(58, &[135; 40]),
            ipv6_packet(0, &[0; 40]),
            ipv6_packet(44, &[0; 40]),
        ];
        for packet in packets {
            for length in 0..=packet.len() {
                let text = describe(&packet[..length], packet.len() as u32, &mut Sequences::default());
                assert!(!text.is_empty());
            }
        }
        assert_eq!(describe(&[], 77, &mut Sequences::default()), "not an IP packet, length 77");
        let tcp = ipv4_packet(6, &[0; 20]);
        let text = describe(&tcp[..22], 40, &mut Sequences::default());
        assert_eq!(text, "IP 10.0.0.1 > 10.0.0.2: [|tcp], length 20");
    }
}
