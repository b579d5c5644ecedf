// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Finding settings that meet a bound at the least cost: first the policy, then the processor, then the margin,
//! each by trying the candidates with the rest as it was found.

use std::time::Duration;

use airpath_core::Span;
use airpath_live::engine_loop::{AutoSpin, MOST_MARGIN_NS, SpinPolicy};
use airpath_live::scheduling::{Permission, allowed_processors};
use airpath_live::tuning::{Affinity, Policy, REAL_TIME_PRIORITY};
use airpath_live::wake_latency::WakeLatency;
use serde::Serialize;

use super::{Lateness, Probed, Prober, Setting};

/// The rate of packets to which costs refer.
pub const PACKETS_PER_SECOND: f64 = 100.0;
/// With more processors than this, only the last ones are tried: interrupts gather at the first.
const MOST_PROCESSORS: usize = 4;
/// Margins that are tried, in percent of how late 99 in 100 packets leave without any.
const MARGINS_PERCENT: [u64; 5] = [30, 45, 60, 80, 110];
/// A margin is hardly worse than another if packets are not later by more than this share and this time.
const HARDLY_SHARE: f64 = 0.2;
const SAME_NS: u64 = 3_000;
/// A policy or a processor is clearly worse only if they are later by this share: a few hundred packets say
/// little of the latest in a hundred, and one disturbance more or less must not decide for long.
const CLEARLY_SHARE: f64 = 1.0;
/// Number of rounds in which each setting is tried.
const ROUNDS: u32 = 3;
/// The shortest time for all rounds of one that says something of one packet in a hundred.
const LEAST_PROBE: Duration = Duration::from_millis(200);

/// A margin before which nothing is ever due: the clock is watched all the time.
const ALL_THE_TIME_NS: u64 = 10_000_000;
/// For so long at a time, so that the watchdog of a real-time loop does not put it back.
const LONGEST_WATCH: Duration = Duration::from_millis(300);

/// The bound to meet, and the cost that is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// 99 in 100 packets are to leave no later than this, in ns.
    pub bound_ns: u64,
    /// The share of a core that watching the clock may take, in millionths.
    pub budget_ppm: u64,
    /// Limit of the duration of all probes together.
    pub duration: Duration,
}

/// A setting that was tried, and its result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Candidate {
    /// The parameter that was varied: idle, policy, processor, margin, auto or floor.
    pub step: &'static str,
    /// Scheduling policy.
    pub policy: String,
    /// The processor to which it was tied, if it was.
    pub processor: Option<usize>,
    /// Spin policy.
    pub spin: String,
    /// Lateness and cost that were measured.
    pub measured: Lateness,
    /// True if 99 in 100 packets left within the bound, within the budget.
    pub meets: bool,
}

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// Everything that was tried, in order.
    pub candidates: Vec<Candidate>,
    /// Scheduling policy of the loop.
    pub policy: Policy,
    /// Processors on which the loop runs.
    pub affinity: Affinity,
    /// The margin with which to begin, in ns.
    pub margin_ns: u64,
    /// Lateness and cost measured with these settings.
    pub measured: Lateness,
    /// True if the bound is met within the budget.
    pub meets: bool,
    /// Reasons for the choice, a sentence each.
    pub reasons: Vec<String>,
}

impl From<Probed> for Lateness {
    fn from(probed: Probed) -> Lateness {
        let percent = |ns_a_packet: f64| ns_a_packet * PACKETS_PER_SECOND / 1e7;
        Lateness {
            packets: probed.lateness.count,
            p50_ns: probed.lateness.p50_ns,
            p99_ns: probed.lateness.p99_ns,
            p999_ns: probed.lateness.p999_ns,
            max_ns: probed.lateness.max_ns,
            core_percent: percent(probed.processor_ns),
            watching_percent: percent(probed.watching_ns),
        }
    }
}

impl Wish {
    fn within_budget(&self, measured: &Lateness) -> bool {
        measured.watching_percent * 1e4 <= self.budget_ppm as f64
    }

    fn is_met_by(&self, measured: &Lateness) -> bool {
        measured.p99_ns <= self.bound_ns && self.within_budget(measured)
    }

    /// Returns the index of the margin to use in `tried`, which is in ascending order of margins: the least
    /// that meets the bound; if none does, the least of those within the budget that are hardly later than
    /// the best. The cost of watching grows with the margin, while a single measurement of it may not.
    fn choose(&self, tried: &[Lateness]) -> usize {
        let affordable = || (0..tried.len()).filter(|index| self.within_budget(&tried[*index]));
        let meeting = affordable().find(|index| self.is_met_by(&tried[*index]));
        meeting.unwrap_or_else(|| {
            let best_ns = affordable().map(|index| tried[index].p99_ns).min().unwrap_or(u64::MAX);
            affordable().find(|index| !is_later(tried[*index].p99_ns, best_ns, HARDLY_SHARE)).unwrap_or(0)
        })
    }
}

/// True if `late_ns` is later than `other_ns` by more than `share` of it.
fn is_later(late_ns: u64, other_ns: u64, share: f64) -> bool {
    late_ns > other_ns.saturating_add(SAME_NS.max((other_ns as f64 * share) as u64))
}

/// The first of `tried` than which none is clearly better.
fn first_among_equals(tried: &[Lateness]) -> usize {
    let best_ns = tried.iter().map(|measured| measured.p99_ns).min().unwrap_or(0);
    tried.iter().position(|measured| !is_later(measured.p99_ns, best_ns, CLEARLY_SHARE)).unwrap_or(0)
}

/// The policy to take, by the rounds in which each was tried. Of those of real time the first among equals; an
/// ordinary one only if it was clearly earlier than that in every single round, since one noisy round must not
/// take real-time priority from all later runs.
fn choose_policy(policies: &[Policy], rounds: &[Vec<Lateness>]) -> usize {
    let is_real_time = |index: &usize| policies[*index] != Policy::Other;
    let real_time: Vec<usize> = (0..policies.len()).filter(is_real_time).collect();
    if real_time.is_empty() {
        return 0;
    }
    let tried: Vec<Lateness> = real_time.iter().map(|index| together(rounds[*index].clone())).collect();
    let best = real_time[first_among_equals(&tried)];
    let always_earlier = |other: &usize| {
        let pairs = rounds[*other].iter().zip(&rounds[best]);
        pairs.clone().count() > 0
            && pairs.clone().all(|(other, best)| is_later(best.p99_ns, other.p99_ns, CLEARLY_SHARE))
    };
    (0..policies.len()).filter(|index| !is_real_time(index)).find(always_earlier).unwrap_or(best)
}

/// The policies that the kernel allows to this user; of those that do alike, the first is to be taken: only
/// real-time policies hold when the machine becomes loaded.
fn policies() -> Vec<Policy> {
    let try_out = |policy: Policy| {
        std::thread::spawn(move || policy.take()).join().is_ok_and(|outcome| outcome == Permission::Allowed)
    };
    let all = [Policy::Fifo(REAL_TIME_PRIORITY), Policy::RoundRobin(REAL_TIME_PRIORITY), Policy::Other];
    all.into_iter().filter(|policy| try_out(*policy)).collect()
}

/// Anywhere first: a loop that is tied to a processor cannot leave it when others need it.
fn affinities() -> Vec<Affinity> {
    let processors = allowed_processors().unwrap_or_default();
    let tried = processors.iter().rev().take(MOST_PROCESSORS).rev().map(|processor| Affinity::Processor(*processor));
    let single = processors.len() < 2;
    std::iter::once(Affinity::Any).chain(tried.filter(|_| !single)).collect()
}

struct Search<'a> {
    wish: &'a Wish,
    prober: &'a mut Prober,
    each: Duration,
    tell: &'a mut dyn FnMut(&Candidate),
    candidates: Vec<Candidate>,
}

impl Search<'_> {
    /// Tries `settings` in turn, round after round, so that a disturbance meets one round and not one setting.
    fn try_all(&mut self, step: &'static str, settings: &[Setting]) -> airpath_live::Result<Vec<Lateness>> {
        Ok(self.try_rounds(step, settings)?.into_iter().map(together).collect())
    }

    /// The same, with the result of every round.
    fn try_rounds(&mut self, step: &'static str, settings: &[Setting]) -> airpath_live::Result<Vec<Vec<Lateness>>> {
        let mut rounds = vec![Vec::new(); settings.len()];
        for _ in 0..ROUNDS {
            for (setting, tried) in settings.iter().zip(&mut rounds) {
                tried.push(Lateness::from(self.prober.measure(*setting, self.each / ROUNDS)?));
            }
        }
        for (setting, rounds) in settings.iter().zip(&rounds) {
            let measured = together(rounds.clone());
            let candidate = Candidate {
                step,
                policy: setting.policy.to_string(),
                processor: match setting.affinity {
                    Affinity::Any => None,
                    Affinity::Processor(processor) => Some(processor),
                },
                spin: setting.spin.to_string(),
                measured,
                meets: self.wish.is_met_by(&measured),
            };
            (self.tell)(&candidate);
            self.candidates.push(candidate);
        }
        Ok(rounds)
    }
}

/// Summary of the rounds of one setting. Percentiles are those of the median round, which a disturbance of
/// one round leaves as they are; costs are means; the maximum is that of all rounds.
fn together(mut rounds: Vec<Lateness>) -> Lateness {
    rounds.sort_by_key(|round| round.p99_ns);
    let mean = |of: fn(&Lateness) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    Lateness {
        packets: rounds.iter().map(|round| round.packets).sum(),
        max_ns: rounds.iter().map(|round| round.max_ns).max().unwrap_or(0),
        core_percent: mean(|round| round.core_percent),
        watching_percent: mean(|round| round.watching_percent),
        ..rounds[rounds.len() / 2]
    }
}

/// Tries settings over `prober`'s link; `tell` is called for each.
///
/// # Errors
/// When the loop cannot run.
pub fn search(wish: &Wish, prober: &mut Prober, tell: &mut dyn FnMut(&Candidate)) -> airpath_live::Result<Found> {
    let (policies, affinities) = (policies(), affinities());
    let may_hold = WakeLatency::hold(0).1.is_some();
    let probes = usize::from(may_hold) + policies.len() + affinities.len() - 1 + MARGINS_PERCENT.len() + 2;
    let each = (wish.duration / probes as u32).max(LEAST_PROBE);
    let mut search = Search { wish, prober, each, tell, candidates: Vec::new() };
    let mut setting =
        Setting { policy: policies[0], affinity: Affinity::Any, spin: SpinPolicy::Off, wake_latency: true };
    let mut reasons = Vec::new();

    // Reported, and not chosen by: a machine that is busy now may be idle during the runs.
    let left =
        if may_hold { Some(search.try_all("idle", &[Setting { wake_latency: false, ..setting }])?[0]) } else { None };

    let settings: Vec<Setting> = policies.iter().map(|policy| Setting { policy: *policy, ..setting }).collect();
    let rounds = search.try_rounds("policy", &settings)?;
    let best = choose_policy(&policies, &rounds);
    let tried: Vec<Lateness> = rounds.into_iter().map(together).collect();
    setting.policy = policies[best];
    let best_ns = tried.iter().map(|measured| measured.p99_ns).min().unwrap_or(0);
    let alike = tried.iter().filter(|measured| !is_later(measured.p99_ns, best_ns, CLEARLY_SHARE)).count();
    reasons.push(reason_for_policy(setting.policy, policies.len(), alike));
    reasons.extend(left.map(|left| reason_for_wake_latency(&left, &tried[0])));

    let settings: Vec<Setting> =
        affinities[1..].iter().map(|affinity| Setting { affinity: *affinity, ..setting }).collect();
    let mut by_affinity = vec![tried[best]];
    by_affinity.extend(search.try_all("processor", &settings)?);
    let best = first_among_equals(&by_affinity);
    setting.affinity = affinities[best];
    reasons.push(match setting.affinity {
        Affinity::Any => "on any processor: being tied to one made nothing clearly earlier".into(),
        Affinity::Processor(processor) => format!("tied to processor {processor}: clearly earlier there"),
    });

    let without = by_affinity[best];
    // The loop takes no margin above its own limit: what is later than that is the scheduler's doing.
    let reach_ns = without.p99_ns.min(MOST_MARGIN_NS * 100 / MARGINS_PERCENT[MARGINS_PERCENT.len() - 1]);
    let margins = MARGINS_PERCENT.map(|percent| reach_ns * percent / 100 / 1_000 * 1_000);
    let settings = margins.map(|margin_ns| Setting { spin: SpinPolicy::Margin(margin_ns), ..setting });
    let mut by_margin = vec![without];
    by_margin.extend(search.try_all("margin", &settings)?);
    let best = wish.choose(&by_margin);
    let margin_ns = if best == 0 { 0 } else { margins[best - 1] };
    reasons.push(reason_for_margin(wish, margin_ns, &by_margin[best]));

    let auto = AutoSpin { budget_ppm: wish.budget_ppm, bound_ns: wish.bound_ns, start_ns: margin_ns };
    let measured = search.try_all("auto", &[Setting { spin: SpinPolicy::Auto(auto), ..setting }])?[0];
    let meets = wish.is_met_by(&measured);
    search.each = search.each.min(LONGEST_WATCH * ROUNDS);
    let floor = search.try_all("floor", &[Setting { spin: SpinPolicy::Margin(ALL_THE_TIME_NS), ..setting }])?[0];
    if !meets {
        reasons.push(reason_for_floor(wish, &floor));
    }
    let candidates = search.candidates;
    let Setting { policy, affinity, .. } = setting;
    Ok(Found { candidates, policy, affinity, margin_ns, measured, meets, reasons })
}

/// Returns a sentence that compares `left`, with idle states as they are, with `held`.
fn reason_for_wake_latency(left: &Lateness, held: &Lateness) -> String {
    let [left, held] = [left, held].map(|measured| Span::from_nanos(measured.p99_ns / 100 * 100));
    format!("idle states are left quickly during a run (--wake-latency hold): {held}, and {left} if they are not")
}

fn reason_for_floor(wish: &Wish, floor: &Lateness) -> String {
    let p99 = Span::from_nanos(floor.p99_ns / 100 * 100);
    if floor.p99_ns > wish.bound_ns {
        format!(
            "with the clock watched all the time, 99 in 100 packets leave within {p99}: what is more than the bound \
             is not the timer's, but time that other programs, the kernel or the hypervisor take, and the call \
             that writes a packet"
        )
    } else {
        format!("with the clock watched all the time, 99 in 100 packets leave within {p99}: a larger budget helps")
    }
}

/// `alike` of `tried` policies were as early as the best.
fn reason_for_policy(policy: Policy, tried: usize, alike: usize) -> String {
    match (policy, tried, alike) {
        (Policy::Other, 1, _) => format!("policy {policy}: this user may have no real-time one"),
        (_, _, 1) => format!("policy {policy}: clearly earlier than the others"),
        _ => format!("policy {policy}: none was clearly earlier, and this one holds when the machine becomes loaded"),
    }
}

fn reason_for_margin(wish: &Wish, margin_ns: u64, measured: &Lateness) -> String {
    let (margin, bound) = (Span::from_nanos(margin_ns), Span::from_nanos(wish.bound_ns));
    let p99 = Span::from_nanos(measured.p99_ns / 100 * 100);
    match (wish.is_met_by(measured), margin_ns) {
        (true, 0) => format!("no margin: 99 in 100 packets leave within {bound} without watching the clock"),
        (true, _) => format!("margin {margin}: the cheapest with which 99 in 100 packets leave within {bound}"),
        (false, 0) => format!(
            "no margin: none that was tried meets {bound} within the budget; without one 99 in 100 packets leave \
             within {p99}, and one would hardly help"
        ),
        (false, _) => format!(
            "margin {margin}: none that was tried meets {bound} within the budget; with this one 99 in 100 packets \
             leave within {p99}, and more would hardly help"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(p99_ns: u64, core_percent: f64, watching_percent: f64) -> Lateness {
        Lateness { packets: 100, p50_ns: 0, p99_ns, p999_ns: 0, max_ns: 0, core_percent, watching_percent }
    }

    const WISH: Wish = Wish { bound_ns: 20_000, budget_ppm: 10_000, duration: Duration::from_secs(1) };

    #[test]
    fn the_cheapest_that_meets_the_bound_is_taken() {
        let tried = [measured(60_000, 0.3, 0.0), measured(19_000, 0.6, 0.3), measured(12_000, 0.8, 0.5)];
        assert_eq!(WISH.choose(&tried), 1);
        assert!(WISH.is_met_by(&tried[1]) && !WISH.is_met_by(&tried[0]));
    }

    #[test]
    fn where_none_meets_it_the_budget_holds_and_the_least_late_is_taken() {
        let tried = [
            measured(60_000, 0.3, 0.0),
            measured(31_000, 0.6, 0.3),
            measured(29_000, 0.9, 0.6),
            measured(10_000, 3.0, 2.7),
        ];
        // The last is beyond the budget, and the one before hardly better than the cheaper one.
        assert_eq!(WISH.choose(&tried), 1);
        assert_eq!(Wish { budget_ppm: 0, ..WISH }.choose(&tried), 0);
    }

    #[test]
    fn a_disturbed_round_does_not_decide() {
        let rounds = vec![measured(900_000, 3.0, 0.0), measured(50_000, 1.0, 0.0), measured(52_000, 2.0, 0.0)];
        let together = together(rounds);
        assert_eq!((together.p99_ns, together.packets, together.core_percent), (52_000, 300, 2.0));
    }

    #[test]
    fn one_noisy_round_does_not_take_real_time_priority_away() {
        let policies = [Policy::Fifo(10), Policy::RoundRobin(10), Policy::Other];
        let rounds = |fifo: [u64; 3], other: [u64; 3]| {
            let all = |p99s: [u64; 3]| p99s.map(|p99_ns| measured(p99_ns, 0.0, 0.0)).to_vec();
            vec![all(fifo), all(fifo), all(other)]
        };
        // The middle round of fifo was disturbed, and so was another: other looks better by far.
        let noisy = rounds([6_700_000, 40_000, 6_000_000], [255_000, 60_000, 250_000]);
        assert_eq!(choose_policy(&policies, &noisy), 0);
        let always = rounds([6_700_000, 5_000_000, 6_000_000], [255_000, 260_000, 250_000]);
        assert_eq!(choose_policy(&policies, &always), 2);
        assert_eq!(choose_policy(&[Policy::Other], &always[2..]), 0);
        // Among those of real time the first of equals.
        let quick = [vec![measured(90_000, 0.0, 0.0); 3], vec![measured(20_000, 0.0, 0.0); 3]];
        assert_eq!(choose_policy(&policies[..2], &quick), 1);
    }

    #[test]
    fn a_difference_within_the_error_of_measurement_is_none() {
        assert_eq!(first_among_equals(&[measured(50_000, 0.0, 0.0), measured(30_000, 0.0, 0.0)]), 0);
        assert_eq!(first_among_equals(&[measured(50_000, 0.0, 0.0), measured(20_000, 0.0, 0.0)]), 1);
        assert_eq!(first_among_equals(&[measured(6_000, 0.0, 0.0), measured(4_000, 0.0, 0.0)]), 0);
    }

    #[test]
    fn a_margin_of_nothing_is_called_none() {
        let (late, early) = (measured(60_000, 0.3, 0.0), measured(9_000, 0.3, 0.0));
        assert!(reason_for_margin(&WISH, 0, &late).starts_with("no margin: none that was tried meets 20 us"));
        assert!(reason_for_margin(&WISH, 0, &early).starts_with("no margin: 99 in 100"));
        assert!(reason_for_margin(&WISH, 5_000, &late).starts_with("margin 5 us: none that was tried"));
    }

    #[test]
    fn whoever_asks_for_little_gets_the_first_policy_and_any_processor_first() {
        assert!(policies().contains(&Policy::Other));
        assert_eq!(affinities()[0], Affinity::Any);
        assert!(affinities().len() <= MOST_PROCESSORS + 1);
    }
}
