// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The mount namespace of an endpoint's commands: a private /etc/hosts (and
//! resolv.conf), and a /sys/class/net that shows the endpoint's interfaces.
//!
//! The files live on a temporary file system that only this mount namespace
//! has ever seen, so nothing is left anywhere when it ends.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use super::net::on_helper_thread;
use super::{NetNamespace, barrier, terminals};
use crate::error::{Attempting, LiveError, Result};
use crate::refusal::explain_refusal;

/// Names that resolve inside a run, added to those of the host.
#[derive(Debug, Clone, Default)]
pub struct HostNames {
    /// An address with its names, the preferred name first.
    pub entries: Vec<(IpAddr, Vec<String>)>,
}

impl HostNames {
    /// The hosts file: ours first, then the lines of `existing` without the
    /// names that an enclosing run gave to its own ends.
    pub fn hosts_file(&self, existing: &str) -> String {
        let mut text = String::from("# Written by airpath for this run only.\n");
        for (address, names) in &self.entries {
            text.push_str(&format!("{address}\t{}\n", names.join(" ")));
        }
        let ours = |name: &str| self.entries.iter().any(|(_, names)| names.iter().any(|known| known == name));
        for line in existing.lines() {
            let content = line.split('#').next().unwrap_or_default();
            let mut words = content.split_whitespace();
            let Some(address) = words.next() else {
                continue;
            };
            let kept: Vec<&str> = words.filter(|name| !ours(name)).collect();
            if !kept.is_empty() {
                text.push_str(&format!("{address}\t{}\n", kept.join(" ")));
            }
        }
        text
    }
}

/// The file of names.
const HOSTS: &str = "/etc/hosts";

/// A hosts file in which `address` no longer has `name`.
fn without(hosts: &str, address: IpAddr, name: &str) -> String {
    let mut text = String::with_capacity(hosts.len());
    for line in hosts.lines() {
        let mut words = line.split_whitespace();
        if words.next().and_then(|first| first.parse::<IpAddr>().ok()) != Some(address) {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        let kept: Vec<&str> = words.filter(|word| *word != name).collect();
        if !kept.is_empty() {
            text.push_str(&format!("{address}\t{}\n", kept.join(" ")));
        }
    }
    text
}

/// A mount namespace held by a descriptor, for commands to enter.
#[derive(Debug)]
pub struct MountNamespace {
    descriptor: OwnedFd,
    notes: Vec<String>,
    /// True if /etc/hosts is a file of this namespace alone.
    has_own_hosts: bool,
}

impl MountNamespace {
    /// A second descriptor of the same namespace.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self { descriptor: self.descriptor.try_clone()?, notes: self.notes.clone(), ..*self })
    }

    /// Copies the caller's mount namespace and changes the copy for commands
    /// in `network`. `resolv_conf` replaces /etc/resolv.conf when given.
    /// Where commands are `confined`, they cannot set the host's kernel. With `log_ins`, those who log in get
    /// terminals that this user namespace can hand over.
    ///
    /// # Errors
    /// When a mount namespace cannot be made.
    pub fn create(
        network: &NetNamespace,
        names: &HostNames,
        resolv_conf: Option<&str>,
        confined: bool,
        log_ins: bool,
    ) -> Result<Self> {
        on_helper_thread(|| {
            setns(network, CloneFlags::CLONE_NEWNET).attempting(|| "enter a network namespace".into())?;
            unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| explain_refusal("a mount namespace", errno))?;
            // A copy made inside one user namespace shares its mounts with
            // the original unless told otherwise.
            let flags = MsFlags::MS_REC | MsFlags::MS_SLAVE;
            mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
                .attempting(|| "keep a command's mounts to itself".into())?;
            let existing = fs::read_to_string(HOSTS).unwrap_or_default();
            let hosts = names.hosts_file(&existing);
            let mut files = vec![("hosts", HOSTS, hosts.as_str())];
            if let Some(text) = resolv_conf {
                files.push(("resolv.conf", "/etc/resolv.conf", text));
            }
            let groups = if log_ins { terminals::provide() } else { None };
            if let Some(text) = &groups {
                files.push(("group", terminals::GROUPS, text));
            }
            let mut notes = replace_files(&files)?;
            let has_own_hosts = !notes.iter().any(|note| note.starts_with(HOSTS));
            notes.extend(show_interfaces());
            if confined {
                barrier::protect_the_kernel()?;
            }
            let file = File::open("/proc/thread-self/ns/mnt").attempting(|| "open /proc/thread-self/ns/mnt".into())?;
            Ok(Self { descriptor: file.into(), notes, has_own_hosts })
        })?
    }

    /// Takes `name` from `address`, for commands that look it up from now on; other names of the address stay.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub fn unname(&self, address: IpAddr, name: &str) -> Result<()> {
        if !self.has_own_hosts {
            return Ok(());
        }
        on_helper_thread(|| {
            // A thread that shares its working directory with others may not enter another namespace of mounts.
            unshare(CloneFlags::CLONE_FS).attempting(|| "prepare a thread for another mount namespace".into())?;
            setns(&self.descriptor, CloneFlags::CLONE_NEWNS).attempting(|| "enter a mount namespace".into())?;
            let text = fs::read_to_string(HOSTS).attempting(|| format!("read {HOSTS} of a run"))?;
            fs::write(HOSTS, without(&text, address, name)).attempting(|| format!("write {HOSTS} of a run"))
        })?
    }

    /// Notes on unavailable parts, for the record of the run.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl AsFd for MountNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Directories over one of which a temporary file system can be put for a
/// moment; nobody else sees it.
const WORKBENCHES: [&str; 5] = ["/tmp", "/run", "/mnt", "/var/tmp", "/dev/shm"];

fn mount_workbench() -> Result<&'static str> {
    let mut refusal = nix::errno::Errno::ENOENT;
    for directory in WORKBENCHES {
        if !Path::new(directory).is_dir() {
            continue;
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        match mount(Some("airpath"), directory, Some("tmpfs"), flags, Some("mode=0755,size=1m")) {
            Ok(()) => return Ok(directory),
            Err(errno) => refusal = errno,
        }
    }
    Err(LiveError::system("mount a temporary file system for /etc/hosts", refusal))
}

fn replace_files(files: &[(&str, &str, &str)]) -> Result<Vec<String>> {
    let workbench = mount_workbench()?;
    let mut notes = Vec::new();
    for (name, target, text) in files {
        let source = Path::new(workbench).join(name);
        let replaced =
            fs::write(&source, text).and_then(|()| bind(&source, Path::new(target)).map_err(std::io::Error::from));
        if let Err(error) = replaced {
            notes.push(format!("{target} is the host's: it cannot be replaced ({error})"));
        }
    }
    // The bind mounts keep the file system alive under their own names.
    umount2(workbench, MntFlags::MNT_DETACH)
        .attempting(|| format!("unmount the temporary file system from {workbench}"))?;
    Ok(notes)
}

fn bind(source: &Path, target: &Path) -> nix::Result<()> {
    mount(Some(source), target, None::<&str>, MsFlags::MS_BIND, None::<&str>)
}

/// /sys shows the network namespace in which it was mounted. Only the two
/// places with interfaces are replaced: a whole new /sys would hide the
/// control groups and whatever else is mounted below the old one.
fn show_interfaces() -> Vec<String> {
    let attempt = || -> Result<()> {
        let workbench = WORKBENCHES
            .iter()
            .find(|directory| Path::new(directory).is_dir())
            .ok_or_else(|| LiveError::Missing("no directory to mount a fresh /sys on".into()))?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("sysfs"), *workbench, Some("sysfs"), flags, None::<&str>)
            .attempting(|| "mount a fresh /sys".into())?;
        let bound = ["class/net", "devices/virtual/net"]
            .iter()
            .try_for_each(|part| bind(&Path::new(workbench).join(part), &Path::new("/sys").join(part)))
            .attempting(|| "show the interfaces of the run in /sys".into());
        umount2(*workbench, MntFlags::MNT_DETACH).attempting(|| format!("unmount the fresh /sys from {workbench}"))?;
        bound
    };
    match attempt() {
        Ok(()) => Vec::new(),
        Err(error) => vec![format!("/sys/class/net inside the run lists the host's interfaces: {error}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(address: &str, names: &[&str]) -> HostNames {
        HostNames { entries: vec![(address.parse().unwrap(), names.iter().map(|name| (*name).to_owned()).collect())] }
    }

    #[test]
    fn localhost_lines_stay_and_names_of_an_enclosing_run_go() {
        let existing = "127.0.0.1 localhost # us\n10.77.0.1 server server0\n\n::1 localhost\n";
        let text = names("10.77.1.1", &["server", "server1"]).hosts_file(existing);
        let expected = "# Written by airpath for this run only.\n\
                        10.77.1.1\tserver server1\n\
                        127.0.0.1\tlocalhost\n\
                        10.77.0.1\tserver0\n\
                        ::1\tlocalhost\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_address_loses_one_name_and_keeps_the_others() {
        let hosts = "# ours\n10.77.0.2\tserver server0\nfd00::2\tserver server0\n127.0.0.1\tlocalhost\n";
        let text = without(hosts, "fd00::2".parse().unwrap(), "server");
        assert_eq!(text, hosts.replace("fd00::2\tserver server0", "fd00::2\tserver0"));
        assert_eq!(without("fd00::2 server\n", "fd00::2".parse().unwrap(), "server"), "");
    }

    #[test]
    fn a_line_left_without_names_is_dropped() {
        let text = names("10.77.1.1", &["server"]).hosts_file("10.77.0.1 server\n");
        assert!(!text.contains("10.77.0.1"), "{text}");
    }
}
