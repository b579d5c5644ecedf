// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Identity of a host's clock.

use airpath_log::hash::hash64;

/// A number for the clock of this host: the hash of the kernel's boot id, as a clock starts anew with
/// each boot. 0 where it cannot be read.
pub fn identity() -> u64 {
    std::fs::read("/proc/sys/kernel/random/boot_id").map_or(0, |id| hash64(id.trim_ascii()))
}

/// As it is written in files; empty for an unknown one.
pub fn written(identity: u64) -> String {
    if identity == 0 { String::new() } else { format!("{identity:016x}") }
}

/// The name of this host.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "this host".into(), |name| name.trim().into())
}
