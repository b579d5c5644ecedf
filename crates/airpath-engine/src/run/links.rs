// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The links of a run that share nothing: each is a run of its own, with a machine, ends, a folder and a verdict, and
//! all have one engine, one start and one end.

use airpath_core::{Seed, Span};
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_log::RingSize;
use airpath_log::batch::BatchSize;
use airpath_scenario::{IndependentLink, Scenario};

use super::RunRequest;
use super::link_place::LinkPlace;
use super::request::Report;
use crate::error::{Failure, Result};
use crate::link;

/// A batch of a link has one in so many of the usual records, at least.
const SMALLEST_BATCH: usize = 8;
/// Number of batches of a link, at least.
const LEAST_BATCHES: usize = 4;

/// Interval between samples of TCP for each link of a run, where nobody chose one: 400 samples a second of all of them,
/// which take a tenth of a core.
const INTERVAL_OF_A_LINK: Span = Span::from_micros(2_500);

/// The seed of a link: draws depend on the names of users, wherever these are.
pub fn seed(run: u64, link: &IndependentLink) -> u64 {
    if link.scenario.is_cell() { run } else { Seed(run).of_user(&link.name).0 }
}

/// The links of `scenario`, if there are several.
///
/// # Errors
/// Everything that is wrong with it.
pub fn of(scenario: &Scenario) -> Result<Option<Vec<IndependentLink>>> {
    let links = scenario.independent().map_err(link::usage)?;
    Ok((links.len() > 1).then_some(links))
}

/// Refuses several links for `what`, which is for one.
///
/// # Errors
/// When there are several.
pub fn refuse(scenario: &Scenario, what: &str) -> Result<()> {
    match of(scenario)? {
        None => Ok(()),
        Some(links) => Err(Failure::usage(format!(
            "the scenario has {} links that share nothing, and {what} is for one: keep the [[paths]] of one",
            links.len()
        ))),
    }
}

/// Makes the folders of the links of `run`, whose own exists, if there are several.
///
/// # Errors
/// When one cannot be made.
pub fn make_folders(run: &RunRequest) -> Result<()> {
    let (Some(folder), Some(links)) = (&run.out, of(&run.scenario)?) else { return Ok(()) };
    links.iter().try_for_each(|link| airpath_log::folder::create(&folder.join(&link.name)).map_err(Failure::log))
}

/// Takes back the folders of `run` and of its links, as far as nothing began in them.
pub fn take_back_folders(run: &RunRequest) {
    let Some(folder) = &run.out else { return };
    for link in of(&run.scenario).ok().flatten().into_iter().flatten() {
        let own = folder.join(&link.name);
        if own.exists() {
            let _ = airpath_log::folder::take_back(&own, true);
        }
    }
    if folder.exists() {
        let _ = airpath_log::folder::take_back(folder, run.out_is_ours);
    }
}

impl RunRequest {
    /// The requests of its links: itself, where there is one.
    ///
    /// # Errors
    /// Everything that is wrong with the scenario.
    pub fn links(&self) -> Result<Vec<RunRequest>> {
        let Some(links) = of(&self.scenario)? else { return Ok(vec![self.clone()]) };
        let count = links.len();
        let mut first_user = 0;
        let mut requests = Vec::with_capacity(count);
        let Some(first) = links.first() else { return Ok(requests) };
        // Without the whole scenario, which has hundreds of paths.
        let (scenario, machine) = (first.scenario.clone(), link::machine(&first.scenario)?);
        let common = RunRequest { scenario, machine, clients: Vec::new(), ..self.clone() };
        for link in links {
            let users: Vec<String> =
                link.scenario.paths().map_err(link::usage)?.into_iter().map(|path| path.name).collect();
            let all = first_user..first_user + users.len();
            let host_ports =
                self.host_ports.iter().filter(|port| port.user.as_ref().is_none_or(|user| users.contains(user)));
            requests.push(RunRequest {
                machine: link::machine(&link.scenario)?,
                seed: seed(self.seed, &link),
                clients: self.clients[all.clone()].to_vec(),
                foreground: self.foreground.filter(|user| all.contains(user)).map(|user| user - first_user),
                host_ports: host_ports.cloned().collect(),
                out: self.out.as_ref().map(|folder| folder.join(&link.name)),
                out_is_ours: true,
                ring: share(self.ring, count),
                tcp_state: self.tcp_state_of(count),
                manifest: None,
                json_file: None,
                json: None,
                report: Report::Nothing,
                place: Some(LinkPlace { name: link.name.clone(), first_user, users }),
                scenario: link.scenario,
                ..common.clone()
            });
            first_user = all.end;
        }
        Ok(requests)
    }

    /// The recording of TCP of each of `links`.
    fn tcp_state_of(&self, links: usize) -> TcpStateMode {
        match self.tcp_state {
            TcpStateMode::Every(interval) if !self.tcp_state_is_asked => {
                TcpStateMode::Every(interval.max(Span::from_nanos(INTERVAL_OF_A_LINK.nanos() * links as u64)))
            }
            asked => asked,
        }
    }
}

/// The part of a ring that each of `links` has, in smaller batches, which are touched before the run.
fn share(ring: RingSize, links: usize) -> RingSize {
    let smaller = links.min(SMALLEST_BATCH);
    let batch = BatchSize {
        events: ring.batch.events / smaller,
        inputs: ring.batch.inputs / smaller,
        // A packet of any length fits.
        arena_bytes: ring.batch.arena_bytes / smaller.min(4),
    };
    RingSize { batches: (ring.bytes() / links / batch.bytes()).max(LEAST_BATCHES), batch }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_a_link_are_those_of_its_user() {
        let text = |names: &[&str]| {
            let path = |name: &&str| {
                format!("[[paths]]\nname = \"{name}\"\nhops = [{{ link = {{ rate = \"1 Mbit/s\" }} }}]\n")
            };
            names.iter().map(path).collect::<String>()
        };
        let links = |names: &[&str]| of(&Scenario::from_toml(&text(names), "x").unwrap()).unwrap();
        assert!(links(&["a"]).is_none());
        let (ab, ba) = (links(&["a", "b"]).unwrap(), links(&["b", "a"]).unwrap());
        assert_eq!(seed(7, &ab[0]), seed(7, &ba[1]));
        assert_ne!(seed(7, &ab[0]), seed(7, &ab[1]));
        assert_eq!(seed(7, &ab[0]), Seed(7).of_user("a").0);
    }
}
