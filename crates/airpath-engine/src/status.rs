// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Exit statuses of Airpath's own. A command behind a link keeps its own.

/// A program that did not do what it was to do, Airpath's own among them.
pub const UNDONE: i32 = 1;
/// A mistake in what was typed or written, as of every command line.
pub const USAGE: i32 = 2;
/// A run that cannot be trusted, with `--strict`.
pub const NOT_TRUSTED: i32 = 3;
/// A failure of Airpath itself, as of `env` and `timeout`.
pub const FAILED: i32 = 125;
