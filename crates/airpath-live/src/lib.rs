// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The live side of Airpath: everything about the operating system around a
//! machine. Namespaces and interfaces of the two endpoints, the ports through
//! which packets enter and leave the engine, clocks, and the processes.
//!
//! The order in which a run uses it:
//!
//! 1. [`privilege::acquire`], while the process has one thread;
//! 2. [`supervise::run`], which forks the engine process; within it
//! 3. [`session::Session::create`] gives two endpoints and two ports;
//! 4. [`command::Commands::start`] runs programs at the endpoints, and
//!    [`listening::ListenWatch`] tells when a server is ready;
//! 5. the loop polls the ports, a [`clock::DeadlineTimer`] and
//!    [`supervise::EngineProcess::signal_fd`].

pub mod addressing;
pub mod attachments;
pub mod capability;
pub mod clock;
pub mod command;
pub mod end_waits;
pub mod engine_loop;
mod error;
pub mod host_port;
pub mod host_state;
pub mod internet;
mod kernel_release;
pub mod link_watch;
pub mod listening;
pub mod namespaces;
pub mod netlink;
pub mod open_files;
pub mod packet_bytes;
pub mod ports;
pub mod presence;
pub mod privilege;
pub mod processor_time;
mod refusal;
pub mod scheduling;
mod series;
pub mod session;
pub mod side_by_side;
pub mod socket_losses;
mod subordinate;
pub mod supervise;
pub mod tcp_state;
pub mod tuning;
pub mod wake_latency;
pub mod watchdog;

pub use error::{LiveError, Result};
