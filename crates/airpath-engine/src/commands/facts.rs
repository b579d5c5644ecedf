// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath facts`: what programs beside the engine have to know of it.

use crate::terminal::show;

/// Prints them.
pub fn run() -> i32 {
    show!("{}", crate::facts::document());
    0
}
