// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parts of the engine that tests and the fuzzer reach without starting a process. No program should build on
//! it.

use std::path::Path;

pub use crate::control::protocol::{Refusal, Request};

/// Replays the run in `folder`, as `airpath replay` does, and tells whether its trace is the same.
///
/// # Errors
/// The message with which the command would end.
pub fn replay(folder: &Path) -> Result<bool, String> {
    let outcome = crate::run::replay::replay(folder, None).map_err(|failure| failure.to_string())?;
    Ok(outcome.difference.is_none())
}
