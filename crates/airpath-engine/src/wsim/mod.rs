// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The offline simulator WSim: a file is sent over a radio link whose errors come from a trace.
//!
//! Source: Singh 2000, section 5.1. The input is read in application data units (ADUs), each ADU becomes a packet
//! with headers, each packet fills radio blocks, and each block takes one element of the error trace. What the
//! receiver accepts is written. Nothing here knows files or the command line.

mod blocks;
mod damage;
mod elements;
mod layout;
mod positions;
mod radio;
mod simulation;
mod statistics;
#[cfg(test)]
mod tests;
mod units;

pub use blocks::{BLOCK_NS, STANDARD_BLOCK_DATA_BYTES, THESIS_BLOCK_DATA_BYTES};
pub use damage::{Damager, Within};
pub use elements::Elements;
pub use layout::{Headers, LEAST_COVERAGE_BYTES, Protocol, Receiver};
pub use positions::Positions;
pub use radio::{Radio, TraceUnit};
pub use simulation::{Dropped, SimulationError, simulate};
pub use statistics::Statistics;
pub use units::{Adus, Units};
