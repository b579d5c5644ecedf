// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A hop as a tree of parameters.

use crate::document::{Place, Table};

/// A hop as it was written.
#[derive(Clone, Debug)]
pub struct HopTree {
    pub name: String,
    pub place: Place,
    /// Name of its host, and where that is written; none for the host on which the command runs.
    pub host: Option<(String, Place)>,
    /// Settings for both directions; the directions below include them.
    pub link: Table,
    pub uplink: Table,
    pub downlink: Table,
}
