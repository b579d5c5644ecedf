// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A measurement: which series, in which order, how many at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use airpath_core::Rate;
use airpath_live::scheduling::allowed_processors;
use airpath_live::tuning::Policy;
use airpath_live::wake_latency::{HOLD, LEAVE};

use crate::conditions::{self, Conditions, LockedMemory, POLICIES, try_out, unlock_memory};
use crate::error::{Result, TimingError};
use crate::line_rate::{self, Effort};
use crate::method::{Method, MethodOptions, Waiting};
use crate::pattern::Pattern;
use crate::report::{Asked, FORMAT_VERSION, LineRate, Series, TimingReport};
use crate::series::{SeriesOutcome, Way};
use crate::stress::{self, Stress};
use crate::technique::{TRIALS, Technique};
use crate::{host, recommend, statistics};

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Request {
    /// The sleep methods.
    pub methods: Vec<&'static Method>,
    /// Options of the sleep methods.
    pub options: MethodOptions,
    /// Techniques of compensating errors.
    pub techniques: Vec<Technique>,
    /// Timer slacks in ns; none for the system's default.
    pub timer_slacks_ns: Vec<Option<u64>>,
    /// Each setting of memory, true if locked: one or both.
    pub memory_locked: Vec<bool>,
    /// Number of requests of each series.
    pub requests: u32,
    /// Distribution of their lengths.
    pub pattern: Pattern,
    /// Line rates to try besides.
    pub line_rates: Vec<Rate>,
    /// Limits of the time and of the packets for each rate.
    pub effort: Effort,
    /// Kind of other load.
    pub stress: Option<&'static stress::Kind>,
    /// The scheduling policy.
    pub policy: Policy,
    /// True if processors are kept from idle states that take long to leave.
    pub hold_wake_latency: bool,
    /// Number of series at a time.
    pub jobs: u32,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

/// One thing to measure.
#[derive(Clone, Debug)]
struct Item {
    way: Way,
    memory_locked: bool,
    /// None for the series of the report.
    rate: Option<Rate>,
}

/// Progress of a measurement.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Description of the next step.
    pub what: String,
    /// Its number, from 1.
    pub number: usize,
    /// Number of all steps.
    pub of: usize,
    /// About how long all that is left takes, in ns.
    pub left_ns: u64,
}

/// A finished measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The report on it.
    pub report: TimingReport,
    /// The requests of every series, in ns.
    pub requested_ns: Vec<u64>,
    /// Actual lengths, in ns, for each series of the report; empty where it was unavailable.
    pub actual_ns: Vec<Vec<u64>>,
}

impl Request {
    fn items(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for memory_locked in &self.memory_locked {
            for method in &self.methods {
                for technique in &self.techniques {
                    for timer_slack_ns in self.slacks_that_matter(method) {
                        let conditions = Conditions { timer_slack_ns, policy: self.policy };
                        let way = Way { method, options: self.options, technique: *technique, conditions };
                        items.push(Item { way, memory_locked: *memory_locked, rate: None });
                    }
                }
            }
        }
        // Rates are compared by method and technique, under the first of the other settings.
        let firsts: Vec<Item> = items
            .iter()
            .filter(|item| item.memory_locked == self.memory_locked[0])
            .filter(|item| {
                Some(&item.way.conditions.timer_slack_ns) == self.slacks_that_matter(item.way.method).first()
            })
            .cloned()
            .collect();
        for item in firsts {
            items.extend(self.line_rates.iter().map(|rate| Item { rate: Some(*rate), ..item.clone() }));
        }
        items
    }

    /// Timer slacks that matter for `method`: one that watches the clock has no timer that could be slack.
    fn slacks_that_matter(&self, method: &Method) -> Vec<Option<u64>> {
        if method.waiting == Waiting::Awake { vec![None] } else { self.timer_slacks_ns.clone() }
    }

    /// Number of series, and about the time that everything takes, in ns.
    pub fn expected(&self) -> (usize, u64) {
        let items = self.items();
        let requested_ns = self.pattern.lengths_ns(self.seed, self.requests as usize);
        let all_ns: u64 = items.iter().map(|item| self.expected_item_ns(item, &requested_ns)).sum();
        let series = items.iter().filter(|item| item.rate.is_none()).count();
        (series, all_ns / u64::from(self.jobs))
    }

    fn expected_item_ns(&self, item: &Item, requested_ns: &[u64]) -> u64 {
        let sum_ns = match item.rate {
            None => requested_ns.iter().sum(),
            Some(rate) => line_rate::transmission_times_ns(rate, self.effort).iter().sum(),
        };
        item.way.expected_ns(sum_ns, self.pattern.mean_ns())
    }

    /// Makes sure of what every series needs.
    ///
    /// # Errors
    /// When the policy, the wake latency, or the locking of memory (if nothing else is asked for), cannot be
    /// had.
    pub fn check(&self) -> Result<()> {
        try_out(Conditions { timer_slack_ns: None, policy: self.policy })?;
        if self.memory_locked == [true] {
            drop(LockedMemory::new()?);
        }
        if self.hold_wake_latency {
            drop(conditions::hold_wake_latency()?);
        }
        Ok(())
    }

    /// Measures. A sleep method that is not available is reported as such. When `stop` is set, the
    /// report has what was measured so far. To be called by a thread that lives as long as the process: the processes
    /// of `--load` end with it.
    ///
    /// # Errors
    /// What [`Request::check`] says, and when a process of `--load` cannot be had or ends.
    pub fn measure(&self, stop: &Arc<AtomicBool>, progress: &mut dyn FnMut(&Progress)) -> Result<Measurement> {
        self.check()?;
        let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // Before the stress, which is none of the machine's own.
        let host = host::facts();
        let requested_ns: Arc<[u64]> = self.pattern.lengths_ns(self.seed, self.requests as usize).into();
        let items = self.items();
        let mut stress = self.stress.map(Stress::start).transpose()?;
        // After the stress, whose processes would else hold it, too.
        let wake_latency = self.hold_wake_latency.then(conditions::hold_wake_latency).transpose()?;
        let mut runner = Runner::new(self, &items, requested_ns.clone(), stop, progress)?;
        for memory_locked in [false, true] {
            unlock_memory();
            let queue: VecDeque<usize> =
                (0..items.len()).filter(|index| items[*index].memory_locked == memory_locked).collect();
            if queue.is_empty() {
                continue;
            }
            match memory_locked.then(LockedMemory::new).transpose() {
                Ok(_locked) => runner.run(queue, &mut stress)?,
                Err(error) => queue.iter().for_each(|index| runner.results[*index] = Some(Err(error.to_string()))),
            }
        }
        let results = runner.results;
        drop(wake_latency);
        drop(stress);
        Ok(self.conclude(&items, results, &requested_ns, began_unix_s, host, stop.load(Ordering::Relaxed)))
    }

    fn conclude(
        &self,
        items: &[Item],
        results: Vec<Option<std::result::Result<SeriesOutcome, String>>>,
        requested_ns: &[u64],
        began_unix_s: u64,
        host: serde_json::Value,
        interrupted: bool,
    ) -> Measurement {
        let (mut series, mut line_rates, mut actual_ns) = (Vec::new(), Vec::new(), Vec::new());
        for (item, result) in items.iter().zip(results) {
            let way = item.way;
            match (item.rate, result) {
                (None, Some(Ok(outcome))) if outcome.actual_ns.len() >= 2 => {
                    let measured = statistics::measured(requested_ns, &outcome, self.seed);
                    series.push(said(item, None, Some(measured)));
                    actual_ns.push(outcome.actual_ns);
                }
                (None, Some(Err(reason))) => {
                    series.push(said(item, Some(reason), None));
                    actual_ns.push(Vec::new());
                }
                (Some(rate), Some(Ok(outcome))) if !outcome.actual_ns.is_empty() => {
                    let packets = outcome.actual_ns.len();
                    line_rates.push(LineRate {
                        method: way.method.name.into(),
                        technique: way.technique.name().into(),
                        timer_slack_ns: way.conditions.timer_slack_ns,
                        packet_bytes: line_rate::PACKET_BYTES,
                        packets: packets as u32,
                        requested_bits_per_second: rate.bits_per_second() as f64,
                        actual_bits_per_second: line_rate::actual_bits_per_second(
                            packets,
                            outcome.elapsed_ns - outcome.rested_ns.min(outcome.elapsed_ns),
                        ),
                    });
                }
                // Broken off before it began, or unavailable, which the series reports.
                _ => {}
            }
        }
        let policy = POLICIES.into_iter().find(|(_, policy)| *policy == self.policy).map_or("other", |(name, _)| name);
        let mut report = TimingReport {
            format_version: FORMAT_VERSION,
            airpath_version: env!("CARGO_PKG_VERSION").into(),
            began_unix_s,
            host,
            asked: Asked {
                requests: self.requests,
                distribution: self.pattern.to_string(),
                seed: self.seed,
                load: self.stress.map_or(stress::NONE, |kind| kind.name).into(),
                policy: policy.into(),
                wake_latency: if self.hold_wake_latency { HOLD } else { LEAVE }.into(),
                jobs: self.jobs,
                margin_ns: self.options.margin_ns,
            },
            series,
            line_rates,
            recommendation: Vec::new(),
            interrupted,
        };
        report.recommendation = recommend::recommendation(&report);
        Measurement { report, requested_ns: requested_ns.to_vec(), actual_ns }
    }
}

fn said(item: &Item, unavailable: Option<String>, measured: Option<crate::report::Measured>) -> Series {
    Series {
        method: item.way.method.name.into(),
        technique: item.way.technique.name().into(),
        timer_slack_ns: item.way.conditions.timer_slack_ns,
        memory_locked: item.memory_locked,
        unavailable,
        measured,
    }
}

/// Starts series, so many at a time, and gathers what comes out.
struct Runner<'a> {
    request: &'a Request,
    items: &'a [Item],
    requested_ns: Arc<[u64]>,
    trials_ns: Arc<[u64]>,
    stop: &'a Arc<AtomicBool>,
    progress: &'a mut dyn FnMut(&Progress),
    /// Number of series at a time that may keep their processors from others.
    occupiers: usize,
    results: Vec<Option<std::result::Result<SeriesOutcome, String>>>,
    begun: usize,
    /// About how long all that has not ended takes by itself, in ns.
    left_ns: u64,
}

impl<'a> Runner<'a> {
    fn new(
        request: &'a Request,
        items: &'a [Item],
        requested_ns: Arc<[u64]>,
        stop: &'a Arc<AtomicBool>,
        progress: &'a mut dyn FnMut(&Progress),
    ) -> Result<Runner<'a>> {
        let processors = allowed_processors()
            .map_err(|error| TimingError::System(format!("cannot list the processors: {error}")))?
            .len();
        let left_ns = items.iter().map(|item| request.expected_item_ns(item, &requested_ns)).sum();
        Ok(Runner {
            request,
            items,
            trials_ns: request.pattern.trial_lengths_ns(request.seed, TRIALS).into(),
            requested_ns,
            stop,
            progress,
            occupiers: processors.saturating_sub(1),
            results: vec![None; items.len()],
            begun: 0,
            left_ns,
        })
    }

    /// Returns the reason for which `item` is not measured at all: a real-time thread that watches the clock
    /// would keep the only processor from everything else, also from a program that ends it.
    fn forbidden(&self, item: &Item) -> Option<String> {
        (item.way.occupies() && self.request.policy != Policy::Other && self.occupiers == 0).then(|| {
            "it would keep the only processor from everything else at real-time priority; measure it with \
             --policy other"
                .into()
        })
    }

    fn run(&mut self, mut queue: VecDeque<usize>, stress: &mut Option<Stress>) -> Result<()> {
        let (sender, receiver) = mpsc::channel();
        let (mut running, mut occupied) = (0, 0);
        loop {
            while running < self.request.jobs as usize && !self.stop.load(Ordering::Relaxed) {
                let may_begin =
                    |index: &usize| !self.items[*index].way.occupies() || occupied == 0 || occupied < self.occupiers;
                let Some(at) = queue.iter().position(may_begin) else { break };
                let index = queue.remove(at).expect("its position was just found");
                if let Some(reason) = self.forbidden(&self.items[index]) {
                    self.results[index] = Some(Err(reason));
                    continue;
                }
                self.begin(index, sender.clone())?;
                running += 1;
                occupied += usize::from(self.items[index].way.occupies());
            }
            if running == 0 {
                return Ok(());
            }
            let (index, result) = receiver.recv().expect("a sender is held here");
            running -= 1;
            occupied -= usize::from(self.items[index].way.occupies());
            self.left_ns -= self.request.expected_item_ns(&self.items[index], &self.requested_ns);
            self.results[index] = Some(result);
            if let Some(stress) = stress
                && let Err(error) = stress.check()
            {
                // Threads still running end by themselves soon, and with the process at the latest.
                self.stop.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }

    fn begin(
        &mut self,
        index: usize,
        sender: mpsc::Sender<(usize, std::result::Result<SeriesOutcome, String>)>,
    ) -> Result<()> {
        let item = &self.items[index];
        self.begun += 1;
        let left_ns = self.left_ns / u64::from(self.request.jobs);
        let progress = Progress { what: described(item), number: self.begun, of: self.items.len(), left_ns };
        (self.progress)(&progress);
        let requested_ns = match item.rate {
            None => self.requested_ns.clone(),
            Some(rate) => line_rate::transmission_times_ns(rate, self.request.effort).into(),
        };
        let (way, trials_ns, stop) = (item.way, self.trials_ns.clone(), self.stop.clone());
        let measure = move || {
            let result = way.measure(&requested_ns, &trials_ns, &stop);
            // No result is received any more after an error.
            let _ = sender.send((index, result));
        };
        std::thread::Builder::new()
            .name("airpath-series".into())
            .spawn(measure)
            .map(drop)
            .map_err(|error| TimingError::System(format!("cannot start a thread: {error}")))
    }
}

fn described(item: &Item) -> String {
    let slack =
        item.way.conditions.timer_slack_ns.map_or_else(String::new, |slack| format!(", timer slack {slack} ns"));
    let memory = if item.memory_locked { ", memory locked" } else { "" };
    let rate = item.rate.map_or_else(String::new, |rate| format!(" at {rate}"));
    format!("{} {}{rate}{slack}{memory}", item.way.method.name, item.way.technique.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{self, METHODS};

    fn request(methods: &[&str], techniques: &[Technique]) -> Request {
        Request {
            methods: methods.iter().map(|name| method::find(name).unwrap()).collect(),
            options: MethodOptions::default(),
            techniques: techniques.to_vec(),
            timer_slacks_ns: vec![None, Some(1)],
            memory_locked: vec![false],
            requests: 5,
            pattern: Pattern::Uniform(0, 400_000),
            line_rates: Vec::new(),
            effort: Effort { point_ns: 1_000_000, least: 1, most: 3 },
            stress: None,
            policy: Policy::Other,
            hold_wake_latency: false,
            jobs: 1,
            seed: 1,
        }
    }

    fn measure(request: &Request) -> (Measurement, Vec<Progress>) {
        let _alone = crate::conditions::MEMORY_IN_TESTS.lock();
        let mut told = Vec::new();
        let stop = Arc::new(AtomicBool::new(false));
        let measurement = request.measure(&stop, &mut |progress| told.push(progress.clone())).unwrap();
        (measurement, told)
    }

    #[test]
    fn every_combination_is_a_series_in_order() {
        let request = request(&["select", "busy"], &[Technique::Plain, Technique::SlackAndPreCompensation]);
        let (measurement, told) = measure(&request);
        let series = &measurement.report.series;
        let names: Vec<_> =
            series.iter().map(|one| (one.method.as_str(), one.technique.as_str(), one.timer_slack_ns)).collect();
        let both = "slack_and_pre_compensation";
        assert_eq!(
            names,
            [
                ("select", "plain", None),
                ("select", "plain", Some(1)),
                ("select", both, None),
                ("select", both, Some(1)),
                // Timer slack is none of its business.
                ("busy", "plain", None),
                ("busy", both, None),
            ]
        );
        assert_eq!((request.expected().0, told.len(), told[5].number, told[5].of), (6, 6, 6, 6));
        assert!(told[0].left_ns >= told[5].left_ns);
        for (one, actual_ns) in series.iter().zip(&measurement.actual_ns) {
            let measured = one.measured.as_ref().unwrap();
            assert_eq!((measured.requests, actual_ns.len()), (5, 5));
            let drift = actual_ns.iter().sum::<u64>() as i64 - measurement.requested_ns.iter().sum::<u64>() as i64;
            assert_eq!(measured.drift_ns, drift);
            assert_eq!(measured.expected_oversleep_ns.is_some(), one.technique == both);
        }
        assert!(!measurement.report.recommendation.is_empty() && !measurement.report.interrupted);
    }

    #[test]
    fn all_methods_side_by_side_with_memory_both_ways() {
        let mut request = request(&[], &[Technique::Plain]);
        request.methods = METHODS.iter().collect();
        request.timer_slacks_ns = vec![None];
        request.memory_locked = vec![false, true];
        request.jobs = 6;
        let (measurement, _) = measure(&request);
        let series = &measurement.report.series;
        assert_eq!(series.len(), 2 * METHODS.len());
        assert!(series.iter().all(|one| one.measured.is_some() != one.unavailable.is_some()));
        assert!(series[METHODS.len()..].iter().all(|one| one.memory_locked));
        assert!(series[0].measured.is_some());
    }

    #[test]
    fn line_rates_have_a_point_for_each_method_technique_and_rate() {
        let mut request = request(&["select", "rtc"], &[Technique::Plain, Technique::Slack]);
        request.line_rates = line_rate::parse_rates("1Mbit/s,2Mbit/s").unwrap();
        let (measurement, _) = measure(&request);
        let rates: Vec<_> = measurement.report.line_rates.iter().filter(|rate| rate.method == "select").collect();
        assert_eq!(rates.len(), 4);
        // 800 bit at 1 Mbit/s take 0.8 ms: one packet in the millisecond of a point.
        assert_eq!((rates[0].packets, rates[0].requested_bits_per_second, rates[0].timer_slack_ns), (1, 1e6, None));
        // No method wakes early, so no line is faster than asked for without slack.
        let plain = rates.iter().filter(|rate| rate.technique == "plain");
        assert!(plain.into_iter().all(|rate| rate.actual_bits_per_second <= rate.requested_bits_per_second));
    }

    #[test]
    fn a_measurement_that_is_broken_off_tells_what_it_has() {
        let stop = Arc::new(AtomicBool::new(false));
        let _alone = crate::conditions::MEMORY_IN_TESTS.lock();
        let request = request(&["select"], &[Technique::Plain]);
        let mut begun = 0;
        let measurement = request.measure(&stop, &mut |_| {
            begun += 1;
            stop.store(begun == 2, Ordering::Relaxed);
        });
        let report = measurement.unwrap().report;
        assert!(report.interrupted);
        assert_eq!(report.series.len(), 1);
        assert_eq!(report.series[0].measured.as_ref().unwrap().requests, 5);
    }

    #[test]
    fn who_would_take_the_only_processor_is_refused() {
        let mut request = request(&["select", "busy"], &[Technique::Plain]);
        request.policy = Policy::Fifo(1);
        let items = request.items();
        let (stop, mut progress) = (Arc::new(AtomicBool::new(false)), |_: &Progress| {});
        let mut runner = Runner::new(&request, &items, vec![1, 2].into(), &stop, &mut progress).unwrap();
        runner.occupiers = 0;
        assert_eq!(runner.forbidden(&items[0]), None);
        assert!(runner.forbidden(items.last().unwrap()).unwrap().contains("only processor"));
    }

    #[test]
    fn wake_latency_is_held_and_recorded_or_its_refusal_says_what_to_do() {
        let mut request = request(&["clock_nanosleep"], &[Technique::Plain]);
        request.hold_wake_latency = true;
        match request.check() {
            Ok(()) => {
                let held = || {
                    let files = std::fs::read_dir("/proc/self/fd").unwrap();
                    files
                        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
                        .any(|file| file == std::path::Path::new(airpath_live::wake_latency::DEVICE))
                };
                let _alone = crate::conditions::MEMORY_IN_TESTS.lock();
                let mut during = Vec::new();
                let report = request.measure(&Arc::default(), &mut |_| during.push(held())).unwrap().report;
                assert_eq!(report.asked.wake_latency, HOLD);
                assert_eq!((during, held()), (vec![true; 2], false));
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("/dev/cpu_dma_latency") && text.contains("--wake-latency leave"), "{text}");
            }
        }
    }

    #[test]
    fn under_stress() {
        let mut request = request(&["clock_nanosleep"], &[Technique::Plain]);
        request.stress = stress::find("cpu").unwrap();
        let (measurement, _) = measure(&request);
        assert_eq!(measurement.report.asked.load, "cpu");
        assert!(measurement.report.series.iter().all(|one| one.measured.is_some()));
    }
}
