// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath profiles`: the built-in links.

use airpath_scenario::{Profile, ProfileSummary, Scenario, profiles};
use serde::Serialize;

use crate::cli::{ProfilesAction, ProfilesArgs};
use crate::error::Result;
use crate::link::{machine, usage};
use crate::run::round_trip::idle_round_trip;
use crate::terminal::show;

/// Shown where no ping comes back.
const NONE: &str = "-";

/// One row of the list.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    summary: ProfileSummary,
    /// Round trip of a ping over the idle link; none where most are lost.
    idle_round_trip: Option<String>,
}

impl Row {
    fn of(profile: &Profile) -> Result<Row> {
        let scenario = Scenario::profile(profile.name).map_err(usage)?;
        let idle_round_trip = idle_round_trip(&machine(&scenario)?).map(|time| time.to_string());
        Ok(Row { summary: profile.summary().map_err(usage)?, idle_round_trip })
    }

    fn cells(&self) -> [&str; 5] {
        let one = &self.summary;
        let round_trip = self.idle_round_trip.as_deref().unwrap_or(NONE);
        [&one.name, &one.uplink_rate, &one.downlink_rate, &one.downlink_delay, round_trip]
    }
}

/// Lists them, or shows one.
///
/// # Errors
/// When there is no such profile.
pub fn run(args: &ProfilesArgs) -> Result<i32> {
    if let Some(ProfilesAction::Show { name }) = &args.action {
        show!("{}", airpath_scenario::profile_text(name, "profiles show").map_err(usage)?);
        return Ok(0);
    }
    let all = profiles().iter().map(Row::of).collect::<Result<Vec<_>>>()?;
    if args.json {
        show!("{}\n", serde_json::to_string_pretty(&all).expect("a list of texts is JSON"));
        return Ok(0);
    }
    let heads = ["NAME", "UPLINK", "DOWNLINK", "DELAY", "RTT IDLE"];
    let mut widths = heads.map(str::len);
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = cell.len().max(*width);
        }
    }
    let line = |cells: [&str; 5], description: &str| {
        let ([name, up, down, delay, round_trip], [a, b, c, d, e]) = (cells, widths);
        let line = format!("{name:a$}  {up:>b$}  {down:>c$}  {delay:>d$}  {round_trip:>e$}  {description}");
        show!("{}\n", line.trim_end());
    };
    line(heads, "");
    all.iter().for_each(|row| line(row.cells(), &row.summary.description));
    show!(
        "\nDELAY is the one-way delay of the downlink. RTT IDLE is the round trip of a ping (84 bytes) over the idle \
        link,\nmedian of several. `airpath profiles show NAME` prints a profile to copy and edit.\n"
    );
    Ok(0)
}
