// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Video-like media over RTP: frames in groups, cut into packets, shown at a fixed delay.
//!
//! Every frame is captured at its time and its packets are sent at once; nothing adapts. The first
//! frame of a group is an intra frame, `i_ratio` times as large as the others on average, and all are
//! varied uniformly around their means. A packet has an RTP header of 12 bytes (RFC 3550), with a
//! clock of 90 kHz and the marker on a frame's last packet.
//!
//! A frame is complete when all of its packets have come, on time when that is no later than its
//! capture plus the playout delay, and decodable when it and all before it in its group are on time.

mod plan;
mod receiver;
mod rtp;
mod sender;

use airpath_workload::kinds::{IP_AND_UDP_BYTES, Media, RTP_BYTES};
use bytes::Bytes;

use crate::datagram::fill;
use crate::error::EndpointError;
use crate::ip::Protection;
use crate::options::Route;
use crate::{Context, Ends};
use plan::Plan;
use receiver::Receiver;
use sender::Sender;

/// Parameters of a flow that both ends know.
#[derive(Clone)]
pub(crate) struct Session {
    plan: Plan,
    route: Route,
    protection: Protection,
    source: u32,
    /// Payload of every packet, as much of it as fits.
    payload: Bytes,
}

/// The ends of a media flow.
pub(crate) fn media(media: &Media, context: &Context) -> Result<Ends, EndpointError> {
    let packet_bytes = context.options.packet_size("mtu", media.mtu.map(|bytes| bytes.0))?;
    let headers = (IP_AND_UDP_BYTES + RTP_BYTES) as u32;
    let Some(payload_bytes) = packet_bytes.checked_sub(headers).filter(|bytes| *bytes > 0) else {
        let (protocol, reason) = ("RTP over UDP", "its headers and a byte");
        let mtu_bytes = context.options.mtu_bytes;
        return Err(EndpointError::MtuTooSmall { protocol, least_bytes: headers + 1, reason, mtu_bytes });
    };
    let key = context.key(media.from, "media frames");
    let mut payload = vec![0; payload_bytes as usize];
    fill(context.key(media.from, "payload"), &mut payload);
    let session = Session {
        plan: Plan::new(media, payload_bytes, key),
        route: Route::new(media.from, context.flow, &context.options),
        protection: Protection::new(media.protocol, media.coverage.map(|bytes| bytes.0)),
        source: key.child("synchronisation source", 0).bits(0, 0) as u32,
        payload: payload.into(),
    };
    let receiver = Receiver::new(session.clone(), media, context);
    let sender = Sender::new(session, media, context);
    Ok(Context::place(media.from, Box::new(sender), Box::new(receiver)))
}
