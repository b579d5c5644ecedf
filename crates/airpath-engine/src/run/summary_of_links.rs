// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The end of a run of several links, in words: a line for each, and one for all of them.

use std::io::Write;

use airpath_live::side_by_side;
use airpath_log::summary::DirectionSummary;
use airpath_log::verdict::Reason;
use airpath_log::{Grade, Summary, show};

use super::conclude::{self, Finished};
use super::outcome::LiveOutcome;
use super::request::{Report, RunRequest};
use crate::error::{Failure, Result};
use crate::status;
use crate::terminal::say;

/// Number of links each of which gets a line; of more, those that are not trusted or failed.
const SHOWN_LINKS: usize = 20;

/// Finishes the logs of `links` of `run`, judges each, prints what was asked for and returns the exit status of the
/// first command that failed.
///
/// # Errors
/// As [`conclude::conclude`].
pub fn conclude_links(run: &RunRequest, links: &[RunRequest], outcomes: Vec<Result<LiveOutcome>>) -> Result<i32> {
    let finished = side_by_side::map(links.iter().zip(outcomes).collect(), |_, (link, outcome)| {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => return Ok(OfLink { name: name(link), came_to: Err(failure) }),
        };
        let finished = conclude::finish(link, outcome)?;
        // Beside a user at the terminal nobody's status counts.
        let counts = run.foreground.is_none() || link.foreground.is_some();
        let finished = Finished { status: if counts { finished.status } else { 0 }, ..finished };
        Ok(OfLink { name: name(link), came_to: Ok(finished) })
    });
    let finished: Vec<_> = finished.into_iter().collect::<Result<_>>()?;
    Ok(report(run, &finished))
}

/// A link, and what its run came to; a failure where it was lost.
struct OfLink<'a> {
    name: &'a str,
    came_to: Result<Finished>,
}

impl OfLink<'_> {
    fn finished(&self) -> Option<&Finished> {
        self.came_to.as_ref().ok()
    }

    fn grade(&self) -> Option<Grade> {
        self.finished().map(|finished| finished.summary.verdict.grade)
    }

    fn status(&self) -> i32 {
        self.came_to.as_ref().map_or_else(Failure::status, |finished| finished.status)
    }

    fn told(&self) -> serde_json::Value {
        let mut told = match &self.came_to {
            Ok(finished) => finished.summary.to_json(),
            Err(failure) => serde_json::json!({ "error": failure.to_string() }),
        };
        told["link"] = self.name.into();
        told["exit_status"] = self.status().into();
        told
    }

    fn line(&self) -> String {
        match &self.came_to {
            Ok(finished) => line(self.name, &finished.summary, finished.status),
            Err(failure) => format!("{}: failed: {failure}", self.name),
        }
    }
}

/// Prints what was asked for, and returns the exit status: the first that is not 0.
fn report(run: &RunRequest, links: &[OfLink<'_>]) -> i32 {
    let json = || {
        serde_json::json!({
            "verdict": worst(links),
            "links": links.iter().map(OfLink::told).collect::<Vec<_>>(),
        })
    };
    match run.report {
        Report::Summary => text(run, links).iter().for_each(|line| say!("{line}")),
        Report::Json => say!("{}", json()),
        Report::Nothing => {}
    }
    if let Some(file) = &run.json
        && let Err(error) = writeln!(&**file, "{}", json())
    {
        say!("airpath: cannot write the summary as JSON: {error}");
    }
    let failed = links.iter().map(OfLink::status).find(|status| *status != 0).unwrap_or(0);
    if failed == 0 && run.strict && worst(links) != Grade::Trusted {
        return status::NOT_TRUSTED;
    }
    failed
}

fn worst(links: &[OfLink<'_>]) -> Grade {
    links.iter().filter_map(OfLink::grade).max().unwrap_or_default()
}

fn name(link: &RunRequest) -> &str {
    link.place.as_ref().map_or("", |place| &place.name)
}

fn text(run: &RunRequest, links: &[OfLink<'_>]) -> Vec<String> {
    let is_told = |link: &OfLink<'_>| link.status() != 0 || link.grade() != Some(Grade::Trusted);
    let told = links.iter().filter(|link| links.len() <= SHOWN_LINKS || is_told(link));
    let mut lines: Vec<String> = told.take(SHOWN_LINKS).map(OfLink::line).collect();
    let reasons = links.iter().find_map(|link| link.finished()?.summary.verdict.reasons.first());
    let counts = Grade::ALL.map(|grade| {
        let count = links.iter().filter(|link| link.grade() == Some(grade)).count();
        (count > 0).then(|| format!("{count} {grade}"))
    });
    let lost = links.iter().filter(|link| link.came_to.is_err()).count();
    let lost = (lost > 0).then(|| format!("{lost} failed"));
    let counts: Vec<String> = counts.into_iter().chain([lost]).flatten().collect();
    let failed = links.iter().filter(|link| link.finished().is_some_and(|finished| finished.status != 0)).count();
    let failed = if failed > 0 {
        format!("; commands of {} failed", show::counted(failed as u64, "link"))
    } else {
        String::new()
    };
    let place = run.out.as_ref().map(|folder| format!("; a folder for each in {}", folder.display()));
    lines.push(format!("{} links: {}{failed}{}", links.len(), counts.join(", "), place.unwrap_or_default()));
    if let Some(Reason { what, hint, .. }) = reasons {
        lines.push(format!("not trusted, such as: {what}; {hint}"));
    }
    lines
}

/// A link in one line.
fn line(name: &str, summary: &Summary, status: i32) -> String {
    let direction = |name: &str, of: &DirectionSummary| {
        let delay = match of.delivered_packets {
            0 => String::new(),
            _ => format!(", delay p50 {}, max {}", show::span(of.delay.p50_ns), show::span(of.delay.max_ns)),
        };
        let (delivered, offered) = (show::count(of.delivered_packets), show::counted(of.offered_packets, "packet"));
        format!("{name} {delivered} of {offered}{delay}")
    };
    let failed = if status == 0 { String::new() } else { format!("; exit status {status}") };
    format!(
        "{name}: {}; {}; {}{failed}",
        direction("uplink", &summary.uplink),
        direction("downlink", &summary.downlink),
        summary.verdict.grade
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_packets_delay_verdict_and_failure() {
        let uplink = DirectionSummary { offered_packets: 12, delivered_packets: 10, ..DirectionSummary::default() };
        let mut summary = Summary { uplink, ..Summary::default() };
        summary.uplink.delay.p50_ns = 20_000_000;
        summary.uplink.delay.max_ns = 30_000_000;
        assert_eq!(
            line("a", &summary, 0),
            "a: uplink 10 of 12 packets, delay p50 20.0 ms, max 30.0 ms; downlink 0 of 0 packets; trusted"
        );
        assert!(line("a", &summary, 7).ends_with("trusted; exit status 7"));
    }
}
