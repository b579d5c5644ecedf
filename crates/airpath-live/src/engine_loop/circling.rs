// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames that circle: two networks that a gateway joins, and that reach each other by another way, too.
//!
//! A frame that has come in at one port comes in at the other one, byte by byte: a copy went past the link, or came
//! back from behind it. Switches learn from such frames that all machines are on the wrong side, and broadcasts never
//! end. The sources of frames tell a weaker sign, as two machines may have one address.

use std::error::Error;
use std::{fmt, io};

use airpath_core::{Span, Time};

use super::frame::hash;
use crate::ports::Received;

/// Time for which frames are remembered.
const WINDOW: Span = Span::from_secs(10);
/// Number of frames that may come back within the window: no more of them can be a coincidence.
const MOST_RETURNED: u32 = 16;
/// Time within which a machine has not moved from one network to the other.
const QUICK: Span = Span::from_secs(1);
/// Bytes of a frame that are compared, beside its length.
const COMPARED_BYTES: usize = 128;
/// Number of frames of a port that are remembered; a power of two.
const FRAMES: usize = 4096;
/// Number of addresses that are remembered; a power of two.
const ADDRESSES: usize = 1024;
/// Place of the source address in a frame.
const SOURCE: usize = 6;
const TYPE_BYTES: usize = 2;

/// Signs of frames that circle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CirclingCounts {
    /// Frames that came in at one port after the same frame had come in at the other one.
    pub returned: u64,
    /// Frames whose source address had been behind the other port within the last second.
    pub moved: u64,
}

/// The failure of a run whose frames circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circling;

impl fmt::Display for Circling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "frames circle: {MOST_RETURNED} frames of one network came in from the other one within {WINDOW}; the two \
             networks reach each other past the gateway, or one of them sends frames back: take that way out"
        )
    }
}

impl Error for Circling {}

#[derive(Debug, Clone, Copy)]
struct Seen {
    key: u64,
    side: u16,
    at: Time,
}

const NOTHING: Seen = Seen { key: 0, side: 0, at: Time::NEVER };

#[derive(Debug)]
struct Tables {
    frames: [Vec<Seen>; 2],
    addresses: Vec<Seen>,
}

/// The watch over the frames of a link with two ports.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// None before the first frame with a link header.
    tables: Option<Box<Tables>>,
    /// Time of the first of some frames that came back, and their number.
    recent: Option<(Time, u32)>,
}

impl Watch {
    /// Looks at what port `side` has received.
    ///
    /// # Errors
    /// [`Circling`] once too many frames have come back.
    pub(super) fn note(
        &mut self,
        side: usize,
        received: &Received,
        at: Time,
        counts: &mut CirclingCounts,
    ) -> io::Result<()> {
        let link = usize::from(received.link_bytes);
        if link == 0 || side > 1 {
            return Ok(());
        }
        let tables = self.tables.get_or_insert_with(|| {
            Box::new(Tables { frames: [(); 2].map(|()| vec![NOTHING; FRAMES]), addresses: vec![NOTHING; ADDRESSES] })
        });
        let bytes = &received.bytes[..];
        // Addresses of one machine in several VLANs are several: a router may have one in each network.
        let key = hash(&bytes[SOURCE..link - TYPE_BYTES]);
        let seen = &mut tables.addresses[key as usize % ADDRESSES];
        let this = Seen { key, side: side as u16, at };
        if seen.key == key && usize::from(seen.side) != side && at.since(seen.at) < QUICK {
            counts.moved += 1;
        }
        *seen = this;
        let key = hash(&bytes[..bytes.len().min(COMPARED_BYTES)]) ^ bytes.len() as u64;
        let place = key as usize % FRAMES;
        tables.frames[side][place] = Seen { key, ..this };
        let other = tables.frames[1 - side][place];
        if other.key != key || at.since(other.at) > WINDOW || other.at == Time::NEVER {
            return Ok(());
        }
        counts.returned += 1;
        let (first, count) = self.recent.filter(|(first, _)| at.since(*first) <= WINDOW).unwrap_or((at, 0));
        self.recent = Some((first, count + 1));
        if count + 1 < MOST_RETURNED { Ok(()) } else { Err(io::Error::other(Circling)) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::ports::OffloadHeader;

    fn frame(source: u8, number: u8) -> Received {
        let header = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, source, 0x88, 0xb5];
        let bytes = BytesMut::from(&[&header[..], &[number; 60]].concat()[..]);
        Received { bytes, link_bytes: 14, stamp_realtime_ns: None, offload: OffloadHeader::default(), journey: None }
    }

    #[test]
    fn frames_that_come_in_at_both_ports_end_the_run() {
        let (mut watch, mut counts) = (Watch::default(), CirclingCounts::default());
        let mut note = |side, number, ms| {
            watch.note(side, &frame(1, number), Time::ZERO + Span::from_millis(ms), &mut counts).is_ok()
        };
        // Equal frames at one port are repeats, and after the window nobody knows.
        assert!(note(0, 0, 0) && note(0, 0, 500) && note(1, 0, 20_000));
        for number in 1..16 {
            assert!(note(0, number, 30_000) && note(1, number, 30_001 + u64::from(number)));
        }
        assert!(note(0, 16, 30_100) && !note(1, 16, 30_101));
        assert_eq!(counts.returned, 16);
    }

    #[test]
    fn an_address_on_both_sides_is_counted_and_ends_nothing() {
        let (mut watch, mut counts) = (Watch::default(), CirclingCounts::default());
        for number in 0..100u8 {
            let at = Time::ZERO + Span::from_millis(u64::from(number));
            watch.note(usize::from(number % 2), &frame(1, number), at, &mut counts).unwrap();
            watch.note(usize::from(number % 2), &frame(2 + number % 2, number), at, &mut counts).unwrap();
        }
        assert_eq!(counts, CirclingCounts { returned: 0, moved: 99 });
        // A machine that has been carried over.
        watch.note(0, &frame(1, 200), Time::ZERO + Span::from_secs(3), &mut counts).unwrap();
        assert_eq!(counts.moved, 99);
    }
}
