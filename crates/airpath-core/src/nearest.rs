// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The nearest valid word to a mistyped one, for error messages.

/// The candidate nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let length = lower.chars().count();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let most = 1 + word.len().max(candidate.len()) / 3;
            let other = candidate.to_lowercase();
            // Each character more is a change. A comparison takes as long as both lengths multiplied, and
            // nobody knows how long the word of a stranger is.
            let far = length.abs_diff(other.chars().count()) > most;
            if far {
                return None;
            }
            let distance = strsim::damerau_levenshtein(&lower, &other);
            (distance <= most).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_nearly_right_is_found() {
        assert_eq!(nearest("quene", ["rate", "queue", "errors"]), Some("queue"));
        assert_eq!(nearest("RATE", ["queue", "rate"]), Some("rate"));
        assert_eq!(nearest("rate", ["propagation"]), None);
        assert_eq!(nearest("", ["a", "bcd"]), Some("a"));
    }

    #[test]
    fn a_very_long_word_is_not_compared() {
        // Compared, it would take gigabytes.
        let word = "x".repeat(50_000_000);
        assert_eq!(nearest(&word, ["probability", "rate", "queue"]), None);
    }
}
