// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Comparison of a new calibration with the one that is stored.

use airpath_core::Span;

use super::{Calibration, Lateness};

/// A new one is worse only if its packets are later by this share, and by this time: a few hundred packets say
/// little of the latest in a hundred.
const WORSE_SHARE: f64 = 0.5;
const SAME_NS: u64 = 5_000;

/// True if the policy is one of real time.
fn is_real_time(calibration: &Calibration) -> bool {
    calibration.policy != "other"
}

/// Returns the reason to keep `old` rather than `new`; none if `new` is as good, or was made for another
/// bound or budget.
pub fn keeps(old: &Calibration, new: &Calibration) -> Option<String> {
    let same_wish = (old.bound_ns, old.budget_ppm) == (new.bound_ns, new.budget_ppm);
    if !same_wish || (old.disturbed.is_some() && new.disturbed.is_none()) {
        return None;
    }
    if new.disturbed.is_some() && old.disturbed.is_none() {
        return Some("it was measured without a disturbance".into());
    }
    let p99 = |measured: &Lateness| Span::from_nanos(measured.p99_ns / 100 * 100);
    let both = format!("99 in 100 packets within {}, and {} now", p99(&old.measured), p99(&new.measured));
    let (old_ns, new_ns) = (old.measured.p99_ns, new.measured.p99_ns);
    if new_ns > old_ns.saturating_add(SAME_NS.max((old_ns as f64 * WORSE_SHARE) as u64)) {
        return Some(format!("it is better: {both}"));
    }
    if is_real_time(old) && !is_real_time(new) {
        return Some(format!("it has real-time priority, which holds when the machine becomes loaded: {both}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::calibration;
    use super::*;

    fn with(p99_ns: u64) -> Calibration {
        let old = calibration();
        Calibration { measured: Lateness { p99_ns, ..old.measured }, ..old }
    }

    #[test]
    fn the_better_one_stays() {
        assert_eq!(keeps(&with(22_000), &with(20_000)), None);
        assert_eq!(keeps(&with(22_000), &with(30_000)), None, "within what a measurement may vary");
        let told = keeps(&with(22_000), &with(60_000)).unwrap();
        assert_eq!(told, "it is better: 99 in 100 packets within 22 us, and 60 us now");
        let ordinary = Calibration { policy: "other".into(), ..with(10_000) };
        assert!(keeps(&with(22_000), &ordinary).unwrap().contains("real-time priority"));
        assert_eq!(keeps(&ordinary, &with(12_000)), None);
    }

    #[test]
    fn another_wish_and_a_disturbed_one_give_way() {
        assert_eq!(keeps(&with(22_000), &Calibration { bound_ns: 50_000, ..with(60_000) }), None);
        let disturbed = |p99_ns| Calibration { disturbed: Some("a compiler".into()), ..with(p99_ns) };
        assert_eq!(keeps(&disturbed(22_000), &with(60_000)), None);
        assert!(keeps(&with(22_000), &disturbed(21_000)).unwrap().contains("without a disturbance"));
        assert!(keeps(&disturbed(22_000), &disturbed(60_000)).is_some());
    }
}
