// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The words with which this program was started, to start it again with some of them changed.

use std::ffi::OsString;

/// `words` without the options named in `dropped` before `--`, each with whether a value follows it.
pub fn without(words: &[OsString], dropped: &[(&str, bool)]) -> Vec<OsString> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut kept = Vec::with_capacity(words.len());
    let mut skip_value = false;
    for word in &words[..end] {
        if std::mem::take(&mut skip_value) {
            continue;
        }
        let text = word.to_string_lossy();
        let name = text.split_once('=').map_or(&*text, |(name, _)| name);
        match dropped.iter().find(|(option, _)| *option == name) {
            Some((_, valued)) => skip_value = *valued && !text.contains('='),
            None => kept.push(word.clone()),
        }
    }
    kept.extend_from_slice(&words[end..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_with_their_values_and_the_command_stays() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let dropped = [("--seed", true), ("--quiet", false)];
        let line = "exec --seed 5 --rate 1 --quiet --seed=6 --log none -- x --seed 7 --quiet";
        assert_eq!(without(&words(line), &dropped), words("exec --rate 1 --log none -- x --seed 7 --quiet"));
    }
}
