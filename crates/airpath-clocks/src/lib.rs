// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The clocks of two hosts compared, and the logs of one brought onto the clock of the other.
//!
//! Source: Gurtov 1999, section 4.3. Offset and round trip of one exchange of four stamps are those of
//! NTP (Mills 1991, "Internet Time Synchronization"; RFC 5905); what is certain of the line through many
//! is bounded by convex hulls after Moon, Skelly and Towsley 1999; the line itself is that of Theil 1950
//! and Sen 1968 through the exchanges of least round trip.

pub mod client;
pub mod correct;
pub mod error;
pub mod estimate;
pub mod exchange;
pub mod identity;
mod lines;
pub mod message;
mod ptp;
pub mod segments;
pub mod server;
pub mod simulated;
pub mod socket;
pub mod status;
mod theil_sen;

pub use error::ClockError;
pub use estimate::Estimate;
pub use exchange::Exchange;

/// The UDP port at which clocks are compared unless another is named.
pub const DEFAULT_PORT: u16 = 5210;
