// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! First part of the manifest, common to the runs of all clocks.

use airpath_clocks::status::status;
use airpath_log::{Clock, Level, Manifest, Snaplen};
use airpath_models::PathConfig;
use airpath_scenario::Scenario;

use super::files::KeptFiles;

/// The names of a path's hops, by their index in events.
pub fn hop_names(path: &PathConfig) -> Vec<String> {
    path.hops.iter().map(|hop| hop.name.clone()).collect()
}

/// The names of a path's states, by their index in events; the first is the beginning.
pub fn state_names(path: &PathConfig) -> Vec<String> {
    let named = path.states.iter().map(|state| state.name.clone());
    std::iter::once(airpath_core::Event::INITIAL_STATE.to_string()).chain(named).collect()
}

/// The link of a run, and how it is run and recorded.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The scenario, for the record.
    pub scenario: &'a Scenario,
    /// Kept copies of the files that it names.
    pub files: &'a KeptFiles,
    /// The path that it describes.
    pub path: &'a PathConfig,
    /// The clock by which it runs.
    pub clock: Clock,
    /// The seed of all draws.
    pub seed: u64,
    /// Level of recording.
    pub level: Level,
    /// Number of bytes of each packet.
    pub snaplen: Snaplen,
}

impl Beginning<'_> {
    /// The manifest of a run that is about to begin.
    pub fn manifest(&self) -> Manifest {
        let mut manifest = Manifest::new(self.level, self.snaplen);
        manifest.clock = self.clock;
        if self.clock == Clock::Live {
            // In virtual time it would tell of a clock that plays no part, and equal runs would differ.
            manifest.host.clock = serde_json::to_value(status()).ok();
        }
        manifest.seed = self.seed;
        manifest.scenario_toml = self.files.scenario_toml(self.scenario);
        manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
        manifest.hops = hop_names(self.path);
        manifest.states = state_names(self.path);
        manifest
    }
}
