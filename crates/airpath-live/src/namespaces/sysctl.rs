// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Kernel settings of a network namespace, by /proc/sys/net.

use std::fs;
use std::io;
use std::path::Path;

use nix::unistd::getegid;

use super::NetNamespace;
use crate::error::Result;

/// True if the calling thread's network namespace has IPv6 at all.
pub fn ipv6_available() -> bool {
    Path::new("/proc/sys/net/ipv6/conf/all").exists()
        && fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").is_ok_and(|text| text.trim() == "0")
}

/// Settings for namespaces that this crate made (never for the host's own).
#[derive(Debug, Clone, Copy)]
pub struct NamespaceSettings {
    /// Forward packets between links, which nesting needs.
    pub forwarding: bool,
}

impl NamespaceSettings {
    /// Writes them inside `namespace` and returns a note for each that was
    /// refused (a read-only /proc/sys, as in some containers).
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn apply(&self, namespace: &NetNamespace) -> Result<Vec<String>> {
        let settings = self.list();
        namespace
            .run(move || settings.into_iter().filter_map(|(name, value)| write_setting(name, &value).err()).collect())
    }

    fn list(&self) -> Vec<(&'static str, String)> {
        // A range of one group: others are not mapped into a user namespace,
        // and the kernel then refuses the whole range.
        let group = getegid();
        let mut settings = vec![
            ("ipv4/ping_group_range", format!("{group} {group}")),
            // The metrics cache would carry one connection's round-trip time
            // and threshold over to the next.
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("ipv4/conf/all/rp_filter", "0".to_owned()),
            ("ipv4/conf/default/rp_filter", "0".to_owned()),
            ("ipv6/conf/default/accept_dad", "0".to_owned()),
            ("ipv6/conf/all/accept_dad", "0".to_owned()),
            ("ipv6/conf/default/router_solicitations", "0".to_owned()),
            ("ipv6/conf/default/accept_ra", "0".to_owned()),
            ("ipv6/conf/default/autoconf", "0".to_owned()),
        ];
        if self.forwarding {
            settings.push(("ipv4/ip_forward", "1".to_owned()));
            settings.push(("ipv6/conf/all/forwarding", "1".to_owned()));
        }
        settings
    }
}

/// Writes `value` to /proc/sys/net/`name` of the calling thread's namespace. A
/// setting that this kernel lacks needs no setting.
fn write_setting(name: &str, value: &str) -> std::result::Result<(), String> {
    match fs::write(Path::new("/proc/sys/net").join(name), value) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("net.{} is unchanged: {error}", name.replace('/', ".")))
        }
        _ => Ok(()),
    }
}

/// Lets packets be forwarded from one interface of the calling thread's
/// namespace.
pub(crate) fn forward_from(link_name: &str) -> Vec<String> {
    ["ipv4", "ipv6"]
        .iter()
        .filter_map(|family| write_setting(&format!("{family}/conf/{link_name}/forwarding"), "1").err())
        .collect()
}

/// The default TCP congestion control of the calling thread's namespace.
pub(crate) fn default_congestion_control() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(text.trim().to_owned())
}
