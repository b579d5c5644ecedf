// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Anonymous namespaces: network namespaces held by file descriptors, and the
//! mount namespaces in which commands resolve `client` and `server`.
#![allow(unsafe_code)]

mod barrier;
mod mounts;
mod net;
mod sysctl;
mod terminals;

pub use mounts::{HostNames, MountNamespace};
pub use net::NetNamespace;
pub(crate) use net::roam;
pub use sysctl::{NamespaceSettings, ipv6_available};
pub(crate) use sysctl::{default_congestion_control, forward_from};
