//! How early to wake up before a deadline, within a budget of processor time.

use std::str::FromStr;

/// How the loop meets deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinPolicy {
    /// Wakes early and watches the clock, for at most a tenth of a core.
    #[default]
    Auto,
    /// Sleeps until the deadline and is as late as the kernel makes it.
    Off,
    /// Sleeps at least half a millisecond between two looks where packets bear stamps: what falls due
    /// meanwhile leaves together, late by up to that. For machines on which a timer costs much.
    Batch,
    /// Wakes so many nanoseconds early and watches the clock, whatever that costs.
    Margin(u64),
}

impl FromStr for SpinPolicy {
    type Err = String;
    fn from_str(text: &str) -> Result<SpinPolicy, String> {
        match text {
            "auto" => Ok(SpinPolicy::Auto),
            "off" => Ok(SpinPolicy::Off),
            "batch" => Ok(SpinPolicy::Batch),
            margin => margin
                .parse::<airpath_core::Span>()
                .map(|span| SpinPolicy::Margin(span.nanos()))
                .map_err(|problem| format!("{problem}, or auto, off or batch")),
        }
    }
}

impl std::fmt::Display for SpinPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpinPolicy::Auto => f.write_str("auto"),
            SpinPolicy::Off => f.write_str("off"),
            SpinPolicy::Batch => f.write_str("batch"),
            SpinPolicy::Margin(nanos) => airpath_core::Span::from_nanos(*nanos).fmt(f),
        }
    }
}

/// The share of a core that `auto` may spend watching the clock, as a divisor.
const BUDGET_DIVISOR: u64 = 10;
/// Unused budget is kept for at most this long a burst of deadlines.
const CREDIT_LIMIT_NS: u64 = 5_000_000;
/// Half of the usual bound on lateness.
const BATCH_NAP_NS: u64 = 500_000;
const LEAST_MARGIN_NS: u64 = 15_000;
const MOST_MARGIN_NS: u64 = 150_000;

/// Decides the margin and keeps account of its cost.
#[derive(Debug)]
pub struct Spin {
    policy: SpinPolicy,
    credit_ns: u64,
    credited_at_ns: u64,
    /// Running mean and mean deviation of how late the timer wakes the loop.
    late_ns: u64,
    deviation_ns: u64,
    /// Time spent watching the clock since the run began.
    spun_ns: u64,
}

impl Spin {
    /// A fresh account.
    pub fn new(policy: SpinPolicy, now_ns: u64) -> Spin {
        Spin {
            policy,
            credit_ns: CREDIT_LIMIT_NS / 2,
            credited_at_ns: now_ns,
            late_ns: 25_000,
            deviation_ns: 8_000,
            spun_ns: 0,
        }
    }

    /// How long before a deadline to wake up.
    pub fn margin_ns(&mut self, now_ns: u64) -> u64 {
        match self.policy {
            SpinPolicy::Off | SpinPolicy::Batch => 0,
            SpinPolicy::Margin(margin) => margin,
            SpinPolicy::Auto => {
                let earned = now_ns.saturating_sub(self.credited_at_ns) / BUDGET_DIVISOR;
                if earned > 0 {
                    self.credited_at_ns = now_ns;
                    self.credit_ns = (self.credit_ns + earned).min(CREDIT_LIMIT_NS);
                }
                let margin = (self.late_ns + 4 * self.deviation_ns).clamp(LEAST_MARGIN_NS, MOST_MARGIN_NS);
                if self.credit_ns >= margin { margin } else { 0 }
            }
        }
    }

    /// The shortest time to sleep where nothing but departures calls for a wake-up.
    pub fn least_nap_ns(&self) -> u64 {
        if self.policy == SpinPolicy::Batch { BATCH_NAP_NS } else { 0 }
    }

    /// Learns that the timer set for `target_ns` woke the loop at `woke_ns`.
    pub fn woke(&mut self, target_ns: u64, woke_ns: u64) {
        // A rare long delay is the scheduler's, and no margin would cover it.
        let late = woke_ns.saturating_sub(target_ns).min(MOST_MARGIN_NS);
        let deviation = late.abs_diff(self.late_ns);
        self.late_ns = (self.late_ns * 15 + late) / 16;
        self.deviation_ns = (self.deviation_ns * 15 + deviation) / 16;
    }

    /// Accounts for `nanoseconds` of watching the clock.
    pub fn spent(&mut self, nanoseconds: u64) {
        self.spun_ns += nanoseconds;
        self.credit_ns = self.credit_ns.saturating_sub(nanoseconds);
    }

    /// Time spent watching the clock since the run began, in ns.
    pub fn spun_ns(&self) -> u64 {
        self.spun_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_stays_within_a_tenth_of_a_core() {
        let mut spin = Spin::new(SpinPolicy::Auto, 0);
        let mut spun = 0;
        // A deadline every 50 µs, each of which would like a margin of about 57 µs.
        for deadline in (0..10_000_000_000u64).step_by(50_000) {
            let margin = spin.margin_ns(deadline);
            spin.spent(margin);
            spun += margin;
        }
        assert!(spun <= 10_000_000_000 / 10 + CREDIT_LIMIT_NS, "{spun}");
        assert!(spun > 900_000_000, "the budget is used: {spun}");
    }

    #[test]
    fn a_batch_never_watches_the_clock_and_only_a_batch_naps() {
        let mut batch = Spin::new(SpinPolicy::Batch, 0);
        assert_eq!((batch.margin_ns(1_000_000), batch.least_nap_ns()), (0, BATCH_NAP_NS));
        for policy in [SpinPolicy::Auto, SpinPolicy::Off, SpinPolicy::Margin(1)] {
            assert_eq!(Spin::new(policy, 0).least_nap_ns(), 0);
        }
    }

    #[test]
    fn policies_read_and_print() {
        assert_eq!("80 us".parse(), Ok(SpinPolicy::Margin(80_000)));
        assert_eq!("batch".parse::<SpinPolicy>().unwrap().to_string(), "batch");
        assert_eq!("off".parse::<SpinPolicy>().unwrap().to_string(), "off");
        assert!("sometimes".parse::<SpinPolicy>().unwrap_err().contains("or auto"));
    }
}
