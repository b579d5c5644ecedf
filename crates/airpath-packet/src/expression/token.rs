// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tokens of filter expressions.

/// A word, number, address or symbol, and where it begins, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    pub at: usize,
}

const SYMBOLS: [&str; 22] = [
    "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", "!", "=", "<", ">", "&", "|", "+", "-", "*",
    "/",
];
const MORE_SYMBOLS: [&str; 3] = ["%", "^", ":"];

/// The tokens of `text`; an error is the place of a character that begins none.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, usize> {
    let mut all = Vec::new();
    let mut at = 0;
    let mut brackets = 0_u32;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        // A colon separates offset and size in brackets, and belongs to addresses elsewhere.
        let in_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c) || (c == ':' && brackets == 0);
        let begins = first.is_ascii_alphanumeric() || first == '\\' || (brackets == 0 && rest.starts_with("::"));
        let length = if begins {
            let from = usize::from(first == '\\');
            from + rest[from..].find(|c| !in_word(c)).unwrap_or(rest.len() - from)
        } else {
            SYMBOLS.iter().chain(&MORE_SYMBOLS).find(|symbol| rest.starts_with(**symbol)).ok_or(at)?.len()
        };
        let token = &rest[..length];
        brackets = match token {
            "[" => brackets + 1,
            "]" => brackets.saturating_sub(1),
            _ => brackets,
        };
        all.push(Token { text: token, at });
        at += length;
    }
    Ok(all)
}
