// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! State of the TCP connections in the kernels of both ends, recorded during a run: by asking every so often
//! (INET_DIAG), by hearing of closed sockets, and where root allows it at every packet that comes from the peer
//! (the tracepoint `tcp_probe`). A thread of ordinary priority does it; nothing of it is on a packet's way.

mod connections;
mod format;
mod info;
mod mode;
mod probe;
mod sampler;
mod tracefs;

pub use format::{FormatError, ProbeFormat, ProbeRecord};
pub use mode::{Mode, ModeError};
pub use sampler::{Options, Sampler};
