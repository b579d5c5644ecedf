// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of a medium of adaptive OFDM.

use airpath_core::{Direction, Probability, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Ofdm;
use super::uplink::UplinkGrantsConfig;
use crate::adaptation::{AdaptationConfig, Modes, ModesConfig};
use crate::cell::medium::{SharedBeginning, Shares};
use crate::config::HopConfig;
use crate::fading::FadingConfig;
use crate::fading::quantity::Frequency;
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{RoundRobinConfig, SchedulerConfig};

/// Adaptive OFDM: `{ type = "ofdm", scheduler = { type = "proportional_fair" } }`. Each station on it has a `fading`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfdmConfig {
    /// Directions on the medium; each has resources and a scheduler of its own.
    #[serde(default)]
    pub direction: Directions,
    /// Number of resources (bins) of a slot.
    #[serde(default = "resources")]
    #[schemars(range(min = 1, max = 1024))]
    pub resources: u16,
    /// Distance between the middles of two resources.
    #[serde(default = "spacing")]
    pub spacing: Frequency,
    /// Carrier frequency, in the middle of the resources.
    #[serde(default = "carrier")]
    pub carrier: Frequency,
    /// Number of slots in a second.
    #[serde(default = "slots_per_second")]
    #[schemars(range(min = 1, max = 100_000))]
    pub slots_per_second: u32,
    /// Number of payload symbols of a resource in a slot.
    #[serde(default = "symbols")]
    #[schemars(range(min = 1, max = 100_000))]
    pub symbols: u32,
    /// Maximum number of resources of a station in a slot: its best ones; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_per_station: Option<u16>,
    /// The modes of transmission.
    #[serde(default)]
    pub modes: ModesConfig,
    /// The choice of the mode of each frame.
    #[serde(default)]
    pub adaptation: AdaptationConfig,
    /// Normalised mean square error of the prediction for which computed switching levels are best; that of each
    /// station's channel without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_prediction_error: Option<Probability>,
    /// Mean signal-to-noise ratio for which computed switching levels are best.
    #[serde(default)]
    pub levels_for: LevelsFor,
    /// The scheduler.
    #[serde(default = "scheduler")]
    pub scheduler: SchedulerConfig,
    /// Time from the end of a slot until scheduler and choice of modes know of its errors.
    #[serde(default = "feedback_delay")]
    pub feedback_delay: Span,
    /// Requests and grants of the uplink; without it the scheduler of the uplink knows at once what waits, and decides
    /// for the slot that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_grants: Option<UplinkGrantsConfig>,
}

/// Mean for which computed switching levels are best, where the prediction has errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LevelsFor {
    /// The local mean, which follows shadowing and path loss.
    #[default]
    LocalMean,
    /// The `snr` of the channel, wherever the station is.
    NominalMean,
}

/// Directions on a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// From the clients to the servers.
    Uplink,
    /// From the servers to the clients.
    #[default]
    Downlink,
    /// Both, side by side.
    Both,
}

impl Directions {
    pub(super) fn includes(self, direction: Direction) -> bool {
        match self {
            Directions::Both => true,
            Directions::Uplink => direction == Direction::Uplink,
            Directions::Downlink => direction == Direction::Downlink,
        }
    }
}

fn resources() -> u16 {
    25
}

fn spacing() -> Frequency {
    Frequency(200e3)
}

fn carrier() -> Frequency {
    Frequency(1.9e9)
}

fn slots_per_second() -> u32 {
    1500
}

fn symbols() -> u32 {
    108
}

fn scheduler() -> SchedulerConfig {
    SchedulerConfig::RoundRobin(RoundRobinConfig {})
}

fn feedback_delay() -> Span {
    Span::from_millis(2)
}

impl Default for OfdmConfig {
    fn default() -> OfdmConfig {
        OfdmConfig {
            direction: Directions::Downlink,
            resources: resources(),
            spacing: spacing(),
            carrier: carrier(),
            slots_per_second: slots_per_second(),
            symbols: symbols(),
            resources_per_station: None,
            modes: ModesConfig::default(),
            adaptation: AdaptationConfig::default(),
            assumed_prediction_error: None,
            levels_for: LevelsFor::default(),
            scheduler: scheduler(),
            feedback_delay: feedback_delay(),
            uplink_grants: None,
        }
    }
}

impl OfdmConfig {
    /// The channel of a station on the resources and slots of the medium.
    pub(super) fn on_grid(&self, fading: &FadingConfig) -> FadingConfig {
        FadingConfig {
            resources: self.resources,
            spacing: self.spacing,
            carrier: self.carrier,
            slots_per_second: self.slots_per_second,
            ..fading.clone()
        }
    }

    /// Maximum number of bits of one station in one slot.
    pub(super) fn most_bits_of_slot(&self) -> u64 {
        let modes = Modes::new(&self.modes, ());
        let most = (0..modes.len()).map(|mode| modes.frame_bits(mode, self.symbols)).max().unwrap_or(0);
        u64::from(most) * u64::from(self.resources_per_station.unwrap_or(self.resources).min(self.resources))
    }
}

impl Shares for OfdmConfig {
    fn carries(&self, direction: Direction) -> bool {
        self.direction.includes(direction)
    }

    fn has_resources(&self) -> bool {
        true
    }

    fn hop_problems(&self, hop: &HopConfig, direction: Direction) -> Vec<Problem> {
        if !hop.link(direction).entity.fits_grants() {
            let message = "does not fit its frames to the modes of this medium; write entity = { type = \"arq\" }";
            return vec![Problem::new("entity", message)];
        }
        let Some(fading) = hop.link(direction).fading.as_deref() else {
            let message = "is missing; a station on this medium has a radio channel, such as fading = { type = \"profile\", \
                           profile = \"tu12_at5_mhz\", speed = \"75 km/h\", snr = \"16 dB\" }";
            return vec![Problem::new("fading", message)];
        };
        let on_grid = self.on_grid(fading);
        let default = OfdmConfig::default().on_grid(fading);
        let mut problems = Vec::new();
        let mut check = |key: &str, equal: bool| {
            if !equal {
                let message = "is that of the medium; write it there, and leave it out here";
                problems.push(Problem::new(key, message));
            }
        };
        check("resources", [on_grid.resources, default.resources, 1].contains(&fading.resources));
        check("spacing", [on_grid.spacing, default.spacing].contains(&fading.spacing));
        check("carrier", [on_grid.carrier, default.carrier].contains(&fading.carrier));
        let slots = [on_grid.slots_per_second, default.slots_per_second];
        check("slots_per_second", slots.contains(&fading.slots_per_second));
        // What a file holds, for one, depends on the number of resources.
        problems.extend(on_grid.problems());
        problems.into_iter().map(|problem| problem.under("fading")).collect()
    }

    fn bearer_problems(&self, bearers: &[&str]) -> Vec<Problem> {
        let problems = self.scheduler.problems_of(bearers, usize::from(self.resources));
        problems.into_iter().map(|problem| problem.under("scheduler")).collect()
    }
}

impl Configured<SharedBeginning<'_>> for OfdmConfig {
    type Model = Ofdm;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |key: &str, fits: bool, message: String| {
            if !fits {
                problems.push(Problem::new(key, message));
            }
        };
        let resources = self.resources;
        check("resources", (1..=1024).contains(&resources), format!("are {resources}; there must be 1 to 1024"));
        let slots = self.slots_per_second;
        check("slots_per_second", (1..=100_000).contains(&slots), format!("is {slots}; it must be 1 to 100000"));
        let symbols = self.symbols;
        check("symbols", (1..=100_000).contains(&symbols), format!("are {symbols}; there must be 1 to 100000"));
        let spacing = self.spacing.0;
        let is_right = spacing > 0.0 && spacing <= 1e9;
        check("spacing", is_right, format!("is {}; it must be above 0 and up to 1 GHz", self.spacing));
        let carrier = self.carrier.0;
        check("carrier", (1e6..=1e12).contains(&carrier), format!("is {}; it must be 1 MHz to 1 THz", self.carrier));
        if let Some(most) = self.resources_per_station {
            let fits = (1..=resources.max(1)).contains(&most);
            let message = format!("is {most}; it must be 1 to {resources}, the number of resources");
            check("resources_per_station", fits, message);
        }
        if let Some(error) = self.assumed_prediction_error {
            let message = format!("is {error}; it must be below 1");
            check("assumed_prediction_error", error != Probability::ONE, message);
        }
        if self.uplink_grants.is_some() && !self.direction.includes(Direction::Uplink) {
            let message = "has no meaning: the uplink is not on the medium; write direction = \"uplink\" or \"both\"";
            problems.push(Problem::new("uplink_grants", message));
        }
        let of_grants = self.uplink_grants.map(|grants| grants.problems()).unwrap_or_default();
        problems.extend(of_grants.into_iter().map(|problem| problem.under("uplink_grants")));
        let of_modes = self.modes.problems();
        let no_problem = of_modes.is_empty();
        problems.extend(of_modes.into_iter().map(|problem| problem.under("modes")));
        let mut of_adaptation = self.adaptation.problems();
        if no_problem {
            of_adaptation.extend(self.adaptation.problems_with(&Modes::new(&self.modes, ())));
        }
        problems.extend(of_adaptation.into_iter().map(|problem| problem.under("adaptation")));
        problems.extend(self.scheduler.problems().into_iter().map(|problem| problem.under("scheduler")));
        problems
    }

    fn build(&self, beginning: SharedBeginning<'_>) -> Ofdm {
        Ofdm::new(self, beginning)
    }

    fn examples() -> Vec<OfdmConfig> {
        let small = OfdmConfig { resources: 3, ..OfdmConfig::default() };
        let mut all: Vec<OfdmConfig> = SchedulerConfig::examples()
            .into_iter()
            .map(|scheduler| OfdmConfig { scheduler, ..small.clone() })
            .collect();
        all.extend(
            AdaptationConfig::examples().into_iter().map(|adaptation| OfdmConfig { adaptation, ..small.clone() }),
        );
        let quick = UplinkGrantsConfig {
            request_period: Span::from_millis(1),
            request_delay: Span::ZERO,
            grant_delay: Span::ZERO,
        };
        all.extend([UplinkGrantsConfig::default(), quick].into_iter().map(|grants| OfdmConfig {
            direction: Directions::Both,
            uplink_grants: Some(grants),
            ..small.clone()
        }));
        all.push(OfdmConfig { direction: Directions::Both, resources_per_station: Some(1), ..OfdmConfig::default() });
        all
    }
}
