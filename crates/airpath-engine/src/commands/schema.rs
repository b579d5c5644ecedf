// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath schema`: the JSON Schema of scenario files.

use crate::terminal::show;

/// Prints it.
pub fn run() -> i32 {
    show!("{}\n", airpath_scenario::schema().trim_end());
    0
}
