// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The binary; everything is in the library beside it.

fn main() {
    airpath_sleep_study::main()
}
