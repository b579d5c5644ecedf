// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A live run inside the engine process.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread::JoinHandle;

use airpath_core::{End, EventKinds, Seed};
use airpath_live::clock;
use airpath_live::command::CommandEnd;
use airpath_live::end_waits::{Party, Register};
use airpath_live::engine_loop::{Circling, EngineLoop, FinishedLink, Handle, LiveLink, LoopReport, PortLosses, Word};
use airpath_live::link_watch::LinkWatch;
use airpath_live::ports::Port;
use airpath_live::processor_time::{ProcessorShares, ProcessorTime};
use airpath_live::session::{SessionEnd, SessionReport};
use airpath_live::supervise::EngineProcess;
use airpath_live::tcp_state::{self, Mode as TcpStateMode, Sampler};
use airpath_live::tuning::{Told, Tuning};
use airpath_live::wake_latency::WakeLatency;
use airpath_live::{host_port, internet};
use airpath_log::manifest::{Privilege, Status, TcpStateRun};
use airpath_log::{Clock, EndResults, Manifest, Recorder, Writer, WriterOptions};

use super::control::Control;
use super::ends::EndsWatch;
use super::files::KeptFiles;
use super::gateway;
use super::interfaces;
use super::lines::{ActiveLines, Lines};
use super::live_manifest::{first_manifest, write_manifest};
use super::outcome::LiveOutcome;
use super::pace::Pace;
use super::request::{Gateway, Report, RunRequest};
use super::users::Ends;
use super::workload::{Ended, Started, Workload};
use crate::control::around::Around;
use crate::error::{Failure, Result};
use crate::hosts::channel::{Channel, Channels};
use crate::terminal::say;

/// Variable that tells commands the path of the serial line.
const LINE_VARIABLE: &str = "AIRPATH_PPP_LINE";

/// The loop's thread.
struct Loop {
    handle: Handle,
    thread: JoinHandle<std::io::Result<(Vec<FinishedLink>, LoopReport)>>,
    /// Readable once the thread has ended: its other end is closed with the thread.
    stopped: OwnedFd,
    /// Let go when the loop has ended.
    _wake_latency: Option<WakeLatency>,
}

impl Loop {
    fn start(engine: EngineLoop, handle: Handle, tuning: &Tuning) -> Result<(Loop, Vec<Told>)> {
        let (stopped, running) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)
            .map_err(|errno| Failure::new(format!("cannot make a pipe: {errno}")))?;
        let mut timing = tuning.prepare_process();
        let (held, wake_latency) = tuning.hold();
        timing.extend(held);
        let tuning = tuning.clone();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("airpath-loop".into())
            .spawn(move || {
                let _running = running;
                let _ = tell.send(tuning.prepare_thread());
                engine.run()
            })
            .map_err(|error| Failure::new(format!("cannot start the engine's thread: {error}")))?;
        timing.extend(told.recv().unwrap_or_default());
        Ok((Loop { handle, thread, stopped, _wake_latency: wake_latency }, timing))
    }

    /// Ends it; `gone` says why a port may have gone away, if that is known.
    fn stop(self, gone: &str) -> Result<(FinishedLink, LoopReport)> {
        let why = if gone.is_empty() { "Did a command take the interface down?" } else { gone };
        self.handle.send(Word::Stop);
        let (mut links, report) = self
            .thread
            .join()
            .map_err(|_| Failure::new("the engine's loop failed; please report this with the scenario"))?
            .map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<Circling>()) {
                Some(circling) => Failure::new(circling.to_string()),
                None => Failure::new(format!("a port of the link disappeared during the run: {error}\n  {why}")),
            })?;
        let link = links.pop().ok_or_else(|| Failure::new("the engine's loop lost its link"))?;
        Ok((link, report))
    }
}

/// The engines of other hosts, and the ports behind which the path goes on there, each with its end.
pub type Joined<'a> = (&'a mut Channels, Vec<(End, Port)>);

/// Carries out `request`, with the engines of other hosts if the path goes on there, and returns what it left, with the
/// log still open.
///
/// # Errors
/// When the namespaces, the ports, the folder or the server's command cannot be had, or the link
/// breaks. Then the log of a run that had begun is finished, and that of any other is taken back.
pub fn run(process: &EngineProcess, request: &RunRequest, joined: Option<Joined<'_>>) -> Result<LiveOutcome> {
    let (recorder, writer) = open_log(request)?;
    let mut begun = None;
    match carry_out(process, request, joined, (recorder, &writer), &mut begun) {
        Ok(carried) => {
            let Carried { clients, servers, ends, losses, link, report, shares, manifest } = carried;
            Ok(LiveOutcome { clients, servers, ends, losses, link, report, shares, manifest, writer })
        }
        Err(failure) => {
            writer.finish();
            if let Some(folder) = &request.out {
                match begun {
                    Some(manifest) => write_manifest(request, &Manifest { status: Status::Failed, ..manifest }),
                    None => airpath_log::folder::take_back(folder, request.out_is_ours)
                        .unwrap_or_else(|error| say!("airpath: {error}")),
                }
            }
            Err(failure)
        }
    }
}

/// Results of a run except for its log.
struct Carried {
    clients: Vec<Ended>,
    servers: Vec<Option<CommandEnd>>,
    ends: EndResults,
    losses: PortLosses,
    link: FinishedLink,
    report: LoopReport,
    shares: ProcessorShares,
    manifest: Manifest,
}

/// Everything from the namespaces to the end of the loop; `begun` gets the manifest at t = 0.
fn carry_out(
    process: &EngineProcess,
    request: &RunRequest,
    joined: Option<Joined<'_>>,
    (recorder, writer): (Recorder, &Writer),
    begun: &mut Option<Manifest>,
) -> Result<Carried> {
    let files = KeptFiles::keep(&request.scenario, request.out.as_deref())?;
    let (mut ends, mut ports, session_report, lines) = Ends::create(request)?;
    let mut answers = Vec::new();
    let channels = joined.map(|(channels, joined)| {
        answers.extend(channels.all.iter_mut().filter_map(Channel::take_answers));
        for (end, port) in joined {
            ends.joined.push(end);
            ports[usize::from(end.port().0)] = port;
        }
        channels
    });
    let channels = channels.as_deref();
    tell_lines(request, lines.as_ref());
    let (mut sampler, tcp_state) = start_sampler(request, &ends)?;
    let machine = request.machine.build(Seed(request.seed));
    let link =
        LiveLink::new(machine, ports, recorder, request.lateness_bound).with_places_per_user(request.places().stride());
    let link = match &channels {
        Some(channels) => link.with_first_id(channels.first_id),
        None => link,
    };
    let (engine, handle) = EngineLoop::new(vec![link], request.tuning.spin)
        .map_err(|error| Failure::new(format!("cannot set up the engine's loop: {error}")))?;
    let engine = engine.with_economy(request.tuning.economy);
    let engine = if request.clock == Clock::Warp { engine.with_frozen_clock() } else { engine };
    let engine = engine.notifying(sampler.as_ref().map(Sampler::traffic_notifier));
    let (engine, timing) = Loop::start(engine, handle.clone(), &request.tuning)?;
    let mut manifest = first_manifest(request, &files);
    manifest.tcp_state = tcp_state;
    // Nothing of the host comes into a guest while its time runs.
    let control = (request.clock == Clock::Live)
        .then(|| Control::start(request, handle, channels.map(|channels| (channels, answers))))
        .transpose();
    if let (Some(policy), Some((_, outcome))) = (request.asked_policy, refused_policy(&timing)) {
        say!("airpath: --policy {policy} was {outcome}; continuing without it");
    }
    manifest.settings.insert("confined".into(), request.confine.into());
    note_session(&mut manifest, process, &session_report, timing);
    if let Some(joined) = &ends.surroundings {
        manifest.settings.insert("mtu_bytes".into(), joined.mtu_bytes.into());
        manifest.settings.insert("gateway".into(), joined.facts.clone());
    }
    if let Err(error) = &control {
        manifest.settings.insert("control".into(), format!("none: {error}").into());
    }
    if session_report.ipv4_only
        && let Some(reason) = &session_report.ipv4_only_reason
        && request.report != Report::Nothing
    {
        say!("airpath: {reason}");
    }
    let names: Vec<String> = match &request.lines {
        Lines::Relay { .. } => [End::Client, End::Server].map(|end| format!("{end}'s end")).into(),
        _ => ends.of_ports().map(|end| end.to_string()).collect(),
    };
    let interfaces: Vec<&SessionEnd> = ends.of_ports().filter(|end| end.has_interface()).collect();
    let watch = LinkWatch::start(&interfaces);
    let before = ProcessorTime::now();
    let told = Around::environment(
        control
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .filter(|control| control.number > 0)
            .map(|control| (control.number, control.folder.as_path())),
    );
    let of_line = lines.iter().map(|lines| (LINE_VARIABLE.into(), lines.shown().into()));
    let asked = request.environment.clone();
    let environment = std::iter::once(told).chain(ends.environment()).chain(asked).chain(of_line).collect();
    let pace = channels.map(|channels| Pace::new(channels, engine.stopped.as_fd()));
    let stage = Stage {
        process,
        request,
        ends: &ends,
        engine: &engine,
        lines: lines.as_ref(),
        environment,
        pace: pace.as_ref(),
    };
    let ended = run_commands(&stage, (writer, sampler.as_ref()), |start_unix_ns| {
        manifest.start_unix_ns = start_unix_ns;
        write_manifest(request, &manifest);
        *begun = Some(manifest.clone());
    });
    let news = interfaces::of_ports(interfaces::news(watch, &names[..interfaces.len()]), &request.lines);
    drop(control);
    if let Some(sampler) = &mut sampler {
        sampler.stop();
    }
    let stopped = engine.stop(&interfaces::why_gone(&names, &news));
    if let Some(why) = channels.and_then(Channels::gone) {
        return Err(Failure::new(why.to_owned()));
    }
    let shares = ProcessorTime::now().since(&before);
    // Only now: the run does not last until a disk has taken the file.
    if let Some(sampler) = sampler {
        let recorded = sampler.finish();
        tell_incomplete(request, &recorded);
        manifest.tcp_state = Some(recorded);
    }
    // A loop that stopped of itself knows best what went wrong.
    let (mut link, report) = stopped?;
    let (clients, servers, results) = ended?;
    // Counters go with their interface.
    let losses = PortLosses::read(&mut link.ports);
    let ends = interfaces::with_changes(results, &names, news, &mut link.ports);
    if request.gateway.is_some() {
        link.ports.iter_mut().for_each(|port| port.remove_interface());
    } else if request.enclosing {
        // The server's end is in somebody else's namespace: leave it as it was before this returns.
        link.ports.iter_mut().skip(1).step_by(2).for_each(|port| port.remove_interface());
    }
    Ok(Carried { clients, servers, ends, losses, link, report, shares, manifest })
}

/// Outcome of the request for real-time scheduling, if the kernel refused it.
fn refused_policy(told: &[Told]) -> Option<&Told> {
    told.iter().find(|(name, outcome)| name.starts_with("SCHED_") && outcome.starts_with("refused"))
}

/// Surroundings of the commands.
struct Stage<'a> {
    process: &'a EngineProcess,
    request: &'a RunRequest,
    ends: &'a Ends,
    engine: &'a Loop,
    lines: Option<&'a ActiveLines>,
    /// Additional environment of the commands.
    environment: Vec<(OsString, OsString)>,
    /// Steps that are taken together with the engine of another host.
    pace: Option<&'a Pace<'a>>,
}

/// The servers' commands, then the clients'. `begun` is told when t = 0 was, in nanoseconds since
/// 1970, once the clients' commands are on their way: a slow disk must not stand between the two.
/// In virtual time that is before the commands.
fn run_commands(
    stage: &Stage<'_>,
    (writer, sampler): (&Writer, Option<&Sampler>),
    begun: impl FnOnce(u64),
) -> Result<(Vec<Ended>, Vec<Option<CommandEnd>>, EndResults)> {
    let Stage { process, request, ends, engine, lines, environment, pace } = stage;
    let register = Register::default();
    if request.internet && !request.enclosing {
        for server in ends.server_namespaces() {
            let helper = internet::connect(server, request.mtu_bytes).map_err(Failure::live)?;
            register.enter(helper as i32, Party::Relay);
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
        gateway::enter(surroundings, &register);
    }
    let mut workload = Workload::new(process, register, environment.clone());
    let mut interrupted = None;
    if let Some(line) = &request.server {
        for (server, user) in ends.server_namespaces().iter().zip(ends.users_of_servers()) {
            let clients: Vec<&SessionEnd> = match user {
                // A peer on a line has the addresses that PPP gave it, and a command beside it those alone.
                _ if request.lines.replace(End::Client) => Vec::new(),
                Some(user) => vec![&ends.clients[user.index]],
                None => ends.clients.iter().collect(),
            };
            // What starts the peer on a line need not listen.
            let timeout = (!request.lines.replace(End::Server)).then_some(request.server_timeout);
            let sign = (&request.server_ready, timeout);
            interrupted = workload.start_server((server, &clients), user, line, sign)?;
            if interrupted.is_some() {
                break;
            }
        }
    }
    if let (Some(options), Some(lines), None) = (request.lines.ppp(), lines, interrupted) {
        // A client's command may be what starts the peer.
        if options.end == End::Server || request.clients.iter().all(Vec::is_empty) {
            interrupted = workload.wait_for_line(lines, options.ppp.timeout, engine.stopped.as_fd())?;
        }
    }
    let namespaces = ends.namespaces();
    let watch = EndsWatch::begin(request, &mut workload, &namespaces);
    let (start_unix_ns, start_ns) = match pace {
        Some(pace) => pace.agree(&mut workload)?,
        None => (clock::realtime_ns(), clock::monotonic_ns()),
    };
    writer.set_start(start_unix_ns);
    engine.handle.begin(start_ns);
    if let Some(sampler) = sampler {
        sampler.begin(start_ns);
    }
    pace.map_or(Ok(()), Pace::begun)?;
    let mut begun = Some(begun);
    let mut begin = || begun.take().into_iter().for_each(|begun| begun(start_unix_ns));
    // In a guest no disk is slow, but a command that never sleeps lets nobody write anything any more.
    if request.clock == Clock::Warp {
        begin();
    }
    let started: Vec<Started> = ends
        .clients
        .iter()
        .zip(&request.clients)
        .enumerate()
        .map(|(number, (client, words))| match interrupted {
            Some(ended) => Started::Ended(ended),
            None => {
                let beside = request.foreground.is_some_and(|foreground| foreground != number);
                workload.start_client(client, ends.users.get(number), words, beside)
            }
        })
        .collect();
    begin();
    pace.map_or(Ok(()), |pace| pace.wait_for_client(&mut workload))?;
    let has_ended = match &request.gateway {
        Some(gateway) => gateway::wait(gateway, &mut workload, engine.stopped.as_fd())?,
        None => interrupted.is_some() || workload.wait_for_clients(engine.stopped.as_fd(), *lines)?,
    };
    if !has_ended {
        return Err(Failure::new("the engine's loop stopped unexpectedly"));
    }
    let waits = workload.measured_waits();
    workload.end_companions()?;
    let ended = workload.ends_of(&started);
    let servers = match pace {
        Some(pace) => pace.end_servers(&mut workload, request.server_grace)?,
        None => workload.end_servers(request.server_grace)?,
    };
    Ok((ended, servers, watch.finish(&workload, waits, &namespaces)))
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

fn tell_incomplete(request: &RunRequest, recorded: &TcpStateRun) {
    if request.report != Report::Nothing {
        for reason in &recorded.incomplete {
            say!("airpath: the state of TCP is incomplete: {reason}");
        }
    }
}

fn note_session(manifest: &mut Manifest, process: &EngineProcess, session: &SessionReport, timing: Vec<Told>) {
    manifest.port = session.port.to_string();
    manifest.privileges.extend(timing.into_iter().map(|(name, outcome)| Privilege { name, outcome }));
    let notes: Vec<&String> = process.notes().iter().chain(&session.notes).collect();
    let settings = [
        ("congestion_control", serde_json::json!(session.congestion_control)),
        ("ipv4_only", serde_json::json!(session.ipv4_only)),
        ("notes", serde_json::json!(notes)),
    ];
    manifest.settings.extend(settings.map(|(key, value)| (key.to_string(), value)));
}
