// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A live run inside the engine process.

use std::ffi::OsString;

use airpath_core::{End, EventKinds, PduId, Seed};
use airpath_live::clock;
use airpath_live::command::CommandEnd;
use airpath_live::end_waits::{Party, Register};
use airpath_live::engine_loop::{FinishedLink, LiveLink, LoopReport, PortLosses};
use airpath_live::link_watch::LinkWatch;
use airpath_live::ports::Port;
use airpath_live::processor_time::{ProcessorShares, ProcessorTime};
use airpath_live::session::{ServerEnds, SessionEnd, SessionReport};
use airpath_live::supervise::EngineProcess;
use airpath_live::tcp_state::{self, Mode as TcpStateMode, Sampler};
use airpath_live::tuning::Told;
use airpath_live::{host_port, internet, open_files, side_by_side};
use airpath_log::manifest::{Privilege, Status, TcpStateRun};
use airpath_log::{Clock, EndResults, Manifest, Overflow, Recorder, Writer, WriterOptions};

use super::control::Control;
use super::ends::{self, EndsWatch};
use super::files::KeptFiles;
use super::gateway;
use super::interfaces;
use super::lines::{ActiveLines, Lines};
use super::live_manifest::{first_manifest, write_manifest};
use super::loops::{Loops, why_lost};
use super::outcome::LiveOutcome;
use super::pace::Pace;
use super::request::{Gateway, Report, RunRequest};
use super::users::{self, Ends, Made};
use super::workload::{Client, Ended, Server, Started, Whose, Workload};
use crate::control::around::Around;
use crate::error::{Failure, Result};
use crate::hosts::channel::{Channel, Channels};
use crate::terminal::say;

/// Variable that tells commands the path of the serial line.
const LINE_VARIABLE: &str = "AIRPATH_PPP_LINE";

/// The engines of other hosts, and the ports behind which the path goes on there, each with its end.
pub type Joined<'a> = (&'a mut Channels, Vec<(End, Port)>);

/// Carries out `request`, with the engines of other hosts if the path goes on there, and returns what it left, with the
/// log still open.
///
/// # Errors
/// When the namespaces, the ports, the folder or the server's command cannot be had, or the link
/// breaks. Then the log of a run that had begun is finished, and that of any other is taken back.
pub fn run(process: &EngineProcess, request: &RunRequest, joined: Option<Joined<'_>>) -> Result<LiveOutcome> {
    let mut outcomes = run_links(process, request, std::slice::from_ref(request), vec![joined])?;
    outcomes.pop().unwrap_or_else(|| Err(Failure::new("the engine lost its link")))
}

/// Carries out all `links` of `run` together, each with the engines of other hosts if it goes on there, and returns what
/// each left; of one that was lost in the midst of the run, why.
///
/// # Errors
/// As [`run`].
pub fn run_links(
    process: &EngineProcess,
    run: &RunRequest,
    links: &[RunRequest],
    joined: Vec<Option<Joined<'_>>>,
) -> Result<Vec<Result<LiveOutcome>>> {
    let (mut recorders, mut writers) = (Vec::with_capacity(links.len()), Vec::with_capacity(links.len()));
    if links.len() > 1 {
        open_files::allow_most();
    }
    let mut begun = None;
    let opened = links.iter().try_for_each(|link| {
        let (recorder, writer) = open_log(link)?;
        recorders.push(recorder);
        writers.push(writer);
        Ok(())
    });
    match opened.and_then(|()| carry_out(process, (run, links), joined, (recorders, &writers), &mut begun)) {
        Ok(carried) => {
            let mut begun = begun.into_iter().flatten();
            let outcomes = carried.into_iter().zip(writers).zip(links).map(|((carried, writer), link)| {
                let manifest = begun.next();
                match carried {
                    Ok(carried) => Ok(carried.with(writer)),
                    Err(failure) => {
                        end_files(link, writer);
                        if let Some(manifest) = manifest {
                            write_manifest(link, &Manifest { status: Status::Failed, ..manifest });
                        }
                        Err(failure)
                    }
                }
            });
            Ok(outcomes.collect())
        }
        Err(failure) => {
            let failure = if links.len() > 1 { failure.of_users(run.clients.len()) } else { failure };
            links.iter().zip(writers).for_each(|(link, writer)| end_files(link, writer));
            let mut begun = begun.into_iter().flatten();
            for (link, folder) in links.iter().filter_map(|link| Some((link, link.out.as_ref()?))) {
                match begun.next() {
                    Some(manifest) => write_manifest(link, &Manifest { status: Status::Failed, ..manifest }),
                    None => airpath_log::folder::take_back(folder, link.out_is_ours)
                        .unwrap_or_else(|error| say!("airpath: {error}")),
                }
            }
            Err(failure)
        }
    }
}

/// Results of a link except for its log.
struct Carried {
    commands: Commands,
    ends: EndResults,
    losses: PortLosses,
    link: FinishedLink,
    report: LoopReport,
    shares: ProcessorShares,
    manifest: Manifest,
}

impl Carried {
    fn with(self, writer: Writer) -> LiveOutcome {
        let Carried { commands: Commands { clients, servers }, ends, losses, link, report, shares, manifest } = self;
        LiveOutcome { clients, servers, ends, losses, link, report, shares, manifest, writer }
    }
}

/// Ends of the commands of a link.
struct Commands {
    clients: Vec<Ended>,
    servers: Vec<Option<CommandEnd>>,
}

/// A link that is ready to begin.
struct Ready<'a> {
    request: &'a RunRequest,
    writer: &'a Writer,
    ends: Ends,
    lines: Option<ActiveLines>,
    sampler: Option<Sampler>,
    manifest: Manifest,
    /// Names of its ends, in the order of its ports.
    names: Vec<String>,
}

impl Ready<'_> {
    /// The ends that have an interface.
    fn interfaces(&self) -> Vec<&SessionEnd> {
        self.ends.of_ports().filter(|end| end.has_interface()).collect()
    }
}

/// Gets a link ready, whose ends are made.
fn prepare<'a>(
    process: &EngineProcess,
    request: &'a RunRequest,
    (recorder, writer): (Recorder, &'a Writer),
    made: Made,
    first_id: Option<PduId>,
) -> Result<(LiveLink, Ready<'a>)> {
    let Made { ends, ports, report, lines } = made;
    let files = KeptFiles::keep(&request.scenario, request.out.as_deref())?;
    tell_lines(request, lines.as_ref());
    let (sampler, tcp_state) = start_sampler(request, &ends)?;
    let machine = request.machine.build(Seed(request.seed));
    let link = LiveLink::new(machine, ports, recorder, request.lateness_bound)
        .with_places_per_user(request.places().stride())
        .notifying(sampler.as_ref().map(Sampler::traffic_notifier));
    let link = match first_id {
        Some(first_id) => link.with_first_id(first_id),
        None => link,
    };
    let mut manifest = first_manifest(request, &files);
    manifest.tcp_state = tcp_state;
    manifest.settings.insert("confined".into(), request.confine.into());
    note_session(&mut manifest, process, &report);
    if let Some(joined) = &ends.surroundings {
        manifest.settings.insert("mtu_bytes".into(), joined.mtu_bytes.into());
        manifest.settings.insert("gateway".into(), joined.facts.clone());
    }
    let names = match &request.lines {
        Lines::Relay { .. } => [End::Client, End::Server].map(|end| format!("{end}'s end")).into(),
        _ => ends.of_ports().map(|end| end.to_string()).collect(),
    };
    if report.ipv4_only
        && let Some(reason) = &report.ipv4_only_reason
        && request.report != Report::Nothing
    {
        say!("airpath: {reason}");
    }
    Ok((link, Ready { request, writer, ends, lines, sampler, manifest, names }))
}

/// Everything from the namespaces to the end of the loop; `begun` gets the manifests at t = 0.
fn carry_out<'a>(
    process: &EngineProcess,
    (run, links): (&RunRequest, &'a [RunRequest]),
    joined: Vec<Option<Joined<'_>>>,
    (recorders, writers): (Vec<Recorder>, &'a [Writer]),
    begun: &mut Option<Vec<Manifest>>,
) -> Result<Vec<Result<Carried>>> {
    let mut made = users::create_all(links)?;
    let mut of_links = Vec::with_capacity(links.len());
    let mut answers = Vec::with_capacity(links.len());
    for (Made { ends, ports, .. }, joined) in made.iter_mut().zip(joined) {
        let joined = joined.map(|(channels, joined)| {
            answers.push(channels.all.iter_mut().filter_map(Channel::take_answers).collect::<Vec<_>>());
            for (end, port) in joined {
                ends.joined.push(end);
                ports[usize::from(end.port().0)] = port;
            }
            &*channels
        });
        of_links.push(joined);
    }
    let first_ids: Vec<_> = of_links.iter().map(|channels| channels.map(|channels| channels.first_id)).collect();
    let parts = links.iter().zip(writers).zip(recorders).zip(made).zip(first_ids).collect();
    let prepared = side_by_side::map(parts, |_, ((((request, writer), recorder), made), first_id)| {
        prepare(process, request, (recorder, writer), made, first_id)
    });
    let (mut live, mut ready) = (Vec::with_capacity(links.len()), Vec::with_capacity(links.len()));
    for prepared in prepared {
        let (link, one) = prepared?;
        live.push(link);
        ready.push(one);
    }
    let (loops, timing) = Loops::start(run, live)?;
    // Nothing of the host comes into a guest while its time runs.
    let control = (run.clock == Clock::Live)
        .then(|| {
            let mut answers = answers.into_iter();
            let mut with_answers = |channels| Some((channels, answers.next()?));
            let joined = of_links.iter().map(|channels| channels.and_then(&mut with_answers)).collect();
            Control::start(run, links, loops.reach(), joined)
        })
        .transpose();
    if let (Some(policy), Some((_, outcome))) = (run.asked_policy, refused_policy(&timing)) {
        say!("airpath: --policy {policy} was {outcome}; continuing without it");
    }
    for Ready { manifest, request, .. } in &mut ready {
        let told = timing.iter().cloned();
        manifest.privileges.extend(told.map(|(name, outcome)| Privilege { name, outcome }));
        if let Err(error) = &control {
            manifest.settings.insert("control".into(), format!("none: {error}").into());
        }
        if let Some(place) = &request.place {
            manifest.settings.insert("link".into(), place.name.clone().into());
            manifest.settings.insert("links".into(), links.len().into());
            manifest.settings.insert("loops".into(), loops.count().into());
        }
    }
    let watch = LinkWatch::start(&ready.iter().flat_map(Ready::interfaces).collect::<Vec<_>>());
    let before = ProcessorTime::now();
    let told = Around::environment(
        control
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .filter(|control| control.number > 0)
            .map(|control| (control.number, control.folder.as_path())),
    );
    let of_line = ready.iter().filter_map(|link| Some((LINE_VARIABLE.into(), link.lines.as_ref()?.shown().into())));
    let environment =
        std::iter::once(told).chain(users::environment(run)).chain(run.environment.clone()).chain(of_line).collect();
    let all_channels: Vec<&Channels> = of_links.iter().copied().flatten().collect();
    let pace = Pace::new(all_channels.clone(), loops.stopped(), links.len());
    let stage = Stage { process, run, links: &ready, loops: &loops, environment, pace: pace.as_ref() };
    let ended = run_commands(&stage, |start_unix_ns| {
        let manifests = ready.iter().map(|link| Manifest { start_unix_ns, ..link.manifest.clone() });
        let manifests: Vec<Manifest> = manifests.collect();
        links.iter().zip(&manifests).for_each(|(link, manifest)| write_manifest(link, manifest));
        *begun = Some(manifests);
    });
    let all: Vec<String> = ready.iter().flat_map(|link| link.names[..link.interfaces().len()].to_vec()).collect();
    let mut news = interfaces::news(watch, &all).into_iter();
    let mut news: Vec<_> = ready
        .iter()
        .map(|link| interfaces::of_ports(news.by_ref().take(link.interfaces().len()).collect(), &link.request.lines))
        .collect();
    drop(control);
    ready.iter_mut().filter_map(|link| link.sampler.as_mut()).for_each(Sampler::stop);
    let gone = ready.iter().zip(&news).map(|(link, news)| interfaces::why_gone(&link.names, news));
    let gone: Vec<String> = gone.collect();
    let stopped = loops.stop();
    // Without one of its hosts a path is lost; where there are others, these go on.
    let hosts_gone: Vec<Option<&str>> =
        of_links.iter().map(|channels| channels.and_then(|channels| channels.gone())).collect();
    if let Some(why) = hosts_gone.iter().flatten().next()
        && (ended.is_err() || hosts_gone.iter().all(Option::is_some))
    {
        stopped.into_iter().flatten().for_each(|(finished, _)| end_log(finished));
        return Err(Failure::new((*why).to_owned()));
    }
    let shares = ProcessorTime::now().since(&before);
    let manifests = begun.clone().unwrap_or_default();
    let mut carried = Vec::with_capacity(links.len());
    // Only now: the run does not last until a disk has taken the files.
    let recorded: Vec<Option<TcpStateRun>> = ready
        .iter_mut()
        .map(|link| {
            let recorded = link.sampler.take().map(Sampler::finish);
            recorded.iter().for_each(|recorded| tell_incomplete(link.request, recorded));
            recorded
        })
        .collect();
    // A loop that stopped of itself knows best what went wrong, and so does one that lost its links.
    let stopped = stopped?;
    if stopped.iter().all(|(finished, _)| finished.lost.is_some())
        && let Some((error, gone)) = stopped.first().and_then(|(finished, _)| finished.lost.as_ref()).zip(gone.first())
    {
        let failure = why_lost(error, gone);
        stopped.into_iter().for_each(|(finished, _)| end_log(finished));
        return Err(failure);
    }
    for ((((link, manifest), recorded), (mut finished, report)), (results, commands)) in
        ready.iter().zip(manifests).zip(recorded).zip(stopped).zip(ended?)
    {
        let tcp_state = recorded.or(manifest.tcp_state);
        // Counters go with their interface.
        let losses = PortLosses::read(&mut finished.ports);
        let host_gone = hosts_gone[carried.len()].map(|why| Failure::new(why.to_owned()));
        let is_lost = || finished.lost.as_ref().map(|error| why_lost(error, &gone[carried.len()]));
        if let Some(failure) = host_gone.or_else(is_lost) {
            carried.push(Err(failure));
            end_log(finished);
            continue;
        }
        let news = std::mem::take(&mut news[carried.len()]);
        let ends = interfaces::with_changes(results, &link.names, news, &mut finished.ports);
        if link.request.gateway.is_some() {
            finished.ports.iter_mut().for_each(|port| port.remove_interface());
        } else if link.request.enclosing {
            // The server's end is in somebody else's namespace: leave it as it was before this returns.
            finished.ports.iter_mut().skip(1).step_by(2).for_each(|port| port.remove_interface());
        }
        let manifest = Manifest { tcp_state, ..manifest };
        carried.push(Ok(Carried { commands, ends, losses, link: finished, report, shares, manifest }));
    }
    // The kernel takes its time to let go of namespaces.
    side_by_side::map(ready, |_, link| drop(link));
    Ok(carried)
}

/// Outcome of the request for real-time scheduling, if the kernel refused it.
fn refused_policy(told: &[Told]) -> Option<&Told> {
    told.iter().find(|(name, outcome)| name.starts_with("SCHED_") && outcome.starts_with("refused"))
}

/// Surroundings of the commands.
struct Stage<'a> {
    process: &'a EngineProcess,
    run: &'a RunRequest,
    links: &'a [Ready<'a>],
    loops: &'a Loops,
    /// Additional environment of the commands.
    environment: Vec<(OsString, OsString)>,
    /// Steps that are taken together with the engine of another host.
    pace: Option<&'a Pace<'a>>,
}

/// The servers' commands, then the clients'. `begun` is told when t = 0 was, in nanoseconds since
/// 1970, once the clients' commands are on their way: a slow disk must not stand between the two.
/// In virtual time that is before the commands.
fn run_commands(stage: &Stage<'_>, begun: impl FnOnce(u64)) -> Result<Vec<(EndResults, Commands)>> {
    let Stage { process, run, links, loops, environment, pace } = stage;
    let register = Register::default();
    links.iter().enumerate().try_for_each(|(number, link)| connect(link, number, &register))?;
    let mut workload = Workload::new(process, register, environment.clone());
    let mut interrupted = None;
    let users: Vec<_> = links.iter().map(|link| link.ends.users_of_servers()).collect();
    let mut servers = Vec::new();
    if let Some(line) = &run.server {
        for (number, (Ready { request, ends, .. }, users)) in links.iter().zip(&users).enumerate() {
            if ends.is_server_elsewhere() {
                continue;
            }
            for (place, (server, user)) in ends.server_namespaces().iter().zip(users).enumerate() {
                let clients: Vec<&SessionEnd> = match (request.server_ends, user) {
                    // A peer on a line has the addresses that PPP gave it, and a command beside it those alone.
                    _ if request.lines.replace(End::Client) => Vec::new(),
                    (ServerEnds::Each, Some(_)) => vec![&ends.clients[place]],
                    _ => ends.clients.iter().collect(),
                };
                // What starts the peer on a line need not listen.
                let timeout = (!request.lines.replace(End::Server)).then_some(request.server_timeout);
                let whose = Whose { link: number, user: *user };
                let forwarded = request.host_ports.iter().map(|port| port.port).collect();
                servers.push(Server { end: server, clients, whose, line, timeout, forwarded });
            }
        }
    }
    for server in workload.start_servers(servers, &run.server_ready)? {
        interrupted = workload.wait_for_server(server)?;
        if interrupted.is_some() {
            break;
        }
    }
    let lines = links.iter().find_map(|link| link.lines.as_ref());
    if let (Some(options), Some(lines), None) = (run.lines.ppp(), lines, interrupted) {
        // A client's command may be what starts the peer.
        if options.end == End::Server || run.clients.iter().all(Vec::is_empty) {
            interrupted = workload.wait_for_line(lines, options.ppp.timeout, loops.stopped())?;
        }
    }
    let unmeasured = ends::measure_waits(run, &mut workload, links.len());
    let namespaces: Vec<Vec<&SessionEnd>> = links.iter().map(|link| link.ends.namespaces()).collect();
    let watches: Vec<EndsWatch> = side_by_side::map(namespaces.iter().collect(), |_, ends| EndsWatch::begin(run, ends));
    let (start_unix_ns, start_ns) = match pace {
        Some(pace) => pace.agree(&mut workload)?,
        None => (clock::realtime_ns(), clock::monotonic_ns()),
    };
    links.iter().for_each(|link| link.writer.set_start(start_unix_ns));
    loops.begin(start_ns);
    links.iter().filter_map(|link| link.sampler.as_ref()).for_each(|sampler| sampler.begin(start_ns));
    pace.map_or(Ok(()), Pace::begun)?;
    let mut begun = Some(begun);
    let mut begin = || begun.take().into_iter().for_each(|begun| begun(start_unix_ns));
    // In a guest no disk is slow, but a command that never sleeps lets nobody write anything any more.
    if run.clock == Clock::Warp {
        begin();
    }
    let clients: Vec<Client<'_>> = links
        .iter()
        .enumerate()
        .flat_map(|(number, Ready { request, ends, .. })| {
            let of_users = ends.clients.iter().zip(&request.clients).enumerate();
            of_users.map(move |(user, (end, words))| Client {
                end,
                whose: Whose { link: number, user: ends.users.get(user) },
                words,
                beside: run.foreground.is_some() && request.foreground != Some(user),
            })
        })
        .collect();
    let started: Vec<Started> = match interrupted {
        Some(ended) => clients.iter().map(|_| Started::Ended(ended)).collect(),
        None => workload.start_clients(&clients),
    };
    begin();
    pace.map_or(Ok(()), |pace| pace.wait_for_client(&mut workload))?;
    let has_ended = match &run.gateway {
        Some(gateway) => {
            let surroundings = links.iter().filter_map(|link| link.ends.surroundings.as_ref());
            let awaited: Vec<_> = surroundings.flat_map(|around| around.awaited.clone()).collect();
            gateway::wait(gateway, &awaited, &mut workload, loops.stopped())?
        }
        None => interrupted.is_some() || workload.wait_for_clients(loops, lines)?,
    };
    if !has_ended {
        return Err(Failure::new("the engine's loop stopped unexpectedly"));
    }
    let waits = match unmeasured {
        Some(why) => Err(why),
        None => ends::measured_waits(&mut workload),
    };
    workload.end_companions()?;
    let mut clients = workload.ends_of(&started).into_iter();
    let servers = match pace {
        Some(pace) => pace.end_servers(&mut workload, run.server_grace)?,
        None => workload.end_servers(run.server_grace)?,
    };
    let mut servers = servers.into_iter();
    let failures: Vec<_> = (0..links.len()).map(|link| workload.failures(link)).collect();
    let of_links = watches.into_iter().zip(&namespaces).zip(failures).collect();
    let finished =
        side_by_side::map(of_links, |link, ((watch, ends), failures)| watch.finish(link, failures, &waits, ends));
    let results = links.iter().zip(&users).zip(finished).map(|((link, users), ends)| {
        let clients = clients.by_ref().take(link.ends.clients.len()).collect();
        let count = if link.ends.is_server_elsewhere() { 0 } else { users.len() };
        let servers = servers.by_ref().take(count).collect();
        (ends, Commands { clients, servers })
    });
    Ok(results.collect())
}

/// Connects the ends of the link of this number with the host's network, as far as that was asked for.
fn connect(Ready { request, ends, .. }: &Ready<'_>, link: usize, register: &Register) -> Result<()> {
    if request.internet && !request.enclosing {
        for server in ends.server_namespaces() {
            let helper = internet::connect(server, request.mtu_bytes).map_err(Failure::live)?;
            register.enter(helper as i32, Party::Relay, link);
        }
    }
    let names = request.users();
    for port in &request.host_ports {
        for (server, name) in ends.servers.iter().zip(&names) {
            // A user alone was asked for by name before, if at all.
            if names.len() == 1 || port.user.as_ref().is_none_or(|user| user == name) {
                host_port::forward(server, port).map_err(Failure::live)?;
            }
        }
    }
    if let Some(surroundings) = &ends.surroundings {
        gateway::enter(surroundings, register);
    }
    Ok(())
}

/// Tells where peers find pseudo-terminals of the run's own.
fn tell_lines(request: &RunRequest, lines: Option<&ActiveLines>) {
    let (Some(lines), false) = (lines, request.report == Report::Nothing) else { return };
    for (end, name) in &lines.names {
        say!("airpath: the line of the {end}'s end is {name}");
    }
}

fn open_log(request: &RunRequest) -> Result<(Recorder, Writer)> {
    // Below the level of events no file is opened, and the folder is not looked at.
    let folder = request.out.clone().unwrap_or_default();
    let options = WriterOptions {
        snaplen: request.snaplen,
        link_headers: request.gateway.as_ref().is_some_and(Gateway::carries_frames),
        ring: request.ring,
        touched: request.clock == Clock::Live,
        // In virtual time waiting for the writer takes no time.
        overflow: if request.clock == Clock::Live { Overflow::Lose } else { Overflow::Wait },
        links: request.machine.keeps_links() && request.frames,
        leaves_out: if request.frames { EventKinds::NONE } else { EventKinds::FRAMES },
        ..WriterOptions::of(&folder, request.level, request.places())
    };
    Writer::start(&options).map_err(Failure::log)
}

/// Gets the recording of TCP state ready, if there is to be one; what is known of it before the run goes
/// into the manifest.
fn start_sampler(request: &RunRequest, ends: &Ends) -> Result<(Option<Sampler>, Option<TcpStateRun>)> {
    let (Some(interval), Some(folder)) = (request.tcp_state.interval(), &request.out) else { return Ok((None, None)) };
    let options = tcp_state::Options {
        interval,
        probe: request.tcp_state == TcpStateMode::Probe,
        required: request.tcp_state_is_asked,
        frozen_clock: request.clock == Clock::Warp,
        folder: folder.clone(),
    };
    let (sampler, run) = Sampler::start(&options, &ends.namespaces(), ends.addresses()).map_err(Failure::live)?;
    if sampler.is_none() && request.report != Report::Nothing {
        for reason in &run.refused {
            say!("airpath: {reason}");
        }
    }
    Ok((sampler, Some(run)))
}

/// Ends the log of a link that is lost: what came before belongs to it.
fn end_log(link: FinishedLink) {
    link.recorder.finish(link.ended);
}

/// Ends the files of a link that failed, and says what they lack.
fn end_files(link: &RunRequest, writer: Writer) {
    for reason in writer.finish().incomplete {
        if link.report != Report::Nothing {
            say!("airpath: the log is incomplete: {reason}");
        }
    }
}

fn tell_incomplete(request: &RunRequest, recorded: &TcpStateRun) {
    if request.report != Report::Nothing {
        for reason in &recorded.incomplete {
            say!("airpath: the state of TCP is incomplete: {reason}");
        }
    }
}

fn note_session(manifest: &mut Manifest, process: &EngineProcess, session: &SessionReport) {
    manifest.port = session.port.to_string();
    let notes: Vec<&String> = process.notes().iter().chain(&session.notes).collect();
    let settings = [
        ("congestion_control", serde_json::json!(session.congestion_control)),
        ("ipv4_only", serde_json::json!(session.ipv4_only)),
        ("notes", serde_json::json!(notes)),
    ];
    manifest.settings.extend(settings.map(|(key, value)| (key.to_string(), value)));
}
