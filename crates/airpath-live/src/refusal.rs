// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Namespaces that the kernel refuses: the cause, and the setting that allows them.

use std::fs;
use std::path::Path;

use crate::error::LiveError;

/// The sysctl under `sysctls` that restricts user namespaces, as a sentence
/// that says how to change it.
pub(crate) fn restricting_setting(sysctls: &Path) -> Option<String> {
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
