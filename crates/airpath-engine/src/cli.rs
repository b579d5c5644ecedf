// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The command line: what can be typed, with its help.

pub mod calibrate;
pub mod clocks;
pub mod control;
pub mod fading;
pub mod gateway;
mod lines;
mod load;
mod mistakes;
pub mod modes;
mod quick;
pub mod record;
mod replay;
mod sim;
pub mod timing;
pub mod trace;
pub mod warp;
pub mod wsim;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use airpath_core::Span;
use airpath_core::limits::{LEAST_MTU_BYTES, LONGEST_PACKET_BYTES};
use airpath_live::engine_loop::SpinPolicy;
use airpath_live::host_port::HostPort;
use airpath_live::ports::PortKind;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::tuning::{Policy, Tuning};
use airpath_live::wake_latency::{HOLD, LEAVE};
use airpath_log::{Clock, Economy, LatenessBound, Level, RingSize, Snaplen};
use clap::builder::RangedI64ValueParser;
use clap::{Args, Parser, Subcommand};

use crate::defaults::{SERVER_GRACE, SERVER_TIMEOUT};
use crate::server_ready::ServerReady;

pub use lines::{LineArgs, RelayArgs};
pub use load::{RecvArgs, SendArgs};
pub use mistakes::{Mistake, as_others, parse};
pub use replay::ReplayArgs;
pub use sim::SimArgs;

/// Airpath emulates a wireless link between real programs and reports what happened on it.
#[derive(Parser, Debug)]
#[command(name = "airpath", bin_name = "airpath", version, max_term_width = 100)]
pub struct Cli {
    /// The subcommand.
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
    /// Pass PPP frames between two serial lines through an emulated link.
    Relay(RelayArgs),
    /// Join two networks of yours by an emulated link: interfaces, network namespaces, containers.
    #[command(
        after_help = gateway::after_help(),
        mut_arg("internet", |option| option.hide(true)),
        mut_arg("host_port", |option| option.hide(true)),
        mut_arg("as_root", |option| option.hide(true)),
        mut_arg("confine", |option| option.hide(true)),
        mut_arg("no_confine", |option| option.hide(true)),
        mut_arg("port", |option| option.hide(true)),
        mut_arg("tcp_state", |option| option.hide(true))
    )]
    Gateway(Box<gateway::GatewayArgs>),
    /// Run workloads over a link in virtual time, as fast as the processor allows.
    Sim(SimArgs),
    /// Validate scenario files and report errors.
    #[command(after_help = "Example:\n  airpath check train.toml")]
    Check(CheckArgs),
    /// Print the JSON Schema of scenario files.
    #[command(
        after_help = "Examples:\n  airpath schema > scenario.schema.json\n  airpath schema --experiment > experiment.schema.json"
    )]
    Schema,
    /// Print units, columns of logs, causes of drops and verdicts as JSON, for other programs.
    #[command(after_help = "Example:\n  airpath facts | jq '.causes[].name'")]
    Facts,
    /// List the built-in links, or print one as a scenario to copy and edit.
    #[command(after_help = "Examples:\n  airpath profiles\n  airpath profiles show gsm-data-9.6k > my-link.toml")]
    Profiles(ProfilesArgs),
    /// Print the events or packets of a recorded run.
    #[command(after_help = LOG_EXAMPLES)]
    Log(LogArgs),
    /// Send traffic to `airpath recv`: a bulk transfer, requests, or datagrams.
    #[command(after_help = load::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive or return the traffic of `airpath send` and `airpath record`.
    #[command(after_help = load::RECV_EXAMPLES)]
    Recv(RecvArgs),
    /// Measure the network path to `airpath recv`, and write a scenario that replays it.
    #[command(after_help = record::EXAMPLES)]
    Record(Box<record::RecordArgs>),
    /// Replay a recorded run in virtual time and compare the two traces.
    Replay(ReplayArgs),
    /// List active runs that accept commands.
    Runs(control::RunsArgs),
    /// Switch a running link to another state.
    State(control::StateArgs),
    /// Change parameters of a running link.
    Set(control::SetArgs),
    /// Convert, inspect, plot, draw and fit traces of rates and errors.
    Trace(trace::TraceArgs),
    /// Draw the signal-to-noise ratios of fading radio channels.
    Fading(fading::FadingArgs),
    /// Print the modes of a radio link and the switching levels of link adaptation.
    Modes(modes::ModesArgs),
    /// Send a file over a radio link whose errors come from a trace, offline, by UDP or UDP-Lite.
    Wsim(Box<wsim::WsimArgs>),
    /// Build the kernel for runs in virtual time (`airpath exec --clock warp`).
    #[command(after_help = warp::EXAMPLES)]
    Warp(warp::WarpArgs),
    /// Measure the timing accuracy of this machine, and calibrate live runs for it.
    Timing(Box<timing::TimingArgs>),
    /// Init process of a guest in virtual time.
    #[command(name = airpath_warp::guest::COMMAND, hide = true)]
    WarpInit,
    /// A program that dies with the process that started it.
    #[command(hide = true)]
    Bound(BoundArgs),
    /// Programs of one end of an experiment.
    #[command(name = airpath_agent::COMMAND, hide = true)]
    Agent(AgentArgs),
    /// Engine of the hops that are on this host, started by ssh.
    #[command(name = crate::hosts::ssh::COMMAND, hide = true)]
    RemoteHop {
        /// Fetch what a run that broke off has left on another host, as standard input says.
        #[arg(long)]
        fetch: bool,
    },
}

/// Options of a program that dies with the process that started it.
#[derive(Args, Debug, Clone)]
pub struct BoundArgs {
    /// The process that starts this one.
    pub parent: i32,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub command: Vec<OsString>,
}

/// Options of the agent of an experiment.
#[derive(Args, Debug, Clone)]
pub struct AgentArgs {
    /// Description of what to do, as the runner of the experiment has written it.
    pub specification: PathBuf,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  airpath exec --profile umts-384 -- ping -c 4 server
  airpath exec --rate '5 Mbit/s,1 Mbit/s' --delay '20 ms' --loss 1% \\
      --server 'iperf3 -s -1' -- iperf3 -c server -R
  airpath exec --delay '20 ms' --jitter '5 ms' --reorder '1% 10 ms' --duplicate 0.1% -- ping -c 100 server
  airpath exec --scenario examples/cell-wired.toml --server 'iperf3 -s' -- sh -c 'ping -c 4 server; echo $AIRPATH_USER'
  airpath exec --scenario examples/cell-wired.toml --client near='ping -c 4 server' --client middle= --client far=
  airpath exec --scenario train.toml --out results/train --server './server' -- ./client server
  airpath exec --economy --rate '120 Mbit/s' --delay '20 ms' --server 'iperf3 -s -1' -- iperf3 -c server
  airpath exec --profile slow-4g --internet -- curl -O https://example.org/
  airpath exec --profile gprs-cs2-3+1 --server-ppp /dev/ttyUSB0 --ppp baud=115200 -- ping -c 4 server
  airpath exec --clock warp --profile gsm-data-9.6k --replications 20 --jobs 2 \\
      --server './server' -- ./client server
  airpath exec --profile lte-good --set radio.downlink.rate='2 Mbit/s' --print-scenario

The command can resolve two host names: `client` (itself, the mobile end) and `server` (the other end).
Exit status: the command's; 2 if the options or the scenario are invalid; 3 with --strict if the\nverdict is not `trusted`; 122 to 125 if the command was not run (docs/running.md).";

const SHELL_EXAMPLES: &str = "\
Examples:
  airpath shell --profile gprs-cs2-3+1
  airpath shell --delay '20 ms' --internet
  airpath shell --scenario examples/cell-wired.toml --user near --client far='ping server > far.txt'
  airpath shell --rate '1 Mbit/s'        # nested inside it: airpath shell --delay '100 ms'";

const LOG_EXAMPLES: &str = "\
Examples:
  airpath log results/train
  airpath log results/train --kind dropped --json
  airpath log results/train --tcpdump
  airpath log results/train --pdu 17 --headers
  airpath log results/train --tcp --from '2 s' --to '3 s'
  airpath log results/train --mahimahi --direction downlink > downlink.log";

/// Options that define the link.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Link")]
pub struct LinkArgs {
    /// A built-in link (`airpath profiles` lists them).
    #[arg(long, value_name = "NAME", conflicts_with = "scenario")]
    pub profile: Option<String>,
    /// A scenario file.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Number of users of a cell: the first of the scenario, or copies of its only one [default: all of the scenario].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub users: Option<u16>,
    /// Rate of both directions, or UPLINK,DOWNLINK; or a trace: mahimahi:FILE, trace:FILE.
    #[arg(long, value_name = "RATE[,RATE]")]
    pub rate: Option<String>,
    /// One-way delay of both directions, or UPLINK,DOWNLINK.
    #[arg(long, value_name = "TIME[,TIME]")]
    pub delay: Option<String>,
    /// Jitter: standard deviation of a normally distributed delay, of both directions or UPLINK,DOWNLINK. Packets are
    /// not reordered. '5 ms' draws each packet's delay independently: packets closer together than that queue behind
    /// each other, so a busy flow sees more delay and less jitter than requested. '5 ms correlated' (or '5 ms
    /// correlated 100 ms', with the correlation time) keeps both exact at any rate.
    #[arg(long, value_name = "TIME[,TIME]")]
    pub jitter: Option<String>,
    /// Packet loss probability of both directions, or UPLINK,DOWNLINK, instead of the errors of the link; '+1%' adds
    /// losses to them.
    #[arg(long, value_name = "P[,P]")]
    pub loss: Option<String>,
    /// Reordering of both directions, or UPLINK,DOWNLINK: the probability that a packet is held back, and for how
    /// long: a time ('1% 20 ms') or the number of packets that overtake it ('1% 3 packets'; default: one).
    #[arg(long, value_name = "P [HELD][,…]")]
    pub reorder: Option<String>,
    /// Packet duplication probability of both directions, or UPLINK,DOWNLINK.
    #[arg(long, value_name = "P[,P]")]
    pub duplicate: Option<String>,
    /// Queue limit of both directions, or UPLINK,DOWNLINK: packets, bytes or a time, such as '100 packets'.
    #[arg(long, value_name = "LIMIT[,LIMIT]")]
    pub queue: Option<String>,
    /// Blackout of the link: start, duration, and drop or store.
    #[arg(long, value_name = "TIME,TIME[,HOW]")]
    pub blackout: Vec<String>,
    /// Set any scenario parameter, such as radio.link.rate='64 kbit/s'.
    #[arg(long, value_name = "PARAMETER=VALUE")]
    pub set: Vec<String>,
}

/// Options of the run, the ends and the engine.
#[derive(Args, Debug, Clone)]
pub struct RunArgs {
    /// TCP congestion control at both ends.
    #[arg(long, value_name = "NAME", help_heading = "Ends")]
    pub cc: Option<String>,
    /// MTU of both ends in bytes; IPv6 needs at least 1280.
    #[arg(long, value_name = "BYTES", value_parser = mtu_bytes(), help_heading = "Ends")]
    pub mtu: Option<u32>,
    /// Connect the far end to the host's network.
    #[arg(long, help_heading = "Ends")]
    pub internet: bool,
    /// Forward server:PORT, through the link, to this port of the host's loopback, or to HOST_PORT; for all users of a
    /// cell, or for one.
    #[arg(long, value_name = "[USER:]PORT[:HOST_PORT]", help_heading = "Ends")]
    pub host_port: Vec<HostPort>,
    /// Run commands as root of their user namespace instead of as yourself.
    #[arg(long, help_heading = "Ends")]
    pub as_root: bool,
    /// As root: deny the commands access to the host's network, processes, kernel and clock, but not to its files
    /// (docs/security.md). The commands of an ordinary user never have these rights.
    #[arg(long, help_heading = "Ends", overrides_with = "no_confine")]
    pub confine: bool,
    /// As root: run the commands with all rights of root [default].
    #[arg(long, help_heading = "Ends", overrides_with = "confine")]
    pub no_confine: bool,
    /// Copy this engine to hosts of the scenario that have none, or another version.
    #[arg(long, help_heading = "Engine")]
    pub install_engine: bool,
    /// Packet I/O of the engine: auto, tun, or packet (veth and AF_PACKET).
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = parse_port_kind, help_heading = "Engine")]
    pub port: PortKind,
    /// Busy-wait before deadlines: auto (adaptive margin, at most 10 % of a core), auto:3% or auto:3%,50us (CPU
    /// budget, and the lateness that 99 % of packets must meet), always (polling, for 90 % of a core), off, batch
    /// (packets due within half a millisecond leave together), or a fixed margin [default: as calibrated by `airpath
    /// timing calibrate`, else auto].
    #[arg(long, value_name = "HOW", help_heading = "Engine")]
    pub spin: Option<SpinPolicy>,
    /// Save processor time where departures may be late: packets that are due within most of their lateness bound
    /// leave together. on; auto: while the engine takes half a core; off: packets leave together only within a
    /// hundredth of the link's delay (a fiftieth above 600 Mbit/s), at most 20 us [default: off; without a word: on].
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "on", help_heading = "Engine")]
    pub economy: Option<Economy>,
    /// Threads that carry packets, where the scenario has several links that share nothing [default: half of the
    /// processors].
    #[arg(long, value_name = "N", help_heading = "Engine")]
    pub loops: Option<NonZeroUsize>,
    /// Calibration file of this machine, or none [default: the file that `airpath timing calibrate` stored for this
    /// host and user, if it still matches].
    #[arg(long, value_name = "FILE|none", help_heading = "Engine")]
    pub calibration: Option<PathBuf>,
    /// Scheduling policy of the engine: other, fifo or rr, with a real-time priority [default: fifo:10 where
    /// permitted]. An engine that does not sleep for 500 ms loses its real-time priority.
    #[arg(long, value_name = "POLICY[:PRIORITY]", help_heading = "Engine")]
    pub policy: Option<Policy>,
    /// Deep CPU idle states: hold (block them, for low wake-up latency) or leave (allow them, to save power).
    #[arg(long, value_name = "HOW", default_value = HOLD, value_parser = [HOLD, LEAVE], help_heading = "Engine")]
    pub wake_latency: String,
    /// Allowed lateness of a packet before the run is suspect: a time, such as "1 ms", or a share of the packet's
    /// minimum transit time, with a lower limit.
    #[arg(long, value_name = "TIME|SHARE[,TIME]", default_value_t = LatenessBound::USUAL, help_heading = "Engine")]
    pub lateness_bound: LatenessBound,
    /// Random seed [default: chosen and recorded].
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Write the files of the run to this directory.
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,
    /// Level of recording: none, counters, events or packets [default: packets with --out, else counters].
    #[arg(long, value_name = "LEVEL", help_heading = "Run")]
    pub log: Option<Level>,
    /// Bytes of each packet to record, or full.
    #[arg(long, value_name = "BYTES", default_value = "128", help_heading = "Run")]
    pub snaplen: Snaplen,
    /// Records of single frames: on, or off. They are counted in any case [default: off in a cell with a medium of
    /// resources, which has 100 000 of them a second, else on].
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Run")]
    pub frames: Option<FramesArg>,
    /// Memory for log records that wait for the disk; records that do not fit are lost and counted.
    #[arg(long, value_name = "BYTES", default_value = "64 MB", value_parser = parse_log_buffer, help_heading = "Run")]
    pub log_buffer: RingSize,
    /// Sampling interval of the TCP state at both ends (tcp.arrow), such as '10 ms'; off; or probe, which also
    /// samples at every ACK and needs root [default: 10 ms if packets are recorded, else off].
    #[arg(long, value_name = "HOW", help_heading = "Run")]
    pub tcp_state: Option<TcpStateMode>,
    /// Exit with status 3 unless the verdict is `trusted`.
    #[arg(long, help_heading = "Run")]
    pub strict: bool,
    /// Print no summary.
    #[arg(long, short, help_heading = "Run")]
    pub quiet: bool,
    /// Print the summary as JSON instead; or write it to FILE, and print the summary as usual.
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Run", conflicts_with = "quiet")]
    pub json: Option<Option<PathBuf>>,
    /// Also write the manifest to this inherited descriptor, as replications do.
    #[arg(long, value_name = "N", hide = true)]
    pub manifest_descriptor: Option<i32>,
    /// Print the resulting scenario and exit.
    #[arg(long, help_heading = "Run")]
    pub print_scenario: bool,
}

impl RunArgs {
    /// `tuning`, but for what the options ask for by name.
    pub fn tuned(&self, tuning: Tuning) -> Tuning {
        Tuning {
            policy: self.policy.unwrap_or(tuning.policy),
            wake_latency: self.wake_latency == HOLD,
            economy: self.economy.unwrap_or(tuning.economy),
            ..tuning
        }
    }
}

/// `airpath exec`.
#[derive(Args, Debug, Clone)]
pub struct ExecArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Shell command at the server end; the client's command starts once it listens.
    #[arg(long, value_name = "CMD", help_heading = "Ends")]
    pub server: Option<String>,
    /// Start the client's command at once (now), once the server listens at this port, or once the server's output has
    /// this text [default: once the server listens at any port].
    #[arg(long, value_name = "now|PORT|TEXT", requires = "server", help_heading = "Ends")]
    pub server_ready: Option<ServerReady>,
    /// Timeout for the server's command to be ready.
    #[arg(long, value_name = "TIME", default_value_t = SERVER_TIMEOUT, help_heading = "Ends")]
    pub server_timeout: Span,
    /// Time for the server's command to exit by itself after the client's.
    #[arg(long, value_name = "TIME", default_value_t = SERVER_GRACE, help_heading = "Ends")]
    pub server_grace: Span,
    #[command(flatten)]
    pub lines: LineArgs,
    /// Number of runs, each with the next seed and fresh namespaces.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Run")]
    pub replications: u32,
    /// Clock: live (real time), or warp (virtual time: a kernel whose clock advances only while all processes sleep).
    #[arg(long, value_name = "CLOCK", default_value = "live", help_heading = "Run")]
    pub clock: Clock,
    #[command(flatten)]
    pub limits: warp::WarpLimits,
    /// Number of parallel replications.
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Run")]
    pub jobs: u32,
    /// Shell command of one user of a cell, instead of the command of all; `USER=` for a user who runs none.
    #[arg(long, value_name = "USER=CMD", help_heading = "Ends")]
    pub client: Vec<String>,
    /// Server ends of the users of a cell: one for all, or one for each.
    #[arg(long, value_name = "ENDS", value_enum, default_value_t = ServerEndsArg::One, help_heading = "Ends")]
    pub server_ends: ServerEndsArg,
    /// Command and arguments at the client end; each user of a cell runs it.
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["print_scenario", "client", "client_ppp"], help_heading = "Ends")]
    pub command: Vec<OsString>,
}

/// Records of single frames.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramesArg {
    /// Recorded.
    On,
    /// Counted only.
    Off,
}

/// Server ends of the users of a cell.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEndsArg {
    /// One for all users.
    One,
    /// One for each user.
    Each,
}

/// `airpath shell`.
#[derive(Args, Debug, Clone)]
pub struct ShellArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub lines: LineArgs,
    /// User of a cell at whose end the shell runs; the others run nothing, or what --client says, until it ends.
    #[arg(long, value_name = "USER", help_heading = "Ends")]
    pub user: Option<String>,
    /// Shell command of another user of a cell, which gets SIGTERM when the shell ends.
    #[arg(long, value_name = "USER=CMD", help_heading = "Ends")]
    pub client: Vec<String>,
    /// Print no banner, and leave the shell's prompt as it is.
    #[arg(long, help_heading = "Ends")]
    pub no_banner: bool,
    /// Command to run instead of your shell.
    #[arg(last = true, value_name = "CMD", help_heading = "Ends")]
    pub command: Vec<OsString>,
}

/// `airpath check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Scenario files.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Print errors as JSON, one object per line.
    #[arg(long)]
    pub json: bool,
}

/// `airpath profiles`.
#[derive(Args, Debug)]
pub struct ProfilesArgs {
    /// Action; without one the profiles are listed.
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
    /// The directory of a run.
    pub dir: PathBuf,
    /// Print packets in the format of tcpdump, each with its fate.
    #[arg(long, conflicts_with = "json")]
    pub tcpdump: bool,
    /// Print the TCP state at both ends instead of events (see --tcp-state of airpath exec).
    #[arg(long, conflicts_with_all = ["tcpdump", "mahimahi", "user", "hop", "bearer", "direction", "kind", "origin", "pdu", "filter"])]
    pub tcp: bool,
    /// Print the headers of the packet --pdu field by field, as the captures of both ends have it.
    #[arg(long, requires = "pdu", conflicts_with_all = ["tcpdump", "tcp", "mahimahi", "user", "hop", "bearer", "direction", "kind", "origin", "filter", "from", "to"])]
    pub headers: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    pub json: bool,
    /// Print one direction of a hop in the log format of Mahimahi's mm-link, for mm-throughput-graph and
    /// mm-delay-graph.
    #[arg(long, conflicts_with_all = ["tcpdump", "json", "bearer", "kind", "pdu", "from", "to", "filter"])]
    pub mahimahi: bool,
    /// With --mahimahi: omit drops, which some versions of mm-throughput-graph cannot read.
    #[arg(long, requires = "mahimahi")]
    pub without_drops: bool,
    /// Only events of this user of a cell.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Only events of this hop.
    #[arg(long, value_name = "NAME")]
    pub hop: Option<String>,
    /// Only events of bearers of this name.
    #[arg(long, value_name = "NAME")]
    pub bearer: Option<String>,
    /// Only events of this direction: uplink or downlink.
    #[arg(long, value_name = "DIRECTION")]
    pub direction: Option<String>,
    /// Only events of this kind, such as dropped.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Only events of this traffic type: user, background or control.
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Option<String>,
    /// Only events of this PDU number; b0.17 is packet 17 of the first background load.
    #[arg(long, value_name = "ID", value_parser = parse_pdu)]
    pub pdu: Option<u64>,
    /// Only packets that match this expression, and their events: the language of tcpdump, as in
    /// 'udp and port 53'. Packets without recorded headers match none.
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Only events at or after this time of the run, such as '2 s'; a bare number means seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_instant)]
    pub from: Option<Span>,
    /// Only events at or before this time of the run.
    #[arg(long, value_name = "TIME", value_parser = parse_instant)]
    pub to: Option<Span>,
}

fn parse_pdu(text: &str) -> Result<u64, String> {
    let virtual_packet = || {
        let (load, number) = text.strip_prefix('b')?.split_once('.')?;
        Some(airpath_core::background_id(load.parse().ok().filter(|load| *load < 4_096)?, number.parse().ok()?))
    };
    let wrong = || format!("`{text}` is not a PDU; write its number, or for example b0.17 for a background packet");
    text.parse().ok().or_else(virtual_packet).ok_or_else(wrong)
}

/// A time of a run; a bare number means seconds, as on the axes of pictures.
fn parse_instant(text: &str) -> Result<Span, String> {
    let is_bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let with_unit = if is_bare { format!("{text} s") } else { text.to_string() };
    with_unit.parse().map_err(|error: airpath_core::quantity::QuantityError| error.to_string())
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
        return Err(format!("the log buffer needs at least {} MB", RingSize::LEAST_BYTES / 1_000_000));
    }
    Ok(RingSize::within(bytes))
}

fn parse_port_kind(text: &str) -> Result<PortKind, String> {
    match text {
        "auto" => Ok(PortKind::Automatic),
        "tun" => Ok(PortKind::Tun),
        "packet" => Ok(PortKind::Packet),
        other => Err(format!("`{other}` is not a port type; use auto, tun or packet")),
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
