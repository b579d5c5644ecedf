// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Decisions of active queue management, and the marking of packets.
//!
//! Source: RFC 3168, section 5. A packet is ECN-capable if its field is ECT(0), ECT(1) or already CE;
//! a discipline that has only one queue treats ECT(1) as ECT(0) (RFC 3168; RFC 9331, section 5).

use airpath_core::{Cause, Ecn, EventKind, Pdu};

use crate::stage::{QueueLength, StageCx};

/// Decision of queue management about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AqmDecision {
    /// It stays as it is.
    Pass,
    /// It goes on with CE set.
    Mark,
    /// It is dropped.
    Drop,
}

/// True if a packet tells its ends about congestion by being marked.
#[inline]
pub fn is_ecn_capable(pdu: &Pdu) -> bool {
    pdu.ecn != Ecn::NotEct
}

/// Sets CE on an ECN-capable `pdu` and records it; one that bears CE already stays as it is, and so
/// does one that is not capable. `queue` is the length of the queue.
pub fn mark(pdu: &mut Pdu, queue: QueueLength, stage: &mut StageCx<'_, '_>) {
    if matches!(pdu.ecn, Ecn::Ect0 | Ecn::Ect1) {
        pdu.ecn = Ecn::Ce;
        stage.record(EventKind::Marked, Cause::None, pdu, pdu.bits().get(), queue);
    }
}
