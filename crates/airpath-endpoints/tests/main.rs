// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! All tests of the crate, as one program.

mod adaptive;
mod captures;
mod common;
mod datagrams;
mod kernel;
mod media;
mod quic;
mod sharing;
mod transfers;
mod tuples;
mod worlds;
