// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requirements for building the kernel, and the Debian packages that meet them.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use crate::error::{Result, WarpError};
use crate::recipe;

/// Room that the source and the objects take while building, in bytes.
pub const DISK_BYTES: u64 = 1_500_000_000;

/// A shell command that succeeds where a need is met, and the package that meets it.
struct Need {
    probe: &'static str,
    package: &'static str,
}

const TOOLS: [Need; 8] = [
    Need { probe: "command -v bc", package: "bc" },
    Need { probe: "command -v bison", package: "bison" },
    Need { probe: "command -v flex", package: "flex" },
    Need { probe: "command -v gcc", package: "gcc" },
    Need { probe: "echo 'int main(void){return 0;}' | gcc -xc -o /dev/null -", package: "libc6-dev" },
    Need { probe: "command -v make", package: "make" },
    Need { probe: "command -v patch", package: "patch" },
    Need { probe: "command -v xz && command -v tar", package: "xz-utils" },
];

/// The packages that are missing to build from Debian's source (`with_source`), or from a source that
/// the user has.
pub fn missing_packages(with_source: bool) -> Vec<&'static str> {
    let mut missing: Vec<_> = TOOLS.iter().filter(|need| !succeeds(need.probe)).map(|need| need.package).collect();
    if with_source && !Path::new(recipe::SOURCE_ARCHIVE).exists() {
        missing.push(recipe::SOURCE_PACKAGE);
    }
    missing
}

fn succeeds(probe: &str) -> bool {
    let status = Command::new("sh")
        .args(["-c", probe])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Installs `packages` where that can be done: as root, with apt-get.
///
/// # Errors
/// When it cannot, with the command for who can.
pub fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if !geteuid().is_root() || !succeeds("command -v apt-get") {
        return Err(WarpError::Missing(format!(
            "packages needed to build the kernel are missing (names as in Debian 12): {list}\n  \
             Install them as root: apt-get install {list}"
        )));
    }
    let apt = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let mut words = vec!["install", "-y", "-qq", "--no-install-recommends"];
    words.extend(packages);
    // The lists of packages may be old, or not there at all.
    if apt(&["update", "-qq"]) && apt(&words) {
        return Ok(());
    }
    Err(WarpError::Missing(format!("cannot install {list}: see the output of apt-get above")))
}

/// Refuses a machine for which the kernel cannot be built.
///
/// # Errors
/// Says which machines serve.
pub fn check_architecture() -> Result<()> {
    match env::consts::ARCH {
        "x86_64" => Ok(()),
        other => Err(WarpError::Missing(format!("user-mode Linux needs an x86-64 machine, and this one is {other}"))),
    }
}

/// Refuses a cache on a disk too full to build there.
///
/// # Errors
/// Says how much room there is and how much it takes.
pub fn check_room(folder: &Path) -> Result<()> {
    let Ok(disk) = statvfs(folder) else { return Ok(()) };
    let free_bytes = disk.blocks_available() * disk.fragment_size();
    if free_bytes >= DISK_BYTES {
        return Ok(());
    }
    Err(WarpError::Missing(format!(
        "building the kernel needs {:.1} GB in {} for some minutes, but only {:.1} GB are free; free space, or set \
         XDG_CACHE_HOME to a directory on another disk",
        DISK_BYTES as f64 / 1e9,
        folder.display(),
        free_bytes as f64 / 1e9
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_what_is_there() {
        assert!(succeeds("command -v sh"));
        assert!(!succeeds("command -v no-such-program-anywhere"));
    }

    #[test]
    fn an_ordinary_user_is_told_what_to_install() {
        if geteuid().is_root() {
            // Root's way would install the packages; it is taken where `make test` prepares a machine.
            return;
        }
        let error = install(&["flex", "bison"]).unwrap_err().to_string();
        assert!(error.contains("apt-get install flex bison"), "{error}");
    }

    #[test]
    fn a_full_disk_is_named() {
        let error = check_room(Path::new("/proc")).unwrap_err().to_string();
        assert!(error.contains("/proc") && error.contains("XDG_CACHE_HOME"), "{error}");
    }
}
