// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages and folders of replications, common to all clocks.

use std::path::{Path, PathBuf};

use airpath_log::files;
use airpath_log::verdict::{Reason, Verdict};
use airpath_scenario::HERE;

use crate::error::{Failure, Result};
use crate::terminal::say;

/// Reason that a replication is not trusted.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Why {
    /// The code of the reason.
    pub code: String,
    /// Description of the problem.
    pub what: String,
    /// Advice for the user; called `mend` in `run.json` and journals.
    #[serde(rename = "mend")]
    pub hint: String,
}

impl Why {
    /// The reasons of a verdict.
    pub fn of(verdict: &Verdict) -> Vec<Why> {
        let why =
            |reason: &Reason| Why { code: reason.code.clone(), what: reason.what.clone(), hint: reason.hint.clone() };
        verdict.reasons.iter().map(why).collect()
    }
}

/// A finished replication.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Finished {
    /// Its number, from 1.
    pub number: u32,
    /// Its seed.
    pub seed: u64,
    /// Duration of the run, in seconds of its own clock.
    pub seconds: f64,
    /// The verdict's word, or that there is none.
    pub verdict: String,
    /// Reasons for a verdict other than trusted: the code of each, and the advice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Why>,
    /// The exit status.
    pub status: i32,
    /// Results in all detail, to compare with those of others; none if they are not known.
    #[serde(skip)]
    pub came_to: Option<serde_json::Value>,
}

/// Makes sure that `count` seeds from `first` on exist.
///
/// # Errors
/// When the last one would be beyond the largest number.
pub fn check_seeds(first: u64, count: u32) -> Result<()> {
    let last = first.checked_add(u64::from(count.saturating_sub(1)));
    last.map(drop).ok_or_else(|| {
        Failure::usage(format!(
            "--replications {count} from --seed {first} would exceed the largest seed, {}; use a smaller seed",
            u64::MAX
        ))
    })
}

/// The seed of replication `number` where the first has `first`; see [`check_seeds`].
pub fn seed(first: u64, number: u32) -> u64 {
    first + u64::from(number - 1)
}

/// The folder of replication `number` in the folder of them all.
pub fn folder(all: &Path, number: u32) -> PathBuf {
    all.join(format!("replication-{number:04}"))
}

/// Makes sure that the folder at `path`, of which one run is wanted to `action` it, is that of one run.
///
/// # Errors
/// When it is none, holds no run, or holds replications; the message names one of them.
pub fn one_run(path: &Path, action: &str) -> Result<()> {
    let named = path.display();
    if !path.is_dir() {
        return Err(Failure::usage(format!("{named} is not a directory; give the directory of a run, as with --out")));
    }
    let first = folder(path, 1);
    if !path.join(files::MANIFEST).exists() && first.is_dir() {
        let first = first.display();
        return Err(Failure::usage(format!("{named} holds several replications; {action} one of them: {first}")));
    }
    let is_run = |path: &Path| path.join(files::MANIFEST).exists();
    let link =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|link| is_run(link));
    if let (false, Some(link)) = (is_run(path), link.min()) {
        let link = link.display();
        return Err(Failure::usage(format!("{named} holds the runs of several links; {action} one of them: {link}")));
    }
    let here = path.join(files::HOSTS).join(HERE);
    if !is_run(path) && is_run(&here) {
        return Err(Failure::usage(format!(
            "{named} holds the parts of a run on several hosts that was killed before they were joined, or is active; \
             {action} one of them: {}",
            here.display()
        )));
    }
    if files::files().iter().any(|file| file.shows_a_run && path.join(&file.name).exists()) {
        return Ok(());
    }
    Err(Failure::usage(format!("{named} is not the folder of a run; exec and sim leave one with --out")))
}

impl Finished {
    /// Tells how it ended; there are `count` of them.
    pub fn tell(&self, count: u32) {
        let Finished { number, seed, seconds, verdict, status, .. } = self;
        say!("airpath: replication {number}/{count}, seed {seed}: {seconds:.2} s, exit status {status}, {verdict}");
    }
}

/// The time in seconds that `share` (0 to 1) of replications sorted by their times do not exceed.
fn quantile(sorted: &[Finished], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize].seconds
}

/// Tells how all of them (at least one) went, and where they are.
pub fn summarise(finished: &[Finished], folder: Option<&Path>) {
    let mut sorted = finished.to_vec();
    sorted.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let trusted = finished.iter().filter(|one| one.verdict == "trusted").count();
    say!(
        "airpath: {} replications: median {:.2} s, 10th percentile {:.2} s, 90th {:.2} s; {trusted} trusted",
        finished.len(),
        quantile(&sorted, 0.5),
        quantile(&sorted, 0.1),
        quantile(&sorted, 0.9)
    );
    let (first, last) = (&sorted[0], &sorted[sorted.len() - 1]);
    // Runs that came to the same in everything are told apart from these, by `tell_same`.
    if finished.len() > 1 && first.seconds.to_bits() == last.seconds.to_bits() && !all_the_same(finished) {
        say!(
            "airpath: all took the same time: nothing random changes these runs, and one replication says as much; add \
             for example --loss 1%"
        );
    }
    let reasons = reasons(finished);
    if let Some((first, _)) = reasons.first() {
        let counts: Vec<String> = reasons.iter().map(|(why, count)| format!("{} in {count}", why.code)).collect();
        say!("airpath: not trusted: {}", counts.join(", "));
        let example = if trusted == 0 { "none is trusted" } else { "the most frequent reason" };
        say!("airpath: {example}, such as: {}; {}", first.what, first.hint);
    }
    if let Some(folder) = folder {
        say!("airpath: results in {}", folder.display());
    }
}

/// True if several replications came to the same in everything, though their seeds differ.
pub fn all_the_same(finished: &[Finished]) -> bool {
    finished.len() > 1
        && finished[0].came_to.is_some()
        && finished.windows(2).all(|two| two[0].came_to == two[1].came_to)
}

/// Tells that `count` replications say no more than one of them.
pub fn tell_same(count: usize) {
    say!(
        "airpath: all {count} runs are identical: this link and workload have no randomness; add for example --loss \
         1%, or run only one"
    );
}

/// Each code among the reasons with how many replications have it, the most frequent first, and with the reason as
/// one of them gave it.
fn reasons(finished: &[Finished]) -> Vec<(&Why, usize)> {
    let mut counted: Vec<(&Why, usize)> = Vec::new();
    for one in finished {
        let mut of_this_one: Vec<&str> = Vec::new();
        for why in &one.reasons {
            if of_this_one.contains(&why.code.as_str()) {
                continue;
            }
            of_this_one.push(&why.code);
            match counted.iter_mut().find(|(known, _)| known.code == why.code) {
                Some((_, count)) => *count += 1,
                None => counted.push((why, 1)),
            }
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted
}

/// The exit status of all of them: the first that is not 0.
pub fn status(finished: &[Finished]) -> i32 {
    finished.iter().map(|one| one.status).find(|status| *status != 0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_by_replication() {
        let why = |code: &str| Why { code: code.into(), what: format!("{code}!"), hint: "rest".into() };
        let finished = |codes: &[&str]| Finished {
            number: 1,
            seed: 1,
            seconds: 1.0,
            verdict: "suspect".into(),
            reasons: codes.iter().map(|code| why(code)).collect(),
            status: 0,
            came_to: None,
        };
        let all = [finished(&["reads"]), finished(&["late", "late", "reads"]), finished(&[]), finished(&["reads"])];
        let counted = reasons(&all);
        let counted: Vec<_> = counted.iter().map(|(why, count)| (why.code.as_str(), *count)).collect();
        assert_eq!(counted, [("reads", 3), ("late", 1)]);
        assert!(reasons(&all[2..3]).is_empty());
    }
}
