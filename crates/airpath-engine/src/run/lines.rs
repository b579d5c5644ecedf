// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Serial lines in the place of interfaces.

use airpath_core::End;
use airpath_live::ports::{Baud, FramePort, LineSpec, Listener, Port, line_news};
use airpath_live::session::LineOptions;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_log::{Clock, Level};

use super::RunRequest;
use crate::cli::{LineArgs, RelayArgs, RunArgs};
use crate::error::{Failure, Result};

/// Serial lines of a run.
#[derive(Clone, Debug, Default)]
pub enum Lines {
    /// None: both ends have interfaces.
    #[default]
    None,
    /// One, whose PPP peer is an end.
    Ppp(Box<LineOptions>),
    /// Two, between which frames pass.
    Relay {
        /// The client's and the server's.
        lines: [LineSpec; 2],
        /// Speed of both.
        baud: Option<Baud>,
    },
}

impl Lines {
    /// The line whose peer is an end, if there is one.
    pub fn ppp(&self) -> Option<&LineOptions> {
        match self {
            Self::Ppp(options) => Some(options),
            Self::None | Self::Relay { .. } => None,
        }
    }

    /// True if the peer of a line is this end.
    pub fn replace(&self, end: End) -> bool {
        self.ppp().is_some_and(|options| options.end == end)
    }
}

/// Puts the line of `args` into `request`.
///
/// # Errors
/// When it does not fit the other options.
pub fn of_command(request: &mut RunRequest, args: &LineArgs, clock: Clock) -> Result<()> {
    let (end, option, line) = match (&args.client_ppp, &args.server_ppp) {
        (Some(line), _) => (End::Client, "--client-ppp", line),
        (None, Some(line)) => (End::Server, "--server-ppp", line),
        (None, None) if args.ppp.is_some() => {
            return Err(Failure::usage("--ppp needs a line: add --server-ppp LINE or --client-ppp LINE"));
        }
        (None, None) => return Ok(()),
    };
    one_user(request, option)?;
    if clock == Clock::Warp && matches!(line, LineSpec::Device(_)) {
        return Err(Failure::usage(format!(
            "{option} {line}: a device runs in real time, and --clock warp does not; use {option} pty and start the \
             peer in the run"
        )));
    }
    let network = [("--internet", request.internet), ("--host-port", !request.host_ports.is_empty())];
    if let (End::Server, Some((network, _))) = (end, network.iter().find(|(_, given)| *given)) {
        return Err(Failure::usage(format!(
            "{network} connects the server's end to this host, but with --server-ppp that end is the peer on {line}"
        )));
    }
    let ppp = args.ppp.clone().unwrap_or_default();
    request.lines = Lines::Ppp(Box::new(LineOptions { end, line: line.clone(), ppp }));
    Ok(())
}

/// Puts the lines of `airpath relay` into `request`.
///
/// # Errors
/// When they are one, or other options need an end that has an interface.
pub fn of_relay(request: &mut RunRequest, args: &RelayArgs) -> Result<()> {
    one_user(request, "airpath relay")?;
    refuse_options_of_ends(&args.run)?;
    let is_device = |line: &LineSpec| matches!(line, LineSpec::Device(_));
    if args.client == args.server && is_device(&args.client) {
        return Err(Failure::usage(format!("both lines are {}: a relay needs two", args.client)));
    }
    if args.run.log == Some(Level::Packets) {
        return Err(Failure::usage(
            "--log packets records IP packets, and a relay does not look into frames; use --log events",
        ));
    }
    request.level = request.level.min(Level::Events);
    request.tcp_state = TcpStateMode::Off;
    request.lines = Lines::Relay { lines: [args.client.clone(), args.server.clone()], baud: args.baud };
    Ok(())
}

fn one_user(request: &RunRequest, option: &str) -> Result<()> {
    match request.machine.users().len() {
        1 => Ok(()),
        users => Err(Failure::usage(format!(
            "{option} joins a link of one user, and the scenario has {users}; run the user at the line alone, or add \
             --users 1"
        ))),
    }
}

/// Options that say something of interfaces, addresses and commands, of which a relay has none.
fn refuse_options_of_ends(run: &RunArgs) -> Result<()> {
    let given = [
        ("--cc", run.cc.is_some()),
        ("--mtu", run.mtu.is_some()),
        ("--internet", run.internet),
        ("--host-port", !run.host_port.is_empty()),
        ("--as-root", run.as_root),
        ("--confine", run.confine),
        ("--tcp-state", run.tcp_state.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} is for ends with commands; the ends of a relay are two serial lines")))
        }
    }
}

/// Lines of an active run.
#[derive(Debug)]
pub struct ActiveLines {
    /// Paths at which peers find them, with their ends.
    pub names: Vec<(End, String)>,
    /// Their news.
    pub listener: Listener,
    /// True if changes are not told.
    pub quiet: bool,
    /// MTU of the link, in bytes.
    pub mtu_bytes: u32,
}

impl ActiveLines {
    /// The paths, in words.
    pub fn shown(&self) -> String {
        self.names.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" and ")
    }
}

/// Ports of a relay, the client's first, the names of the lines, and what hears of them.
type OpenRelay = (Vec<Port>, Vec<(End, String)>, Listener);

/// Opens the lines of a relay: its ports, the client's first.
///
/// # Errors
/// When a line cannot be had.
pub fn open_relay(lines: &[LineSpec; 2], baud: Option<Baud>) -> Result<OpenRelay> {
    let (teller, listener) = line_news().map_err(Failure::live)?;
    let (mut ports, mut names) = (Vec::new(), Vec::new());
    for (line, end) in lines.iter().zip([End::Client, End::Server]) {
        let port = FramePort::open(line, baud, teller.clone()).map_err(Failure::live)?;
        names.push((end, port.name().to_owned()));
        ports.push(Box::new(port) as Port);
    }
    Ok((ports, names, listener))
}
