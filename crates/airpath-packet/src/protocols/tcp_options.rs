// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options of TCP headers as text.
//!
//! Sources: RFC 9293, RFC 7323 (window scale, time stamps), RFC 2018 (SACK), RFC 7413 (fast open).

use std::fmt::Write as _;

use super::{long, word};

const END: u8 = 0;
const NO_OPERATION: u8 = 1;

/// Writes the options in `bytes`, of which the end is at hand if `is_whole`; `other_way` is the number from which
/// blocks of SACK count. True if all of them are as they should be.
pub(super) fn options(mut bytes: &[u8], is_whole: bool, other_way: u32, text: &mut String) -> bool {
    let mut is_first = true;
    while let Some((kind, rest)) = bytes.split_first() {
        if !is_first {
            text.push(',');
        }
        is_first = false;
        let length = match kind {
            &END | &NO_OPERATION => 1,
            _ => usize::from(rest.first().copied().unwrap_or(0)),
        };
        let name = match kind {
            0 => "eol",
            1 => "nop",
            2 => "mss",
            3 => "wscale",
            4 => "sackOK",
            5 => "sack",
            8 => "TS",
            34 => "tfo",
            _ => "",
        };
        let value = if length < 2 { Some(&[][..]) } else { bytes.get(2..length) };
        let (Some(value), 1..) = (value, length) else {
            text.push_str(if is_whole { "[bad opt]" } else { "[|tcp]" });
            return false;
        };
        // Writing into a string cannot fail.
        let _ = if name.is_empty() { write!(text, "unknown-{kind}") } else { write!(text, "{name}") };
        if *kind == END {
            return true;
        }
        if length == 1 && *kind != NO_OPERATION {
            text.push_str("[bad opt]");
            return false;
        }
        if !of_kind(*kind, value, other_way, text) {
            text.push_str("[bad opt]");
            return false;
        }
        bytes = &bytes[length..];
    }
    true
}

/// Writes the value of an option; false where it is too short for its kind.
fn of_kind(kind: u8, value: &[u8], other_way: u32, text: &mut String) -> bool {
    let seen = match kind {
        1 | 4 => 0,
        2 => match word(value, 0) {
            Some(bytes) => append(text, format_args!(" {bytes}"), 2),
            None => return false,
        },
        3 => match value.first() {
            Some(shift) => append(text, format_args!(" {shift}"), 1),
            None => return false,
        },
        5 if !value.len().is_multiple_of(8) => append(text, format_args!(" invalid sack"), value.len()),
        5 => {
            append(text, format_args!(" {} ", value.len() / 8), 0);
            for block in value.chunks_exact(8) {
                let edge = |at| long(block, at).unwrap_or_default().wrapping_sub(other_way);
                append(text, format_args!("{{{}:{}}}", edge(0), edge(4)), 0);
            }
            value.len()
        }
        8 => match (long(value, 0), long(value, 4)) {
            (Some(own), Some(echo)) => append(text, format_args!(" val {own} ecr {echo}"), 8),
            _ => return false,
        },
        34 => {
            text.push(' ');
            match value.len() {
                0 => text.push_str(" cookiereq"),
                4..=16 if value.len().is_multiple_of(2) => {
                    text.push_str(" cookie ");
                    hexadecimal(value, text);
                }
                _ => text.push_str(" (invalid)"),
            }
            value.len()
        }
        _ => {
            if !value.is_empty() {
                text.push_str(" 0x");
                hexadecimal(value, text);
            }
            value.len()
        }
    };
    let length = if kind == NO_OPERATION { 1 } else { 2 };
    if seen != value.len() {
        append(text, format_args!("[len {}]", value.len() + length), 0);
    }
    true
}

/// Writes `what`, and returns `bytes`.
fn append(text: &mut String, what: std::fmt::Arguments<'_>, bytes: usize) -> usize {
    // Writing into a string cannot fail.
    let _ = text.write_fmt(what);
    bytes
}

fn hexadecimal(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        append(text, format_args!("{byte:02x}"), 0);
    }
}
