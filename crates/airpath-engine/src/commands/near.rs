// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run whose later hops are on other hosts, as the host on which the command runs sees it.

mod collect;
mod folders;
mod prepare;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use airpath_clocks::{Estimate, identity};
use airpath_core::Span;
use airpath_log::files;
use airpath_scenario::{HERE, Part};
use nix::sys::eventfd::{EfdFlags, EventFd};

use self::collect::collect_all;
use self::folders::{make_folder, make_parts, note_death, note_failure, take_back};
use self::prepare::{part_of, prepare_all};
use super::fetch::{Fetcher, Recorded};
use super::gather::{self, Gathered, Joined};
use super::launch::{launch, open_json};
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::hosts::channel::{Border, Channels, Join};
use crate::hosts::clocks::Clocks;
use crate::hosts::interrupts::Interrupts;
use crate::hosts::ssh::{self, Connection, Ending};
use crate::link::{self, usage};
use crate::run::Report;
use crate::run::conclude::Finished;
use crate::run::lines::Lines;
use crate::run::{RunRequest, conclude, live, summary_of_links};
use crate::terminal::say;

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
                by_ssh: other.part.config.is_some(),
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
        let until = Instant::now() + ssh::SHORT_PATIENCE;
        channels.iter().for_each(|channels| channels.wait_for_ends(until));
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
