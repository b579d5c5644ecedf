// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath runs`, `airpath state` and `airpath set`: runs that go on, controlled from outside.

use std::collections::BTreeMap;

use airpath_log::show as format;
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
        say!("airpath: no active runs");
    }
    for run in &runs {
        if args.json {
            show!("{}\n", run.about);
        } else {
            let about = &run.about;
            let words = about["command"].as_array().into_iter().flatten().filter_map(Value::as_str);
            show!(
                "{}\t{}\t{}\t{}\t{}\n",
                run.number(),
                format::span(about["time_ns"].as_u64().unwrap_or_default()),
                about["state"].as_str().unwrap_or_default(),
                run.folder().unwrap_or("-"),
                words.collect::<Vec<_>>().join(" ")
            );
        }
    }
    0
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
