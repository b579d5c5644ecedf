// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Failures, as the user reads them.

use std::fmt;

use crate::status;

/// A failure of Airpath itself: what, where, and how to fix it.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: i32,
}

/// The result of most functions here.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure while running.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: status::FAILED }
    }

    /// A mistake in what was typed or written (exit status 2, as of every command line).
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: status::USAGE }
    }

    /// A failure of a program like any other, behind a link or not: exit status 1.
    pub fn program(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), status: status::UNDONE }
    }

    /// A failure of the system around the link.
    pub fn live(error: airpath_live::LiveError) -> Failure {
        Failure::new(error.to_string())
    }

    /// A failure of the kernel for virtual time, or of the guest.
    pub fn warp(error: airpath_warp::WarpError) -> Failure {
        Failure::new(error.to_string())
    }

    /// The exit status.
    pub fn status(&self) -> i32 {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
