// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of making endpoints.

use std::path::PathBuf;

/// Error of making a workload's endpoints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The packets are larger than the link's MTU.
    #[error("{what}={bytes} is above the MTU of {mtu_bytes} bytes; make it smaller, or the MTU larger")]
    AboveMtu {
        /// The key concerned.
        what: &'static str,
        /// Its value.
        bytes: u64,
        /// The MTU.
        mtu_bytes: u32,
    },
    /// The link's MTU is too small for the protocol.
    #[error("{protocol} needs an MTU of at least {least_bytes} bytes ({reason}); this one is {mtu_bytes}")]
    MtuTooSmall {
        /// The protocol.
        protocol: &'static str,
        /// The least that it needs.
        least_bytes: u32,
        /// Source of the requirement.
        reason: &'static str,
        /// The MTU.
        mtu_bytes: u32,
    },
    /// TLS could not be set up, which nothing in a workload brings about.
    #[error("TLS cannot be set up: {problem}")]
    Tls {
        /// Description of the error.
        problem: String,
    },
    /// A capture cannot be replayed.
    #[error("file={}: {problem}", file.display())]
    Capture {
        /// The file.
        file: PathBuf,
        /// Description of the error.
        problem: String,
    },
}

impl EndpointError {
    pub(crate) fn tls(error: impl std::fmt::Display) -> EndpointError {
        EndpointError::Tls { problem: error.to_string() }
    }
}
