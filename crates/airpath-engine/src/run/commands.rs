// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands at the ends of `airpath exec`, and of each of its users.

use airpath_live::session::ServerEnds;

use super::RunRequest;
use crate::cli::{ExecArgs, ServerEndsArg};
use crate::error::{Failure, Result};

/// Puts the commands that `args` name into `request`.
///
/// # Errors
/// When a command is for a user that the scenario has not, or a user has no command.
pub fn apply(request: &mut RunRequest, args: &ExecArgs) -> Result<()> {
    request.server.clone_from(&args.server);
    request.server_timeout = args.server_timeout;
    request.server_grace = args.server_grace;
    request.server_ends = match args.server_ends {
        ServerEndsArg::One => ServerEnds::One,
        ServerEndsArg::Each => ServerEnds::Each,
    };
    let names: Vec<String> = request.machine.users().iter().map(|user| user.name.to_owned()).collect();
    for text in &args.client {
        let Some((user, line)) = text.split_once('=') else {
            return Err(Failure::usage(format!(
                "--client '{text}': name a user and a command, as in --client alice='ping -c 4 server'"
            )));
        };
        let Some(number) = names.iter().position(|name| name == user.trim()) else {
            return Err(Failure::usage(format!("--client: there is no user `{user}`; users are {}", names.join(", "))));
        };
        request.clients[number] = ["/bin/sh", "-c", line].map(Into::into).to_vec();
    }
    let idle: Vec<&str> = request
        .clients
        .iter()
        .zip(&names)
        .filter(|(words, _)| words.is_empty())
        .map(|(_, name)| name.as_str())
        .collect();
    if !idle.is_empty() {
        return Err(Failure::usage(format!(
            "no command for {}; give one to each user by --client USER=CMD, or one for the others after `--`",
            idle.join(", ")
        )));
    }
    Ok(())
}
