// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run whose last hops are on another host, as the host on which the command runs sees it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use airpath_core::{Direction, End, Span};
use airpath_live::clock;
use airpath_live::ports::PortKind;
use airpath_log::Manifest;
use airpath_log::manifest::Status;
use airpath_scenario::{HERE, Part, Scenario};
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde_json::{Value, json};

use super::fetch::{Fetcher, Leftovers};
use super::gather::{self, Collected, Gathered};
use super::launch::{launch, open_json};
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::hosts::channel::{Channel, Join};
use crate::hosts::clocks::Clocks;
use crate::hosts::mouth::{SILENCE, Said};
use crate::hosts::ssh::{self, Connection};
use crate::hosts::transfer::{self, Piece};
use crate::hosts::tunnel::{Ends, Tunnel};
use crate::hosts::wire::{Word, write_frame};
use crate::link::{self, usage};
use crate::run::Report;
use crate::run::{RunRequest, conclude, live};
use crate::seed::fresh_seed;
use crate::status;
use crate::terminal::say;

/// Number of comparisons of the clocks before a run.
const PROBES: usize = 32;

/// The other host of a run.
struct Other {
    part: Part,
    connection: Connection,
    clocks: Arc<Clocks>,
    tunnel: Option<Tunnel>,
    /// The folder of the run there.
    folder: String,
    /// Delay taken off the propagation at the border, in each direction.
    subtracted: Span,
}

/// Carries out `request`, whose path has two `parts`.
///
/// # Errors
/// When the other host or its engine cannot be had, or the run is not of the kind that may be on two hosts.
pub fn start(mut request: RunRequest, parts: [Part; 2], install: bool) -> Result<i32> {
    check(&request)?;
    open_json(&mut request)?;
    let [here, there] = parts;
    let made = request.out.as_deref().map(make_folder).transpose()?.unwrap_or(false);
    let mut other = prepare(&request, &here, there, install).inspect_err(|_| take_back(&request, made))?;
    let whole = request.clone();
    let (mut local, hops) = part_of(&request, here.hops.clone(), other.subtracted, Direction::Uplink)?;
    local.machine = link::machine(&local.scenario)?;
    local.part_of = Some(HERE.into());
    local.server = None;
    local.out = request.out.as_ref().map(|out| out.join(HOSTS).join(HERE));
    local.report = Report::Nothing;
    local.strict = false;
    local.manifest = None;
    local.json_file = None;
    debug_assert_eq!(hops, here.hops.len());
    let clone = |file: &fs::File| file.try_clone().map_err(|error| Failure::new(error.to_string()));
    let join = Join {
        end: End::Server,
        host: other.part.host.clone(),
        input: clone(&other.connection.input)?,
        output: clone(&other.connection.output)?,
        hops: hops_of(&request, &other.part)?,
        first_id: 1,
        tunnel: other.tunnel.clone(),
        clocks: Some(other.clocks.clone()),
    };
    let fetcher = Fetcher::start()?;
    // The engine's process tells this one that everything came.
    let taken = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .map_err(|errno| Failure::new(format!("cannot make an event: {errno}")))?;
    let begun = launch(local, |process, local| {
        let (mut channel, port) = match Channel::start(&join) {
            Ok(started) => started,
            Err(failure) => return told(&failure),
        };
        let outcome = live::run(&process, local, Some((&mut channel, port)));
        let finished = outcome.and_then(|outcome| conclude::finish(local, outcome));
        let there = finished.and_then(|finished| {
            let collected = collect(&channel, &other.part, whole.out.as_deref())?;
            let _ = taken.write(1);
            let hosts = account(&other, &channel, &collected)?;
            let gathered = Gathered { whole: &whole, local: finished, far: collected, hosts, part: &other.part };
            gather::conclude(gathered)
        });
        if let Some(clocks) = &channel.clocks {
            clocks.stop();
        }
        there.unwrap_or_else(|failure| {
            if !note_failure(&whole, local, &other, &failure) {
                take_back(&whole, made);
            }
            told(&failure)
        })
    });
    drop(join);
    let (part, folder) = (other.part.clone(), std::mem::take(&mut other.folder));
    // The engine there removes its folder at its end; this command ends no earlier.
    other.connection.close(if taken.read().is_ok() { ssh::PATIENCE } else { ssh::SHORT_PATIENCE });
    let status = begun.inspect_err(|_| take_back(&whole, made))?;
    let into = whole.out.as_ref().map(|out| out.join(HOSTS).join(&part.host));
    let missing = into.filter(|into| into.parent().is_some_and(Path::exists) && !into.join("run.json").exists());
    fetcher.finish(missing.map(|into| Leftovers { part, folder, into }));
    Ok(status)
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

/// Refuses what is not offered on two hosts.
fn check(request: &RunRequest) -> Result<()> {
    let refused = [
        (request.internet, "--internet"),
        (!request.host_ports.is_empty(), "--host-port"),
        (request.enclosing, "a run inside another link"),
    ];
    match refused.into_iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(Failure::usage(format!(
            "{what} is not available where hops are on several hosts (docs/scenario/hosts.md)"
        ))),
        None => Ok(()),
    }
}

/// Connects to the other host, compares the clocks, and tells its engine what to run.
fn prepare(request: &RunRequest, here: &Part, part: Part, install: bool) -> Result<Other> {
    let mut connection = ssh::connect(&part, install)?;
    let prepared = set_up(&mut connection, request, here, &part);
    match prepared {
        Ok(SetUp { clocks, tunnel, folder, subtracted }) => {
            Ok(Other { part, connection, clocks, tunnel, folder, subtracted })
        }
        Err(failure) => {
            connection.close(ssh::PATIENCE);
            let failed = format!("{}: {failure}", ssh::about(&part));
            Err(if failure.status() == status::USAGE { Failure::usage(failed) } else { Failure::new(failed) })
        }
    }
}

/// Agreement with the other host.
struct SetUp {
    clocks: Arc<Clocks>,
    tunnel: Option<Tunnel>,
    folder: String,
    subtracted: Span,
}

/// The tunnel to the host of `part`, if it is to have one, and what the other host is told of it.
fn tunnel(part: &Part) -> Result<(Option<Tunnel>, Option<Ends>)> {
    let Some(udp) = part.config.as_ref().and_then(|config| config.udp.as_ref()) else { return Ok((None, None)) };
    let address =
        |text: &str| text.parse::<SocketAddr>().map_err(|_| Failure::usage(format!("{text} is no address and port")));
    let (own, peer, token) = (address(&udp.local)?, address(&udp.remote)?, fresh_seed());
    let tunnel = Tunnel::open(&Ends { own, peer, token })?;
    Ok((Some(tunnel), Some(Ends { own: peer, peer: own, token })))
}

fn set_up(connection: &mut Connection, request: &RunRequest, here: &Part, part: &Part) -> Result<SetUp> {
    let broke = |error: io::Error| Failure::new(format!("the connection broke: {error}"));
    let clocks = Arc::new(Clocks::default());
    for _ in 0..PROBES {
        connection.say(&clocks.question()).map_err(broke)?;
        let Word::Told { number, receive_ns, transmit_ns, ahead_ns } = connection.hear()? else {
            return Err(Failure::new("it did not tell the time"));
        };
        clocks.told(number, receive_ns, transmit_ns, ahead_ns, clock::realtime_ns());
    }
    let subtracts = part.config.as_ref().is_some_and(|config| config.subtract_delay);
    let subtracted = if subtracts { Span::from_nanos(clocks.one_way_ns()) } else { Span::ZERO };
    // What does not fit is told before the other host has anything to do.
    part_of(request, here.hops.clone(), subtracted, Direction::Uplink)?;
    let (far, _) = part_of(request, part.hops.clone(), subtracted, Direction::Downlink)?;
    let files = far.scenario.files().map_err(usage)?;
    let name = |file: &Path| {
        let number = files.iter().position(|known| known == file)?;
        Some(format!("{number}-{}", file.file_name()?.to_string_lossy()))
    };
    let (tunnel, theirs) = tunnel(part)?;
    connection
        .say(&Word::Setup {
            host: part.host.clone(),
            scenario: far.scenario.to_toml_with_files(&name).map_err(usage)?,
            arguments: arguments(request),
            records: request.out.is_some(),
            udp: theirs,
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
        Word::Prepared { folder } => Ok(SetUp { clocks, tunnel, folder, subtracted }),
        _ => Err(Failure::new("it did not prepare the run")),
    }
}

/// The request for one part of the path, `hops`, with the network's delay taken off at the border; and the number of
/// its hops.
fn part_of(
    request: &RunRequest,
    hops: std::ops::Range<usize>,
    subtracted: Span,
    direction: Direction,
) -> Result<(RunRequest, usize)> {
    let mut scenario: Scenario = request.scenario.part(hops.clone());
    if subtracted > Span::ZERO {
        let hop = if direction == Direction::Uplink { hops.len() - 1 } else { 0 };
        scenario.subtract_propagation(hop, direction, subtracted).map_err(|why| {
            Failure::usage(format!("subtract_delay: {why}; write a longer constant, or leave subtract_delay out"))
        })?;
    }
    Ok((RunRequest { scenario, ..request.clone() }, hops.len()))
}

/// Options of `airpath exec` by which the other engine runs its part.
fn arguments(request: &RunRequest) -> Vec<String> {
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
    if let Some(server) = &request.server {
        add("--server", server.clone());
    }
    for (asked, option) in [(request.as_root, "--as-root"), (request.confine, "--confine")] {
        if asked {
            arguments.push(option.into());
        }
    }
    arguments
}

/// Takes the other engine's results; its files go into the folder of the run.
fn collect(channel: &Channel, part: &Part, out: Option<&Path>) -> Result<Collected> {
    let Word::Finished { manifest, summary, transit, files } = channel.hear_word(30 * SILENCE)? else {
        return Err(Failure::new(format!("{} did not tell what came of the run", ssh::about(part))));
    };
    if let Some(out) = out {
        let mut hear = || {
            Ok(match channel.hear(3 * SILENCE)? {
                Said::Word(word) => Piece::Word(*word),
                Said::Chunk(bytes) => Piece::Chunk(bytes),
            })
        };
        transfer::take(&out.join(HOSTS).join(&part.host), files, &mut hear)?;
    }
    channel.say(&Word::Taken {});
    let manifest = serde_json::from_value(*manifest)
        .map_err(|error| Failure::new(format!("{}: its manifest: {error}", ssh::about(part))))?;
    Ok(Collected { manifest, summary: *summary, transit })
}

/// The account of hosts for the manifest.
fn account(other: &Other, channel: &Channel, collected: &Collected) -> Result<Value> {
    let mut estimate = other.clocks.estimate()?;
    estimate.local.name = airpath_clocks::identity::host_name();
    estimate.local.identity = airpath_clocks::identity::written(airpath_clocks::identity::identity());
    estimate.remote.name = other.part.host.clone();
    estimate.remote.identity = other.connection.clock_identity.clone();
    let config = other.part.config.as_ref();
    Ok(json!({
        "name": other.part.host,
        "ssh": config.map(|config| &config.ssh),
        "hops": collected.manifest.hops,
        "clock": {
            "offset_ns": estimate.offset_ns,
            "bound_ns": estimate.bound_ns,
            "drift_ppm": estimate.drift_ppm,
            "drift_interval_ppm": estimate.drift_interval_ppm,
        },
        "clock_estimate": estimate,
        "network_delay": { "to_host": collected.transit, "from_host": channel.transit() },
        "subtracted_delay_ns": other.subtracted.nanos(),
        "lateness": collected.manifest.results.as_ref().map(|results| results.timings.lateness),
        "verdict": collected.manifest.results.as_ref().map(|results| &results.verdict),
    }))
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
fn note_failure(whole: &RunRequest, local: &RunRequest, other: &Other, failure: &Failure) -> bool {
    let (Some(out), Some(part)) = (&whole.out, &local.out) else { return true };
    let Ok(mut manifest) = Manifest::read(part) else { return false };
    manifest.status = Status::Failed;
    manifest.scenario_toml = whole.scenario.to_toml().unwrap_or_default();
    manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
    let about = json!({ "name": other.part.host, "folder": other.folder, "failure": failure.to_string() });
    manifest.hosts = vec![about];
    if let Err(error) = manifest.write(out) {
        say!("airpath: {error}");
    }
    true
}
