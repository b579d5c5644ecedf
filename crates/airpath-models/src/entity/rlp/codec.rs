// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of RLP as octets: header, exchange identification and frame check sequence.
//!
//! Source: 3GPP TS 24.022, clause 4 (frames of 240 and 576 bits, header of 16 bits, or of 24 bits for S and
//! I+S frames of version 2; FCS of 24 bits) and clause 5.2 (header, parameters of XID). The low-order part of
//! every field comes first. The last two bits of the header of version 2 are the L2R status bit (clause 5.2.3.4), which
//! is 0 because frames carry no status octet, and the upgrading proposal (5.2.3.9), which is 0 because no further
//! channel can be had; both are ignored in what arrives.

use super::header::{Body, Header, Supervision, Unnumbered};
use super::xid::Xid;

/// Octets of the frame check sequence.
pub const FCS_OCTETS: usize = 3;

/// The low six bits of N(S) in U frames, and in S frames.
const UNNUMBERED: u32 = 63;
const SUPERVISORY: u32 = 62;

/// Number of sequence numbers.
pub const fn modulus(version: u8) -> u16 {
    if version >= 2 { 496 } else { 62 }
}

/// Octets of the header of an I+S frame.
pub const fn header_octets(version: u8) -> usize {
    if version >= 2 { 3 } else { 2 }
}

/// Sequence number `number` in the nine bits of version 2: those numbers are left out whose low six bits mark U
/// and S frames, which is why there are 496.
const fn wide(number: u16) -> u32 {
    ((number as u32 / 62) << 6) | (number as u32 % 62)
}

const fn narrow(bits: u32) -> Option<u16> {
    let low = bits & 63;
    if low >= 62 { None } else { Some((bits >> 6 & 7) as u16 * 62 + low as u16) }
}

/// The header's octets, lowest first, and their number.
pub fn encode_header(header: Header, version: u8) -> (u32, usize) {
    let command = u32::from(header.command);
    let poll_final = u32::from(header.poll_final);
    let (kind, ns, nr) = match header.body {
        Body::Unnumbered(kind) => {
            // U frames are the same in all versions.
            return (command | UNNUMBERED << 3 | poll_final << 9 | u32::from(kind.code()) << 10, 2);
        }
        Body::Supervisory { kind, nr } => (kind, None, nr),
        Body::Information { kind, ns, nr } => (kind, Some(ns), nr),
    };
    let head = command | u32::from(kind.code()) << 1;
    if version >= 2 {
        let ns = ns.map_or(SUPERVISORY, wide);
        return (head | ns << 3 | poll_final << 12 | wide(nr) << 13, 3);
    }
    (head | ns.map_or(SUPERVISORY, u32::from) << 3 | poll_final << 9 | u32::from(nr) << 10, 2)
}

/// The header that the lowest bits of `bits` are; none if there is no such header.
pub fn decode_header(bits: u32, version: u8) -> Option<Header> {
    let command = bits & 1 == 1;
    let mark = bits >> 3 & 63;
    if mark == UNNUMBERED {
        let kind = Unnumbered::of((bits >> 10 & 31) as u16)?;
        return Some(Header { command, poll_final: bits >> 9 & 1 == 1, body: Body::Unnumbered(kind) });
    }
    let kind = Supervision::of((bits >> 1 & 3) as u8);
    let (ns, poll_final, nr) = match version {
        0 | 1 => (Some(mark as u16), bits >> 9 & 1 == 1, narrow(bits >> 10 & 63)?),
        _ => (narrow(bits >> 3 & 511), bits >> 12 & 1 == 1, narrow(bits >> 13 & 511)?),
    };
    let body = match ns {
        Some(ns) if mark != SUPERVISORY => Body::Information { kind, ns, nr },
        _ => Body::Supervisory { kind, nr },
    };
    Some(Header { command, poll_final, body })
}

/// The octets of a whole frame of `length` octets: header, information, and FCS. What the information leaves
/// free is 0.
///
/// # Panics
/// If the information does not fit.
pub fn encode_frame(header: Header, version: u8, information: &[u8], length: usize) -> Vec<u8> {
    let (bits, octets) = encode_header(header, version);
    let mut frame = bits.to_le_bytes()[..octets].to_vec();
    frame.extend_from_slice(information);
    assert!(frame.len() + FCS_OCTETS <= length, "{} octets of information do not fit", information.len());
    frame.resize(length - FCS_OCTETS, 0);
    let fcs = frame_check_sequence(&frame);
    frame.extend_from_slice(&fcs.to_le_bytes()[..FCS_OCTETS]);
    frame
}

/// The header and the information of a frame; none if its FCS is wrong or it is none.
pub fn decode_frame(frame: &[u8], version: u8) -> Option<(Header, &[u8])> {
    let body = frame.get(..frame.len().checked_sub(FCS_OCTETS)?)?;
    let fcs = frame_check_sequence(body);
    if frame[body.len()..] != fcs.to_le_bytes()[..FCS_OCTETS] {
        return None;
    }
    let mut head = [0; 4];
    head[..3].copy_from_slice(body.get(..3)?);
    let header = decode_header(u32::from_le_bytes(head), version)?;
    let octets = if matches!(header.body, Body::Unnumbered(_)) { 2 } else { header_octets(version) };
    Some((header, &body[octets..]))
}

/// The identification that an XID frame carries.
pub fn encode_xid(xid: &Xid) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut field = |kind: u8, value: u16| match value {
        0..=255 => octets.extend([kind << 4 | 1, value as u8]),
        _ => octets.extend([kind << 4 | 2, value.to_le_bytes()[0], value.to_le_bytes()[1]]),
    };
    field(1, xid.version.into());
    field(2, xid.window_to_mobile);
    field(3, xid.window_from_mobile);
    field(4, xid.t1.into());
    field(5, xid.n2.into());
    field(6, xid.t2.into());
    octets
}

/// The identification in the information of an XID frame; fields that it does not have are those of `defaults`.
/// None if a field ends behind the frame.
pub fn decode_xid(information: &[u8], defaults: Xid) -> Option<Xid> {
    let mut xid = defaults;
    let mut rest = information;
    while let Some((head, behind)) = rest.split_first().filter(|(head, _)| **head != 0) {
        let (value, behind) = behind.split_at_checked(usize::from(head & 15))?;
        rest = behind;
        let number = value.iter().rev().fold(0u64, |number, octet| number << 8 | u64::from(*octet));
        let octet = number.min(255) as u8;
        match head >> 4 {
            1 => xid.version = octet,
            2 => xid.window_to_mobile = number as u16,
            3 => xid.window_from_mobile = number as u16,
            4 => xid.t1 = octet,
            5 => xid.n2 = octet,
            6 => xid.t2 = octet,
            // Compression (7) and later fields.
            _ => {}
        }
    }
    Some(xid)
}

/// The frame check sequence of `octets`: the remainder by the generator of clause 4.4, of degree 24, bits taken
/// lowest first, with ones before and a complement behind, as in HDLC.
pub fn frame_check_sequence(octets: &[u8]) -> u32 {
    let remainder = octets.iter().fold(0xff_ffff, |remainder: u32, octet| {
        (0..8).fold(remainder ^ u32::from(*octet), |bits, _| bits >> 1 ^ if bits & 1 == 1 { GENERATOR } else { 0 })
    });
    !remainder & 0xff_ffff
}

/// The generator without its highest term, lowest term highest: x^24 + x^23 + x^21 + x^20 + x^19 + x^17 + x^16 +
/// x^15 + x^13 + x^8 + x^7 + x^5 + x^4 + x^2 + 1.
const GENERATOR: u32 = 0xad_85dd;
