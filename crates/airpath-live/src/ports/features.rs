// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Switching off those segmentation offloads of an interface that a packet
//! socket cannot express, or that are not wanted. The kernel then cuts such
//! packets before they reach the interface, while TCP still works on
//! super-packets as it does on any host.

use super::ethtool::Device;
use crate::error::{Attempting, Result};
use crate::namespaces::NetNamespace;

/// Offloads that the header in front of each packet can describe.
const EXPRESSIBLE: [&str; 4] =
    ["tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation"];

fn is_segmentation(name: &str) -> bool {
    // Generic segmentation is the kernel's own work and stays.
    (name.starts_with("tx-") && name.ends_with("-segmentation") && name != "tx-generic-segmentation")
        || matches!(name, "tx-gso-partial" | "tx-gso-list" | "tx-gso-robust")
}

fn is_unwanted(name: &str, super_packets: bool) -> bool {
    is_segmentation(name) && !(super_packets && EXPRESSIBLE.contains(&name))
}

/// Restricts what `interface` in `network` takes: with `super_packets`, those
/// that a port can describe; without, none.
pub(super) fn restrict_segmentation(network: &NetNamespace, interface: &str, super_packets: bool) -> Result<()> {
    network
        .run(|| {
            let device = Device::open(interface)?;
            let names = device.feature_names()?;
            let unwanted = names.iter().map(|name| is_unwanted(name, super_packets));
            device.switch_off(&unwanted.collect::<Vec<_>>())
        })?
        .attempting(|| format!("switch off segmentation offloads of {interface}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_described_stays() {
        assert!(!is_unwanted("tx-tcp-segmentation", true));
        assert!(is_unwanted("tx-tcp-segmentation", false));
        assert!(is_unwanted("tx-sctp-segmentation", true));
        assert!(is_unwanted("tx-udp_tnl-segmentation", true));
        assert!(!is_unwanted("tx-checksum-ip-generic", false));
        assert!(!is_unwanted("tx-generic-segmentation", false));
    }
}
