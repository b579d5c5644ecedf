// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Endpoints: what stands at the two ends of a machine in virtual time, made from a workload.
//!
//! [`endpoints`] makes the client's and the server's end of a [`Workload`], and a handle that tells
//! what became of it. They never read a clock, and what they do is a function of the workload, its
//! flow number, the seed and what they receive: the same again, packet by packet.
//!
//! What they leave out is said where they are made: [`tcp`](mod@tcp) for TCP, [`quic`](mod@quic) for
//! QUIC, [`datagram`], [`media`](mod@media) and [`adaptive`] for what goes over UDP, [`pcap`](mod@pcap) for captures.

pub mod adaptive;
pub mod datagram;
mod error;
mod ip;
pub mod media;
mod options;
pub mod pcap;
pub mod quic;
mod record;
mod report;
pub mod tcp;

pub use error::EndpointError;
pub use options::{FIRST_CLIENT_PORT, FIRST_SERVER_PORT, Options};
pub use record::Results;
pub use report::{Delivery, FlowReport, MediaReport, QuicReport, QuicReports, RequestReport, WorkloadOutcome};

use airpath_core::{DrawKey, DrawScope, End, Seed, Time};
use airpath_virtual::Endpoint;
use airpath_workload::{Kind, Workload};

/// The two ends of a workload.
pub struct Pair {
    /// Start time of both.
    pub start: Time,
    /// Endpoint at the client's end.
    pub client: Box<dyn Endpoint>,
    /// Endpoint at the server's end.
    pub server: Box<dyn Endpoint>,
    /// Results of the flow, at any time.
    pub results: Results,
}

/// The two ends of `workload`, whose packets bear the number `flow`; `seed` is the run's.
///
/// # Errors
/// When the workload does not fit the options, or a file that it names cannot be read.
pub fn endpoints(workload: &Workload, flow: u32, seed: Seed, options: &Options) -> Result<Pair, EndpointError> {
    let start = Time::ZERO + workload.start;
    let results = Results::new(workload, flow);
    let context = Context { flow, seed, options: *options, results: results.clone() };
    let (client, server) = match &workload.kind {
        Kind::Tcp(tcp) => tcp::bulk(tcp, &context),
        Kind::Request(request) => tcp::request(request, &context),
        Kind::Cbr(cbr) => datagram::cbr(cbr, &context),
        Kind::Poisson(poisson) => datagram::poisson(poisson, &context),
        Kind::OnOff(on_off) => datagram::on_off(on_off, &context),
        Kind::Saturate(saturate) => datagram::saturate(saturate, &context),
        Kind::Quic(quic) => quic::bulk(quic, &context),
        Kind::Media(media) => media::media(media, &context),
        Kind::AdaptiveMedia(media) => adaptive::adaptive_media(media, &context),
        Kind::Pcap(pcap) => pcap::replay(pcap, &context),
    }?;
    Ok(Pair { start, client, server, results })
}

/// Common context of the makers of endpoints.
pub(crate) struct Context {
    flow: u32,
    seed: Seed,
    options: Options,
    results: Results,
}

type Ends = (Box<dyn Endpoint>, Box<dyn Endpoint>);

impl Context {
    /// The key of the draws of `end` for `purpose`, a word of its own.
    fn key(&self, end: End, purpose: &str) -> DrawKey {
        let scope = DrawScope { hop: "", direction: end.sends(), role: purpose, instance: u64::from(self.flow) };
        DrawKey::new(self.seed, &scope)
    }

    /// The sender and the receiver, each at its end.
    fn place(from: End, sender: Box<dyn Endpoint>, receiver: Box<dyn Endpoint>) -> Ends {
        match from {
            End::Client => (sender, receiver),
            End::Server => (receiver, sender),
        }
    }
}
