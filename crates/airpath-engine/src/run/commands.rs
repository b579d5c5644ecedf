// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands at the ends of a run, and of each of its users.

use airpath_live::session::ServerEnds;
use airpath_models::MachineConfig;

use super::RunRequest;
use crate::cli::{ExecArgs, ServerEndsArg, ShellArgs};
use crate::error::{Failure, Result};

/// Number of names that an error tells.
const SHOWN_NAMES: usize = 20;

/// Puts the commands of `airpath exec` into `request`.
///
/// # Errors
/// When a command is for a user that the scenario has not, or a user has no command and nothing tells that it needs
/// none.
pub fn of_exec(request: &mut RunRequest, args: &ExecArgs) -> Result<()> {
    request.server.clone_from(&args.server);
    request.server_ready = args.server_ready.clone().unwrap_or_default();
    request.server_timeout = args.server_timeout;
    request.server_grace = args.server_grace;
    request.server_ends = match args.server_ends {
        ServerEndsArg::One => ServerEnds::One,
        ServerEndsArg::Each => ServerEnds::Each,
    };
    let named = of_users(request, &args.client)?;
    if args.lines.client_ppp.is_some() && request.clients.iter().all(Vec::is_empty) {
        // The client is the peer on a line.
        return Ok(());
    }
    if request.clients.iter().all(Vec::is_empty) {
        return Err(Failure::usage("no user has a command; give one after `--`, or to a user by --client USER=CMD"));
    }
    // What a background load alone does, the scenario tells.
    let users = request.machine.users();
    let idle = (0..users.len()).filter(|number| {
        request.clients[*number].is_empty() && !named[*number] && users[*number].path.background.is_empty()
    });
    let idle: Vec<&str> = idle.map(|number| users[number].name).collect();
    if !idle.is_empty() {
        let example = idle[0];
        return Err(Failure::usage(format!(
            "no command for {}; give one to each user by --client USER=CMD, or one for the others after `--`; --client \
             {example}= lets {example} run none",
            shown(&idle)
        )));
    }
    Ok(())
}

/// Puts the commands of `airpath shell` into `request`, in which every user has the shell: only the user at the
/// terminal keeps it.
///
/// # Errors
/// When it is not clear who that is, or a command is for a user that the scenario has not.
pub fn of_shell(request: &mut RunRequest, args: &ShellArgs) -> Result<()> {
    let users = request.machine.users();
    let names: Vec<&str> = users.iter().map(|user| user.name).collect();
    let number = match (&args.user, names.as_slice()) {
        (Some(user), _) => user_called(&request.machine, user, "--user")?,
        (None, [_]) => 0,
        (None, names) => {
            return Err(Failure::usage(format!(
                "the scenario has {} users; name the one at whose end the shell runs, as in --user {}: {}",
                names.len(),
                names[0],
                shown(names)
            )));
        }
    };
    if names.len() > 1 {
        request.foreground = Some(number);
    }
    for (user, words) in request.clients.iter_mut().enumerate() {
        if user != number {
            words.clear();
        }
    }
    let name = names[number].to_owned();
    if of_users(request, &args.client)?[number] {
        return Err(Failure::usage(format!("--client {name}: the shell runs at this user's end; name another user")));
    }
    Ok(())
}

/// Gives users the commands of their own, each `USER=CMD`; an empty one is none. Tells which users were named.
fn of_users(request: &mut RunRequest, own: &[String]) -> Result<Vec<bool>> {
    let mut named = vec![false; request.clients.len()];
    for text in own {
        let Some((user, line)) = text.split_once('=') else {
            return Err(Failure::usage(format!(
                "--client '{text}': name a user and a command, as in --client alice='ping -c 4 server'"
            )));
        };
        let number = user_called(&request.machine, user.trim(), "--client")?;
        if std::mem::replace(&mut named[number], true) {
            return Err(Failure::usage(format!("--client: there are two commands for {}", user.trim())));
        }
        request.clients[number] = match line.trim() {
            "" => Vec::new(),
            _ => ["/bin/sh", "-c", line].map(Into::into).to_vec(),
        };
    }
    Ok(named)
}

/// Number of the user of this name, whom `option` names.
///
/// # Errors
/// When there is none, with the names that there are.
pub fn user_called(machine: &MachineConfig, name: &str, option: &str) -> Result<usize> {
    let users = machine.users();
    users.iter().position(|user| user.name == name && !name.is_empty()).ok_or_else(|| {
        let names: Vec<&str> = users.iter().map(|user| user.name).filter(|name| !name.is_empty()).collect();
        Failure::usage(match names.as_slice() {
            [] => format!("{option}: there is no user `{name}`; the only user of the scenario has no name"),
            names => format!("{option}: there is no user `{name}`; users are {}", shown(names)),
        })
    })
}

fn shown(names: &[&str]) -> String {
    let first = names.iter().take(SHOWN_NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN_NAMES) {
        Some(more) if more > 0 => format!("{first} and {more} more"),
        _ => first,
    }
}
