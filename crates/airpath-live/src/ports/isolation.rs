// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An interface kept from its host: two programs of BPF, for what comes and what goes, that let nothing pass. Packet
//! sockets stand before them, so that a port reads and writes frames all the same, and the host neither answers what is
//! not for it nor sends of its own. The programs go with their descriptors, however a run ends.
//!
//! Needs tcx links (Linux 6.6) and CAP_NET_ADMIN with CAP_BPF.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::Result;
use crate::namespaces::NetNamespace;

const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// `r0 = TC_ACT_SHOT; exit`
const DROP_EVERYTHING: [u64; 2] = [0x0000_0002_0000_00b7, 0x95];
/// The licence of this program, which calls nothing of the kernel.
const LICENCE: &[u8] = b"Apache-2.0\0";

/// The beginning of `union bpf_attr` for loading a program; the rest is zero.
#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    rest: [u64; 8],
}

/// The beginning of `union bpf_attr` for attaching one.
#[repr(C)]
#[derive(Default)]
struct Attach {
    program: u32,
    link_index: u32,
    kind: u32,
    rest: [u32; 17],
}

/// Keeps an interface from its host until it is dropped.
#[derive(Debug)]
pub(super) struct Isolation {
    _links: [OwnedFd; 2],
}

impl Isolation {
    /// Begins with the interface of this index in `network`.
    ///
    /// # Errors
    /// When the namespace cannot be entered; within, why the kernel refuses.
    pub(super) fn begin(network: &NetNamespace, link_index: u32) -> Result<io::Result<Self>> {
        network.run(|| {
            let program = load()?;
            let attach = |kind| attach(&program, link_index, kind);
            Ok(Self { _links: [attach(TCX_INGRESS)?, attach(TCX_EGRESS)?] })
        })
    }
}

fn load() -> io::Result<OwnedFd> {
    let mut load = Load {
        kind: SCHED_CLS,
        instruction_count: DROP_EVERYTHING.len() as u32,
        instructions: DROP_EVERYTHING.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        ..Load::default()
    };
    bpf(PROG_LOAD, &mut load)
}

fn attach(program: &OwnedFd, link_index: u32, kind: u32) -> io::Result<OwnedFd> {
    bpf(LINK_CREATE, &mut Attach { program: program.as_raw_fd() as u32, link_index, kind, ..Attach::default() })
}

/// Carries out a command that returns a descriptor.
fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    let bytes = size_of::<T>() as libc::c_uint;
    // SAFETY: the attributes, and what they point at, are readable memory of the lengths given, and live over the call.
    let descriptor = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), bytes) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}
