//! The command line: what can be typed, with its help.

pub mod calibrate;
pub mod clocks;
pub mod control;
mod load;
mod replay;
mod sim;
pub mod timing;
pub mod trace;
pub mod warp;

use std::ffi::OsString;
use std::path::PathBuf;

use airpath_core::Span;
use airpath_core::limits::{LEAST_MTU_BYTES, LONGEST_PACKET_BYTES};
use airpath_live::engine_loop::SpinPolicy;
use airpath_live::ports::PortKind;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::tuning::{Policy, Tuning};
use airpath_live::wake_latency::{HOLD, LEAVE};
use airpath_log::{Clock, LatenessBound, Level, RingSize, Snaplen};
use clap::builder::RangedI64ValueParser;
use clap::{Args, Parser, Subcommand};

use crate::run::request::{SERVER_GRACE, SERVER_TIMEOUT};

pub use load::{RecvArgs, SendArgs};
pub use replay::ReplayArgs;
pub use sim::SimArgs;

/// Airpath puts a wireless link of your choice between real programs and says what happened.
#[derive(Parser, Debug)]
#[command(name = "airpath", bin_name = "airpath", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands that the engine carries out.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a command behind an emulated link.
    #[command(after_help = EXEC_EXAMPLES)]
    Exec(ExecArgs),
    /// Open your shell behind an emulated link; shells nest, and delays add.
    #[command(after_help = SHELL_EXAMPLES)]
    Shell(ShellArgs),
    /// Run workloads over a link in virtual time, as fast as the processor allows.
    Sim(SimArgs),
    /// Check a scenario file and say what is wrong with it.
    #[command(after_help = "Example:\n  airpath check train.toml")]
    Check(CheckArgs),
    /// Print the JSON Schema of scenario files.
    #[command(after_help = "Example:\n  airpath schema > scenario.schema.json")]
    Schema,
    /// Print units, columns of logs, causes of drops and verdicts as JSON, for other programs.
    #[command(after_help = "Example:\n  airpath facts | jq '.causes[].name'")]
    Facts,
    /// List the built-in links, or show one as a scenario to copy and edit.
    #[command(after_help = "Examples:\n  airpath profiles\n  airpath profiles show gsm-data-9.6k > my-link.toml")]
    Profiles(ProfilesArgs),
    /// Print what happened in a run.
    #[command(after_help = LOG_EXAMPLES)]
    Log(LogArgs),
    /// Put a load on the way to `airpath recv`: bytes, requests, or datagrams.
    #[command(after_help = load::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Wait for `airpath send` and do what it asks for.
    #[command(after_help = load::RECV_EXAMPLES)]
    Recv(RecvArgs),
    /// Play a recorded run again in virtual time, and say whether its trace is the same.
    Replay(ReplayArgs),
    /// List the runs that go on and can be controlled.
    Runs(control::RunsArgs),
    /// Switch an active run to another state.
    State(control::StateArgs),
    /// Set parameters of an active run.
    Set(control::SetArgs),
    /// Convert, show and plot traces of rates.
    Trace(trace::TraceArgs),
    /// Prepare for runs in virtual time (`airpath exec --clock warp`).
    #[command(after_help = warp::EXAMPLES)]
    Warp(warp::WarpArgs),
    /// Find out how well this machine keeps time, and calibrate live runs for it.
    Timing(Box<timing::TimingArgs>),
    /// The first process of a guest in virtual time.
    #[command(name = airpath_warp::guest::COMMAND, hide = true)]
    WarpInit,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  airpath exec --profile umts-384 -- ping -c 4 server
  airpath exec --rate '5 Mbit/s,1 Mbit/s' --delay '20 ms' --loss 1% \\
      --server 'iperf3 -s -1' -- iperf3 -c server -R
  airpath exec --delay '20 ms' --jitter '5 ms' --reorder '1% 10 ms' --duplicate 0.1% -- ping -c 100 server
  airpath exec --scenario train.toml --out results/train --server './server' -- ./client server
  airpath exec --profile slow-4g --internet -- curl -O https://example.org/
  airpath exec --clock warp --profile gsm-data-9.6k --replications 20 --jobs 2 \\
      --server './server' -- ./client server
  airpath exec --profile lte-good --set radio.downlink.rate='2 Mbit/s' --print-scenario

The command sees two names: `client` (itself, the mobile end) and `server` (the other end).
Exit status: the command's; 2 if the options or the scenario are wrong; 3 with --strict if the run\ncannot be trusted; 125 if airpath fails.";

const SHELL_EXAMPLES: &str = "\
Examples:
  airpath shell --profile gprs-cs2-3+1
  airpath shell --delay '20 ms' --internet
  airpath shell --rate '1 Mbit/s'        # and inside it once more: airpath shell --delay '100 ms'";

const LOG_EXAMPLES: &str = "\
Examples:
  airpath log results/train
  airpath log results/train --kind dropped --json
  airpath log results/train --tcpdump
  airpath log results/train --tcp --from '2 s' --to '3 s'
  airpath log results/train --mahimahi --direction downlink > downlink.log";

/// Which link.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "The link")]
pub struct LinkArgs {
    /// A built-in link (`airpath profiles` lists them).
    #[arg(long, value_name = "NAME", conflicts_with = "scenario")]
    pub profile: Option<String>,
    /// A scenario file.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// The rate, of both directions or UPLINK,DOWNLINK; or a trace: mahimahi:FILE, trace:FILE.
    #[arg(long, value_name = "RATE[,RATE]")]
    pub rate: Option<String>,
    /// The one-way delay, of both directions or UPLINK,DOWNLINK.
    #[arg(long, value_name = "TIME[,TIME]")]
    pub delay: Option<String>,
    /// The standard deviation of the delay, which becomes normal and keeps the order of packets, of both
    /// directions or UPLINK,DOWNLINK. '5 ms' draws the delay of each packet by itself: packets closer than that
    /// wait for each other, so that a busy flow has a longer delay and less jitter than asked for. '5 ms
    /// correlated' (or '5 ms correlated 100 ms', the time in which it changes) gives both at any rate.
    #[arg(long, value_name = "TIME[,TIME]")]
    pub jitter: Option<String>,
    /// The probability that a packet is lost, of both directions or UPLINK,DOWNLINK.
    #[arg(long, value_name = "P[,P]")]
    pub loss: Option<String>,
    /// The probability that a packet is held back, and until when: a time ('1% 20 ms') or a number of packets
    /// that overtake it ('1% 3 packets'; one if nothing is said), of both directions or UPLINK,DOWNLINK.
    #[arg(long, value_name = "P [HELD][,…]")]
    pub reorder: Option<String>,
    /// The probability that a packet is delivered twice, of both directions or UPLINK,DOWNLINK.
    #[arg(long, value_name = "P[,P]")]
    pub duplicate: Option<String>,
    /// What the queue before the link holds, of both directions or UPLINK,DOWNLINK.
    #[arg(long, value_name = "LIMIT[,LIMIT]")]
    pub queue: Option<String>,
    /// A blackout of the link: when it begins, how long it lasts, and drop or store.
    #[arg(long, value_name = "TIME,TIME[,HOW]")]
    pub blackout: Vec<String>,
    /// Any parameter of the scenario, such as radio.link.rate='64 kbit/s'.
    #[arg(long, value_name = "PARAMETER=VALUE")]
    pub set: Vec<String>,
}

/// How to run.
#[derive(Args, Debug, Clone)]
pub struct RunArgs {
    /// The congestion control of TCP at both ends.
    #[arg(long, value_name = "NAME", help_heading = "The ends")]
    pub cc: Option<String>,
    /// The MTU of both ends in bytes; below 1280 there is no IPv6.
    #[arg(long, value_name = "BYTES", value_parser = mtu_bytes(), help_heading = "The ends")]
    pub mtu: Option<u32>,
    /// Connect the far end to the host's network.
    #[arg(long, help_heading = "The ends")]
    pub internet: bool,
    /// Make a port of the host's loopback reachable through the link as server:PORT.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "The ends")]
    pub host_port: Vec<u16>,
    /// Run commands as root of their user namespace instead of as yourself.
    #[arg(long, help_heading = "The ends")]
    pub as_root: bool,
    /// As root: keep the commands from the host's network, processes, kernel and clock, though not from its files
    /// (docs/security.md). An ordinary user's are kept from all that root may do in any case.
    #[arg(long, help_heading = "The ends", overrides_with = "no_confine")]
    pub confine: bool,
    /// As root: leave the commands all rights that root has [default].
    #[arg(long, help_heading = "The ends", overrides_with = "confine")]
    pub no_confine: bool,
    /// How packets get to the engine: auto, tun, or packet (veth and AF_PACKET).
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = parse_port_kind, help_heading = "The engine")]
    pub port: PortKind,
    /// Wake before deadlines and watch the clock: auto (by a margin that it learns, at most 10 % of a core),
    /// auto:3% or auto:3%,50us (at most this share of a core, for 99 in 100 packets to leave within this),
    /// off, batch (what falls due within half a millisecond leaves together), or a margin
    /// [default: as calibrated by `airpath timing calibrate`, else auto].
    #[arg(long, value_name = "HOW", help_heading = "The engine")]
    pub spin: Option<SpinPolicy>,
    /// The calibration of this machine: a file, or none [default: the one that `airpath timing calibrate`
    /// stored for this host and user, if it fits].
    #[arg(long, value_name = "FILE|none", help_heading = "The engine")]
    pub calibration: Option<PathBuf>,
    /// How the engine is scheduled: other, fifo or rr, with a real-time priority [default: fifo:10 where
    /// that is allowed]. An engine that does not sleep for 500 ms at real-time priority becomes ordinary.
    #[arg(long, value_name = "POLICY[:PRIORITY]", help_heading = "The engine")]
    pub policy: Option<Policy>,
    /// Keep processors from idle states that take long to leave: hold, or leave them alone, which saves
    /// power.
    #[arg(long, value_name = "HOW", default_value = HOLD, value_parser = [HOLD, LEAVE], help_heading = "The engine")]
    pub wake_latency: String,
    /// How late a packet may enter or leave before the run is suspect: a time, such as "1 ms", or a share of the
    /// least time that the packet takes on the link, and what it is at least.
    #[arg(long, value_name = "TIME|SHARE[,TIME]", default_value_t = LatenessBound::USUAL, help_heading = "The engine")]
    pub lateness_bound: LatenessBound,
    /// The seed of all random draws; chosen and recorded if not given.
    #[arg(long, value_name = "N", help_heading = "The run")]
    pub seed: Option<u64>,
    /// Write the run into this folder.
    #[arg(long, value_name = "DIR", help_heading = "The run")]
    pub out: Option<PathBuf>,
    /// What to record: none, counters, events or packets [default: packets with --out, else counters].
    #[arg(long, value_name = "LEVEL", help_heading = "The run")]
    pub log: Option<Level>,
    /// How many bytes of each packet to record, or full.
    #[arg(long, value_name = "BYTES", default_value = "128", help_heading = "The run")]
    pub snaplen: Snaplen,
    /// How much memory the log may take while the disk is slow; what does not fit is lost, and counted.
    #[arg(long, value_name = "BYTES", default_value = "64 MB", value_parser = parse_log_buffer, help_heading = "The run")]
    pub log_buffer: RingSize,
    /// How often to record the state of TCP at both ends (tcp.arrow), such as '10 ms', or off, or probe:
    /// also at every acknowledgement, as root [default: 10 ms where packets are recorded, else off].
    #[arg(long, value_name = "HOW", help_heading = "The run")]
    pub tcp_state: Option<TcpStateMode>,
    /// Exit with status 3 unless the verdict is `trusted`.
    #[arg(long, help_heading = "The run")]
    pub strict: bool,
    /// Print no summary.
    #[arg(long, short, help_heading = "The run")]
    pub quiet: bool,
    /// Print the summary as JSON.
    #[arg(long, help_heading = "The run", conflicts_with = "quiet")]
    pub json: bool,
    /// Also write the manifest to this inherited descriptor: how replications report.
    #[arg(long, value_name = "N", hide = true)]
    pub manifest_descriptor: Option<i32>,
    /// Print the scenario that the options mean, and do nothing else.
    #[arg(long, help_heading = "The run")]
    pub print_scenario: bool,
}

impl RunArgs {
    /// `tuning`, but for what the options ask for by name.
    pub fn tuned(&self, tuning: Tuning) -> Tuning {
        Tuning { policy: self.policy.unwrap_or(tuning.policy), wake_latency: self.wake_latency == HOLD, ..tuning }
    }
}

/// `airpath exec`.
#[derive(Args, Debug, Clone)]
pub struct ExecArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// A shell command to run at the server's end; the client's command starts once it listens.
    #[arg(long, value_name = "CMD", help_heading = "The ends")]
    pub server: Option<String>,
    /// How long to wait for the server's command to listen.
    #[arg(long, value_name = "TIME", default_value_t = SERVER_TIMEOUT, help_heading = "The ends")]
    pub server_timeout: Span,
    /// How long the server's command may take to end by itself after the client's.
    #[arg(long, value_name = "TIME", default_value_t = SERVER_GRACE, help_heading = "The ends")]
    pub server_grace: Span,
    /// How often to run it, each time with the next seed and fresh namespaces.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "The run")]
    pub replications: u32,
    /// By which clock: live, or warp for a kernel whose time passes only while everything sleeps.
    #[arg(long, value_name = "CLOCK", default_value = "live", help_heading = "The run")]
    pub clock: Clock,
    #[command(flatten)]
    pub limits: warp::WarpLimits,
    /// How many replications at a time.
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "The run")]
    pub jobs: u32,
    /// The command to run at the client's end, and its arguments.
    #[arg(last = true, value_name = "CMD", required_unless_present = "print_scenario", help_heading = "The ends")]
    pub command: Vec<OsString>,
}

/// `airpath shell`.
#[derive(Args, Debug, Clone)]
pub struct ShellArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Instead of your shell, run this command.
    #[arg(last = true, value_name = "CMD", help_heading = "The ends")]
    pub command: Vec<OsString>,
}

/// `airpath check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Scenario files.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Print problems as JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// `airpath profiles`.
#[derive(Args, Debug)]
pub struct ProfilesArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: Option<ProfilesAction>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `airpath profiles …`.
#[derive(Subcommand, Debug)]
pub enum ProfilesAction {
    /// Print a profile as a scenario.
    Show {
        /// Its name.
        name: String,
    },
}

/// `airpath log`.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// The folder of a run.
    pub dir: PathBuf,
    /// In the text of tcpdump, with the fate of each packet.
    #[arg(long, conflicts_with = "json")]
    pub tcpdump: bool,
    /// The state of TCP at both ends instead of events (see --tcp-state of airpath exec).
    #[arg(long, conflicts_with_all = ["tcpdump", "mahimahi", "hop", "direction", "kind", "origin", "pdu"])]
    pub tcp: bool,
    /// As JSON, one object a line.
    #[arg(long)]
    pub json: bool,
    /// As mm-link of Mahimahi logs one direction of a hop, for mm-throughput-graph and mm-delay-graph.
    #[arg(long, conflicts_with_all = ["tcpdump", "json", "kind", "pdu", "from", "to"])]
    pub mahimahi: bool,
    /// With --mahimahi: leave out drops, which some versions of mm-throughput-graph do not know.
    #[arg(long, requires = "mahimahi")]
    pub without_drops: bool,
    /// Only events of this hop.
    #[arg(long, value_name = "NAME")]
    pub hop: Option<String>,
    /// Only events of this direction: uplink or downlink.
    #[arg(long, value_name = "DIRECTION")]
    pub direction: Option<String>,
    /// Only events of this kind, such as dropped.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Only events of this traffic: user, background or control.
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Option<String>,
    /// Only events of this PDU, by its number; b0.17 is packet 17 of the first background load.
    #[arg(long, value_name = "ID", value_parser = parse_pdu)]
    pub pdu: Option<u64>,
    /// Only events from this time of the run on.
    #[arg(long, value_name = "TIME")]
    pub from: Option<Span>,
    /// Only events up to this time of the run.
    #[arg(long, value_name = "TIME")]
    pub to: Option<Span>,
}

fn parse_pdu(text: &str) -> Result<u64, String> {
    let virtual_packet = || {
        let (load, number) = text.strip_prefix('b')?.split_once('.')?;
        Some(airpath_core::background_id(load.parse().ok().filter(|load| *load < 4_096)?, number.parse().ok()?))
    };
    let wrong = || format!("`{text}` is no PDU; write its number, or for example b0.17 for a virtual packet");
    text.parse().ok().or_else(virtual_packet).ok_or_else(wrong)
}

/// The MTUs that an end may have.
fn mtu_bytes() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(LEAST_MTU_BYTES)..=i64::from(LONGEST_PACKET_BYTES))
}

fn parse_log_buffer(text: &str) -> Result<RingSize, String> {
    let bits: airpath_core::Bits =
        text.parse().map_err(|error: airpath_core::quantity::QuantityError| error.to_string())?;
    let bytes = bits.get() / 8;
    if bytes < RingSize::LEAST_BYTES {
        return Err(format!("it takes at least {} MB", RingSize::LEAST_BYTES / 1_000_000));
    }
    Ok(RingSize::within(bytes))
}

fn parse_port_kind(text: &str) -> Result<PortKind, String> {
    match text {
        "auto" => Ok(PortKind::Automatic),
        "tun" => Ok(PortKind::Tun),
        "packet" => Ok(PortKind::Packet),
        other => Err(format!("`{other}` is no kind of port; the kinds are auto, tun and packet")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
