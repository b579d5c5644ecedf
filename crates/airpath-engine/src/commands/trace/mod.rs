// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath trace`: traces of rates and of errors, converted and shown; traces of errors, generated.

mod convert;
mod errors;
mod generate;
mod outcomes;
mod read;
mod records;
mod show;
mod write;

use crate::cli::trace::{TraceAction, TraceArgs};
use crate::error::Result;

/// Does it.
///
/// # Errors
/// When a file cannot be read or written, or is no trace.
pub fn run(args: &TraceArgs) -> Result<i32> {
    match &args.action {
        TraceAction::Convert(args) => convert::run(args),
        TraceAction::Generate(args) => generate::run(args),
        TraceAction::Show(args) => show::run(args),
    }
}
