// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Comparisons of numbers in filter expressions: bytes of packets, lengths, constants.

use super::evaluate::{Cut, Stop};
use crate::protocols::Packet;

/// A comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    pub left: Number,
    pub operator: &'static str,
    pub right: Number,
}

/// Header from which offsets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The IP header, of this version.
    Network(u8),
    /// The header above IP, of this protocol.
    Transport(u8),
}

/// A number, unsigned and of 32 bits, as in libpcap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    Constant(u32),
    Length,
    Bytes { base: Base, offset: Box<Number>, size: usize },
    Binary { left: Box<Number>, operator: &'static str, right: Box<Number> },
}

impl Relation {
    pub(super) fn matches(&self, packet: &Packet<'_>) -> Result<bool, Cut> {
        let values = self.left.value(packet).and_then(|left| Ok((left, self.right.value(packet)?)));
        let (left, right) = match values {
            Ok(values) => values,
            Err(Stop::Other) => return Ok(false),
            Err(Stop::Cut) => return Err(Cut),
        };
        Ok(match self.operator {
            "=" | "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            _ => left >= right,
        })
    }
}

impl Number {
    fn value(&self, packet: &Packet<'_>) -> Result<u32, Stop> {
        match self {
            Number::Constant(value) => Ok(*value),
            Number::Length => Ok(packet.length),
            Number::Bytes { base, offset, size } => {
                let begin = begin(*base, packet)?;
                let from = begin.checked_add(offset.value(packet)? as usize).ok_or(Stop::Cut)?;
                let bytes = packet.bytes.get(from..).and_then(|bytes| bytes.get(..*size)).ok_or(Stop::Cut)?;
                Ok(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
            }
            Number::Binary { left, operator, right } => {
                let (left, right) = (left.value(packet)?, right.value(packet)?);
                Ok(match *operator {
                    "+" => left.wrapping_add(right),
                    "-" => left.wrapping_sub(right),
                    "*" => left.wrapping_mul(right),
                    "/" => left.checked_div(right).ok_or(Stop::Cut)?,
                    "%" => left.checked_rem(right).ok_or(Stop::Cut)?,
                    "&" => left & right,
                    "|" => left | right,
                    "^" => left ^ right,
                    "<<" => left.checked_shl(right).unwrap_or(0),
                    _ => left.checked_shr(right).unwrap_or(0),
                })
            }
        }
    }
}

fn begin(base: Base, packet: &Packet<'_>) -> Result<usize, Stop> {
    let version = packet.bytes.first().ok_or(Stop::Cut)? >> 4;
    match base {
        Base::Network(wanted) if version == wanted => Ok(0),
        Base::Transport(wanted) if version == 4 || version == 6 => {
            let headers = packet.headers.ok_or(Stop::Cut)?;
            let there = headers.protocol == wanted && !headers.is_later_fragment();
            if there { Ok(headers.ip_bytes) } else { Err(Stop::Other) }
        }
        _ => Err(Stop::Other),
    }
}
