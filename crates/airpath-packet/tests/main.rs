// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The tests of this crate, as one program.

mod build;
mod captures;
mod edits;
mod ethernet;
mod expressions;
mod fields;
mod headers;
mod printed;
mod random_expressions;
