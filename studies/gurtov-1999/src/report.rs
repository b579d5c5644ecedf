// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Report of a measurement of sleep methods: the content of `timing.json`, declared here once.
//!
//! Next to it is `samples.arrow` with one row a request: `series` (index into
//! [`TimingReport::series`]), `request` (index in the series), `requested_ns`, `actual_ns`.

use airpath_live::wake_latency::LEAVE;
use serde::{Deserialize, Serialize};

/// The version of the format of `timing.json`.
pub const FORMAT_VERSION: u32 = 1;
/// The name of the file.
pub const FILE: &str = "timing.json";
/// The name of the file of single requests.
pub const SAMPLES: &str = "samples.arrow";

/// A measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimingReport {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The version of Airpath that measured.
    pub airpath_version: String,
    /// Beginning of the measurement, in seconds since 1970.
    pub began_unix_s: u64,
    /// The machine: facts by name.
    pub host: serde_json::Value,
    /// The parameters.
    pub asked: Asked,
    /// One for each sleep method and setting, in the order of measurement.
    pub series: Vec<Series>,
    /// The rate of a line whose packets wait by each method; empty unless asked for.
    pub line_rates: Vec<LineRate>,
    /// Recommendations for this machine, a paragraph each.
    pub recommendation: Vec<String>,
    /// True if it was broken off, so that series are missing or shorter than requested.
    #[serde(default)]
    pub interrupted: bool,
}

/// Parameters of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// Number of requests of each series.
    pub requests: u32,
    /// Distribution of their lengths, such as "uniform:0ms..100ms".
    pub distribution: String,
    /// The seed of their lengths, the same for every series.
    pub seed: u64,
    /// Other load: none, cpu, disk or network.
    pub load: String,
    /// The scheduling policy: other, fifo or rr.
    pub policy: String,
    /// Treatment of idle states that take long to leave: hold (blocked) or leave (allowed).
    #[serde(default = "leave")]
    pub wake_latency: String,
    /// Number of series measured at a time.
    #[serde(default = "one")]
    pub jobs: u32,
    /// Time before its end at which early_spin woke, in ns; none where it learnt that.
    #[serde(default)]
    pub margin_ns: Option<u64>,
}

fn leave() -> String {
    LEAVE.into()
}

fn one() -> u32 {
    1
}

/// One series of requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// The sleep method, such as "clock_nanosleep_absolute".
    pub method: String,
    /// Compensation of errors: "plain", "slack", "pre_compensation" or "slack_and_pre_compensation".
    pub technique: String,
    /// The thread's timer slack in ns; none for the system's default.
    pub timer_slack_ns: Option<u64>,
    /// True if all memory was locked.
    pub memory_locked: bool,
    /// Reason for which there is no result, such as a device that is not there.
    pub unavailable: Option<String>,
    /// Result; none where the method was unavailable.
    pub measured: Option<Measured>,
}

/// Result of one series. The absolute error is actual less requested (Gurtov 1999, 3.2); the relative error
/// is that over requested, and leaves requests of 0 ns out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Number of requests measured.
    pub requests: u32,
    /// Absolute error in ms.
    pub absolute_error_ms: Estimates,
    /// Relative error.
    pub relative_error: Estimates,
    /// Quantiles of the absolute error, in ns.
    pub error_ns: Quantiles,
    /// The sum of all actual less the sum of all requested times, in ns.
    pub drift_ns: i64,
    /// The sum of all requested times that were measured, in ns.
    #[serde(default)]
    pub requested_total_ns: u64,
    /// Duration of the whole series, in ns.
    pub elapsed_ns: u64,
    /// Processor time of the thread for each request, in ns.
    pub processor_ns_per_sleep: f64,
    /// Voluntary context switches for each request.
    pub voluntary_switches_per_sleep: f64,
    /// Involuntary context switches for each request.
    pub involuntary_switches_per_sleep: f64,
    /// With pre-compensation, the oversleep that was learnt before the series and taken off, in ns.
    #[serde(default)]
    pub expected_oversleep_ns: Option<i64>,
}

/// Sample mean and variance, each with a bootstrap interval of 95 %, which few values have none of.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimates {
    /// The sample mean.
    pub mean: f64,
    /// Its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<[f64; 2]>,
    /// The sample variance (over n − 1).
    pub variance: f64,
    /// Its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_interval: Option<[f64; 2]>,
}

/// Quantiles in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quantiles {
    /// The least.
    pub min: i64,
    /// The median.
    pub p50: i64,
    /// 99 in 100 are at most this.
    pub p99: i64,
    /// 999 in 1000 are at most this.
    pub p999: i64,
    /// The greatest.
    pub max: i64,
}

/// A line that sends packets of one size one after the other, each waiting for its transmission time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineRate {
    /// The sleep method.
    pub method: String,
    /// Compensation of errors.
    pub technique: String,
    /// The thread's timer slack in ns; none for the system's default.
    #[serde(default)]
    pub timer_slack_ns: Option<u64>,
    /// The size of a packet in bytes.
    pub packet_bytes: u32,
    /// Number of packets sent.
    pub packets: u32,
    /// The rate that was asked for.
    pub requested_bits_per_second: f64,
    /// The rate that came out.
    pub actual_bits_per_second: f64,
}
