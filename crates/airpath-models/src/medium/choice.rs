// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The choice of a medium: one of the hop's own, or a shared one by its name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MediumConfig;
use crate::file::VisitFile;
use crate::problem::Problem;

/// The medium of one direction of a hop: a table, or the name of one of the `[[media]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MediumChoice {
    /// The name of a medium that users share.
    Shared(String),
    /// A medium of the hop's own.
    Own(MediumConfig),
}

impl MediumChoice {
    /// The name, if the medium is a shared one.
    pub fn name(&self) -> Option<&str> {
        match self {
            MediumChoice::Shared(name) => Some(name),
            MediumChoice::Own(_) => None,
        }
    }

    /// The parameters, if the medium is the hop's own.
    pub fn own(&self) -> Option<&MediumConfig> {
        match self {
            MediumChoice::Shared(_) => None,
            MediumChoice::Own(config) => Some(config),
        }
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        self.own().map(MediumConfig::problems).unwrap_or_default()
    }

    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        if let MediumChoice::Own(config) = self {
            config.files(visit);
        }
    }
}

impl Default for MediumChoice {
    fn default() -> MediumChoice {
        MediumChoice::Own(MediumConfig::default())
    }
}

impl From<MediumConfig> for MediumChoice {
    fn from(config: MediumConfig) -> MediumChoice {
        MediumChoice::Own(config)
    }
}
