// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The option `--blackout`: a time in the dark in one word.

use std::sync::Arc;

use airpath_core::Span;

use crate::check::join;
use crate::document::{Key, Node, Place, Source, Value};
use crate::report::{Diagnostic, Report};
use crate::scenario::Scenario;
use crate::states::{StateTree, StayTree};

/// Name of the states that the option creates; from the second on with a number.
const NAME: &str = "blackout";
const EXAMPLE: &str = "--blackout '20 s, 3 s, drop'";

impl Scenario {
    /// Adds a blackout of the hop that plain options mean, in both directions: `20 s, 3 s, drop` begins
    /// at 20 s, lasts 3 s, and drops (or, by `store`, keeps) what is on the link.
    pub(crate) fn add_blackout(&mut self, text: &str) -> Result<(), Report> {
        let source = Arc::new(Source { name: format!("--blackout \"{text}\""), text: text.into(), is_file: false });
        let place = Place::whole(&source);
        let error = |message: String| Report::from(Diagnostic::at(&place, "", message));
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (at, duration, how) = match parts.as_slice() {
            [at, duration] => (*at, *duration, "drop"),
            [at, duration, how @ ("drop" | "store")] => (*at, *duration, *how),
            _ => {
                return Err(error(format!(
                    "a blackout needs its start, its duration, and `drop` or `store`, as in {EXAMPLE}"
                )));
            }
        };
        let span = |part: &str| part.parse::<Span>().map_err(|problem| error(problem.to_string()));
        let (at, lasts) = (span(at)?, span(duration)?);
        let hops = self.plain_hops(&place)?;
        for (path, hop) in self.paths.iter_mut().zip(hops) {
            if let Some(other) = path.states.iter().find(|state| !state.name.starts_with(NAME)) {
                return Err(error(format!(
                    "the scenario has its own states (`{}`), but a blackout ends with the initial parameters; write \
                     it as one of [[states]], with the following state as its `next`",
                    other.name
                )));
            }
            let node = |text: &str| Node { value: Value::Text(text.into()), place: place.clone() };
            // Within one of several paths, parameters have no path in front.
            let hop = hop.rsplit('.').next().unwrap_or_default();
            let key = Key { name: join(hop, "link.blackout"), place: place.clone() };
            let number = path.states.len() + 1;
            let name = if number == 1 { NAME.to_string() } else { format!("{NAME}{number}") };
            let overlaps = |state: &&StateTree| {
                let from = state.at.unwrap_or_default();
                let other = state.stay.duration.as_ref().and_then(Node::as_text).and_then(|text| text.parse().ok());
                from <= at + lasts && at <= from + other.unwrap_or(Span::ZERO)
            };
            if let Some(other) = path.states.iter().find(overlaps) {
                return Err(error(format!(
                    "it overlaps or touches the blackout at {}; merge the two",
                    other.at.unwrap_or_default()
                )));
            }
            let stay = StayTree { key: String::new(), duration: Some(node(duration)), next: None };
            path.states.push(StateTree { name, at: Some(at), sets: vec![(key, node(how))], stay });
        }
        Ok(())
    }
}
