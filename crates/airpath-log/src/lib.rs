// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files of a run: the event and input logs, the captures, the manifest, the verdict and the summary, and the
//! readers of all of them.
//!
//! The hot side is [`Recorder`], owned by the loop that carries packets: it copies into a batch in
//! memory and now and then swaps the batch for an empty one. All files are written by the thread
//! behind [`Writer`].

pub mod batch;
mod bound;
mod clock;
pub mod credit;
mod error;
mod exactness;
pub mod files;
pub mod folder;
pub mod hash;
pub mod histogram;
pub mod joined;
pub mod level;
pub mod manifest;
pub mod pcapng;
pub mod place;
pub mod places;
mod quantum;
pub mod read;
pub mod recorder;
pub mod render;
pub mod show;
pub mod summary;
pub mod tables;
pub mod tcp_state;
pub mod verdict;
pub mod writer;

pub use batch::Lost;
pub use bound::LatenessBound;
pub use clock::{Clock, ClockError};
pub use error::LogError;
pub use exactness::Exactness;
pub use histogram::{Delays, Distribution, Excess, Late, Timings};
pub use level::{Level, Snaplen};
pub use manifest::Manifest;
pub use places::{Places, UserNames};
pub use quantum::{Economy, Quantum};
pub use recorder::{Offered, Overflow, Packet, Recorder, RingSize};
pub use summary::{Summary, UserSummary};
pub use verdict::ends::{Around, EndResults, Holds, PartyHolds, PartyWaits, SocketLosses, Waits};
pub use verdict::{Grade, Verdict};
pub use writer::{Writer, WriterOptions, WriterReport};
