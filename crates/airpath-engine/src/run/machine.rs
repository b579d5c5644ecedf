// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Activity of the machine during a live run, for the verdict's advice.

use airpath_core::Time;
use airpath_live::engine_loop::LoopReport;
use airpath_live::processor_time::{ProcessorShares, load_hundredths};
use airpath_live::tuning::Policy;
use airpath_log::Clock;
use airpath_log::manifest::Privilege;
use airpath_log::verdict::{CalibrationFacts, MachineFacts, RealTime};

use super::request::RunRequest;

/// Number of parallel runs, of which this one is one: set by whoever starts several.
pub const JOBS_VARIABLE: &str = "AIRPATH_JOBS";

/// Prefix of the outcome of a granted request.
const ALLOWED: &str = "allowed";
const WHOLE_PPM: u64 = 1_000_000;

/// The facts of an active run, without those of its loop, which has no time to tell them.
pub fn seen_from_beside(shares: ProcessorShares, calibration: Option<CalibrationFacts>) -> MachineFacts {
    MachineFacts {
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        stolen_ppm: shares.stolen_ppm,
        waiting_ppm: shares.waiting_ppm,
        load_hundredths: load_hundredths(),
        jobs: jobs(),
        live: true,
        calibration,
        ..MachineFacts::default()
    }
}

fn jobs() -> Option<u32> {
    std::env::var(JOBS_VARIABLE).ok().and_then(|jobs| jobs.parse().ok())
}

/// The facts of the run that `request` asked for. `asked` are the wishes of its thread, and what came of them.
pub fn facts(request: &RunRequest, report: &LoopReport, shares: ProcessorShares, asked: &[Privilege]) -> MachineFacts {
    let refused = |asked: &Privilege| !asked.outcome.starts_with(ALLOWED);
    let live = request.clock == Clock::Live;
    let worked_ns = report.processor_ns.saturating_sub(report.spun_ns);
    let ended_ns = report.ended.since(Time::ZERO).nanos();
    MachineFacts {
        loop_ppm: (u128::from(worked_ns) * u128::from(WHOLE_PPM)).checked_div(u128::from(ended_ns)).unwrap_or(0) as u64,
        real_time: match request.tuning.policy {
            Policy::Other => RealTime::NotAsked,
            // Without a watchdog the loop becomes ordinary again.
            _ if asked.iter().any(|one| one.name.starts_with("SCHED_") && refused(one)) => RealTime::Refused,
            _ if asked.iter().any(|one| one.name.starts_with("watchdog") && refused(one)) => RealTime::Refused,
            _ => RealTime::Got,
        },
        live,
        ..seen_from_beside(shares, request.calibration_facts)
    }
}
