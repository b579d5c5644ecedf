// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath timing`: how well this machine keeps time.

use std::ffi::OsString;

use airpath_core::nearest::nearest;
use airpath_live::host_state::HostState;

use super::{calibrate, clocks, study};
use crate::cli::timing::{HostArgs, TimingAction, TimingArgs};
use crate::error::{Failure, Result};
use crate::terminal::show;

/// The commands, for a word that is none of them.
const COMMANDS: [&str; 5] = ["calibrate", "host", "sync", "correct", "methods"];

/// Carries out one of the commands. Anything else goes to the study of sleep methods.
///
/// # Errors
/// Those of the command, and a word that is none.
pub fn run(args: &TimingArgs) -> Result<i32> {
    match &args.action {
        None => measure(&args.study),
        Some(TimingAction::Methods(args)) => {
            Err(study::become_it([OsString::from("methods")].iter().chain(&args.options)))
        }
        Some(TimingAction::Host(args)) => Ok(host(args)),
        Some(TimingAction::Calibrate(args)) => calibrate::run(args),
        Some(TimingAction::Sync(args)) => clocks::sync::run(args),
        Some(TimingAction::Correct(args)) => clocks::correct::run(args),
    }
}

/// A measurement by the study, which has options alone.
fn measure(options: &[OsString]) -> Result<i32> {
    let word = options.first().and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    Err(match word {
        Some(word) => {
            let hint = nearest(word, COMMANDS).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Failure::usage(format!("`{word}` is no command of airpath timing ({}){hint}", COMMANDS.join(", ")))
        }
        None => study::become_it(options),
    })
}

/// Tells what of this machine bears on timing.
fn host(args: &HostArgs) -> i32 {
    let state = HostState::look();
    if args.json {
        show!("{}\n", serde_json::to_string_pretty(&state).expect("facts are JSON"));
    } else {
        show!("{state}");
    }
    0
}
