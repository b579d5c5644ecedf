// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Switching off those segmentation offloads of an interface that a packet
//! socket cannot express, or that are not wanted (the ioctl interface of
//! ethtool). The kernel then cuts such packets before they reach the
//! interface, while TCP still works on super-packets as it does on any host.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::{Attempting, Result};
use crate::namespaces::NetNamespace;

const GET_SET_INFO: u32 = 0x37;
const GET_STRINGS: u32 = 0x1b;
const SET_FEATURES: u32 = 0x3b;
const STRINGS_OF_FEATURES: u32 = 4;
const NAME_BYTES: usize = 32;
const IOCTL: libc::c_ulong = 0x8946;

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

struct Device {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Device {
    fn open(interface: &str) -> io::Result<Self> {
        let mut name = [0; libc::IFNAMSIZ];
        if interface.len() >= name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        for (target, byte) in name.iter_mut().zip(interface.bytes()) {
            *target = byte as libc::c_char;
        }
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes integers.
        let descriptor = unsafe { libc::socket(libc::AF_INET, kind, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { socket, name })
    }

    /// Passes `words` (a structure of ethtool, in 32-bit words) to the kernel,
    /// which may write into it but not beyond.
    fn call(&self, words: &mut [u32]) -> io::Result<()> {
        // SAFETY: an all-zero ifreq is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the request and the words live over the call, and each
        // caller makes the words as long as the command demands.
        let done = unsafe { libc::ioctl(self.socket.as_raw_fd(), IOCTL as _, &mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    fn feature_names(&self) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, mask (64 bit), data.
        let mut info = [GET_SET_INFO, 0, 1 << STRINGS_OF_FEATURES, 0, 0];
        self.call(&mut info)?;
        let count = info[4] as usize;
        // struct ethtool_gstrings: cmd, string_set, len, data.
        let mut strings = vec![0; 3 + count * NAME_BYTES / 4];
        strings[..3].copy_from_slice(&[GET_STRINGS, STRINGS_OF_FEATURES, count as u32]);
        self.call(&mut strings)?;
        let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let names = bytes.chunks(NAME_BYTES).map(|name| {
            let end = name.iter().position(|byte| *byte == 0);
            String::from_utf8_lossy(&name[..end.unwrap_or(name.len())]).into_owned()
        });
        Ok(names.collect())
    }

    fn switch_off(&self, features: &[bool]) -> io::Result<()> {
        let blocks = features.len().div_ceil(32);
        // struct ethtool_sfeatures: cmd, size, then (valid, requested) each.
        let mut words = vec![0; 2 + 2 * blocks];
        words[0] = SET_FEATURES;
        words[1] = blocks as u32;
        for (index, off) in features.iter().enumerate() {
            words[2 + 2 * (index / 32)] |= u32::from(*off) << (index % 32);
        }
        self.call(&mut words)
    }
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
