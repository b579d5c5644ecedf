// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Severity of a problem by its share of the whole.

use super::Grade;

/// One in so many makes a run invalid rather than suspect.
const INVALID_FROM_ONE_IN: u64 = 100;

/// Minimum number of packets for that.
const INVALID_FROM: u64 = 5;

/// `Invalid` if `part` of `whole` is too large a share, `Suspect` otherwise.
pub(super) fn by_share(part: u64, whole: u64) -> Grade {
    if part.saturating_mul(INVALID_FROM_ONE_IN) > whole { Grade::Invalid } else { Grade::Suspect }
}

/// The same for packets: fewer than [`INVALID_FROM`] of them are a mishap, however short the run.
pub(super) fn by_packets(part: u64, whole: u64) -> Grade {
    if part < INVALID_FROM { Grade::Suspect } else { by_share(part, whole) }
}
