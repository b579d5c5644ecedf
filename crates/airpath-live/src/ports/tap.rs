// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A TAP device: an Ethernet interface whose frames a program carries on, segmented and with their checksums.

use std::fs::File;

use super::tun::{DEVICE, make_interface, open_device};
use crate::error::{Attempting, Result};
use crate::namespaces::NetNamespace;

/// Makes the device `name` in `namespace`; it ends with the file, from which nothing is read blocking.
///
/// # Errors
/// When the device cannot be opened (rights, no such device) or made.
pub fn create_tap(namespace: &NetNamespace, name: &str) -> Result<File> {
    namespace.run(|| {
        let file = open_device().attempting(|| format!("open {DEVICE} (load the module `tun`)"))?;
        make_interface(&file, name, libc::IFF_TAP | libc::IFF_NO_PI)
            .attempting(|| format!("make the TAP device {name}"))?;
        Ok(file)
    })?
}
