// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The results of both hosts in one folder, one summary, one verdict.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use airpath_clocks::{Estimate, correct};
use airpath_core::End;
use airpath_log::joined::{self, Border};
use airpath_log::manifest::Status;
use airpath_log::{Distribution, Level, Manifest, Summary, files, place};
use airpath_scenario::{HERE, Part};
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::run::Report;
use crate::run::conclude::{self, Finished};
use crate::run::files::KeptFiles;
use crate::run::{RunRequest, manifest as places};
use crate::terminal::say;

/// Results of the other host's part.
pub struct Collected {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its summary.
    pub summary: Value,
    /// Delays of packets from here to there.
    pub transit: Distribution,
}

/// Results of both hosts.
pub struct Gathered<'a> {
    /// The request for the whole path.
    pub whole: &'a RunRequest,
    /// The part on this host.
    pub local: Finished,
    /// The part on the other.
    pub far: Collected,
    /// The account of the other host for the manifest.
    pub hosts: Value,
    /// The other host.
    pub part: &'a Part,
}

/// Writes the folder of the whole run, prints its summary, and returns the exit status.
///
/// # Errors
/// When the other host's results cannot be read.
pub fn conclude(gathered: Gathered<'_>) -> Result<i32> {
    let Gathered { whole, local, far, hosts, part } = gathered;
    let far_summary: Summary = serde_json::from_value(far.summary.clone())
        .map_err(|error| Failure::new(format!("host `{}`: its summary: {error}", part.host)))?;
    let border = Border { near: local.manifest.hops.clone(), far: far.manifest.hops.clone(), host: part.host.clone() };
    let mut summary = joined::summary(&local.summary, &far_summary, &border);
    let (Some(near_results), Some(far_results)) = (&local.manifest.results, &far.manifest.results) else {
        return Err(Failure::new(format!("host `{}` told no results", part.host)));
    };
    let estimate: Estimate = serde_json::from_value(hosts["clock_estimate"].clone())
        .map_err(|error| Failure::new(format!("the estimate of the clocks: {error}")))?;
    let mut results = joined::results(near_results, far_results, &border);
    if let Some(out) = &whole.out
        && let Err(error) = write_logs(whole, &local.manifest, &far.manifest, &border, &estimate, out)
    {
        say!(
            "airpath: the logs of both hosts could not be joined: {error}\n  Each is whole in {}",
            out.join(HOSTS).display()
        );
        results.log.complete = false;
        results.log.files.incomplete.push(format!("the logs of both hosts could not be joined: {error}"));
    }
    let mut manifest = local.manifest.clone();
    manifest.status = Status::Finished;
    manifest.name_places(&places::places(&whole.machine));
    let kept = KeptFiles::keep(&whole.scenario, whole.out.as_deref()).unwrap_or_default();
    manifest.scenario_toml = kept.scenario_toml(&whole.scenario);
    manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
    let mut commands = far.manifest.commands.clone();
    commands.append(&mut manifest.commands);
    manifest.commands = commands;
    let here = json!({
        "name": HERE,
        "hops": border.near,
        "lateness": near_results.timings.lateness,
        "verdict": near_results.verdict,
    });
    manifest.hosts = vec![here, hosts.clone()];
    manifest.results = Some(results);
    if let Some(out) = &whole.out
        && let Err(error) = manifest.write(out)
    {
        say!("airpath: {error}");
    }
    conclude::pass_on(whole, &manifest);
    summary.seed = Some(whole.seed);
    let status = conclude::report(whole, &Finished { summary, manifest, status: local.status });
    if whole.report == Report::Summary {
        let p50_ns = |way: &str| hosts["network_delay"][way]["p50_ns"].as_u64().unwrap_or(0);
        let delays_ns = [p50_ns("to_host"), p50_ns("from_host")];
        let late_ns = far_results.timings.lateness.max_ns;
        let clock = (estimate.offset_ns, estimate.bound_ns, estimate.drift_ppm);
        say!("{}", joined::host_line(&part.host, clock.0, clock.1, clock.2, delays_ns, late_ns));
    }
    Ok(status)
}

/// Writes the logs of the whole path and its two captures.
fn write_logs(
    whole: &RunRequest,
    near: &Manifest,
    far: &Manifest,
    border: &Border,
    estimate: &Estimate,
    out: &Path,
) -> io::Result<()> {
    let parts = [HERE, &border.host].map(|host| out.join(HOSTS).join(host));
    let folders = parts.each_ref().map(|part| part.as_path());
    // A time of the far run, on the clock there, then on the clock here, since t = 0.
    let moved = |ns: u64| {
        let unix_ns = estimate.local_ns(far.start_unix_ns + ns).unwrap_or(far.start_unix_ns + ns);
        unix_ns.saturating_sub(near.start_unix_ns)
    };
    if whole.level >= Level::Events {
        joined::merge_events(folders, out, border, &near.states, &moved).map_err(io::Error::other)?;
        joined::merge_inputs(folders, out, &moved).map_err(io::Error::other)?;
    }
    if whole.level >= Level::Packets {
        for (end, folder) in [(End::Client, folders[0]), (End::Server, folders[1])] {
            let name = files::capture_name(end.name());
            let mut input = BufReader::new(File::open(folder.join(&name))?);
            let mut output = BufWriter::new(place::create_new(&out.join(&name))?);
            let change = |unix_ns: u64| match end {
                End::Client => Ok(unix_ns),
                End::Server => estimate.local_ns(unix_ns).ok_or_else(|| io::Error::other("a stamp before 1970")),
            };
            correct::capture::copy(&mut input, &mut output, &mut { change })?;
            output.flush()?;
        }
    }
    // The states of TCP are those of the client's end; the other host's are in its own folder.
    let tcp_state = folders[0].join(files::TCP_STATE);
    if tcp_state.exists() {
        place::copy(&tcp_state, &out.join(files::TCP_STATE))?;
    }
    Ok(())
}
