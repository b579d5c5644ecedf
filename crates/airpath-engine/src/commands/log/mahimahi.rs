// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath log --mahimahi`: the log that mm-link would have written.

use std::io::Write;
use std::path::Path;

use airpath_core::{Direction, LinkRate, Time};
use airpath_log::render::{MahimahiLog, RenderError, Rendered, mahimahi};
use airpath_log::{Manifest, files};
use airpath_models::medium::rate::curve::{Curve, WORK_PER_BIT, Work};
use airpath_models::medium::rate::mahimahi::{Accounting, MahimahiConfig, OPPORTUNITY_BITS};
use airpath_models::medium::rate::slotted::SlottedConfig;
use airpath_models::medium::{RateConfig, VaryingConfig};
use airpath_models::{LinkConfig, PathConfig};
use airpath_scenario::Scenario;

use crate::cli::LogArgs;
use crate::error::{Failure, Result};
use crate::link::only_path;

const MILLISECOND_NS: u64 = 1_000_000;
const OPPORTUNITY_BYTES: u64 = OPPORTUNITY_BITS / 8;

/// Writes it.
///
/// # Errors
/// When the run's scenario cannot be read any more, or no hop is named where there are several.
pub fn write(
    args: &LogArgs,
    manifest: &Manifest,
    direction: Option<Direction>,
    out: &mut dyn Write,
) -> Result<Rendered> {
    let Some(direction) = direction else {
        return Err(Failure::usage("--mahimahi writes one direction; add --direction uplink or --direction downlink"));
    };
    let path = path(&args.dir, manifest)?;
    let hop = match (&args.hop, manifest.hops.as_slice()) {
        (Some(hop), _) => hop.clone(),
        (None, [only]) => only.clone(),
        (None, several) if several.iter().any(|hop| hop == "radio") => "radio".into(),
        (None, several) => {
            let message = format!("--mahimahi writes one hop; add --hop with one of {}", several.join(", "));
            return Err(Failure::usage(message));
        }
    };
    let index = path.hops.iter().position(|known| known.name == hop).unwrap_or(0);
    let link = path.hops[index].link(direction);
    let name = match direction {
        Direction::Uplink => "Uplink",
        Direction::Downlink => "Downlink",
    };
    let head = [
        format!("mahimahi mm-link ({name}) [{}] > {}", link.rate, args.dir.display()),
        format!("command line: {}", command_line(manifest)),
        format!("queue: {}", queue(link)),
    ];
    let what = MahimahiLog {
        hop: &hop,
        direction,
        head: &head,
        init_timestamp_ms: manifest.start_unix_ns / MILLISECOND_NS,
        extra_bytes: match &link.rate {
            RateConfig::Varying(VaryingConfig::Mahimahi(MahimahiConfig { accounting: Accounting::Tun, .. })) => 4,
            _ => 0,
        },
        end_ns: manifest.results.as_ref().map(|results| results.duration_ns),
        drops: !args.without_drops,
    };
    let mut opportunities = |from: u64, to: u64, state: &str| {
        let state = path.states.iter().find(|known| known.name == state);
        let hops = state.map_or(&path.hops, |state| &state.hops);
        granted(&hops[index].link(direction).rate, from, to)
    };
    mahimahi(&args.dir, &what, &mut opportunities, out).map_err(|error| match error {
        RenderError::Filter(error) => Failure::usage(error.to_string()),
        RenderError::Log(error) => Failure::log(error),
        RenderError::Output(_) => Failure::unwritable(error.to_string()),
    })
}

/// The path that was run. Files that it names are looked for where the user is, then beside the run.
fn path(folder: &Path, manifest: &Manifest) -> Result<PathConfig> {
    let beside = folder.join(files::MANIFEST).display().to_string();
    let scenario = Scenario::from_toml(&manifest.scenario_toml, files::MANIFEST)
        .or_else(|_| Scenario::from_toml(&manifest.scenario_toml, &beside));
    only_path(&scenario.map_err(|report| Failure::usage(format!("the run's scenario cannot be read again: {report}")))?)
}

fn command_line(manifest: &Manifest) -> String {
    let commands =
        manifest.commands.iter().find(|command| command.end == "client").map(|command| command.command.join(" "));
    let workloads = || manifest.workloads.iter().map(|one| one.workload.as_str()).collect::<Vec<_>>().join("; ");
    format!("airpath {}", commands.unwrap_or_else(workloads)).replace('\n', " ")
}

/// The queue as mm-link writes its own.
fn queue(link: &LinkConfig) -> String {
    let table = toml::Table::try_from(&link.queue).unwrap_or_default();
    let kind = table.get("type").and_then(toml::Value::as_str).unwrap_or("unknown");
    let kind = match kind {
        "tail_drop" => "droptail",
        "head_drop" => "drophead",
        other => other,
    };
    let limit = table.get("limit").and_then(toml::Value::as_str).unwrap_or("unlimited");
    if limit == "unlimited" && kind == "droptail" { "infinite".into() } else { format!("{kind} [{limit}]") }
}

/// Grants of a rate after `from` and up to `to`: times and bytes; none where it has no limit.
fn granted(rate: &RateConfig, from: u64, to: u64) -> Option<Vec<(u64, u64)>> {
    match rate {
        RateConfig::Constant(LinkRate::Unlimited) => None,
        RateConfig::Constant(LinkRate::Fixed(rate)) => {
            let work = |at: u64| Work::from(rate.bits_per_second()) * Work::from(at);
            let when = |work: Work| (work / Work::from(rate.bits_per_second())) as u64;
            Some(of_work(work(from), work(to), when))
        }
        RateConfig::Varying(VaryingConfig::Steps(config)) => {
            Some(of_curve(&config.curve(), config.period.is_some(), from, to))
        }
        RateConfig::Varying(VaryingConfig::Trace(config)) => {
            Some(of_curve(&config.curve(), config.repeats(), from, to))
        }
        RateConfig::Varying(VaryingConfig::Mahimahi(config)) => Some(of_trace(config, from, to)),
        RateConfig::Varying(VaryingConfig::Slotted(config)) => Some(of_slots(config, from, to)),
        RateConfig::Varying(VaryingConfig::Cellreplay(config)) => {
            let heavy = MahimahiConfig { file: config.heavy.clone(), repeat: true, accounting: Accounting::Ip };
            Some(of_trace(&heavy, from, to))
        }
    }
}

fn of_curve(curve: &Curve, repeat: bool, from: u64, to: u64) -> Vec<(u64, u64)> {
    let (mut one, mut other) = (0, 0);
    let mut done = |at| curve.done(Time::from_nanos(at), repeat, &mut one);
    let (before, after) = (done(from), done(to));
    of_work(before, after, |work| curve.when(work, repeat, &mut other).nanos())
}

/// An opportunity whenever another 1500 bytes could have been sent since the run began.
fn of_work(before: Work, after: Work, mut when: impl FnMut(Work) -> u64) -> Vec<(u64, u64)> {
    let each = Work::from(OPPORTUNITY_BITS) * WORK_PER_BIT;
    (before / each + 1..=after / each).map(|number| (when(number * each), OPPORTUNITY_BYTES)).collect()
}

fn of_trace(config: &MahimahiConfig, from: u64, to: u64) -> Vec<(u64, u64)> {
    let bytes = config.accounting.opportunity_bits() / 8;
    let trace = config.file.data();
    let period = trace.period_ms() * MILLISECOND_NS;
    let rounds = if config.repeat { from / period..=to / period } else { 0..=0 };
    // What opens a round comes with what ends the one before.
    let rounds = rounds.start().saturating_sub(1)..=*rounds.end();
    let all = trace.opportunities();
    let mut found = Vec::new();
    for round in rounds {
        let at = |ms: u64| round * period + ms * MILLISECOND_NS;
        // What there is at the very beginning belongs to the first stretch.
        let begin = all.partition_point(|(ms, _)| at(*ms) <= from && (from > 0 || at(*ms) > 0));
        for (ms, count) in all[begin..].iter().take_while(|(ms, _)| at(*ms) <= to) {
            found.extend((0..*count).map(|_| (at(*ms), bytes)));
        }
    }
    found
}

/// Slots count when they end.
fn of_slots(config: &SlottedConfig, from: u64, to: u64) -> Vec<(u64, u64)> {
    let period = config.period.unwrap_or(config.slot).nanos();
    let first = config.offset.nanos() + config.slot.nanos();
    let begin = from.saturating_sub(first) / period;
    (begin..)
        .map(|number| first + number * period)
        .take_while(|at| *at <= to)
        .filter(|at| *at > from)
        .map(|at| (at, config.bits.get() / 8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_models::file::{FileFormat, FileRef};
    use airpath_models::medium::rate::mahimahi::MahimahiTrace;

    #[test]
    fn stretches_of_a_trace_make_the_whole() {
        let file = FileRef::with_data("x", MahimahiTrace::parse(b"0\n2\n2\n5\n").unwrap());
        let config = MahimahiConfig { file, repeat: true, accounting: Accounting::Ip };
        let ms = |from: u64, to: u64| -> Vec<u64> {
            of_trace(&config, from, to).iter().map(|(at, _)| at / MILLISECOND_NS).collect()
        };
        assert_eq!(ms(0, 12_000_000), [0, 2, 2, 5, 5, 7, 7, 10, 10, 12, 12]);
        assert_eq!(ms(2_000_000, 5_000_000), [5, 5]);
        assert_eq!(ms(1_999_999, 2_000_000), [2, 2]);
        let mut joined = Vec::new();
        for step in 0..24 {
            joined.extend(ms(step * 500_000, (step + 1) * 500_000));
        }
        assert_eq!(joined, ms(0, 12_000_000));
        let once = MahimahiConfig { repeat: false, ..config.clone() };
        assert_eq!(of_trace(&once, 4_000_000, 90_000_000).len(), 1);
    }

    #[test]
    fn a_rate_grants_a_packet_whenever_it_could_have_been_sent() {
        let rate: RateConfig = "5 Mbit/s".parse().unwrap();
        let all = granted(&rate, 0, 12_000_000).unwrap();
        assert_eq!(all, [2_400_000, 4_800_000, 7_200_000, 9_600_000, 12_000_000].map(|at| (at, 1_500)));
        assert_eq!(granted(&rate, 2_400_000, 4_799_999).unwrap(), []);
        let slots = SlottedConfig {
            slot: "1 ms".parse().unwrap(),
            bits: "800 bit".parse().unwrap(),
            period: Some("4 ms".parse().unwrap()),
            offset: "2 ms".parse().unwrap(),
        };
        assert_eq!(of_slots(&slots, 3_000_000, 11_000_000), [(7_000_000, 100), (11_000_000, 100)]);
    }
}
