// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Speed of a saturating sender: as fast as the path delivers and a little more, until so much waits in the
//! queue of the path that the queue does not empty before the sender hears of a faster path.
//!
//! The idea is that of Saturator (Winstein, Sivaraman and Balakrishnan 2013), which holds the round trip between
//! two bounds by a window. A window alone leaves in bursts, which a short queue drops; so packets are spaced
//! here, and the window is a limit.

use std::collections::VecDeque;

use crate::wire::datagram::Feedback;

/// Delay in the queue that a saturating sender keeps, in ns.
pub const STANDING_NS: u64 = 400_000_000;
/// Least number of packets under way.
const LEAST_WINDOW: u64 = 10;
/// Rate before anything has been heard, in bit/s.
const FIRST_RATE: f64 = 1e6;
/// Period over which the fastest delivery counts, in ns.
const MEMORY_NS: u64 = 1_000_000_000;
/// Least period over which a rate of delivery is measured, in ns.
const MEASURED_NS: u64 = 80_000_000;
/// Share of losses above which the sender does not double its rate.
const MANY_LOSSES: f64 = 0.1;
/// Distance of packets while nothing is heard, in ns.
const SILENT_GAP_NS: u64 = 200_000_000;

/// Next step of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a packet, and the next one so many ns later.
    Send(u64),
    /// Wait for feedback.
    Wait,
}

/// Controller of a saturating sender. Times are in ns of any one clock.
#[derive(Debug)]
pub struct Backlog {
    bits: f64,
    most_rate: f64,
    target_ns: u64,
    sent: u64,
    last_send_ns: u64,
    heard_ns: u64,
    round_trip_ns: Option<u64>,
    /// Feedback of the last second.
    heard: VecDeque<Feedback>,
    /// Rates of delivery, and when they were heard.
    rates: VecDeque<(u64, f64)>,
}

impl Backlog {
    /// A sender of packets of so many bits that begins at `now_ns`.
    pub fn new(bits: u64, most_rate_bits_per_second: u64, now_ns: u64) -> Backlog {
        Backlog {
            bits: bits as f64,
            most_rate: most_rate_bits_per_second as f64,
            target_ns: STANDING_NS,
            sent: 0,
            last_send_ns: now_ns,
            heard_ns: now_ns,
            round_trip_ns: None,
            heard: VecDeque::new(),
            rates: VecDeque::new(),
        }
    }

    /// Fills the queue up to this delay from now on.
    pub fn deepen(&mut self, target_ns: u64) {
        self.target_ns = self.target_ns.max(target_ns);
    }

    /// Takes feedback of the receiver at `now_ns`, by the clock of the times of sending.
    pub fn hear(&mut self, now_ns: u64, feedback: Feedback) {
        if self.heard.back().is_some_and(|last| feedback.arrived <= last.arrived) {
            return;
        }
        self.heard_ns = now_ns;
        let round_trip_ns = now_ns.saturating_sub(feedback.last_sent_ns).saturating_sub(u64::from(feedback.held_ns));
        self.round_trip_ns = Some(self.round_trip_ns.unwrap_or(u64::MAX).min(round_trip_ns));
        let earlier = |known: &&Feedback| known.last_arrived_ns.saturating_add(MEASURED_NS) <= feedback.last_arrived_ns;
        if let Some(base) = self.heard.iter().rev().find(earlier).or(self.heard.front()) {
            let packets = f64::from(feedback.arrived - base.arrived);
            let time_ns = feedback.last_arrived_ns.saturating_sub(base.last_arrived_ns) as f64;
            if time_ns > 0.0 {
                self.rates.push_back((now_ns, packets * self.bits * 1e9 / time_ns));
            }
        }
        self.heard.push_back(feedback);
        while self.rates.len() > 1 && self.rates.front().is_some_and(|(at, _)| at.saturating_add(MEMORY_NS) < now_ns) {
            self.rates.pop_front();
        }
        let recent = |known: &Feedback| known.last_arrived_ns.saturating_add(MEMORY_NS) >= feedback.last_arrived_ns;
        while self.heard.len() > 2 && self.heard.front().is_some_and(|first| !recent(first)) {
            self.heard.pop_front();
        }
    }

    /// The next step, at `now_ns`.
    pub fn step(&mut self, now_ns: u64) -> Step {
        let rate = self.rates.iter().map(|(_, rate)| *rate).reduce(f64::max).unwrap_or(FIRST_RATE);
        let base_ns = self.round_trip_ns.unwrap_or(0) as f64;
        let window_ns = base_ns + self.target_ns as f64;
        let known = if self.rates.is_empty() { 0.0 } else { rate * window_ns / 1e9 / self.bits };
        let window = known.max(LEAST_WINDOW as f64);
        let under_way =
            self.sent.saturating_sub(self.heard.back().map_or(0, |last| u64::from(last.highest) + 1)) as f64;
        if under_way >= window {
            let silent_ns = (window_ns as u64).max(MEMORY_NS);
            let lost_word = now_ns.saturating_sub(self.heard_ns) > silent_ns
                && now_ns.saturating_sub(self.last_send_ns) >= SILENT_GAP_NS;
            if !lost_word {
                return Step::Wait;
            }
        }
        let waiting_ns = under_way * self.bits * 1e9 / rate - base_ns;
        let deep = self.target_ns > STANDING_NS;
        let hurried = waiting_ns < self.target_ns as f64 * if deep { 0.8 } else { 0.25 };
        let gain = if hurried && self.losses() < MANY_LOSSES { 2.0 } else { 1.25 };
        self.sent += 1;
        self.last_send_ns = now_ns;
        Step::Send((self.bits * 1e9 / (rate * gain).min(self.most_rate)).ceil() as u64)
    }

    /// Share of losses in the last second.
    fn losses(&self) -> f64 {
        let (Some(first), Some(last)) = (self.heard.front(), self.heard.back()) else { return 0.0 };
        let numbers = f64::from(last.highest.saturating_sub(first.highest));
        let arrived = f64::from(last.arrived.saturating_sub(first.arrived));
        if numbers > 0.0 { (1.0 - arrived / numbers).max(0.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BITS: u64 = 12_000;
    /// With a delay of 300 ms the rate doubles once in 0.6 s.
    const WARM_NS: u64 = 5_000 * MS;

    /// A queue of `limit` packets before a link with this rate at each time, and a delay in each direction.
    /// Returns the share of time after the first five seconds in which the link was busy, and the longest
    /// delay in the queue.
    fn drive(rate: impl Fn(u64) -> u64, limit: usize, delay_ns: u64, deep: bool) -> (f64, u64) {
        let end_ns = 12_000 * MS;
        let mut backlog = Backlog::new(BITS, 1_000_000_000, 0);
        let (mut next_send, mut queue, mut number) = (0, VecDeque::<(u32, u64)>::new(), 0u32);
        let mut busy_until: Option<(u64, u32, u64)> = None;
        let mut arriving: VecDeque<(u64, u32, u64)> = VecDeque::new();
        let mut feedbacks: VecDeque<(u64, Feedback)> = VecDeque::new();
        let (mut told, mut last, mut arrived, mut highest) = (0, (0, 0), 0u32, 0u32);
        let (mut busy_ns, mut longest_ns) = (0, 0);
        let step = MS / 10;
        for now in (0..end_ns).step_by(step as usize) {
            if deep && now > end_ns / 2 {
                backlog.deepen(2_000 * MS);
            }
            while busy_until.is_none_or(|(until, ..)| until <= now) {
                if let Some((until, number, sent)) = busy_until.take() {
                    arriving.push_back((until + delay_ns, number, sent));
                }
                let Some((number, sent)) = queue.pop_front() else { break };
                longest_ns = longest_ns.max(now - sent);
                busy_until = Some((now + BITS * 1_000_000_000 / rate(now), number, sent));
            }
            if busy_until.is_some() && now > WARM_NS {
                busy_ns += step;
            }
            while arriving.front().is_some_and(|(at, ..)| *at <= now) {
                let (at, number, sent) = arriving.pop_front().unwrap();
                (arrived, highest, last) = (arrived + 1, highest.max(number), (at, sent));
            }
            if arrived > 0 && now >= told + 40 * MS {
                told = now;
                let feedback = Feedback {
                    highest,
                    arrived,
                    last_sent_ns: last.1,
                    last_arrived_ns: last.0,
                    held_ns: (now - last.0) as u32,
                };
                feedbacks.push_back((now + delay_ns, feedback));
            }
            while feedbacks.front().is_some_and(|(at, _)| *at <= now) {
                let (at, feedback) = feedbacks.pop_front().unwrap();
                backlog.hear(at, feedback);
            }
            while next_send <= now {
                match backlog.step(now) {
                    Step::Send(gap) => {
                        next_send = next_send.max(now.saturating_sub(MS)) + gap;
                        if queue.len() < limit {
                            queue.push_back((number, now));
                        }
                        number += 1;
                    }
                    Step::Wait => break,
                }
            }
        }
        (busy_ns as f64 / (end_ns - WARM_NS) as f64, longest_ns)
    }

    #[test]
    fn a_link_of_any_rate_and_delay_is_kept_busy() {
        for rate in [100_000, 2_000_000, 50_000_000] {
            for (limit, delay_ns) in [(20, 5 * MS), (1_000, 20 * MS), (1_000, 300 * MS)] {
                let (busy, longest_ns) = drive(|_| rate, limit, delay_ns, false);
                assert!(busy > 0.98, "{rate} bit/s, {limit} packets, {delay_ns} ns: busy {busy}");
                // Ten packets are more than the target on the slowest of links.
                assert!(longest_ns < 1_500 * MS, "{rate} bit/s, {limit}, {delay_ns}: {longest_ns} ns of queue");
            }
        }
    }

    #[test]
    fn a_rate_that_varies_is_followed() {
        let rate = |now: u64| if (now / (500 * MS)).is_multiple_of(2) { 2_000_000 } else { 12_000_000 };
        let (busy, _) = drive(rate, 2_000, 30 * MS, false);
        assert!(busy > 0.95, "{busy}");
    }

    #[test]
    fn the_queue_is_filled_where_that_is_asked_for() {
        let (_, shallow) = drive(|_| 5_000_000, 5_000, 20 * MS, false);
        let (_, deep) = drive(|_| 5_000_000, 5_000, 20 * MS, true);
        assert!(shallow < 900 * MS && (1_700 * MS..3_000 * MS).contains(&deep), "{shallow} {deep}");
    }

    #[test]
    fn silence_ends_in_single_packets() {
        let mut backlog = Backlog::new(BITS, 1_000_000_000, 0);
        let sent = (0..20).filter(|step| matches!(backlog.step(step * MS), Step::Send(_))).count();
        assert_eq!(sent as u64, LEAST_WINDOW);
        let later = (0..2_000).filter(|step| matches!(backlog.step(1_001 * MS + step * MS), Step::Send(_))).count();
        assert_eq!(later, 10);
    }
}
