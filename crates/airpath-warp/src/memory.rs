// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Is there memory for a guest?

use std::fs;
use std::path::Path;

use crate::error::{Result, WarpError};

/// The guest's memory; pages that it does not touch cost nothing.
pub const GUEST_MIB: u64 = 512;
/// Maximum size of a guest's standard input.
pub const INPUT_MIB: u64 = 512;
/// Maximum size of the files that guest and host share: the guest's memory, standard input, and output that
/// nobody reads as fast as it comes.
pub const SHARED_MIB: u64 = GUEST_MIB + INPUT_MIB + 512;
/// Less than this is too little for any run: a guest touches so much before its commands do anything.
const NEEDED_MIB: u64 = 256;

/// Refuses to boot a guest where there is no memory for it.
///
/// # Errors
/// Says how much there is, how much is missing, and what to do.
pub fn check() -> Result<()> {
    match available_mib() {
        Some((available, limit)) => judge(available, limit.as_deref()),
        // A system that does not tell is no reason to refuse.
        None => Ok(()),
    }
}

fn judge(available_mib: u64, limit: Option<&str>) -> Result<()> {
    if available_mib >= NEEDED_MIB {
        return Ok(());
    }
    let place = limit.map_or(String::new(), |group| format!(" within the limit of the group {group}"));
    Err(WarpError::Missing(format!(
        "a guest needs {NEEDED_MIB} MiB of memory to start and uses at most {GUEST_MIB}; {available_mib} MiB are \
         available{place}: {} MiB are missing. Stop other programs, or run fewer guests in parallel (--jobs).",
        NEEDED_MIB - available_mib
    )))
}

/// Memory available to a new program, and the control group that limits it if one does.
fn available_mib() -> Option<(u64, Option<String>)> {
    let system = field_mib(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let limited =
        root.join(own).ancestors().take_while(|folder| folder.starts_with(root)).filter_map(left_in_group).min();
    Some(match limited {
        Some((left, group)) if left < system => (left, Some(group)),
        _ => (system, None),
    })
}

/// Memory left in a control group, counting memory that the kernel would give back.
fn left_in_group(folder: &Path) -> Option<(u64, String)> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let most = number("memory.max")?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = statistics.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok());
    let used = number("memory.current")?.saturating_sub(cached.unwrap_or(0));
    Some((most.saturating_sub(used) >> 20, folder.display().to_string()))
}

fn field_mib(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        judge(NEEDED_MIB, None).unwrap();
        let error = judge(100, Some("/sys/fs/cgroup/small")).unwrap_err().to_string();
        assert!(error.contains("100 MiB are available within the limit of the group /sys/fs/cgroup/small"), "{error}");
        assert!(error.contains("156 MiB are missing") && error.contains("--jobs"), "{error}");
    }

    #[test]
    fn this_machine_tells_what_it_has() {
        assert!(available_mib().is_some_and(|(available, _)| available > 0));
        assert_eq!(field_mib("MemFree: 1 kB\nMemAvailable:   2048000 kB\n", "MemAvailable:"), Some(2000));
    }

    #[test]
    fn a_group_with_a_limit_counts_what_the_kernel_gives_back() {
        let group = tempfile::tempdir().unwrap();
        assert_eq!(left_in_group(group.path()), None);
        for (name, text) in [("memory.max", "104857600\n"), ("memory.current", "94371840\n")] {
            fs::write(group.path().join(name), text).unwrap();
        }
        fs::write(group.path().join("memory.stat"), "anon 5\ninactive_file 10485760\n").unwrap();
        assert_eq!(left_in_group(group.path()).unwrap().0, 20);
        fs::write(group.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(left_in_group(group.path()), None);
    }
}
