// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sessions of several users.

use super::{FarEnd, ServerEnds, Session, SessionEnd, SessionOptions, names};
use crate::addressing::Link;
use crate::error::Result;
use crate::open_files;

/// Decisions of the first session of a run for the others.
pub(super) struct Common<'a> {
    pub(super) server: &'a SessionEnd,
    pub(super) links: &'a [Link],
}

/// The users of sessions that belong together.
pub(super) struct Users<'a> {
    pub(super) names: &'a [&'a str],
    pub(super) servers: ServerEnds,
}

impl Users<'_> {
    /// True if several of them have one server end.
    pub(super) fn share_a_server(&self, options: &SessionOptions) -> bool {
        self.names.len() > 1 && (self.servers == ServerEnds::One || options.far_end == FarEnd::Enclosing)
    }
}

impl Session {
    /// The sessions of users of these names, each with a link of its own. With one server end for all, that of each
    /// session is the same namespace, and the first session's commands are those of all.
    ///
    /// # Errors
    /// Those of [`Session::create`], and [`LiveError::Request`] for more users than a link has addresses for, and for
    /// names by which hosts cannot be told.
    pub fn create_all(options: &SessionOptions, names: &[&str], servers: ServerEnds) -> Result<Vec<Self>> {
        names::check(names)?;
        if names.len() > 1 {
            open_files::allow_most();
        }
        let users = Users { names, servers };
        let explain = |error| open_files::explain(error, names.len());
        let mut sessions: Vec<Self> = Vec::with_capacity(names.len());
        // One after the other: the kernel makes interfaces one at a time, and threads would only wait for each other.
        for user in 0..names.len() {
            // The first settles which links are free, and makes the end that others share.
            let common = sessions.first().map(|first| (Common { server: &first.server, links: &first.links }, user));
            sessions.push(Self::create_for(options, &users, common).map_err(explain)?);
        }
        if names.len() > 1 && !open_files::suffice_for(names.len(), sessions[0].client.network()) {
            return Err(open_files::too_many_users(names.len()));
        }
        Ok(sessions)
    }
}
