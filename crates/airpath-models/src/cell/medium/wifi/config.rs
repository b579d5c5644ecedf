// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of a wireless LAN.

use std::collections::{BTreeMap, BTreeSet};

use airpath_core::{Bits, Direction, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Wifi;
use super::contention::{Access, Backoff};
use super::edca::{AccessCategory, Basis, Edca, WINDOW_LIMIT};
use super::phy::{ACK_BYTES, Mode, Phy, QOS_OVERHEAD_BYTES, Standard, Width};
use super::rate_control::{MinstrelHtConfig, RateControlConfig};
use super::service::ServiceOrder;
use crate::cell::medium::{SharedBeginning, Shares};
use crate::config::HopConfig;
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{EXAMPLE_BEARERS, PerBearer, unknown_bearer};

/// Most that may be added to a packet.
const OVERHEAD_LIMIT: Bits = Bits::from_bytes(4096);

/// A wireless LAN after IEEE 802.11: `{ type = "wifi", standard = "802.11n", rate = "65 Mbit/s" }`. Stations and the
/// access point contend for one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WifiConfig {
    /// Standard of the physical layer.
    pub standard: Standard,
    /// Width of the channel.
    pub width: Width,
    /// Number of spatial streams, from 802.11n on.
    #[schemars(range(min = 1, max = 8))]
    pub streams: u8,
    /// Guard interval of the symbols, from 802.11n on: 800 ns or 400 ns; 800 ns, 1600 ns or 3200 ns with 802.11ax
    /// [default: 800 ns].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard_interval: Option<Span>,
    /// Rate of data, one of the standard's [default: the highest with these streams].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Rates of single users, or of their bearers, in both directions.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub rates: PerBearer<Rate>,
    /// Octets that are added to each packet: header, LLC and SNAP, check sequence [default: 36 bytes, from 802.11n on
    /// and with `edca` 38 bytes].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Bits>,
    /// Least contention window, from which with `edca` those of the categories follow [default: 15, 31 with 802.11b].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32767))]
    pub least_contention_window: Option<u16>,
    /// Greatest contention window, from which with `edca` those of the categories follow.
    #[schemars(range(max = 32767))]
    pub greatest_contention_window: u16,
    /// Number of failures in a row after which the contention window is the least again. How often a packet is sent
    /// again is the link entity's affair.
    #[schemars(range(max = 1000))]
    pub retry_limit: u16,
    /// Length from which a frame is announced by RTS and CTS; without it none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Bits>,
    /// Packets of one station in one transmission (A-MPDU), from 802.11n on; without it there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<Aggregation>,
    /// Order in which the access point serves bearers.
    pub order: ServiceOrder,
    /// Wait of all contenders after a transmission that was not acknowledged.
    pub after_failure: Wait,
    /// Pairs of users who do not hear each other: `[["alice", "bob"]]`. All hear the access point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<[String; 2]>,
    /// Choice of the rates.
    pub rate_control: RateControlConfig,
    /// Access categories that contend by themselves (EDCA); without it each station is one contender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edca: Option<Edca>,
    /// Access categories of single users, or of their bearers, in both directions; without one a bearer has that of
    /// its own name, as `alice.voice` has `voice`, and all others are best effort.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub access_categories: PerBearer<AccessCategory>,
}

impl Default for WifiConfig {
    fn default() -> WifiConfig {
        WifiConfig {
            standard: Standard::default(),
            width: Width::default(),
            streams: 1,
            guard_interval: None,
            rate: None,
            rates: PerBearer::default(),
            overhead: None,
            least_contention_window: None,
            greatest_contention_window: 1023,
            retry_limit: 7,
            rts_threshold: None,
            aggregation: None,
            order: ServiceOrder::default(),
            after_failure: Wait::default(),
            hidden: Vec::new(),
            rate_control: RateControlConfig::default(),
            edca: None,
            access_categories: PerBearer::default(),
        }
    }
}

/// Limits of the packets in one transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Aggregation {
    /// Greatest number of packets.
    #[schemars(range(min = 1, max = 256))]
    pub packets: u16,
    /// Longest time on the air. No packet is added where one as long as the longest so far would not fit.
    pub duration: Span,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { packets: 64, duration: Span::from_millis(4) }
    }
}

/// Wait of contenders after a transmission that was not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// EIFS: time for an acknowledgement at the lowest rate, and DIFS.
    #[default]
    Eifs,
    /// DIFS, as Bianchi 2000 assumes.
    Difs,
}

/// The setting for `bearer`: that of the longest name that fits, as `alice` fits `alice.voice`.
fn setting<T: Copy>(settings: &PerBearer<T>, bearer: &str) -> Option<T> {
    let fitting = settings.0.iter().filter(|(own, _)| names(own, bearer));
    fitting.max_by_key(|(own, _)| own.len()).map(|(_, value)| *value)
}

/// True if `name` is that of `bearer`, or of the user or hop that has it.
fn names(name: &str, bearer: &str) -> bool {
    bearer.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl WifiConfig {
    pub(super) fn phy(&self) -> Phy {
        let guard_interval = self.guard_interval.unwrap_or(Span::from_nanos(self.standard.guard_intervals()[0]));
        Phy { standard: self.standard, width: self.width, streams: self.streams, guard_interval }
    }

    /// The mode of `rate`; the highest one without it.
    pub(super) fn mode(&self, rate: Option<Rate>) -> Option<Mode> {
        let phy = self.phy();
        rate.map_or_else(|| phy.modes().last().copied(), |rate| phy.mode_of(rate))
    }

    /// Modes of these bearers.
    pub(super) fn modes(&self, bearers: &[&str]) -> Vec<Mode> {
        bearers.iter().filter_map(|name| self.mode(setting(&self.rates, name).or(self.rate))).collect()
    }

    /// Access categories of these bearers; none where there are none.
    pub(super) fn categories(&self, bearers: &[&str]) -> Vec<Option<AccessCategory>> {
        let own = |name: &&str| setting(&self.access_categories, name).unwrap_or(AccessCategory::of_bearer(name));
        bearers.iter().map(|name| self.edca.as_ref().map(|_| own(name))).collect()
    }

    /// Access of the contender that has `category`, if there are categories, and sends in `direction`.
    pub(super) fn access(&self, category: Option<AccessCategory>, direction: Direction) -> Access {
        match (&self.edca, category) {
            (Some(edca), Some(category)) => edca.access(category, direction, self.basis()),
            _ => Access::distributed(self.backoff()),
        }
    }

    /// Least number of slots behind SIFS for which a contender waits.
    pub(super) fn least_space(&self) -> u8 {
        let of = |direction| AccessCategory::ALL.map(|category| self.access(Some(category), direction).space);
        Direction::ALL.into_iter().flat_map(of).min().unwrap_or(2)
    }

    fn basis(&self) -> Basis {
        Basis { standard: self.standard, backoff: self.backoff() }
    }

    pub(super) fn overhead_bytes(&self) -> u64 {
        let usual = if self.edca.is_some() { QOS_OVERHEAD_BYTES } else { self.standard.overhead_bytes() };
        self.overhead.map_or(usual, |bits| bits.get().div_ceil(8))
    }

    /// Pairs of stations that do not hear each other, where these bearers have these stations.
    pub(super) fn hidden_stations(&self, bearers: &[(&str, u16)]) -> Vec<(usize, usize)> {
        let stations = |name: &str| -> BTreeSet<usize> {
            bearers.iter().filter(|(bearer, _)| names(name, bearer)).map(|(_, station)| usize::from(*station)).collect()
        };
        let of_pair = |[one, other]: &[String; 2]| {
            let others = stations(other);
            let pairs =
                stations(one).into_iter().flat_map(move |one| others.clone().into_iter().map(move |two| (one, two)));
            pairs.filter(|(one, other)| one != other).collect::<Vec<_>>()
        };
        self.hidden.iter().flat_map(of_pair).collect()
    }

    /// Time of the shortest frame at the highest rate, and its acknowledgement; none if there is no rate.
    fn shortest_exchange(&self) -> Option<Span> {
        let phy = self.phy();
        let mode = phy.modes().last().copied()?;
        let data = phy.air_time(mode, self.overhead_bytes());
        Some(data + self.standard.sifs() + phy.control_time(mode, ACK_BYTES))
    }

    pub(super) fn backoff(&self) -> Backoff {
        Backoff {
            least_window: self.least_contention_window.unwrap_or(self.standard.contention_window()),
            greatest_window: self.greatest_contention_window,
            retry_limit: self.retry_limit,
        }
    }

    /// The problem of a rate, if it has one.
    fn rate_problem(&self, rate: Rate) -> Option<String> {
        if self.mode(Some(rate)).is_some() {
            return None;
        }
        let phy = self.phy();
        let tenths = |mode: Mode| (phy.bits_per_second(mode) + 50_000) / 100_000;
        let known = phy.modes().into_iter().map(tenths).map(|tenths| match tenths % 10 {
            0 => (tenths / 10).to_string(),
            tenth => format!("{}.{tenth}", tenths / 10),
        });
        let known = known.collect::<Vec<_>>().join(", ");
        let streams = if self.streams == 1 { "one stream".into() } else { format!("{} streams", self.streams) };
        let name = self.standard.name();
        let with = if self.standard.has_streams() { format!(" with {streams} and this width") } else { String::new() };
        Some(format!("is {rate}; the rates of {name}{with} are {known} Mbit/s"))
    }
}

impl Shares for WifiConfig {
    fn carries(&self, _: Direction) -> bool {
        true
    }

    fn hop_problems(&self, hop: &HopConfig, direction: Direction) -> Vec<Problem> {
        let link = hop.link(direction);
        let mut problems = Vec::new();
        if let Some(fading) = &link.fading {
            if self.standard == Standard::B {
                let message = "has no meaning with 802.11b, which has no model of errors by the signal-to-noise ratio; \
                               write errors, or another standard";
                problems.push(Problem::new("fading", message));
            }
            if fading.resources != 1 {
                let message = format!("are {}; a frame takes the whole channel: leave them out", fading.resources);
                problems.push(Problem::new("fading.resources", message));
            }
            if fading.prediction_error > 0.0 {
                let message = "has no meaning on this medium, where nothing is predicted; leave it out";
                problems.push(Problem::new("fading.prediction_error", message));
            }
        }
        if link.entity.has_own_frames() && !link.entity.has_own_lengths() {
            let message = "has frames made for a bearer, and this medium carries frames of any length; write entity = { type = \
                           \"persistent\" }, or leave it out";
            problems.push(Problem::new("entity", message));
        }
        problems
    }

    fn bearer_problems(&self, bearers: &[&str]) -> Vec<Problem> {
        let hidden = self.hidden.iter().flatten().map(|name| ("hidden".to_string(), name.as_str()));
        let own = self.rates.names("rates").into_iter().chain(self.access_categories.names("access_categories"));
        let own = own.chain(hidden);
        let unknown = own.filter(|(_, name)| !bearers.iter().any(|bearer| names(name, bearer)));
        unknown.map(|(key, name)| unknown_bearer(key, name, "on the medium", bearers)).collect()
    }
}

impl Configured<SharedBeginning<'_>> for WifiConfig {
    type Model = Wifi;

    fn problems(&self) -> Vec<Problem> {
        let standard = self.standard;
        let name = standard.name();
        let mut problems = Vec::new();
        let mut check = |key: &str, fits: bool, message: String| {
            if !fits {
                problems.push(Problem::new(key, message));
            }
            fits
        };
        let most = standard.most_streams();
        let message = format!("are {}; {name} has 1 to {most}", self.streams);
        let mut is_right = check("streams", (1..=most).contains(&self.streams), message);
        let widths = standard.widths().iter().map(|width| width.megahertz().to_string()).collect::<Vec<_>>().join(", ");
        let message = format!("is {} MHz; {name} has {widths} MHz", self.width.megahertz());
        is_right &= check("width", standard.widths().contains(&self.width), message);
        if let Some(interval) = self.guard_interval {
            let known = standard.guard_intervals();
            let list = known.iter().map(|known| format!("{known} ns")).collect::<Vec<_>>().join(", ");
            let message = match standard {
                Standard::B => format!("has no meaning with {name}; leave it out"),
                _ => format!("is {interval}; {name} has {list}"),
            };
            is_right &= check("guard_interval", known.contains(&interval.nanos()), message);
        }
        let backoff = self.backoff();
        let (least, greatest) = (backoff.least_window, backoff.greatest_window);
        let message = format!("is {least}; it may be {WINDOW_LIMIT} at most");
        if check("least_contention_window", least <= WINDOW_LIMIT, message) {
            let message = format!("is {greatest}; it must be {least}, the least, to {WINDOW_LIMIT}");
            check("greatest_contention_window", (least..=WINDOW_LIMIT).contains(&greatest), message);
        }
        if let Some(overhead) = self.overhead {
            check("overhead", overhead <= OVERHEAD_LIMIT, format!("is {overhead}; it may be {OVERHEAD_LIMIT} at most"));
        }
        check("retry_limit", self.retry_limit <= 1000, format!("is {}; it may be 1000 at most", self.retry_limit));
        if let Some(Aggregation { packets, duration }) = self.aggregation {
            let message = format!("has no meaning with {name}; it came with 802.11n");
            check("aggregation", standard.has_streams(), message);
            check("aggregation.packets", (1..=256).contains(&packets), format!("are {packets}; write 1 to 256"));
            let fits = duration > Span::ZERO && duration <= Span::from_micros(5484);
            check("aggregation.duration", fits, format!("is {duration}; the standard allows up to 5484 us"));
        }
        if let Some(edca) = &self.edca {
            let shortest = if is_right { self.shortest_exchange() } else { None };
            problems.extend(edca.problems(self.basis(), shortest).into_iter().map(|problem| problem.under("edca")));
        } else if !self.access_categories.is_empty() {
            let message = "have no meaning without `edca`; write edca = {}, or leave them out";
            problems.push(Problem::new("access_categories", message));
        }
        for [one, other] in &self.hidden {
            if names(one, other) || names(other, one) {
                let message = format!(
                    "has the pair `{one}` and `{other}`, which is one user; write two that do not hear each other"
                );
                problems.push(Problem::new("hidden", message));
            }
        }
        let of_control = self.rate_control.problems().into_iter();
        problems.extend(of_control.map(|problem| problem.under("rate_control")));
        if self.rate_control.adapts() {
            let message = "has no meaning beside a rate_control that chooses rates; leave one of them out";
            problems.extend(self.rate.map(|_| Problem::new("rate", message)));
            if !self.rates.is_empty() {
                problems.push(Problem::new("rates", message));
            }
        }
        if is_right {
            let common = self.rate.and_then(|rate| self.rate_problem(rate));
            problems.extend(common.map(|message| Problem::new("rate", message)));
            problems.extend(self.rates.problems("rates", |rate| self.rate_problem(rate)));
        }
        problems
    }

    fn build(&self, beginning: SharedBeginning<'_>) -> Wifi {
        Wifi::new(self, &beginning)
    }

    fn examples() -> Vec<WifiConfig> {
        let plain = WifiConfig::default();
        let rate = |text: &str| Some(text.parse::<Rate>().expect("an example is valid"));
        vec![
            WifiConfig { aggregation: Some(Aggregation::default()), order: ServiceOrder::Airtime, ..plain.clone() },
            WifiConfig {
                standard: Standard::B,
                rate: rate("1 Mbit/s"),
                rts_threshold: Some(Bits::from_bytes(200)),
                order: ServiceOrder::RoundRobin,
                ..plain.clone()
            },
            WifiConfig {
                standard: Standard::A,
                rate: rate("6 Mbit/s"),
                least_contention_window: Some(1),
                greatest_contention_window: 3,
                after_failure: Wait::Difs,
                ..plain.clone()
            },
            WifiConfig {
                aggregation: Some(Aggregation { packets: 4, ..Aggregation::default() }),
                rts_threshold: Some(Bits::from_bytes(1000)),
                edca: Some(Edca::default()),
                access_categories: PerBearer(BTreeMap::from([
                    (EXAMPLE_BEARERS[0].to_string(), AccessCategory::Voice),
                    (EXAMPLE_BEARERS[1].to_string(), AccessCategory::Background),
                ])),
                ..plain.clone()
            },
            WifiConfig {
                standard: Standard::G,
                rate_control: RateControlConfig::examples().into_iter().next_back().unwrap_or_default(),
                ..plain.clone()
            },
            WifiConfig {
                standard: Standard::Ax,
                streams: 2,
                aggregation: Some(Aggregation { packets: 8, ..Aggregation::default() }),
                rate_control: RateControlConfig::MinstrelHt(MinstrelHtConfig::default()),
                ..plain.clone()
            },
            WifiConfig {
                standard: Standard::A,
                rts_threshold: Some(Bits::from_bytes(300)),
                hidden: vec![[0, 1].map(|place| EXAMPLE_BEARERS[place].to_string())],
                edca: Some(Edca::default()),
                ..plain
            },
        ]
    }
}
