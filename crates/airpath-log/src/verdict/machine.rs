// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Activity of the machine during a run, as far as it explains the engine's lateness.

use serde::{Deserialize, Serialize};

/// Real-time priority of the loop's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RealTime {
    /// It did.
    Got,
    /// The kernel refused it.
    Refused,
    /// Nobody asked for it: an option or a calibration said otherwise.
    NotAsked,
    /// Nobody looked.
    #[default]
    Unknown,
}

/// The calibration by which a run went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CalibrationFacts {
    /// Age in seconds.
    pub age_s: u64,
    /// 99 in 100 packets were not later than this while it was measured, in ns.
    pub p99_ns: u64,
    /// Requested bound in ns.
    pub bound_ns: u64,
    /// True if something disturbed the measurement, and it was stored all the same.
    pub disturbed: bool,
}

/// The machine during a run. What the kernel does not tell is left out.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Number of processors that the engine may use.
    pub processors: u32,
    /// The share of all processors' time that the host of a virtual machine took, in millionths.
    pub stolen_ppm: Option<u64>,
    /// The share of the run in which some program waited for a processor, in millionths.
    pub waiting_ppm: Option<u64>,
    /// The load average of a minute when the run ended, in hundredths.
    pub load_hundredths: Option<u64>,
    /// The share of the run in which the loop itself worked, without watching the clock, in millionths.
    pub loop_ppm: u64,
    /// Scheduling of the loop's thread.
    pub real_time: RealTime,
    /// Number of parallel runs, if it was one of several.
    pub jobs: Option<u32>,
    /// True for a run in real time, to which a calibration matters.
    pub live: bool,
    /// The calibration, if there is one.
    pub calibration: Option<CalibrationFacts>,
}
