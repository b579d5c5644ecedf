// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Starting the servers' commands, and waiting until they are ready.

use std::time::{Duration, Instant};

use airpath_core::Span;
use airpath_live::command::{CommandEnd, CommandId, CommandSpec, Stream};
use airpath_live::end_waits::Party;
use airpath_live::session::SessionEnd;
use airpath_live::side_by_side;

use super::{Ended, User, Whose, Workload, describe};
use crate::error::{Failure, Result};
use crate::run::ready::{Families, ReadyWatch};
use crate::server_ready::ServerReady;

/// A server's command to be started.
pub struct Server<'a> {
    /// The end at which it runs.
    pub end: &'a SessionEnd,
    /// Its clients.
    pub clients: Vec<&'a SessionEnd>,
    /// The link and the user that it is of.
    pub whose: Whose<'a>,
    /// The command, for the shell.
    pub line: &'a str,
    /// Maximum time until it is ready; without one it need not become ready.
    pub timeout: Option<Span>,
    /// Ports at its end that lead to the host, where nothing else can listen.
    pub forwarded: Vec<u16>,
}

/// A server's command that was started, and is not yet known to be ready.
pub struct StartedServer<'a> {
    id: CommandId,
    watch: ReadyWatch<'a>,
    server: Server<'a>,
}

impl Workload<'_> {
    /// Starts servers' commands, each with its sign of being ready.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start_servers<'b>(
        &mut self,
        servers: Vec<Server<'b>>,
        sign: &'b ServerReady,
    ) -> Result<Vec<StartedServer<'b>>> {
        let (mut watches, mut commands) = (Vec::with_capacity(servers.len()), Vec::with_capacity(servers.len()));
        let begun =
            side_by_side::map(servers.iter().map(|server| server.end).collect(), |_, end| ReadyWatch::begin(end, sign));
        for (server, begun) in servers.iter().zip(begun) {
            let (watch, streams) = begun?;
            let mut spec = CommandSpec::shell_line(server.line);
            spec.own_session = true;
            spec.environment = self.environment(server.whose.user);
            if let Some([output, error]) = streams {
                spec.streams = [Stream::Inherited, output, error];
            }
            watches.push(watch);
            commands.push((server.end, spec));
        }
        let mut started = Vec::with_capacity(servers.len());
        let register = &self.register;
        let ids = self.commands.start_all(commands, |number, id| {
            register.enter(id.pid(), Party::Server, servers[number].whose.link);
        });
        for ((server, watch), id) in servers.into_iter().zip(watches).zip(ids) {
            let id = id.map_err(Failure::live)?;
            let Whose { link, user } = server.whose;
            self.servers.push((id, link, user.map(|user| user.name.clone())));
            started.push(StartedServer { id, watch, server });
        }
        Ok(started)
    }

    /// Waits until a server's command is ready; then the name of the server leads its clients to the families of
    /// addresses at which it listens. Returns the signal that came first, if one did.
    ///
    /// # Errors
    /// When it ends first or is not ready in time, with what to do.
    pub fn wait_for_server(&mut self, started: StartedServer<'_>) -> Result<Option<Ended>> {
        let StartedServer { id, mut watch, server } = started;
        let Server { end: server, clients, whose, line, timeout, forwarded } = server;
        let user = whose.user;
        let Some(timeout) = timeout else { return Ok(None) };
        let begun = Instant::now();
        loop {
            if let Some(sockets) = watch.look()? {
                Families::of(&sockets).name(&clients, server)?;
                self.said.extend(watch.into_said());
                return Ok(None);
            }
            if let Some(signal) = self.wait(Duration::from_millis(1))? {
                return Ok(Some(Ended::Interrupted(signal)));
            }
            if let Some(end) = self.commands.ended(id) {
                return Err(Failure::not_ready(format!(
                    "the server's command{} ended before it was ready ({}): {line}\n  {}{}",
                    of(user),
                    describe(end),
                    why_ended(end),
                    taken(&forwarded)
                )));
            }
            if begun.elapsed() >= Duration::from_nanos(timeout.nanos()) {
                return Err(Failure::not_ready(format!(
                    "the server's command{} was not ready within {timeout}: {line}\n  Increase --server-timeout, or {}.",
                    of(user),
                    watch.advice()
                )));
            }
        }
    }
}

/// " of alice", behind "the server's command"; empty where it is that of all.
fn of(user: Option<&User>) -> String {
    user.map(|user| format!(" of {}", user.name)).unwrap_or_default()
}

/// The ports that a server cannot have, behind the advice.
fn taken(forwarded: &[u16]) -> String {
    if forwarded.is_empty() {
        return String::new();
    }
    let ports: Vec<String> = forwarded.iter().map(u16::to_string).collect();
    format!(" Taken there by --host-port: {}.", ports.join(", "))
}

/// Advice on a server's command that ended before it was ready.
fn why_ended(end: CommandEnd) -> &'static str {
    match end {
        CommandEnd::Exited(127) => "The shell did not find a program in it; check the name, and PATH.",
        CommandEnd::Exited(126) => "The shell could not start a program in it; is it executable?",
        CommandEnd::Exited(0) => {
            "If it goes on in the background, keep it in the foreground; if it is not to listen, add --server-ready now."
        }
        _ => "Its output above says why; it runs in its own network namespace, where it listens on 0.0.0.0 or [::].",
    }
}
