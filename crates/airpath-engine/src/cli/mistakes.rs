// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Slips on the command line that a parser of options takes for something else: negative values, a missing `--`
//! before a command, and values with a space that are not quoted.

use std::ffi::{OsStr, OsString};
use std::num::{IntErrorKind, ParseIntError};

use airpath_core::length::BYTES_UNITS;
use airpath_core::rate::RATE_UNITS;
use airpath_core::time::SPAN_UNITS;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error, Parser};

use super::{Cli, quick};

/// Commands that end in a command of the user's, after `--`.
const WITH_COMMANDS: [&str; 2] = ["exec", "shell"];

/// The command line, or the mistake in it.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Mistake> {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(command) = quick::parse(&words) {
        return Ok(Cli { command });
    }
    let words = joined(&Cli::command(), words);
    Cli::try_parse_from(&words).map_err(|error| match hint(&words, &error) {
        Some(hint) => Mistake::Told(hint),
        None => Mistake::Parser(without_a_detour(error)),
    })
}

/// A mistake on the command line.
#[derive(Debug)]
pub enum Mistake {
    /// One that has a message of its own.
    Told(String),
    /// Any other, or the wish for help.
    Parser(Error),
}

/// The parser's message with the beginning that all other messages have.
pub fn as_others(message: &str) -> String {
    let message = message.trim_end();
    message.strip_prefix("error: ").map_or_else(|| message.to_owned(), |what| format!("airpath: {what}"))
}

/// The words, with a negative value joined to the option before it, so that the option says what it thinks of it.
fn joined(command: &clap::Command, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut out = Vec::new();
    let mut command = command;
    while let Some(mut word) = words.next() {
        if word == "--" {
            out.push(word);
            break;
        }
        if let Some(below) = command.find_subcommand(&word) {
            command = below;
        } else if takes_value(command, &word)
            && let Some(value) = words.next_if(|next| is_negative(next))
        {
            word.push("=");
            word.push(value);
        }
        out.push(word);
    }
    out.extend(words);
    out
}

fn takes_value(command: &clap::Command, word: &OsStr) -> bool {
    let name = word.to_str().and_then(|word| word.strip_prefix("--"));
    name.is_some_and(|name| {
        command.get_arguments().any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
    })
}

fn is_negative(word: &OsStr) -> bool {
    word.to_str().and_then(|word| word.strip_prefix('-')).is_some_and(begins_with_number)
}

fn begins_with_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// The parser's message without the advice to put an unknown option behind `--`, which makes it the command.
fn without_a_detour(mut error: Error) -> Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => error.kind() == ErrorKind::UnknownArgument && word.starts_with("--"),
        _ => false,
    };
    if unknown {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Message about a number that has something else than digits, or is 0 where that is too small; the parser tells it of
/// strings, digits and types.
fn no_number(error: &Error) -> Option<String> {
    let source = std::error::Error::source(error)?.downcast_ref::<ParseIntError>()?;
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return None;
    };
    let first = match source.kind() {
        IntErrorKind::InvalidDigit => 0,
        IntErrorKind::Zero => 1,
        _ => return None,
    };
    Some(format!("invalid value '{value}' for '{option}': it is not a whole number from {first} on"))
}

/// A better message than the parser's, where a word was taken for an argument that is none, or for a number.
fn hint(words: &[OsString], error: &Error) -> Option<String> {
    if let Some(told) = no_number(error) {
        return Some(told);
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return None;
    }
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let place = texts.iter().skip(2).position(|text| text == word)? + 2;
    let option = &texts[place - 2];
    if option.starts_with("--") && begins_with_number(&texts[place - 1]) && is_unit(word) {
        let number = &texts[place - 1];
        return Some(format!("a value with a space needs quotes: {option} '{number} {word}'"));
    }
    let ends_in_command = WITH_COMMANDS.contains(&texts[1].as_str()) && !texts.iter().any(|text| text == "--");
    ends_in_command.then(|| {
        let quoted = |texts: &[String]| texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(" ");
        let (before, after) = (quoted(&texts[1..place]), quoted(&texts[place..]));
        format!("`{word}` is no option; put `--` before the command: airpath {before} -- {after}")
    })
}

fn is_unit(word: &str) -> bool {
    let word = word.split(',').next().unwrap_or(word);
    let mut units = RATE_UNITS.iter().chain(BYTES_UNITS).chain(SPAN_UNITS).flat_map(|unit| unit.names);
    units.any(|name| name.eq_ignore_ascii_case(word)) || word.eq_ignore_ascii_case("packets")
}

/// A word as a shell reads it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> String {
        match parse(std::iter::once("airpath").chain(words.iter().copied()).map(OsString::from)) {
            Ok(_) => String::new(),
            Err(Mistake::Told(hint)) => hint,
            Err(Mistake::Parser(error)) => format!("parser: {error}"),
        }
    }

    #[test]
    fn slips_have_messages_of_their_own() {
        assert_eq!(
            told(&["exec", "--rate", "1 Mbit/s", "curl", "http://server/"]),
            "`curl` is no option; put `--` before the command: airpath exec --rate '1 Mbit/s' -- curl http://server/"
        );
        assert_eq!(
            told(&["exec", "--rate", "1", "Mbit/s", "--", "true"]),
            "a value with a space needs quotes: --rate '1 Mbit/s'"
        );
        // A number that is a whole value: not half of one.
        assert!(told(&["exec", "--seed", "3", "true"]).contains("airpath exec --seed 3 -- true"));
    }

    #[test]
    fn messages_of_the_parser_look_like_all_others() {
        let Err(Mistake::Parser(error)) = parse(["airpath", "log", "x", "--frob"].map(OsString::from)) else {
            panic!("there is no --frob");
        };
        let told = as_others(&error.to_string());
        assert!(told.starts_with("airpath: unexpected argument '--frob' found\n"), "{told}");
        assert_eq!(as_others("Usage: airpath <COMMAND>\n"), "Usage: airpath <COMMAND>", "help has no such beginning");
    }

    #[test]
    fn numbers_that_do_not_fit_are_told_without_types() {
        let message = told(&["exec", "--loops", "0", "--", "true"]);
        assert_eq!(message, "invalid value '0' for '--loops <N>': it is not a whole number from 1 on");
        assert!(told(&["exec", "--seed", "x", "--", "true"]).ends_with("it is not a whole number from 0 on"));
    }

    #[test]
    fn negative_values_reach_their_option() {
        for words in [&["exec", "--replications", "-1", "--", "true"][..], &["sim", "--seed", "-1"]] {
            let message = told(words);
            assert!(message.contains("invalid value '-1' for '--"), "{message}");
        }
        assert_eq!(told(&["exec", "--rate", "-5 Mbit/s", "--", "true"]), "", "the scenario says what is wrong");
        assert_eq!(told(&["recv", "--json", "-1"]), "", "an option without a value, then a short one");
        assert_eq!(told(&["exec", "--", "seq", "--width", "-5"]), "", "words of the command stay as they are");
    }
}
