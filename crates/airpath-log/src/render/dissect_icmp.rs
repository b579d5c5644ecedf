// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! ICMP and ICMPv6 messages as text.

use super::transport::{Transport, u16_at, u32_at};

/// Describes an ICMP message; `None` if its first bytes were not captured.
pub(super) fn icmp(transport: &Transport<'_>) -> Option<String> {
    let (kind, code) = (*transport.bytes.first()?, *transport.bytes.get(1)?);
    let message = match (kind, code) {
        (0, _) => format!("echo reply{}", echo(transport.bytes)),
        (3, 0) => "net unreachable".into(),
        (3, 1) => "host unreachable".into(),
        (3, 2) => "protocol unreachable".into(),
        (3, 3) => "port unreachable".into(),
        (3, 4) => format!("unreachable - need to frag (mtu {})", u16_at(transport.bytes, 6).unwrap_or(0)),
        (3, 13) => "unreachable - admin prohibited".into(),
        (3, code) => format!("unreachable, code {code}"),
        (5, _) => "redirect".into(),
        (8, _) => format!("echo request{}", echo(transport.bytes)),
        (11, 0) => "time exceeded in-transit".into(),
        (11, _) => "ip reassembly time exceeded".into(),
        (12, _) => "parameter problem".into(),
        (kind, code) => format!("type {kind}, code {code}"),
    };
    Some(format!("{}: ICMP {message}, length {}", transport.ends(None), transport.length))
}

/// Describes an ICMPv6 message; `None` if its first bytes were not captured.
pub(super) fn icmp6(transport: &Transport<'_>) -> Option<String> {
    let (kind, code) = (*transport.bytes.first()?, *transport.bytes.get(1)?);
    let message = match (kind, code) {
        (1, 0) => "unreachable route".into(),
        (1, 1) => "unreachable prohibited".into(),
        (1, 3) => "unreachable address".into(),
        (1, 4) => "unreachable port".into(),
        (1, code) => format!("unreachable, code {code}"),
        (2, _) => format!("packet too big, mtu {}", u32_at(transport.bytes, 4).unwrap_or(0)),
        (3, 0) => "time exceeded in-transit".into(),
        (3, _) => "reassembly time exceeded".into(),
        (4, _) => "parameter problem".into(),
        (128, _) => format!("echo request{}", echo(transport.bytes)),
        (129, _) => format!("echo reply{}", echo(transport.bytes)),
        (130, _) => "multicast listener query".into(),
        (131, _) | (143, _) => "multicast listener report".into(),
        (132, _) => "multicast listener done".into(),
        (133, _) => "router solicitation".into(),
        (134, _) => "router advertisement".into(),
        (135, _) => "neighbor solicitation".into(),
        (136, _) => "neighbor advertisement".into(),
        (137, _) => "redirect".into(),
        (kind, code) => format!("type {kind}, code {code}"),
    };
    Some(format!("{}: ICMP6, {message}, length {}", transport.ends(None), transport.length))
}

fn echo(bytes: &[u8]) -> String {
    match (u16_at(bytes, 4), u16_at(bytes, 6)) {
        (Some(id), Some(sequence)) => format!(", id {id}, seq {sequence}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn echoes_and_errors() {
        let (from, to) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let show = |bytes: &[u8]| icmp(&Transport { from, to, bytes, length: 64 });
        let ping = [8, 0, 0, 0, 0, 9, 0, 3];
        assert_eq!(show(&ping).unwrap(), "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 9, seq 3, length 64");
        assert_eq!(show(&ping[..4]).unwrap(), "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, length 64");
        assert!(show(&[3, 4, 0, 0, 0, 0, 5, 0]).unwrap().contains("need to frag (mtu 1280)"));
        assert_eq!(show(&[8]), None);
        let (from, to) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        let text = icmp6(&Transport { from, to, bytes: &[129, 0, 0, 0, 0, 1, 0, 2], length: 64 }).unwrap();
        assert_eq!(text, "IP6 fd00::1 > fd00::2: ICMP6, echo reply, id 1, seq 2, length 64");
    }
}
