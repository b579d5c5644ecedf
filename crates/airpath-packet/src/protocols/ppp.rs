// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of PPP (RFC 1661, RFC 1662) by their protocol number: IP packets, and the protocols that negotiate.

use super::printable::printable;
use super::{Sequences, describe, word};

/// Address and control field of HDLC-like framing.
const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];
const IPV4: u16 = 0x0021;
const IPV6: u16 = 0x0057;
const HEADER_BYTES: usize = 4;

/// Protocols with packets of a code, a number and a length (RFC 1661, section 5), by number.
const NEGOTIATING: [(u16, &str); 4] = [(0xc021, "LCP"), (0x8021, "IPCP"), (0x8057, "IP6CP"), (0x80fd, "CCP")];
const PAP: u16 = 0xc023;
const CHAP: u16 = 0xc223;
const CODES: [&str; 15] = [
    "Conf-Request",
    "Conf-Ack",
    "Conf-Nack",
    "Conf-Reject",
    "Term-Request",
    "Term-Ack",
    "Code-Reject",
    "Prot-Reject",
    "Echo-Request",
    "Echo-Reply",
    "Disc-Req",
    "Ident",
    "Time-Rem",
    "Reset-Req",
    "Reset-Ack",
];

/// A frame without flags, escapes and check sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Protocol number.
    pub protocol: u16,
    /// Contents behind the protocol number.
    pub contents: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame, with address and control field or without them, with a protocol number of two octets or one. None
    /// where the beginning is cut off or is no protocol number.
    pub fn read(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let bytes = bytes.strip_prefix(&ADDRESS_AND_CONTROL).unwrap_or(bytes);
        match bytes {
            // The last octet of a number is odd, and no other is.
            [first, contents @ ..] if first & 1 == 1 => Some(Frame { protocol: (*first).into(), contents }),
            [first, second, contents @ ..] if second & 1 == 1 => {
                Some(Frame { protocol: u16::from_be_bytes([*first, *second]), contents })
            }
            _ => None,
        }
    }

    /// The IP packet in it, if it has one that its protocol number names.
    pub fn packet(&self) -> Option<&'a [u8]> {
        let version = self.contents.first()? >> 4;
        matches!((self.protocol, version), (IPV4, 4) | (IPV6, 6)).then_some(self.contents)
    }
}

/// Describes a frame of `length` bytes that begins with `bytes` as tcpdump does. `sequences` as for [`describe`].
pub fn describe_frame(bytes: &[u8], length: u32, sequences: &mut Sequences) -> String {
    let Some(frame) = Frame::read(bytes) else { return " [|ppp]".into() };
    let before = bytes.len() - frame.contents.len();
    let length = length.saturating_sub(before as u32);
    let contents = frame.contents;
    if frame.packet().is_some() {
        return describe(contents, length, sequences);
    }
    if let Some((_, name)) = NEGOTIATING.iter().find(|(number, _)| *number == frame.protocol) {
        return match coded(contents) {
            Some((code, number, _)) => {
                let word = usize::from(code).checked_sub(1).and_then(|place| CODES.get(place));
                let word = word.copied().unwrap_or("Unknown Opcode");
                // tcpdump counts the protocol number.
                let length = length + 2;
                format!("{name}, {word} (0x{code:02x}), id {number}, length {length}")
            }
            None => format!("{name}, [|{name}]"),
        };
    }
    let told = match frame.protocol {
        PAP => authentication(contents),
        CHAP => challenge(contents),
        _ => None,
    };
    let other = || format!("PPP, protocol 0x{:04x}, length {length}", frame.protocol);
    told.unwrap_or_else(other)
}

/// Code and number of a packet, and what follows its length.
fn coded(bytes: &[u8]) -> Option<(u8, u8, &[u8])> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let end = usize::from(word(header, 2)?).clamp(HEADER_BYTES, bytes.len());
    Some((header[0], header[1], &bytes[HEADER_BYTES..end]))
}

/// A field with its length before it, and what follows.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked((*length).into())
}

/// PAP (RFC 1334). The text has user and password, which are in the frame for everybody to read.
fn authentication(bytes: &[u8]) -> Option<String> {
    let (code, number, data) = coded(bytes)?;
    let (field, rest) = counted(data)?;
    let field = printable(field);
    Some(match code {
        1 => format!("PAP, Auth-Req (0x01), id {number}, Peer {field}, Name {}", printable(counted(rest)?.0)),
        2 => format!("PAP, Auth-ACK (0x02), id {number}, Msg {field}"),
        3 => format!("PAP, Auth-NACK (0x03), id {number}, Msg {field}"),
        _ => return None,
    })
}

/// CHAP (RFC 1994).
fn challenge(bytes: &[u8]) -> Option<String> {
    let (code, number, data) = coded(bytes)?;
    let word = *["Challenge", "Response", "Success", "Fail"].get(usize::from(code).checked_sub(1)?)?;
    if code > 2 {
        return Some(format!("CHAP, {word} (0x{code:02x}), id {number}, Msg {}", printable(data)));
    }
    let (value, name) = counted(data)?;
    let value: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("CHAP, {word} (0x{code:02x}), id {number}, Value {value}, Name {}", printable(name)))
}
