// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rest of a loop that polls all the time.
//!
//! A real-time thread that never sleeps is stopped by the kernel for 50 ms in each second, and keeps everything else
//! from its processor. The loop therefore rests for a tenth of the time, where a rest makes no packet late.

/// Part of the time that the loop rests: one in so many nanoseconds.
const REST_ONE_IN: u64 = 10;
/// A shorter rest ends too late to be one.
const LEAST_REST_NS: u64 = 50_000;
/// A rest ends so long before the next deadline: timers are late by that.
const MARGIN_NS: u64 = 100_000;
/// Rest that may be put off. Then the loop rests briefly though something is due soon.
const MOST_OWED_NS: u64 = 5_000_000;
/// Most rest that is owed: a loop that was stopped, or found no time to rest, is not to make up for all of it.
const MOST_DEBT_NS: i64 = 6_000_000;
/// Rest that is credited: a machine that stopped for long has not rested for longer.
const MOST_AHEAD_NS: i64 = 5_000_000;
/// Length of a rest that cannot be put off.
const BRIEF_NS: u64 = 20_000;

/// Next turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Look at the ports, and come back.
    Poll,
    /// Sleep until this time, or until something can be read.
    Rest(u64),
}

/// Account of rest. All times are CLOCK_MONOTONIC in ns.
#[derive(Debug)]
pub struct Awake {
    /// Time until which rest is accounted for.
    counted_ns: u64,
    /// Rest that is owed; less than 0 after one that was longer than asked for.
    owed_ns: i64,
    resting: bool,
}

impl Awake {
    /// A fresh account.
    pub fn since(now_ns: u64) -> Awake {
        Awake { counted_ns: now_ns, owed_ns: 0, resting: false }
    }

    /// Next turn at `now_ns`, with something due at `deadline_ns`.
    pub fn next(&mut self, now_ns: u64, deadline_ns: u64) -> Turn {
        let passed_ns = now_ns.saturating_sub(self.counted_ns);
        if self.resting {
            self.owed_ns = self.owed_ns.saturating_sub_unsigned(passed_ns).max(-MOST_AHEAD_NS);
            self.counted_ns = now_ns;
        } else {
            // What a turn leaves over counts with the next.
            let owed_ns = passed_ns / REST_ONE_IN;
            self.owed_ns = self.owed_ns.saturating_add_unsigned(owed_ns).min(MOST_DEBT_NS);
            self.counted_ns += owed_ns * REST_ONE_IN;
        }
        let turn = self.turn(now_ns, deadline_ns);
        self.resting = turn != Turn::Poll;
        if self.resting {
            self.counted_ns = now_ns;
        }
        turn
    }

    fn turn(&self, now_ns: u64, deadline_ns: u64) -> Turn {
        let free_ns = deadline_ns.saturating_sub(now_ns).saturating_sub(MARGIN_NS);
        let owed_ns = u64::try_from(self.owed_ns).unwrap_or(0);
        let rest_ns = owed_ns.min(free_ns);
        if rest_ns >= LEAST_REST_NS {
            Turn::Rest(now_ns + rest_ns)
        } else if owed_ns > MOST_OWED_NS {
            Turn::Rest(now_ns + BRIEF_NS)
        } else {
            Turn::Poll
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Lets a second pass with deadlines every `interval_ns` and turns of 1 µs; returns the time of all rests, and the
    /// greatest lateness of a look at a deadline, where timers are late by `late_ns`.
    fn second(interval_ns: u64, late_ns: u64) -> (u64, u64) {
        let mut awake = Awake::since(0);
        let (mut now_ns, mut deadline_ns) = (0, interval_ns);
        let (mut rested_ns, mut latest_ns) = (0, 0);
        while now_ns < SECOND_NS {
            match awake.next(now_ns, deadline_ns) {
                Turn::Poll => now_ns += 1_000,
                Turn::Rest(until_ns) => {
                    rested_ns += until_ns + late_ns - now_ns;
                    now_ns = until_ns + late_ns;
                }
            }
            if now_ns >= deadline_ns {
                latest_ns = latest_ns.max(now_ns - deadline_ns);
                deadline_ns = now_ns / interval_ns * interval_ns + interval_ns;
            }
        }
        (rested_ns, latest_ns)
    }

    #[test]
    fn a_tenth_of_the_time_is_rest_whatever_is_due() {
        for interval_ns in [5_000, 20_000, 149_000, 1_000_000, 50_000_000, u64::MAX / 2] {
            let (rested_ns, _) = second(interval_ns, 30_000);
            let share = rested_ns as f64 / SECOND_NS as f64;
            assert!((0.08..0.1).contains(&share), "{interval_ns} ns: {share}");
        }
    }

    #[test]
    fn a_rest_makes_nothing_late_where_deadlines_leave_room() {
        for interval_ns in [200_000, 1_000_000, 50_000_000] {
            let (_, latest_ns) = second(interval_ns, 90_000);
            assert!(latest_ns <= 1_000, "{interval_ns} ns: {latest_ns}");
        }
    }

    #[test]
    fn no_rest_that_cannot_be_put_off_is_long() {
        let (_, latest_ns) = second(20_000, 30_000);
        assert!(latest_ns <= BRIEF_NS + 30_000, "{latest_ns}");
    }

    #[test]
    fn a_loop_that_was_stopped_does_not_make_up_for_all_its_rest() {
        let mut awake = Awake::since(0);
        let mut now_ns = 10 * SECOND_NS;
        let mut rested_ns = 0;
        while let Turn::Rest(until_ns) = awake.next(now_ns, now_ns + 20_000) {
            rested_ns += until_ns - now_ns;
            now_ns = until_ns;
        }
        assert_eq!(rested_ns, 1_000_000);
    }

    #[test]
    fn a_rest_is_never_put_off_for_half_a_second() {
        let mut awake = Awake::since(0);
        let first = (0..SECOND_NS).step_by(1_000).find(|now_ns| awake.next(*now_ns, *now_ns) != Turn::Poll);
        assert_eq!(first, Some(MOST_OWED_NS * REST_ONE_IN + 1_000));
    }
}
