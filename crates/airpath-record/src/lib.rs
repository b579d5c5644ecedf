// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Recording of a network path: packets over the path to `airpath recv`, saturating and light, and estimates of
//! capacity, delay, loss, reordering and queue from when they were sent and when they arrived.
//!
//! Sources: Saturator (Winstein, Sivaraman and Balakrishnan 2013), Mahimahi (Netravali et al. 2015) and CellReplay
//! (Sentosa et al. 2025) for the two loads; RFC 4737 for reordering; Wilson 1927 for intervals of shares; Gilbert
//! 1960 and Elliott 1963 for losses in bursts. `docs/record.md` says what cannot be distinguished.

pub mod analysis;
pub mod client;
mod date;
pub mod estimate;
pub mod folder;
pub mod phase;
pub mod plan;
pub mod recording;
pub mod records;
pub mod scenario;
pub mod server;
pub mod wire;
