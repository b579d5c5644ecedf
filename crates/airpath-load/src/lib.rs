// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A small load generator: bulk transfers, requests and responses over TCP, datagrams over UDP or
//! UDP-Lite, between a client (`send`) and a server ([`server::Server`]).
//!
//! It is made of threads that block, and of absolute timers. Nothing polls, so that it costs a slow
//! link no packet and a time-travelling kernel no time; see `docs/load.md` for what goes over the
//! wire besides the load.

pub mod client;
pub mod clock;
mod datagrams;
pub mod error;
mod pacing;
pub mod plan;
mod progress;
pub mod protocol;
pub mod report;
mod requests;
pub mod server;
pub mod sockets;
mod streams;
mod transfer;

pub use client::send;
pub use error::{LoadError, Result};
pub use plan::{Arrivals, Datagrams, Extent, MOST_REQUESTS, Plan, Transport, Work};
pub use report::{
    Endpoints, Interval, IntervalStream, ProgressObserver, Received, Report, Sent, StreamReport, TcpSample,
};
