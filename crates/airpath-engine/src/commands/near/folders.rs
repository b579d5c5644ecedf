// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Folders of a run on several hosts, and the manifest of a run that fails.

use std::fs;

use airpath_log::Manifest;
use airpath_log::manifest::Status;
use airpath_scenario::HERE;
use serde_json::json;

use super::{Link, Other};
use crate::commands::gather;
use crate::error::{Failure, Result};
use crate::hosts::HOSTS;
use crate::run::{RunRequest, manifest as places};
use crate::terminal::say;

/// Makes the folder of a run; whether it was not there before.
pub(super) fn make_folder(run: &RunRequest) -> Result<bool> {
    let Some(out) = &run.out else { return Ok(false) };
    let is_new = !out.exists();
    airpath_log::folder::create(out).map_err(Failure::log)?;
    Ok(is_new)
}

/// Makes the folders of the links of a run and of their parts, once the other hosts have answered: whoever gives up
/// before leaves an empty folder, whose name can be used again.
pub(super) fn make_parts(run: &RunRequest, links: &[Link]) -> Result<()> {
    let Some(out) = &run.out else { return Ok(()) };
    for link in links {
        let Some(own) = &link.request.out else { continue };
        if own != out {
            airpath_log::folder::create(own).map_err(Failure::log)?;
        }
        if link.is_placed() {
            fs::create_dir_all(own.join(HOSTS).join(HERE))
                .map_err(|error| Failure::new(format!("cannot make {}: {error}", own.join(HOSTS).display())))?;
        }
    }
    Ok(())
}

/// Takes back the folders of a run that has not begun.
pub(super) fn take_back(run: &RunRequest, links: &[Link], made: bool) {
    let Some(out) = &run.out else { return };
    for link in links {
        let Some(own) = &link.request.out else { continue };
        if link.is_placed() {
            let _ = fs::remove_dir_all(own.join(HOSTS));
        }
        if own != out {
            let _ = fs::remove_dir(own);
        }
    }
    if made {
        let _ = fs::remove_dir(out);
    }
}

/// Notes where the engine's process of this host was killed: it left no manifest of the whole, and what the other hosts
/// recorded is still to be fetched.
pub(super) fn note_death(links: &[Link]) -> Result<()> {
    let died = Failure::new("the engine's process on the host of the command was killed");
    for link in links.iter().filter(|link| link.is_placed() && !link.has_begun()) {
        note_failure(link, &link.here()?, &died);
    }
    Ok(())
}

/// Leaves a manifest of the whole link that says which host failed and why. False if the run had not begun.
pub(super) fn note_failure(link: &Link, local: &RunRequest, failure: &Failure) -> bool {
    let Link { request: whole, others, .. } = link;
    let (Some(out), Some(part)) = (&whole.out, &local.out) else { return true };
    let Ok(mut manifest) = Manifest::read(part) else { return false };
    manifest.status = Status::Failed;
    manifest.name_places(&places::places(&whole.machine));
    manifest.scenario_toml = whole.scenario.to_toml().unwrap_or_default();
    manifest.scenario = toml::from_str(&manifest.scenario_toml).unwrap_or_default();
    let failure = failure.to_string();
    // The message names the host; where it names none, all may be concerned.
    let is_it = |other: &Other| failure.contains(&format!("host `{}`", other.part.name));
    let none_named = !others.iter().any(is_it);
    let about = |other: &Other| {
        let mut about = json!({ "name": other.part.name, "folder": other.folder });
        if let (Ok(clock), Some(about)) = (other.clock(), about.as_object_mut()) {
            about.extend(gather::clock_account(&clock).as_object().cloned().unwrap_or_default());
        }
        if none_named || is_it(other) {
            about["failure"] = json!(failure);
        }
        about
    };
    manifest.hosts = others.iter().map(about).collect();
    if let Err(error) = manifest.write(out) {
        say!("airpath: {error}");
    }
    true
}
