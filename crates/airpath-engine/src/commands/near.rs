// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run whose later hops are on other hosts, as the host on which the command runs sees it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airpath_clocks::{Estimate, identity};
use airpath_core::{Credit, Direction, End, Span};
use airpath_live::clock;
use airpath_live::ports::PortKind;
use airpath_log::manifest::Status;
use airpath_log::{Manifest, files};
use airpath_scenario::{HERE, Part, Scenario};
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde_json::json;

use super::fetch::{Fetcher, Recorded};
use super::gather::{self, Collected, Gathered};
use super::launch::{launch, open_json};
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::hosts::channel::{Border, Channel, Channels, Join};
use crate::hosts::clocks::Clocks;
use crate::hosts::mouth::{SILENCE, Said};
use crate::hosts::ssh::{self, Connection, Ending};
use crate::hosts::transfer::{self, Piece};
use crate::hosts::tunnel::{Ends, Tunnel};
use crate::hosts::wire::{Neighbour, Window, Word, write_frame};
use crate::link::{self, usage};
use crate::run::Report;
use crate::run::lines::Lines;
use crate::run::{RunRequest, conclude, live, manifest as places};
use crate::seed::fresh_seed;
use crate::status;
use crate::terminal::say;

/// Number of comparisons of the clocks before a run.
const PROBES: usize = 32;
/// Time for the results of another host's part: its log is finished first.
const RESULTS: Duration = Duration::from_secs(300);

/// Another host of a run.
struct Other {
    part: Part,
    connection: Connection,
    clocks: Arc<Clocks>,
    /// The folder of the run there.
    folder: String,
    /// Delay of the network to the host before it.
    delay: Span,
}

impl Other {
    /// Its clock, as compared so far.
    fn clock(&self) -> Result<Estimate> {
        let mut clock = self.clocks.estimate()?;
        clock.local.name = identity::host_name();
        clock.local.identity = identity::written(identity::identity());
        clock.remote.name.clone_from(&self.part.name);
        clock.remote.identity.clone_from(&self.connection.clock_identity);
        Ok(clock)
    }
}

/// Borders of a part of the path: the delays taken off the propagation there.
#[derive(Clone, Copy, Default)]
struct Subtracted {
    before: Span,
    behind: Span,
}

/// Carries out `request`, whose path has `parts` on several hosts, the first of them here.
///
/// # Errors
/// When another host or its engine cannot be had, or the run is not of the kind that may be on several hosts.
pub fn start(mut request: RunRequest, parts: Vec<Part>, install: bool) -> Result<i32> {
    check(&request)?;
    open_json(&mut request)?;
    let made = request.out.as_deref().map(make_folder).transpose()?.unwrap_or(false);
    let Prepared { others, subtracted, border } =
        prepare(&request, parts.clone(), install).inspect_err(|_| take_back(&request, made))?;
    let begun = begin(&request, &parts[0], &others, subtracted, border, made);
    let endings: Vec<Ending> = others.into_iter().map(|other| other.connection.hang_up()).collect();
    for (number, ending) in endings.into_iter().enumerate() {
        // The engine there removes its folder at its end; this command ends no earlier.
        let is_taken = begun.as_ref().is_ok_and(|ended| ended.taken[number]);
        ending.wait(if is_taken { ssh::PATIENCE } else { ssh::SHORT_PATIENCE });
    }
    let Ended { status, taken, fetchers } = begun.inspect_err(|_| take_back(&request, made))?;
    // A run that did not begin has no folder any more.
    let has_begun = request.out.as_ref().is_some_and(|out| out.join(files::MANIFEST).exists());
    for (fetcher, taken) in fetchers.into_iter().zip(taken) {
        fetcher.finish(has_begun && !taken);
    }
    if let Some(out) = request.out.as_ref().filter(|_| has_begun)
        && let Err(why) = gather::join_remains(&request, out)
    {
        say!("airpath: the parts of the log are not joined: {why}; each is in {}", out.join(HOSTS).display());
    }
    Ok(status)
}

/// A run that has ended.
struct Ended {
    /// For each of the others, whether its results came.
    taken: Vec<bool>,
    /// The exit status.
    status: i32,
    /// For each of the others, who fetches what did not come.
    fetchers: Vec<Fetcher>,
}

/// Runs the part on this host, and with it the whole.
fn begin(
    request: &RunRequest,
    here: &Part,
    others: &[Other],
    subtracted: Subtracted,
    border: Border,
    made: bool,
) -> Result<Ended> {
    let whole = request;
    let mut local = part_of(request, here, subtracted)?;
    local.machine = link::machine(&local.scenario)?;
    local.part_of = Some(HERE.into());
    local.server = None;
    local.out = request.out.as_ref().map(|out| out.join(HOSTS).join(HERE));
    local.report = Report::Nothing;
    local.strict = false;
    local.manifest = None;
    local.json_file = None;
    let clone = |file: &fs::File| file.try_clone().map_err(|error| Failure::new(error.to_string()));
    let mut joins = Vec::new();
    for other in others {
        joins.push(Join {
            host: other.part.name.clone(),
            input: clone(&other.connection.input)?,
            output: clone(&other.connection.output)?,
            hops: hops_of(request, &other.part)?,
            clocks: Some(other.clocks.clone()),
        });
    }
    let borders = [border];
    let recorded = |(other, out): (&Other, &PathBuf)| Recorded {
        part: other.part.clone(),
        folder: other.folder.clone(),
        into: out.join(HOSTS).join(&other.part.name),
    };
    let recorded = request.out.iter().flat_map(|out| others.iter().map(move |other| (other, out))).map(recorded);
    let fetchers = recorded.map(|recorded| Fetcher::start(&recorded)).collect::<Result<Vec<_>>>()?;
    // The engine's process tells this one whose results came.
    let flag = |_| EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
    let taken: Vec<EventFd> = (others.iter().map(flag).collect::<std::result::Result<_, _>>())
        .map_err(|errno| Failure::new(format!("cannot make an event: {errno}")))?;
    let launched = launch(local, |process, local| {
        let (mut channels, ports) = match Channels::start(&joins, &borders, 0) {
            Ok(started) => started,
            Err(failure) => return told(&failure),
        };
        let outcome = live::run(&process, local, Some((&mut channels, ports)));
        let finished = outcome.and_then(|outcome| conclude::finish(local, outcome));
        let concluded = finished.and_then(|finished| {
            let mut collected = Vec::new();
            fetchers.iter().for_each(Fetcher::stop);
            for ((channel, other), taken) in channels.all.iter().zip(others).zip(&taken) {
                collected.push(collect(channel, other, whole.out.as_deref())?);
                let _ = taken.write(1);
            }
            let behind = channels.transit(End::Server);
            gather::conclude(Gathered { whole, local: finished, behind, others: collected })
        });
        channels.stop_asking();
        concluded.unwrap_or_else(|failure| {
            fetchers.iter().for_each(Fetcher::stop);
            if !note_failure(whole, local, others, &failure) {
                take_back(whole, made);
            }
            told(&failure)
        })
    });
    let status = match launched {
        Ok(status) => status,
        Err(failure) => {
            fetchers.into_iter().for_each(|fetcher| fetcher.finish(false));
            return Err(failure);
        }
    };
    Ok(Ended { taken: taken.iter().map(|taken| taken.read().is_ok()).collect(), status, fetchers })
}

fn told(failure: &Failure) -> i32 {
    say!("airpath: {failure}");
    failure.status()
}

/// Names of the hops of `part`.
fn hops_of(request: &RunRequest, part: &Part) -> Result<Vec<String>> {
    let paths = request.scenario.paths().map_err(usage)?;
    let hops = paths.first().map(|path| path.config.hops.as_slice()).unwrap_or_default();
    Ok(hops[part.hops.clone()].iter().map(|hop| hop.name.clone()).collect())
}

/// Refuses what is not offered on several hosts.
fn check(request: &RunRequest) -> Result<()> {
    let refused = [
        (request.internet, "--internet"),
        (!request.host_ports.is_empty(), "--host-port"),
        (request.enclosing, "a run inside another link"),
        (request.gateway.is_some(), "a gateway"),
        (!matches!(request.lines, Lines::None), "a serial line"),
    ];
    match refused.into_iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(Failure::usage(format!(
            "{what} is not available where hops are on several hosts (docs/scenario/hosts.md)"
        ))),
        None => Ok(()),
    }
}

/// The others of a run, ready to begin.
struct Prepared {
    others: Vec<Other>,
    /// Delay taken off at the border of this host's part.
    subtracted: Subtracted,
    /// The border to the second part.
    border: Border,
}

/// Connects to the other hosts, compares the clocks, and tells their engines what to run.
fn prepare(request: &RunRequest, parts: Vec<Part>, install: bool) -> Result<Prepared> {
    let mut others: Vec<Other> = Vec::new();
    let prepared = connect_to_all(request, &parts, install, &mut others).and_then(|subtracted| {
        let neighbours = neighbours(request, &parts)?;
        let behind = neighbours[0].behind.clone().unwrap_or_default();
        let tunnel = behind.udp.as_ref().map(Tunnel::open).transpose()?;
        let border = Border { end: End::Server, tunnel, credit: Window::first_credit(behind.window) };
        for (number, other) in (1..).zip(&mut others) {
            let set_up = set_up(request, other, number, subtracted[number], neighbours[number].clone());
            set_up.map_err(|failure| of_host(&other.part, &failure))?;
        }
        Ok((subtracted[0], border))
    });
    match prepared {
        Ok((subtracted, border)) => Ok(Prepared { others, subtracted, border }),
        Err(failure) => {
            let endings: Vec<Ending> = others.into_iter().map(|other| other.connection.hang_up()).collect();
            endings.into_iter().for_each(|ending| ending.wait(ssh::PATIENCE));
            Err(failure)
        }
    }
}

/// `failure` with the host that it concerns.
fn of_host(part: &Part, failure: &Failure) -> Failure {
    let failed = format!("{}: {failure}", ssh::about(part));
    if failure.status() == status::USAGE { Failure::usage(failed) } else { Failure::new(failed) }
}

/// Connects to the hosts of `parts` but the first and compares their clocks with the one here; `others` has them
/// whatever comes next. Returns what is taken off the propagation of each part.
fn connect_to_all(
    request: &RunRequest,
    parts: &[Part],
    install: bool,
    others: &mut Vec<Other>,
) -> Result<Vec<Subtracted>> {
    let mut subtracted = vec![Subtracted::default(); parts.len()];
    // Packets between two other hosts pass through this one.
    let mut before_ns = 0;
    for (number, part) in parts.iter().enumerate().skip(1) {
        let mut connection = ssh::connect(part, install)?;
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
    Ok(subtracted)
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
fn part_of(request: &RunRequest, part: &Part, subtracted: Subtracted) -> Result<RunRequest> {
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
    }
    for (asked, option) in [(request.as_root, "--as-root"), (request.confine, "--confine")] {
        if asked {
            arguments.push(option.into());
        }
    }
    arguments
}

/// Takes another engine's results; its files go into the folder of the run.
fn collect(channel: &Channel, other: &Other, out: Option<&Path>) -> Result<Collected> {
    let about = || ssh::about(&other.part);
    let Word::Finished { manifest, summary, before, behind, files } = channel.hear_word(RESULTS)? else {
        return Err(Failure::new(format!("{} did not tell what came of the run", about())));
    };
    if let Some(out) = out {
        let mut hear = || {
            Ok(match channel.hear(3 * SILENCE)? {
                Said::Word(word) => Piece::Word(*word),
                Said::Chunk(bytes) => Piece::Chunk(bytes),
            })
        };
        transfer::replace(&out.join(HOSTS).join(&other.part.name), files, &mut hear)?;
    }
    channel.say(&Word::Taken {});
    let wrong = |what: &str, error: serde_json::Error| Failure::new(format!("{}: its {what}: {error}", about()));
    let clock = other.clock()?;
    let config = other.part.config.as_ref();
    let subtracts = config.is_some_and(|config| config.subtract_delay);
    Ok(Collected {
        name: other.part.name.clone(),
        manifest: serde_json::from_value(*manifest).map_err(|error| wrong("manifest", error))?,
        summary: serde_json::from_value(*summary).map_err(|error| wrong("summary", error))?,
        before,
        behind,
        clock,
        about: json!({
            "ssh": config.map(|config| &config.ssh),
            "subtracted_delay_ns": if subtracts { other.delay.nanos() } else { 0 },
        }),
    })
}

/// Makes the folder of a run, with that of the parts; whether it was not there before.
fn make_folder(out: &Path) -> Result<bool> {
    let is_new = !out.exists();
    airpath_log::folder::create(out).map_err(Failure::log)?;
    fs::create_dir_all(out.join(HOSTS).join(HERE))
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", out.join(HOSTS).display())))?;
    Ok(is_new)
}

/// Takes back the folder of a run that has not begun.
fn take_back(request: &RunRequest, made: bool) {
    if let Some(out) = &request.out {
        let _ = fs::remove_dir_all(out.join(HOSTS));
        if made {
            let _ = fs::remove_dir(out);
        }
    }
}

/// Leaves a manifest of the whole that says which host failed and why. False if the run had not begun.
fn note_failure(whole: &RunRequest, local: &RunRequest, others: &[Other], failure: &Failure) -> bool {
    let (Some(out), Some(part)) = (&whole.out, &local.out) else { return true };
    let Ok(mut manifest) = Manifest::read(part) else { return false };
    manifest.status = Status::Failed;
    manifest.name_places(&places::places(&whole.machine));
    manifest.scenario_toml = whole.scenario.to_toml().unwrap_or_default();
    manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
    let failure = failure.to_string();
    // The message names the host; where it names none, all may be concerned.
    let is_it = |other: &Other| failure.contains(&format!("host `{}`", other.part.name));
    let none_named = !others.iter().any(is_it);
    let about = |other: &Other| {
        let mut about = json!({ "name": other.part.name, "folder": other.folder });
        if let (Ok(clock), Some(about)) = (other.clock(), about.as_object_mut()) {
            about.extend(gather::clock_account(&clock).as_object().cloned().unwrap_or_default());
        }
        if none_named || is_it(other) {
            about["failure"] = json!(failure);
        }
        about
    };
    manifest.hosts = others.iter().map(about).collect();
    if let Err(error) = manifest.write(out) {
        say!("airpath: {error}");
    }
    true
}
