// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Opportunities to send, as a trace of mm-link (Netravali et al. 2015, Mahimahi) has them.
//!
//! A line of the file is a time in milliseconds since the beginning; each is an opportunity to send
//! 1500 bytes at that instant. What is not used is lost: nothing is saved up while the link is idle,
//! and what a packet leaves is for those that wait behind it. A packet may take several opportunities,
//! and several packets may share one. After the last time the trace begins anew, so that a time of 0
//! then coincides with the last. A packet that arrives at the very instant of an opportunity misses it.
//!
//! mm-link reads packets from a TUN device with four bytes of header, which it counts, and grants
//! 1504 bytes; its queue no longer holds a packet of which a part was sent, which is in the send buffer here,
//! and takes one more in its place. Here lengths are those of IP packets, unless the accounting says `tun`.

use std::collections::VecDeque;

use airpath_core::{Bits, Direction, DrawKey, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trace::yes;
use super::{InFlight, Transmit, next_frame};
use crate::air::Frame;
use crate::file::{AnyFile, FileFormat, FileRef, VisitFile};
use crate::medium::Air;
use crate::registry::Configured;

/// Capacity of an opportunity.
pub const OPPORTUNITY_BITS: u64 = 12_000;
/// Additional bits that mm-link counts for each packet and in each opportunity.
const TUN_HEADER_BITS: u64 = 32;

const MILLISECOND_NS: u64 = 1_000_000;
/// The latest time of a trace: 30 years, and far from an overflow.
const LATEST_MS: u64 = 1_000_000_000_000;

/// A trace of opportunities: `{ type = "mahimahi", file = "Verizon-LTE-short.up" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MahimahiConfig {
    /// The trace, in the format of mm-link.
    pub file: FileRef<MahimahiTrace>,
    /// True: the trace repeats after its last line; false: nothing is sent any more then.
    #[serde(default = "yes")]
    pub repeat: bool,
    /// Accounting of opportunities and packets.
    #[serde(default)]
    pub accounting: Accounting,
}

/// Accounting of opportunities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accounting {
    /// 1500 bytes an opportunity; packets count what they have on the link.
    #[default]
    Ip,
    /// As mm-link counts: 1504 bytes an opportunity, and 4 more bytes for each packet.
    Tun,
}

impl Accounting {
    /// Capacity of an opportunity.
    pub fn opportunity_bits(self) -> u64 {
        match self {
            Accounting::Ip => OPPORTUNITY_BITS,
            Accounting::Tun => OPPORTUNITY_BITS + TUN_HEADER_BITS,
        }
    }

    /// Additional bits of a frame: the header of each packet that it completes.
    fn extra_bits(self, frame: &Frame) -> u64 {
        match self {
            Accounting::Ip => 0,
            Accounting::Tun => frame.pieces.iter().filter(|piece| piece.last).count() as u64 * TUN_HEADER_BITS,
        }
    }
}

/// The opportunities of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MahimahiTrace {
    /// Times in milliseconds, and how many opportunities there are at each.
    opportunities: Vec<(u64, u32)>,
}

impl MahimahiTrace {
    /// A trace of `opportunities`: times in milliseconds, going up, and how many there are at each.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(opportunities: Vec<(u64, u32)>) -> Result<MahimahiTrace, String> {
        match opportunities.last() {
            None => Err("it has no opportunities".into()),
            Some((0, _)) => Err("all its times are 0, and it has to last for some time".into()),
            Some(_) => Ok(MahimahiTrace { opportunities }),
        }
    }

    /// Times in milliseconds, and how many opportunities there are at each.
    pub fn opportunities(&self) -> &[(u64, u32)] {
        &self.opportunities
    }

    /// Period in milliseconds: the trace repeats with its last opportunity.
    pub fn period_ms(&self) -> u64 {
        self.opportunities.last().map_or(1, |(at, _)| *at)
    }

    fn at(&self, ms: u64) -> u64 {
        let found = self.opportunities.binary_search_by_key(&ms, |(at, _)| *at);
        found.map_or(0, |index| u64::from(self.opportunities[index].1))
    }
}

impl FileFormat for MahimahiTrace {
    const WHAT: &'static str = "trace of mm-link";

    fn parse(bytes: &[u8]) -> Result<MahimahiTrace, String> {
        let mut opportunities: Vec<(u64, u32)> = Vec::new();
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if text.is_empty() {
            return Err("it is empty".into());
        }
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let wrong = |problem: &str| Err(format!("line {}: {problem}", index + 1));
            if line.is_empty() {
                return wrong("it is empty, and every line is a time in whole milliseconds");
            }
            let ms = std::str::from_utf8(line).ok().filter(|line| line.bytes().all(|byte| byte.is_ascii_digit()));
            let Some(ms) = ms.and_then(|line| line.parse::<u64>().ok()) else {
                let line = String::from_utf8_lossy(&line[..line.len().min(40)]);
                return wrong(&format!("`{line}` is no time in whole milliseconds"));
            };
            if ms > LATEST_MS {
                return wrong(&format!("{ms} ms are more than {LATEST_MS}"));
            }
            match opportunities.last_mut() {
                Some((last, count)) if *last == ms => *count = count.saturating_add(1),
                Some((last, _)) if *last > ms => {
                    return wrong(&format!("{ms} comes after {last}; times never go down"));
                }
                _ => opportunities.push((ms, 1)),
            }
        }
        MahimahiTrace::new(opportunities)
    }
}

impl Configured for MahimahiConfig {
    type Model = Opportunities;

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn build(&self, _key: DrawKey) -> Opportunities {
        Opportunities::new(self)
    }

    fn examples() -> Vec<MahimahiConfig> {
        let file = |text: &str| {
            FileRef::with_data("example.trace", MahimahiTrace::parse(text.as_bytes()).expect("an example is valid"))
        };
        let plain = MahimahiConfig { file: file("0\n1\n1\n5\n20\n25\n"), repeat: true, accounting: Accounting::Ip };
        vec![plain.clone(), MahimahiConfig { file: file("3\n3\n3\n4\n10\n"), accounting: Accounting::Tun, ..plain }]
    }
}

impl std::fmt::Display for MahimahiConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "as in {}", self.file.name())
    }
}

/// A transmitter that sends at the opportunities of a trace.
#[derive(Clone, Debug)]
pub struct Opportunities {
    config: MahimahiConfig,
    /// The frame that has had a part of what it needs comes first.
    begun: VecDeque<InFlight>,
    due: Time,
}

impl Opportunities {
    /// An idle transmitter.
    pub fn new(config: &MahimahiConfig) -> Opportunities {
        Opportunities { config: config.clone(), begun: VecDeque::new(), due: Time::NEVER }
    }

    /// Those of a trace that repeats, for others to send by.
    pub(super) fn of_trace(file: &FileRef<MahimahiTrace>) -> Opportunities {
        Opportunities::new(&MahimahiConfig { file: file.clone(), repeat: true, accounting: Accounting::Ip })
    }

    /// Sends what `queue` has at the opportunities of `at`; `sent` has what has been sent.
    pub(super) fn serve(&mut self, at: Time, queue: &mut VecDeque<InFlight>, mut sent: impl FnMut(InFlight)) {
        let mut budget = self.bits_at(at);
        while budget > 0
            && let Some(first) = queue.front_mut()
        {
            let taken = first.bits_left.min(budget);
            budget -= taken;
            first.bits_left -= taken;
            if first.bits_left == 0
                && let Some(first) = queue.pop_front()
            {
                sent(first);
            }
        }
        self.due = if queue.is_empty() { Time::NEVER } else { self.next_after(at) };
    }

    /// The first opportunity later than `at`.
    fn next_after(&self, at: Time) -> Time {
        let trace = self.config.file.data();
        let period = trace.period_ms() * MILLISECOND_NS;
        let (cycle, within) = (at.nanos() / period, at.nanos() % period);
        if cycle > 0 && !self.config.repeat {
            return Time::NEVER;
        }
        // The last one, a whole period from the first instant of its cycle, is always later.
        let index = trace.opportunities.partition_point(|(ms, _)| ms * MILLISECOND_NS <= within);
        let later = trace.opportunities[index].0 * MILLISECOND_NS;
        (cycle * period).checked_add(later).map_or(Time::NEVER, Time::from_nanos)
    }

    /// Number of bits that may be sent at `at`.
    fn bits_at(&self, at: Time) -> u64 {
        let trace = self.config.file.data();
        let period = trace.period_ms() * MILLISECOND_NS;
        let (cycle, within) = (at.nanos() / period, at.nanos() % period);
        if !within.is_multiple_of(MILLISECOND_NS) {
            return 0;
        }
        let mut count = 0;
        if within == 0 && cycle > 0 && (self.config.repeat || cycle == 1) {
            count += trace.at(trace.period_ms());
        }
        if cycle == 0 || self.config.repeat {
            count += trace.at(within / MILLISECOND_NS);
        }
        count * self.config.accounting.opportunity_bits()
    }
}

impl Transmit for Opportunities {
    fn request(&mut self, at: Time) {
        if at < self.due {
            self.due = self.due.min(self.next_after(at));
        }
    }

    fn next_deadline(&self) -> Time {
        self.due
    }

    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        let mut budget = self.bits_at(at);
        while budget > 0 {
            let is_new = self.begun.is_empty();
            let Some(mut next) = next_frame(&mut self.begun, at, direction, air) else {
                self.due = Time::NEVER;
                return;
            };
            if is_new {
                next.bits_left += self.config.accounting.extra_bits(&next.frame);
            }
            let taken = next.bits_left.min(budget);
            budget -= taken;
            next.bits_left -= taken;
            if next.bits_left > 0 {
                self.begun.push_front(next);
            } else {
                air.sent(at, &next.grant, next.frame);
            }
        }
        self.due = self.next_after(at);
    }

    fn least_time(&self, at: Time, bits: Bits) -> Span {
        let mut left = bits.get();
        let mut end = at;
        // A packet needs few opportunities, each of which takes a packet of the usual size.
        while left > 0 && end != Time::NEVER {
            end = self.next_after(end);
            left = left.saturating_sub(self.bits_at(end));
        }
        end.since(at)
    }

    fn hand_over(&mut self, _at: Time) -> VecDeque<InFlight> {
        self.due = Time::NEVER;
        std::mem::take(&mut self.begun)
    }

    fn take_over(&mut self, at: Time, frames: VecDeque<InFlight>) {
        if !frames.is_empty() {
            self.due = self.next_after(at);
        }
        self.begun = frames;
    }
}
