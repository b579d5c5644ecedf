// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Next step of the loop before it looks at its links again: a decision about instants only.

use super::spin::{Spin, Turn};

/// A look at the ports takes some microseconds. A loop that polls watches the clock alone for so long before a deadline.
const NEAR_NS: u64 = 20_000;

/// Next step. All times are CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something is due: look at the ports and go on.
    Look,
    /// Look at the ports though nothing is due, and go on.
    Poll,
    /// Sleep until `wake_ns` whatever comes, then watch the clock until `deadline_ns`.
    Nap {
        /// Time to wake up.
        wake_ns: u64,
        /// Deadline of the wake-up.
        deadline_ns: u64,
    },
    /// Sleep until `wake_ns`, long before anything is due, or until something can be read.
    Beat {
        /// Time to wake up.
        wake_ns: u64,
    },
    /// Sleep until `wake_ns` (`u64::MAX` for ever) or until something can be read.
    Sleep {
        /// Time to wake up.
        wake_ns: u64,
        /// Margin before the deadline.
        margin_ns: u64,
    },
}

impl Step {
    /// At `now_ns`, with something due at `deadline_ns` (`u64::MAX` for nothing), while ports may be
    /// left unread for `unread_ns`, and the loop is to look up every `heartbeat_ns` at least.
    pub fn next(
        now_ns: u64,
        deadline_ns: u64,
        heartbeat_ns: u64,
        unread_ns: impl FnOnce() -> u64,
        spin: &mut Spin,
    ) -> Step {
        match spin.polling(now_ns, deadline_ns) {
            Some(Turn::Rest(wake_ns)) => return Step::Sleep { wake_ns, margin_ns: 0 },
            Some(Turn::Poll) if deadline_ns > now_ns => {
                let is_near = deadline_ns - now_ns <= NEAR_NS && deadline_ns - now_ns <= unread_ns();
                return if is_near { Step::Nap { wake_ns: now_ns, deadline_ns } } else { Step::Poll };
            }
            _ => (),
        }
        if deadline_ns <= now_ns {
            return Step::Look;
        }
        let unread_ns = unread_ns();
        if deadline_ns - now_ns <= unread_ns {
            // Nothing that comes now is due before the deadline: sleep through its arrival.
            let deadline_ns = deadline_ns.max(now_ns + spin.least_nap_ns().min(unread_ns));
            return Step::Nap { wake_ns: deadline_ns - spin.margin_ns(now_ns).min(deadline_ns), deadline_ns };
        }
        let beat_ns = now_ns.saturating_add(heartbeat_ns);
        if beat_ns < deadline_ns {
            return Step::Beat { wake_ns: beat_ns };
        }
        let margin_ns = spin.margin_ns(now_ns);
        let wake_ns = if deadline_ns == u64::MAX { u64::MAX } else { deadline_ns.saturating_sub(margin_ns) };
        Step::Sleep { wake_ns, margin_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine_loop::SpinPolicy;

    const NOW_NS: u64 = 1_000_000_000;

    fn next(policy: SpinPolicy, deadline_ns: u64, unread_ns: u64) -> Step {
        Step::next(NOW_NS, deadline_ns, u64::MAX, || unread_ns, &mut Spin::new(policy, NOW_NS))
    }

    #[test]
    fn what_is_due_is_done_whatever_the_policy() {
        for policy in [SpinPolicy::USUAL, SpinPolicy::Off, SpinPolicy::Batch, SpinPolicy::Margin(50_000)] {
            assert_eq!(next(policy, NOW_NS, 1_000_000), Step::Look);
            assert_eq!(next(policy, NOW_NS - 1, 1_000_000), Step::Look);
        }
    }

    #[test]
    fn it_naps_only_while_nothing_that_comes_is_due_before() {
        let nap = |wake_ns, deadline_ns| Step::Nap { wake_ns, deadline_ns };
        let near = NOW_NS + 200_000;
        assert_eq!(next(SpinPolicy::Off, near, 200_000), nap(near, near));
        assert_eq!(next(SpinPolicy::Off, near, 199_999), Step::Sleep { wake_ns: near, margin_ns: 0 });
        // Without stamps (TUN) nothing may be left unread.
        assert_eq!(next(SpinPolicy::Off, NOW_NS + 1, 0), Step::Sleep { wake_ns: NOW_NS + 1, margin_ns: 0 });
        assert_eq!(next(SpinPolicy::Margin(50_000), near, 200_000), nap(near - 50_000, near));
    }

    #[test]
    fn a_batch_naps_half_a_millisecond_but_no_longer_than_ports_may_wait() {
        let soon = NOW_NS + 10_000;
        let until = |deadline_ns| Step::Nap { wake_ns: deadline_ns, deadline_ns };
        assert_eq!(next(SpinPolicy::Batch, soon, 1_000_000), until(NOW_NS + 500_000));
        assert_eq!(next(SpinPolicy::Batch, soon, 200_000), until(NOW_NS + 200_000));
        // A deadline that is farther off than that is kept.
        assert_eq!(next(SpinPolicy::Batch, NOW_NS + 700_000, 1_000_000), until(NOW_NS + 700_000));
        // Where ports are not left unread, a batch is nothing special.
        assert_eq!(next(SpinPolicy::Batch, soon, 0), Step::Sleep { wake_ns: soon, margin_ns: 0 });
    }

    #[test]
    fn the_heartbeat_bounds_a_sleep_and_never_a_nap() {
        let next = |deadline_ns, unread_ns| {
            Step::next(NOW_NS, deadline_ns, 100_000, || unread_ns, &mut Spin::new(SpinPolicy::Off, NOW_NS))
        };
        let beat = Step::Beat { wake_ns: NOW_NS + 100_000 };
        assert_eq!([next(u64::MAX, 0), next(NOW_NS + 100_001, 0)], [beat, beat]);
        assert_eq!(next(NOW_NS + 100_000, 0), Step::Sleep { wake_ns: NOW_NS + 100_000, margin_ns: 0 });
        assert!(matches!(next(NOW_NS + 200_000, 200_000), Step::Nap { .. }));
    }

    #[test]
    fn one_that_polls_never_waits_for_a_deadline_or_a_packet() {
        let next = |deadline_ns, unread_ns| {
            let mut spin = Spin::new(SpinPolicy::Always, NOW_NS);
            spin.begin(NOW_NS);
            Step::next(NOW_NS, deadline_ns, u64::MAX, || unread_ns, &mut spin)
        };
        for (deadline_ns, unread_ns) in [(NOW_NS + 10_000, 9_999), (NOW_NS + 20_001, 200_000), (u64::MAX, 0)] {
            assert_eq!(next(deadline_ns, unread_ns), Step::Poll);
        }
        let near = Step::Nap { wake_ns: NOW_NS, deadline_ns: NOW_NS + 20_000 };
        assert_eq!(next(NOW_NS + 20_000, 200_000), near);
        let mut spin = Spin::new(SpinPolicy::Always, NOW_NS);
        let idle = Step::next(NOW_NS, u64::MAX, u64::MAX, || 0, &mut spin);
        assert_eq!(idle, Step::Sleep { wake_ns: u64::MAX, margin_ns: 0 }, "before the run begins");
        spin.begin(NOW_NS);
        let later_ns = NOW_NS + 10_000_000;
        let rest = Step::next(later_ns, later_ns + 5_000_000, u64::MAX, || 0, &mut spin);
        assert_eq!(rest, Step::Sleep { wake_ns: later_ns + 1_000_000, margin_ns: 0 });
    }

    #[test]
    fn without_a_deadline_it_sleeps_until_something_comes() {
        for unread_ns in [0, 1_000_000] {
            assert!(matches!(next(SpinPolicy::USUAL, u64::MAX, unread_ns), Step::Sleep { wake_ns: u64::MAX, .. }));
        }
    }
}
