// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets as the kernel hands them over, as bytes and without any system call: super-packets cut into
//! segments, checksums left to the device, noise of the host. Headers are read by `airpath-packet`.

mod classify;
mod finish;
mod segment;

pub use classify::{Noise, noise};
pub use finish::complete_checksum;
pub use segment::{ChecksumWork, SegmentHeader, Segmenter, UnsupportedSuperPacket};

#[cfg(test)]
pub(crate) use segment::tests::{naive_check, tcp_packet};
