// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Programs of BPF that ports attach to interfaces. Each ends with its descriptor, however a run ends.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Program of the traffic control, such as one on a tcx hook.
pub(super) const TRAFFIC_CONTROL: u32 = 3;
/// Program that sees frames in the driver.
pub(super) const XDP: u32 = 6;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
/// The licence of the programs, none of which needs a function of the kernel that is for the GPL alone.
const LICENCE: &[u8] = b"Apache-2.0\0";
const NAME: [u8; 16] = *b"airpath\0\0\0\0\0\0\0\0\0";

/// A program to be loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program<'a> {
    /// Its type.
    pub(super) kind: u32,
    /// Kind of place where it is to be attached; 0 where its type says that.
    pub(super) place: u32,
    /// Flags of BPF_PROG_LOAD.
    pub(super) flags: u32,
    /// Its instructions.
    pub(super) instructions: &'a [u64],
}

/// The beginning of `union bpf_attr` for loading a program; the rest is zero.
#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log: [u64; 2],
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    link_index: u32,
    place: u32,
    rest: [u64; 2],
}

/// The beginning of `union bpf_attr` for attaching one.
#[repr(C)]
#[derive(Default)]
struct Attach {
    program: u32,
    link_index: u32,
    place: u32,
    flags: u32,
    rest: [u32; 16],
}

/// The beginning of `union bpf_attr` for making a map.
#[repr(C)]
#[derive(Default)]
struct Create {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    most_entries: u32,
    rest: [u32; 16],
}

/// The beginning of `union bpf_attr` for changing an entry of a map.
#[repr(C)]
#[derive(Default)]
struct Update {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Loads a program.
///
/// # Errors
/// The kernel's: `EPERM` without CAP_BPF, `EINVAL` or `EACCES` for a program that it does not take.
pub(super) fn load(program: &Program<'_>) -> io::Result<OwnedFd> {
    let mut attributes = Load {
        kind: program.kind,
        instruction_count: program.instructions.len() as u32,
        instructions: program.instructions.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        flags: program.flags,
        name: NAME,
        place: program.place,
        ..Load::default()
    };
    descriptor(PROGRAM_LOAD, &mut attributes)
}

/// Attaches a program to the interface of this index, until the descriptor is closed.
///
/// # Errors
/// The kernel's.
pub(super) fn attach(program: &OwnedFd, link_index: u32, place: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    descriptor(LINK_CREATE, &mut Attach { program, link_index, place, flags, ..Attach::default() })
}

/// Makes a map of this kind from numbers to descriptors.
///
/// # Errors
/// The kernel's.
pub(super) fn create_map(kind: u32, most_entries: u32) -> io::Result<OwnedFd> {
    descriptor(MAP_CREATE, &mut Create { kind, key_bytes: 4, value_bytes: 4, most_entries, ..Create::default() })
}

/// Puts a descriptor into such a map.
///
/// # Errors
/// The kernel's.
pub(super) fn put(map: &OwnedFd, key: u32, value: &impl AsRawFd) -> io::Result<()> {
    let value = value.as_raw_fd() as u32;
    let mut attributes = Update {
        map: map.as_raw_fd() as u32,
        key: (&raw const key) as u64,
        value: (&raw const value) as u64,
        ..Update::default()
    };
    call(MAP_UPDATE, &mut attributes).map(|_| ())
}

/// Carries out a command that returns a descriptor.
fn descriptor<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    let descriptor = call(command, attributes)?;
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn call<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    let bytes = size_of::<T>() as libc::c_uint;
    // SAFETY: the attributes, and what they point at, are readable memory of the lengths given, and live over the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), bytes) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result as libc::c_int)
}
