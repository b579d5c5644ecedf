// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The end of a live run: what happened, whether it can be trusted, and the exit status.

use std::io::Write;
use std::time::Duration;

use airpath_core::{End, Time};
use airpath_live::command::CommandEnd;
use airpath_live::engine_loop::{LinkLook, LoopReport, MarginCourse};

use airpath_live::{ports, watchdog};
use airpath_log::manifest::{LogResults, LoopResults, Privilege, Results, Status, TimingResults, counters};
use airpath_log::verdict::{Measurements, judge};
use airpath_log::{EndResults, Grade, Manifest, Summary};

use super::live_manifest::write_manifest;
use super::machine;
use super::measured;
use super::outcome::LiveOutcome;
use super::request::{Report, RunRequest};
use super::workload::Ended;
use crate::error::Result;
use crate::status;
use crate::terminal::say;

/// Time for which nobody needs to be told of the wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run that is judged, and whose files are written.
pub struct Finished {
    /// The summary.
    pub summary: Summary,
    /// The manifest; without results where nobody wants it.
    pub manifest: Manifest,
    /// The exit status of the command at the terminal, or the first that is not 0.
    pub status: i32,
}

/// Finishes the log, judges the run, prints what was asked for and returns the exit status: that of the command at
/// the terminal, or the first that is not 0.
///
/// # Errors
/// Never for a folder that cannot be written to: that is told, and the run keeps its exit status.
pub fn conclude(request: &RunRequest, outcome: LiveOutcome) -> Result<i32> {
    finish(request, outcome).map(|finished| report(request, &finished))
}

/// Prints what was asked for, and returns the exit status.
pub fn report(request: &RunRequest, finished: &Finished) -> i32 {
    match request.report {
        Report::Summary => say!("{}", finished.summary),
        Report::Json => say!("{}", finished.summary.to_json()),
        Report::Nothing => {}
    }
    if let Some(file) = &request.json
        && let Err(error) = writeln!(&**file, "{}", finished.summary.to_json())
    {
        say!("airpath: cannot write the summary as JSON: {error}");
    }
    if finished.status == 0 && request.strict && finished.summary.verdict.grade != Grade::Trusted {
        return status::NOT_TRUSTED;
    }
    finished.status
}

/// Passes the manifest on where it is wanted outside the folder of the run.
pub fn pass_on(request: &RunRequest, manifest: &Manifest) {
    if let Some(file) = &request.manifest
        && let Err(error) = serde_json::to_writer(&**file, manifest)
    {
        say!("airpath: cannot pass on the manifest: {error}");
    }
}

/// Finishes the log and judges the run.
///
/// # Errors
/// As [`conclude`].
pub fn finish(request: &RunRequest, outcome: LiveOutcome) -> Result<Finished> {
    let LiveOutcome { clients, servers, ends, losses, link, report, shares, mut manifest, writer } = outcome;
    let stamped = link.ports.iter().all(|port| port.has_kernel_stamps());
    let look = LinkLook {
        at: report.ended,
        losses,
        measurements: link.measurements,
        counters: link.counters,
        stamped,
        demoted: report.demoted,
        clock: report.clock.clone(),
        epoch_ns: report.epoch_ns,
        reads_unwatched: report.reads_unwatched,
    };
    // A link that could not be carried ends earlier than its run did.
    let (lost, duration) = (link.recorder.finish(link.ended), link.ended.since(Time::ZERO));
    let files = writer.finish_within(PATIENCE, || {
        if let (Some(folder), true) = (&request.out, request.report != Report::Nothing) {
            say!("airpath: the run has ended; writing the rest of its log to {}", folder.display());
        }
    });
    let log = LogResults::new(lost, files);
    let timings = &look.measurements.timings;
    let of_link = measured::of_link(&look);
    let machine = machine::facts(request, &report, shares, &manifest.privileges);
    let measured = Measurements {
        never_started: clients.iter().zip(request.users()).find_map(|(client, user)| {
            let of_user = if user.is_empty() { String::new() } else { format!(" of {user}") };
            match client {
                Ended::Command(_) | Ended::Idle => None,
                Ended::NotStarted(_) => Some(format!("the client's command{of_user} could not be started")),
                Ended::Interrupted(signal) => Some(format!("{signal} arrived before the client's command started")),
            }
        }),
        log_incomplete: log.files.incomplete.clone(),
        ends: EndResults {
            not_ip_frames: of_link.ends.not_ip_frames,
            too_long_frames: of_link.ends.too_long_frames,
            returned_frames: of_link.ends.returned_frames,
            moved_addresses: of_link.ends.moved_addresses,
            joins_networks: request.gateway.is_some(),
            refused_writes: of_link.ends.refused_writes,
            unreadable: [ends.unreadable, of_link.ends.unreadable].concat(),
            no_packets: of_link.offered == 0,
            ..ends
        },
        machine,
        ..of_link
    };
    if let Some(at) = report.demoted
        && request.report != Report::Nothing
    {
        say!(
            "airpath: the engine ran for {} ms at real-time priority without sleeping; it lost the priority {:.1} s \
             into the run, to keep the host responsive",
            watchdog::LIMIT.as_millis(),
            seconds(at.nanos())
        );
    }
    let verdict = judge(&measured);
    let summary = Summary {
        clock: request.clock,
        wall_clock: measured.wall_clock.clone(),
        seed: Some(request.seed),
        ends: Some(measured.ends.clone()),
        ..Summary::new(&look.counters, timings, duration, verdict.clone()).with_users(
            &look.counters,
            &request.places(),
            &link.delays,
            duration,
        )
    };
    if request.out.is_some() || request.manifest.is_some() || request.part_of.is_some() {
        manifest.status = Status::Finished;
        let (mut of_servers, mut of_clients) =
            (servers.into_iter(), clients.iter().filter(|client| **client != Ended::Idle));
        for command in &mut manifest.commands {
            let end = if command.end == End::Client.name() {
                of_clients.next().and_then(|client| command_end(*client))
            } else {
                // None was started behind the one at whose start a signal came.
                of_servers.next().flatten()
            };
            (command.exit_status, command.signal) = match end {
                Some(CommandEnd::Exited(status)) => (Some(status), None),
                Some(CommandEnd::Killed(signal)) => (None, Some(signal as i32)),
                None => (None, None),
            };
        }
        manifest.privileges.push(Privilege {
            name: "processor time of the loop".into(),
            outcome: format!(
                "{:.6} s, of which {:.6} s busy-waiting",
                seconds(report.processor_ns),
                seconds(report.spun_ns)
            ),
        });
        manifest.settings.insert("spin_margin".into(), margin(&report));
        let usage = report.usage;
        let live_loop = LoopResults {
            processor_ns: report.processor_ns,
            spun_ns: report.spun_ns,
            wake_ups: report.wake_ups,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            demoted_ns: report.demoted.map(Time::nanos),
            false_alarms: report.false_alarms,
            longest_unread_ns: if stamped { 0 } else { timings.entries().max_ns },
            unfinished_ns: measured.unfinished_ns,
            unoffered: measured.unoffered,
            unwatched_reads_ns: measured.unwatched_reads_ns,
        };
        manifest.results = Some(Results {
            duration_ns: duration.nanos(),
            counters: counters(&look.counters, &request.places()),
            timings: TimingResults::from(timings),
            log,
            machine: Some(machine),
            live_loop: Some(live_loop),
            ends: Some(measured.ends),
            wall_clock: Some(measured.wall_clock).filter(|clock| !clock.is_quiet()),
            verdict: verdict.clone(),
        });
        write_manifest(request, &manifest);
        pass_on(request, &manifest);
    }
    ports::close(link.ports);
    let counted = match request.foreground {
        Some(number) => &clients[number..=number],
        None => &clients[..],
    };
    let status = counted.iter().map(|client| client.exit_status()).find(|status| *status != 0).unwrap_or(0);
    Ok(Finished { summary, manifest, status })
}

/// The way of the margin before deadlines, and the share of a core spent watching the clock.
fn margin(report: &LoopReport) -> serde_json::Value {
    let MarginCourse { start_ns, end_ns, least_ns, most_ns, unaffordable } = report.margin;
    let watching_share = report.spun_ns as f64 / report.ended.since(Time::ZERO).nanos().max(1) as f64;
    serde_json::json!({
        "start_ns": start_ns,
        "end_ns": end_ns,
        "least_ns": least_ns,
        "most_ns": most_ns,
        "deadlines_beyond_the_budget": unaffordable,
        "watching_share": watching_share,
    })
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn command_end(ended: Ended) -> Option<CommandEnd> {
    match ended {
        Ended::Command(end) => Some(end),
        Ended::NotStarted(status) => Some(CommandEnd::Exited(status)),
        Ended::Interrupted(_) | Ended::Idle => None,
    }
}
