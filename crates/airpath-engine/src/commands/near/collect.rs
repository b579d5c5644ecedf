// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Results of the engines of other hosts, and their files.

use std::path::Path;
use std::time::Duration;

use airpath_core::End;
use airpath_log::Distribution;
use nix::sys::eventfd::EventFd;
use serde_json::json;

use super::{Link, Other};
use crate::commands::gather::Collected;
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::hosts::channel::{Channel, Channels};
use crate::hosts::mouth::{SILENCE, Said};
use crate::hosts::ssh;
use crate::hosts::transfer::{self, Piece};
use crate::hosts::wire::Word;

/// Time for the results of another host's part: its log is finished first.
const RESULTS: Duration = Duration::from_secs(300);

/// Takes the results of the other engines of `link`, and the delays of packets from the second part to this one; `taken`
/// is told whose came.
///
/// # Errors
/// A host that is lost, or that tells something else.
pub(super) fn collect_all(
    link: &Link,
    channels: &Channels,
    taken: &[EventFd],
) -> Result<(Vec<Collected>, Distribution)> {
    if let Some(why) = channels.gone() {
        return Err(Failure::new(why.to_owned()));
    }
    let mut collected = Vec::with_capacity(link.others.len());
    for ((channel, other), taken) in channels.all.iter().zip(&link.others).zip(taken) {
        collected.push(collect(channel, other, link.request.out.as_deref())?);
        let _ = taken.write(1);
    }
    Ok((collected, channels.transit(End::Server)))
}

/// Takes another engine's results; its files go into the folder of the run.
fn collect(channel: &Channel, other: &Other, out: Option<&Path>) -> Result<Collected> {
    let about = || ssh::about(&other.part);
    let Word::Finished { manifest, summary, before, behind, files } = channel.hear_word(RESULTS)? else {
        return Err(Failure::new(format!("{} did not tell what came of the run", about())));
    };
    if let Some(out) = out {
        let mut hear = || {
            Ok(match channel.hear(3 * SILENCE)? {
                Said::Word(word) => Piece::Word(*word),
                Said::Chunk(bytes) => Piece::Chunk(bytes),
            })
        };
        transfer::replace(&out.join(HOSTS).join(&other.part.name), files, &mut hear)?;
    }
    channel.say_taken();
    let wrong = |what: &str, error: serde_json::Error| Failure::new(format!("{}: its {what}: {error}", about()));
    let clock = other.clock()?;
    let config = other.part.config.as_ref();
    let subtracts = config.is_some_and(|config| config.subtract_delay);
    Ok(Collected {
        name: other.part.name.clone(),
        manifest: serde_json::from_value(*manifest).map_err(|error| wrong("manifest", error))?,
        summary: serde_json::from_value(*summary).map_err(|error| wrong("summary", error))?,
        before,
        behind,
        clock,
        about: json!({
            "ssh": config.map(|config| &config.ssh),
            "subtracted_delay_ns": if subtracts { other.delay.nanos() } else { 0 },
        }),
    })
}
