// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From a scenario to the configuration of its paths, its media, and the machine that they make.

use std::sync::Arc;

use airpath_models::MachineConfig;
use airpath_models::cell::{CellConfig, MediumOfCell, UserConfig};

use crate::attachment;
use crate::document::{Place, Source};
use crate::media;
use crate::report::{Diagnostic, Report};
use crate::scenario::{NamedPath, ONLY_PATH, Scenario};

impl Scenario {
    /// The configuration of every path.
    ///
    /// # Errors
    /// Everything that is wrong with the parameters, where [`Scenario::set`] or
    /// [`Scenario::apply_plain`] made them wrong.
    pub fn paths(&self) -> Result<Vec<NamedPath>, Report> {
        self.checked().map(|(paths, _)| paths)
    }

    /// The media that the paths share.
    ///
    /// # Errors
    /// As [`Scenario::paths`].
    pub fn media(&self) -> Result<Vec<MediumOfCell>, Report> {
        self.checked().map(|(_, media)| media)
    }

    /// The machine that the scenario describes: its only path, or a cell of users that share media.
    ///
    /// # Errors
    /// As [`Scenario::paths`]; and when there are several paths that share nothing.
    pub fn machine(&self) -> Result<MachineConfig, Report> {
        let (mut paths, media) = self.checked()?;
        if media.is_empty() {
            if let [_, second, ..] = self.paths.as_slice() {
                let message = format!(
                    "the scenario has {} paths, but a command uses only one; keep one [[paths]], or let the paths \
                     share [[{}]]",
                    self.paths.len(),
                    media::KEY
                );
                let place = second.hops.first().map(|hop| hop.place.clone());
                let place = place.unwrap_or_else(|| Place::whole(&Arc::new(Source::nothing())));
                return Err(Diagnostic::at(&place, "paths", message).into());
            }
            return Ok(MachineConfig::Path(paths.swap_remove(0).config));
        }
        let is_unnamed = self.is_unnamed();
        let users = paths.into_iter().map(|NamedPath { name, config }| UserConfig { name, is_unnamed, path: config });
        Ok(MachineConfig::Cell(CellConfig { media, users: users.collect() }))
    }

    /// True if the only path was given no name.
    pub(crate) fn is_unnamed(&self) -> bool {
        matches!(self.paths.as_slice(), [path] if path.name == ONLY_PATH)
    }

    /// Paths and media, if all is right.
    fn checked(&self) -> Result<(Vec<NamedPath>, Vec<MediumOfCell>), Report> {
        let (mut paths, mut media, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        for medium in &self.media {
            match media::config(medium) {
                Ok(config) => media.push(config),
                Err(more) => problems.extend(more),
            }
        }
        let is_prefixed = self.paths.len() > 1;
        for path in &self.paths {
            let prefix = if is_prefixed { path.name.as_str() } else { "" };
            match path.config(prefix) {
                Ok(config) => paths.push(NamedPath { name: path.name.clone(), config }),
                Err(more) => problems.extend(more),
            }
        }
        problems.extend(attachment::problems(&self.paths, &paths, &self.media, &media, is_prefixed));
        problems.extend(self.placement_problems(&paths));
        if problems.is_empty() { Ok((paths, media)) } else { Err(Report::new(problems)) }
    }
}
