// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Targets of inputs. A target panics where a promise is broken; whatever else it does with an input is right.

mod broken;
mod control;
mod drive;
mod hosts;
mod load;
mod packets;
mod ppp;
mod protocols;
mod runs;
mod scenario;
mod texts;
mod traces;
mod tunnel;

use std::path::{Path, PathBuf};

/// Context of targets beside the input.
#[derive(Debug)]
pub struct Context {
    /// The seeds of the target, beside which files lie that inputs name.
    pub corpus: PathBuf,
    /// A folder of this process alone.
    pub scratch: PathBuf,
}

/// A target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Target {
    /// Headers, segments, checksums, dissector, noise of the host.
    Packets,
    /// Scenarios: read, printed, built, driven; laws 1, 2 and 5.
    Scenario,
    /// Options of the command line and workloads.
    Texts,
    /// Files of rates, errors, arrivals and distributions, captures to replay, and videos.
    Traces,
    /// The folder of a run: its manifest, logs and captures, shown and replayed.
    Runs,
    /// Lines of the control socket, carried out by a link; laws 1, 2, 5 and 6.
    Control,
    /// Messages between `airpath send` or `record` and `recv`, and between the two ends of `timing sync`.
    Load,
    /// Serial lines with PPP: frames, options, the automaton.
    Ppp,
    /// Contents of packets: DNS.
    Dns,
    /// Contents of packets: HTTP.
    Http,
    /// Contents of packets: QUIC.
    Quic,
    /// Contents of packets: RTCP.
    Rtcp,
    /// Contents of packets: RTP.
    Rtp,
    /// Contents of packets: TLS.
    Tls,
    /// Frames of PPP as text.
    PppFrames,
    /// Contents of packets: frames of PPP in tunnels.
    PppTunnels,
    /// Language of the engines of a run on two hosts.
    Hosts,
    /// Frames of a gateway's tunnel over TCP.
    Tunnel,
    /// Breaks on purpose.
    #[value(hide = true)]
    Broken,
}

impl Target {
    /// All that the product has.
    pub const ALL: [Target; 18] = [
        Target::Packets,
        Target::Scenario,
        Target::Texts,
        Target::Traces,
        Target::Runs,
        Target::Control,
        Target::Load,
        Target::Ppp,
        Target::Dns,
        Target::Http,
        Target::Quic,
        Target::Rtcp,
        Target::Rtp,
        Target::Tls,
        Target::PppFrames,
        Target::PppTunnels,
        Target::Hosts,
        Target::Tunnel,
    ];

    /// The name of the target, and of the folder of its seeds.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Packets => "packets",
            Target::Scenario => "scenario",
            Target::Texts => "texts",
            Target::Traces => "traces",
            Target::Runs => "runs",
            Target::Control => "control",
            Target::Load => "load",
            Target::Ppp => "ppp",
            Target::Dns => "dns",
            Target::Http => "http",
            Target::Quic => "quic",
            Target::Rtcp => "rtcp",
            Target::Rtp => "rtp",
            Target::Tls => "tls",
            Target::PppFrames => "ppp-frames",
            Target::PppTunnels => "ppp-tunnels",
            Target::Hosts => "hosts",
            Target::Tunnel => "tunnel",
            Target::Broken => "broken",
        }
    }

    /// The seeds that the product itself has.
    pub fn seeds(self) -> Vec<(String, Vec<u8>)> {
        match self {
            Target::Scenario => scenario::seeds(),
            Target::Texts => texts::seeds(),
            Target::Load => load::seeds(),
            Target::Hosts => hosts::seeds(),
            Target::Tunnel => tunnel::seeds(),
            Target::Broken => broken::seeds(),
            Target::Dns
            | Target::Http
            | Target::Quic
            | Target::Rtcp
            | Target::Rtp
            | Target::Tls
            | Target::PppFrames
            | Target::PppTunnels => protocols::seeds(self.name()),
            Target::Packets | Target::Traces | Target::Runs | Target::Control | Target::Ppp => Vec::new(),
        }
    }

    /// Gives `input` to the target.
    pub fn run(self, input: &[u8], context: &Context) {
        match self {
            Target::Packets => packets::run(input),
            Target::Scenario => scenario::run(input, &context.corpus),
            Target::Texts => texts::run(input, &context.corpus),
            Target::Traces => traces::run(input),
            Target::Runs => runs::run(input, context),
            Target::Control => control::run(input),
            Target::Load => load::run(input),
            Target::Ppp => ppp::run(input),
            Target::Dns | Target::Http | Target::Quic | Target::Rtcp | Target::Rtp | Target::Tls => {
                protocols::run(self.name(), input);
            }
            Target::PppFrames => protocols::run_ppp(input),
            Target::PppTunnels => protocols::run("ppp", input),
            Target::Hosts => hosts::run(input),
            Target::Tunnel => tunnel::run(input),
            Target::Broken => broken::run(input),
        }
    }
}

/// A number that depends on every byte of `input`, to vary what is not in it.
fn hash(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Path of a scenario that names files of the corpus.
fn origin(corpus: &Path) -> String {
    corpus.join("scenario.toml").display().to_string()
}
