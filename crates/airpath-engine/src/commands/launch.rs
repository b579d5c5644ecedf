// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The engine process of a live run.

use std::path::PathBuf;
use std::sync::Arc;

use airpath_live::presence::Presence;
use airpath_live::supervise::EngineProcess;
use airpath_live::{privilege, supervise};
use airpath_log::place;

use crate::error::{Failure, Result};
use crate::run::{RunRequest, links};

/// Makes the folder of `request`, and does `work` in an engine process.
///
/// # Errors
/// When the folder or the process cannot be made.
pub fn launch(mut request: RunRequest, work: impl FnOnce(EngineProcess, &RunRequest) -> i32) -> Result<i32> {
    if let Some(folder) = &request.out {
        request.out_is_ours = !folder.exists();
        airpath_log::folder::create(folder).map_err(Failure::log)?;
        // The engine's process may be moved about; what it writes to is not.
        request.out = Some(absolute(folder)?);
        links::make_folders(&request)?;
    }
    if let Err(failure) = open_json(&mut request) {
        links::take_back_folders(&request);
        return Err(failure);
    }
    let taken_back = |failure| {
        links::take_back_folders(&request);
        Failure::live(failure)
    };
    privilege::acquire(request.as_root).map_err(taken_back)?;
    // In a guest nobody is there to be told.
    let _presence = if airpath_warp::guest::is_guest() { None } else { Presence::announce() };
    let status = supervise::run(|process| work(process, &request)).map_err(taken_back)?;
    if links::of(&request.scenario)?.is_some() {
        // Of a run that did not begin nothing is left, and of one that did the folders of its links.
        links::take_back_folders(&request);
    }
    Ok(status)
}

/// Opens the file for the summary as JSON, if `request` names one.
///
/// # Errors
/// When it cannot be written.
pub fn open_json(request: &mut RunRequest) -> Result<()> {
    let opened = request.json_file.as_deref().map(|file| {
        place::output(file).map_err(|error| Failure::unwritable(format!("cannot write {}: {error}", file.display())))
    });
    request.json = opened.transpose()?.map(Arc::new);
    Ok(())
}

fn absolute(folder: &PathBuf) -> Result<PathBuf> {
    std::fs::canonicalize(folder).map_err(|error| Failure::new(format!("cannot find {}: {error}", folder.display())))
}
