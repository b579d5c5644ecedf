// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hosts on which hops are placed, as they are written.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Node, Place, Value};

/// The key of hosts in a document.
pub(crate) const KEY: &str = "hosts";
/// The name of the host on which the command runs.
pub const HERE: &str = "local";

/// Another host, on which hops are placed: `[hosts.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Host")]
pub struct HostConfig {
    /// Destination of `ssh`: "user@host", or a name of its configuration.
    #[schemars(extend("examples" = ["user@lab2"]))]
    pub ssh: String,
    /// Options of `ssh`, such as ["-p", "2222"].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_options: Vec<String>,
    /// Path of the engine on the host. Without it, the copy that --install-engine made, else `airpath-engine` or
    /// `airpath` of the search path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Addresses of a tunnel by UDP for the packets between this host and the one before it on the path. Without it,
    /// they go over the connection of `ssh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpConfig>,
    /// True to take the delay of the network to the host before it on the path, measured before the run, off the
    /// propagation of the hops at the border.
    #[serde(default)]
    pub subtract_delay: bool,
}

/// Addresses of a tunnel by UDP between two hosts, each with its port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "UdpTunnel")]
pub struct UdpConfig {
    /// Address and port of the host before it on the path.
    #[schemars(extend("examples" = ["192.0.2.1:5300"]))]
    pub local: String,
    /// Address and port of this host.
    #[schemars(extend("examples" = ["192.0.2.2:5300"]))]
    pub remote: String,
}

/// A host as it was written.
#[derive(Clone, Debug)]
pub struct HostTree {
    pub name: String,
    pub place: Place,
    pub config: HostConfig,
}

/// A part of a path: hops in a row on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Name of the part: that of its host, with a number behind it where an earlier part is on the same host.
    pub name: String,
    /// Name of the host; [`HERE`] for that on which the command runs.
    pub host: String,
    /// The way to it; none for the host on which the command runs.
    pub config: Option<HostConfig>,
    /// Numbers of its hops.
    pub hops: Range<usize>,
}

impl HostTree {
    /// The host that `node` describes, if it is a table of a host.
    pub fn read(name: &str, place: &Place, node: &Node) -> Option<HostTree> {
        let Value::Table(table) = &node.value else { return None };
        let config: HostConfig = table.to_toml().try_into().ok()?;
        Some(HostTree { name: name.to_owned(), place: place.clone(), config })
    }
}
