// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The machine for which a calibration holds: this machine as it is now.

use std::fs;

use serde::{Deserialize, Serialize};

/// A machine, by the properties that decide how exactly it wakes a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CalibratedHost {
    /// A hash of the machine's identity, or of its name. machine-id(5) asks programs not to publish the
    /// identity itself.
    pub machine: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// Number of processors online.
    pub processors: usize,
    /// The hypervisor's name, "unknown" if it has none, or "none" for a real machine.
    pub hypervisor: String,
}

impl CalibratedHost {
    /// This machine.
    pub fn detect() -> CalibratedHost {
        let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let filled = |path: &str| line(path).filter(|text| !text.is_empty());
        let identity = ["/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/sys/kernel/hostname"];
        let identity = identity.into_iter().find_map(filled).unwrap_or_default();
        let processors = line("/proc/cpuinfo").unwrap_or_default();
        let value = |name: &str| {
            let line = processors.lines().find_map(|line| line.strip_prefix(name)?.split_once(": "));
            line.map(|(_, value)| value.trim().to_owned())
        };
        let is_virtual = value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let name = || filled("/sys/hypervisor/type").or_else(|| filled("/sys/class/dmi/id/sys_vendor"));
        CalibratedHost {
            machine: format!("{:016x}", airpath_log::hash::hash64(format!("airpath {identity}").as_bytes())),
            kernel: line("/proc/sys/kernel/osrelease").unwrap_or_default(),
            processor: value("model name").unwrap_or_else(|| "unknown".into()),
            processors: processors.lines().filter(|line| line.starts_with("processor")).count().max(1),
            hypervisor: if is_virtual { name().unwrap_or_else(|| "unknown".into()) } else { "none".into() },
        }
    }

    /// Returns a description of the properties that differ in `now`; none if all are equal.
    pub fn differs_from(&self, now: &CalibratedHost) -> Option<String> {
        let (count, count_now) = (self.processors.to_string(), now.processors.to_string());
        let facts = [
            ("machine", &self.machine, &now.machine),
            ("kernel", &self.kernel, &now.kernel),
            ("processor", &self.processor, &now.processor),
            ("number of processors", &count, &count_now),
            ("hypervisor", &self.hypervisor, &now.hypervisor),
        ];
        let differing = facts.into_iter().filter(|(_, then, now)| then != now);
        let words: Vec<String> = differing.map(|(name, then, now)| format!("{name} {then}, now {now}")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_fits_itself_and_no_other_kernel() {
        let host = CalibratedHost::detect();
        assert_eq!(host.differs_from(&CalibratedHost::detect()), None);
        assert!(host.machine.len() == 16 && host.processors > 0 && !host.kernel.is_empty(), "{host:?}");
        let older = CalibratedHost { kernel: "5.4".into(), processors: host.processors + 1, ..host.clone() };
        let told = older.differs_from(&host).unwrap();
        assert!(told.contains(&format!("kernel 5.4, now {}", host.kernel)), "{told}");
        assert!(told.contains("number of processors"), "{told}");
    }
}
