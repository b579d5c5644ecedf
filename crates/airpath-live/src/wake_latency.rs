// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Limit on the depth of processors' idle states: an idle state that saves much takes long to leave, and the
//! loop waits for that at every wake-up. The kernel honours the least latency that any open descriptor asks
//! for.
//!
//! Source: Linux, `Documentation/power/pm_qos_interface.rst`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::scheduling::Permission;

/// The device that takes a latency in µs and holds it while it is open.
pub const DEVICE: &str = "/dev/cpu_dma_latency";

/// Word for holding it on the command line and in records.
pub const HOLD: &str = "hold";
/// The same for leaving it alone.
pub const LEAVE: &str = "leave";

/// A latency that is being held; until it is dropped. Commands do not inherit it.
#[derive(Debug)]
pub struct WakeLatency {
    /// Open, it holds the latency.
    _device: File,
}

impl WakeLatency {
    /// Asks for idle states that are left within `latency_us`; 0 for none but polling. Costs power, and
    /// on a virtual machine processor time of its host.
    pub fn hold(latency_us: i32) -> (Permission, Option<WakeLatency>) {
        // The standard library opens every file so that commands do not inherit it.
        let held = OpenOptions::new().write(true).open(DEVICE).and_then(|mut file| {
            file.write_all(&latency_us.to_ne_bytes())?;
            Ok(file)
        });
        match held {
            Ok(file) => (Permission::Allowed, Some(WakeLatency { _device: file })),
            Err(error) => (Permission::Refused(hint(&error)), None),
        }
    }
}

fn hint(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{error}; run as root, or give your group write access to {DEVICE}"),
        io::ErrorKind::NotFound => format!("{error}; this kernel has no {DEVICE} (CONFIG_CPU_IDLE), or it is hidden"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    #[test]
    fn it_is_held_and_not_inherited_or_the_refusal_says_what_to_do() {
        match WakeLatency::hold(0) {
            (Permission::Allowed, Some(held)) => {
                let flags = FdFlag::from_bits_retain(fcntl(&held._device, FcntlArg::F_GETFD).unwrap());
                assert!(flags.contains(FdFlag::FD_CLOEXEC));
            }
            (refused, held) => {
                assert!(held.is_none());
                assert!(refused.to_string().contains(DEVICE), "{refused}");
            }
        }
    }
}
