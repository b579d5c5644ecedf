// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The clocks of two hosts of a run, compared from its beginning to its end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use airpath_clocks::{Estimate, Exchange};
use airpath_live::clock;

use super::wire::Word;
use crate::error::{Failure, Result};

/// The offset is taken from the best of so many exchanges.
const RECENT: usize = 16;
/// Greatest drift of clocks that work. A run of less than some seconds cannot tell as much.
const MOST_DRIFT_PPM: f64 = 500.0;
/// Number of open questions that are remembered.
const OPEN: usize = 64;

/// Comparisons of the near host's clock with the far one's.
#[derive(Debug, Default)]
pub struct Clocks {
    exchanges: Mutex<Vec<Exchange>>,
    /// Questions that have no answer yet: the local times of sending.
    open: Mutex<HashMap<u64, (u64, i64)>>,
    next: AtomicU64,
}

/// CLOCK_REALTIME, and by how much it is ahead of CLOCK_MONOTONIC.
fn now() -> (u64, i64) {
    let realtime_ns = clock::realtime_ns();
    (realtime_ns, realtime_ns as i64 - clock::monotonic_ns() as i64)
}

impl Clocks {
    /// The next question.
    pub fn question(&self) -> Word {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        open.retain(|old, _| old + OPEN as u64 > number);
        open.insert(number, now());
        Word::Probe { number }
    }

    /// An answer came at `destination_ns`; the far clock less the near one, if the question is known.
    pub fn told(
        &self,
        number: u64,
        receive_ns: u64,
        transmit_ns: u64,
        remote_ahead_ns: i64,
        destination_ns: u64,
    ) -> Option<i64> {
        let mut open = self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (origin_ns, origin_ahead_ns) = open.remove(&number)?;
        drop(open);
        let exchange = Exchange {
            origin_ns,
            receive_ns,
            transmit_ns,
            destination_ns,
            origin_ahead_ns,
            destination_ahead_ns: now().1,
            remote_ahead_ns,
        };
        self.lock().push(exchange);
        Some(self.ahead_ns())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Exchange>> {
        self.exchanges.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The best of the last exchanges.
    fn best(&self) -> Option<Exchange> {
        let exchanges = self.lock();
        let recent = &exchanges[exchanges.len().saturating_sub(RECENT)..];
        recent.iter().min_by_key(|exchange| exchange.round_trip_ns()).copied()
    }

    /// CLOCK_REALTIME of the far host less that of the near one, in ns.
    pub fn ahead_ns(&self) -> i64 {
        self.best().map_or(0, |best| i64::try_from(best.offset_ns()).unwrap_or(0))
    }

    /// The time of the far host's CLOCK_MONOTONIC when the near one's shows `near_ns`.
    pub fn far_monotonic_ns(&self, near_ns: u64) -> u64 {
        let Some(best) = self.best() else { return near_ns };
        let ahead_ns = best.offset_ns() + i128::from(best.origin_ahead_ns) - i128::from(best.remote_ahead_ns);
        u64::try_from(i128::from(near_ns) + ahead_ns).unwrap_or(near_ns)
    }

    /// Half of the median round trip: the delay of the network in one direction, if it is the same in both.
    pub fn one_way_ns(&self) -> u64 {
        // No longer than the answer took, whatever times the other host tells.
        let round_trip_ns = |exchange: &Exchange| {
            let took_ns = i128::from(exchange.destination_ns.saturating_sub(exchange.origin_ns));
            exchange.round_trip_ns().clamp(0, took_ns)
        };
        let mut round_trips: Vec<i128> = self.lock().iter().map(round_trip_ns).collect();
        round_trips.sort_unstable();
        round_trips.get(round_trips.len() / 2).map_or(0, |median| u64::try_from(median / 2).unwrap_or(0))
    }

    /// The estimate of offset and drift over the whole run.
    ///
    /// # Errors
    /// When there were too few exchanges.
    pub fn estimate(&self) -> Result<Estimate> {
        let exchanges = self.lock();
        let mut estimate = Estimate::of(&exchanges).map_err(|error| Failure::new(error.to_string()))?;
        estimate.exchanges.sent = self.next.load(Ordering::Relaxed);
        estimate.exchanges.answered = exchanges.len() as u64;
        let best = exchanges.iter().min_by_key(|exchange| exchange.round_trip_ns());
        if estimate.drift_ppm.abs() > MOST_DRIFT_PPM
            && let Some(best) = best
        {
            estimate.at_unix_ns = best.origin_ns;
            estimate.offset_ns = i64::try_from(best.offset_ns()).unwrap_or(estimate.offset_ns);
            estimate.bound_ns = u64::try_from(best.round_trip_ns() / 2 + 1).unwrap_or(estimate.bound_ns);
            estimate.drift_ppm = 0.0;
            estimate.drift_interval_ppm = [-MOST_DRIFT_PPM, MOST_DRIFT_PPM];
            estimate.warnings.push("the run was too short to measure the drift, which is taken as 0".into());
        }
        Ok(estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_by_the_best_of_the_last_exchanges() {
        let clocks = Clocks::default();
        for round in 0..20 {
            let Word::Probe { number } = clocks.question() else { panic!("a probe") };
            assert_eq!(number, round);
            let (now_ns, ahead_ns) = now();
            // The far clock is an hour ahead, and was started a day later.
            let far_ns = now_ns + 3_600_000_000_000;
            let told = clocks.told(number, far_ns, far_ns, ahead_ns + 90_000_000_000_000, clock::realtime_ns());
            assert!((told.unwrap() - 3_600_000_000_000).abs() < 1_000_000_000, "{told:?}");
        }
        assert_eq!(clocks.told(7, 0, 0, 0, 0), None);
        let near_ns = 100_000_000_000_000;
        let far_ns = clocks.far_monotonic_ns(near_ns) as i64;
        assert!((far_ns - near_ns as i64 + 86_400_000_000_000).abs() < 1_000_000_000, "{far_ns}");
        let estimate = clocks.estimate().unwrap();
        assert!(estimate.bound_ns < 1_000_000_000 && clocks.one_way_ns() < 1_000_000_000);
        assert!((estimate.offset_ns - 3_600_000_000_000).abs() < 1_000_000_000);
        assert_eq!((estimate.exchanges.sent, estimate.exchanges.answered), (20, 20));
    }

    #[test]
    fn no_delay_is_longer_than_the_answer_took() {
        for (receive_ns, transmit_ns, ahead_ns) in [(u64::MAX, 0, i64::MIN), (0, u64::MAX, i64::MAX)] {
            let clocks = Clocks::default();
            let Word::Probe { number } = clocks.question() else { panic!("a probe") };
            clocks.told(number, receive_ns, transmit_ns, ahead_ns, clock::realtime_ns());
            assert!(clocks.one_way_ns() < 1_000_000_000, "{}", clocks.one_way_ns());
            assert!(clocks.far_monotonic_ns(u64::MAX) > 0);
        }
    }
}
