// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP (RFC 9293).

use std::fmt::Write as _;

use super::tcp_options::options;
use super::{Packet, Protocol, Sequences, Told, is_of, long, with_contents, word};
use crate::protocol::TCP;

pub(super) const PROTOCOL: Protocol = Protocol { name: "tcp", number: Some(TCP), recognises, prints };

const LEAST_BYTES: usize = 20;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const URG: u8 = 32;
const FLAGS: [(u8, char); 8] =
    [(FIN, 'F'), (SYN, 'S'), (RST, 'R'), (8, 'P'), (ACK, '.'), (URG, 'U'), (64, 'E'), (128, 'W')];

fn recognises(packet: &Packet<'_>) -> bool {
    is_of(packet, TCP)
}

fn prints(packet: &Packet<'_>, sequences: &mut Sequences) -> Option<Told> {
    let (bytes, whole) = (packet.upper(), packet.upper_length());
    let [source, destination] = packet.ends()?;
    let header: &[u8; LEAST_BYTES] = match bytes.first_chunk() {
        Some(header) => header,
        // Without ports there is nothing between the addresses and this.
        None => return Some(Told::Instead(if bytes.len() < 4 { "[|tcp]" } else { " [|tcp]" }.into())),
    };
    let header_bytes = usize::from(header[12] >> 4) * 4;
    let told = |text: String| Some(Told::Instead(text));
    if header_bytes < LEAST_BYTES {
        return told(format!(" tcp {header_bytes} [bad hdr length {header_bytes} - too short, < {LEAST_BYTES}]"));
    }
    let flags = header[13];
    let mut text = String::from("Flags [");
    if flags == 0 {
        text.push_str("none");
    }
    text.extend(FLAGS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| letter));
    text.push(']');
    if header_bytes as u32 > whole {
        return told(format!("{text} [bad hdr length {header_bytes} - too long, > {whole}]"));
    }
    let payload = whole - header_bytes as u32;
    let (mut sequence, mut acknowledgement, mut other_way) = (long(bytes, 4)?, long(bytes, 8)?, 0);
    if flags & ACK != 0 {
        let ends = [(word(bytes, 0)?, source), (word(bytes, 2)?, destination)];
        let shown = sequences.show(ends, flags & SYN != 0, sequence, acknowledgement);
        (sequence, acknowledgement, other_way) = (shown.sequence, shown.acknowledgement, shown.other_way);
    }
    // Writing into a string cannot fail.
    if payload > 0 {
        let _ = write!(text, ", seq {sequence}:{}", sequence.wrapping_add(payload));
    } else if flags & (FIN | SYN | RST) != 0 {
        let _ = write!(text, ", seq {sequence}");
    }
    if flags & ACK != 0 {
        let _ = write!(text, ", ack {acknowledgement}");
    }
    let _ = write!(text, ", win {}", word(bytes, 14)?);
    if flags & URG != 0 {
        let _ = write!(text, ", urg {}", word(bytes, 18)?);
    }
    if header_bytes > LEAST_BYTES {
        let all = bytes.get(LEAST_BYTES..header_bytes);
        text.push_str(", options [");
        let is_good = options(all.unwrap_or(&bytes[LEAST_BYTES..]), all.is_some(), other_way, &mut text);
        if !is_good {
            return told(text);
        }
        text.push(']');
    }
    let _ = write!(text, ", length {payload}");
    Some(with_contents(text, packet, sequences))
}
