// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP, by smoltcp: bulk transfers, and requests and responses.
//!
//! It is a small TCP, good for loading a link with something that answers to it; its results are not
//! those of Linux. What it has: the congestion controls Reno and CUBIC, or none; window scaling, a
//! retransmission timer of at least a second (RFC 6298), fast retransmit and fast recovery,
//! out-of-order segments kept by the receiver (32 holes), delayed acknowledgements of 10 ms. What it
//! lacks as a sender: selective acknowledgements, NewReno's partial acknowledgements, RACK and
//! tail-loss probes, pacing, timestamps, and ECN. So the second loss within a window waits for the
//! timer.
//!
//! Its clock counts microseconds: what arrives within one is seen at its beginning.

mod bulk;
mod host;
mod request;
mod wire;

use airpath_core::{End, Span};
use airpath_workload::kinds::{Request, Tcp};

use crate::error::EndpointError;
use crate::{Context, Ends};
use bulk::{Sink, Source};
use host::{HostEndpoint, Settings};
use request::{Client, Server};

/// A transfer's ends. The client opens the connection whichever end sends.
pub(crate) fn bulk(tcp: &Tcp, context: &Context) -> Result<Ends, EndpointError> {
    let settings = Settings::new(tcp.cc, tcp.mss, tcp.recv_window, true, context)?;
    let total_bytes = tcp.bytes.map_or(u64::MAX, |bytes| bytes.0);
    let source = HostEndpoint::new(tcp.from, &settings, Source::new(total_bytes, tcp.duration), context);
    let sink = HostEndpoint::new(tcp.from.other(), &settings, Sink::new(tcp.from, total_bytes, tcp.duration), context);
    Ok(Context::place(tcp.from, Box::new(source), Box::new(sink)))
}

/// The ends of requests and responses.
pub(crate) fn request(request: &Request, context: &Context) -> Result<Ends, EndpointError> {
    // Nagle's algorithm would hold back a request's last segment until the others are acknowledged.
    let settings = Settings::new(request.cc, request.mss, request.recv_window, false, context)?;
    let client = HostEndpoint::new(End::Client, &settings, Client::new(request), context);
    let server = HostEndpoint::new(End::Server, &settings, Server::new(request), context);
    Ok((Box::new(client), Box::new(server)))
}

/// The instant at which an application stops, counted from its start.
type StopAfter = Option<Span>;
