// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! All tests of the crate, as one program.

mod advice;
mod background;
mod bearers;
mod cells;
mod classes;
mod fading;
mod files;
mod malformed;
mod parameters;
mod profiles;
mod rates;
mod roundtrip;
mod schema;
mod states;
