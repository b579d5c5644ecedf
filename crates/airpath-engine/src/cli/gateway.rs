// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath gateway`: options.

use airpath_core::Span;
use airpath_live::attachments::{KINDS, Kind};
use airpath_live::ports::{INTERFACE_SOCKETS, InterfaceSocket};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{LinkArgs, RunArgs};

const EXAMPLES: &str = "\
Examples:
  airpath gateway --client-interface eth1 --server-interface eth2 --profile lte-good
  airpath gateway --between netns:phone,netns:web --rate '5 Mbit/s' --delay '20 ms' --duration '1 min'
  airpath gateway --between docker:client,docker:server --scenario train.toml --out results/train
  airpath gateway --between pid:4711,interface:eth2 --profile umts-384
  airpath gateway --lan eth1 --profile lte-cell-edge
  airpath gateway --between interface:eth1,vxlan:192.0.2.7 --profile lte-good
  airpath gateway --between interface:eth1,tcp-listen:192.0.2.7:7000 --profile lte-good
  airpath gateway --client-interface eth1 --server-interface eth2 --socket af-xdp --delay '20 ms'

An end of --between is one of
";

const REST: &str = "\
Two namespaces or containers get an interface with addresses each; an interface has its frames passed on as they are.
The first end is the client's, the mobile one. The command ends after --duration, or at Ctrl-C, with the summary.
Exit status: 0; 2 if the options or the scenario are invalid; 3 with --strict if the\nverdict is not `trusted`; 122 to 125 \
if the link was not carried to its end (docs/running.md), for example because an interface went away.";

/// Examples of the command, the kinds of ends, and the exit status.
pub fn after_help() -> String {
    let kind = |kind: &Kind| format!("  {:<24}{}\n", format!("{}:{}", kind.word, kind.form), kind.purpose);
    let kinds: String = KINDS.iter().map(kind).collect();
    format!("{EXAMPLES}{kinds}{REST}")
}

/// `airpath gateway`.
#[derive(Args, Debug, Clone)]
pub struct GatewayArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// The two ends: network namespaces, containers or interfaces; the client's first.
    #[arg(long, value_name = "END,END", help_heading = "Ends", conflicts_with_all = ["client_interface", "server_interface", "lan"])]
    pub between: Option<String>,
    /// Interface to the clients' network, the mobile side.
    #[arg(long, value_name = "NAME", help_heading = "Ends", requires = "server_interface")]
    pub client_interface: Option<String>,
    /// Interface to the servers' network, the fixed side.
    #[arg(long, value_name = "NAME", help_heading = "Ends", requires = "client_interface")]
    pub server_interface: Option<String>,
    /// Interface to clients that get their addresses by DHCP, and this host's network through the link; short for
    /// --between interface:NAME,router:192.168.77.1.
    #[arg(long, value_name = "NAME", help_heading = "Ends", conflicts_with_all = ["client_interface", "server_interface"])]
    pub lan: Option<String>,
    /// Take an interface although its host needs it: one with the default route, or a port of a bridge.
    #[arg(long, help_heading = "Ends")]
    pub force: bool,
    /// Way to read and write the frames of interfaces.
    #[arg(long, value_name = "KIND", help_heading = "Ends", default_value = INTERFACE_SOCKETS[0].word, value_parser = sockets())]
    pub socket: &'static InterfaceSocket,
    /// Duration [default: until Ctrl-C].
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub duration: Option<Span>,
}

/// The parser of --socket.
fn sockets() -> impl TypedValueParser<Value = &'static InterfaceSocket> {
    let values = INTERFACE_SOCKETS.iter().map(|socket| PossibleValue::new(socket.word).help(socket.purpose));
    PossibleValuesParser::new(values)
        .map(|word| INTERFACE_SOCKETS.iter().find(|socket| socket.word == word).unwrap_or_default())
}
