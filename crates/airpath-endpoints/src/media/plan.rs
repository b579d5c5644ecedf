// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Capture times and sizes of frames.

use airpath_core::{DrawKey, Span};
use airpath_workload::kinds::Media;

use crate::media::rtp::CLOCK_HZ;

const NANOSECONDS_PER_SECOND: u128 = 1_000_000_000;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Capture time, from the beginning of the flow.
    pub offset: Span,
    /// The same on the clock of RTP, modulo 2^32.
    pub timestamp: u32,
    /// Its length.
    pub bytes: u32,
    /// Number of its packets.
    pub packets: u32,
}

/// The frames of a flow, each a function of its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    frames_per_second: u64,
    group: u64,
    intra_bytes: f64,
    inter_bytes: f64,
    variation: f64,
    /// The most bytes of a frame in one packet.
    payload_bytes: u32,
    key: DrawKey,
}

impl Plan {
    pub(super) fn new(media: &Media, payload_bytes: u32, key: DrawKey) -> Plan {
        let frames_per_second = media.frames_per_second.0;
        let mean_bytes = media.bitrate.bits_per_second() as f64 / 8.0 / frames_per_second as f64;
        let (group, ratio) = (media.gop.0 as f64, media.i_ratio.0 as f64);
        // A group has one frame of `ratio` times the length of the others.
        let inter_bytes = mean_bytes * group / (ratio + group - 1.0);
        Plan {
            frames_per_second,
            group: media.gop.0,
            intra_bytes: inter_bytes * ratio,
            inter_bytes,
            variation: media.variation.get(),
            payload_bytes,
            key,
        }
    }

    pub(super) fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    pub(super) fn frame(&self, number: u64) -> Frame {
        let mean = if number.is_multiple_of(self.group) { self.intra_bytes } else { self.inter_bytes };
        let factor = 1.0 + self.variation * (2.0 * self.key.unit(number, 0) - 1.0);
        let bytes = (mean * factor).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        let at = |per_second: u128| u128::from(number) * per_second / u128::from(self.frames_per_second);
        Frame {
            offset: Span::from_nanos(at(NANOSECONDS_PER_SECOND) as u64),
            timestamp: at(u128::from(CLOCK_HZ)) as u32,
            bytes,
            packets: bytes.div_ceil(self.payload_bytes),
        }
    }
}
