// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! QUIC, by quinn: bulk transfers over one stream.
//!
//! This is the QUIC of real programs (RFC 9000 to 9002) with its handshake, encryption, loss recovery,
//! pacing, ECN and discovery of the path's MTU; only its clock and its random numbers are ours. The
//! same seed gives packets at the same times, in the same directions and of the same lengths. Their
//! bytes differ from run to run, because the cryptography draws keys from the system.
//!
//! New Reno and CUBIC are offered; quinn's BBR is not, as it draws from the system's random numbers and
//! a run would not repeat. A connection is never given up for being idle. QUIC's datagrams are never
//! fragmented, and the first ones have 1200 bytes: a link with a smaller MTU cannot carry it.

mod certificate;
mod host;
mod transfer;
mod transport;

use std::time::Instant;

use airpath_workload::kinds::Quic;

use crate::error::EndpointError;
use crate::{Context, Ends};
use host::HostEndpoint;
use transfer::Transfer;
use transport::Transport;

/// A transfer's ends. The client opens the connection whichever end sends.
pub(crate) fn bulk(quic: &Quic, context: &Context) -> Result<Ends, EndpointError> {
    let transport = Transport::new(quic.cc, context)?;
    let total_bytes = quic.bytes.map_or(u64::MAX, |bytes| bytes.0);
    // All times are counted from here, so it does not matter when that is.
    let base = Instant::now();
    let source = Transfer::source(total_bytes, quic.duration);
    let sink = Transfer::sink(quic.from, quic.duration);
    let source = HostEndpoint::new(quic.from, &transport, source, base, context)?;
    let sink = HostEndpoint::new(quic.from.other(), &transport, sink, base, context)?;
    Ok(Context::place(quic.from, Box::new(source), Box::new(sink)))
}
