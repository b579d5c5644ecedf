// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Behaviour of two connections on a line.

mod common;
mod laws;
mod losses;
mod opening;
