// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The engine of another host as a port: behind it the path goes on. Packets travel as datagrams over a pair of local
//! sockets, whose other end threads join to the connection between the hosts, so that the loop never waits for it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use airpath_core::{Credit, Damage, Direction, End, PduId, Span, Time};
use bytes::BytesMut;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send, sendmsg};

use super::credit::{JoinedCredit, direction_of_credit};
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, LONGEST_PACKET_BYTES, OffloadHeader, Outgoing, ReadOutcome, Received,
    WriteOutcome,
};
use crate::clock;

/// The first byte of a datagram that is a packet.
pub const PACKET: u8 = 0;
/// Bytes before the positions of flipped bits.
const FIXED_BYTES: usize = 40;
/// Place at which the receiving host writes the time of receipt.
const RECEIVED_AT: usize = 26;
/// Longest datagram: a packet all of whose bits may be flipped needs a count of 16 bits.
pub const LONGEST_DATAGRAM_BYTES: usize = FIXED_BYTES + 4 * u16::MAX as usize + LONGEST_PACKET_BYTES;
const COPIED: u8 = 1;
const TRUNCATED: u8 = 2;
const UPLINK: u8 = 4;
/// Time for which packets may be left unread: they bear the stamps of the thread that received them.
const UNREAD_LIMIT: Span = Span::from_micros(200);

/// Record of a packet from the hops of other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journey {
    /// Its number, which it keeps on all hosts.
    pub id: PduId,
    /// Time at which it entered the path, in run time.
    pub entered: Time,
    /// True for a copy that the link made.
    pub copied: bool,
    /// Damage so far.
    pub damage: Option<Box<Damage>>,
}

/// A datagram that is a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedPacket<'a> {
    /// Its direction on the path.
    pub direction: Direction,
    /// Its record.
    pub journey: Journey,
    /// Time of sending, by CLOCK_REALTIME of the sending host in ns.
    pub sent_realtime_ns: u64,
    /// Time of receipt, by CLOCK_REALTIME of this host in ns; 0 on its way.
    pub received_realtime_ns: u64,
    /// The IP packet without its damage.
    pub bytes: &'a [u8],
}

impl<'a> JoinedPacket<'a> {
    /// Reads a datagram; none where it is no packet.
    pub fn read(datagram: &'a [u8]) -> Option<JoinedPacket<'a>> {
        let (head, rest) = datagram.split_at_checked(FIXED_BYTES)?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let flags = head[1];
        if head[0] != PACKET || flags & !(COPIED | TRUNCATED | UPLINK) != 0 {
            return None;
        }
        let truncated_to = u32::from_le_bytes(head[34..38].try_into().ok()?);
        let flips = usize::from(u16::from_le_bytes(head[38..40].try_into().ok()?));
        let (flips, bytes) = rest.split_at_checked(4 * flips)?;
        let flips: Vec<u32> =
            flips.chunks_exact(4).map(|flip| u32::from_le_bytes(flip.try_into().unwrap_or_default())).collect();
        let most_bits = 8 * bytes.len() as u32;
        let ascending = flips.windows(2).all(|pair| pair[0] < pair[1]);
        let truncated_to = (flags & TRUNCATED != 0).then_some(truncated_to);
        if bytes.is_empty() || bytes.len() > LONGEST_PACKET_BYTES || !ascending {
            return None;
        }
        if flips.last().is_some_and(|last| *last >= most_bits)
            || truncated_to.is_some_and(|to| to as usize > bytes.len())
        {
            return None;
        }
        let damage = Damage { flips, truncated_to };
        let journey = Journey {
            id: word(2),
            entered: Time::from_nanos(word(10)),
            copied: flags & COPIED != 0,
            damage: (!damage.is_none()).then(|| Box::new(damage)),
        };
        let direction = direction_of(datagram)?;
        let (sent_realtime_ns, received_realtime_ns) = (word(18), word(RECEIVED_AT));
        Some(JoinedPacket { direction, journey, sent_realtime_ns, received_realtime_ns, bytes })
    }

    /// The datagram without the packet's own bytes; none where too many bits are flipped to be told.
    pub fn header(journey: &Journey, direction: Direction, sent_realtime_ns: u64) -> Option<Vec<u8>> {
        let damage = journey.damage.as_deref();
        let flips = damage.map_or(&[][..], |damage| &damage.flips);
        let truncated_to = damage.and_then(|damage| damage.truncated_to);
        let mut head = Vec::with_capacity(FIXED_BYTES + 4 * flips.len());
        head.push(PACKET);
        let is_uplink = direction == Direction::Uplink;
        head.push(
            u8::from(journey.copied) * COPIED
                + u8::from(truncated_to.is_some()) * TRUNCATED
                + u8::from(is_uplink) * UPLINK,
        );
        for word in [journey.id, journey.entered.nanos(), sent_realtime_ns, 0] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        head.extend_from_slice(&truncated_to.unwrap_or(0).to_le_bytes());
        head.extend_from_slice(&u16::try_from(flips.len()).ok()?.to_le_bytes());
        flips.iter().for_each(|flip| head.extend_from_slice(&flip.to_le_bytes()));
        Some(head)
    }
}

/// The direction of a datagram that is a packet or a credit.
pub fn direction_of(datagram: &[u8]) -> Option<Direction> {
    if let Some(direction) = direction_of_credit(datagram) {
        return Some(direction);
    }
    let flags = datagram.get(1).filter(|_| datagram.len() >= FIXED_BYTES && datagram[0] == PACKET)?;
    Some(if flags & UPLINK != 0 { Direction::Uplink } else { Direction::Downlink })
}

/// Length of the packet in a datagram that is one.
pub fn packet_bytes(datagram: &[u8]) -> Option<u64> {
    let head = datagram.get(..FIXED_BYTES).filter(|head| head[0] == PACKET)?;
    let flips = usize::from(u16::from_le_bytes(head[38..40].try_into().ok()?));
    Some((datagram.len() as u64).saturating_sub((FIXED_BYTES + 4 * flips) as u64))
}

/// Notes in a datagram that is a packet when this host received it; returns when the other one sent it.
pub fn note_receipt(datagram: &mut [u8], received_realtime_ns: u64) -> Option<u64> {
    if datagram.len() < FIXED_BYTES || datagram[0] != PACKET {
        return None;
    }
    datagram[RECEIVED_AT..RECEIVED_AT + 8].copy_from_slice(&received_realtime_ns.to_le_bytes());
    Some(u64::from_le_bytes(datagram[18..26].try_into().ok()?))
}

/// A port behind which the path goes on at another host.
#[derive(Debug)]
pub struct JoinedPort {
    socket: OwnedFd,
    /// The end of the machine at which it is.
    end: End,
    gone: Arc<OnceLock<String>>,
    buffer: Vec<u8>,
    unreadable: u64,
    /// Packets that were lost between the hosts.
    lost: Arc<AtomicU64>,
    /// Credit of the machine at the other host before it said anything.
    first_credit: Credit,
    /// Credits that were read, with the times of their receipt.
    credits: Vec<(Credit, u64)>,
    /// Credit for the other machine that found no room yet.
    owed: Option<Credit>,
}

impl JoinedPort {
    /// A port at `end` of a machine, on `socket`, an end of a pair that keeps datagrams apart. `gone` tells why the
    /// other end was closed.
    pub fn new(socket: OwnedFd, end: End, gone: Arc<OnceLock<String>>) -> JoinedPort {
        JoinedPort {
            socket,
            end,
            gone,
            buffer: vec![0; LONGEST_DATAGRAM_BYTES],
            unreadable: 0,
            lost: Arc::default(),
            first_credit: Credit::UNLIMITED,
            credits: Vec::new(),
            owed: None,
        }
    }

    /// The same port, where the machine at the other host begins with `first_credit`.
    #[must_use]
    pub fn with_credit(self, first_credit: Credit) -> JoinedPort {
        JoinedPort { first_credit, ..self }
    }

    /// The same port, where somebody counts packets that are lost between the hosts.
    #[must_use]
    pub fn with_losses(self, lost: Arc<AtomicU64>) -> JoinedPort {
        JoinedPort { lost, ..self }
    }

    /// Sends the credit that found no room yet.
    fn pay(&mut self) -> io::Result<()> {
        let Some(credit) = self.owed else { return Ok(()) };
        let direction = self.end.other().sends();
        let datagram = JoinedCredit { direction, received_realtime_ns: 0, credit }.to_bytes();
        match send(self.socket.as_raw_fd(), &datagram, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => self.owed = None,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS | Errno::ENOMEM) => {}
            Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(self.gone()),
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn gone(&self) -> io::Error {
        io::Error::other(self.gone.get().map_or("the connection to the other host ended", String::as_str))
    }
}

impl Adapter for JoinedPort {
    fn label(&self) -> &'static str {
        "host"
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        let mut outcome = ReadOutcome::default();
        make_room(slab, LONGEST_PACKET_BYTES);
        self.pay()?;
        while outcome.packets + self.credits.len() < limit && has_room(slab, LONGEST_PACKET_BYTES) {
            let count = match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(0) | Err(Errno::ECONNRESET) => return Err(self.gone()),
                Ok(count) => count,
                Err(Errno::EAGAIN) => {
                    outcome.exhausted = true;
                    break;
                }
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if let Some(told) =
                JoinedCredit::read(&self.buffer[..count]).filter(|told| told.direction == self.end.sends())
            {
                self.credits.push((told.credit, told.received_realtime_ns));
                continue;
            }
            let is_ours = |packet: &JoinedPacket<'_>| packet.direction == self.end.sends();
            let Some(packet) = JoinedPacket::read(&self.buffer[..count]).filter(is_ours) else {
                self.unreadable += 1;
                continue;
            };
            slab.extend_from_slice(packet.bytes);
            let bytes = slab.split_to(packet.bytes.len());
            out.push(Received {
                bytes,
                link_bytes: 0,
                stamp_realtime_ns: Some(packet.received_realtime_ns),
                offload: OffloadHeader::default(),
                journey: Some(Box::new(packet.journey)),
            });
            outcome.packets += 1;
        }
        Ok(outcome)
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        self.pay()?;
        for packet in packets {
            let direction = self.end.other().sends();
            let head =
                packet.journey.and_then(|journey| JoinedPacket::header(journey, direction, clock::realtime_ns()));
            let (Some(head), true) = (head, packet.offload == OffloadHeader::default()) else {
                outcome.refused += 1;
                outcome.done += 1;
                continue;
            };
            let parts: Vec<IoSlice<'_>> =
                std::iter::once(IoSlice::new(&head)).chain(packet.parts.iter().copied()).collect();
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            match sendmsg::<()>(self.socket.as_raw_fd(), &parts, &[], flags, None) {
                Ok(_) => {}
                Err(Errno::EAGAIN | Errno::EINTR) => break,
                Err(Errno::EMSGSIZE | Errno::ENOBUFS | Errno::ENOMEM) => outcome.refused += 1,
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Err(self.gone()),
                Err(errno) => return Err(errno.into()),
            }
            outcome.done += 1;
        }
        Ok(outcome)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        let before_engine = self.lost.load(Ordering::Relaxed);
        Ok(DropsOutsideModel { before_engine, unreadable: self.unreadable, ..DropsOutsideModel::default() })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        Ok(InterfaceChanges::default())
    }

    fn unread_limit(&self) -> Option<Span> {
        Some(UNREAD_LIMIT)
    }

    fn joined(&self) -> Option<Credit> {
        Some(self.first_credit)
    }

    fn give_credit(&mut self, credit: Credit) -> io::Result<()> {
        self.owed = Some(credit);
        self.pay()
    }

    fn try_again(&mut self) -> io::Result<bool> {
        self.pay()?;
        Ok(self.owed.is_some())
    }

    fn take_credits(&mut self) -> Vec<(Credit, u64)> {
        std::mem::take(&mut self.credits)
    }
}

impl AsFd for JoinedPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;

    fn pair() -> (JoinedPort, JoinedPort) {
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let gone = Arc::new(OnceLock::new());
        (JoinedPort::new(one, End::Server, gone.clone()), JoinedPort::new(other, End::Client, gone))
    }

    fn read(port: &mut JoinedPort) -> io::Result<Vec<Received>> {
        let mut received = Vec::new();
        port.read_batch(&mut BytesMut::new(), 8, &mut received).map(|_| received)
    }

    #[test]
    fn a_packet_keeps_its_number_its_times_and_its_damage() {
        let (mut near, mut far) = pair();
        let damage = Damage { flips: vec![3, 39], truncated_to: Some(4) };
        let journey = Journey { id: 7, entered: Time::from_nanos(11), copied: true, damage: Some(Box::new(damage)) };
        let bytes = [0x45, 1, 2, 3, 4];
        let parts = [IoSlice::new(&bytes[..2]), IoSlice::new(&bytes[2..])];
        let outgoing =
            Outgoing { link_header: &[], parts: &parts, offload: OffloadHeader::default(), journey: Some(&journey) };
        let plain = Outgoing { journey: None, ..outgoing };
        assert_eq!(near.write_batch(&[outgoing, plain]).unwrap(), WriteOutcome { done: 2, refused: 1, waits: false });
        let received = read(&mut far).unwrap();
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].bytes[..], bytes);
        assert_eq!(received[0].journey.as_deref(), Some(&journey));
    }

    #[test]
    fn credits_pass_beside_packets() {
        let (mut near, mut far) = pair();
        assert_eq!(near.joined(), Some(Credit::UNLIMITED));
        let credit = Credit { taken_packets: 5, ..Credit::UNLIMITED };
        near.give_credit(credit).unwrap();
        assert!(read(&mut far).unwrap().is_empty());
        assert_eq!(far.take_credits(), [(credit, 0)]);
        assert!(far.take_credits().is_empty());
        assert_eq!(far.drops_outside_model().unwrap().unreadable, 0);
    }

    #[test]
    fn a_credit_that_finds_no_room_is_owed_until_there_is_some() {
        let (mut near, mut far) = pair();
        let credit = |taken_packets| Credit { taken_packets, ..Credit::UNLIMITED };
        let mut given = 0;
        while !near.try_again().unwrap() {
            given += 1;
            near.give_credit(credit(given)).unwrap();
        }
        assert!(read(&mut far).unwrap().is_empty());
        assert!(!near.try_again().unwrap());
        let mut came = Vec::new();
        while came.last() != Some(&(credit(given), 0)) {
            assert!(read(&mut far).unwrap().is_empty());
            let more = far.take_credits();
            assert!(!more.is_empty(), "the last credit did not come");
            came.extend(more);
        }
        assert_eq!(came.len() as u64, given);
    }

    #[test]
    fn what_is_no_packet_is_counted_and_the_end_has_its_reason() {
        let (near, mut far) = pair();
        let header = |direction| JoinedPacket::header(&Journey::default(), direction, 5).unwrap();
        let good = [header(Direction::Uplink), vec![0x45; 20]].concat();
        assert_eq!(JoinedPacket::read(&good).unwrap().sent_realtime_ns, 5);
        assert_eq!(packet_bytes(&good), Some(20));
        let astray = [header(Direction::Downlink), vec![0x45; 20]].concat();
        assert_eq!(JoinedPacket::read(&astray).unwrap().direction, Direction::Downlink);
        send(near.socket.as_raw_fd(), &astray, MsgFlags::empty()).unwrap();
        let mut stamped = good.clone();
        assert_eq!(note_receipt(&mut stamped, 9), Some(5));
        assert_eq!(JoinedPacket::read(&stamped).unwrap().received_realtime_ns, 9);
        let flipped =
            Journey { damage: Some(Box::new(Damage { flips: vec![160], truncated_to: None })), ..Journey::default() };
        let beyond = [JoinedPacket::header(&flipped, Direction::Uplink, 5).unwrap(), vec![0x45; 20]].concat();
        assert_eq!((packet_bytes(&beyond), packet_bytes(&good[..10])), (Some(20), None));
        for bad in [&good[..FIXED_BYTES], &good[..10], &[1; 60][..], &beyond[..]] {
            assert_eq!(JoinedPacket::read(bad), None);
            send(near.socket.as_raw_fd(), bad, MsgFlags::empty()).unwrap();
        }
        assert!(read(&mut far).unwrap().is_empty());
        assert_eq!(far.drops_outside_model().unwrap().unreadable, 5);
        near.gone.set("host `far`: its engine was killed".into()).unwrap();
        drop(near);
        assert!(read(&mut far).unwrap_err().to_string().contains("its engine was killed"));
    }
}
