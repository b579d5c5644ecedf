// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath sim`: workloads over a link in virtual time.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use airpath_core::nearest::nearest;
use airpath_endpoints::{Delivery, FlowReport, MediaReport, RequestReport, WorkloadOutcome};
use airpath_log::show;
use airpath_models::MachineConfig;
use airpath_virtual::Ended;
use airpath_workload::Workload;

use crate::cli::SimArgs;
use crate::defaults::DEFAULT_MTU_BYTES;
use crate::error::{Failure, Result};
use crate::link;
use crate::run::from_options::{frames, level};
use crate::run::interrupt::Interrupt;
use crate::run::replication::{self, Finished, Why};
use crate::run::sim::{SimRequest, Simulated, Simulation};
use crate::seed::fresh_seed;
use crate::status;
use crate::terminal::{self, say};

/// A workload to begin with, for whoever gave none.
const EXAMPLE: &str = "--workload 'tcp bytes=102400 from=server cc=reno'";

/// Runs it once, or as often as asked.
///
/// # Errors
/// When the link, a workload or the folder is not as it should be.
pub fn run(args: &SimArgs) -> Result<i32> {
    let scenario = link::scenario_to_run(&args.link, args.print_scenario, args.mtu, args.quiet)?;
    let Some(scenario) = scenario else { return Ok(0) };
    link::advise(&args.link, &scenario, args.mtu, args.quiet || args.json)?;
    let machine = link::machine(&scenario)?;
    let request = SimRequest {
        workloads: workloads(args, &machine)?,
        duration: args.duration,
        mtu_bytes: args.mtu.or(scenario.mtu).unwrap_or(DEFAULT_MTU_BYTES),
        level: level(args.log, args.out.as_deref())?,
        snaplen: args.snaplen,
        frames: frames(args.frames, &machine),
        machine,
        scenario,
    };
    let seed = args.seed.unwrap_or_else(fresh_seed);
    replication::check_seeds(seed, args.replications)?;
    let interrupt = Interrupt::listen()?;
    if args.replications > 1 {
        return in_folder(args.out.as_deref(), |_| replications(args, &request, seed, &interrupt));
    }
    let simulated =
        in_folder(args.out.as_deref(), |folder| Simulation::new(&request).run(seed, folder, !args.quiet, &interrupt))?;
    if args.json {
        terminal::show!("{}\n", json(&simulated, seed));
    } else if !args.quiet {
        simulated.flows.iter().for_each(|flow| say!("{}", line(flow)));
        if simulated.ended == Ended::Stalled {
            say!("airpath: the run ended early: deadlock: a workload waits for a packet that was lost");
        }
        say!("{}", simulated.summary);
    } else if simulated.interrupted.is_none() {
        // The exit status alone would not say which, and why.
        simulated.undone().for_each(|flow| say!("airpath: {}", line(flow)));
    }
    if let Some(signal) = simulated.interrupted {
        let duration = show::span(simulated.duration.nanos());
        say!("airpath: {signal}: aborted after {duration} of virtual time; the records up to then are complete");
    }
    Ok(simulated.status())
}

/// Makes `folder` for `work`, and takes it back if that fails before anything has begun.
fn in_folder<T>(folder: Option<&Path>, work: impl FnOnce(Option<&Path>) -> Result<T>) -> Result<T> {
    let Some(path) = folder else { return work(None) };
    let is_ours = !path.exists();
    airpath_log::folder::create(path).map_err(Failure::log)?;
    work(Some(path)).inspect_err(|_| {
        let _ = airpath_log::folder::take_back(path, is_ours);
    })
}

/// The workloads that were asked for, with the numbers of their users. One that names no user of several is that of
/// each.
fn workloads(args: &SimArgs, machine: &MachineConfig) -> Result<Vec<(u16, Workload)>> {
    let users = machine.users();
    let mut placed = Vec::new();
    for (text, workload) in args.workload.iter().zip(given(args)?) {
        let known = || (0..).zip(&users).filter(|(_, user)| !user.name.is_empty());
        match &workload.user {
            None => placed.extend((0..).zip(&users).map(|(number, user)| {
                let named = (!user.name.is_empty()).then(|| user.name.to_string());
                (number, Workload { user: named, ..workload.clone() })
            })),
            Some(name) => match known().find(|(_, user)| user.name == name) {
                Some((number, _)) => placed.push((number, workload)),
                None => return Err(no_user(text, name, known().map(|(_, user)| user.name))),
            },
        }
    }
    Ok(placed)
}

/// The error for a workload of a user that the scenario does not have.
fn no_user<'a>(text: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known: Vec<&str> = known.collect();
    if known.is_empty() {
        let hint = "users are the [[paths]] of a scenario with [[media]]; leave out `user`";
        return Failure::usage(format!("--workload '{text}': the scenario has no users with names; {hint}"));
    }
    let near = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let (near, known) = (near.unwrap_or_default(), known.join(", "));
    Failure::usage(format!("--workload '{text}': there is no user `{name}`{near}; the users are {known}"))
}

/// The workloads that were given.
fn given(args: &SimArgs) -> Result<Vec<Workload>> {
    if args.workload.is_empty() {
        return Err(Failure::usage(format!("no workload is given; add one, as in {EXAMPLE}")));
    }
    let mut workloads = Vec::with_capacity(args.workload.len());
    for text in &args.workload {
        let workload = Workload::parse(text).map_err(|error| Failure::usage(format!("--{error}")))?;
        if args.duration.is_none() && !workload.is_bounded() {
            return Err(Failure::usage(format!(
                "--workload '{text}' never ends; limit it with bytes=100000 or duration=\"10 s\", or limit the run \
                 with --duration '60 s'"
            )));
        }
        let same = |other: &Workload| {
            let may_meet = other.user.is_none() || workload.user.is_none() || other.user == workload.user;
            workload.name.is_some() && other.name == workload.name && may_meet
        };
        if let Some(first) = workloads.iter().position(same) {
            return Err(Failure::usage(format!(
                "--workload '{text}' has the same name as workload {}; names must be unique",
                first + 1
            )));
        }
        workloads.push(workload);
    }
    Ok(workloads)
}

/// A finished replication with its summary as JSON, or why there is none.
type Ran = Result<(Finished, serde_json::Value)>;

/// Runs all replications in `args.jobs` threads, and tells of them in their order.
fn replications(args: &SimArgs, request: &SimRequest, seed: u64, interrupt: &Interrupt) -> Result<i32> {
    let tell = !args.quiet && !args.json;
    let simulation = Simulation::new(request);
    let next = AtomicU32::new(1);
    let failed = AtomicBool::new(false);
    let done = Mutex::new(InOrder { waiting: Vec::new(), done: Vec::new() });
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > args.replications || failed.load(Ordering::Relaxed) || interrupt.asked().is_some() {
                return;
            }
            let ran = replicate(args, &simulation, seed, number, interrupt);
            failed.fetch_or(ran.is_err(), Ordering::Relaxed);
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            done.take(number, ran, |one| {
                if tell {
                    one.tell(args.replications);
                }
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..args.jobs.min(args.replications) {
            scope.spawn(work);
        }
        work();
    });
    let InOrder { waiting, done } = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(failure) = waiting.into_iter().find_map(|(_, ran)| ran.err()) {
        return Err(failure);
    }
    if let Some(signal) = interrupt.asked() {
        let whole = done.iter().filter(|(one, _)| one.status < 128).count();
        say!("airpath: {signal}: aborted after {whole} of {} replications", args.replications);
        if let Some(folder) = &args.out {
            say!("airpath: their records are in {}", folder.display());
        }
        return Ok(status::of_signal(signal as i32));
    }
    let (finished, summaries): (Vec<Finished>, Vec<serde_json::Value>) = done.into_iter().unzip();
    if args.json {
        terminal::show!("{}\n", serde_json::json!({ "replications": summaries }));
    } else if tell {
        replication::summarise(&finished, args.out.as_deref());
    }
    if !args.quiet && replication::all_the_same(&finished) {
        replication::tell_same(finished.len());
    }
    Ok(replication::status(&finished))
}

/// Result of a replication: all of its summary but its seed and the cost of running it.
fn came_to(summary: &serde_json::Value) -> serde_json::Value {
    let mut object = summary.clone();
    if let Some(object) = object.as_object_mut() {
        object.retain(|key, _| key != "seed" && key != "wall_ns");
    }
    object
}

fn replicate(args: &SimArgs, simulation: &Simulation<'_>, first_seed: u64, number: u32, interrupt: &Interrupt) -> Ran {
    let seed = replication::seed(first_seed, number);
    let folder = args.out.as_deref().map(|all| replication::folder(all, number));
    let simulated = in_folder(folder.as_deref(), |folder| simulation.run(seed, folder, false, interrupt))?;
    let mut summary = json(&simulated, seed);
    let finished = Finished {
        number,
        seed,
        came_to: Some(came_to(&summary)),
        seconds: simulated.duration.as_secs_f64(),
        verdict: simulated.summary.verdict.grade.to_string(),
        reasons: Why::of(&simulated.summary.verdict),
        status: simulated.status(),
    };
    summary["replication"] = number.into();
    summary["status"] = finished.status.into();
    Ok((finished, summary))
}

/// Replications in their order, however they come in.
struct InOrder {
    /// Replications that came before their turn, or failed.
    waiting: Vec<(u32, Ran)>,
    done: Vec<(Finished, serde_json::Value)>,
}

impl InOrder {
    /// Takes replication `number`, and shows to `tell` all whose turn has come.
    fn take(&mut self, number: u32, ran: Ran, tell: impl Fn(&Finished)) {
        self.waiting.push((number, ran));
        while let Some(index) =
            self.waiting.iter().position(|(number, ran)| ran.is_ok() && *number as usize == self.done.len() + 1)
        {
            if let (_, Ok((finished, summary))) = self.waiting.swap_remove(index) {
                tell(&finished);
                self.done.push((finished, summary));
            }
        }
    }
}

fn json(simulated: &Simulated, seed: u64) -> serde_json::Value {
    let mut object = simulated.summary.to_json();
    object["seed"] = seed.into();
    object["workloads"] = serde_json::to_value(&simulated.flows).unwrap_or_default();
    object
}

/// Result of a workload, in a line.
fn line(flow: &FlowReport) -> String {
    let outcome = match &flow.outcome {
        WorkloadOutcome::Complete => "complete".into(),
        WorkloadOutcome::Incomplete if flow.workload.is_bounded() => "incomplete at the end of the run".into(),
        WorkloadOutcome::Incomplete => "lasted as long as the run".into(),
        WorkloadOutcome::Failed(reason) => format!("failed: {reason}"),
    };
    let elapsed = flow.elapsed_ns.map(|elapsed| format!(" in {}", show::span(elapsed)));
    let directions = [("uplink", &flow.uplink), ("downlink", &flow.downlink)];
    let delivered: Vec<String> =
        directions.iter().filter_map(|(name, delivery)| delivered(name, delivery.as_ref()?)).collect();
    let user = flow.workload.user.as_ref().map(|user| format!("{user}, "));
    format!(
        "{}{}: {outcome}{}{}{}{}",
        user.unwrap_or_default(),
        flow.name,
        elapsed.unwrap_or_default(),
        flow.requests.as_ref().map(requests).unwrap_or_default(),
        flow.media.as_ref().map(media).unwrap_or_default(),
        delivered.concat()
    )
}

/// Number of responses and their times.
fn requests(requests: &RequestReport) -> String {
    let mut durations = requests.durations_ns.clone();
    durations.sort_unstable();
    let count = format!(", {}", show::counted(requests.completed, "response"));
    let (Some(longest), Some(last)) = (durations.last(), durations.len().checked_sub(1)) else { return count };
    format!("{count} in p50 {}, max {}", show::span(durations[last / 2]), show::span(*longest))
}

/// Quality of the media for a viewer.
fn media(media: &MediaReport) -> String {
    let count = show::count;
    format!(
        ", {} of {} on time, {} late, {} lost",
        count(media.frames_on_time),
        show::counted(media.frames_sent, "frame"),
        count(media.frames_late),
        count(media.frames_lost)
    )
}

/// Delivery to the application in one direction; nothing where nothing was meant for it.
fn delivered(direction: &str, delivery: &Delivery) -> Option<String> {
    if delivery.delivered_bytes == 0 {
        return None;
    }
    let goodput = delivery.goodput_bits_per_second.map(|goodput| format!(" at {}", show::bit_rate(goodput)));
    let again = delivery.packets_retransmitted.filter(|again| *again > 0);
    let again = again.map(|again| format!(", {} sent again", show::counted(again, "packet")));
    let lost = delivery.packets_lost;
    let lost = (lost > 0)
        .then(|| format!(", {} of {} packets not received", show::count(lost), show::count(delivery.packets_sent)));
    Some(format!(
        "; {direction} {}{}{}{}",
        show::bytes(delivery.delivered_bytes),
        goodput.unwrap_or_default(),
        again.unwrap_or_default(),
        lost.unwrap_or_default()
    ))
}
