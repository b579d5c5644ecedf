// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Damage of one packet: lost, cut at a byte, bits flipped in bursts.

use airpath_core::{DrawKey, Probability};

use super::fitted::{Fitted, StateRates};
use crate::channel::trace_file::Record;

/// Attempts of a step: whether a packet is lost, cut, and where; whether it is corrupted, and where first. Flips
/// follow.
const LOST: u64 = 0;
const CUT: u64 = 1;
const CUT_AT: u64 = 2;
const LATER_CUT: u64 = 3;
const CORRUPTED: u64 = 4;
const FIRST_BURST: u64 = 5;
const FLIPS: u64 = 6;

/// Damage of the packet that was drawn last.
#[derive(Clone, Debug, Default)]
pub(super) struct Damage {
    lost: bool,
    kept_bytes: Option<u32>,
    flips: Vec<u32>,
}

impl Damage {
    /// Draws what happens in step `step` to a packet in a state with these `rates`.
    pub fn draw(&mut self, fitted: &Fitted, rates: &StateRates, key: DrawKey, step: u64) {
        self.flips.clear();
        self.kept_bytes = None;
        self.lost = key.hit(step, LOST, rates.loss);
        if self.lost {
            return;
        }
        let within = key.hit(step, CUT, rates.truncation);
        let (first, end) = match within {
            true => (1, fitted.length_bytes),
            false => (fitted.length_bytes, fitted.frame_bytes),
        };
        if within || key.hit(step, LATER_CUT, rates.later_truncation) {
            self.kept_bytes = Some(first + key.below(step, CUT_AT, u64::from(end - first)) as u32);
        }
        let corrupted = if within { fitted.truncated_corruption } else { rates.corruption };
        if key.hit(step, CORRUPTED, corrupted) {
            self.draw_flips(fitted, key, step);
        }
    }

    /// Bursts: one that begins anywhere within the length, each bit of it equally likely, and more that begin at any
    /// bit with the same probability.
    fn draw_flips(&mut self, fitted: &Fitted, key: DrawKey, step: u64) {
        let (length, frame) = (u64::from(fitted.length_bytes) * 8, u64::from(fitted.frame_bytes) * 8);
        let mut attempt = FLIPS;
        self.burst(fitted, key, step, key.below(step, FIRST_BURST, length), &mut attempt);
        for (begin, end, probability) in [(0, length, fitted.burst_within), (length, frame, fitted.burst_beyond)] {
            if probability == Probability::ZERO {
                continue;
            }
            let mut start = begin;
            loop {
                start = start.saturating_add(key.failures_before_success(step, attempt, probability));
                attempt += 1;
                if start >= end {
                    break;
                }
                self.burst(fitted, key, step, start, &mut attempt);
                start += 1;
            }
        }
        self.flips.sort_unstable();
        self.flips.dedup();
        let kept = self.kept_bytes.map_or(u32::MAX, |bytes| bytes * 8);
        self.flips.truncate(self.flips.partition_point(|position| *position < kept));
    }

    /// A burst from bit `start` on.
    fn burst(&mut self, fitted: &Fitted, key: DrawKey, step: u64, start: u64, attempt: &mut u64) {
        let end = u64::from(fitted.frame_bytes) * 8;
        let mut position = start;
        while position < end {
            self.flips.push(position as u32);
            let more = key.hit(step, *attempt, fitted.more);
            *attempt += 1;
            if !more {
                break;
            }
            let gap = key.failures_before_success(step, *attempt, fitted.next);
            *attempt += 1;
            position = position.saturating_add(gap).saturating_add(1);
        }
    }

    /// The damage as a record.
    pub fn record(&self) -> Record<'_> {
        match self.kept_bytes {
            _ if self.lost => Record::Lost,
            None if self.flips.is_empty() => Record::Ok,
            kept_bytes => Record::Damaged { kept_bytes, flips: &self.flips },
        }
    }
}
