// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes from outside to an active run: a Unix socket for each live run, in a folder of its owner,
//! and the commands that talk to it. docs/control.md describes the protocol.

pub mod around;
pub mod client;
pub mod folder;
pub mod protocol;
