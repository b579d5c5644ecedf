// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Abilities of the kernel that only its release tells.

/// First release that takes UDP super-packets from packet sockets and TUN devices.
const CUTS_DATAGRAMS: (u32, u32) = (6, 2);

/// True if the kernel takes UDP super-packets from programs, and cuts them for sockets.
pub(crate) fn kernel_cuts_datagrams() -> bool {
    let Ok(names) = nix::sys::utsname::uname() else { return false };
    release(&names.release().to_string_lossy()).is_some_and(|found| found >= CUTS_DATAGRAMS)
}

/// Major and minor number of a release such as `6.18.44-generic`.
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(release("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(release("6.2-rc1"), Some((6, 2)));
        assert_eq!(release("linux"), None);
        assert!(release("5.15.0-91").unwrap() < CUTS_DATAGRAMS && release("6.10.1").unwrap() >= CUTS_DATAGRAMS);
    }
}
