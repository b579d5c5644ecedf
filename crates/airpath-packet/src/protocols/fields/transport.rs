// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fields of the headers of TCP (RFC 9293), UDP (RFC 768), UDP-Lite (RFC 3828) and ICMP (RFC 792, RFC 4443).

use super::super::tcp_options::options;
use super::Layers;
use super::ip::name;
use crate::protocol::{ICMP, ICMPV6, TCP, UDP, UDP_LITE};

const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
const LEAST_TCP_BYTES: usize = 20;

/// Adds the fields of the header at `at`; returns where the contents begin.
pub(super) fn header(found: &mut Layers<'_>, protocol: u8, at: usize) -> usize {
    if at >= found.bytes.len() {
        return at;
    }
    found.begin(name(protocol).map_or_else(|| format!("protocol {protocol}"), str::to_owned));
    match protocol {
        TCP => tcp(found, at),
        UDP | UDP_LITE => {
            ports(found, at);
            found.number(if protocol == UDP { "length" } else { "checksum coverage" }, at + 4, 2);
            found.hexadecimal("checksum", at + 6, 2);
            at + 8
        }
        ICMP | ICMPV6 => {
            found.number("type", at, 1);
            found.number("code", at + 1, 1);
            found.hexadecimal("checksum", at + 2, 2);
            at + 4
        }
        _ => at,
    }
}

fn ports(found: &mut Layers<'_>, at: usize) {
    found.number("source port", at, 2);
    found.number("destination port", at + 2, 2);
}

fn tcp(found: &mut Layers<'_>, at: usize) -> usize {
    ports(found, at);
    found.number("sequence number", at + 4, 4);
    found.number("acknowledgement number", at + 8, 4);
    found.field("header length", at + 12, 1, |byte| format!("{} bytes", (byte[0] >> 4) * 4));
    found.field("flags", at + 13, 1, |byte| {
        let set: Vec<&str> =
            FLAGS.iter().enumerate().filter(|(bit, _)| byte[0] >> bit & 1 == 1).map(|(_, name)| *name).collect();
        if set.is_empty() { "-".into() } else { set.join(" ") }
    });
    found.number("window", at + 14, 2);
    found.hexadecimal("checksum", at + 16, 2);
    found.number("urgent pointer", at + 18, 2);
    let stated = found.bytes.get(at + 12).map_or(0, |offset| usize::from(offset >> 4) * 4);
    let header_bytes = stated.max(LEAST_TCP_BYTES);
    if header_bytes > LEAST_TCP_BYTES {
        let kept = found.bytes.len().saturating_sub(at + LEAST_TCP_BYTES).min(header_bytes - LEAST_TCP_BYTES);
        let is_whole = kept == header_bytes - LEAST_TCP_BYTES;
        found.field("options", at + LEAST_TCP_BYTES, kept, |content| {
            let mut text = String::new();
            options(content, is_whole, 0, &mut text);
            text
        });
    }
    at + header_bytes
}
