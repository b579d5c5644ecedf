// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Users of a cell, and the patterns that choose among them.

/// True if a program with this pattern of users is one of `user`: `*` stands for any text, `?` for one character.
pub fn is_of(pattern: Option<&str>, user: &str) -> bool {
    pattern.is_none_or(|pattern| {
        let (pattern, user): (Vec<char>, Vec<char>) = (pattern.chars().collect(), user.chars().collect());
        matches(&pattern, &user)
    })
}

fn matches(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|skipped| matches(rest, &text[skipped..])),
        Some((first, rest)) => {
            text.split_first().is_some_and(|(found, left)| (*first == '?' || first == found) && matches(rest, left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_choose_users() {
        assert!(is_of(None, ""));
        assert!(is_of(Some("bbr-*"), "bbr-10"));
        assert!(is_of(Some("*-?"), "phone-1"));
        assert!(is_of(Some("bbr-?"), "bbr-1"));
        assert!(!is_of(Some("bbr-?"), "bbr-10"));
        assert!(!is_of(Some("bbr-1"), "bbr-10"));
        assert!(!is_of(Some("b.r-*"), "bbr-1"));
        assert!(!is_of(Some("bbr-*"), ""));
    }
}
