// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands of the engine, as clap knows them.

use clap::CommandFactory;
use serde::Serialize;

use crate::cli::Cli;

/// A command.
#[derive(Serialize)]
pub struct Command {
    name: String,
    /// Its purpose, in a line.
    summary: String,
    /// A way to call it.
    example: String,
}

/// All commands but the hidden ones, in the order of the help.
pub fn commands() -> Vec<Command> {
    let cli = Cli::command();
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    shown
        .map(|command| {
            let name = command.get_name().to_owned();
            let help = |command: &clap::Command| command.get_after_help().map(ToString::to_string);
            let example = example(&name, &help(command).unwrap_or_default());
            Command { example, summary: command.get_about().map(ToString::to_string).unwrap_or_default(), name }
        })
        .collect()
}

/// The first example in `help` that calls the command by its `name` and fits into a line.
fn example(name: &str, help: &str) -> String {
    let call = format!("airpath {name}");
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let whole = |line: &&str| {
        line.strip_prefix(call.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            && !line.ends_with('\\')
    };
    // Some examples say behind a comment what they do.
    let example = lines.into_iter().find(whole).unwrap_or_default();
    example.split("   #").next().unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_summary_and_an_example() {
        for command in commands() {
            assert!(!command.summary.is_empty(), "{}", command.name);
            assert!(command.example.starts_with(&format!("airpath {}", command.name)), "{}", command.name);
        }
    }

    #[test]
    fn an_example_is_a_whole_call_of_the_command_without_its_comment() {
        let help = "Examples:\n  airpath runs --all\n  airpath run \\\n      more\n  airpath run a   # says so";
        assert_eq!(example("run", help), "airpath run a");
        assert_eq!(example("plan", help), "");
    }
}
