// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cuts a line into words, with the quotes of a shell.

use std::ops::Range;

use crate::error::WorkloadProblem;

/// One word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Text without its quotes.
    pub text: String,
    /// Position in the line, in bytes.
    pub place: Range<usize>,
    /// Its number in the line, from 1.
    pub number: usize,
}

/// The words of `line`. Single quotes keep everything, double quotes everything but `\"` and `\\`,
/// and a backslash outside of quotes the character after it.
pub(crate) fn split(line: &str) -> Result<Vec<Word>, WorkloadProblem> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut characters = line.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if quote.is_none() && character.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let number = words.len() + 1;
        let current = word.get_or_insert_with(|| Word { text: String::new(), place: at..at, number });
        match (character, quote) {
            (_, Some((open, _))) if character == open => quote = None,
            ('\\', Some(('"', _))) if matches!(characters.peek(), Some((_, '"' | '\\'))) => {
                current.text.extend(characters.next().map(|(_, escaped)| escaped));
            }
            (_, Some(_)) => current.text.push(character),
            ('\'' | '"', None) => quote = Some((character, at)),
            ('\\', None) => current.text.extend(characters.next().map(|(_, escaped)| escaped)),
            (_, None) => current.text.push(character),
        }
        current.place.end = characters.peek().map_or(line.len(), |(next, _)| *next);
    }
    if let (Some((open, at)), Some(word)) = (quote, &word) {
        return Err(WorkloadProblem::new(word.number, at..line.len(), format!("the quote {open} is not closed")));
    }
    words.extend(word);
    Ok(words)
}

/// `text` as it has to be written to be read as one word.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-+/:%,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_string()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn quotes_are_those_of_a_shell() {
        assert_eq!(texts(r#"cbr rate="64 kbit/s"  size='200 B'"#), ["cbr", "rate=64 kbit/s", "size=200 B"]);
        assert_eq!(texts(r#"a\ b "c\"d\\" '\' "\e" "" x"y"z"#), ["a b", "c\"d\\", "\\", "\\e", "", "xyz"]);
        assert_eq!(texts("  \t "), [""; 0]);
        assert_eq!(split("tcp name=\"x").unwrap_err().message, "the quote \" is not closed");
    }

    #[test]
    fn words_know_where_they_stand() {
        let words = split("tcp  name='ä b' x").unwrap();
        assert_eq!(words[1].place, 5..16);
        assert_eq!((words[2].place.clone(), words[2].number), (17..18, 3));
    }

    #[test]
    fn what_is_quoted_is_one_word_again() {
        for text in ["", "a", "64 kbit/s", "it's", "a\"b\\c", "\\", "10.77.0.2", "µ", "a=b;$c"] {
            assert_eq!(texts(&quoted(text)), [text]);
        }
    }
}
