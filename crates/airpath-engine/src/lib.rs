// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The engine of Airpath: everything that carries packets, behind one command line.

mod cli;
mod commands;
mod control;
mod defaults;
mod error;
mod facts;
mod hosts;
pub mod inside;
mod link;
mod load;
mod run;
mod seed;
mod server_ready;
mod signals;
mod status;
mod terminal;
mod wsim;

use crate::terminal::say;
use cli::{Command, Mistake};
use error::Failure;

/// Does what the command line asks for, and ends the process with its exit status.
pub fn main() -> ! {
    let cli = cli::parse(std::env::args_os()).unwrap_or_else(|mistake| match mistake {
        Mistake::Told(message) => {
            say!("airpath: {message}");
            std::process::exit(terminal::finish(status::USAGE))
        }
        Mistake::Parser(error) if error.use_stderr() => {
            say!("{}", cli::as_others(&error.to_string()));
            std::process::exit(terminal::finish(error.exit_code()))
        }
        Mistake::Parser(help) => help.exit(),
    });
    let outcome = match cli.command {
        Command::Exec(args) => commands::exec::run(&args),
        Command::Shell(args) => commands::shell::run(&args),
        Command::Relay(args) => commands::relay::run(&args),
        Command::Gateway(args) => commands::gateway::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Facts => Ok(commands::facts::run()),
        Command::Schema => Ok(commands::schema::run()),
        Command::Profiles(args) => commands::profiles::run(&args),
        Command::Log(args) => commands::log::run(&args),
        Command::Send(args) => commands::send::run(&args),
        Command::Recv(args) => commands::recv::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Runs(args) => Ok(commands::control::runs(&args)),
        Command::State(args) => commands::control::state(&args),
        Command::Set(args) => commands::control::set(&args),
        Command::Timing(args) => commands::timing::run(&args),
        Command::Trace(args) => commands::trace::run(&args),
        Command::Fading(args) => commands::fading::run(&args),
        Command::Modes(args) => commands::modes::run(&args),
        Command::Warp(args) => commands::warp::run(&args),
        Command::Wsim(args) => commands::wsim::run(&args),
        Command::Bound(args) => match commands::bound::run(&args) {
            Ok(never) => match never {},
            Err(failure) => Err(failure),
        },
        Command::Agent(args) => {
            airpath_agent::run(&args.specification).map_err(|error| Failure::new(error.to_string()))
        }
        Command::RemoteHop { fetch: true } => commands::fetch::run(),
        Command::RemoteHop { fetch: false } => commands::remote_hop::run(),
        Command::WarpInit => match airpath_warp::guest::main() {
            Ok(never) => match never {},
            Err(error) => Err(Failure::warp(error)),
        },
    };
    let status = outcome.unwrap_or_else(|failure| {
        say!("airpath: {failure}");
        failure.status()
    });
    std::process::exit(terminal::finish(status))
}
