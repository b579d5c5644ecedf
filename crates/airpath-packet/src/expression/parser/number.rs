// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Comparisons and the arithmetic in them.

use super::{Parser, words};
use crate::expression::ExpressionError;
use crate::expression::relation::{Base, Number, Relation};

const COMPARISONS: [&str; 7] = ["==", "=", "!=", "<=", ">=", "<", ">"];
/// Operators by precedence, the loosest first.
const OPERATORS: [&[&str]; 5] = [&["|", "^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

impl<'a> Parser<'a> {
    /// The comparison that begins here, if one does.
    pub(super) fn relation(&mut self) -> Result<Option<Relation>, ExpressionError> {
        // Brackets and `len` are in numbers alone: an error is in the number.
        let (from, is_number) = (self.next, self.after() == Some("[") || self.peek() == Some("len"));
        let left = match self.number(0) {
            Ok(left) => left,
            Err(error) if is_number => return Err(error),
            Err(_) => {
                self.next = from;
                return Ok(None);
            }
        };
        let Some(operator) = COMPARISONS.into_iter().find(|operator| self.peek() == Some(operator)) else {
            if is_number {
                return Err(self.wrong("a comparison such as `= 0` or `!= 0` is missing here"));
            }
            self.next = from;
            return Ok(None);
        };
        self.next += 1;
        Ok(Some(Relation { left, operator, right: self.number(0)? }))
    }

    fn number(&mut self, level: usize) -> Result<Number, ExpressionError> {
        let Some(operators) = OPERATORS.get(level) else { return self.deeper(Self::operand) };
        let mut left = self.number(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.peek() == Some(operator)) {
            self.next += 1;
            let right = self.number(level + 1)?;
            if matches!(*operator, "/" | "%") && right == Number::Constant(0) {
                return Err(self.wrong_before("this divides by zero"));
            }
            left = Number::Binary { left: Box::new(left), operator, right: Box::new(right) };
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Number, ExpressionError> {
        if self.take(&["-"]) {
            let (left, right) = (Box::new(Number::Constant(0)), Box::new(self.deeper(Self::operand)?));
            return Ok(Number::Binary { left, operator: "-", right });
        }
        if self.take(&["("]) {
            let inner = self.number(0)?;
            return if self.take(&[")"]) { Ok(inner) } else { Err(self.wrong("a `)` is missing here")) };
        }
        let word = self.word("a number")?;
        if word == "len" {
            return Ok(Number::Length);
        }
        if let Some((_, value)) = words::CONSTANTS.iter().find(|(name, _)| *name == word) {
            return Ok(Number::Constant(*value));
        }
        if self.take(&["["]) {
            self.next -= 1;
            let base = match (word, words::protocol(word)) {
                ("ip", _) => Base::Network(4),
                ("ip6", _) => Base::Network(6),
                (_, Some(protocol)) => Base::Transport(protocol),
                _ => return Err(self.wrong_before("bytes are of ip, ip6, tcp, udp, icmp, icmp6, igmp or sctp")),
            };
            self.next += 1;
            return self.bytes(base);
        }
        constant(word).map(Number::Constant).ok_or_else(|| self.wrong_before(&format!("`{word}` is no number")))
    }

    fn bytes(&mut self, base: Base) -> Result<Number, ExpressionError> {
        let offset = Box::new(self.number(0)?);
        let size = if self.take(&[":"]) {
            match self.word("a number of bytes")? {
                "1" => 1,
                "2" => 2,
                "4" => 4,
                other => return Err(self.wrong_before(&format!("`{other}` bytes cannot be read: 1, 2 or 4 can"))),
            }
        } else {
            1
        };
        if self.take(&["]"]) {
            Ok(Number::Bytes { base, offset, size })
        } else {
            Err(self.wrong("a `]` is missing here"))
        }
    }

    /// A number without arithmetic.
    pub(super) fn plain(&mut self, what: &str) -> Result<u32, ExpressionError> {
        let word = self.word(what)?;
        constant(word).ok_or_else(|| self.wrong_before(&format!("`{word}` is not {what}")))
    }
}

/// A number as in C: decimal, hexadecimal or octal.
fn constant(word: &str) -> Option<u32> {
    let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if word.len() > 1 && word.starts_with('0') => (word, 8),
        None => (word, 10),
    };
    u32::from_str_radix(digits, radix).ok()
}
