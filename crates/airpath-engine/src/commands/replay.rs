// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath replay`: does a recorded run give the same trace again?

use airpath_log::show::counted;

use crate::cli::ReplayArgs;
use crate::error::Result;
use crate::run::replay::{ReplayOutcome, replay};
use crate::status;
use crate::terminal::{say, show};

/// Replays it; the exit status is 1 if the traces differ.
///
/// # Errors
/// When the run cannot be replayed.
pub fn run(args: &ReplayArgs) -> Result<i32> {
    let outcome = replay(&args.dir, args.out.as_deref())?;
    if args.json {
        show!("{}\n", json(&outcome));
    } else {
        show!("{}\n", text(&outcome));
        if !outcome.has_positions && outcome.difference.is_none() {
            say!("airpath: this log has no positions of flipped bits: only their numbers were compared");
        }
    }
    Ok(if outcome.difference.is_some() { status::UNDONE } else { 0 })
}

fn text(outcome: &ReplayOutcome) -> String {
    match &outcome.difference {
        Some(difference) => difference.to_string(),
        None => {
            let links = outcome.links.map(|links| format!(", {}", counted(links, "link record")));
            format!(
                "identical: {}{}, {}",
                counted(outcome.events, "event"),
                links.unwrap_or_default(),
                counted(outcome.damaged_packets, "damaged packet")
            )
        }
    }
}

fn json(outcome: &ReplayOutcome) -> serde_json::Value {
    serde_json::json!({
        "identical": outcome.difference.is_none(),
        "events": outcome.events,
        "damaged_packets": outcome.damaged_packets,
        "link_records": outcome.links,
        "positions_compared": outcome.has_positions,
        "difference": outcome.difference,
        "duration_ns": outcome.duration.nanos(),
        "took_s": outcome.took.as_secs_f64(),
    })
}
