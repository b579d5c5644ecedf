// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The ends of a live run: a client for each user, and a server for all of them or for each.

use std::ffi::OsString;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_core::End;
use airpath_live::ports::Port;
use airpath_live::session::{FarEnd, ServerEnds, Session, SessionEnd, SessionOptions, SessionReport};
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::{open_files, side_by_side};

use super::gateway::{self, Joint};
use super::lines::{ActiveLines, Lines, open_relay};
use super::request::{Report, RunRequest};
use super::workload::{USERS_VARIABLE, User};
use crate::error::{Failure, Result};
use crate::seed::fresh_seed;

/// The ends, by user.
#[derive(Default)]
pub struct Ends {
    /// The users; none where there is only one.
    pub users: Vec<User>,
    /// The client's end of each user.
    pub clients: Vec<SessionEnd>,
    /// The server's end of each user: of one namespace, or each of its own.
    pub servers: Vec<SessionEnd>,
    server_ends: ServerEnds,
    /// The ends at which other hosts are, whose interfaces here have no use.
    pub joined: Vec<End>,
    /// Networks of others at both ends, if the link joins such.
    pub surroundings: Option<gateway::Surroundings>,
}

/// The ends of a link, as they were made.
pub struct Made {
    /// The ends.
    pub ends: Ends,
    /// Ports of the engine, in the order of their numbers.
    pub ports: Vec<Port>,
    /// Choices made.
    pub report: SessionReport,
    /// The serial lines.
    pub lines: Option<ActiveLines>,
}

/// Makes the ends of all `links`, several at a time.
///
/// # Errors
/// When the system refuses, with what to change.
pub fn create_all(links: &[RunRequest]) -> Result<Vec<Made>> {
    let users = links.iter().map(|link| link.clients.len()).sum();
    let has_failed = AtomicBool::new(false);
    let create = |_, link: &RunRequest| {
        // Behind one that failed nobody needs the others.
        if has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let made = Ends::create(link);
        has_failed.fetch_or(made.is_err(), Ordering::Relaxed);
        Some(made)
    };
    let made: Vec<Made> =
        side_by_side::map(links.iter().collect(), create).into_iter().flatten().collect::<Result<_>>()?;
    match made.first().and_then(|first| first.ends.clients.first()) {
        Some(client) if links.len() > 1 && !open_files::suffice_for(users, client.network()) => {
            Err(Failure::live(open_files::too_many_users(users)))
        }
        _ => Ok(made),
    }
}

impl Ends {
    /// Makes the ends of a run, with the ports of the engine in the order of their numbers.
    ///
    /// # Errors
    /// When the system refuses, with what to change.
    fn create(request: &RunRequest) -> Result<Made> {
        let active = |names, listener| ActiveLines {
            names,
            listener,
            quiet: request.report == Report::Nothing,
            mtu_bytes: request.mtu_bytes,
        };
        if let Lines::Relay { lines, baud } = &request.lines {
            let (ports, names, listener) = open_relay(lines, *baud)?;
            let server_ends = request.server_ends;
            let none = Ends { server_ends, ..Ends::default() };
            let report = SessionReport { port: ports[0].label(), ..SessionReport::default() };
            return Ok(Made { ends: none, ports, report, lines: Some(active(names, listener)) });
        }
        if let Some(gateway) = &request.gateway {
            let Joint { ends: [client, server], ports, report, surroundings } = gateway::join(gateway, request)?;
            let ends = Ends {
                clients: vec![client],
                servers: vec![server],
                surroundings: Some(surroundings),
                ..Ends::default()
            };
            return Ok(Made { ends, ports, report, lines: None });
        }
        let names = request.users();
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        let sessions = Session::create_all(&session_options(request)?, &named, request.server_ends);
        let mut ends = Ends { server_ends: request.server_ends, ..Ends::default() };
        let (mut ports, mut report, mut lines) = (Vec::new(), None, None);
        for Session { client, server, client_port, server_port, report: told, line, .. } in
            sessions.map_err(Failure::live)?
        {
            lines = lines.or(line.map(|line| active(vec![(line.end, line.name)], line.listener)));
            ends.clients.push(client);
            ends.servers.push(server);
            ports.extend([client_port, server_port]);
            report.get_or_insert(told);
        }
        if let Some(place) = &request.place {
            ends.users = (place.first_user..).zip(names).map(|(index, name)| User { name, index }).collect();
        } else if names.len() > 1 {
            ends.users = names.into_iter().enumerate().map(|(index, name)| User { name, index }).collect();
        }
        Ok(Made { ends, ports, report: report.unwrap_or_default(), lines })
    }

    /// True if the path goes on at another host, where the server is.
    pub fn is_server_elsewhere(&self) -> bool {
        self.joined.contains(&End::Server)
    }

    /// The ends that have an interface, in the order of their ports.
    pub fn of_ports(&self) -> impl Iterator<Item = &SessionEnd> {
        let all = self.clients.iter().zip(&self.servers).flat_map(|(client, server)| [client, server]);
        all.filter(|end| !self.joined.contains(&end.end()))
    }

    /// The server's ends, each namespace once.
    pub fn server_namespaces(&self) -> &[SessionEnd] {
        match self.server_ends {
            ServerEnds::One => &self.servers[..self.servers.len().min(1)],
            ServerEnds::Each => &self.servers,
        }
    }

    /// The user of each server's namespace; none where it is that of all.
    pub fn users_of_servers(&self) -> Vec<Option<&User>> {
        match self.server_ends {
            // A link of one user among several has a server of its own.
            ServerEnds::One if self.servers.len() == 1 => vec![self.users.first()],
            ServerEnds::One => vec![None],
            ServerEnds::Each => (0..self.servers.len()).map(|number| self.users.get(number)).collect(),
        }
    }

    /// The ends whose sockets are the run's, each namespace once.
    pub fn namespaces(&self) -> Vec<&SessionEnd> {
        if !self.joined.is_empty() {
            return Vec::new();
        }
        self.clients.iter().chain(self.server_namespaces()).collect()
    }

    /// The addresses of all clients, and those of all servers.
    pub fn addresses(&self) -> [Vec<IpAddr>; 2] {
        [&self.clients, &self.servers].map(|ends| ends.iter().flat_map(|end| end.addresses().to_vec()).collect())
    }
}

/// Environment of all commands of a run: the number of its users, where there are several.
pub fn environment(run: &RunRequest) -> Option<(OsString, OsString)> {
    let count = run.users().len();
    (count > 1).then(|| (USERS_VARIABLE.into(), count.to_string().into()))
}

fn session_options(request: &RunRequest) -> Result<SessionOptions> {
    let mut options = SessionOptions::from_environment().map_err(Failure::live)?;
    options.far_end = match (request.enclosing, request.internet) {
        // Inside another link the way to the host's network, if there is one, leads through that link.
        (true, _) => FarEnd::Enclosing,
        (false, true) => FarEnd::Internet,
        (false, false) => FarEnd::Fresh,
    };
    options.port_kind = request.port_kind;
    options.confine = request.confine;
    // Nobody behind a line cuts them.
    options.line = request.lines.ppp().cloned();
    options.magic_number = fresh_seed() as u32 ^ request.seed as u32;
    options.super_packets = options.line.is_none();
    options.mtu_bytes = request.mtu_bytes;
    options.own_socket_tables = request.tcp_state != TcpStateMode::Off;
    options.congestion_control.clone_from(&request.congestion_control);
    Ok(options)
}
