// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Workloads: what runs between the two ends of a link, as one line of text.
//!
//! A workload is written `KIND key=value …`, with shell-like quotes around values that hold spaces:
//! `tcp bytes=102400 from=server cc=cubic`, `cbr rate="64 kbit/s" size="200 bytes"`.
//! [`Workload::parse`] reads it, `Display` writes it, and serde takes the text or a table of the same
//! keys. Every kind, key and default is declared once, in [`mod@kinds`].

mod check;
mod display;
mod error;
mod keys;
pub mod kinds;
mod macros;
mod parse;
mod schema;
mod serial;
pub mod value;
mod words;

pub use error::{WorkloadError, WorkloadProblem};
pub use kinds::{AdaptiveMedia, Cbr, Kind, Media, OnOff, Pcap, Poisson, Quic, Request, Saturate, Tcp};
pub use macros::{KeyDescription, KindDescription};
pub use value::{
    Bytes, Count, EcnUse, MediaControl, Period, QuicCongestionControl, TcpCongestionControl, TimestampUse, UdpProtocol,
};

use airpath_core::Span;

/// Workload between the two ends of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name in reports; without one, its kind and number.
    pub name: Option<String>,
    /// User of a cell between whose ends it runs; without one, each user has such a workload.
    pub user: Option<String>,
    /// Start time, after the beginning of the run.
    pub start: Span,
    /// Kind of the workload, with its keys.
    pub kind: Kind,
}

impl Workload {
    /// True if it ends by itself; one that does not lasts as long as the run, which then needs a duration.
    pub fn is_bounded(&self) -> bool {
        match &self.kind {
            Kind::Tcp(Tcp { bytes, duration, .. }) | Kind::Quic(Quic { bytes, duration, .. }) => {
                bytes.is_some() || duration.is_some()
            }
            Kind::Request(_) | Kind::Pcap(_) => true,
            Kind::Cbr(Cbr { duration, packets, bytes, .. })
            | Kind::Poisson(Poisson { duration, packets, bytes, .. })
            | Kind::OnOff(OnOff { duration, packets, bytes, .. })
            | Kind::Saturate(Saturate { duration, packets, bytes, .. }) => {
                duration.is_some() || packets.is_some() || bytes.is_some()
            }
            Kind::Media(Media { duration, frames, .. })
            | Kind::AdaptiveMedia(AdaptiveMedia { duration, frames, .. }) => duration.is_some() || frames.is_some(),
        }
    }
}
