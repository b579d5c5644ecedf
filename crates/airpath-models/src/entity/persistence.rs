// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Limits of repetition that entities share whose packets are repeated until they arrive.

use airpath_core::{Cause, Span, Time};

use super::stream::StreamSender;
use super::{SduKey, Sdus};
use crate::problem::Problem;
use crate::stage::StageCx;

/// Greatest number of retransmissions, where it is limited.
const RETRANSMISSIONS_LIMIT: u16 = 10_000;

/// Errors in the limits of repetition, if any.
pub fn limit_problems(retransmissions: Option<u16>, expiry: Option<Span>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(limit) = retransmissions.filter(|limit| *limit > RETRANSMISSIONS_LIMIT) {
        let message =
            format!("is {limit}; it may be {RETRANSMISSIONS_LIMIT} at most; leave it out for no limit at all");
        problems.push(Problem::new("retransmissions", message));
    }
    if expiry == Some(Span::ZERO) {
        let message = "is 0, so that no packet would ever be sent; leave it out for no limit at all";
        problems.push(Problem::new("expiry", message));
    }
    problems
}

/// True if the packet has been on the hop for `expiry` at `at`.
pub fn has_expired(sdu: SduKey, expiry: Span, at: Time, sdus: &Sdus) -> bool {
    sdus.get(sdu).is_some_and(|sdu| at >= sdu.pdu.arrived + expiry)
}

/// Drops the packets in the send buffer that come next and have expired. Of the first, nothing has been sent.
pub fn drop_expired(stream: &mut StreamSender, expiry: Span, at: Time, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
    while let Some((sdu, _)) = stream.next()
        && has_expired(sdu, expiry, at, sdus)
        && let Some(packet) = stream.cut_piece(u32::MAX)
    {
        stream.settle_piece(&packet);
        sdus.release(sdu, Cause::Expired, stage);
    }
}
