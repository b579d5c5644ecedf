// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The end of a run of several links, in words: a line for each, and one for all of them.

use std::cmp::Reverse;
use std::io::Write;
use std::path::Path;

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
    let finished = side_by_side::map(links.iter().zip(outcomes).collect(), |_, (link, outcome)| match outcome {
        Ok(outcome) => conclude::finish(link, outcome).map(Ok),
        Err(failure) => Ok(Err(failure)),
    });
    let finished: Vec<_> = finished.into_iter().collect::<Result<_>>()?;
    Ok(report_finished(run, &links.iter().collect::<Vec<_>>(), finished))
}

/// Prints what was asked for about `links` of `run`, of each of which `finished` tells what it came to, and returns the
/// exit status of the first command that failed.
pub fn report_finished(run: &RunRequest, links: &[&RunRequest], finished: Vec<Result<Finished>>) -> i32 {
    let mut judged = Vec::with_capacity(links.len());
    for (link, finished) in links.iter().zip(finished) {
        // Beside a user at the terminal nobody's status counts.
        let counts = run.foreground.is_none() || link.foreground.is_some();
        let judge = |Finished { summary, status, .. }| Judged { summary, status: if counts { status } else { 0 } };
        judged.push(OfLink { name: name(link), came_to: finished.map(judge) });
    }
    report(run, &judged)
}

/// A link, and what its run came to; a failure where it was lost.
struct OfLink<'a> {
    name: &'a str,
    came_to: Result<Judged>,
}

/// The end of a link's run.
struct Judged {
    summary: Summary,
    /// The first exit status of a command that is not 0.
    status: i32,
}

impl OfLink<'_> {
    fn judged(&self) -> Option<&Judged> {
        self.came_to.as_ref().ok()
    }

    fn grade(&self) -> Option<Grade> {
        self.judged().map(|judged| judged.summary.verdict.grade)
    }

    fn status(&self) -> i32 {
        self.came_to.as_ref().map_or_else(Failure::status, |judged| judged.status)
    }

    fn told(&self) -> serde_json::Value {
        let mut told = match &self.came_to {
            Ok(judged) => judged.summary.to_json(),
            Err(failure) => serde_json::json!({ "error": failure.to_string() }),
        };
        told["link"] = self.name.into();
        told["exit_status"] = self.status().into();
        told
    }

    fn line(&self) -> String {
        match &self.came_to {
            Ok(judged) => line(self.name, &judged.summary, judged.status),
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
        Report::Summary => text(run.out.as_deref(), links).iter().for_each(|line| say!("{line}")),
        Report::Json => say!("{}", json()),
        Report::Nothing => {
            let lost = links.iter().filter(|link| link.came_to.is_err());
            lost.for_each(|link| say!("airpath: {}", link.line()));
        }
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

/// The worst grade; a lost link makes the run invalid.
fn worst(links: &[OfLink<'_>]) -> Grade {
    links.iter().map(|link| link.grade().unwrap_or(Grade::Invalid)).max().unwrap_or_default()
}

fn name(link: &RunRequest) -> &str {
    link.place.as_ref().map_or("", |place| &place.name)
}

fn text(out: Option<&Path>, links: &[OfLink<'_>]) -> Vec<String> {
    let is_told = |link: &&OfLink<'_>| link.status() != 0 || link.grade() != Some(Grade::Trusted);
    let mut told: Vec<&OfLink<'_>> = links.iter().collect();
    if links.len() > SHOWN_LINKS {
        told.retain(is_told);
        // The worst is shown, however many there are.
        told.sort_by_key(|link| (link.came_to.is_ok(), link.status() == 0, Reverse(link.grade())));
    }
    let mut lines: Vec<String> = told.iter().take(SHOWN_LINKS).map(|link| link.line()).collect();
    if let Some(more @ 1..) = told.len().checked_sub(SHOWN_LINKS) {
        lines.push(format!("and {}", show::counted(more as u64, "more link")));
    }
    let reasons = links.iter().find_map(|link| link.judged()?.summary.verdict.reasons.first());
    let counts = Grade::ALL.map(|grade| {
        let count = links.iter().filter(|link| link.grade() == Some(grade)).count();
        (count > 0).then(|| format!("{count} {grade}"))
    });
    let lost = links.iter().filter(|link| link.came_to.is_err()).count();
    let lost = (lost > 0).then(|| format!("{lost} failed"));
    let counts: Vec<String> = counts.into_iter().chain([lost]).flatten().collect();
    let failed = links.iter().filter(|link| link.judged().is_some_and(|judged| judged.status != 0)).count();
    let failed = if failed > 0 {
        format!("; commands of {} failed", show::counted(failed as u64, "link"))
    } else {
        String::new()
    };
    let place = out.map(|folder| format!("; a folder for each in {}", folder.display()));
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

    fn judged(name: &str, grade: Grade, status: i32) -> OfLink<'_> {
        let mut summary = Summary::default();
        summary.verdict.grade = grade;
        OfLink { name, came_to: Ok(Judged { summary, status }) }
    }

    fn lost(name: &str) -> OfLink<'_> {
        OfLink { name, came_to: Err(Failure::new("a port is gone")) }
    }

    #[test]
    fn lost_links_and_failed_commands_come_before_many_others() {
        let mut links: Vec<_> = (0..25).map(|_| judged("suspect", Grade::Suspect, 0)).collect();
        links.extend([judged("fails", Grade::Trusted, 7), judged("wrong", Grade::Invalid, 0), lost("gone")]);
        links.push(judged("fine", Grade::Trusted, 0));
        let lines = text(None, &links);
        let names: Vec<&str> = lines[..4].iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(names, ["gone", "fails", "wrong", "suspect"]);
        assert_eq!(
            lines[SHOWN_LINKS..],
            ["and 8 more links", "29 links: 2 trusted, 25 suspect, 1 invalid, 1 failed; commands of 1 link failed",]
        );
        // Few are told in their order, and all of them.
        let lines = text(None, &links[26..]);
        assert_eq!(lines.len(), 3 + 1);
        assert!(lines[0].starts_with("wrong: ") && lines[2].starts_with("fine: "), "{lines:?}");
    }

    #[test]
    fn a_lost_link_makes_the_run_invalid() {
        let fine = || judged("fine", Grade::Trusted, 0);
        assert_eq!(worst(&[fine(), fine()]), Grade::Trusted);
        assert_eq!(worst(&[fine(), lost("gone")]), Grade::Invalid);
    }
}
