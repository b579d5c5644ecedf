// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of PPP in IP packets: those of PPTP, in GRE of version 1 (RFC 2637), and those of L2TP, at UDP port 1701
//! (RFC 2661). Control messages of either bear none.

use super::ppp::{Frame, describe_frame};
use super::{Packet, Protocol, Sequences, Told, is_of, long, word};
use crate::protocol::{GRE, UDP};

pub(super) const PROTOCOL: Protocol = Protocol { name: "ppp", number: None, recognises, prints };

const PPP_IN_GRE: u16 = 0x880b;
const L2TP_PORT: u16 = 1701;

/// A frame, its whole length in bytes, and tcpdump's text of what is around it.
struct Tunnelled<'a> {
    frame: &'a [u8],
    length: u32,
    before: String,
    behind: &'static str,
}

fn read<'a>(packet: &Packet<'a>) -> Option<Tunnelled<'a>> {
    let tunnelled = if is_of(packet, GRE) { in_gre(packet) } else { in_l2tp(packet) }?;
    Frame::read(tunnelled.frame)?;
    Some(tunnelled)
}

fn in_gre<'a>(packet: &Packet<'a>) -> Option<Tunnelled<'a>> {
    let bytes = packet.upper();
    // A key has the call, only what has a number has contents, and the version is 1.
    let flags = word(bytes, 0).filter(|flags| flags & 0x3007 == 0x3001)?;
    let (PPP_IN_GRE, call) = (word(bytes, 2)?, word(bytes, 6)?) else { return None };
    let (mut before, mut at) = (format!("GREv1, call {call}"), 8);
    for (flag, name) in [(0x1000, "seq"), (0x0080, "ack")] {
        if flags & flag != 0 {
            before += &format!(", {name} {}", long(bytes, at)?);
            at += 4;
        }
    }
    before += &format!(", length {}: ", packet.upper_length());
    let length = packet.upper_length().checked_sub(at as u32)?;
    Some(Tunnelled { frame: bytes.get(at..)?, length, before, behind: "" })
}

fn in_l2tp<'a>(packet: &Packet<'a>) -> Option<Tunnelled<'a>> {
    let (ports, bytes) = packet.datagram().filter(|_| is_of(packet, UDP))?;
    let whole = packet.upper_length().checked_sub(8)?;
    // Version 2, and no control message.
    let flags = word(bytes, 0).filter(|flags| flags & 0x800f == 2)?;
    if ports.0 != L2TP_PORT && ports.1 != L2TP_PORT {
        return None;
    }
    let mut at = 2;
    let mut next = || {
        at += 2;
        word(bytes, at - 2)
    };
    let mut marks = String::new();
    if flags & 0x4000 != 0 {
        marks.push('L');
        next().filter(|stated| u32::from(*stated) <= whole)?;
    }
    let (tunnel, session) = (next()?, next()?);
    let mut numbers = String::new();
    if flags & 0x0800 != 0 {
        marks.push('S');
        numbers = format!("Ns={},Nr={}", next()?, next()?);
    }
    let mut padding = 0;
    if flags & 0x0200 != 0 {
        marks.push('O');
        padding = usize::from(next()?);
    }
    if flags & 0x0100 != 0 {
        marks.push('P');
    }
    at += padding;
    let before = format!(" l2tp:[{marks}]({tunnel}/{session}){numbers} {{");
    Some(Tunnelled { frame: bytes.get(at..)?, length: whole.checked_sub(at as u32)?, before, behind: "}" })
}

fn recognises(packet: &Packet<'_>) -> bool {
    read(packet).is_some()
}

fn prints(packet: &Packet<'_>, sequences: &mut Sequences) -> Option<Told> {
    let Tunnelled { frame, length, before, behind } = read(packet)?;
    let inner = sequences.in_tunnel(|sequences| describe_frame(frame, length, sequences));
    Some(Told::Instead(format!("{before}{inner}{behind}")))
}
