// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Pieces in which a run in virtual time is carried out.

use std::time::Duration;

use airpath_core::Span;

/// Processor time of a piece: about the time after which somebody who pressed Ctrl-C wonders.
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(200);

/// The lengths of pieces in virtual time. Nothing that a run leaves depends on them.
pub trait Pieces {
    /// The length of the next piece.
    fn length(&self) -> Span;

    /// Hears how long the last one took by the wall clock.
    fn took(&mut self, wall: Duration);
}

/// Pieces that take about the same time by the wall clock.
pub struct ByWallClock {
    length: Span,
}

impl Default for ByWallClock {
    fn default() -> ByWallClock {
        // However much happens in it, the first piece must not be long.
        ByWallClock { length: Span::from_micros(1) }
    }
}

impl Pieces for ByWallClock {
    fn length(&self) -> Span {
        self.length
    }

    fn took(&mut self, wall: Duration) {
        if wall < SHORT {
            self.length = Span::from_nanos(self.length.nanos().saturating_mul(2));
        } else if wall > LONG {
            self.length = Span::from_nanos((self.length.nanos() / 2).max(1));
        }
    }
}
