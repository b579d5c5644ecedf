// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Error processes that options name: as TOML, or as those of a link in a scenario.

use std::path::Path;

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_scenario::Scenario;

use crate::error::{Failure, Result};
use crate::link::{only_path, read, usage};

/// The errors of a direction of a link, and where they stand.
pub struct ErrorsOfLink {
    /// The process.
    pub process: ErrorProcessConfig,
    /// The unit of which the scenario asks it.
    pub per: Per,
    /// The name of the hop.
    pub hop: String,
    /// The direction.
    pub direction: Direction,
}

/// The error process that `text` describes, as `errors = …` of a link would.
///
/// # Errors
/// When it is wrong, is a trace, or says more than the process.
pub fn of_toml(text: &str) -> Result<ErrorProcessConfig> {
    let mut scenario = Scenario::transparent();
    scenario.set(&format!("radio.uplink.errors={text}")).map_err(usage)?;
    let config = only_path(&scenario)?.hops[0].uplink.errors.clone();
    let plain = ErrorsConfig { process: config.process.clone(), ..ErrorsConfig::default() };
    if config != plain {
        return Err(Failure::usage(
            "only the type of errors and its keys are drawn here; `per`, `effect` and their keys belong to the \
             scenario that uses the trace"
                .to_owned(),
        ));
    }
    if let ErrorProcessConfig::Trace(_) = &config.process {
        return Err(Failure::usage("errors of type trace are a trace already".to_owned()));
    }
    Ok(config.process)
}

/// The errors of a link in a scenario file: `FILE#HOP.uplink` or `FILE#HOP.downlink`; a scenario with one hop needs no
/// `HOP`.
///
/// # Errors
/// When the file is no scenario, or has no such link.
pub fn of_link(text: &str) -> Result<ErrorsOfLink> {
    let (file, link) = text.rsplit_once('#').ok_or_else(|| {
        let message =
            format!("`{text}` is neither a table such as '{{ type = \"bernoulli\", … }}' nor FILE#HOP.uplink");
        Failure::usage(message)
    })?;
    let scenario = Scenario::from_toml(&read(Path::new(file))?, file).map_err(usage)?;
    let hops = only_path(&scenario)?.hops;
    let (name, word) = match (link.rsplit_once('.'), &hops[..]) {
        (Some(parts), _) => parts,
        (None, [hop]) => (hop.name.as_str(), link),
        (None, _) => ("", link),
    };
    let names = || hops.iter().map(|hop| hop.name.as_str()).collect::<Vec<_>>().join(", ");
    let hop = hops.iter().find(|hop| hop.name == name).ok_or_else(|| {
        Failure::usage(format!("`{link}` names no hop of {file} ({}); write HOP.uplink or HOP.downlink", names()))
    })?;
    let direction = airpath_log::render::parse_direction(word).map_err(|error| Failure::usage(error.to_string()))?;
    let errors = match direction {
        Direction::Uplink => &hop.uplink.errors,
        Direction::Downlink => &hop.downlink.errors,
    };
    Ok(ErrorsOfLink { process: errors.process.clone(), per: errors.per, hop: hop.name.clone(), direction })
}

/// The key of the draws that the process of `hop` makes in a run with this seed.
pub fn process_key(seed: u64, hop: &str, direction: Direction) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop, direction, role: "channel", instance: 0 })
}
