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
use airpath_live::ports::PortKind;
use airpath_live::{clock, side_by_side};
use airpath_log::manifest::Status;
use airpath_log::{Distribution, Manifest, files};
use airpath_scenario::{HERE, Part, Scenario};
use nix::sys::eventfd::{EfdFlags, EventFd};
use serde_json::json;

use super::fetch::{Fetcher, Recorded};
use super::gather::{self, Collected, Gathered, Joined};
use super::launch::{launch, open_json};
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::hosts::channel::{Border, Channel, Channels, Join};
use crate::hosts::clocks::Clocks;
use crate::hosts::interrupts::Interrupts;
use crate::hosts::mouth::{SILENCE, Said};
use crate::hosts::ssh::{self, Connection, Ending};
use crate::hosts::transfer::{self, Piece};
use crate::hosts::tunnel::{Ends, Tunnel};
use crate::hosts::wire::{Neighbour, Window, Word, write_frame};
use crate::link::{self, usage};
use crate::run::Report;
use crate::run::conclude::Finished;
use crate::run::lines::Lines;
use crate::run::{RunRequest, conclude, live, manifest as places, summary_of_links};
use crate::seed::fresh_seed;
use crate::server_ready::ServerReady;
use crate::status;
use crate::terminal::say;

/// Number of comparisons of the clocks before a run.
const PROBES: usize = 32;
/// Number of hosts to which this one connects at a time: an sshd refuses more than ten that have not logged in.
const AT_ONCE: usize = 8;
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

/// A link of the run: a path, alone or beside others.
struct Link {
    /// The request for the whole of it.
    request: RunRequest,
    /// Its parts by host, from the client on; the first is here.
    parts: Vec<Part>,
    /// The engines of the other parts.
    others: Vec<Other>,
    /// Delays taken off at the borders of its parts, once the hosts are known.
    subtracted: Vec<Subtracted>,
    /// The border to the second part; none where all of the link is here.
    border: Option<Border>,
}

impl Link {
    /// The links of `run`.
    fn all(run: &RunRequest) -> Result<Vec<Link>> {
        let link = |request: RunRequest| -> Result<Link> {
            // Links that share a medium are here as a whole.
            let placed = if request.scenario.is_placed() { request.scenario.placement().map_err(usage)? } else { None };
            let parts = placed.unwrap_or_default();
            Ok(Link { request, parts, others: Vec::new(), subtracted: Vec::new(), border: None })
        };
        run.links()?.into_iter().map(link).collect()
    }

    /// True if it goes on at another host.
    fn is_placed(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Its name among several.
    fn name(&self) -> &str {
        self.request.place.as_ref().map_or("", |place| &place.name)
    }

    /// The request for what is here.
    fn here(&self) -> Result<RunRequest> {
        let Some(here) = self.parts.first() else { return Ok(self.request.clone()) };
        let mut local = part_of(&self.request, here, self.subtracted[0])?;
        local.machine = link::machine(&local.scenario)?;
        local.part_of = Some(HERE.into());
        local.server = None;
        local.out = self.request.out.as_ref().map(|out| out.join(HOSTS).join(HERE));
        local.out_is_ours = false;
        local.report = Report::Nothing;
        local.strict = false;
        local.manifest = None;
        local.json_file = None;
        Ok(local)
    }

    /// The connections to the other hosts.
    fn joins(&self) -> Result<Vec<Join>> {
        let clone = |file: &fs::File| file.try_clone().map_err(|error| Failure::new(error.to_string()));
        let join = |other: &Other| -> Result<Join> {
            Ok(Join {
                host: other.part.name.clone(),
                input: clone(&other.connection.input)?,
                output: clone(&other.connection.output)?,
                hops: hops_of(&self.request, &other.part)?,
                clocks: Some(other.clocks.clone()),
                ssh_log: other.connection.ssh_log().map_err(|error| Failure::new(error.to_string()))?,
            })
        };
        self.others.iter().map(join).collect()
    }

    /// Processes that copy what the other hosts record.
    fn fetchers(&self) -> Result<Vec<Fetcher>> {
        let Some(out) = &self.request.out else { return Ok(Vec::new()) };
        let recorded = |other: &Other| Recorded {
            part: other.part.clone(),
            folder: other.folder.clone(),
            into: out.join(HOSTS).join(&other.part.name),
        };
        self.others.iter().map(|other| Fetcher::start(&recorded(other))).collect()
    }

    /// True if it has begun, as far as files tell: a run that did not begin has no folder any more.
    fn has_begun(&self) -> bool {
        self.request.out.as_ref().is_some_and(|out| out.join(files::MANIFEST).exists())
    }

    /// True if the part on this host has begun, whatever there is of the whole.
    fn has_begun_here(&self) -> bool {
        let part = |out: &PathBuf| out.join(HOSTS).join(HERE).join(files::MANIFEST);
        self.request.out.as_ref().map(part).is_some_and(|manifest| manifest.exists())
    }
}

/// Carries out `run`, which has hops on other hosts.
///
/// # Errors
/// When another host or its engine cannot be had, or the run is not of the kind that may be on several hosts.
pub fn start(mut run: RunRequest, install: bool) -> Result<i32> {
    check(&run)?;
    open_json(&mut run)?;
    let absolute = |out: &PathBuf| std::path::absolute(out);
    run.out = run.out.as_ref().map(absolute).transpose().map_err(|error| Failure::new(error.to_string()))?;
    let mut links = Link::all(&run)?;
    let interrupts = Interrupts::begin()?;
    let made = make_folder(&run)?;
    let prepared = prepare_all(&mut links, install, &interrupts)
        .and_then(|()| make_parts(&run, &links))
        .and_then(|()| interrupts.check());
    prepared.inspect_err(|_| take_back(&run, &links, made))?;
    drop(interrupts);
    let begun = begin(&run, &links, made);
    if begun.is_ok() {
        note_death(&links)?;
        if !links.iter().any(|link| link.has_begun() || link.has_begun_here()) {
            take_back(&run, &links, made);
        }
    }
    let mut taken = begun.as_ref().map_or(Vec::new(), |ended| ended.taken.clone()).into_iter();
    let others = links.iter_mut().flat_map(|link| std::mem::take(&mut link.others));
    let endings: Vec<Ending> = others.map(|other| other.connection.hang_up()).collect();
    for ending in endings {
        // The engine there removes its folder at its end; this command ends no earlier.
        ending.wait(if taken.next() == Some(true) { ssh::PATIENCE } else { ssh::SHORT_PATIENCE });
    }
    let Ended { status, taken, fetchers } = begun.inspect_err(|_| take_back(&run, &links, made))?;
    let mut taken = taken.as_slice();
    for (link, fetchers) in links.iter().zip(fetchers) {
        let (own, rest) = taken.split_at(link.parts.len().saturating_sub(1));
        taken = rest;
        for (fetcher, is_taken) in fetchers.into_iter().zip(own) {
            fetcher.finish(link.has_begun() && !is_taken);
        }
        if let Some(out) = link.request.out.as_ref().filter(|_| link.is_placed() && link.has_begun())
            && let Err(why) = gather::join_remains(&link.request, out)
        {
            say!("airpath: the parts of the log are not joined: {why}; each is in {}", out.join(HOSTS).display());
        }
    }
    Ok(status)
}

/// A run that has ended.
struct Ended {
    /// For each of the others of all links, whether its results came.
    taken: Vec<bool>,
    /// The exit status.
    status: i32,
    /// For each of the others of each link, who fetches what did not come; none where nothing is recorded.
    fetchers: Vec<Vec<Fetcher>>,
}

/// Runs what is on this host, and with it the whole.
fn begin(run: &RunRequest, links: &[Link], made: bool) -> Result<Ended> {
    let locals = links.iter().map(Link::here).collect::<Result<Vec<RunRequest>>>()?;
    // Folders are made already, and so is the file for the summary.
    let process_of = RunRequest { out: None, json_file: None, ..run.clone() };
    let joins = links.iter().map(Link::joins).collect::<Result<Vec<_>>>()?;
    let fetchers = links.iter().map(Link::fetchers).collect::<Result<Vec<_>>>()?;
    // The engine's process tells this one whose results came.
    let flag = |_| EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
    let others = links.iter().flat_map(|link| &link.others);
    let taken: Vec<EventFd> = (others.map(flag).collect::<std::result::Result<_, _>>())
        .map_err(|errno| Failure::new(format!("cannot make an event: {errno}")))?;
    let launched = launch(process_of, |process, _| {
        let placed = || links.iter().filter(|link| link.is_placed());
        let borders: Vec<&[Border]> = links.iter().map(|link| link.border.as_slice()).collect();
        let of_links = joins.iter().zip(borders).filter(|(_, borders)| !borders.is_empty());
        let of_links: Vec<(&[Join], &[Border])> =
            of_links.map(|(joins, borders)| (joins.as_slice(), borders)).collect();
        let started = match Channels::start_all(&of_links, 0) {
            Ok(started) => started,
            Err(failure) => return told(&failure),
        };
        let (mut channels, ports): (Vec<Channels>, Vec<_>) = started.into_iter().unzip();
        let joined: Vec<Option<live::Joined<'_>>> = {
            let mut joined = channels.iter_mut().zip(ports);
            links.iter().map(|link| if link.is_placed() { joined.next() } else { None }).collect()
        };
        let whole = match locals.as_slice() {
            [only] if links[0].is_placed() => only,
            _ => run,
        };
        let stop_fetchers = || fetchers.iter().flatten().for_each(Fetcher::stop);
        let concluded = live::run_links(&process, whole, &locals, joined).and_then(|outcomes| {
            let finish = |(local, outcome): (&RunRequest, Result<_>)| {
                outcome.and_then(|outcome| conclude::finish(local, outcome))
            };
            let finished: Vec<Result<Finished>> = locals.iter().zip(outcomes).map(finish).collect();
            stop_fetchers();
            let mut collected = Vec::new();
            for ((link, channels), taken) in placed().zip(&channels).zip(by_link(links, &taken)) {
                collected.push(collect_all(link, channels, taken));
            }
            let mut collected = collected.into_iter();
            let mut results = Vec::new();
            for ((link, local), finished) in links.iter().zip(&locals).zip(finished) {
                let collected = if link.is_placed() { collected.next() } else { None };
                results.push(match (finished, collected) {
                    (Ok(local), Some(Ok((others, behind)))) => {
                        gather::join(Gathered { whole: &link.request, local, behind, others })
                    }
                    (Err(failure), Some(_)) | (Ok(_), Some(Err(failure))) => {
                        if links.len() > 1 {
                            note_failure(link, local, &failure);
                        }
                        Err(failure)
                    }
                    (finished, None) => finished.map(|finished| Joined { finished, hosts: Vec::new() }),
                });
            }
            report(run, links, results)
        });
        channels.iter().for_each(Channels::stop_asking);
        concluded.unwrap_or_else(|failure| {
            stop_fetchers();
            let has_begun =
                |(link, local): (&Link, &RunRequest)| link.is_placed() && note_failure(link, local, &failure);
            if links.iter().zip(&locals).filter(|link| has_begun(*link)).count() == 0 {
                take_back(run, links, made);
            }
            told(&failure)
        })
    });
    let status = match launched {
        Ok(status) => status,
        Err(failure) => {
            fetchers.into_iter().flatten().for_each(|fetcher| fetcher.finish(false));
            return Err(failure);
        }
    };
    Ok(Ended { taken: taken.iter().map(|taken| taken.read().is_ok()).collect(), status, fetchers })
}

/// `all` of the others, by link that has such.
fn by_link<'a, T>(links: &'a [Link], mut all: &'a [T]) -> impl Iterator<Item = &'a [T]> {
    links.iter().filter(|link| link.is_placed()).map(move |link| {
        let (own, rest) = all.split_at(link.others.len());
        all = rest;
        own
    })
}

/// Prints what was asked for about the results of `links`, and returns the exit status.
fn report(run: &RunRequest, links: &[Link], results: Vec<Result<Joined>>) -> Result<i32> {
    let mut lines = Vec::new();
    let mut finished = Vec::with_capacity(results.len());
    for (link, result) in links.iter().zip(results) {
        let before = if link.name().is_empty() { String::new() } else { format!("{}: ", link.name()) };
        finished.push(result.map(|Joined { finished, hosts }| {
            lines.extend(hosts.into_iter().map(|line| format!("{before}{line}")));
            finished
        }));
    }
    let status = match links {
        [only] => {
            let one = finished.pop().unwrap_or_else(|| Err(Failure::new("the engine lost its link")))?;
            conclude::report(&only.request, &one)
        }
        _ => {
            let requests: Vec<&RunRequest> = links.iter().map(|link| &link.request).collect();
            summary_of_links::report_finished(run, &requests, finished)
        }
    };
    if run.report == Report::Summary {
        lines.iter().for_each(|line| say!("{line}"));
    }
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

/// Connects to the other hosts of all `links`, compares the clocks, and tells their engines what to run.
fn prepare_all(links: &mut [Link], install: bool, interrupts: &Interrupts) -> Result<()> {
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

/// Takes the results of the other engines of `link`, and the delays of packets from the second part to this one; `taken`
/// is told whose came.
///
/// # Errors
/// A host that is lost, or that tells something else.
fn collect_all(link: &Link, channels: &Channels, taken: &[EventFd]) -> Result<(Vec<Collected>, Distribution)> {
    if let Some(why) = channels.gone() {
        return Err(Failure::new(why.to_owned()));
    }
    let mut collected = Vec::with_capacity(link.others.len());
    for ((channel, other), taken) in channels.all.iter().zip(&link.others).zip(taken) {
        collected.push(collect(channel, other, link.request.out.as_deref())?);
        let _ = taken.write(1);
    }
    Ok((collected, channels.transit(End::Server)))
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

/// Makes the folder of a run; whether it was not there before.
fn make_folder(run: &RunRequest) -> Result<bool> {
    let Some(out) = &run.out else { return Ok(false) };
    let is_new = !out.exists();
    airpath_log::folder::create(out).map_err(Failure::log)?;
    Ok(is_new)
}

/// Makes the folders of the links of a run and of their parts, once the other hosts have answered: whoever gives up
/// before leaves an empty folder, whose name can be used again.
fn make_parts(run: &RunRequest, links: &[Link]) -> Result<()> {
    let Some(out) = &run.out else { return Ok(()) };
    for link in links {
        let Some(own) = &link.request.out else { continue };
        if own != out {
            airpath_log::folder::create(own).map_err(Failure::log)?;
        }
        if link.is_placed() {
            fs::create_dir_all(own.join(HOSTS).join(HERE))
                .map_err(|error| Failure::new(format!("cannot make {}: {error}", own.join(HOSTS).display())))?;
        }
    }
    Ok(())
}

/// Takes back the folders of a run that has not begun.
fn take_back(run: &RunRequest, links: &[Link], made: bool) {
    let Some(out) = &run.out else { return };
    for link in links {
        let Some(own) = &link.request.out else { continue };
        if link.is_placed() {
            let _ = fs::remove_dir_all(own.join(HOSTS));
        }
        if own != out {
            let _ = fs::remove_dir(own);
        }
    }
    if made {
        let _ = fs::remove_dir(out);
    }
}

/// Notes where the engine's process of this host was killed: it left no manifest of the whole, and what the other hosts
/// recorded is still to be fetched.
fn note_death(links: &[Link]) -> Result<()> {
    let died = Failure::new("the engine's process on the host of the command was killed");
    for link in links.iter().filter(|link| link.is_placed() && !link.has_begun()) {
        note_failure(link, &link.here()?, &died);
    }
    Ok(())
}

/// Leaves a manifest of the whole link that says which host failed and why. False if the run had not begun.
fn note_failure(link: &Link, local: &RunRequest, failure: &Failure) -> bool {
    let Link { request: whole, others, .. } = link;
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
