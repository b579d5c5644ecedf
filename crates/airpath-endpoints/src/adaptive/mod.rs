// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Media whose rate follows the path, over RTP: what RFC 8867 tests.
//!
//! Each frame is encoded at its capture time with the rate that the congestion control allows then;
//! its packets wait in a shaping buffer, which sends them at a rate of its own. The receiver reports
//! ten times a second. Rates are those of IP packets. Frames are independent of one another.
//!
//! Source: RFC 8698, section 5. Left out: what a sender does without feedback for long, and the
//! encoder's own delay in following a rate (RFC 8593).

mod loss_intervals;
mod nada;
mod packet;
mod receiver;
mod sender;

use airpath_core::Span;
use airpath_workload::kinds::{AdaptiveMedia, IP_AND_UDP_BYTES};
use airpath_workload::{EcnUse, MediaControl};

use crate::error::EndpointError;
use crate::options::Route;
use crate::{Context, Ends};
use nada::{Bounds, Controller};
use receiver::Receiver;
use sender::Sender;

/// Parameters of a flow that both ends know.
#[derive(Clone)]
struct Session {
    route: Route,
    source: u32,
    frames_per_second: u64,
    playout: Span,
}

impl Session {
    /// Capture time of a frame, from the beginning of the flow.
    fn offset(&self, frame: u64) -> Span {
        Span::from_nanos((u128::from(frame) * 1_000_000_000 / u128::from(self.frames_per_second)) as u64)
    }
}

/// The ends of an adaptive media flow.
pub(crate) fn adaptive_media(media: &AdaptiveMedia, context: &Context) -> Result<Ends, EndpointError> {
    let packet_bytes = context.options.packet_size("mtu", media.mtu.map(|bytes| bytes.0))?;
    let headers = IP_AND_UDP_BYTES as u32 + packet::HEADER_BYTES as u32;
    if packet_bytes <= headers {
        let (protocol, reason) = ("RTP over UDP", "its headers and a byte");
        let mtu_bytes = context.options.mtu_bytes;
        return Err(EndpointError::MtuTooSmall { protocol, least_bytes: headers + 1, reason, mtu_bytes });
    }
    let session = Session {
        route: Route::new(media.from, context.flow, &context.options),
        source: context.key(media.from, "synchronisation source").bits(0, 0) as u32,
        frames_per_second: media.frames_per_second.0,
        playout: media.playout,
    };
    let bits_per_second = |rate: airpath_core::Rate| rate.bits_per_second() as f64;
    let bounds = Bounds {
        least: bits_per_second(media.least_rate),
        greatest: bits_per_second(media.greatest_rate),
        weight: media.weight.0 as f64,
    };
    let initial = media.initial_rate.map_or(bounds.least, bits_per_second);
    let controller = match media.control {
        MediaControl::Nada => Controller::new(bounds, initial),
    };
    let is_marked = media.ecn == EcnUse::Yes;
    let receiver = Receiver::new(session.clone(), media, context);
    let sender = Sender::new(session, controller, packet_bytes, is_marked, media, context);
    Ok(Context::place(media.from, Box::new(sender), Box::new(receiver)))
}
