// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath runs`, `airpath state` and `airpath set`: runs that go on, controlled from outside.

use std::collections::BTreeMap;

use airpath_log::show as format;
use airpath_warp::guest::is_guest;
use serde_json::Value;

use crate::cli::control::{RunsArgs, SetArgs, StateArgs};
use crate::control::client::{self, ActiveRun};
use crate::control::protocol::Request;
use crate::error::{Failure, Result};
use crate::terminal::{say, show};

/// Lists the active runs.
pub fn runs(args: &RunsArgs) -> i32 {
    let runs = client::runs();
    if runs.is_empty() && !args.json {
        match is_guest() {
            true => say!("airpath: no active runs; {}", client::advice(true)),
            false => say!("airpath: no active runs"),
        }
    }
    for run in &runs {
        if args.json {
            show!("{}\n", run.about);
        } else {
            let about = &run.about;
            show!(
                "{}\t{}\t{}\t{}\t{}\n",
                run.number(),
                format::span(about["time_ns"].as_u64().unwrap_or_default()),
                states(about),
                run.folder().unwrap_or("-"),
                commands(about)
            );
        }
    }
    0
}

/// The state in force: that of all users, or each with its users.
fn states(answer: &Value) -> String {
    match answer["state"].as_str() {
        Some(state) => state.to_owned(),
        None => {
            let of_users = answer["user_states"].as_object().into_iter().flatten();
            by_user(of_users.map(|(user, state)| (state.as_str().unwrap_or_default().to_owned(), user.as_str())))
        }
    }
}

/// The command of the clients: that of all users, or each with its users.
fn commands(about: &Value) -> String {
    let words = |command: &Value| {
        let words: Vec<&str> = command.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(" ") }
    };
    let users = about["users"].as_array().map(Vec::as_slice).unwrap_or_default();
    match users {
        [] | [_] => words(&about["command"]),
        [first, ..] if !first["command"].is_array() => format!("{} users: {}", users.len(), words(&about["command"])),
        users => by_user(users.iter().map(|user| (words(&user["command"]), user["name"].as_str().unwrap_or_default()))),
    }
}

/// Each of the values once, with those who have it.
fn by_user<'a>(values: impl Iterator<Item = (String, &'a str)>) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (value, user) in values {
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, users)) => users.push(user),
            None => groups.push((value, vec![user])),
        }
    }
    let shown = |(value, users): (String, Vec<&str>)| match users.len() {
        1..=3 => format!("{}: {value}", users.join(", ")),
        count => format!("{count} users: {value}"),
    };
    groups.into_iter().map(shown).collect::<Vec<_>>().join("; ")
}

/// Puts a state in force, or tells which one is.
///
/// # Errors
/// When there is no such run or state.
pub fn state(args: &StateArgs) -> Result<i32> {
    let (run, name) = match args.words.as_slice() {
        [name] => (None, name),
        [run, name] => (Some(run.as_str()), name),
        _ => return Err(Failure::usage("give the name of a state, preceded by the run if several are active")),
    };
    let mut run = client::find(run)?;
    let answer = run.ask(&Request::State { name: name.clone() })?;
    tell(args.json, &run, &answer, &format!("state {name}"));
    Ok(0)
}

/// Sets parameters, all at one instant.
///
/// # Errors
/// When there is no such run or parameter, or a value does not fit.
pub fn set(args: &SetArgs) -> Result<i32> {
    let (run, assignments) = match args.words.split_first() {
        Some((first, rest)) if !first.contains('=') => (Some(first.as_str()), rest),
        _ => (None, args.words.as_slice()),
    };
    if assignments.is_empty() {
        return Err(Failure::usage("give a parameter and its value, as in radio.link.rate='64 kbit/s'"));
    }
    let mut parameters = BTreeMap::new();
    for assignment in assignments {
        let Some((name, value)) = assignment.split_once('=') else {
            return Err(Failure::usage(format!("`{assignment}` needs `=`, as in radio.link.rate='64 kbit/s'")));
        };
        if parameters.insert(name.trim().to_string(), Value::from(value)).is_some() {
            return Err(Failure::usage(format!("`{}` is set twice", name.trim())));
        }
    }
    let mut run = client::find(run)?;
    let answer = run.ask(&Request::Set { parameter: None, value: None, parameters })?;
    tell(args.json, &run, &answer, &assignments.join(" "));
    Ok(0)
}

fn tell(json: bool, run: &ActiveRun, answer: &Value, what: &str) {
    if json {
        show!("{answer}\n");
    } else {
        let at = format::span(answer["time_ns"].as_u64().unwrap_or_default());
        show!("run {}: {what} at {at}\n", run.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn states_and_commands_are_told_by_user_where_they_differ() {
        assert_eq!(states(&json!({ "state": "far", "user_states": { "a": "far", "b": "far" } })), "far");
        let users = json!({ "a": "far", "b": "initial", "c": "initial", "d": "initial", "e": "initial" });
        assert_eq!(states(&json!({ "state": null, "user_states": users })), "a: far; 4 users: initial");
        assert_eq!(commands(&json!({ "command": ["ping", "server"] })), "ping server");
        let users = json!([{ "name": "a" }, { "name": "b" }]);
        assert_eq!(commands(&json!({ "command": ["ping"], "users": users })), "2 users: ping");
        let users = json!([{ "name": "a", "command": ["ping"] }, { "name": "b", "command": [] }]);
        assert_eq!(commands(&json!({ "command": [], "users": users })), "a: ping; b: -");
    }
}
