// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The ioctl interface of ethtool: features, queues and driver of an interface in this thread's network namespace.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_SEGMENTATION: u32 = 0x1e;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const GET_CHANNELS: u32 = 0x3c;
const STRINGS_OF_FEATURES: u32 = 4;
const NAME_BYTES: usize = 32;
/// Words of `struct ethtool_drvinfo`.
const DRIVER_WORDS: usize = 49;
const IOCTL: libc::c_ulong = 0x8946;

/// An interface.
pub(super) struct Device {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Device {
    /// The interface of this name, which need not be there.
    ///
    /// # Errors
    /// `ENAMETOOLONG`, or the kernel's.
    pub(super) fn open(interface: &str) -> io::Result<Self> {
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

    /// True if the interface cuts super-packets of TCP itself; otherwise the kernel has to.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn cuts_super_packets(&self) -> io::Result<bool> {
        // struct ethtool_value: cmd, data.
        let mut words = [GET_SEGMENTATION, 0];
        match self.call(&mut words) {
            Ok(()) => Ok(words[1] != 0),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Names of all features that the kernel knows.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn feature_names(&self) -> io::Result<Vec<String>> {
        // struct ethtool_sset_info: cmd, reserved, mask (64 bit), data.
        let mut info = [GET_SET_INFO, 0, 1 << STRINGS_OF_FEATURES, 0, 0];
        self.call(&mut info)?;
        let count = info[4] as usize;
        // struct ethtool_gstrings: cmd, string_set, len, data.
        let mut strings = vec![0; 3 + count * NAME_BYTES / 4];
        strings[..3].copy_from_slice(&[GET_STRINGS, STRINGS_OF_FEATURES, count as u32]);
        self.call(&mut strings)?;
        Ok(bytes(&strings[3..]).chunks(NAME_BYTES).map(text).collect())
    }

    /// Switches off those features of [`Device::feature_names`] that are marked.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn switch_off(&self, features: &[bool]) -> io::Result<()> {
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

    /// True if one of the features of these names is on.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn has_active(&self, wanted: &[&str]) -> io::Result<bool> {
        let names = self.feature_names()?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_gfeatures: cmd, size, then (available, requested, active, never_changed) each.
        let mut words = vec![0; 2 + 4 * blocks];
        words[0] = GET_FEATURES;
        words[1] = blocks as u32;
        self.call(&mut words)?;
        let is_active = |index: usize| words[2 + 4 * (index / 32) + 2] >> (index % 32) & 1 == 1;
        Ok(names.iter().enumerate().any(|(index, name)| wanted.contains(&name.as_str()) && is_active(index)))
    }

    /// Number of queues for what comes in.
    ///
    /// # Errors
    /// `EOPNOTSUPP` where the driver does not tell.
    pub(super) fn receive_queues(&self) -> io::Result<u32> {
        // struct ethtool_channels: cmd, the most of rx, tx, other, combined, then how many there are.
        let mut words = [0; 9];
        words[0] = GET_CHANNELS;
        self.call(&mut words)?;
        Ok(words[5] + words[8])
    }

    /// Name of the driver.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn driver(&self) -> io::Result<String> {
        // struct ethtool_drvinfo: cmd, the driver's name, and more.
        let mut words = [0; DRIVER_WORDS];
        words[0] = GET_DRIVER;
        self.call(&mut words)?;
        Ok(text(&bytes(&words[1..])[..NAME_BYTES]))
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The text in a field that zeros fill up.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&field[..end.unwrap_or(field.len())]).into_owned()
}
