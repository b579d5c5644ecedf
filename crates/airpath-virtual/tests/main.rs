// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! All tests of the crate, as one program.

mod common;
mod driver;
mod naive;
mod scenarios;
mod world;
