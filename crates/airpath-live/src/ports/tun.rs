// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A TUN device as a port. It takes super-packets as they are and needs no
//! checksum work, but gives no receive stamps.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use airpath_core::Span;
use bytes::BytesMut;

use super::offload::{HEADER_BYTES, OffloadHeader};
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, LONGEST_PACKET_BYTES, Outgoing, ReadOutcome, Received, WriteOutcome,
    meddling_queues, refuses_packet, would_block,
};
use crate::error::{Attempting, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkCounters, RouteSocket};

/// Packets that the device may hold between two reads. It drops silently
/// beyond, so this is far above what the engine leaves waiting.
pub(crate) const TRANSMIT_QUEUE_PACKETS: u32 = 20_000;

pub(super) const DEVICE: &str = "/dev/net/tun";
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;
const TUN_F_TSO_ECN: libc::c_ulong = 0x08;
const TUN_F_USO4: libc::c_ulong = 0x20;
const TUN_F_USO6: libc::c_ulong = 0x40;

/// The engine's end of a TUN device that lives in an endpoint's namespace.
#[derive(Debug)]
pub struct TunPort {
    file: File,
    counters: RouteSocket,
    link_index: u32,
    counters_at_start: LinkCounters,
    refused: u64,
}

/// Checks that this process may open the device at all.
pub fn tun_available() -> io::Result<()> {
    open_device().map(|_| ())
}

pub(super) fn open_device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
}

impl TunPort {
    /// Makes the device `name` in `namespace`. With `super_packets` the kernel
    /// hands over up to 64 KiB of a flow at once, checksum unfinished.
    ///
    /// # Errors
    /// When the device cannot be opened (rights, no such device) or made.
    pub fn create(namespace: &NetNamespace, name: &str, super_packets: bool) -> Result<Self> {
        namespace.run(|| {
            let file = open_device()
                .attempting(|| format!("open {DEVICE} (load the module `tun`, or use packet sockets instead)"))?;
            make_interface(&file, name, libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR)
                .attempting(|| format!("make the TUN device {name}"))?;
            set_offloads(&file, super_packets).attempting(|| format!("set the offloads of the TUN device {name}"))?;
            let mut counters = RouteSocket::open().attempting(|| "open a netlink socket".into())?;
            let link_index = counters.link_index(name).attempting(|| format!("find the TUN device {name}"))?;
            let counters_at_start =
                counters.link_counters(link_index).attempting(|| format!("read the counters of {name}"))?;
            Ok(Self { file, counters, link_index, counters_at_start, refused: 0 })
        })?
    }
}

impl Adapter for TunPort {
    fn label(&self) -> &'static str {
        "tun"
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        let mut outcome = ReadOutcome::default();
        make_room(slab, LONGEST_PACKET_BYTES);
        while outcome.packets < limit && has_room(slab, LONGEST_PACKET_BYTES) {
            match read_packet(&self.file, slab) {
                Ok(received) => out.push(received),
                Err(error) if would_block(&error) => {
                    outcome.exhausted = true;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            outcome.packets += 1;
        }
        Ok(outcome)
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        for packet in packets {
            match write_packet(&self.file, packet) {
                Ok(()) => {}
                Err(error) if would_block(&error) => break,
                Err(error) if refuses_packet(&error) => {
                    outcome.refused += 1;
                    self.refused += 1;
                }
                Err(error) => return Err(error),
            }
            outcome.done += 1;
        }
        Ok(outcome)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        let now = self.counters.link_counters(self.link_index)?;
        let start = self.counters_at_start;
        let received = now.receive_dropped - start.receive_dropped;
        Ok(DropsOutsideModel {
            before_engine: now.send_dropped - start.send_dropped,
            // The kernel counts what it refused to take as dropped, too.
            after_engine: received.saturating_sub(self.refused),
            unreadable: 0,
        })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        Ok(InterfaceChanges { downs: 0, queues: meddling_queues(&mut self.counters, self.link_index)? })
    }

    fn unread_limit(&self) -> Option<Span> {
        None
    }
}

impl AsFd for TunPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes the interface `name` of the kind that `flags` say.
pub(super) fn make_interface(file: &File, name: &str, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (target, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which lives over the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn set_offloads(file: &File, super_packets: bool) -> io::Result<()> {
    if !super_packets {
        return set_offload_flags(file, 0);
    }
    let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    // Kernels before 6.2 know no UDP segmentation on TUN.
    set_offload_flags(file, tcp | TUN_F_USO4 | TUN_F_USO6).or_else(|_| set_offload_flags(file, tcp))
}

fn set_offload_flags(file: &File, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes an integer.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, flags) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn read_packet(file: &File, slab: &mut BytesMut) -> io::Result<Received> {
    let mut header = [0_u8; HEADER_BYTES];
    slab.clear();
    let spare: &mut [MaybeUninit<u8>] = slab.spare_capacity_mut();
    let parts = [
        libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: HEADER_BYTES },
        libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: spare.len().min(LONGEST_PACKET_BYTES) },
    ];
    // SAFETY: both parts are writable memory of the given lengths, and live
    // over the call.
    let read = unsafe { libc::readv(file.as_raw_fd(), parts.as_ptr(), 2) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    let packet_bytes = (read as usize).saturating_sub(HEADER_BYTES);
    // SAFETY: the kernel has filled the first `packet_bytes` bytes.
    unsafe { slab.set_len(packet_bytes) };
    Ok(Received {
        bytes: slab.split_to(packet_bytes),
        link_bytes: 0,
        stamp_realtime_ns: None,
        offload: OffloadHeader::decode(&header, 0),
        journey: None,
    })
}

fn write_packet(file: &File, packet: &Outgoing<'_>) -> io::Result<()> {
    const PARTS: usize = 8;
    let header = packet.offload.encode(0);
    let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut parts = [empty; PARTS];
    if packet.parts.len() >= PARTS {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    parts[0] = libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: HEADER_BYTES };
    for (target, part) in parts[1..].iter_mut().zip(packet.parts) {
        *target = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
    }
    let count = packet.parts.len() as libc::c_int + 1;
    // SAFETY: `count` parts are readable and live over the call; writev does
    // not write to them.
    let written = unsafe { libc::writev(file.as_raw_fd(), parts.as_ptr(), count) };
    if written < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
