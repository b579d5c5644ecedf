// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath profiles`: the built-in links.

use airpath_scenario::{Profile, ProfileSummary, profiles};

use crate::cli::{ProfilesAction, ProfilesArgs};
use crate::error::Result;
use crate::link::usage;
use crate::terminal::show;

/// Lists them, or shows one.
///
/// # Errors
/// When there is no such profile.
pub fn run(args: &ProfilesArgs) -> Result<i32> {
    if let Some(ProfilesAction::Show { name }) = &args.action {
        show!("{}", airpath_scenario::profile_text(name).map_err(usage)?);
        return Ok(0);
    }
    let all = profiles().iter().map(Profile::summary).collect::<std::result::Result<Vec<_>, _>>().map_err(usage)?;
    if args.json {
        show!("{}\n", serde_json::to_string_pretty(&all).expect("a list of texts is JSON"));
        return Ok(0);
    }
    let width = |text: fn(&ProfileSummary) -> &str| all.iter().map(|one| text(one).len()).max().unwrap_or(0);
    let (name, up, down) = (width(|one| &one.name), width(|one| &one.uplink_rate), width(|one| &one.downlink_rate));
    let delay = width(|one| &one.downlink_delay).max(5);
    show!("{:name$}  {:>up$}  {:>down$}  {:>delay$}\n", "NAME", "UPLINK", "DOWNLINK", "DELAY");
    for one in &all {
        show!(
            "{:name$}  {:>up$}  {:>down$}  {:>delay$}  {}\n",
            one.name,
            one.uplink_rate,
            one.downlink_rate,
            one.downlink_delay,
            one.description
        );
    }
    show!(
        "\nDELAY is the one-way delay of the downlink. `airpath profiles show NAME` prints a profile to copy and \
        edit.\n"
    );
    Ok(0)
}
