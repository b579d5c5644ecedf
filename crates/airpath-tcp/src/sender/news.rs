// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Discoveries in an acknowledgement, and what they call for.

/// Discoveries in an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    pub advanced: bool,
    pub acknowledged: bool,
    pub sacked: bool,
    pub has_data: bool,
    pub window_update: bool,
    pub congestion_echo: bool,
    /// Data that was sent once and before the state began was delivered.
    pub original_delivered: bool,
    pub retransmission_acknowledged: bool,
    pub duplicate_reported: bool,
    pub duplicate_of_probe: bool,
    pub reneged: bool,
    pub lost_retransmission: bool,
    pub sets_timer: bool,
    /// The acknowledgement may have been delayed by the receiver.
    pub maybe_delayed: bool,
}

impl News {
    /// True if it is not a duplicate acknowledgement in the sense of RFC 5681.
    pub(super) fn is_no_duplicate(&self) -> bool {
        self.has_data || self.window_update || self.acknowledged
    }
}

/// Next step after an acknowledgement, beside new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// Lost segments.
    Lost,
    /// New data, which tells whether a timeout was spurious.
    New,
}
