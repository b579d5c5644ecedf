// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Joins a client's and a server's network namespace by a loop that passes
//! every packet on at once, and runs a command at the client:
//!
//! ```text
//! passthrough [--tun|--packet] [--as-root] [--enclosing|--internet] [--super-packets]
//!             [--mtu BYTES] [--cc NAME] [--host-port N] [--server LINE] [--report] -- COMMAND…
//! ```

use std::ffi::OsString;
use std::io::IoSlice;
use std::os::fd::AsFd;

use airpath_core::BufferPool;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use airpath_live::command::{CommandEnd, CommandId, CommandSpec, Commands, start_failure_status};
use airpath_live::listening::ListenWatch;
use airpath_live::ports::{LONGEST_PACKET_BYTES, Outgoing, Port, PortKind, Received};
use airpath_live::session::{FarEnd, Session, SessionOptions};
use airpath_live::supervise::{self, ENGINE_FAILED_STATUS, EngineProcess, EngineSignal};
use airpath_live::{LiveError, Result, host_port, internet, privilege, scheduling};

const BATCH: usize = 64;

struct Arguments {
    options: SessionOptions,
    as_root: bool,
    server: Option<OsString>,
    report: bool,
    host_port: Option<host_port::HostPort>,
    command: Vec<OsString>,
}

fn parse_arguments() -> Result<Arguments> {
    let mut parsed = Arguments {
        options: SessionOptions::from_environment()?,
        as_root: false,
        server: None,
        report: false,
        host_port: None,
        command: Vec::new(),
    };
    let mut words = std::env::args_os().skip(1);
    let missing = |name: &str| LiveError::Request(format!("{name} needs a value"));
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--tun") => parsed.options.port_kind = PortKind::Tun,
            Some("--packet") => parsed.options.port_kind = PortKind::Packet,
            Some("--as-root") => parsed.as_root = true,
            Some("--enclosing") => parsed.options.far_end = FarEnd::Enclosing,
            Some("--internet") => parsed.options.far_end = FarEnd::Internet,
            Some("--super-packets") => parsed.options.super_packets = true,
            Some("--report") => parsed.report = true,
            Some("--server") => parsed.server = words.next(),
            Some("--mtu") => {
                let text = words.next().ok_or_else(|| missing("--mtu"))?;
                parsed.options.mtu_bytes = text
                    .to_str()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| LiveError::Request("--mtu needs a number".into()))?;
            }
            Some("--host-port") => {
                let text = words.next().ok_or_else(|| missing("--host-port"))?;
                parsed.host_port = text.to_str().and_then(|text| text.parse().ok());
            }
            Some("--cc") => {
                let text = words.next().ok_or_else(|| missing("--cc"))?;
                parsed.options.congestion_control = Some(text.to_string_lossy().into_owned());
            }
            Some("--") => {
                parsed.command = words.collect();
                return Ok(parsed);
            }
            _ => {
                return Err(LiveError::Request(format!("unknown option {}", word.display())));
            }
        }
    }
    Err(LiveError::Request("give the command after `--`, as in `passthrough -- ping -c 3 server`".into()))
}

fn main() {
    let outcome = parse_arguments().and_then(|arguments| {
        privilege::acquire(arguments.as_root)?;
        supervise::run(|process| run_engine(&process, arguments))
    });
    std::process::exit(outcome.unwrap_or_else(|error| {
        eprintln!("passthrough: {error}");
        ENGINE_FAILED_STATUS
    }))
}

fn run_engine(process: &EngineProcess, arguments: Arguments) -> i32 {
    pass_packets(process, arguments).unwrap_or_else(|error| {
        eprintln!("passthrough: {error}");
        ENGINE_FAILED_STATUS
    })
}

fn pass_packets(process: &EngineProcess, arguments: Arguments) -> Result<i32> {
    scheduling::timer_slack(1);
    let mut session = Session::create(&arguments.options)?;
    if arguments.report {
        eprintln!("{:?} {:?}", process.notes(), session.report);
    }
    if arguments.options.far_end == FarEnd::Internet {
        internet::connect(&session.server, arguments.options.mtu_bytes)?;
    }
    if let Some(port) = &arguments.host_port {
        host_port::forward(&session.server, port)?;
    }
    let mut commands = Commands::new(process);
    let mut server = match &arguments.server {
        None => None,
        Some(line) => {
            let watch = ListenWatch::begin(&session.server)?;
            let mut spec = CommandSpec::shell_line(line);
            spec.own_session = true;
            Some((commands.start(&session.server, spec)?, watch))
        }
    };
    let mut client_command = Some(
        CommandSpec::from_words(arguments.command)
            .ok_or_else(|| LiveError::Request("no command is given after `--`".into()))?,
    );
    let mut client: Option<CommandId> = None;
    let mut uplink = Direction::new();
    let mut downlink = Direction::new();
    loop {
        if let Some(spec) = client_command.take() {
            let ready = match &mut server {
                None => true,
                Some((id, watch)) => {
                    if let Some(end) = commands.ended(*id) {
                        eprintln!("passthrough: the server's command ended first ({end:?})");
                        return Ok(ENGINE_FAILED_STATUS);
                    }
                    let sockets = watch.new_servers().map_err(|error| LiveError::system("list sockets", error))?;
                    !sockets.is_empty()
                }
            };
            if !ready {
                client_command = Some(spec);
            } else {
                match commands.start(&session.client, spec) {
                    Ok(id) => client = Some(id),
                    Err(error) => {
                        eprintln!("passthrough: {error}");
                        return Ok(start_failure_status(&error));
                    }
                }
            }
        }
        let waiting_for_server = client.is_none();
        wait(process, &session, waiting_for_server)?;
        while let Some(signal) = process.read_signal()? {
            match signal {
                EngineSignal::ChildEnded => {
                    commands.reap(|_| ())?;
                }
                EngineSignal::Forward(signal) => forward(&commands, client, signal),
                EngineSignal::Group(_) => {}
            }
        }
        let io = |error| LiveError::system("pass packets on", error);
        uplink.pass(&mut session.client_port, &mut session.server_port).map_err(io)?;
        downlink.pass(&mut session.server_port, &mut session.client_port).map_err(io)?;
        if let Some(end) = client.and_then(|id| commands.ended(id)) {
            if arguments.report {
                report(&mut session, &uplink, &downlink);
            }
            return Ok(CommandEnd::exit_status(end));
        }
    }
}

fn forward(commands: &Commands, client: Option<CommandId>, signal: Signal) {
    if let Some(id) = client {
        commands.signal(id, signal);
    } else {
        // Nobody is there yet to be told: end the run as the signal would.
        std::process::exit(128 + signal as i32);
    }
}

fn wait(process: &EngineProcess, session: &Session, briefly: bool) -> Result<()> {
    let mut ends = [
        PollFd::new(process.signal_fd(), PollFlags::POLLIN),
        PollFd::new(session.client_port.as_fd(), PollFlags::POLLIN),
        PollFd::new(session.server_port.as_fd(), PollFlags::POLLIN),
    ];
    let timeout = if briefly { PollTimeout::from(1_u8) } else { PollTimeout::NONE };
    match poll(&mut ends, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(errno) => Err(LiveError::system("poll", errno)),
    }
}

fn report(session: &mut Session, uplink: &Direction, downlink: &Direction) {
    eprintln!(
        "uplink {} reads, {} bytes, {} refused; downlink {} reads, {} bytes, {} refused",
        uplink.packets, uplink.bytes, uplink.refused, downlink.packets, downlink.bytes, downlink.refused
    );
    for (name, port) in [("client", &mut session.client_port), ("server", &mut session.server_port)] {
        eprintln!("{name} port: {:?}", port.drops_outside_model());
    }
}

/// One way through the loop.
struct Direction {
    slabs: BufferPool,
    batch: Vec<Received>,
    packets: u64,
    bytes: u64,
    refused: u64,
}

impl Direction {
    fn new() -> Self {
        Self { slabs: BufferPool::new(1 << 20), batch: Vec::with_capacity(BATCH), packets: 0, bytes: 0, refused: 0 }
    }

    /// One batch; what cannot be written is dropped, as this is no model.
    fn pass(&mut self, from: &mut Port, to: &mut Port) -> std::io::Result<()> {
        from.read_batch(self.slabs.slab(LONGEST_PACKET_BYTES), BATCH, &mut self.batch)?;
        let parts: Vec<[IoSlice<'_>; 1]> = self.batch.iter().map(|packet| [IoSlice::new(&packet.bytes)]).collect();
        let outgoing: Vec<Outgoing<'_>> = parts
            .iter()
            .zip(&self.batch)
            .map(|(parts, packet)| Outgoing { link_header: &[], parts, offload: packet.offload, journey: None })
            .collect();
        let written = to.write_batch(&outgoing)?;
        self.packets += written.done as u64;
        self.refused += (self.batch.len() - written.done + written.refused) as u64;
        self.bytes += self.batch.iter().map(|packet| packet.bytes.len() as u64).sum::<u64>();
        self.batch.clear();
        Ok(())
    }
}
