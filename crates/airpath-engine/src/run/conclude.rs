//! The end of a live run: what happened, whether it can be trusted, and the exit status.

use airpath_core::{Direction, Event, EventKind, Origin, Time};
use airpath_live::command::CommandEnd;
use airpath_log::manifest::{CommandRun, LogResults, Outcome, Results, Status, TimingResults, counters};
use airpath_log::verdict::{Measurements, Reads, judge};
use airpath_log::{Grade, Manifest, Summary};

use super::NOT_TRUSTED_STATUS;
use super::files::KeptFiles;
use super::live::{LiveOutcome, write_manifest};
use super::manifest::Beginning;
use super::request::{Report, RunRequest};
use super::workload::Ended;
use crate::error::Result;
use crate::terminal::say;

/// The manifest of a run that is about to begin.
pub fn first_manifest(request: &RunRequest, files: &KeptFiles) -> Manifest {
    let mut manifest = Beginning {
        scenario: &request.scenario,
        files,
        path: &request.path,
        clock: request.clock,
        seed: request.seed,
        level: request.level,
        snaplen: request.snaplen,
    }
    .manifest();
    let settings = [
        ("mtu_bytes", serde_json::json!(request.mtu_bytes)),
        ("lateness_bound_ns", serde_json::json!(request.lateness_bound.nanos())),
        ("spin", serde_json::json!(request.tuning.spin.to_string())),
        ("tcp_state", serde_json::json!(request.tcp_state.to_string())),
        ("internet", serde_json::json!(request.internet)),
        ("host_ports", serde_json::json!(request.host_ports)),
    ];
    manifest.settings.extend(settings.map(|(key, value)| (key.to_string(), value)));
    let client = request.client.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let server = request.server.iter().map(|line| ("server", vec![line.clone()]));
    manifest.commands = server
        .chain([("client", client)])
        .map(|(end, command)| CommandRun { end: end.into(), command, exit_status: None, signal: None })
        .collect();
    manifest
}

/// Finishes the log, judges the run, prints what was asked for and returns the exit status.
///
/// # Errors
/// Never for a folder that cannot be written to: that is told, and the run keeps its exit status.
pub fn conclude(request: &RunRequest, outcome: LiveOutcome) -> Result<i32> {
    let LiveOutcome { client, server, mut link, report, mut manifest, writer, .. } = outcome;
    let dropped_outside = drops_outside(&mut link.ports) + link.measurements.not_taken;
    let (lost, duration) = (link.recorder.finish(report.ended), report.ended.since(Time::ZERO));
    let log = LogResults::new(lost, writer.finish());
    let stamped = link.ports.iter().all(airpath_live::ports::Port::has_kernel_stamps);
    let timings = &link.measurements.timings;
    let measured = Measurements {
        bound_ns: request.lateness_bound.nanos(),
        duration_ns: duration.nanos(),
        never_started: match client {
            Ended::Command(_) => None,
            Ended::NotStarted(_) => Some("the client's command could not be started".into()),
            Ended::Interrupted(signal) => Some(format!("{signal} came before the client's command was started")),
        },
        broken_off: None,
        lateness: timings.lateness(),
        late_emissions: timings.late_emissions(),
        reads: if stamped {
            Reads::Stamped { late: timings.late_reads(), delay: timings.read_delay() }
        } else {
            Reads::Gaps { late: link.measurements.late_gaps, longest_ns: link.measurements.longest_gap.nanos() }
        },
        offered: offered(&link.counters),
        outside_drops: dropped_outside,
        overload_ns: link.measurements.overload.nanos(),
        log_incomplete: log.files.incomplete.clone(),
    };
    let verdict = judge(&measured);
    let summary = Summary { clock: request.clock, ..Summary::new(&link.counters, timings, duration, verdict.clone()) };
    if request.out.is_some() || request.manifest.is_some() {
        manifest.status = Status::Finished;
        for command in &mut manifest.commands {
            let end = if command.end == "client" { command_end(client) } else { server };
            (command.exit_status, command.signal) = match end {
                Some(CommandEnd::Exited(status)) => (Some(status), None),
                Some(CommandEnd::Killed(signal)) => (None, Some(signal as i32)),
                None => (None, None),
            };
        }
        manifest.privileges.push(Outcome {
            name: "processor time of the loop".into(),
            outcome: format!(
                "{:.6} s, of which {:.6} s watching the clock",
                seconds(report.processor_ns),
                seconds(report.spun_ns)
            ),
        });
        manifest.results = Some(Results {
            duration_ns: duration.nanos(),
            counters: counters(&link.counters, &request.hop_names()),
            timings: TimingResults::from(timings),
            log,
            verdict: verdict.clone(),
        });
        write_manifest(request, &manifest);
        if let Some(file) = &request.manifest
            && let Err(error) = serde_json::to_writer(&**file, &manifest)
        {
            say!("airpath: cannot hand the manifest over: {error}");
        }
    }
    match request.report {
        Report::Summary => say!("{summary}"),
        Report::Json => say!("{}", summary.to_json()),
        Report::Nothing => {}
    }
    let status = client.exit_status();
    if status == 0 && request.strict && verdict.grade != Grade::Trusted {
        return Ok(NOT_TRUSTED_STATUS);
    }
    Ok(status)
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn command_end(ended: Ended) -> Option<CommandEnd> {
    match ended {
        Ended::Command(end) => Some(end),
        Ended::NotStarted(status) => Some(CommandEnd::Exited(status)),
        Ended::Interrupted(_) => None,
    }
}

fn offered(counters: &airpath_core::Counters) -> u64 {
    Direction::ALL
        .into_iter()
        .map(|direction| counters.site(Event::WHOLE_PATH, direction, Origin::User).kind(EventKind::Offered).count)
        .sum()
}

/// Packets that the kernel lost between the endpoints and the engine.
fn drops_outside(ports: &mut [airpath_live::ports::Port; 2]) -> u64 {
    ports.iter_mut().filter_map(|port| port.drops_outside_model().ok()).map(|drops| drops.total()).sum()
}
