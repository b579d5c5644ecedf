// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Access categories of enhanced distributed channel access (EDCA), and the parameters of their contention.
//!
//! Source: IEEE 802.11-2016, 10.22.2, with the default parameters of Table 9-137 for stations, and those of the
//! access point's own table in the MIB (Annex C, dot11QAPEDCATable), which gives voice and video a shorter space.

use airpath_core::{Direction, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contention::{Access, Backoff};
use super::phy::Standard;
use crate::problem::Problem;

/// Greatest contention window of the standard, 2^15 - 1.
pub(super) const WINDOW_LIMIT: u16 = 32_767;

/// Greatest arbitration interframe space number of the standard.
const AIFSN_LIMIT: u8 = 15;

/// Longest limit of a transmission opportunity: 16 bits of 32 us.
const TXOP_LIMIT: Span = Span::from_micros(65_535 * 32);

/// Access category: what contends by itself within a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessCategory {
    /// AC_VO.
    Voice,
    /// AC_VI.
    Video,
    /// AC_BE.
    BestEffort,
    /// AC_BK.
    Background,
}

impl AccessCategory {
    /// All of them, the one with the highest priority first.
    pub const ALL: [AccessCategory; 4] =
        [AccessCategory::Voice, AccessCategory::Video, AccessCategory::BestEffort, AccessCategory::Background];

    /// Its name, as it is written.
    pub fn name(self) -> &'static str {
        match self {
            AccessCategory::Voice => "voice",
            AccessCategory::Video => "video",
            AccessCategory::BestEffort => "best_effort",
            AccessCategory::Background => "background",
        }
    }

    /// The category that a bearer without another one has: that of its own name, `alice.voice`, or best effort.
    pub(super) fn of_bearer(name: &str) -> AccessCategory {
        let own = name.rsplit_once('.').map(|(_, own)| own);
        let known = AccessCategory::ALL.into_iter().find(|category| Some(category.name()) == own);
        known.unwrap_or(AccessCategory::BestEffort)
    }

    /// Number of the key of its draws: that of best effort has the draws of a contender without categories.
    pub(super) fn stream(self) -> u64 {
        match self {
            AccessCategory::BestEffort => 0,
            AccessCategory::Background => 1,
            AccessCategory::Video => 2,
            AccessCategory::Voice => 3,
        }
    }
}

/// Access categories, each of which contends by itself: `{}`, `{ stations = { voice = { txop_limit = "1504 us" } } }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Edca {
    /// Parameters of the stations where they are not those of the standard.
    pub stations: Categories,
    /// Parameters of the access point where they are not those of the standard.
    pub access_point: Categories,
}

/// Parameters of the categories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Categories {
    /// Those of AC_VO.
    pub voice: CategoryConfig,
    /// Those of AC_VI.
    pub video: CategoryConfig,
    /// Those of AC_BE.
    pub best_effort: CategoryConfig,
    /// Those of AC_BK.
    pub background: CategoryConfig,
}

impl Categories {
    fn of(&self, category: AccessCategory) -> &CategoryConfig {
        match category {
            AccessCategory::Voice => &self.voice,
            AccessCategory::Video => &self.video,
            AccessCategory::BestEffort => &self.best_effort,
            AccessCategory::Background => &self.background,
        }
    }
}

/// Parameters of a category where they are not those of the standard: `{ aifsn = 2, txop_limit = "2080 us" }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CategoryConfig {
    /// Number of slots that the medium has to be idle for behind SIFS [default: that of the standard].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 15))]
    pub aifsn: Option<u8>,
    /// Least contention window [default: that of the standard].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32767))]
    pub least_contention_window: Option<u16>,
    /// Greatest contention window [default: that of the standard].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 32767))]
    pub greatest_contention_window: Option<u16>,
    /// Longest time for which a contender keeps the medium once it has won it; `"0 us"` for one exchange, however long
    /// [default: that of the standard].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txop_limit: Option<Span>,
}

/// Basis of the defaults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    pub standard: Standard,
    /// Windows and retries of the medium: aCWmin and aCWmax.
    pub backoff: Backoff,
}

impl Edca {
    /// Access of a category to the medium, of the access point downlink and of a station uplink.
    pub(super) fn access(&self, category: AccessCategory, direction: Direction, basis: Basis) -> Access {
        let is_station = direction == Direction::Uplink;
        let own = if is_station { &self.stations } else { &self.access_point }.of(category);
        let Backoff { least_window, greatest_window, retry_limit } = basis.backoff;
        // A share of aCWmin, of which one is a power of two less one.
        let part = |parts: u16| ((least_window.saturating_add(1)) / parts).max(1) - 1;
        let is_dsss = basis.standard == Standard::B;
        let (least, greatest, aifsn, limit_us) = match (category, is_station) {
            (AccessCategory::Voice, true) => (part(4), part(2), 2, if is_dsss { 3264 } else { 2080 }),
            (AccessCategory::Voice, false) => (part(4), part(2), 1, if is_dsss { 3264 } else { 2080 }),
            (AccessCategory::Video, true) => (part(2), least_window, 2, if is_dsss { 6016 } else { 4096 }),
            (AccessCategory::Video, false) => (part(2), least_window, 1, if is_dsss { 6016 } else { 4096 }),
            (AccessCategory::BestEffort, true) => (least_window, greatest_window, 3, if is_dsss { 3264 } else { 2528 }),
            (AccessCategory::BestEffort, false) => {
                let most = (u32::from(least_window) * 4 + 3).min(greatest_window.into()) as u16;
                (least_window, most, 3, if is_dsss { 3264 } else { 2528 })
            }
            (AccessCategory::Background, _) => (least_window, greatest_window, 7, if is_dsss { 3264 } else { 2528 }),
        };
        let least_window = own.least_contention_window.unwrap_or(least);
        let greatest_window = own.greatest_contention_window.unwrap_or(greatest.max(least_window));
        Access {
            windows: Backoff { least_window, greatest_window, retry_limit },
            space: own.aifsn.unwrap_or(aifsn),
            txop_limit: own.txop_limit.unwrap_or(Span::from_micros(limit_us)),
            counts_boundaries: true,
        }
    }

    /// Errors in the parameters, if any. `shortest` is the time of the shortest exchange.
    pub(super) fn problems(&self, basis: Basis, shortest: Option<Span>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, categories, direction) in
            [("stations", &self.stations, Direction::Uplink), ("access_point", &self.access_point, Direction::Downlink)]
        {
            for category in AccessCategory::ALL {
                let own = categories.of(category);
                let found = own.problems(self.access(category, direction, basis), shortest);
                problems.extend(found.into_iter().map(|problem| problem.under(category.name()).under(key)));
            }
        }
        problems
    }
}

impl CategoryConfig {
    /// Errors in the parameters, if any, where `access` follows from them.
    fn problems(&self, access: Access, shortest: Option<Span>) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(aifsn) = self.aifsn.filter(|aifsn| !(1..=AIFSN_LIMIT).contains(aifsn)) {
            problems.push(Problem::new("aifsn", format!("is {aifsn}; it must be 1 to {AIFSN_LIMIT}")));
        }
        let Backoff { least_window: least, greatest_window: greatest, .. } = access.windows;
        if let Some(least) = self.least_contention_window.filter(|least| *least > WINDOW_LIMIT) {
            let message = format!("is {least}; it may be {WINDOW_LIMIT} at most");
            problems.push(Problem::new("least_contention_window", message));
        } else if greatest < least || greatest > WINDOW_LIMIT {
            let message = format!("is {greatest}; it must be {least}, the least, to {WINDOW_LIMIT}");
            problems.push(Problem::new("greatest_contention_window", message));
        }
        if let Some(limit) = self.txop_limit.filter(|limit| *limit > Span::ZERO) {
            let shortest = shortest.unwrap_or(Span::ZERO);
            if limit < shortest || limit > TXOP_LIMIT {
                let message = format!(
                    "is {limit}; the shortest exchange of a frame takes {shortest}: write that or more, up to \
                     {TXOP_LIMIT}, or \"0 us\" for one exchange of any length"
                );
                problems.push(Problem::new("txop_limit", message));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(standard: Standard, category: AccessCategory, direction: Direction) -> (u16, u16, u8, u64) {
        let least_window = standard.contention_window();
        let backoff = Backoff { least_window, greatest_window: 1023, retry_limit: 7 };
        let access = Edca::default().access(category, direction, Basis { standard, backoff });
        let Backoff { least_window, greatest_window, .. } = access.windows;
        (least_window, greatest_window, access.space, access.txop_limit.nanos() / 1000)
    }

    /// Rows of Table 9-137, and of dot11QAPEDCATable.
    #[test]
    fn defaults_are_those_of_the_tables() {
        use AccessCategory::{Background, BestEffort, Video, Voice};
        let (up, down) = (Direction::Uplink, Direction::Downlink);
        assert_eq!(access(Standard::A, Voice, up), (3, 7, 2, 2080));
        assert_eq!(access(Standard::A, Video, up), (7, 15, 2, 4096));
        assert_eq!(access(Standard::A, BestEffort, up), (15, 1023, 3, 2528));
        assert_eq!(access(Standard::A, Background, up), (15, 1023, 7, 2528));
        assert_eq!(access(Standard::B, Voice, up), (7, 15, 2, 3264));
        assert_eq!(access(Standard::B, Video, up), (15, 31, 2, 6016));
        assert_eq!(access(Standard::Ax, Voice, down), (3, 7, 1, 2080));
        assert_eq!(access(Standard::Ax, Video, down), (7, 15, 1, 4096));
        assert_eq!(access(Standard::Ax, BestEffort, down), (15, 63, 3, 2528));
        assert_eq!(access(Standard::Ax, Background, down), (15, 1023, 7, 2528));
    }

    #[test]
    fn a_bearer_has_the_category_of_its_name() {
        assert_eq!(AccessCategory::of_bearer("alice.voice"), AccessCategory::Voice);
        assert_eq!(AccessCategory::of_bearer("alice.radio.background"), AccessCategory::Background);
        assert_eq!(AccessCategory::of_bearer("alice.rest"), AccessCategory::BestEffort);
        // A user without bearers.
        assert_eq!(AccessCategory::of_bearer("voice"), AccessCategory::BestEffort);
    }
}
