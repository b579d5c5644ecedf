// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Preparation of a run on several hosts: connections, comparison of clocks, and what each engine is told to run.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use airpath_core::{Credit, Direction, End, Span};
use airpath_live::ports::PortKind;
use airpath_live::{clock, side_by_side};
use airpath_scenario::{Part, Scenario};

use super::{Link, Other, Subtracted};
use crate::error::{Failure, Result};
use crate::hosts::channel::Border;
use crate::hosts::clocks::Clocks;
use crate::hosts::interrupts::Interrupts;
use crate::hosts::ssh::{self, Connection, Ending};
use crate::hosts::transfer;
use crate::hosts::tunnel::{Ends, Tunnel};
use crate::hosts::wire::{Neighbour, Window, Word, write_frame};
use crate::link::usage;
use crate::run::RunRequest;
use crate::seed::fresh_seed;
use crate::server_ready::ServerReady;
use crate::status;

/// Number of comparisons of the clocks before a run.
const PROBES: usize = 32;
/// Number of hosts to which this one connects at a time: an sshd refuses more than ten that have not logged in.
const AT_ONCE: usize = 8;

/// Connects to the other hosts of all `links`, compares the clocks, and tells their engines what to run.
pub(super) fn prepare_all(links: &mut [Link], install: bool, interrupts: &Interrupts) -> Result<()> {
    // An engine is copied to one host at a time, as several links may go on at one host.
    let connect = |link: &mut Link| connect_to_all(link, install, interrupts);
    let prepared = for_placed(links, if install { 1 } else { AT_ONCE }, connect)
        .and_then(|()| for_placed(links, AT_ONCE, set_up_all));
    if prepared.is_err() {
        let others = links.iter_mut().flat_map(|link| std::mem::take(&mut link.others));
        let endings: Vec<Ending> = others.map(|other| other.connection.hang_up()).collect();
        endings.into_iter().for_each(|ending| ending.wait(ssh::PATIENCE));
    }
    prepared
}

/// Does `work` for the links that go on at other hosts, `at_once` of them at a time.
fn for_placed(links: &mut [Link], at_once: usize, work: impl Fn(&mut Link) -> Result<()> + Sync) -> Result<()> {
    let mut placed: Vec<&mut Link> = links.iter_mut().filter(|link| link.is_placed()).collect();
    placed.chunks_mut(at_once).try_for_each(|links| {
        // All of them end before the first failure counts.
        side_by_side::map(links.iter_mut().collect(), |_, link| work(link)).into_iter().collect()
    })
}

/// Tells the engines of the other hosts of `link` what to run.
fn set_up_all(link: &mut Link) -> Result<()> {
    let Link { request, parts, others, subtracted, .. } = link;
    let neighbours = neighbours(request, parts)?;
    let behind = neighbours[0].behind.clone().unwrap_or_default();
    let tunnel = behind.udp.as_ref().map(Tunnel::open).transpose()?;
    link.border = Some(Border { end: End::Server, tunnel, credit: Window::first_credit(behind.window) });
    for (number, other) in (1..).zip(others.iter_mut()) {
        let set_up = set_up(request, other, number, subtracted[number], neighbours[number].clone());
        set_up.map_err(|failure| of_host(&other.part, &failure))?;
    }
    Ok(())
}

/// `failure` with the host that it concerns.
fn of_host(part: &Part, failure: &Failure) -> Failure {
    let failed = format!("{}: {failure}", ssh::about(part));
    if failure.status() == status::USAGE { Failure::usage(failed) } else { Failure::new(failed) }
}

/// Connects to the other hosts of `link` and compares their clocks with the one here; `others` has them whatever comes
/// next. Finds what is taken off the propagation of each part.
fn connect_to_all(link: &mut Link, install: bool, interrupts: &Interrupts) -> Result<()> {
    let Link { request, parts, others, .. } = link;
    let mut subtracted = vec![Subtracted::default(); parts.len()];
    // Packets between two other hosts pass through this one.
    let mut before_ns = 0;
    for (number, part) in parts.iter().enumerate().skip(1) {
        let mut connection = ssh::connect(part, install, interrupts)?;
        let clocks = compare(&mut connection);
        let clocks = match clocks {
            Ok(clocks) => Arc::new(clocks),
            Err(failure) => {
                connection.close(ssh::PATIENCE);
                return Err(of_host(part, &failure));
            }
        };
        let delay = Span::from_nanos(before_ns + clocks.one_way_ns());
        before_ns = clocks.one_way_ns();
        if part.config.as_ref().is_some_and(|config| config.subtract_delay) {
            (subtracted[number - 1].behind, subtracted[number].before) = (delay, delay);
        }
        others.push(Other { part: part.clone(), connection, clocks, folder: String::new(), delay });
    }
    // What does not fit is told before another host has anything to do.
    for (part, subtracted) in parts.iter().zip(&subtracted) {
        part_of(request, part, *subtracted)?;
    }
    link.subtracted = subtracted;
    Ok(())
}

/// Compares the clock of the host of `connection` with the one here.
fn compare(connection: &mut Connection) -> Result<Clocks> {
    let clocks = Clocks::default();
    for _ in 0..PROBES {
        connection.say(&clocks.question()).map_err(|error| Failure::new(format!("the connection broke: {error}")))?;
        let Word::Told { number, receive_ns, transmit_ns, ahead_ns } = connection.hear()? else {
            return Err(Failure::new("it did not tell the time"));
        };
        clocks.told(number, receive_ns, transmit_ns, ahead_ns, clock::realtime_ns());
    }
    Ok(clocks)
}

/// The hosts beside that of a part, as it is told of them.
#[derive(Clone, Default)]
struct Neighbours {
    before: Neighbour,
    behind: Option<Neighbour>,
}

/// The neighbours of each part.
fn neighbours(request: &RunRequest, parts: &[Part]) -> Result<Vec<Neighbours>> {
    let mut neighbours = vec![Neighbours::default(); parts.len()];
    let paths = request.scenario.paths().map_err(usage)?;
    let hops = paths.first().map(|path| path.config.hops.as_slice()).unwrap_or_default();
    let window = |hop: usize, direction: Direction| {
        let credit = hops.get(hop).map_or(Credit::UNLIMITED, |hop| hop.link(direction).flow_control.first_credit());
        Window::of(&credit)
    };
    for (number, part) in parts.iter().enumerate().skip(1) {
        let udp = part.config.as_ref().and_then(|config| config.udp.as_ref());
        let address = |text: &str| {
            text.parse::<SocketAddr>().map_err(|_| Failure::usage(format!("{text} is no address and port")))
        };
        let ends = match udp {
            Some(udp) => Some((address(&udp.local)?, address(&udp.remote)?, fresh_seed())),
            None => None,
        };
        let udp = |is_before: bool| {
            ends.map(|(local, remote, token)| match is_before {
                true => Ends { own: local, peer: remote, token },
                false => Ends { own: remote, peer: local, token },
            })
        };
        let (first, last) = (part.hops.start, parts[number - 1].hops.end - 1);
        let (into, back) = (window(first, Direction::Uplink), window(last, Direction::Downlink));
        neighbours[number - 1].behind = Some(Neighbour { udp: udp(true), window: into });
        neighbours[number].before = Neighbour { udp: udp(false), window: back };
    }
    Ok(neighbours)
}

/// Tells the engine of `other`, which has part `number`, what to run.
fn set_up(
    request: &RunRequest,
    other: &mut Other,
    number: usize,
    subtracted: Subtracted,
    Neighbours { before, behind }: Neighbours,
) -> Result<()> {
    let broke = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
    let far = part_of(request, &other.part, subtracted)?;
    let files = far.scenario.files().map_err(usage)?;
    let name = |file: &Path| {
        let number = files.iter().position(|known| known == file)?;
        Some(format!("{number}-{}", file.file_name()?.to_string_lossy()))
    };
    let connection = &mut other.connection;
    connection
        .say(&Word::Setup {
            host: other.part.name.clone(),
            number: number as u16,
            scenario: far.scenario.to_toml_with_files(&name).map_err(usage)?,
            arguments: arguments(request, behind.is_none()),
            records: request.out.is_some(),
            before: Box::new(before),
            behind: behind.map(Box::new),
            files: files.len() as u32,
        })
        .map_err(broke)?;
    for file in &files {
        let name = name(file).unwrap_or_default();
        let mut failed = None;
        let output = &mut connection.output;
        let mut say = |frame: &[u8]| failed = failed.take().or(write_frame(output, frame).err());
        transfer::send(file, &name, &mut say)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
        failed.map_or(Ok(()), |error| Err(broke(error)))?;
    }
    match connection.hear()? {
        Word::Prepared { folder } => {
            other.folder = folder;
            Ok(())
        }
        _ => Err(Failure::new("it did not prepare the run")),
    }
}

/// The request for one part of the path, with the delays of the network taken off at its borders.
pub(super) fn part_of(request: &RunRequest, part: &Part, subtracted: Subtracted) -> Result<RunRequest> {
    let mut scenario: Scenario = request.scenario.part(part.hops.clone());
    let last = part.hops.len() - 1;
    for (hop, direction, delay) in
        [(0, Direction::Downlink, subtracted.before), (last, Direction::Uplink, subtracted.behind)]
    {
        if delay > Span::ZERO {
            scenario.subtract_propagation(hop, direction, delay).map_err(|why| {
                Failure::usage(format!("subtract_delay: {why}; write a longer constant, or leave subtract_delay out"))
            })?;
        }
    }
    Ok(RunRequest { scenario, ..request.clone() })
}

/// Options of `airpath exec` by which another engine runs its part; the server's command is at the last one.
fn arguments(request: &RunRequest, is_last: bool) -> Vec<String> {
    let mut arguments: Vec<String> = vec!["--quiet".into()];
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    add("--seed", request.seed.to_string());
    add("--log", request.level.to_string());
    add("--snaplen", request.snaplen.to_string());
    add("--frames", if request.frames { "on" } else { "off" }.into());
    add("--mtu", request.mtu_bytes.to_string());
    add("--lateness-bound", request.lateness_bound.to_string());
    add("--economy", request.tuning.economy.to_string());
    add("--server-timeout", request.server_timeout.to_string());
    add("--server-grace", request.server_grace.to_string());
    add("--log-buffer", format!("{} B", request.ring.bytes()));
    if request.out.is_some() {
        // The folder itself is chosen at the other host.
        add("--out", "run".into());
        add("--tcp-state", request.tcp_state.to_string());
    }
    let port = match request.port_kind {
        PortKind::Automatic => "auto",
        PortKind::Tun => "tun",
        PortKind::Packet => "packet",
    };
    add("--port", port.into());
    if let Some(name) = &request.congestion_control {
        add("--cc", name.clone());
    }
    if let (Some(server), true) = (&request.server, is_last) {
        add("--server", server.clone());
        if request.server_ready != ServerReady::default() {
            add("--server-ready", request.server_ready.to_string());
        }
    }
    for (asked, option) in [(request.as_root, "--as-root"), (request.confine, "--confine")] {
        if asked {
            arguments.push(option.into());
        }
    }
    arguments
}
