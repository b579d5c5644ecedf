// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The command line of the study, as `airpath timing` hands it on.

use std::path::PathBuf;

use airpath_core::Span;
use airpath_live::wake_latency::{HOLD, LEAVE};
use clap::{Args, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  airpath timing --quick                   # quick measurement, half a minute
  airpath timing --out results/timing      # as in Gurtov 1999: 1000 requests of 0 to 100 ms
  airpath timing --methods all --techniques plain --jobs 4
  airpath timing --methods select,early_spin --load cpu --policy fifo
  airpath timing --methods early_spin --policy fifo --wake-latency hold   # the settings of the live loop
  airpath timing --methods select --techniques plain,slack --line-rates 1kbit/s..1Mbit/s
  airpath timing methods                   # list the methods, and those available here
  airpath timing plot results/timing       # pictures; airpath timing table: the same as Markdown";

/// Measure how exactly programs wake on this machine, by every sleep method of Linux.
#[derive(Parser, Debug)]
#[command(name = "airpath-sleep-study", bin_name = "airpath timing", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// Subcommand instead of the measurement.
    #[command(subcommand)]
    pub action: Option<Action>,
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// `airpath timing …`.
#[derive(Subcommand, Debug)]
pub enum Action {
    /// List the sleep methods, their requirements, and their availability here.
    #[command(after_help = "Example:\n  airpath timing methods")]
    Methods(MethodsArgs),
}

/// `airpath timing methods`.
#[derive(Args, Debug)]
pub struct MethodsArgs {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of the measurement.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Sleep methods by name (`airpath timing methods` lists them), or all [default: select, epoll_wait,
    /// clock_nanosleep_absolute, timerfd_absolute, rtc, busy and early_spin].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Measurement")]
    pub methods: Vec<String>,
    /// Error correction: plain, slack, pre_compensation, slack_and_pre_compensation, or all.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "plain,slack",
        help_heading = "Measurement"
    )]
    pub techniques: Vec<String>,
    /// Sleep requests per series [default: 1000; with --quick 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000), help_heading = "Measurement")]
    pub requests: Option<u32>,
    /// Distribution of sleep lengths: uniform:A..B, constant:T or exponential:MEAN; the same lengths in every series
    /// [default: uniform:0ms..100ms; with --quick uniform:0ms..20ms].
    #[arg(long, value_name = "WHAT", help_heading = "Measurement")]
    pub distribution: Option<String>,
    /// Margin by which early_spin wakes early to busy-wait [default: learned from its lateness].
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    pub margin: Option<Span>,
    /// Also send back-to-back 100-byte packets at these rates: LOW..HIGH, or a list.
    #[arg(long, value_name = "RATES", help_heading = "Measurement")]
    pub line_rates: Option<String>,
    /// Competing load on every CPU: none, cpu, disk or network.
    #[arg(long, value_name = "LOAD", default_value = "none", help_heading = "Conditions")]
    pub load: String,
    /// Scheduling policy: other, fifo or rr (the last two need permission for real-time scheduling).
    #[arg(long, value_name = "POLICY", default_value = "other", help_heading = "Conditions")]
    pub policy: String,
    /// Timer slack (delay that the kernel may add to batch timers): default, 1ns or both.
    #[arg(long, value_name = "SLACK", default_value = "both", help_heading = "Conditions")]
    pub timer_slack: String,
    /// Memory locking: unlocked, locked or both.
    #[arg(long, value_name = "HOW", default_value = "unlocked", help_heading = "Conditions")]
    pub memory: String,
    /// Deep CPU idle states: hold (block them, as live runs do; usually needs root) or leave (allow them).
    #[arg(long, value_name = "HOW", default_value = LEAVE, value_parser = [LEAVE, HOLD], help_heading = "Conditions")]
    pub wake_latency: String,
    /// Number of parallel series; busy-waiting series leave one CPU free.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Execution")]
    pub jobs: u32,
    /// Quick measurement: few and short requests.
    #[arg(long, help_heading = "Execution")]
    pub quick: bool,
    /// Random seed of the sleep lengths and the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Execution")]
    pub seed: u64,
    /// Write timing.json and samples.arrow to this directory.
    #[arg(long, value_name = "DIR", help_heading = "Execution")]
    pub out: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long, help_heading = "Execution")]
    pub json: bool,
}
