// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP headers as text.

use std::fmt::Write;
use std::net::IpAddr;

use super::sequence::Sequences;
use super::transport::{Transport, u16_at, u32_at};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
/// Flag bits and their letters, in the order in which they are shown.
const FLAGS: [(u8, char); 8] =
    [(FIN, 'F'), (SYN, 'S'), (RST, 'R'), (8, 'P'), (ACK, '.'), (32, 'U'), (64, 'E'), (128, 'W')];

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Describes a segment; `None` if its fixed header was not captured.
pub(super) fn tcp(transport: &Transport<'_>, sequences: &mut Sequences) -> Option<String> {
    let bytes = transport.bytes;
    let ports = transport.ports()?;
    let (sequence, acknowledgement) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
    let (offset, flags) = (usize::from(*bytes.get(12)? >> 4) * 4, *bytes.get(13)?);
    let window = u16_at(bytes, 14)?;
    let payload = transport.length.saturating_sub(offset as u32);

    let ends = (octets(transport.from), ports.0, octets(transport.to), ports.1);
    let numbers = sequences.show(&ends, flags & SYN != 0, sequence, acknowledgement);

    let mut text = format!("{}: Flags [", transport.ends(Some(ports)));
    if flags == 0 {
        text.push_str("none");
    }
    text.extend(FLAGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| letter));
    text.push(']');
    // Writing into a string cannot fail.
    if payload > 0 {
        let _ = write!(text, ", seq {}:{}", numbers.sequence, numbers.sequence.wrapping_add(payload));
    } else if flags & (FIN | SYN | RST) != 0 {
        let _ = write!(text, ", seq {}", numbers.sequence);
    }
    if flags & ACK != 0 {
        let _ = write!(text, ", ack {}", numbers.acknowledgement);
    }
    let _ = write!(text, ", win {window}");
    if offset > 20 {
        let all = bytes.get(20..offset);
        let options = options(all.or(bytes.get(20..)).unwrap_or_default(), all.is_some());
        let _ = write!(text, ", options [{options}]");
    }
    let _ = write!(text, ", length {payload}");
    Some(text)
}

/// Describes TCP options; `whole` says whether all of them were captured.
fn options(mut bytes: &[u8], whole: bool) -> String {
    let mut shown: Vec<String> = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        match kind {
            0 => {
                shown.push("eol".into());
                break;
            }
            1 => {
                shown.push("nop".into());
                bytes = rest;
                continue;
            }
            _ => {}
        }
        let length = rest.first().copied().map_or(0, usize::from);
        let Some(value) = bytes.get(2..length) else {
            shown.push(if whole { "bad".into() } else { "|".into() });
            break;
        };
        shown.push(option(*kind, value));
        bytes = &bytes[length..];
    }
    shown.join(",")
}

fn option(kind: u8, value: &[u8]) -> String {
    match (kind, value.len()) {
        (2, 2) => format!("mss {}", u16::from_be_bytes([value[0], value[1]])),
        (3, 1) => format!("wscale {}", value[0]),
        (4, 0) => "sackOK".into(),
        (5, length) if length % 8 == 0 => {
            let edges = value.chunks_exact(8).map(|block| {
                let edge = |at| u32_at(block, at).unwrap_or_default();
                format!("{{{}:{}}}", edge(0), edge(4))
            });
            format!("sack {} {}", length / 8, edges.collect::<String>())
        }
        (8, 8) => {
            let stamp = |at| u32_at(value, at).unwrap_or_default();
            format!("TS val {} ecr {}", stamp(0), stamp(4))
        }
        (34, _) => "tfo".into(),
        (30, _) => "mptcp".into(),
        (kind, length) => format!("option {kind} of {length} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(
        up: bool,
        sequence: u32,
        acknowledgement: u32,
        flags: u8,
        options: &[u8],
        payload: u32,
    ) -> (Vec<u8>, u32) {
        let mut bytes = Vec::new();
        for port in if up { [40_000u16, 80] } else { [80, 40_000] } {
            bytes.extend(port.to_be_bytes());
        }
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(acknowledgement.to_be_bytes());
        bytes.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0xfa, 0xf0, 0, 0, 0, 0]);
        bytes.extend(options);
        let length = bytes.len() as u32 + payload;
        (bytes, length)
    }

    #[test]
    fn a_connection_with_relative_numbers() {
        let mut sequences = Sequences::default();
        let mut show = |up: bool, (bytes, length): (Vec<u8>, u32)| {
            let (client, server) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
            let (from, to) = if up { (client, server) } else { (server, client) };
            let text = tcp(&Transport { from, to, bytes: &bytes, length }, &mut sequences).unwrap();
            text.split_once(": ").unwrap().1.to_owned()
        };
        let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(
            show(true, segment(true, u32::MAX, 0, SYN, &options, 0)),
            "Flags [S], seq 4294967295, win 64240, options [mss 1460,sackOK,TS val 9 ecr 0,nop,wscale 7], length 0"
        );
        assert_eq!(
            show(false, segment(false, 7_000, 0, SYN | ACK, &[], 0)),
            "Flags [S.], seq 7000, ack 0, win 64240, length 0"
        );
        assert_eq!(
            show(true, segment(true, 0, 7_001, 8 | ACK, &[], 256)),
            "Flags [P.], seq 1:257, ack 1, win 64240, length 256"
        );
        let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(
            show(false, segment(false, 7_001, 256, ACK, &sack, 0)),
            "Flags [.], ack 257, win 64240, options [nop,nop,sack 1 {1:2}], length 0"
        );
        assert_eq!(
            show(true, segment(true, 256, 7_001, FIN | ACK, &[], 0)),
            "Flags [F.], seq 257, ack 1, win 64240, length 0"
        );
    }

    #[test]
    fn broken_options_are_shown_as_such() {
        assert_eq!(options(&[2, 4, 5], true), "bad");
        assert_eq!(options(&[1, 8, 10, 0], false), "nop,|");
        assert_eq!(options(&[9, 0], true), "bad");
        assert_eq!(options(&[0, 9, 9], true), "eol");
    }
}
