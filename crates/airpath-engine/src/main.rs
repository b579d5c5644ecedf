// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The binary; everything is in the library beside it, so that tests reach it without a process.

fn main() {
    airpath_engine::main()
}
