// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Place of a link in a run of several.

/// Place of a link among those of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlace {
    /// Its name, and that of its folder.
    pub name: String,
    /// Number of its first user, from 0, among those of all links.
    pub first_user: usize,
    /// Names of its users.
    pub users: Vec<String>,
}
