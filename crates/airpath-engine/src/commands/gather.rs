// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The results of all hosts in one folder, one summary, one verdict.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use airpath_clocks::{Estimate, correct};
use airpath_core::End;
use airpath_log::joined::{self, HostLine, PartHops};
use airpath_log::manifest::Results;
use airpath_log::manifest::Status;
use airpath_log::{Distribution, Level, Manifest, Summary, files, place};
use airpath_scenario::HERE;
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::run::conclude::{self, Finished};
use crate::run::files::KeptFiles;
use crate::run::{RunRequest, manifest as places};
use crate::terminal::say;

/// Results of another host's part.
pub struct Collected {
    /// The name of the part.
    pub name: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its summary.
    pub summary: Summary,
    /// Delays of packets from the host before to it.
    pub before: Distribution,
    /// Delays of packets from the host behind to it.
    pub behind: Distribution,
    /// Its clock, compared with that of this host.
    pub clock: Estimate,
    /// Facts about the host for the manifest, beside its results.
    pub about: Value,
}

impl Collected {
    fn results(&self) -> Result<&Results> {
        let none = || Failure::new(format!("host `{}` told no results", self.name));
        self.manifest.results.as_ref().ok_or_else(none)
    }

    /// The account of the host for the manifest; `from_host` are the delays from it to the host before.
    fn account(&self, from_host: Distribution) -> Result<Value> {
        let results = self.results()?;
        let mut account = json!({
            "name": self.name,
            "hops": self.manifest.hops,
            "network_delay": { "to_host": self.before, "from_host": from_host },
            "lateness": results.timings.lateness,
            "verdict": results.verdict,
        });
        if let Value::Object(account) = &mut account {
            for more in [clock_account(&self.clock), self.about.clone()] {
                account.extend(more.as_object().cloned().unwrap_or_default());
            }
        }
        Ok(account)
    }
}

/// Account of another host's clock for the manifest.
pub fn clock_account(clock: &Estimate) -> Value {
    json!({
        "clock": {
            "offset_ns": clock.offset_ns,
            "bound_ns": clock.bound_ns,
            "drift_ppm": clock.drift_ppm,
            "drift_interval_ppm": clock.drift_interval_ppm,
        },
        ESTIMATE: clock,
    })
}

/// Key of the whole estimate of a clock.
const ESTIMATE: &str = "clock_estimate";

/// The log of a part of the path.
struct PartLog {
    hops: PartHops,
    /// Its start by the clock of its host.
    start_unix_ns: u64,
    /// That clock; none at this host.
    clock: Option<Estimate>,
}

/// Results of all hosts.
pub struct Gathered<'a> {
    /// The request for the whole path.
    pub whole: &'a RunRequest,
    /// The part on this host.
    pub local: Finished,
    /// Delays of packets from the second part to this one.
    pub behind: Distribution,
    /// The other parts, in the order of the path.
    pub others: Vec<Collected>,
}

/// Results of all hosts as one.
pub struct Joined {
    /// The run, judged.
    pub finished: Finished,
    /// A line of the summary for each of the other hosts.
    pub hosts: Vec<String>,
}

/// Writes the folder of the whole run.
///
/// # Errors
/// When another host's results cannot be read.
pub fn join(gathered: Gathered<'_>) -> Result<Joined> {
    let Gathered { whole, local, behind, others } = gathered;
    let mut parts = vec![PartHops { host: HERE.into(), hops: local.manifest.hops.clone() }];
    parts.extend(others.iter().map(|one| PartHops { host: one.name.clone(), hops: one.manifest.hops.clone() }));
    let none = || Failure::new("this host told no results");
    let here_results = local.manifest.results.as_ref().ok_or_else(none)?;
    let summaries: Vec<&Summary> =
        std::iter::once(&local.summary).chain(others.iter().map(|other| &other.summary)).collect();
    let mut all_results = vec![here_results];
    for other in &others {
        all_results.push(other.results()?);
    }
    let mut summary = joined::summary(&summaries, &parts).ok_or_else(none)?;
    let mut results = joined::results(&all_results, &parts).ok_or_else(none)?;
    let mut logs = Vec::new();
    for (number, hops) in parts.iter().enumerate() {
        let other = number.checked_sub(1).and_then(|number| others.get(number));
        let start_unix_ns = other.map_or(local.manifest.start_unix_ns, |other| other.manifest.start_unix_ns);
        logs.push(PartLog { hops: hops.clone(), start_unix_ns, clock: other.map(|other| other.clock.clone()) });
    }
    let write = |out: &Path| -> io::Result<()> {
        write_logs(whole.level, &local.manifest.states, &logs, out)?;
        write_captures(whole.level, &logs, out)?;
        copy_tcp_state(out)
    };
    if let Some(out) = &whole.out
        && let Err(error) = write(out)
    {
        say!(
            "airpath: the logs of the hosts could not be joined: {error}\n  Each is whole in {}",
            out.join(HOSTS).display()
        );
        results.log.complete = false;
        results.log.files.incomplete.push(format!("the logs of the hosts could not be joined: {error}"));
    }
    let mut accounts = vec![json!({
        "name": HERE,
        "hops": local.manifest.hops,
        "lateness": here_results.timings.lateness,
        "verdict": here_results.verdict,
    })];
    // What comes from a host to the one before it is measured there.
    let from_hosts = std::iter::once(behind).chain(others.iter().map(|other| other.behind));
    for (other, from_host) in others.iter().zip(from_hosts) {
        accounts.push(other.account(from_host)?);
    }
    let mut manifest = local.manifest.clone();
    manifest.status = Status::Finished;
    manifest.name_places(&places::places(&whole.machine));
    let kept = KeptFiles::keep(&whole.scenario, whole.out.as_deref()).unwrap_or_default();
    manifest.scenario_toml = kept.scenario_toml(&whole.scenario);
    manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
    let mut commands: Vec<_> = others.iter().flat_map(|other| other.manifest.commands.clone()).collect();
    commands.append(&mut manifest.commands);
    manifest.commands = commands;
    manifest.hosts.clone_from(&accounts);
    manifest.results = Some(results);
    if let Some(out) = &whole.out
        && let Err(error) = manifest.write(out)
    {
        say!("airpath: {error}");
    }
    conclude::pass_on(whole, &manifest);
    summary.seed = Some(whole.seed);
    let line = |(other, account): (&Collected, &Value)| {
        let p50_ns = |way: &str| {
            let delay = &account["network_delay"][way];
            delay["p50_ns"].as_u64().filter(|_| delay["count"].as_u64().is_some_and(|count| count > 0))
        };
        let line = HostLine {
            host: &other.name,
            offset_ns: other.clock.offset_ns,
            bound_ns: other.clock.bound_ns,
            drift_interval_ppm: other.clock.drift_interval_ppm,
            delays_ns: [p50_ns("to_host"), p50_ns("from_host")],
            late_ns: account["lateness"]["max_ns"].as_u64().unwrap_or(0),
        };
        line.to_string()
    };
    let hosts = others.iter().zip(&accounts[1..]).map(line).collect();
    Ok(Joined { finished: Finished { summary, manifest, status: local.status }, hosts })
}

/// Joins what the hosts recorded of a run that broke off, so that whoever reads logs finds it in the folder of the
/// whole. Where one of them has nothing, each part stays for itself.
///
/// # Errors
/// In words, what could not be joined.
pub fn join_remains(whole: &RunRequest, out: &Path) -> std::result::Result<(), String> {
    let manifest = Manifest::read(out).map_err(|error| error.to_string())?;
    if manifest.status != Status::Failed || whole.level < Level::Events {
        return Ok(());
    }
    let mut logs = Vec::new();
    for (number, host) in
        std::iter::once(HERE).chain(manifest.hosts.iter().filter_map(|host| host["name"].as_str())).enumerate()
    {
        let part = Manifest::read(&out.join(HOSTS).join(host));
        let part = part.map_err(|_| format!("host `{host}` has no log here"))?;
        let estimate = number.checked_sub(1).map(|number| manifest.hosts[number][ESTIMATE].clone());
        let clock = estimate.map(serde_json::from_value).transpose();
        let clock = clock.map_err(|_| format!("the clock of host `{host}` is not known"))?;
        logs.push(PartLog {
            hops: PartHops { host: host.to_owned(), hops: part.hops },
            start_unix_ns: part.start_unix_ns,
            clock,
        });
    }
    write_logs(whole.level, &manifest.states, &logs, out).map_err(|error| error.to_string())?;
    write_captures(whole.level, &logs, out).map_err(|error| error.to_string())
}

/// The folders of `parts`.
fn folders(parts: &[PartLog], out: &Path) -> Vec<PathBuf> {
    parts.iter().map(|part| out.join(HOSTS).join(&part.hops.host)).collect()
}

/// Writes the logs of the whole path.
fn write_logs(level: Level, states: &[String], parts: &[PartLog], out: &Path) -> io::Result<()> {
    if level < Level::Events {
        return Ok(());
    }
    let folders = folders(parts, out);
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let hops: Vec<PartHops> = parts.iter().map(|part| part.hops.clone()).collect();
    // A time of a far run, on the clock there, then on the clock here, since t = 0.
    let moved = |part: usize, ns: u64| {
        let PartLog { start_unix_ns, clock: Some(clock), .. } = &parts[part] else { return ns };
        let there_ns = start_unix_ns + ns;
        clock.local_ns(there_ns).unwrap_or(there_ns).saturating_sub(parts[0].start_unix_ns)
    };
    joined::merge_events(&folders, out, &hops, states, &moved).map_err(io::Error::other)?;
    joined::merge_inputs(&folders, out, &hops, &moved).map_err(io::Error::other)?;
    Ok(())
}

/// Writes the captures at the two ends of the path.
fn write_captures(level: Level, parts: &[PartLog], out: &Path) -> io::Result<()> {
    let folders = folders(parts, out);
    let (Some(first), Some(last)) = (folders.first(), folders.last()) else { return Ok(()) };
    if level < Level::Packets {
        return Ok(());
    }
    let clock = parts.last().and_then(|part| part.clock.as_ref());
    for (end, folder) in [(End::Client, first), (End::Server, last)] {
        let name = files::capture_name(end.name());
        let mut input = BufReader::new(File::open(folder.join(&name))?);
        let mut output = BufWriter::new(place::create_new(&out.join(&name))?);
        let change = |unix_ns: u64| match end {
            End::Client => Ok(unix_ns),
            End::Server => clock
                .map_or(Some(unix_ns), |clock| clock.local_ns(unix_ns))
                .ok_or_else(|| io::Error::other("a stamp before 1970")),
        };
        correct::capture::copy(&mut input, &mut output, &mut { change })?;
        output.flush()?;
    }
    Ok(())
}

/// Copies the states of TCP at the client's end into the folder of the whole run; those of other hosts are in their own
/// folders.
fn copy_tcp_state(out: &Path) -> io::Result<()> {
    let tcp_state = out.join(HOSTS).join(HERE).join(files::TCP_STATE);
    if tcp_state.exists() {
        place::copy(&tcp_state, &out.join(files::TCP_STATE))?;
    }
    Ok(())
}
