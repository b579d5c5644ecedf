// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Names, types and records of DNS (RFC 1035 and IANA's registry) as text.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::printable::printable;
use super::{long, word};

/// Bit of a class in multicast DNS: the answer may be unicast, or replaces what is known.
pub(super) const TOP_BIT: u16 = 0x8000;
/// Class of the Internet.
pub(super) const CLASS_IN: u16 = 1;

/// Bits of a length that make it a pointer to a name elsewhere.
const POINTER: u8 = 0xc0;
/// Pointers followed within one name: more would be a circle.
const MOST_POINTERS: usize = 64;

/// Names of types, by number.
const KINDS: [(u16, &str); 62] = [
    (1, "A"),
    (2, "NS"),
    (3, "MD"),
    (4, "MF"),
    (5, "CNAME"),
    (6, "SOA"),
    (7, "MB"),
    (8, "MG"),
    (9, "MR"),
    (10, "NULL"),
    (11, "WKS"),
    (12, "PTR"),
    (13, "HINFO"),
    (14, "MINFO"),
    (15, "MX"),
    (16, "TXT"),
    (17, "RP"),
    (18, "AFSDB"),
    (19, "X25"),
    (20, "ISDN"),
    (21, "RT"),
    (22, "NSAP"),
    (23, "NSAP_PTR"),
    (24, "SIG"),
    (25, "KEY"),
    (26, "PX"),
    (27, "GPOS"),
    (28, "AAAA"),
    (29, "LOC"),
    (30, "NXT"),
    (31, "EID"),
    (32, "NIMLOC"),
    (33, "SRV"),
    (34, "ATMA"),
    (35, "NAPTR"),
    (36, "KX"),
    (37, "CERT"),
    (38, "A6"),
    (39, "DNAME"),
    (40, "SINK"),
    (41, "OPT"),
    (42, "APL"),
    (43, "DS"),
    (44, "SSHFP"),
    (45, "IPSECKEY"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (99, "SPF"),
    (100, "UINFO"),
    (101, "UID"),
    (102, "GID"),
    (103, "UNSPEC"),
    (104, "UNSPECA"),
    (249, "TKEY"),
    (250, "TSIG"),
    (251, "IXFR"),
    (252, "AXFR"),
    (253, "MAILB"),
    (254, "MAILA"),
    (255, "ANY"),
    (256, "URI"),
];

/// The name of a type.
pub(super) fn kind(number: u16) -> String {
    let known = KINDS.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("Type{number}"), |(_, name)| (*name).to_string())
}

/// The name of a class.
pub(super) fn class(number: u16) -> String {
    match number {
        CLASS_IN => "IN".into(),
        3 => "CHAOS".into(),
        4 => "HS".into(),
        255 => "ANY".into(),
        other => format!("Class{other}"),
    }
}

/// The place behind the name at `at`; none where it was cut off.
pub(super) fn skip_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = *bytes.get(at)?;
        match length & POINTER {
            POINTER => return Some(at + 2),
            0 if length == 0 => return Some(at + 1),
            0 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
}

/// Writes the name at `at`, and returns the place behind it; none where it was cut off or goes in circles.
pub(super) fn name(bytes: &[u8], at: usize, text: &mut String) -> Option<usize> {
    let behind = skip_name(bytes, at)?;
    let (mut at, mut pointers) = (at, 0);
    if *bytes.get(at)? == 0 {
        text.push('.');
    }
    loop {
        let length = *bytes.get(at)?;
        match length & POINTER {
            POINTER => {
                pointers += 1;
                let to = usize::from(word(bytes, at)? & 0x3fff);
                if pointers > MOST_POINTERS || to >= at {
                    return None;
                }
                at = to;
            }
            0 if length == 0 => return Some(behind),
            0 => {
                let label = bytes.get(at + 1..)?.get(..usize::from(length))?;
                text.push_str(&printable(label));
                text.push('.');
                at += 1 + label.len();
            }
            _ => return None,
        }
    }
}

/// Writes the record at `at`, and returns the place behind it; none where it was cut off.
pub(super) fn record(bytes: &[u8], at: usize, is_multicast: bool, text: &mut String) -> Option<usize> {
    let at = skip_name(bytes, at)?;
    let (number, of_class, length) = (word(bytes, at)?, word(bytes, at + 2)?, usize::from(word(bytes, at + 8)?));
    let data = at + 10;
    let end = data + length;
    // Writing into a string cannot fail.
    if is_multicast && of_class == CLASS_IN | TOP_BIT {
        text.push_str(" (Cache flush)");
    } else if of_class != CLASS_IN && number != 41 {
        let _ = write!(text, " {}", class(of_class));
    }
    let _ = write!(text, " {}", kind(number));
    let within = bytes.get(..end)?;
    match number {
        1 => {
            let _ = write!(text, " {}", Ipv4Addr::from(long(within, data)?));
        }
        2 | 5 | 12 | 39 => {
            text.push(' ');
            name(within, data, text)?;
        }
        15 => {
            text.push(' ');
            name(within, data + 2, text)?;
            let _ = write!(text, " {}", word(within, data)?);
        }
        16 => {
            let mut at = data;
            while at < end {
                let part = within.get(at + 1..)?.get(..usize::from(within[at]))?;
                let _ = write!(text, " \"{}\"", printable(part));
                at += 1 + part.len();
            }
        }
        28 => {
            let address: &[u8; 16] = within.get(data..)?.first_chunk()?;
            let _ = write!(text, " {}", Ipv6Addr::from(*address));
        }
        33 => {
            text.push(' ');
            name(within, data + 6, text)?;
            let [priority, weight, port] = [word(within, data)?, word(within, data + 2)?, word(within, data + 4)?];
            let _ = write!(text, ":{port} {priority} {weight}");
        }
        41 => {
            let _ = write!(text, " UDPsize={of_class}");
        }
        _ => {}
    }
    Some(end)
}
