// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Memory shared with the kernel: the frames of a socket, and rings of what is handed over. A ring has one writer and
//! one reader, of which the kernel is one; each owns its index, and reads the other's.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Memory that is unmapped when it is dropped.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: the memory belongs to the mapping alone, and has no tie to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(bytes: usize, flags: libc::c_int, descriptor: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place of a new mapping, so that it touches no other memory.
        let base =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags | libc::MAP_POPULATE, descriptor, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// The frames of a socket: chunks of equal length.
#[derive(Debug)]
pub(super) struct Frames {
    mapping: Mapping,
    chunk_bytes: usize,
}

impl Frames {
    /// Room for `count` frames.
    ///
    /// # Errors
    /// The kernel's, when there is no memory.
    pub(super) fn new(count: u32, chunk_bytes: usize) -> io::Result<Self> {
        let bytes = count as usize * chunk_bytes;
        Ok(Self { mapping: Mapping::new(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?, chunk_bytes })
    }

    /// Address and length of all of them, for the kernel.
    pub(super) fn area(&self) -> (u64, u64) {
        (self.mapping.base as u64, self.mapping.bytes as u64)
    }

    /// Address of the chunk in which `at` lies, or of the chunk of this number.
    pub(super) fn chunk_of(&self, at: u64) -> u64 {
        at - at % self.chunk_bytes as u64
    }

    /// Bytes of a chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Bytes from `at` on, in a chunk that the kernel has handed over; none of what lies outside one chunk.
    pub(super) fn bytes(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.check(at, bytes)?;
        // SAFETY: the range is inside the mapping. Its chunk was handed over by the kernel, which does not write into
        // it until it gets it back, for which this reference has to end.
        Some(unsafe { std::slice::from_raw_parts(self.mapping.base.add(at as usize), bytes) })
    }

    /// The same, to be written.
    pub(super) fn bytes_mut(&mut self, at: u64, bytes: usize) -> Option<&mut [u8]> {
        self.check(at, bytes)?;
        // SAFETY: as above, and the frames are borrowed for writing.
        Some(unsafe { std::slice::from_raw_parts_mut(self.mapping.base.add(at as usize), bytes) })
    }

    fn check(&self, at: u64, bytes: usize) -> Option<()> {
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(bytes)?;
        (end <= self.mapping.bytes && at % self.chunk_bytes + bytes <= self.chunk_bytes).then_some(())
    }
}

/// The part that both kinds of rings have.
#[derive(Debug)]
pub(super) struct Ring<T> {
    mapping: Mapping,
    place: libc::xdp_ring_offset,
    entries: u32,
    /// Index of this side.
    own: u32,
    /// Index of the other side, as it was when last read.
    other: u32,
    of: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// The ring of `socket` that the kernel knows as `kind`.
    ///
    /// # Errors
    /// The kernel's, when there is no memory.
    pub(super) fn new(
        socket: &OwnedFd,
        kind: libc::off_t,
        place: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let bytes = place.desc as usize + entries as usize * size_of::<T>();
        let mapping = Mapping::new(bytes, libc::MAP_SHARED, socket.as_raw_fd(), kind)?;
        assert!(entries.is_power_of_two(), "a ring of {entries} entries");
        Ok(Self { mapping, place, entries, own: 0, other: 0, of: PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel told the offset of an aligned word in this mapping, which both sides use atomically.
        unsafe { &*self.mapping.base.add(offset as usize).cast::<AtomicU32>() }
    }

    fn entry(&self, index: u32) -> *mut T {
        let place = (index & (self.entries - 1)) as usize;
        // SAFETY: the masked index lies within the entries, all of which are in the mapping, behind `desc`.
        unsafe { self.mapping.base.add(self.place.desc as usize).cast::<T>().add(place) }
    }
}

/// A ring that is filled here and emptied by the kernel.
#[derive(Debug)]
pub(super) struct Filled<T>(pub(super) Ring<T>);

impl<T: Copy> Filled<T> {
    /// Number of entries for which there is room.
    pub(super) fn room(&mut self) -> u32 {
        self.0.entries - self.unread()
    }

    /// Number of entries that the kernel has not taken, with those that it cannot see yet.
    pub(super) fn unread(&mut self) -> u32 {
        self.0.other = self.0.word(self.0.place.consumer).load(Ordering::Acquire);
        self.0.own.wrapping_sub(self.0.other)
    }

    /// Puts an entry into the ring, which must have room; the kernel sees it once it is published.
    pub(super) fn push(&mut self, entry: T) {
        if self.0.own.wrapping_sub(self.0.other) >= self.0.entries {
            assert!(self.room() > 0, "a full ring");
        }
        // SAFETY: the entry is one that the kernel has taken, and reads no more.
        unsafe { self.0.entry(self.0.own).write(entry) };
        self.0.own = self.0.own.wrapping_add(1);
    }

    /// Lets the kernel see what was put in.
    pub(super) fn publish(&mut self) {
        self.0.word(self.0.place.producer).store(self.0.own, Ordering::Release);
    }

    /// True if the kernel looks at the ring only when it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        // What was published must be visible before the flag is read: else both sides could wait for each other.
        fence(Ordering::SeqCst);
        self.0.word(self.0.place.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that the kernel fills and that is emptied here.
#[derive(Debug)]
pub(super) struct Emptied<T>(pub(super) Ring<T>);

impl<T: Copy> Emptied<T> {
    /// Number of entries that wait.
    pub(super) fn waiting(&mut self) -> u32 {
        if self.0.other == self.0.own {
            self.look();
        }
        self.0.other.wrapping_sub(self.0.own)
    }

    /// Reads how far the kernel has come.
    pub(super) fn look(&mut self) {
        self.0.other = self.0.word(self.0.place.producer).load(Ordering::Acquire);
    }

    /// The entry at this distance from the front, which must be one that waits.
    pub(super) fn peek(&self, distance: u32) -> T {
        assert!(distance < self.0.other.wrapping_sub(self.0.own), "an entry that does not wait");
        // SAFETY: the kernel has published the entry, and writes it again only when it was released.
        unsafe { self.0.entry(self.0.own.wrapping_add(distance)).read() }
    }

    /// Gives so many entries back.
    pub(super) fn release(&mut self, count: u32) {
        self.0.own = self.0.own.wrapping_add(count);
        self.0.word(self.0.place.consumer).store(self.0.own, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_within_one_chunk() {
        let mut frames = Frames::new(4, 2048).unwrap();
        frames.bytes_mut(2048, 3).unwrap().copy_from_slice(&[1, 2, 3]);
        assert_eq!(frames.bytes(2049, 2), Some(&[2, 3][..]));
        assert!(frames.bytes(4 * 2048 - 1, 1).is_some() && frames.bytes(4 * 2048, 1).is_none());
        assert!(frames.bytes(2047, 2).is_none() && frames.bytes(u64::MAX, 2).is_none());
        assert_eq!((frames.chunk_of(2304), frames.area().1), (2048, 8192));
    }
}
