// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! DNS (RFC 1035) and multicast DNS (RFC 6762), by their ports.

use std::fmt::Write as _;

use super::dns_records::{CLASS_IN, TOP_BIT, class, kind, name, record, skip_name};
use super::{Packet, Protocol, Sequences, Told, word};

pub(super) const PROTOCOL: Protocol = Protocol { name: "dns", number: None, recognises, prints };

const MULTICAST: u16 = 5353;
const PORTS: [u16; 2] = [53, MULTICAST];
const HEADER_BYTES: usize = 12;
/// Bytes of the length before a message over TCP.
const LENGTH_BYTES: usize = 2;

const OPERATIONS: [&str; 16] = [
    "",
    " inv_q",
    " stat",
    " op3",
    " notify",
    " update",
    " op6",
    " op7",
    " op8",
    " updateA",
    " updateD",
    " updateDA",
    " updateM",
    " updateMA",
    " zoneInit",
    " zoneRef",
];
const RESPONSES: [&str; 16] = [
    "",
    " FormErr",
    " ServFail",
    " NXDomain",
    " NotImp",
    " Refused",
    " YXDomain",
    " YXRRSet",
    " NXRRSet",
    " NotAuth",
    " NotZone",
    " Resp11",
    " Resp12",
    " Resp13",
    " Resp14",
    " NoChange",
];

fn is_known((source, destination): (u16, u16)) -> bool {
    PORTS.contains(&source) || PORTS.contains(&destination)
}

fn recognises(packet: &Packet<'_>) -> bool {
    let over = |contents: Option<((u16, u16), &[u8])>, least| {
        contents.is_some_and(|(ports, bytes)| is_known(ports) && bytes.len() >= least)
    };
    over(packet.datagram(), HEADER_BYTES) || over(packet.segment(), LENGTH_BYTES + HEADER_BYTES)
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    if let Some((ports, _)) = packet.datagram() {
        let bytes = packet.upper().get(8..)?;
        let length = packet.upper_length().saturating_sub(8);
        // Of a log that has the headers alone, nothing is known.
        if !is_known(ports) || bytes.is_empty() {
            return None;
        }
        if length < HEADER_BYTES as u32 {
            return Some(Told::Instead(format!("domain [length {length} < {HEADER_BYTES}] (invalid)")));
        }
        let is_multicast = ports.0 == MULTICAST || ports.1 == MULTICAST;
        return Some(Told::Instead(message(bytes, length, is_multicast)));
    }
    let (ports, bytes) = packet.segment()?;
    if !ports_of_stream(ports) || bytes.len() < LENGTH_BYTES + HEADER_BYTES {
        return None;
    }
    let stated = usize::from(word(bytes, 0)?);
    // A later segment of a longer message begins with anything.
    let message_bytes = bytes.get(LENGTH_BYTES..)?;
    (stated >= HEADER_BYTES && stated <= message_bytes.len())
        .then(|| Told::Behind(format!(" {}", message(&message_bytes[..stated], stated as u32, false))))
}

fn ports_of_stream((source, destination): (u16, u16)) -> bool {
    source == PORTS[0] || destination == PORTS[0]
}

/// The text of the message of `length` bytes that begins with `bytes`.
fn message(bytes: &[u8], length: u32, is_multicast: bool) -> String {
    let mut text = String::new();
    match sections(bytes, is_multicast, &mut text) {
        Some(()) => text += &format!(" ({length})"),
        None => text.push_str(" [|domain]"),
    }
    text.trim_start().to_string()
}

/// Writes what is in the message; none where it was cut off.
fn sections(bytes: &[u8], is_multicast: bool, text: &mut String) -> Option<()> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let field = |at| word(header, at).unwrap_or_default();
    let (flags, questions, answers, authorities, others) = (field(2), field(4), field(6), field(8), field(10));
    let sign = |bit: u16, sign: &'static str| if flags & bit != 0 { sign } else { "" };
    let operation = OPERATIONS[usize::from(flags >> 11 & 15)];
    // Writing into a string cannot fail.
    let _ = write!(text, "{}{operation}", field(0));
    let mut at = HEADER_BYTES;
    if flags & 0x8000 != 0 {
        let response = RESPONSES[usize::from(flags & 15)];
        let recursion = if flags & 0x80 != 0 { "" } else { "-" };
        let _ = write!(text, "{response}{}{recursion}{}{}", sign(0x400, "*"), sign(0x200, "|"), sign(0x20, "$"));
        if questions != 1 {
            let _ = write!(text, " [{questions}q]");
        }
        for number in 0..questions {
            if number > 0 {
                text.push(',');
            }
            at = skip_name(bytes, at)? + 4;
        }
        let _ = write!(text, " {answers}/{authorities}/{others}");
        for number in 0..answers {
            if number > 0 {
                text.push(',');
            }
            at = record(bytes, at, is_multicast, text)?;
        }
        return Some(());
    }
    let _ = write!(text, "{}{}", sign(0x100, "+"), sign(0x10, "%"));
    if flags & 0x6cf != 0 {
        let _ = write!(text, " [b2&3=0x{flags:x}]");
    }
    let is_inverse = flags >> 11 & 15 == 1;
    let usual = if is_inverse { (0, 1) } else { (1, 0) };
    let mut odd = |count: u16, usual: u16, sign: &str| {
        if count != usual {
            let _ = write!(text, " [{count}{sign}]");
        }
    };
    if is_inverse {
        odd(questions, usual.0, "q");
        odd(answers, usual.1, "a");
    } else {
        odd(answers, usual.1, "a");
        odd(questions, usual.0, "q");
    }
    odd(authorities, 0, "n");
    odd(others, 0, "au");
    for _ in 0..questions {
        let behind = skip_name(bytes, at)?;
        let (wanted, of_class) = (word(bytes, behind)?, word(bytes, behind + 2)?);
        let _ = write!(text, " {}", kind(wanted));
        if is_multicast && of_class == CLASS_IN | TOP_BIT {
            text.push_str(" (QU)");
        } else if of_class != CLASS_IN {
            let _ = write!(text, " {}", class(of_class));
        }
        text.push_str("? ");
        name(bytes, at, text)?;
        at = behind + 4;
    }
    Some(())
}
