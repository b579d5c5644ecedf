// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Write protection against confined commands of root: of the files by which the host's kernel is set. Root
//! owns them, so that it takes no capability to write them; only a mount that is read-only keeps it off.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use crate::error::{Attempting, Result};

/// Parts of /proc that set the kernel of the whole machine.
const OF_PROC: [&str; 7] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"];
/// The part of /proc/sys that is the network namespace's own.
const OF_NETWORK: &str = "/proc/sys/net";
const SYS: &str = "/sys";

/// Makes /sys and the settings in /proc read-only in the calling thread's mount namespace, but for those of
/// its network.
///
/// # Errors
/// The kernel's: commands would not be confined.
pub(super) fn protect_the_kernel() -> Result<()> {
    for path in OF_PROC.into_iter().map(Path::new).filter(|path| path.exists()) {
        bind(path, path)?;
        if path == Path::new("/proc/sys") {
            let network = Path::new(OF_NETWORK);
            bind(network, network)?;
        }
        make_read_only(path)?;
    }
    let table = fs::read_to_string("/proc/thread-self/mountinfo").attempting(|| "read the table of mounts".into())?;
    // The innermost first: what lies over a mount hides it.
    let mut places: Vec<PathBuf> = table.lines().filter_map(place).filter(|place| place.starts_with(SYS)).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.components().count()));
    places.iter().filter(|place| place.exists()).try_for_each(|place| make_read_only(place))
}

/// Mount point in a line of mountinfo.
fn place(line: &str) -> Option<PathBuf> {
    let text = line.split_whitespace().nth(4)?;
    // Spaces and the like are written as octal numbers.
    let decoded = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    Some(decoded.iter().fold(text.to_owned(), |text, (code, character)| text.replace(code, character)).into())
}

fn bind(from: &Path, to: &Path) -> Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(from), to, None::<&str>, flags, None::<&str>).attempting(|| format!("mount {} on itself", to.display()))
}

fn make_read_only(path: &Path) -> Result<()> {
    let flags = MsFlags::MS_BIND
        | MsFlags::MS_REMOUNT
        | MsFlags::MS_RDONLY
        | MsFlags::MS_NOSUID
        | MsFlags::MS_NODEV
        | MsFlags::MS_NOEXEC;
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
        .attempting(|| format!("make {} read-only for confined commands", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_tells_places() {
        let line = "31 24 0:27 / /sys/fs/with\\040space rw,nosuid shared:9 - cgroup2 cgroup rw";
        assert_eq!(place(line), Some("/sys/fs/with space".into()));
        assert_eq!(place("31"), None);
    }
}
