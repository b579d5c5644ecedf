// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! recvmmsg and sendmmsg on a packet socket: the message headers and the
//! small buffers around each packet, kept between calls.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use airpath_packet::ethernet::{self, UNTAGGED_BYTES as ETHERNET_BYTES};
use bytes::BytesMut;

use super::control_messages::{self, Control};
use super::link_frame::{self, HEADROOM_BYTES};
use super::offload::{HEADER_BYTES, OffloadHeader};
use super::{LONGEST_PACKET_BYTES, Outgoing, Received, WriteOutcome};
use crate::series::{self, LostFrames, Taken};

/// Packets per system call.
pub(super) const BATCH: usize = 32;

/// Bytes of the two addresses of a frame.
const ADDRESS_BYTES: usize = 12;

const IPV4: [u8; 2] = ethernet::IPV4.to_be_bytes();
const IPV6: [u8; 2] = ethernet::IPV6.to_be_bytes();

/// Result of one call of reading.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) packets: usize,
    pub(super) exhausted: bool,
    pub(super) oversized: u64,
    pub(super) not_ip: u64,
    pub(super) too_long: u64,
}

/// Treatment of the link headers of frames that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkHeaders {
    /// Left out; a frame that holds no IP packet is counted.
    Omitted,
    /// Kept before the packet. Packets longer than so many bytes are refused, and counted.
    Kept { limit_bytes: usize },
}

/// Lengths of a received message.
#[derive(Debug, Default, Clone, Copy)]
struct MessageLengths {
    bytes: usize,
    control_bytes: usize,
    truncated: bool,
}

/// Packets that came with one call.
struct Batch {
    count: usize,
    /// Those of the packets come first.
    lengths: [MessageLengths; BATCH],
    /// True if there are no more.
    exhausted: bool,
}

/// Prefix of a packet: the offload header and the Ethernet header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Prefix {
    offload: [u8; HEADER_BYTES],
    ethernet: [u8; ETHERNET_BYTES],
}

const PREFIX_BYTES: usize = size_of::<Prefix>();

thread_local! {
    /// Overflow buffer for the rest of a super-packet when a small one was expected. It holds something only
    /// within one read, so that all ports of a loop share it: with memory locked, one for each of a hundred
    /// ports would take 200 MB.
    static OVERFLOW: RefCell<Box<[u8]>> = RefCell::new(vec![0; BATCH * LONGEST_PACKET_BYTES].into());
}

/// Makes the room that reading from this thread needs.
pub(super) fn prepare_thread() {
    OVERFLOW.with_borrow_mut(|overflow| overflow.fill(0));
}

#[derive(Debug)]
pub(super) struct ReadBuffers {
    prefixes: Box<[Prefix; BATCH]>,
    controls: Box<[Control; BATCH]>,
    /// Number of packets in the last call: about as many are asked for in the next, as every message header has
    /// to be written beforehand.
    last_count: usize,
    slot_bytes: usize,
    /// Room at the beginning of a slot that is not read into.
    headroom_bytes: usize,
    /// Bytes of a frame that are read before the slot.
    prefix_bytes: usize,
    link_headers: LinkHeaders,
    expect_super_packets: bool,
}

impl ReadBuffers {
    /// Without `super_packets` nothing longer than the MTU is expected; should
    /// it come all the same, it is counted as oversized.
    pub(super) fn new(mtu_bytes: usize) -> Self {
        let prefix = Prefix { offload: [0; HEADER_BYTES], ethernet: [0; ETHERNET_BYTES] };
        Self {
            prefixes: Box::new([prefix; BATCH]),
            controls: Box::new([Control::EMPTY; BATCH]),
            last_count: 0,
            slot_bytes: mtu_bytes.next_multiple_of(64).min(LONGEST_PACKET_BYTES),
            headroom_bytes: 0,
            prefix_bytes: PREFIX_BYTES,
            link_headers: LinkHeaders::Omitted,
            expect_super_packets: false,
        }
    }

    /// For whole frames of an interface with this MTU, whose packets are refused if longer than `limit_bytes`.
    pub(super) fn of_frames(mtu_bytes: usize, limit_bytes: usize) -> Self {
        Self {
            headroom_bytes: HEADROOM_BYTES,
            // Two addresses; the EtherType and all tags are read behind the headroom.
            prefix_bytes: HEADER_BYTES + ADDRESS_BYTES,
            link_headers: LinkHeaders::Kept { limit_bytes },
            ..Self::new(mtu_bytes + link_frame::SLOT_BYTES)
        }
    }

    /// Reads up to `wanted` packets. Small ones come in a batch, each into a
    /// slot as long as the MTU; super-packets one by one, each into the whole
    /// rest of the slab. Which to expect, the last read tells; a super-packet
    /// that comes unexpected is copied together.
    pub(super) fn read(
        &mut self,
        socket: BorrowedFd<'_>,
        slab: &mut BytesMut,
        wanted: usize,
        out: &mut Vec<Received>,
    ) -> io::Result<Read> {
        let (slot_bytes, wanted) = if self.expect_super_packets {
            (LONGEST_PACKET_BYTES, 1)
        } else {
            let fitting = slab.capacity() / self.slot_bytes;
            let expected = 2 * self.last_count + 2;
            (self.slot_bytes, wanted.min(fitting).min(BATCH).min(expected))
        };
        let Batch { count, lengths, exhausted } =
            OVERFLOW.with_borrow_mut(|overflow| self.receive(socket, slab, wanted, slot_bytes, overflow))?;
        self.last_count = count;
        let mut read = Read { exhausted, ..Read::default() };
        let mut longest = 0;
        for (index, message) in lengths.into_iter().take(count).enumerate() {
            let truncated = message.truncated;
            // With the headroom, as if that had been read into as well.
            let length = message.bytes.saturating_sub(self.prefix_bytes) + self.headroom_bytes;
            longest = longest.max(length);
            let prefix = &self.prefixes[index];
            let is_ip = matches!([prefix.ethernet[12], prefix.ethernet[13]], IPV4 | IPV6);
            let is_wanted = is_ip || self.link_headers != LinkHeaders::Omitted;
            // A lone packet takes what it needs, so that packets lie tight.
            let taken = if count == 1 { length.min(slot_bytes) } else { slot_bytes };
            // SAFETY: the slot lies within the capacity. Bytes of it that the
            // kernel did not fill are cut off below; they come from an
            // earlier use of the memory, or are of no defined value, and are
            // never read.
            unsafe { slab.set_len(taken) };
            let mut bytes = slab.split_to(taken);
            if truncated || !is_wanted || length == 0 {
                read.oversized += u64::from(truncated);
                read.not_ip += u64::from(!truncated);
                continue;
            }
            if length > slot_bytes {
                let start = index * LONGEST_PACKET_BYTES;
                OVERFLOW.with_borrow(|overflow| {
                    bytes.extend_from_slice(&overflow[start..start + length - slot_bytes]);
                });
            } else {
                bytes.truncate(length);
            }
            let control = &self.controls[index].0[..message.control_bytes];
            let stamp_realtime_ns = control_messages::stamp(control);
            let LinkHeaders::Kept { limit_bytes } = self.link_headers else {
                let offload = OffloadHeader::decode(&prefix.offload, ETHERNET_BYTES as u16);
                out.push(Received { bytes, link_bytes: 0, stamp_realtime_ns, offload, journey: None });
                read.packets += 1;
                continue;
            };
            let tag = control_messages::tag(control);
            let Some(frame) = link_frame::assemble(bytes, &prefix.ethernet[..ADDRESS_BYTES], tag) else {
                read.oversized += 1;
                continue;
            };
            let offload = OffloadHeader::decode(&prefix.offload, frame.bytes_of_kernel);
            if link_frame::packet_bytes(&frame, &offload) > limit_bytes {
                read.too_long += 1;
                continue;
            }
            let (bytes, link_bytes) = (frame.bytes, frame.link_bytes);
            out.push(Received { bytes, link_bytes, stamp_realtime_ns, offload, journey: None });
            read.packets += 1;
        }
        self.expect_super_packets = longest > self.slot_bytes;
        Ok(read)
    }

    /// Receives into consecutive slots of the slab: what came with a wait, or else what the socket has.
    fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        slab: &mut BytesMut,
        wanted: usize,
        slot_bytes: usize,
        overflow: &mut [u8],
    ) -> io::Result<Batch> {
        let spare = slab.spare_capacity_mut();
        assert!(wanted * slot_bytes <= spare.len(), "slots exceed the slab");
        let (headroom_bytes, prefix_bytes) = (self.headroom_bytes, self.prefix_bytes);
        assert!(headroom_bytes < slot_bytes && prefix_bytes <= PREFIX_BYTES, "no room in a slot or a prefix");
        let base: *mut u8 = spare.as_mut_ptr().cast();
        let mut lengths = [MessageLengths::default(); BATCH];
        let taken = series::take(socket, wanted, |index, message| {
            let fitting = prefix_bytes + LONGEST_PACKET_BYTES - headroom_bytes;
            let bytes = &message.bytes[..message.bytes.len().min(fitting)];
            let (prefix, rest) = bytes.split_at(bytes.len().min(prefix_bytes));
            let (in_slot, beyond) = rest.split_at(rest.len().min(slot_bytes - headroom_bytes));
            // SAFETY: a prefix has room for `prefix_bytes`. Slot `index` ends within the spare capacity, and what is
            // copied there within the slot.
            unsafe {
                let slot = base.add(index * slot_bytes + headroom_bytes);
                std::ptr::copy_nonoverlapping(prefix.as_ptr(), (&raw mut self.prefixes[index]).cast(), prefix.len());
                std::ptr::copy_nonoverlapping(in_slot.as_ptr(), slot, in_slot.len());
            }
            overflow[index * LONGEST_PACKET_BYTES..][..beyond.len()].copy_from_slice(beyond);
            self.controls[index].0[..message.control.len()].copy_from_slice(message.control);
            lengths[index] = MessageLengths {
                bytes: bytes.len(),
                control_bytes: message.control.len(),
                truncated: message.truncated || bytes.len() < message.bytes.len(),
            };
        });
        if let Some(taken) = taken {
            let Taken { count, has_more } = taken?;
            return Ok(Batch { count, lengths, exhausted: !has_more });
        }
        // SAFETY: all-zero iovecs and message headers are valid.
        let mut parts: [[libc::iovec; 3]; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for index in 0..wanted {
            // SAFETY: slot `index` ends within the spare capacity, and its headroom within the slot.
            let slot = unsafe { base.add(index * slot_bytes + headroom_bytes) };
            let rest = &mut overflow[index * LONGEST_PACKET_BYTES..][..LONGEST_PACKET_BYTES - slot_bytes];
            parts[index] = [
                part((&raw mut self.prefixes[index]).cast(), prefix_bytes),
                part(slot, slot_bytes - headroom_bytes),
                part(rest.as_mut_ptr(), rest.len()),
            ];
            let header = &mut messages[index].msg_hdr;
            header.msg_iov = parts[index].as_mut_ptr();
            header.msg_iovlen = 3;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: `wanted` headers point at writable memory of the lengths
        // given, all of which lives over the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                wanted as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        for (length, message) in lengths.iter_mut().zip(&messages) {
            *length = MessageLengths {
                bytes: message.msg_len as usize,
                control_bytes: message.msg_hdr.msg_controllen.min(size_of::<Control>()),
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            };
        }
        let count = count as usize;
        Ok(Batch { count, lengths, exhausted: count < wanted })
    }
}

fn part(base: *mut u8, bytes: usize) -> libc::iovec {
    libc::iovec { iov_base: base.cast(), iov_len: bytes }
}

#[derive(Debug)]
pub(super) struct WriteBuffers {
    prefixes: Box<[Prefix; BATCH]>,
    parts: Parts,
}

/// Room for the parts of a batch, filled anew by every call.
#[derive(Debug, Default)]
struct Parts(Vec<libc::iovec>);

// SAFETY: the pointers in it are only used within the call that wrote them.
unsafe impl Send for Parts {}

impl WriteBuffers {
    /// `destination` is the Ethernet address of the endpoint's interface.
    pub(super) fn new(destination: [u8; 6], source: [u8; 6]) -> Self {
        let mut ethernet = [0; ETHERNET_BYTES];
        ethernet[..6].copy_from_slice(&destination);
        ethernet[6..12].copy_from_slice(&source);
        let prefix = Prefix { offload: [0; HEADER_BYTES], ethernet };
        Self { prefixes: Box::new([prefix; BATCH]), parts: Parts::default() }
    }

    /// Defers packets; those without an IP version are refused.
    pub(super) fn defer(
        &mut self,
        socket: BorrowedFd<'_>,
        packets: &[Outgoing<'_>],
        lost: &LostFrames,
    ) -> WriteOutcome {
        let prefix = &mut self.prefixes[0];
        let mut outcome = WriteOutcome { done: packets.len(), ..WriteOutcome::default() };
        for packet in packets {
            let Some(kind) = ethernet_type(packet) else {
                outcome.refused += 1;
                continue;
            };
            prefix.offload = packet.offload.encode(ETHERNET_BYTES as u16);
            prefix.ethernet[12..].copy_from_slice(&kind);
            let headers = [&prefix.offload[..], &prefix.ethernet[..]];
            let parts = packet.parts.iter().map(|part| &**part);
            series::defer(socket, headers.into_iter().chain(parts), lost);
        }
        outcome
    }

    /// Sends up to [`BATCH`] packets in one call; returns how many went.
    pub(super) fn write(&mut self, socket: BorrowedFd<'_>, packets: &[Outgoing<'_>]) -> io::Result<usize> {
        let packets = &packets[..packets.len().min(BATCH)];
        if packets.is_empty() {
            return Ok(0);
        }
        let parts = &mut self.parts.0;
        parts.clear();
        // No growth while pointers are taken below.
        parts.reserve(packets.iter().map(|packet| packet.parts.len() + 2).sum());
        // SAFETY: all-zero message headers are valid.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        for (packet, prefix) in packets.iter().zip(self.prefixes.iter_mut()) {
            let first = parts.len();
            if packet.link_header.is_empty() {
                let Some(kind) = ethernet_type(packet) else {
                    break;
                };
                prefix.offload = packet.offload.encode(ETHERNET_BYTES as u16);
                prefix.ethernet[12..].copy_from_slice(&kind);
                parts.push(part((&raw mut *prefix).cast(), PREFIX_BYTES));
            } else {
                prefix.offload = packet.offload.encode(packet.link_header.len() as u16);
                parts.push(part((&raw mut *prefix).cast(), HEADER_BYTES));
                parts.push(part(packet.link_header.as_ptr().cast_mut(), packet.link_header.len()));
            }
            for slice in packet.parts {
                parts.push(part(slice.as_ptr().cast_mut(), slice.len()));
            }
            let header = &mut messages[count].msg_hdr;
            header.msg_iov = parts[first..].as_mut_ptr();
            header.msg_iovlen = (parts.len() - first) as _;
            count += 1;
        }
        if count == 0 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: `count` headers point at parts that live over the call;
        // sending writes to none of them.
        let sent = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as libc::c_uint, libc::MSG_DONTWAIT as _)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }
}

/// By the version in the packet's first byte, as a TUN device does.
fn ethernet_type(packet: &Outgoing<'_>) -> Option<[u8; 2]> {
    let first = packet.parts.iter().find_map(|part| part.first())?;
    match first >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::ports::would_block;

    const MTU_BYTES: usize = 1500;

    fn frame(kind: [u8; 2], bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; HEADER_BYTES + ADDRESS_BYTES];
        frame.extend(kind);
        frame.extend((0..bytes).map(|at| at as u8));
        frame
    }

    /// Packets that are read of `frames`, and the numbers of others; `with_waits` if calls that wait receive first.
    fn read(frames: &[Vec<u8>], with_waits: bool) -> (Vec<Vec<u8>>, [u64; 2]) {
        let (socket, end) = UnixDatagram::pair().unwrap();
        for frame in frames {
            assert_eq!(end.send(frame).unwrap(), frame.len());
        }
        let mut reading = ReadBuffers::new(MTU_BYTES);
        let mut slab = BytesMut::with_capacity(1 << 20);
        let (mut packets, mut others) = (Vec::new(), [0; 2]);
        let mut exhausted = false;
        while !exhausted {
            let received = with_waits && series::receive_now(&[socket.as_raw_fd()]) > 0;
            let read = match reading.read(socket.as_fd(), &mut slab, BATCH, &mut packets) {
                Err(error) if would_block(&error) => break,
                read => read.unwrap(),
            };
            others[0] += read.not_ip;
            others[1] += read.oversized;
            // Where a wait has received, it looked first.
            exhausted = read.exhausted && !received;
        }
        (packets.iter().map(|packet| packet.bytes.to_vec()).collect(), others)
    }

    #[test]
    fn packets_are_the_same_whether_a_wait_received_them_or_not() {
        let frames = [
            frame(IPV4, 100),
            frame(IPV6, MTU_BYTES),
            frame([0x88, 0xcc], 60),
            frame(IPV4, 4000),
            frame(IPV4, 65_000),
            frame(IPV4, 1),
            vec![1; 5],
            frame(IPV6, LONGEST_PACKET_BYTES + 1),
            frame(IPV4, 20),
        ];
        let (packets, others) = read(&frames, false);
        assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [100, MTU_BYTES, 4000, 65_000, 1, 20]);
        assert_eq!(others, [2, 1]);
        assert_eq!(packets[3][..], frames[4][PREFIX_BYTES..]);
        assert_eq!(read(&frames, true), (packets, others));
    }
}
