// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocol of a recording, version [`VERSION`]: messages over the TCP connection that asked for it, and
//! datagrams of the path itself.

pub mod alive;
pub mod datagram;
pub mod message;

/// The version that is spoken here.
pub const VERSION: u64 = 1;
