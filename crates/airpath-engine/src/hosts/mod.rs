// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The engines of one run on several hosts: how one reaches the other by `ssh`, and what they say.

mod carry;
pub mod channel;
pub mod clocks;
pub mod interrupts;
mod locks;
pub mod mouth;
mod patient;
mod receipts;
pub mod ssh;
mod ssh_log;
pub mod stream;
mod tallies;
pub mod transfer;
pub mod tunnel;
pub mod wire;

pub use patient::Patient;
pub use tallies::{Counts, Tally};

pub use airpath_log::files::HOSTS;
