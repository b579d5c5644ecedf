// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Capabilities of the calling thread: reading them, and handing them on to
//! the programs it executes.
#![allow(unsafe_code)]

use std::io;

/// Capability numbers used here (see `linux/capability.h`).
pub mod number {
    /// Send any signal to any process.
    pub const KILL: u32 = 5;
    /// Bind ports below 1024.
    pub const NET_BIND_SERVICE: u32 = 10;
    /// Broadcast and multicast.
    pub const NET_BROADCAST: u32 = 11;
    /// Configure networks.
    pub const NET_ADMIN: u32 = 12;
    /// Raw and packet sockets.
    pub const NET_RAW: u32 = 13;
    /// Change root (needed to enter a mount namespace).
    pub const SYS_CHROOT: u32 = 18;
    /// Trace processes and look into their namespaces.
    pub const SYS_PTRACE: u32 = 19;
    /// Change owners of files.
    pub const CHOWN: u32 = 0;
    /// Read and write files in spite of their modes.
    pub const DAC_OVERRIDE: u32 = 1;
    /// Change modes of files of others.
    pub const FOWNER: u32 = 3;
    /// Keep set-uid bits of files that are changed.
    pub const FSETID: u32 = 4;
    /// Become another group.
    pub const SETGID: u32 = 6;
    /// Become another user.
    pub const SETUID: u32 = 7;
    /// Give up capabilities.
    pub const SETPCAP: u32 = 8;
    /// Keep memory from being paged out.
    pub const IPC_LOCK: u32 = 14;
    /// Write to the audit log, as a server for log-ins does.
    pub const AUDIT_WRITE: u32 = 29;
    /// Give files capabilities.
    pub const SETFCAP: u32 = 31;
    /// Mounts and namespaces.
    pub const SYS_ADMIN: u32 = 21;
}

/// Capabilities of a command run by an ordinary user inside a user namespace, so that ping, tcpdump, congestion
/// control and a nested run work. Tracing is not among it: the engine is in the same user namespace.
pub const FOR_COMMANDS: [u32; 7] = [
    number::KILL,
    number::NET_BIND_SERVICE,
    number::NET_BROADCAST,
    number::NET_ADMIN,
    number::NET_RAW,
    number::SYS_CHROOT,
    number::SYS_ADMIN,
];

/// Maximum capabilities of confined commands of root: those that programs at the ends of a link need of the
/// network and of users, and none that reaches other namespaces, mounts, modules, devices or clocks.
const FOR_CONFINED_ROOT: [u32; 16] = [
    number::CHOWN,
    number::DAC_OVERRIDE,
    number::FOWNER,
    number::FSETID,
    number::KILL,
    number::SETGID,
    number::SETUID,
    number::SETPCAP,
    number::NET_BIND_SERVICE,
    number::NET_BROADCAST,
    number::NET_ADMIN,
    number::NET_RAW,
    number::IPC_LOCK,
    number::SYS_CHROOT,
    number::AUDIT_WRITE,
    number::SETFCAP,
];
/// More than any kernel has.
const NUMBERS: u32 = 64;

/// Maximum capabilities of commands, as a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds(u64);

impl Bounds {
    /// Everything: those of root, as they were.
    pub const NONE: Bounds = Bounds(u64::MAX);
    /// In a user namespace: everything but tracing, which the engine is not to suffer.
    pub const OF_NAMESPACE: Bounds = Bounds(!(1 << number::SYS_PTRACE));

    /// Those of confined commands of root.
    pub fn of_confined_root() -> Bounds {
        Bounds(FOR_CONFINED_ROOT.iter().fold(0, |mask, capability| mask | 1 << capability))
    }

    /// Takes everything else from what the calling thread, and all that it executes, can ever have. Safe
    /// between `fork` and `execve`.
    ///
    /// # Errors
    /// `EPERM` where the thread may give up nothing and has more.
    pub fn apply(self) -> io::Result<()> {
        for capability in (0..NUMBERS).filter(|capability| self.0 >> capability & 1 == 0) {
            let capability = libc::c_ulong::from(capability);
            // SAFETY: prctl with integer arguments. Less than 1: not in the set, or no capability of this kernel.
            if unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability) } < 1 {
                continue;
            }
            // SAFETY: as above.
            if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The three sets of the calling thread, as 64-bit masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// In force now.
    pub effective: u64,
    /// May be made effective.
    pub permitted: u64,
    /// Kept over `execve` together with the ambient set.
    pub inheritable: u64,
}

impl Capabilities {
    /// Reads the calling thread's sets.
    ///
    /// # Errors
    /// The kernel's, which a current Linux never returns.
    pub fn current() -> io::Result<Self> {
        let mut header = Header { version: VERSION_3, pid: 0 };
        let mut data = [Data::default(); 2];
        // SAFETY: header and data have the layout of version 3 (two data
        // words) and live over the call.
        let done = unsafe { libc::syscall(libc::SYS_capget, &mut header, data.as_mut_ptr()) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Ok(Self {
            effective: wide(data[0].effective, data[1].effective),
            permitted: wide(data[0].permitted, data[1].permitted),
            inheritable: wide(data[0].inheritable, data[1].inheritable),
        })
    }

    /// True if `capability` is effective.
    pub fn has(&self, capability: u32) -> bool {
        self.effective >> capability & 1 == 1
    }

    /// Sets the calling thread's sets. Safe between `fork` and `execve`.
    fn apply(&self) -> io::Result<()> {
        let mut header = Header { version: VERSION_3, pid: 0 };
        let part = |shift: u32| Data {
            effective: (self.effective >> shift) as u32,
            permitted: (self.permitted >> shift) as u32,
            inheritable: (self.inheritable >> shift) as u32,
        };
        let data = [part(0), part(32)];
        // SAFETY: as in `current`; the kernel only reads.
        let done = unsafe { libc::syscall(libc::SYS_capset, &mut header, data.as_ptr()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Makes those of `wanted` which the thread is permitted ambient, so that they
/// survive an `execve` by an ordinary uid. Allocates nothing and takes no
/// lock: it may run between `fork` and `execve`.
///
/// # Errors
/// `EPERM` when the bounding set or securebits forbid it.
pub fn raise_ambient(wanted: &[u32]) -> io::Result<()> {
    let mut sets = Capabilities::current()?;
    let mut mask = 0_u64;
    for capability in wanted {
        mask |= 1 << capability;
    }
    mask &= sets.permitted;
    sets.inheritable |= mask;
    sets.apply()?;
    for capability in wanted {
        if mask >> capability & 1 == 0 {
            continue;
        }
        // SAFETY: prctl with integer arguments only.
        let done = unsafe {
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong,
                libc::c_ulong::from(*capability),
                0 as libc::c_ulong,
                0 as libc::c_ulong,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
