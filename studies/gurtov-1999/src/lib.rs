// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Study of sleep methods: how exactly a program wakes when it asked to, by every call that Linux has,
//! with and without stress, and what that means for live runs.
//!
//! Source: Gurtov 1999, "Technical Issues of Real-Time Network Simulation in Linux", and Kojo et al.
//! 2001, section 6.

mod cli;
mod commands;
pub mod conditions;
mod error;
pub mod files;
pub mod host;
mod interrupts;
pub mod line_rate;
pub mod measure;
pub mod method;
mod output;
pub mod pattern;
pub mod recommend;
pub mod render;
pub mod report;
pub mod series;
pub mod statistics;
pub mod stress;
pub mod technique;

pub use error::{Result, TimingError};

/// Does what the command line asks for, and ends the process with its exit status.
pub fn main() -> ! {
    use clap::Parser;
    let status = commands::run(&cli::Cli::parse()).unwrap_or_else(|error| {
        output::say(format_args!("airpath: {error}"));
        error.status()
    });
    std::process::exit(output::finish(status))
}
