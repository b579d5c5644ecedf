// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands that every run of an experiment in virtual time starts, read without a description of all the others:
//! making that is most of what the start of such a process takes, as page faults are slow in a guest.

use std::ffi::OsString;

use clap::Args;

use super::Command;

/// The command of a line that is one of these and right; none of any other, which has to be read in full.
pub fn parse(words: &[OsString]) -> Option<Command> {
    let words = words.get(1..)?;
    match words.first()?.to_str()? {
        "bound" => one(words, Command::Bound),
        "exec" => one(words, Command::Exec),
        "recv" => one(words, Command::Recv),
        "send" => one(words, Command::Send),
        airpath_agent::COMMAND => one(words, Command::Agent),
        airpath_warp::guest::COMMAND if words.len() == 1 => Some(Command::WarpInit),
        _ => None,
    }
}

fn one<A: Args>(words: &[OsString], command: fn(A) -> Command) -> Option<Command> {
    let matches = A::augment_args(clap::Command::new("airpath")).try_get_matches_from(words).ok()?;
    A::from_arg_matches(&matches).ok().map(command)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        std::iter::once("airpath").chain(text.split(' ')).map(OsString::from).collect()
    }

    #[test]
    fn a_line_that_is_read_quickly_means_what_it_means_in_full() {
        for text in [
            "exec --clock warp --rate 2Mbit/s --delay 50ms --seed 7 --json --server airpath -- airpath send x -n 5",
            "exec --profile gsm-data-9.6k -- ping -c 4 server",
            "recv --json -1",
            "send server --bytes 500kB --reverse --json",
            "agent /tmp/x",
            "bound 7 airpath-engine sim --seed 1 -- x",
            "warp-init",
        ] {
            let words = line(text);
            let quick = parse(&words).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(format!("{quick:?}"), format!("{:?}", Cli::try_parse_from(&words).unwrap().command), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_or_of_another_command_is_left() {
        for text in
            ["exec --rate", "exec --help", "exec --version", "send", "warp-init x", "sim --rate 1Mbit/s", "help"]
        {
            assert!(parse(&line(text)).is_none(), "{text}");
        }
        assert!(parse(&[]).is_none());
    }
}
