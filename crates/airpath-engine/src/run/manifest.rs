// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! First part of the manifest, common to the runs of all clocks.

use airpath_clocks::status::status;
use airpath_core::Event;
use airpath_log::{Clock, Level, Manifest, Places, Snaplen, UserNames};
use airpath_models::{MachineConfig, MachineUser};
use airpath_scenario::Scenario;

use super::files::KeptFiles;

/// The users of a machine, with the names of their hops, bearers and states: the places of its events.
pub fn places(machine: &MachineConfig) -> Places {
    let names = |MachineUser { name, path }: &MachineUser<'_>| {
        let states = path.states.iter().map(|state| state.name.clone());
        UserNames {
            name: (*name).into(),
            hops: path.hops.iter().map(|hop| hop.name.clone()).collect(),
            bearers: path.hops.iter().map(|hop| hop.bearer_names().map(str::to_string).collect()).collect(),
            states: std::iter::once(Event::INITIAL_STATE.to_string()).chain(states).collect(),
        }
    };
    Places::of_users(machine.users().iter().map(names).collect())
}

/// The link of a run, and how it is run and recorded.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The scenario, for the record.
    pub scenario: &'a Scenario,
    /// Kept copies of the files that it names.
    pub files: &'a KeptFiles,
    /// The machine that it describes.
    pub machine: &'a MachineConfig,
    /// The clock by which it runs.
    pub clock: Clock,
    /// The seed of all draws.
    pub seed: u64,
    /// Level of recording.
    pub level: Level,
    /// Number of bytes of each packet.
    pub snaplen: Snaplen,
    /// True if single frames are recorded.
    pub frames: bool,
}

impl Beginning<'_> {
    /// The manifest of a run that is about to begin.
    pub fn manifest(&self) -> Manifest {
        let mut manifest = Manifest::new(self.level, self.snaplen);
        manifest.clock = self.clock;
        manifest.frames = self.frames;
        if self.clock == Clock::Live {
            // In virtual time it would tell of a clock that plays no part, and equal runs would differ.
            manifest.host.clock = serde_json::to_value(status()).ok();
        }
        manifest.seed = self.seed;
        manifest.scenario_toml = self.files.scenario_toml(self.scenario);
        manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
        manifest.name_places(&places(self.machine));
        manifest
    }
}
