// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The program that hands every frame of an interface to the sockets of a port, one for each queue. It writes a receive
//! stamp before the frame, because AF_XDP itself has none. The program goes with its descriptor, however a run ends.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::ports::bpf::{self, Program};

/// Bytes before a frame that the program fills: the mark, and the stamp (CLOCK_MONOTONIC, ns).
pub(super) const STAMP_BYTES: usize = 16;
/// Mark that tells a stamp from what was there before.
pub(super) const MARK: u64 = 0x6169_7270_6174_6831;

const MAP_OF_SOCKETS: u32 = 17;
/// The place in `union bpf_attr` for programs of XDP.
const XDP_PLACE: u32 = 37;
/// The program takes frames that lie in several buffers (Linux 5.18).
const TAKES_FRAGMENTS: u32 = 1 << 5;
const GENERIC_MODE: u32 = 1 << 1;
const DRIVER_MODE: u32 = 1 << 2;

const ADJUST_META: i32 = 54;
const MONOTONIC_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
/// Fate of a frame of a queue without a socket: nothing of it is for the host.
const DROP: i32 = 1;

/// Place where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// In the driver.
    Driver,
    /// In the kernel's stack, behind the driver.
    Generic,
}

/// The program on an interface.
#[derive(Debug)]
pub(super) struct Redirection {
    _link: OwnedFd,
    sockets: OwnedFd,
    pub(super) mode: Mode,
    /// The error for which it is not in the driver.
    pub(super) why_generic: Option<io::Error>,
}

/// Step at which the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Making the map, or loading the program.
    Load,
    /// Attaching it.
    Attach,
}

impl Redirection {
    /// Attaches the program to the interface of this index in the thread's network namespace.
    ///
    /// # Errors
    /// The kernel's; `EBUSY` or `EEXIST` when another program is there.
    pub(super) fn begin(link_index: u32, queues: u32) -> Result<Self, (Step, io::Error)> {
        let loading = |error| (Step::Load, error);
        let sockets = bpf::create_map(MAP_OF_SOCKETS, queues).map_err(loading)?;
        let instructions = instructions(sockets.as_raw_fd());
        let load = |flags| bpf::load(&Program { kind: bpf::XDP, place: XDP_PLACE, flags, instructions: &instructions });
        let program = match load(TAKES_FRAGMENTS) {
            // A kernel that does not know the flag.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => load(0),
            other => other,
        }
        .map_err(loading)?;
        let attach = |flags| bpf::attach(&program, link_index, XDP_PLACE, flags);
        match attach(DRIVER_MODE) {
            Ok(link) => Ok(Self { _link: link, sockets, mode: Mode::Driver, why_generic: None }),
            Err(error) if is_final(&error) => Err((Step::Attach, error)),
            Err(why) => {
                let link = attach(GENERIC_MODE).map_err(|error| (Step::Attach, error))?;
                Ok(Self { _link: link, sockets, mode: Mode::Generic, why_generic: Some(why) })
            }
        }
    }

    /// Hands the frames of a queue to `socket`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn hand(&self, queue: u32, socket: &impl AsRawFd) -> io::Result<()> {
        bpf::put(&self.sockets, queue, socket)
    }
}

/// True of an error that is not about the driver: the other mode would meet it too, or hide it.
fn is_final(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM | libc::EACCES | libc::ENODEV))
}

/// One instruction, as the kernel numbers operations and registers.
const fn instruction(operation: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    operation as u64
        | (to as u64) << 8
        | (from as u64) << 12
        | (offset as u16 as u64) << 16
        | (value as u32 as u64) << 32
}

/// The program: a stamp where the driver has room for it, then the frame to the socket of its queue.
fn instructions(sockets: i32) -> [u64; 20] {
    const COPY: u8 = 0xbf;
    const SET: u8 = 0xb7;
    const SET_WIDE: u8 = 0x18;
    const ADD: u8 = 0x07;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const JUMP_IF_NOT: u8 = 0x55;
    const JUMP_IF_ABOVE: u8 = 0x2d;
    const READ_WORD: u8 = 0x61;
    const WRITE_DOUBLE: u8 = 0x7b;
    // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index.
    const DATA: i16 = 0;
    const DATA_META: i16 = 8;
    const QUEUE: i16 = 16;
    const A_MAP: u8 = 1;
    [
        instruction(COPY, 6, 1, 0, 0),
        instruction(SET, 2, 0, 0, -(STAMP_BYTES as i32)),
        instruction(CALL, 0, 0, 0, ADJUST_META),
        instruction(JUMP_IF_NOT, 0, 0, 10, 0),
        instruction(READ_WORD, 7, 6, DATA_META, 0),
        instruction(READ_WORD, 8, 6, DATA, 0),
        instruction(COPY, 1, 7, 0, 0),
        instruction(ADD, 1, 0, 0, STAMP_BYTES as i32),
        instruction(JUMP_IF_ABOVE, 1, 8, 5, 0),
        instruction(CALL, 0, 0, 0, MONOTONIC_NS),
        instruction(WRITE_DOUBLE, 7, 0, 8, 0),
        instruction(SET_WIDE, 1, 0, 0, MARK as i32),
        instruction(0, 0, 0, 0, (MARK >> 32) as i32),
        instruction(WRITE_DOUBLE, 7, 1, 0, 0),
        instruction(READ_WORD, 2, 6, QUEUE, 0),
        instruction(SET_WIDE, 1, A_MAP, 0, sockets),
        instruction(0, 0, 0, 0, 0),
        instruction(SET, 3, 0, 0, DROP),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_end_where_the_frame_is_handed_over() {
        let program = instructions(7);
        let target = |at: usize| at + 1 + (program[at] >> 16) as u16 as usize;
        let handing_over = program.iter().position(|word| *word == instruction(0x61, 2, 6, 16, 0)).unwrap();
        assert_eq!((target(3), target(8)), (handing_over, handing_over));
    }

    #[test]
    fn an_instruction_has_the_form_of_the_kernel() {
        // r0 = 2; exit
        assert_eq!([instruction(0xb7, 0, 0, 0, 2), instruction(0x95, 0, 0, 0, 0)], [0x0000_0002_0000_00b7, 0x95]);
        assert_eq!(instruction(0x61, 2, 6, -1, -16), 0xffff_fff0_ffff_6261);
    }
}
