// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options of serial lines, and of `airpath relay`.

use airpath_live::ports::{Baud, LineSpec};
use airpath_live::session::PppOptions;
use clap::Args;

use super::{LinkArgs, RunArgs};

/// Options for a serial line in place of an end.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Serial line (docs/ppp.md)")]
pub struct LineArgs {
    /// The server's end is the PPP peer on this serial line: a device, pty (a new pseudo-terminal, whose path is
    /// printed), or pty:PATH (the same, with a symbolic link at PATH). --server then starts the peer, if it is a
    /// program, with the line in $AIRPATH_PPP_LINE.
    #[arg(long, value_name = "LINE", conflicts_with = "client_ppp")]
    pub server_ppp: Option<LineSpec>,
    /// The client's end is the PPP peer on this serial line. Without a command the run lasts until the line hangs up,
    /// the server's command ends, or Ctrl-C.
    #[arg(long, value_name = "LINE")]
    pub client_ppp: Option<LineSpec>,
    /// Options of PPP: 'baud=115200, mru=576, accm=0x000a0000, address=10.1.2.3, peer=10.1.2.4 (or any),
    /// dns=10.1.2.5, ipv6=off, echo=10 s (or off), timeout=60 s, fcs=32, secrets=FILE, user=NAME, auth=chap (or pap)'.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub ppp: Option<PppOptions>,
}

const RELAY_EXAMPLES: &str = "\
Examples:
  airpath relay --profile gsm-data-9.6k --out results/modem /dev/ttyUSB0 /dev/ttyUSB1
  airpath relay --delay '200 ms' --rate '115.2 kbit/s' pty:/tmp/near pty:/tmp/far

Bytes between two flags (0x7e) are one frame, and pass unchanged: addresses, authentication and compression are for the
two peers to agree on. A frame has the length that it has on the line: escapes and one flag count.
Exit status: 0 when a line hung up or Ctrl-C came; 2 if the options or the scenario are invalid; 3 with --strict if the
verdict is not `trusted`; 125 if airpath fails.";

/// `airpath relay`.
#[derive(Args, Debug, Clone)]
#[command(after_help = RELAY_EXAMPLES, mut_arg("json", |json| json.require_equals(true)))]
pub struct RelayArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Speed of both lines, such as 115200 [default: the speed that they have].
    #[arg(long, value_name = "BITS", help_heading = "Ends")]
    pub baud: Option<Baud>,
    /// The line at the client's end of the link, the mobile one: a device such as /dev/ttyUSB0, pty (a new
    /// pseudo-terminal, whose path is printed), or pty:PATH (the same, with a symbolic link at PATH).
    #[arg(value_name = "CLIENT_LINE")]
    pub client: LineSpec,
    /// The line at the server's end, in the same form; the peers on both lines speak PPP with each other.
    #[arg(value_name = "SERVER_LINE")]
    pub server: LineSpec,
}
