// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Whole frames put together: the kernel hands the outer tag of a VLAN over beside the frame.

use airpath_packet::Headers;
use airpath_packet::ethernet::EthernetHeader;
use bytes::{Buf, BytesMut};

use super::OffloadHeader;

/// Bytes of the two addresses.
const ADDRESS_BYTES: usize = 12;
const TAG_BYTES: usize = 4;

/// Room before the EtherType of a frame: the addresses, and a tag.
pub(super) const HEADROOM_BYTES: usize = ADDRESS_BYTES + TAG_BYTES;

/// Bytes of a slot beside the packet: the headroom, the EtherType, and two tags that are in the frame itself.
pub(super) const SLOT_BYTES: usize = HEADROOM_BYTES + 2 + 2 * TAG_BYTES;

/// A frame as it was on the wire.
#[derive(Debug)]
pub(super) struct Frame {
    /// All of it.
    pub(super) bytes: BytesMut,
    /// Bytes of its link header.
    pub(super) link_bytes: u8,
    /// The same without the tag that was beside the frame: offsets of the kernel count from there.
    pub(super) bytes_of_kernel: u16,
}

/// Puts a frame together in `slot`, which has room for addresses and tag before what was read: the EtherType, or tags
/// in the frame, and what follows. None if the frame ends within its link header, or that is absurdly long.
pub(super) fn assemble(mut slot: BytesMut, addresses: &[u8], tag: Option<[u8; TAG_BYTES]>) -> Option<Frame> {
    let inserted = match tag {
        Some(tag) => {
            slot[ADDRESS_BYTES..HEADROOM_BYTES].copy_from_slice(&tag);
            TAG_BYTES
        }
        None => {
            slot.advance(TAG_BYTES);
            0
        }
    };
    slot[..ADDRESS_BYTES].copy_from_slice(addresses);
    let link_bytes = u8::try_from(EthernetHeader::read(&slot)?.bytes()).ok()?;
    Some(Frame { bytes: slot, link_bytes, bytes_of_kernel: u16::from(link_bytes) - inserted as u16 })
}

/// Length of the frame's packet, or of the longest segment of a super-packet, in bytes.
pub(super) fn packet_bytes(frame: &Frame, offload: &OffloadHeader) -> usize {
    let packet = &frame.bytes[usize::from(frame.link_bytes)..];
    if !offload.is_super_packet() {
        return packet.len();
    }
    // The kernel's length of the headers is a hint: in a super-packet that it joined, that is what lies in one piece.
    let headers = Headers::read(packet).map_or(usize::from(offload.header_bytes), |headers| headers.bytes());
    packet.len().min(headers + usize::from(offload.segment_bytes))
}

#[cfg(test)]
mod tests {
    use super::super::Segmentation;
    use super::*;

    const ADDRESSES: [u8; ADDRESS_BYTES] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

    fn frame(rest: &[u8], tag: Option<[u8; 4]>) -> Option<Frame> {
        let mut slot = BytesMut::from(&[0xee; HEADROOM_BYTES][..]);
        slot.extend_from_slice(rest);
        assemble(slot, &ADDRESSES, tag)
    }

    #[test]
    fn a_tag_beside_the_frame_goes_back_before_those_in_it() {
        let plain = frame(&[8, 0, 0x45, 1], None).unwrap();
        assert_eq!((&plain.bytes[..], plain.link_bytes), (&[&ADDRESSES[..], &[8, 0, 0x45, 1]].concat()[..], 14));
        assert_eq!(plain.bytes_of_kernel, 14);
        let outer = [0x88, 0xa8, 0, 5];
        let twice = frame(&[0x81, 0, 0, 7, 8, 6, 9], Some(outer)).unwrap();
        let expected = [&ADDRESSES[..], &outer, &[0x81, 0, 0, 7, 8, 6, 9]].concat();
        assert_eq!((&twice.bytes[..], twice.link_bytes, twice.bytes_of_kernel), (&expected[..], 22, 18));
        assert_eq!(packet_bytes(&twice, &OffloadHeader::default()), 1);
    }

    /// Of packets that it joined, the kernel tells as the length of the headers how much lies in one piece.
    #[test]
    fn a_segment_is_as_long_as_its_headers_say() {
        let mut packet = [0; 20 + 32 + 2 * 1448];
        packet[..4].copy_from_slice(&[0x45, 0, 0x0b, 0x84]);
        packet[9] = 6;
        packet[20 + 12] = 8 << 4;
        let joined = frame(&[&[8, 0], &packet[..]].concat(), None).unwrap();
        for header_bytes in [52, 1500] {
            let segmentation = Segmentation::TcpV4;
            let offload = OffloadHeader { segmentation, header_bytes, segment_bytes: 1448, ..OffloadHeader::default() };
            assert_eq!(packet_bytes(&joined, &offload), 1500);
        }
    }

    #[test]
    fn a_frame_that_ends_within_its_header_is_none() {
        assert!(frame(&[], None).is_none() && frame(&[8], None).is_none());
        assert!(frame(&[0x81, 0, 0], Some([0x81, 0, 0, 1])).is_none());
        let endless: Vec<u8> = [0x81, 0, 0, 1].repeat(100);
        assert!(frame(&endless, None).is_none());
    }
}
