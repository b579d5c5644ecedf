//! May this process make namespaces? Either it holds the capabilities already
//! (root, or a run nested in another), or it enters a user namespace of its
//! own, where an ordinary user holds them.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::capability::{Capabilities, number};
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;

/// Source of this process's right to make namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// It held CAP_SYS_ADMIN and CAP_NET_ADMIN already.
    Privileged,
    /// It entered a user namespace; `as_root` tells whether it is uid 0 there.
    UserNamespace {
        /// uid 0 inside, or the user's own uid.
        as_root: bool,
    },
}

impl Privilege {
    /// True if the namespaces of the caller (not only those made from now on) may be configured.
    pub fn owns_current_namespaces(self) -> bool {
        self == Self::Privileged
    }

    /// One word for the manifest of a run.
    pub fn label(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::UserNamespace { as_root: false } => "user namespace",
            Self::UserNamespace { as_root: true } => "user namespace as root",
        }
    }
}

/// True if namespaces can be made and configured with the capabilities that are in force now.
///
/// # Errors
/// Only if the capabilities cannot be read.
pub fn is_privileged() -> Result<bool> {
    let held = Capabilities::current().attempting(|| "read this process's capabilities".into())?;
    Ok([number::SYS_ADMIN, number::NET_ADMIN, number::NET_RAW, number::SYS_CHROOT]
        .iter()
        .all(|capability| held.has(*capability)))
}

/// Detects privilege or enters a user namespace. Must be called while the
/// process has one thread only (a rule of the kernel). With `as_root` an
/// ordinary user becomes uid 0 of the new user namespace; otherwise the uid
/// stays what it is.
///
/// # Errors
/// [`LiveError::Forbidden`] names the setting that has to change.
pub fn acquire(as_root: bool) -> Result<Privilege> {
    let (uid, gid) = (geteuid(), getegid());
    if is_privileged()? && (!as_root || uid.is_root()) {
        return Ok(Privilege::Privileged);
    }
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| explain_refusal("a user namespace", errno))?;
    // An unprivileged user may map a gid only after giving up setgroups. The
    // file is absent on kernels that have no such rule.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(map_refused(error)),
        _ => {}
    }
    let (inside_uid, inside_gid) = if as_root { (0, 0) } else { (uid.as_raw(), gid.as_raw()) };
    fs::write("/proc/self/uid_map", format!("{inside_uid} {uid} 1")).map_err(map_refused)?;
    fs::write("/proc/self/gid_map", format!("{inside_gid} {gid} 1")).map_err(map_refused)?;
    Ok(Privilege::UserNamespace { as_root })
}

/// True if the network namespace may be configured with the capabilities in force: it belongs to this process's
/// user namespace or one below.
pub(crate) fn owns_network(network: &NetNamespace) -> Result<bool> {
    // The kernel checks CAP_SYS_ADMIN over the user namespace that owns the
    // network namespace, which is just the question.
    match network.run(|| ()) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(false),
        Err(error) => Err(error),
    }
}

fn map_refused(error: io::Error) -> LiveError {
    if let Some(text) = restricting_setting(Path::new("/proc/sys")) {
        return LiveError::Forbidden(format!(
            "the user namespace was made but its ids cannot be mapped ({error}): {text}"
        ));
    }
    LiveError::system("map this user into its new user namespace", error)
}

/// True if this process is in a user namespace other than the host's, as an ordinary user's engine is.
pub(crate) fn in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

/// The sysctl under `sysctls` that restricts user namespaces, as a sentence
/// that says how to change it.
fn restricting_setting(sysctls: &Path) -> Option<String> {
    let value = |name: &str| fs::read_to_string(sysctls.join(name)).ok().map(|text| text.trim().to_owned());
    let advice = |name: &str, is: &str, set: &str| {
        format!(
            "{name} is {is} on this system; ask an administrator to run `sysctl -w {name}={set}`, or run this \
             command as root"
        )
    };
    if value("user/max_user_namespaces").as_deref() == Some("0") {
        return Some(advice("user.max_user_namespaces", "0", "15000"));
    }
    if value("kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return Some(advice("kernel.unprivileged_userns_clone", "0", "1"));
    }
    if value("kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        return Some(advice("kernel.apparmor_restrict_unprivileged_userns", "1", "0"));
    }
    for (name, what) in [
        ("user/max_net_namespaces", "network"),
        ("user/max_pid_namespaces", "process"),
        ("user/max_mnt_namespaces", "mount"),
    ] {
        if value(name).as_deref() == Some("0") {
            let dotted = name.replace('/', ".");
            return Some(format!("no {what} namespaces are allowed: {}", advice(&dotted, "0", "15000")));
        }
    }
    None
}

/// Says why the kernel refused `what` ("a user namespace") and what to change.
pub(crate) fn explain_refusal(what: &str, errno: nix::errno::Errno) -> LiveError {
    explain_refusal_with(what, errno, Path::new("/proc"))
}

fn explain_refusal_with(what: &str, errno: nix::errno::Errno, proc_root: &Path) -> LiveError {
    use nix::errno::Errno;
    if !matches!(errno, Errno::EPERM | Errno::EACCES | Errno::ENOSPC | Errno::EUSERS) {
        return LiveError::system(format!("make {what}"), errno);
    }
    let cause = if let Some(text) = restricting_setting(&proc_root.join("sys")) {
        text
    } else if matches!(errno, Errno::ENOSPC | Errno::EUSERS) {
        // Only the limit of this process's own user namespace can be read; one further out counts too.
        let name = limit_on(what);
        format!(
            "the limit on namespaces is reached: they are nested too deeply, or {name} is too low here or outside; \
             ask an administrator to run `sysctl -w {name}=15000`"
        )
    } else if filtered_by_seccomp(proc_root) {
        "a seccomp filter forbids it (the default profile of most container engines); run the container with \
         `--security-opt seccomp=unconfined` (or `--privileged`), or run \
         this command outside"
            .to_owned()
    } else {
        "this system permits it only for root (possible reasons: a chroot, SELinux or AppArmor); run this command as \
         root or with CAP_SYS_ADMIN, \
         CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_CHROOT"
            .to_owned()
    };
    LiveError::Forbidden(format!("the kernel refuses {what} ({errno}): {cause}"))
}

/// The setting that limits namespaces such as "a network namespace".
fn limit_on(what: &str) -> &'static str {
    let known = [
        ("network", "user.max_net_namespaces"),
        ("process", "user.max_pid_namespaces"),
        ("mount", "user.max_mnt_namespaces"),
    ];
    known.into_iter().find(|(kind, _)| what.contains(kind)).map_or("user.max_user_namespaces", |(_, name)| name)
}

fn filtered_by_seccomp(proc_root: &Path) -> bool {
    fs::read_to_string(proc_root.join("self/status"))
        .unwrap_or_default()
        .lines()
        .any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn explain(files: &[(&str, &str)], errno: Errno) -> String {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        explain_refusal_with("a user namespace", errno, root.path()).to_string()
    }

    #[test]
    fn a_limit_of_zero_names_its_sysctl() {
        let text = explain(&[("sys/user/max_user_namespaces", "0\n")], Errno::ENOSPC);
        assert!(text.contains("sysctl -w user.max_user_namespaces=15000"), "{text}");
    }

    #[test]
    fn the_switches_of_distributions_are_named() {
        let text = explain(&[("sys/kernel/unprivileged_userns_clone", "0\n")], Errno::EPERM);
        assert!(text.contains("sysctl -w kernel.unprivileged_userns_clone=1"), "{text}");
        let name = "sys/kernel/apparmor_restrict_unprivileged_userns";
        let text = explain(&[(name, "1\n")], Errno::EPERM);
        assert!(text.contains("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"), "{text}");
    }

    #[test]
    fn a_seccomp_filter_is_recognised() {
        let text = explain(&[("self/status", "Name:\tx\nSeccomp:\t2\n")], Errno::EPERM);
        assert!(text.contains("seccomp"), "{text}");
    }

    #[test]
    fn without_a_known_cause_root_is_advised() {
        let text = explain(&[("self/status", "Seccomp:\t0\n")], Errno::EPERM);
        assert!(text.contains("as root"), "{text}");
        let text = explain(&[], Errno::ENOMEM);
        assert!(text.starts_with("cannot make a user namespace"), "{text}");
    }
}
