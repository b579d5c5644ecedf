// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Common parts of `airpath send` and `airpath recv`: their reports, and the signals that end them.

mod interrupt;
pub mod json;
pub mod text;

use airpath_load::LoadError;
use airpath_load::error::Fault;

use crate::error::Failure;

pub use interrupt::on_interrupt;

/// A failed transfer as a failure of the command.
pub fn failure(error: &LoadError) -> Failure {
    match error.fault() {
        Fault::Request => Failure::usage(error.to_string()),
        Fault::World => Failure::program(error.to_string()),
    }
}
