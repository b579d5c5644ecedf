// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP, by `airpath-tcp`: bulk transfers, and requests and responses.

mod bulk;
mod host;
mod packet;
mod request;

use airpath_core::{End, Span};
use airpath_workload::kinds::{Request, Tcp};

use crate::error::EndpointError;
use crate::{Context, Ends};
use bulk::{Sink, Source};
use host::{HostEndpoint, Keys, Settings};
use request::{Client, Server};

/// A transfer's ends. The client opens the connection whichever end sends.
pub(crate) fn bulk(tcp: &Tcp, context: &Context) -> Result<Ends, EndpointError> {
    let keys = Keys {
        congestion_control: tcp.cc,
        mss: tcp.mss,
        window: tcp.recv_window,
        nagle: true,
        timestamps: tcp.timestamps,
        ecn: tcp.ecn,
    };
    let settings = Settings::new(&keys, context)?;
    let total_bytes = tcp.bytes.map_or(u64::MAX, |bytes| bytes.0);
    let source = HostEndpoint::new(tcp.from, &settings, Source::new(total_bytes, tcp.duration), context);
    let sink = HostEndpoint::new(tcp.from.other(), &settings, Sink::new(tcp.from, total_bytes, tcp.duration), context);
    Ok(Context::place(tcp.from, Box::new(source), Box::new(sink)))
}

/// The ends of requests and responses.
pub(crate) fn request(request: &Request, context: &Context) -> Result<Ends, EndpointError> {
    // Nagle's algorithm would hold back a request's last segment until the others are acknowledged.
    let keys = Keys {
        congestion_control: request.cc,
        mss: request.mss,
        window: request.recv_window,
        nagle: false,
        timestamps: request.timestamps,
        ecn: request.ecn,
    };
    let settings = Settings::new(&keys, context)?;
    let client = HostEndpoint::new(End::Client, &settings, Client::new(request), context);
    let server = HostEndpoint::new(End::Server, &settings, Server::new(request), context);
    Ok((Box::new(client), Box::new(server)))
}

/// The instant at which an application stops, counted from its start.
type StopAfter = Option<Span>;
