// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath gateway`: networks of others joined by an emulated link.

use std::sync::Arc;

use airpath_live::attachments::{self, Opening, Place};
use airpath_live::ports::INTERFACE_SOCKETS;
use airpath_live::privilege;
use airpath_live::tcp_state::Mode as TcpStateMode;

use super::exec;
use crate::cli::RunArgs;
use crate::cli::gateway::GatewayArgs;
use crate::error::{Failure, Result};
use crate::link;
use crate::run::from_options::request;
use crate::run::{Gateway, calibrated};

/// The router of --lan.
const USUAL_ROUTER: &str = "router:192.168.77.1";

/// Runs it until its end; the exit status says whether the run could be carried out.
///
/// # Errors
/// When the ends, the link, the folder or the system are not as they should be.
pub fn run(args: &GatewayArgs) -> Result<i32> {
    let scenario = link::scenario_to_run(&args.link, args.run.print_scenario, args.run.mtu, args.run.quiet)?;
    let Some(scenario) = scenario else { return Ok(0) };
    if let Some(option) = of_commands(&args.run) {
        return Err(Failure::usage(format!("{option} is for commands at the ends; a gateway runs none")));
    }
    let ends = ends(args)?;
    if args.socket.word != INTERFACE_SOCKETS[0].word && !ends.iter().any(|end| end.starts_with("interface:")) {
        return Err(Failure::usage(format!(
            "--socket {}: neither end is an interface (interface:NAME), whose frames it would carry; leave it out",
            args.socket.word
        )));
    }
    if args.duration.is_some_and(|duration| duration.nanos() == 0) {
        return Err(Failure::usage("--duration: nothing passes in no time; leave it out to run until Ctrl-C"));
    }
    let mut request = request(&args.run, scenario, Vec::new())?;
    if request.clients.len() > 1 {
        return Err(Failure::usage(format!(
            "the scenario has {} users, but a gateway has one network on the client's side; add --users 1",
            request.clients.len()
        )));
    }
    link::advise(&args.link, &request.scenario, args.run.mtu, args.run.quiet)?;
    if !privilege::is_privileged().map_err(Failure::live)? {
        return Err(Failure::lacking(
            "a gateway joins networks that belong to root: run the command as root, or inside `airpath exec` or \
             `airpath shell` (CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN)",
        ));
    }
    let opening = Opening { force: args.force, socket: args.socket };
    let open = |text: &String| attachments::open(text, opening).map(Arc::from).map_err(Failure::live);
    let places: [Arc<dyn Place>; 2] = [open(&ends[0])?, open(&ends[1])?];
    // In this process, which a user can name and end, and which outlives the engine's.
    attachments::claim([&*places[0], &*places[1]]).map_err(Failure::live)?;
    // Sockets at the ends are not the run's.
    request.tcp_state = TcpStateMode::Off;
    if args.run.tcp_state.is_some_and(|mode| mode != TcpStateMode::Off) {
        return Err(Failure::usage("--tcp-state: the sockets at the ends are not the gateway's; leave it out"));
    }
    calibrated::apply(&mut request, &args.run)?;
    let mtu_bytes = args.run.mtu.or(request.scenario.mtu);
    request.gateway = Some(Gateway { places, mtu_bytes, duration: args.duration });
    exec::start(request, false)
}

/// The client's end and the server's, as text.
fn ends(args: &GatewayArgs) -> Result<[String; 2]> {
    match (&args.between, &args.client_interface, &args.server_interface) {
        (Some(between), ..) => match between.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
            [client, server] => Ok([(*client).to_owned(), (*server).to_owned()]),
            _ => Err(Failure::usage(format!(
                "--between '{between}': name two ends with a comma between them, as in --between netns:a,netns:b"
            ))),
        },
        (None, ..) if args.lan.is_some() => {
            Ok([format!("interface:{}", args.lan.as_deref().unwrap_or_default()), USUAL_ROUTER.to_owned()])
        }
        (None, Some(client), Some(server)) => Ok([client, server].map(|name| format!("interface:{name}"))),
        (None, ..) => Err(Failure::usage(
            "name both ends: --client-interface NAME --server-interface NAME, --between END,END, or --lan NAME",
        )),
    }
}

/// The first option given that concerns commands alone.
fn of_commands(args: &RunArgs) -> Option<&'static str> {
    let given = [
        (args.internet, "--internet"),
        (!args.host_port.is_empty(), "--host-port"),
        (args.as_root, "--as-root"),
        (args.confine, "--confine"),
        (args.no_confine, "--no-confine"),
        (args.port != airpath_live::ports::PortKind::Automatic, "--port"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}
