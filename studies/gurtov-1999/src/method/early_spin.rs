// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Waking early and watching the clock for the rest (Kojo et al. 2001, section 6), with the margin
//! that the live loop would take: learnt from how late it was woken, or given.

use std::hint;
use std::io;

use airpath_live::clock::monotonic_ns;
use airpath_live::engine_loop::{Spin, SpinPolicy};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::{Method, Sleep, Waiting, over, time_spec};

struct EarlySpin(Spin);

impl Sleep for EarlySpin {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let now_ns = monotonic_ns();
        let until_ns = now_ns.saturating_add(span_ns);
        let wake_ns = until_ns - self.0.margin_ns(now_ns).min(until_ns);
        let mut woke_ns = now_ns;
        if wake_ns > now_ns {
            over(clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &time_spec(wake_ns)))?;
            woke_ns = monotonic_ns();
            self.0.woke(wake_ns, woke_ns);
        }
        let mut looked_ns = woke_ns;
        while looked_ns < until_ns {
            hint::spin_loop();
            looked_ns = monotonic_ns();
        }
        self.0.spent(looked_ns - woke_ns);
        Ok(())
    }
}

pub const METHOD: Method = Method {
    name: "early_spin",
    what: "clock_nanosleep() until some microseconds before, then watching the clock",
    needs: "some processor time for each sleep",
    at_least: true,
    waiting: Waiting::AsleepThenAwake,
    open: |options| {
        let policy = options.margin_ns.map_or(SpinPolicy::USUAL, SpinPolicy::Margin);
        Ok(Box::new(EarlySpin(Spin::new(policy, monotonic_ns()))))
    },
};
