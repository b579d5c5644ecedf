//! The command line of the study, as `airpath timing` hands it on.

use std::path::PathBuf;

use airpath_core::Span;
use airpath_live::wake_latency::{HOLD, LEAVE};
use clap::{Args, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  airpath timing --quick                   # a first look, half a minute
  airpath timing --out results/timing      # as in Gurtov 1999: 1000 requests of 0 to 100 ms
  airpath timing --methods all --techniques plain --jobs 4
  airpath timing --methods select,early_spin --load cpu --policy fifo
  airpath timing --methods early_spin --policy fifo --wake-latency hold   # as the live loop has it
  airpath timing --methods select --techniques plain,slack --line-rates 1kbit/s..1Mbit/s
  airpath timing methods                   # what there is, and what of it works here
  airpath timing plot results/timing       # pictures; airpath timing table: the same as Markdown";

/// Measure how exactly programs wake on this machine, by every sleep method of Linux.
#[derive(Parser, Debug)]
#[command(name = "airpath-sleep-study", bin_name = "airpath timing", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do instead of measuring.
    #[command(subcommand)]
    pub action: Option<Action>,
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// `airpath timing …`.
#[derive(Subcommand, Debug)]
pub enum Action {
    /// List the sleep methods, what each needs, and whether it works here.
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

/// What to measure.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Sleep methods, by name (`airpath timing methods` lists them), or all [default: select, epoll_wait,
    /// clock_nanosleep_absolute, timerfd_absolute, rtc, busy and early_spin].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "What is measured")]
    pub methods: Vec<String>,
    /// What is done about errors: plain, slack, pre_compensation, slack_and_pre_compensation, or all.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "plain,slack",
        help_heading = "What is measured"
    )]
    pub techniques: Vec<String>,
    /// How often to sleep in each series [default: 1000; with --quick 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000), help_heading = "What is measured")]
    pub requests: Option<u32>,
    /// How long to sleep: uniform:A..B, constant:T or exponential:MEAN; the same lengths in every series
    /// [default: uniform:0ms..100ms; with --quick uniform:0ms..20ms].
    #[arg(long, value_name = "WHAT", help_heading = "What is measured")]
    pub distribution: Option<String>,
    /// How much earlier early_spin wakes to watch the clock [default: learnt from how late it was].
    #[arg(long, value_name = "TIME", help_heading = "What is measured")]
    pub margin: Option<Span>,
    /// Also send packets of 100 bytes one after the other at these rates: LOW..HIGH, or a list.
    #[arg(long, value_name = "RATES", help_heading = "What is measured")]
    pub line_rates: Option<String>,
    /// What else runs, on every processor: none, cpu, disk or network.
    #[arg(long, value_name = "LOAD", default_value = "none", help_heading = "Under what conditions")]
    pub load: String,
    /// The scheduling policy: other, fifo or rr (these need the right to real-time scheduling).
    #[arg(long, value_name = "POLICY", default_value = "other", help_heading = "Under what conditions")]
    pub policy: String,
    /// By how much the kernel may delay timers to bundle them: default, 1ns or both.
    #[arg(long, value_name = "SLACK", default_value = "both", help_heading = "Under what conditions")]
    pub timer_slack: String,
    /// Whether all memory is locked: unlocked, locked or both.
    #[arg(long, value_name = "HOW", default_value = "unlocked", help_heading = "Under what conditions")]
    pub memory: String,
    /// Whether processors are kept from idle states that take long to leave, as during live runs: hold
    /// (usually only root may), or leave them alone.
    #[arg(long, value_name = "HOW", default_value = LEAVE, value_parser = [LEAVE, HOLD], help_heading = "Under what conditions")]
    pub wake_latency: String,
    /// How many series at a time; those that watch the clock leave a processor to others.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "The measurement")]
    pub jobs: u32,
    /// A first look: few and short requests.
    #[arg(long, help_heading = "The measurement")]
    pub quick: bool,
    /// The seed of the lengths and of the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "The measurement")]
    pub seed: u64,
    /// Write timing.json and samples.arrow into this folder.
    #[arg(long, value_name = "DIR", help_heading = "The measurement")]
    pub out: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long, help_heading = "The measurement")]
    pub json: bool,
}
