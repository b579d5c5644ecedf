// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Starts the programs of one end of an experiment at their times, bounds them, and records what became of them.
//!
//! The engine runs an agent at each end of the link. Where a cell has several users, each of them has one. The ends
//! agree through files in a folder that all of them see: nothing of it goes over the link.

mod conduct;
mod output;
mod parties;
mod program;
mod record;
mod specification;
mod users;

use std::io;
use std::path::Path;

use conduct::Agent;
use specification::Specification;

/// The hidden command under which the engine is an agent.
pub const COMMAND: &str = "agent";

/// Runs the programs of the end that the file `specification` describes; returns the exit status, which is 1 if
/// one of them failed.
///
/// # Errors
/// A specification that cannot be read, or a folder that cannot be written.
pub fn run(specification: &Path) -> io::Result<i32> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", specification.display()));
    let text = std::fs::read_to_string(specification).map_err(named)?;
    let specification: Specification = serde_json::from_str(&text).map_err(|error| named(error.into()))?;
    let mut agent = Agent::new(specification)?;
    agent.prepare()?;
    agent.agree()?;
    agent.work()?;
    agent.finish()
}
