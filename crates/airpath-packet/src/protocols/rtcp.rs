// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RTCP (RFC 3550), told from RTP by the packet type (RFC 5761). The text is that of `tcpdump -T rtcp`.

use std::fmt::Write as _;

use super::{Packet, Protocol, Sequences, Told, long, word};

pub(super) const PROTOCOL: Protocol = Protocol { name: "rtcp", number: None, recognises, prints };

const HEADER_BYTES: usize = 8;
const SENDER_BYTES: usize = 20;
const BLOCK_BYTES: usize = 24;
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const GOODBYE: u8 = 203;

fn recognises(packet: &Packet<'_>) -> bool {
    let Some((_, bytes)) = packet.datagram() else { return false };
    let whole = packet.length as usize - (packet.bytes.len() - bytes.len()).min(packet.length as usize);
    let (Some([first, kind]), Some(words)) = (bytes.first_chunk(), word(bytes, 2)) else { return false };
    first >> 6 == 2 && (192..=223).contains(kind) && (usize::from(words) + 1) * 4 <= whole
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    if !recognises(packet) {
        return None;
    }
    let mut rest = packet.upper().get(8..)?;
    let mut text = String::new();
    while !rest.is_empty() {
        match part(rest, &mut text) {
            Some(bytes) => rest = rest.get(bytes..).unwrap_or_default(),
            None => {
                text.push_str(" [|rtcp]");
                break;
            }
        }
    }
    Some(Told::Instead(text))
}

/// Writes one packet of a compound, and returns its length; none where it was cut off.
fn part(bytes: &[u8], text: &mut String) -> Option<usize> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let length = (usize::from(word(header, 2)?) + 1) * 4;
    let count = usize::from(header[0] & 0x1f);
    let kind = header[1];
    let other_length = |own: usize| if own == length { String::new() } else { format!(" [{length}]") };
    let mut blocks = HEADER_BYTES;
    // Writing into a string cannot fail.
    let _ = match kind {
        SENDER_REPORT => {
            let _ = write!(text, " sr{}", other_length(count * BLOCK_BYTES + SENDER_BYTES + HEADER_BYTES));
            blocks += SENDER_BYTES;
            let field = |number: usize| long(bytes.get(..blocks)?, HEADER_BYTES + number * 4);
            let at = f64::from(field(0)?) + f64::from(field(1)?) / 4_294_967_296.0;
            write!(text, " @{at:.2} {} {}p {}b", field(2)?, field(3)?, field(4)?)
        }
        RECEIVER_REPORT => write!(text, " rr{}", other_length(count * BLOCK_BYTES + HEADER_BYTES)),
        DESCRIPTION => write!(text, " sdes {length}"),
        GOODBYE => write!(text, " bye {length}"),
        kind => write!(text, " type-0x{kind:x} {length}"),
    };
    if matches!(kind, SENDER_REPORT | RECEIVER_REPORT) {
        if count > 1 {
            let _ = write!(text, " c{count}");
        }
        for number in 0..count {
            let block = bytes.get(blocks + number * BLOCK_BYTES..)?.get(..BLOCK_BYTES)?;
            let field = |number: usize| long(block, number * 4);
            let lost = field(1)? & 0x00ff_ffff;
            let [last, delay] = [field(4)?, field(5)?].map(|fixed| f64::from(fixed) / 65_536.0);
            let _ = write!(text, " {lost}l {}s {}j @{last:.2}+{delay:.2}", field(2)?, field(3)?);
        }
    }
    Some(length)
}
