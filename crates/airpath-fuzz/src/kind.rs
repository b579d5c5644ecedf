// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Kinds of inputs.

/// Syntax of inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In bytes: packets, Arrow, captures.
    Bytes,
    /// As text: TOML, JSON, lines of words.
    Text,
}

impl Kind {
    /// The kind that `input` looks like.
    pub fn of(input: &[u8]) -> Kind {
        let head = &input[..input.len().min(512)];
        // A text that is cut inside of a character is one nevertheless.
        let valid = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to() + 3 >= head.len(), |_| true);
        if valid && !head.contains(&0) { Kind::Text } else { Kind::Bytes }
    }
}
