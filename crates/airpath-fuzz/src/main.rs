// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The fuzzer: gives mutated inputs to everything in Rust that reads what somebody else wrote.
//!
//! Input `number` of a `seed` is the same everywhere, so that a finding is replayed by its numbers or by
//! its file. Workers are processes of their own under a memory limit; who starts them sees their
//! crashes and stops those that take too long.

mod cli;
mod command;
mod corpus;
mod findings;
mod kind;
mod mutate;
mod random;
mod supervise;
mod targets;
mod through;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use cli::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match (&arguments.input, arguments.worker) {
        (Some(path), _) => worker::one(&arguments, path),
        (None, Some(_)) => worker::run(&arguments),
        (None, None) => supervise::run(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("airpath-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}
