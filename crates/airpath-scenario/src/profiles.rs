// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Built-in profiles: one TOML file each, listed once.

use airpath_core::nearest::nearest;
use airpath_core::{Direction, LinkRate, Rate, Span};
use airpath_models::LinkConfig;

use crate::report::{Diagnostic, Report};
use crate::scenario::Scenario;

/// A built-in profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Its TOML, with comments, to copy and edit.
    pub text: &'static str,
}

macro_rules! registry {
    ($($name:literal),* $(,)?) => {
        const PROFILES: &[Profile] =
            &[$(Profile { name: $name, text: include_str!(concat!("../profiles/", $name, ".toml")) }),*];
    };
}

registry![
    "seawind-case",
    "gsm-data-9.6k",
    "gsm-rlp-9.6k",
    "gsm-transparent-9.6k",
    "hscsd-2+2-9.6k",
    "hscsd-3+1-14.4k",
    "hscsd-4+4-14.4k",
    "gprs-cs1-1+1",
    "gprs-cs1-3+1",
    "gprs-cs2-1+1",
    "gprs-cs2-3+1",
    "gprs-cs2-4+2",
    "gprs-cs3-3+1",
    "gprs-cs3-4+1",
    "gprs-cs4-3+1",
    "gprs-cs4-4+2",
    "gprs-cs2-rlc",
    "gprs-pipeline",
    "edge",
    "edge-mcs9-4+2",
    "egprs-mcs5-rlc",
    "umts-384",
    "hspa",
    "lte-good",
    "lte-cell-edge",
    "nr-midband",
    "wifi-good",
    "wifi-poor",
    "nb-iot",
    "leo-satellite",
    "geo-satellite",
    "slow-4g",
    "fast-4g",
    "slow-3g",
    "fast-3g",
    "3g",
    "regular-3g",
    "wpt-3g-slow",
    "wpt-edge",
    "wpt-2g",
    "wpt-cable",
    "wpt-dsl",
    "atc-3g-average",
    "atc-2g-developing-rural",
    "atc-edge-lossy",
];

/// Summary of a profile in a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProfileSummary {
    /// Its name.
    pub name: String,
    /// One line.
    pub description: String,
    /// Source of its numbers.
    pub source: String,
    /// The rate that packets see from the client to the server: without the headers of frames, and
    /// the lowest of all hops.
    pub uplink_rate: String,
    /// The rate that packets see from the server to the client.
    pub downlink_rate: String,
    /// The sum of the propagation delays from the client to the server.
    pub uplink_delay: String,
    /// The sum of the propagation delays from the server to the client.
    pub downlink_delay: String,
}

/// All built-in profiles.
pub fn profiles() -> &'static [Profile] {
    PROFILES
}

/// The TOML of a built-in profile, with its comments.
///
/// # Errors
/// When there is none of that name; the report, about the option or command `asked_by`, names the nearest.
pub fn profile_text(name: &str, asked_by: &str) -> Result<&'static str, Report> {
    PROFILES.iter().find(|profile| profile.name == name).map(|profile| profile.text).ok_or_else(|| {
        let message = format!("there is no profile `{name}`");
        let all = || PROFILES.iter().map(|profile| profile.name);
        // Somebody who asks for `gprs` wants to see which there are.
        let mut names: Vec<&str> = all().filter(|known| !name.is_empty() && known.contains(name)).collect();
        if names.is_empty() {
            let family = |name: &'_ str| name.split('-').next().unwrap_or_default().to_string();
            let of = family(nearest(name, all()).unwrap_or(name));
            names = all().filter(|known| family(known) == of).collect();
        }
        let names = if names.is_empty() { all().collect() } else { names };
        Diagnostic::of_option(asked_by, "", message).nearest_of(name, names).into()
    })
}

impl Scenario {
    /// The built-in profile of that name.
    ///
    /// # Errors
    /// When there is none; the report names the nearest.
    pub fn profile(name: &str) -> Result<Scenario, Report> {
        Scenario::from_toml(profile_text(name, "--profile")?, &format!("profile {name}"))
    }
}

impl Profile {
    /// Summary for a list.
    ///
    /// # Errors
    /// When the profile's text is wrong, which its tests exclude.
    pub fn summary(&self) -> Result<ProfileSummary, Report> {
        let scenario = Scenario::profile(self.name)?;
        let paths = scenario.paths()?;
        let hops = paths.first().map_or(&[][..], |path| &path.config.hops);
        let rate = |direction: Direction| {
            let rates = hops.iter().filter_map(|hop| packet_rate(hop.link(direction)));
            rates.min().map_or_else(|| LinkRate::Unlimited.to_string(), |rate| rate.to_string())
        };
        let delay = |direction: Direction| {
            hops.iter()
                .map(|hop| hop.link(direction).propagation.least())
                .fold(Span::ZERO, |sum, one| sum + one)
                .to_string()
        };
        Ok(ProfileSummary {
            name: self.name.to_string(),
            description: scenario.description.clone().unwrap_or_default(),
            source: scenario.source.clone().unwrap_or_default(),
            uplink_rate: rate(Direction::Uplink),
            downlink_rate: rate(Direction::Downlink),
            uplink_delay: delay(Direction::Uplink),
            downlink_delay: delay(Direction::Downlink),
        })
    }
}

/// The rate without the headers of frames, rounded down to a bit/s.
fn packet_rate(link: &LinkConfig) -> Option<Rate> {
    let Some(LinkRate::Fixed(rate)) = link.rate.constant() else { return None };
    let (payload, frame) = link.fragmentation.map_or((1, 1), |fragmentation| {
        (fragmentation.frame_payload.get(), (fragmentation.frame_payload + fragmentation.frame_header).get())
    });
    let bits = u128::from(rate.bits_per_second()) * u128::from(payload) / u128::from(frame.max(1));
    Rate::new(u64::try_from(bits).unwrap_or(u64::MAX).max(1))
}
